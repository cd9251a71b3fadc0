"""What is the prior of the trees? User settings, checked and combined.

`contract` (what a tree prior says of itself), `depth` (the default), `mondrian` (`MondrianPrior`),
`split_weights` (of the columns), `grid` (cuts on a grid), `read` (all of them together).

May import: `core`, `distributions.{data,declaration,capacity}`; PyMC, PyTensor.
"""
