"""What is a sum of soft trees, and how is it sampled? Linero and Yang (2018) without PyMC.

Reading order: `fields` (the encoded value), `unit` (columns mapped to [0, 1]), `trees` (working
arrays), `gates` (weights of the leaves at each row), `rows` (Gaussian rows with leaf values
integrated out), `prior` (of rules and shapes), `work` (workspace), `proposals` and `moves` (one
change of one tree), `sweep` (every tree once), `screened` (the same under any likelihood of rows),
`encode` (working arrays to the value and back), `prior_draw`.

May import: numpy, numba.
"""
