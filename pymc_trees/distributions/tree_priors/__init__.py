"""What is the prior of the trees? Settings as users give them, checked and put together.

`split_weights` (of the columns), `grid` (cuts on a grid), `mondrian` (`MondrianPrior`), `read` (all
of them, and those of the depth).

May import: `core`, `distributions.data`, `distributions.declaration`; PyMC, PyTensor.
"""
