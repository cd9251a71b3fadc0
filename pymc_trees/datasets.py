"""Small data for examples and tests: real sets shipped with the package, and simulated ones."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
import pandas as pd

__all__ = [
    "load_abalone",
    "load_bikes",
    "load_cytology",
    "make_groups",
    "make_ordinal",
    "make_survival",
    "make_treatment",
]


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


def make_treatment(n: int = 300, random_state: int = 0) -> pd.DataFrame:
    """Simulate an observational study of a treatment whose effect depends on age.

    Parameters
    ----------
    n : int, default 300
        Patients.
    random_state : int, default 0
        Seed.

    Returns
    -------
    pandas.DataFrame
        One row a patient:

        ``age``
            in years, 30 to 80;
        ``severity``
            before treatment, about standard normal;
        ``clinic``
            text: north, south or west;
        ``treated``
            1 or 0; the severely ill are treated more often, so that groups differ at the start;
        ``outcome``
            a score of health after a year, with noise of sd 1;
        ``effect``
            what the treatment adds to the score of this patient: the truth, unknown in a study.

    Examples
    --------
    >>> from pymc_trees.datasets import make_treatment
    >>> study = make_treatment(n=100)
    >>> list(study.columns)
    ['age', 'severity', 'clinic', 'treated', 'outcome', 'effect']
    """
    rng = np.random.default_rng(random_state)
    age, severity = rng.uniform(30, 80, n).round(), rng.normal(size=n).round(2)
    clinic = rng.choice(["north", "south", "west"], n)
    treated = rng.random(n) < 1 / (1 + np.exp(-0.8 * severity - 0.4 * (clinic == "west")))
    effect = np.where(age < 60, 2.0, 0.5)
    healthy = 10 - 1.5 * severity - 0.03 * (age - 55) + (clinic == "south")
    outcome = healthy + effect * treated + rng.normal(size=n)
    columns = {"age": age, "severity": severity, "clinic": clinic, "treated": treated.astype(int)}
    return pd.DataFrame(columns | {"outcome": outcome.round(2), "effect": effect})


def make_survival(n: int = 200, random_state: int = 0) -> pd.DataFrame:
    """Simulate a trial with times to relapse, some of them censored.

    Parameters
    ----------
    n : int, default 200
        Patients.
    random_state : int, default 0
        Seed.

    Returns
    -------
    pandas.DataFrame
        One row a patient:

        ``arm``
            text: drug or placebo, at random;
        ``age``
            in years, 40 to 80;
        ``marker``
            uniform on 0 to 1; above one half the drug has no effect;
        ``time``
            months until relapse or until the patient was last seen, whole, 1 to 24;
        ``event``
            1 where there was a relapse, 0 where the time is censored.

    Examples
    --------
    >>> from pymc_trees.datasets import make_survival
    >>> trial = make_survival()
    >>> int(trial["time"].max())
    24
    """
    rng = np.random.default_rng(random_state)
    arm, age = rng.choice(["drug", "placebo"], n), rng.uniform(40, 80, n).round()
    marker = rng.random(n).round(2)
    log_scale = 2.6 - 0.02 * (age - 60) + 0.9 * ((arm == "drug") & (marker < 0.5))
    relapse = np.exp(log_scale) * rng.weibull(1.3, n)
    lost = rng.uniform(6, 36, n)
    time = np.ceil(np.minimum(np.minimum(relapse, lost), 24))
    columns = {"arm": arm, "age": age, "marker": marker, "time": time.astype(int)}
    return pd.DataFrame(columns | {"event": (relapse <= np.minimum(lost, 24)).astype(int)})


def make_ordinal(n: int = 300, random_state: int = 0) -> pd.DataFrame:
    """Simulate ratings on a scale of four, from poor to excellent.

    Parameters
    ----------
    n : int, default 300
        Meals that were rated.
    random_state : int, default 0
        Seed.

    Returns
    -------
    pandas.DataFrame
        One row a meal:

        ``price``
            10 to 60;
        ``wait``
            minutes until it was served, 5 to 50;
        ``kitchen``
            text: thai, italian or diner;
        ``rating``
            0 (poor), 1 (fair), 2 (good) or 3 (excellent). A rating follows from a score with
            standard logistic noise, cut at -1.5, 0 and 1.5. The score falls with the wait once
            that is longer than 20 minutes, and rises with the price at an Italian kitchen alone.

    Examples
    --------
    >>> from pymc_trees.datasets import make_ordinal
    >>> sorted(make_ordinal()["rating"].unique().tolist())
    [0, 1, 2, 3]
    """
    rng = np.random.default_rng(random_state)
    price, wait = rng.uniform(10, 60, n).round(), rng.uniform(5, 50, n).round()
    kitchen = rng.choice(["thai", "italian", "diner"], n)
    score = 1.0 - 0.1 * np.maximum(wait - 20, 0)
    score += np.where(kitchen == "italian", 0.06 * (price - 35), (kitchen == "thai") * 0.8)
    rating = np.digitize(score + rng.logistic(size=n), [-1.5, 0.0, 1.5])
    return pd.DataFrame({"price": price, "wait": wait, "kitchen": kitchen, "rating": rating})


def make_groups(n: int = 600, n_groups: int = 30, random_state: int = 0) -> pd.DataFrame:
    """Simulate scores of pupils in schools of different sizes.

    Parameters
    ----------
    n : int, default 600
        Pupils.
    n_groups : int, default 30
        Schools; each has at least one pupil.
    random_state : int, default 0
        Seed.

    Returns
    -------
    pandas.DataFrame
        One row a pupil:

        ``school``
            text, ``school_00`` and so on;
        ``hours``
            of study in a week, 0 to 20;
        ``before``
            the score of the year before, about standard normal;
        ``score``
            a curved function of hours and the score before, plus the effect of the school
            (normal, sd 0.8), plus noise of sd 0.5;
        ``school_effect``
            the truth, the same in all rows of a school.

    Examples
    --------
    >>> from pymc_trees.datasets import make_groups
    >>> pupils = make_groups()
    >>> pupils["school"].nunique()
    30
    """
    rng = np.random.default_rng(random_state)
    sizes = rng.dirichlet(np.full(n_groups, 2.0))
    school = np.r_[np.arange(n_groups), rng.choice(n_groups, max(n - n_groups, 0), p=sizes)][:n]
    hours, before = rng.uniform(0, 20, n).round(1), rng.normal(size=n).round(2)
    effect = rng.normal(0, 0.8, n_groups)[school]
    curve = 2 / (1 + np.exp(-(hours - 8) / 2)) + 0.5 * before + 0.3 * before * (hours > 10)
    score = (curve + effect + rng.normal(0, 0.5, n)).round(2)
    names = [f"school_{one:02d}" for one in school]
    columns = {"school": names, "hours": hours, "before": before, "score": score}
    return pd.DataFrame(columns | {"school_effect": effect.round(3)})


def _read(name: str) -> pd.DataFrame:
    with as_file(files("pymc_trees") / "data" / name) as path:
        return pd.read_csv(path)
