"""What is a Mondrian tree, how does it grow in place, and what does it predict?

Reading order: `tree` (the arrays and their settings), `labels` (the interface of a label model),
`grow` (a tree from a batch of rows), `budget` (a limit on leaves), `paused` (rows of paused
leaves), `closed` (trees without further splits), `extend` (one more row), `branch` (where a new
point leaves the tree, and when); then the two label models, `categories` (hierarchical normalized
stable process) and `moments` (numbers); `predict` (predictions of regression trees); `sound`
(checks of a tree read from a file).

May import: `core.compile`.
"""
