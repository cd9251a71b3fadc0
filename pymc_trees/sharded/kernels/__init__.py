"""How is a forest sampled whose rows are elsewhere, in shards?

Reading order: `messages` (queries, answers, and residuals as integers), `rows` (the work of a
shard), `drafts` (nodes as the driver knows them, and moves drawn in two steps), `decisions`
(acceptance, given the answers), `driver` (a visit of a tree).

May import: `core`.
"""
