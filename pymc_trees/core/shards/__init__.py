"""How is a forest moved whose rows are elsewhere, in shards?

After Pratola et al. (2014). Reading order: `fixed_point` (residuals as whole numbers, so that sums
do not depend on how rows are dealt), `messages` (what the driver asks and shards answer), `rows`
(what a shard does with its rows), `nodes` (what the driver knows of nodes), `drafts` (a move drawn
before its rows are counted), `decisions` (accepted or not from the answer), `driver` (the trees of
a chain, and a visit of each).

May import: `core.moves` and what it does.
"""
