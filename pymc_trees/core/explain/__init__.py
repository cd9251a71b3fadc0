"""What does each column contribute? Exact sums over subsets of columns, leaf by leaf.

A row reaches a leaf if every column on its path leads there, so the output of a tree is a sum of
products over columns. Shapley values, Sobol indices and partial dependence average over rows that
mix the columns of two rows. For a product these averages have closed forms.

Reading order: `paths` (leaves of a tree and the columns on their paths; counts of splits),
`shapley` (Shapley values of a product, of hard and of soft trees), `variance` (Sobol indices),
`dependence` (H statistics).

May import: `core.columns`, `core.value`, `core.soft_forest`.
"""
