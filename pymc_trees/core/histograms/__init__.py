"""What would a cut gain? Sums over a node's rows by column and code, for proposals.

Reading order: `contract` (columns to codes, the interface of a leaf model, and its default),
`cache` (integers for the normal leaf, and the histograms of the nodes of particles).

May import: `core.leaves`.
"""
