"""How probable is a tree before the data? Depth, split column, cut, and draws of whole trees.

Reading order: `contract` (the interface of a prior), `by_depth` (priors whose split probability
depends on depth), `cgm` (that of Chipman, George and McCulloch), `mondrian` (the Mondrian process,
whose splits have times), `draw` (a tree from a prior).

May import: `core.columns`, `core.forest`.
"""
