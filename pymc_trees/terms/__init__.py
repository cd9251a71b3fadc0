"""Gaussian vectors, and errors above 0, around forests: drawn jointly with the leaf values.

`rows` has the table of Gaussian priors, and finds the rows, forests, vectors and hyperparameters of
a model (linear maps are read in `targets`); `draw` has the algebra, `gram` the sums over rows in
which leaves and other terms meet, `leaves` the leaves as columns of a linear regression, `joint`
the draw around one likelihood, and `step` the step method. `one_sided` reads and draws the errors
of a stochastic frontier, for the step method in `one_sided_step`.

May import: `core`, `distributions`, `targets`; PyMC, PyTensor, scipy.
"""
