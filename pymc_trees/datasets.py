"""Real data shipped with the package, for examples and tests."""

from __future__ import annotations

from importlib.resources import as_file, files

import pandas as pd

__all__ = ["load_abalone", "load_bikes", "load_cytology"]


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
    return _read("bikes.csv")


def load_abalone() -> pd.DataFrame:
    """Read sizes, weights, sex and rings of abalone.

    Parameters
    ----------
    None

    Returns
    -------
    pandas.DataFrame
        523 rows, no missing values, with columns

        ``sex``
            text: M, F, or I for infants;
        ``length``, ``diameter``, ``height``
            in units of 200 mm;
        ``whole_weight``, ``shucked_weight``, ``viscera_weight``, ``shell_weight``
            in units of 200 g;
        ``rings``
            rings of the shell, 1.5 less than the age in years: what is to be predicted.

    Notes
    -----
    Every eighth row of Nash, W., Sellers, T., Talbot, S., Cawthorn, A. and Ford, W. (1994),
    *Abalone* [dataset], UCI Machine Learning Repository, dataset 1,
    https://doi.org/10.24432/C55C7W, licensed under
    `CC BY 4.0 <https://creativecommons.org/licenses/by/4.0/>`__.

    Examples
    --------
    >>> from pymc_trees.datasets import load_abalone
    >>> int(load_abalone()["sex"].value_counts().sum())
    523
    """
    return _read("abalone.csv")


def load_cytology() -> pd.DataFrame:
    """Read the cytology of breast masses, with missing cells.

    Parameters
    ----------
    None

    Returns
    -------
    pandas.DataFrame
        699 rows: nine scores from 1 to 10, of which ``bare_nuclei`` is missing in 16 rows, and
        ``malignant``, 1 or 0: what is to be predicted.

    Notes
    -----
    Wolberg, W. (1990), *Breast Cancer Wisconsin (Original)* [dataset], UCI Machine Learning
    Repository, dataset 15, https://doi.org/10.24432/C5HP4Z, licensed under
    `CC BY 4.0 <https://creativecommons.org/licenses/by/4.0/>`__; without the sample numbers.

    Examples
    --------
    >>> from pymc_trees.datasets import load_cytology
    >>> int(load_cytology().isna().sum().sum())
    16
    """
    return _read("cytology.csv")


def _read(name: str) -> pd.DataFrame:
    with as_file(files("pymc_trees") / "data" / name) as path:
        return pd.read_csv(path)
