"""How much does each column contribute? In closed form, exactly, draw by draw.

`additive` (a function as a sum of trees), `shapley` (`shap_values`, `shap_interactions`, and
`to_shap` for the plots of another package), `variance` (`sobol_indices`), `interactions`
(`interaction_strength`).

May import: as `posterior`; joblib.
"""
