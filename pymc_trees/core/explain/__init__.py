"""What does each column contribute? Exact sums over subsets of columns, leaf by leaf.

A row reaches a leaf if every column on its path leads there, so the output of a tree is a sum of
products over columns. Shapley values, variance shares and dependence are means over rows whose
columns are taken from one row or another, and these have closed forms for a product.

Reading order: `paths` (the leaves of a tree and the columns on the way to each), `agreement` (which
columns of a row lead there), `games` (weights of Shapley values), `shapley` (one column and pairs),
`variance` (Sobol indices), `dependence` (H statistics); `gated` (games of leaves with weights) and
`soft_shapley` (`shapley` for soft trees); `choices` (the columns of the splits, counted).

May import: `core.columns`, `core.value`, `core.soft_forest`.
"""
