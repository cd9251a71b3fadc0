"""What does each column contribute? Exact sums over subsets of columns, leaf by leaf.

A row reaches a leaf if every column on its path leads there, so the output of a tree is a sum of
products over columns. Shapley values, variance shares and dependence are means over rows whose
columns are taken from one row or another, and these have closed forms for a product.

Reading order: `paths` (the leaves of a tree, the columns on the way to each, which columns of a row
lead there, and how often columns are split), `games` (weights of Shapley values, also of leaves
with weights), `shapley` (one column and pairs, of hard and of soft trees), `variance` (Sobol
indices), `dependence` (H statistics).

May import: `core.columns`, `core.value`, `core.soft_forest`.
"""
