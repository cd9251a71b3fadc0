"""A table of likelihoods: every distribution of PyMC with a density, in every form of declaration.

`distributions` (with the parameters that a forest can enter), `declare` (plain, censored, a mixture
and so on). The tests hold each against PyMC's own log-probability; `__main__` prints what samples.
"""
