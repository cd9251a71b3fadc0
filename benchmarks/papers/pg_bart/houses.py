"""California houses: three training sets of 2,000 rows and one test set of 5,000 (table 3).

The paper took the splits of Johnson and Zhang (2013), whose files are no longer to be found. Here
the six inputs are made from the StatLib file by its own header (income, age, rooms and bedrooms per
person, persons per household, households), the response is the logarithm of the median value, and
the rows are drawn at random, the three training sets disjoint.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.peers.data import DATA_VARIABLE, MissingData

from .hypercube import Data

N_TRAIN, N_TEST, SETS = 2_000, 5_000, 3
FILE = "california_houses6.csv.gz"


def six_inputs(frame):
    """Table with ``target`` last, from scikit-learn's frame (averages per household)."""
    people = frame["AveOccup"]
    return pd.DataFrame(
        {
            "median_income": frame["MedInc"],
            "housing_median_age": frame["HouseAge"],
            "rooms_per_person": frame["AveRooms"] / people,
            "bedrooms_per_person": frame["AveBedrms"] / people,
            "persons_per_household": people,
            "households": frame["Population"] / people,
            "target": np.log(frame["MedHouseVal"] * 100_000),
        }
    )


def table():
    """The file in the data folder, else scikit-learn's download."""
    folder = os.environ.get(DATA_VARIABLE)
    if folder and (Path(folder) / FILE).exists():
        return pd.read_csv(Path(folder) / FILE)
    try:
        from sklearn.datasets import fetch_california_housing

        return six_inputs(fetch_california_housing(as_frame=True).frame)
    except (ImportError, OSError) as error:
        raise MissingData(
            f"California houses: {FILE} is not in the folder named by {DATA_VARIABLE}, and "
            f"scikit-learn could not download the StatLib data ({error})."
        ) from error


def houses(which):
    """Training set ``which`` of three."""
    frame = table()
    rows = np.random.default_rng(0).permutation(len(frame))
    test, rest = rows[:N_TEST], rows[N_TEST:]
    train = rest[which * N_TRAIN : (which + 1) * N_TRAIN]
    X, y = frame.iloc[:, :-1].to_numpy(float), frame["target"].to_numpy(float)
    return Data(X[train], y[train], X[test], y[test])
