"""Gaussian vectors, and errors above 0, around forests: drawn jointly with the leaf values.

`priors` has the table of Gaussian priors, `rows` finds the rows, forests, vectors and
hyperparameters of a model (linear maps are read in `targets`); `draw` has the algebra, `kernels`
the sums over rows, `leaves` the leaves as columns of a linear regression, `dense` what those of
soft trees (`soft_leaves`) and of leaves with slopes (`linear_leaves`) share, `joint` the draw
around one likelihood, and `step` the step method. `one_sided` reads and draws the errors of a
stochastic frontier, for the step method in `one_sided_step`.

May import: `core`, `distributions`, `targets`; PyMC, PyTensor, scipy.
"""
