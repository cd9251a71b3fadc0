"""How much does each column contribute? Draw by draw, in closed form where there is one.

`additive` (a function as a sum of trees), `shapley` (`shap_values`, `shap_interactions`, and
`to_shap` for the plots of another package), `coalitions` (Shapley values of functions without a
closed form, by mixing rows), `variance` (`sobol_indices`), `interactions` (`interaction_strength`).

May import: as `posterior`; joblib.
"""
