"""How much does each column contribute? In closed form, exactly, draw by draw.

`additive` (a function as a sum of trees) and `linear` (whether it is one), `shapley`
(`shap_values`, `shap_interactions`) and `hand_over` (`to_shap`, for the plots of another package),
`variance` (`sobol_indices`), `interactions` (`interaction_strength`).

May import: as `posterior`; joblib.
"""
