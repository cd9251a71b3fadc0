"""Odd inputs of formulas."""

import numpy as np
import pandas as pd

import pymc_trees as pmt
from support.odd.table import Odd

FRAME = pd.DataFrame({"y": np.arange(8.0), "x": np.arange(8.0) % 3, "z": np.arange(8.0) ** 2})

MODEL = {
    "family unknown": Odd(lambda: pmt.model("y ~ bart(x)", FRAME, family="nope"), "family"),
    "column unknown": Odd(lambda: pmt.model("y ~ bart(w)", FRAME), "w"),
    "argument unknown": Odd(lambda: pmt.model("y ~ bart(x, trees=3)", FRAME), "trees"),
}
