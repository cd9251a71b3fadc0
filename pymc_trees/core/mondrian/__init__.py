"""What is a Mondrian tree, how does it grow in place, and what does it predict?

Reading order: `tree` (the arrays and their settings), `labels` (what every label model answers),
`grow` (a tree from a batch of rows), `budget` (a tree that has outgrown its leaves), `paused` (the
rows that leaves wait with), `closed` (a tree that is split no further), `extend` (one more row),
`branch` (where a new point leaves the tree, and when); then the two label models, `categories`
(hierarchical normalized stable process) and `moments` (numbers); `predict` (what trees of numbers
say of a new row); `sound` (may a tree that came from a file be walked?).

May import: `core.compile`.
"""
