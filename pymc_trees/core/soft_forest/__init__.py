"""What is a sum of soft trees, and how is it sampled? Linero and Yang (2018) without PyMC.

Reading order: `trees` (columns mapped to [0, 1], working arrays, and weights of the leaves at each
row), `rows` (Gaussian rows with leaf values integrated out, and workspace), `prior` (of
rules and shapes), `moves` (proposals, and one change of one tree), `sweep` (every tree once, under
Gaussian rows or any likelihood of rows), `encode` (the encoded value, and draws from the prior).

May import: numpy, numba.
"""
