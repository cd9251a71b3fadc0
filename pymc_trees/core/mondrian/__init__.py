"""What is a Mondrian tree, how does it grow in place, and what does it predict?

Reading order: `tree` (the arrays and their settings), `labels` (what every label model answers),
`grow` (a tree from a batch of rows), `budget` (a tree that has outgrown its leaves), `extend` (one
more row); then the two label models: `categories` (hierarchical normalized stable process) and
`moments` (numbers), with `belief` (Gaussian belief propagation), `branch` (where a new point leaves
the tree, and when), `mixture` (the predictive distribution of numbers), `empirical` (a fast
approximation to both) and `mixture_law` (what can be read off a mixture). `sound`: may a tree that
came from a file be walked?

May import: `forest`, `priors` and `leaves`; it needs none of them so far.
"""
