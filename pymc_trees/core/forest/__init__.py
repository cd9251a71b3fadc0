"""How is a forest stored while it is sampled? As working arrays.

Reading order: `trees` (the arrays, memory for rows, counts), `edit` (split, join, rotate), `undo`
(restores a tree, or its links).

May import: `core.compile`.
"""
