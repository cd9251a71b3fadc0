"""How probable is a tree before the data? Depth, split column, cut, and draws of whole trees.

Reading order: `cgm` (the prior's numbers and its two choices at a node), `draw` (a tree from it).

May import: `core.forest`.
"""
