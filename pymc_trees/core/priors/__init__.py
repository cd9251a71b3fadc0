"""How probable is a tree before the data? Depth, split column, cut, and draws of whole trees.

Reading order: `contract` (what every prior answers), `cgm` (that of Chipman, George and McCulloch:
split probabilities that fall with depth), `mondrian` (the Mondrian process, whose splits have
times), `draw` (a tree from a prior).

May import: `core.forest`.
"""
