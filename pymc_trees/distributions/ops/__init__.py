"""What stands in the graph? The random variables, their log-probabilities, their functions of X.

`forest_rv` (the variable, its prior draw and initial point), `forest_logp` (its log-probability),
`function_of_rows` (what both kinds of evaluation share), `evaluation` (its function of X); for soft
trees `soft_tree_rv`, `soft_evaluation`, and differentiable `soft_gates` (leaf probabilities) and
`soft_coordinates` (the gates from unconstrained numbers); for sums of soft trees `soft_forest_rv`,
`soft_forest_logp` and `soft_forest_evaluation`; `by_name` (kernels that compiled graphs call, with
sizes as data); `table_constant` (training inputs as constants).

May import: `core`, `distributions.leaves`, `distributions.forest_inputs`; PyMC, PyTensor.
"""
