"""How is a forest sampled whose rows are in shards?

Reading order: `messages` (between driver and shards; residuals as integers), `shard` (the work of a
shard), `moves` (drawn in two steps, decided by the answers), `driver` (a visit of a tree).

May import: `core`.
"""
