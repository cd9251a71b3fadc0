"""Columns that are split more often than by chance: `select_variables`."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import joblib
import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.inclusion import get_variable_inclusion
from pymc_trees.processes import make_parallel, run_tasks
from pymc_trees.progress import track

THRESHOLDS = ("local", "global_max", "global_se")
FEWEST = 2
"""Permutations that a spread can be read from."""
OPTIONS = {"chains": 1, "cores": 1, "compute_convergence_checks": False}


def select_variables(
    declare: Callable[[Any], pm.Model],
    y,
    *,
    n_permutations: int = 100,
    n_replicates: int = 5,
    alpha: float = 0.05,
    forest: str | None = None,
    sample_kwargs: dict[str, Any] | None = None,
    cores: int | None = None,
    random_seed=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Columns that are split more often than under permuted responses (Bleich et al. 2014).

    The model is fitted a few times to the responses and to many permutations of them, which are
    unrelated to X. A column is selected if its share of all splits, averaged over the fits to the
    responses, exceeds a threshold derived from the fits to permutations.

    Parameters
    ----------
    declare : callable
        Takes responses like ``y`` and returns a new `pymc.Model` that observes them. Give its
        forest few trees, about 20, so that columns compete for splits.
    y : array
        Responses; rows along the last axis.
    n_permutations, n_replicates : int, default 100 and 5
        Fits to permuted responses, and to the responses themselves.
    alpha : float, default 0.05
        Level of the thresholds.
    forest : str, optional
        Name of a forest or of its function, if the model has several.
    sample_kwargs : dict, optional
        For `pymc.sample`; by default one chain of 1,000 draws after 1,000 tuning iterations.
    cores : int, optional
        Number of processes. Default: one for each core.
    random_seed : int, sequence of int or numpy.random.Generator, optional
        The result does not depend on the number of processes.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``share`` (feature), the mean of ``replicates`` (replicate, feature); ``null``
        (permutation, feature), shares for permuted responses; ``cutoff`` and ``selected``, true or
        false, (threshold, feature). Thresholds, with q the quantile at 1 - alpha over permutations:

        - "local": q of the column's own shares;
        - "global_max": q of the largest share of any column, the same for all columns;
        - "global_se": m + C s, with mean m and standard deviation s of the column's shares, and the
          smallest C for which a part 1 - alpha of the permutations keeps below in all columns.

        If no column has an effect, alpha is approximately the probability that a given column is
        selected ("local"), or that any column is (the others). An interrupt ends the fits; the
        result then uses the completed ones.

    Raises
    ------
    TypeError
        When ``declare`` is not a function, or does not return a model.
    ValueError
        Numbers that are too small, or a model without a forest.

    References
    ----------
    Bleich, Kapelner, George and Jensen (2014). Variable selection for BART: an application to gene
    regulation. Annals of Applied Statistics 8(3).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> def declare(y):
    ...     with pm.Model() as model:
    ...         mu = pmt.BART("mu", X, y, m=5)
    ...         pm.Normal("y", mu, 0.1, observed=y, shape=mu.shape)
    ...     return model
    >>> found = pmt.select_variables(declare, X[:, 0], n_permutations=5, n_replicates=1, cores=1,
    ...     sample_kwargs={"tune": 20, "draws": 20}, random_seed=1, progressbar=False)
    >>> found["selected"].sel(threshold="local").values.tolist()
    [True, False]
    """
    y, alpha = _check(declare, y, alpha, sample_kwargs or {})
    n_permutations = check_number("n_permutations", n_permutations, FEWEST)
    n_replicates = check_number("n_replicates", n_replicates, 1)
    cores = joblib.cpu_count() if cores is None else check_number("cores", cores, 1)
    rngs = check_seed(random_seed).spawn(n_replicates + n_permutations)
    options = OPTIONS | {"progressbar": False, "quiet": True} | (sample_kwargs or {})
    tasks = (
        joblib.delayed(_fit)(declare, y, number, number >= n_replicates, rng, forest, options)
        for number, rng in enumerate(rngs)
    )
    done, names = _run(tasks, len(rngs), n_replicates, cores, progressbar)
    fits = [
        [done[k] for k in sorted(done) if (k >= n_replicates) is null] for null in (False, True)
    ]
    replicates, null = map(np.array, fits)
    share = replicates.mean(axis=0)
    cutoffs = np.stack(list(thresholds(null, alpha).values()))
    variables = {
        "share": ("feature", share),
        "replicates": (("replicate", "feature"), replicates),
        "null": (("permutation", "feature"), null),
        "cutoff": (("threshold", "feature"), cutoffs),
        "selected": (("threshold", "feature"), share > cutoffs),
    }
    return xr.Dataset(variables, {"feature": names, "threshold": list(THRESHOLDS)})


