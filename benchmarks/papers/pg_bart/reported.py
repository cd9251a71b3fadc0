"""Numbers printed in the paper: one chain each, samplers in Python."""

SAMPLERS = ("CGM", "GrowPrune", "PG")

HYPERCUBE_ESS = {  # table 1
    2: (751.66, 473.57, 259.11),
    3: (762.96, 285.2, 666.71),
    4: (14.01, 11.76, 686.79),
    5: (2.92, 1.35, 667.27),
    7: (1.16, 1.78, 422.96),
}
HYPERCUBE_ESS_PER_SECOND = {  # table 2
    2: (157.67, 114.81, 7.69),
    3: (93.01, 26.94, 11.025),
    4: (0.961, 0.569, 5.394),
    5: (0.130, 0.071, 1.673),
    7: (0.027, 0.039, 0.273),
}
HOUSES_ESS = (18.956, 34.849, 76.819)  # table 4
HOUSES_ESS_PER_SECOND = (1.967e-3, 48.799e-3, 16.743e-3)  # table 5


def of(table, family):
    """Number of a sampler, None where the paper has none."""
    return table[SAMPLERS.index(family)] if family in SAMPLERS else None
