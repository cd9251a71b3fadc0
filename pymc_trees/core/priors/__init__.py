"""How probable is a tree before the data? Depth, split column, cut, and draws of whole trees.

Reading order: `contract` (what every prior answers), `by_depth` (priors whose split probability
is a function of depth), `cgm` (that of Chipman, George and McCulloch, where it falls), `mondrian`
(the Mondrian process, whose splits have times), `draw` (a tree from a prior).

May import: `core.columns`, `core.forest`.
"""
