"""How are results shown? From numbers to figures.

As ArviZ-plots' `PlotCollection`, on any of its backends and of a size that fits (`figure`):
`dependence` (partial dependence, also row by row, and accumulated effects) by `curves`, `shap`
(Shapley values), `convergence` (whether chains agree about f), `diagnosis` (where not),
`importance` (R2 of submodels, and splits by column), `common_support` (propensities of the treated
and the others), `survival_curves` (with empirical estimates), `tree` (a tree as a diagram).
With matplotlib: `predictive_densities` (of Mondrian forests).

May import: `posterior`, `distributions`, `core`; matplotlib, ArviZ, ArviZ-plots.
"""
