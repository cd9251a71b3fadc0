"""What is a Mondrian tree, how does it grow in place, and what does it predict?

Reading order: `tree` (the arrays, and where a new point leaves the tree), `labels` (the interface
of a label model; numbers), `categories` (classes: hierarchical normalized stable process), `grow`
(a tree from a batch of rows), `extend` (one more row), `predict` (of numbers), `validate` (checks
of a tree read from a file).

May import: `core.compile`.
"""
