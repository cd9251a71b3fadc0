"""How are results shown? From numbers to figures, with matplotlib.

`predictive_densities` (of Mondrian forests), `soft_topologies`, `soft_tree` (of DCC-Tree).

May import: `posterior`, `distributions`, `core`; matplotlib, ArviZ.
"""
