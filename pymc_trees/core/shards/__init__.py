"""How is a forest sampled whose rows are elsewhere, in shards?

After Pratola et al. (2014). Reading order: `fixed_point` (integer residuals, whose sums do not
depend on how rows are distributed), `messages` (queries of the driver and answers of shards),
`rows` (the work of a shard), `nodes` (the driver's data on nodes), `drafts` (a move drawn before
its rows are counted), `decisions` (acceptance, given the answer), `driver` (the trees of a chain,
and a visit of each).

May import: `core.moves` and what it does.
"""
