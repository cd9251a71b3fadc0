"""How is a forest stored while it is sampled? As working arrays.

Reading order: `trees` (the arrays, memory for rows, counts), `edit` (split, join, rotate), `undo`
(restores a tree, or its links), `place` (the rows of all nodes anew, where their cells have moved).

May import: `core.compile`, `core.columns`.
"""
