"""How does a forest enter a PyMC model? As a random variable whose value is the encoded trees.

From the top: `bart` (`BART` and `DecisionTree`: one table of the inputs, the priors of leaves and
trees over its rows, the random variables and their function), `soft_bart` (the same of soft trees),
`forest` (`Forest`, the random variable alone). They take `data` (arrays and frames in),
`tree_priors` and `leaves` (priors), `capacity` (room for nodes) and `ops` (the random variables,
their log-probabilities and their functions of X). All that read a model take `forest_inputs`
(inputs of these Ops), `tree_variable` (any variable of trees, and where a graph evaluates it) and
`without_dims` (a model without names of dimensions).

May import: `core`; PyMC, PyTensor.
"""
