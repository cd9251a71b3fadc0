"""What the paper reports: mean and standard deviation over ten runs."""

DCC = {
    "CGM": ((0.043, 5.2e-5), (0.040, 1.4e-4)),
    "WU": ((0.058, 3.3e-5), (0.059, 5.3e-4)),
    "BCW": ((0.982, 0.001), (0.952, 0.004)),
    "Iris": ((0.981, 0.0), (0.911, 1.2e-16)),
    "Wine": ((0.958, 0.010), (0.958, 0.020)),
    "Raisin": ((0.867, 0.001), (0.844, 0.002)),
}
"""Tables 1 and 2, column DCC-Tree: training and test; MSE of CGM and WU, accuracy of the others."""

TEST_OF_CGM = {
    "CGM": (0.064, 0.014),
    "WU": (0.112, 0.034),
    "BCW": (0.939, 0.014),
    "Iris": (0.908, 0.022),
    "Wine": (0.916, 0.046),
    "Raisin": (0.843, 0.010),
}
"""The same tables, test row of the column CGM."""

TEST_OF_SMC = {
    "BCW": (0.924, 0.010),
    "Iris": (0.909, 0.022),
    "Wine": (0.978, 0.022),
    "Raisin": (0.842, 0.010),
}
"""Table 2, test row of the column SMC."""

SECONDS_PER_PROPOSAL = {
    "WU": 0.008576,
    "CGM": 0.5738,
    "BCW": 0.00626,
    "Iris": 0.00606,
    "Raisin": 0.01313,
    "Wine": 0.01381,
}
"""Table 6, column DCC-Tree."""
