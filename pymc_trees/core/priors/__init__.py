"""How probable is a tree before the data? Depth, split column, cut, time.

Reading order: `contract` (the interface of a prior), `cgm` (the prior of Chipman, George and
McCulloch, and any other whose split probability depends on depth), `mondrian` (the Mondrian
process, whose splits have times).

May import: `core.columns`, `core.forest`.
"""
