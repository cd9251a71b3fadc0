"""Numbers printed in the thesis. Figure 5.3 is a picture: it has none."""

DEPTH = {"usps": (19.1, 1.3), "satimage": (17.4, 1.6), "letter": (23.2, 1.8), "dna": (12.0, 0.3)}
"""Table 5.1: mean depth of a row, standard deviation."""

ROWS = {"usps": 7291, "satimage": 3104, "letter": 15000, "dna": 1400}
"""Training rows of figure 5.3."""

CALIBRATION = {
    "Breiman-RF": [-0.02, -0.04, -0.05, -0.06, -0.06, -0.06, -0.05, -0.06, -0.07],
    "ERT": [-0.04, -0.07, -0.11, -0.14, -0.16, -0.18, -0.19, -0.19, -0.18],
    "MF": [-0.01, -0.02, -0.01, 0.0, 0.02, 0.03, 0.03, 0.02, 0.0],
}
"""Table 6.2, flight delays, 700K rows: observed less ideal fraction at 0.1, ..., 0.9."""

BAYESOPT = {"branin": (-0.400, 0.005, -0.655, 0.27), "hartmann6": (3.247, 0.109, 2.977, 0.11)}
"""Table 6.3: mean and sd of MF and of SMAC after 200 evaluations."""
