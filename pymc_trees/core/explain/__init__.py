"""What does each column contribute? Exact sums over subsets of columns, leaf by leaf.

A row comes to a leaf when every column on its path says so: what a tree returns is a sum of
products over columns. Means over rows whose columns are taken from one row or from another, which
Shapley values, variance shares and dependence are made of, have closed forms for a product.

Reading order: `paths` (the leaves of a tree and the columns on the way to each), `agreement` (which
of these columns of a row lead there), `games` (weights of Shapley values), `shapley` (one column
and pairs), `variance` (Sobol indices), `dependence` (H statistics); `gated` (games of leaves that
rows are in by a share) and `soft_shapley` (the same as `shapley` of soft trees); `choices` (the
columns of the splits, counted).

May import: `core.columns`, `core.value`, `core.soft_forest`.
"""