def thresholds(null: np.ndarray, alpha: float) -> dict[str, np.ndarray]:
    """(p,) thresholds of each kind, from (permutations, p) shares."""
    mean, sd = null.mean(axis=0), null.std(axis=0, ddof=1)
    beyond = np.zeros_like(null)
    np.divide(null - mean, sd, out=beyond, where=sd > 0)
    # The smallest multiplier that covers this share of the permutations is one of theirs.
    multiplier = np.quantile(beyond.max(axis=1), 1 - alpha, method="inverted_cdf")
    highest = np.quantile(null.max(axis=1), 1 - alpha)
    return {
        "local": np.quantile(null, 1 - alpha, axis=0),
        "global_max": np.full_like(mean, highest),
        "global_se": mean + multiplier * sd,
    }


def _fit(declare, y, number, permuted, rng, forest, options) -> tuple[int, list[str], np.ndarray]:
    """Number of a fit, names of the columns, and the mean share of each."""
    if permuted:
        y = y[..., rng.permutation(y.shape[-1])]
    model = declare(y)
    if not isinstance(model, pm.Model):
        raise TypeError(f"declare returned a {type(model).__name__}: it must return a pymc.Model.")
    idata = pm.sample(**options, model=model, random_seed=int(rng.integers(2**31)))
    if idata["posterior"].sizes["draw"] < options.get("draws", 1000):
        raise KeyboardInterrupt  # PyMC has kept it to itself, and the draws made before
    share = get_variable_inclusion(idata, model, forest=forest, progressbar=False)["share"]
    names = [str(name) for name in share["feature"].to_numpy()]
    return number, names, share.mean(SAMPLE).fillna(0.0).to_numpy()


def _run(tasks: Iterator, total: int, n_replicates: int, cores: int, progressbar: bool):
    """Shares by the number of the fit, of all fits or of those before an interrupt; names."""
    done: dict[int, np.ndarray] = {}
    names: list[str] = []
    try:
        results = run_tasks(make_parallel(cores, ordered=False), tasks)
        for number, columns, share in track(results, "Fits", total, progressbar):
            done[number], names = share, columns
    except KeyboardInterrupt:
        null = sum(number >= n_replicates for number in done)
        if null < FEWEST or len(done) == null:
            raise
        warnings.warn(
            f"Interrupted: the result uses {len(done) - null} fits to the responses and {null} to "
            f"permutations instead of {n_replicates} and {total - n_replicates}.",
            stacklevel=3,
        )
    return done, names


def _check(declare, y, alpha, sample_kwargs) -> tuple[np.ndarray, float]:
    if not callable(declare):
        raise TypeError(
            f"declare={declare!r}: must be a function of the responses that returns a pymc.Model."
        )
    if ours := sorted({"model", "random_seed"} & set(sample_kwargs)):
        raise ValueError(
            f"sample_kwargs has {ours}: the model comes from declare, and random_seed is an "
            "argument of select_variables."
        )
    y = np.asarray(y)
    if y.ndim == 0 or y.shape[-1] < 2:
        raise ValueError(f"y has the shape {y.shape}: give the responses of at least two rows.")
    number = isinstance(alpha, int | float | np.number) and not isinstance(alpha, bool)
    if not number or not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r}: must be between 0 and 1.")
    return y, float(alpha)
