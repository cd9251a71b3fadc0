"""What would a cut gain? Sums over a node's rows by column and code, for proposals.

Reading order: `binning` (columns to codes), `contract` (the interface of a leaf model, and its
default), `normal` (integers for the normal leaf), `cache` (the histograms of the nodes of
particles).

May import: `core.leaves`.
"""
