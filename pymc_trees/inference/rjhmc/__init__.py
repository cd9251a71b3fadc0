"""Reversible jumps between topologies of a soft tree, with Hamiltonian Monte Carlo around them.

Reading order: `jump_model` (what is read off a model, and refused), `posterior` (densities, and
states from points), `kernels` (what NUTS is tuned to in each topology), `chain` (one iteration).
Graphs, compiled functions and NUTS are those of `inference.dcc`.
"""
