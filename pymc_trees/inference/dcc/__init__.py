"""DCC-Tree.

Reading order: `soft_model` (what is read off a model, and refused), `soft_graph` (log-densities of
any topology), `soft_posterior` (the same compiled), `nuts` (the one file that drives PyMC's NUTS),
`starts`, `local` (chains of a topology), `pooling` (covariances that they share), `runner` (in
which process), `dcc` (global iterations, the combined posterior), `settings`, `sample_dcc` (the
public face).
"""
