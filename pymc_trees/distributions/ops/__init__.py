"""What stands in the graph? The random variables, their log-probabilities, their functions of X.

`forest_rv` (the variable, its prior draw, initial point and log-probability), `evaluation` (its
function of X); `soft_forest_rv` (the same of sums of soft trees, evaluation included); `by_name`
(kernels that compiled graphs call, with sizes as data).

May import: `core`, `distributions.{data,leaves,tree_priors,forest_inputs}`; PyMC, PyTensor.
"""
