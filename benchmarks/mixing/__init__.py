"""How fast chains of trees forget where they were, kernels without PyMC."""
