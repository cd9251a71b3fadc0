"""Real data shipped with the package, for examples and tests."""

from __future__ import annotations

from importlib.resources import as_file, files

import pandas as pd

__all__ = ["load_bikes"]


def load_bikes() -> pd.DataFrame:
    """Read hourly bike rentals in Washington, D.C., 2011 and 2012.

    Parameters
    ----------
    None

    Returns
    -------
    pandas.DataFrame
        348 rows, no missing values, sorted by ``hour``, with columns

        ``hour``
            hour of the day, 0 to 23;
        ``temperature``
            air temperature, scaled: (t + 8) / 47 with t in degrees Celsius;
        ``humidity``
            relative humidity, 0 to 1;
        ``workingday``
            1 on a working day, 0 on a weekend or holiday;
        ``count``
            bikes rented in that hour, 1 to 901: what is to be predicted.

    Notes
    -----
    Every 50th row of the hourly table of Fanaee-T, H. (2013), *Bike Sharing* [dataset], UCI
    Machine Learning Repository, dataset 275, https://doi.org/10.24432/C5W894, licensed under
    `CC BY 4.0 <https://creativecommons.org/licenses/by/4.0/>`__. The PyMC example gallery uses
    the same 348 rows.

    Examples
    --------
    >>> from pymc_trees.datasets import load_bikes
    >>> bikes = load_bikes()
    >>> bikes.shape
    (348, 5)
    >>> list(bikes.columns)
    ['hour', 'temperature', 'humidity', 'workingday', 'count']
    """
    with as_file(files("pymc_trees") / "data" / "bikes.csv") as path:
        return pd.read_csv(path)
