"""How is a forest stored while it is sampled? As working arrays.

Reading order: `trees` (the arrays; edits: split, join, rotate; a copy of a tree, to restore it),
`place` (the rows of all nodes anew, where their cells have moved).

May import: `core.compile`, `core.columns`.
"""
