"""How is a forest sampled whose rows are in shards?

Reading order: `shard` (messages between driver and shards, residuals as integers, the work of a
shard), `moves` (drawn in two steps, decided by the answers), `driver` (a visit of a tree).

May import: `core`.
"""
