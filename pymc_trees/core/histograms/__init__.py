"""What would a cut gain? Sums over a node's rows by column and code, for proposals.

Reading order: `binning` (columns to codes), `contract` (what a leaf model answers), `additive`
(what it answers if it says nothing else), `normal` (whole numbers for the normal leaf), `cache`
(the histograms of the nodes of particles).

May import: `core.leaves`.
"""
