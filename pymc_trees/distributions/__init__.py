"""How does a forest enter a PyMC model? As a random variable whose value is the encoded trees.

Reading order: `leaves` (leaf priors), `data` (frames and arrays in), `capacity` (room for nodes),
`declaration` (checked settings), `tree_priors`, `forest_inputs` (where the inputs of the Ops
stand), `without_dims` (a model without names of dimensions), `ops` (the random variables, their
log-probabilities, their functions of X), `tree_variable` (what is asked of any variable of trees,
and where a graph evaluates it), `forest`, `bart`, `decision_tree`, `soft_bart` (front-ends).

May import: `core`; PyMC, PyTensor.
"""
