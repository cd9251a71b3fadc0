"""What is the prior of the trees? User settings, checked and combined.

`contract` (what a tree prior must define, and the default one), `mondrian` (`MondrianPrior`),
`read` (the prior of a forest from all its settings: split weights and cuts on a grid, too).

May import: `core`, `distributions.{data,capacity}`; PyMC, PyTensor.
"""
