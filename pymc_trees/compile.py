"""Compile the kernels of the usual models ahead: ``python -m pymc_trees.compile``.

For container images, continuous integration, classrooms and clusters: a process that later samples
such a model compiles no kernel. Code goes to the folder named by `NUMBA_CACHE_DIR`, or next to the
package. The command samples a tiny model of each kind, because code depends on the types of arrays
and not on their sizes. It does not compile graphs of PyTensor, which belong to one model, your own
likelihoods and leaves, sums in threads (200,000 rows or more), and labels of forests with more than
65,536 nodes.
"""

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
import pandas as pd
import pymc as pm
from numba.core import event

import pymc_trees as pmt

ROWS = 40
_QUICK = {
    "draws": 2,
    "tune": 2,
    "chains": 1,
    "cores": 1,
    "progressbar": False,
    "quiet": True,
    "compute_convergence_checks": False,
}
_rng = np.random.default_rng(1)
X = _rng.random((ROWS, 3))
Y = X[:, 0] + 0.1 * _rng.normal(size=ROWS)
COUNTS = _rng.poisson(2.0, ROWS)
LEVELS = pd.DataFrame(np.where(_rng.random(X.shape) < 0.1, np.nan, X), columns=["a", "b", "c"])
LEVELS["level"] = pd.Categorical(np.array(["u", "v", "w"])[np.arange(ROWS) % 3])


def _fit(inputs=X, likelihood=None, **settings):
    """Sample a forest with a likelihood, and predict at new rows."""
    with pm.Model() as model:
        data = pmt.Data("X", inputs)
        mu = pmt.BART("mu", data, Y, m=3, **settings)
        (likelihood or _normal)(mu)
        idata = pm.sample(**_QUICK)
    pmt.predictions(idata, model, inputs[:5], progressbar=False)
    return idata, model


def _normal(mu):
    pm.Normal("y", mu, pm.HalfNormal("sigma", 1.0), observed=Y, shape=mu.shape)


def _poisson(mu):
    pm.Poisson("y", pm.math.exp(mu), observed=COUNTS, shape=mu.shape)


def _logistic(mu):
    pm.Bernoulli("y", logit_p=mu, observed=COUNTS > 2, shape=mu.shape)


def _probit(mu):
    pm.Bernoulli("y", p=pm.math.invprobit(mu), observed=COUNTS > 2, shape=mu.shape)


def _student(mu):
    pm.StudentT("y", nu=4.0, mu=mu, sigma=0.3, observed=Y, shape=mu.shape)


def _questions():
    """Compute Shapley values, importance and dependence of the usual forest."""
    idata, model = _fit()
    pmt.shap_values(idata, model, X[:3])
    pmt.sobol_indices(idata, model)
    pmt.partial_dependence(idata, model, [0])
    pmt.get_variable_inclusion(idata, model)


def _tree():
    with pm.Model():
        mu = pmt.DecisionTree("mu", X, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.3, observed=Y)
        pm.sample(**_QUICK)


def _soft():
    with pm.Model():
        mu = pmt.SoftBART("mu", X, Y, m=3)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1.0), observed=Y)
        pm.sample(**_QUICK)


def _mondrian():
    pmt.MondrianForestRegressor(n_estimators=2).fit(X, Y).predict(X)
    classifier = pmt.MondrianForestClassifier(n_estimators=2).fit(X, COUNTS > 2)
    classifier.partial_fit(X, COUNTS > 2).predict_proba(X)


KINDS: dict[str, Callable[[], object]] = {
    "normal": _fit,
    "poisson": lambda: _fit(likelihood=_poisson, leaf=pmt.NormalLeaf(0.0, 0.5)),
    "logistic": lambda: _fit(likelihood=_logistic, leaf=pmt.NormalLeaf(0.0, 0.5)),
    "probit": lambda: _fit(likelihood=_probit, leaf=pmt.NormalLeaf(0.0, 0.5)),
    "student": lambda: _fit(likelihood=_student),
    "grid": lambda: _fit(n_cuts=20),
    "levels": lambda: _fit(LEVELS),
    "linear": lambda: _fit(leaf=pmt.LinearLeaf()),
    "tree": _tree,
    "soft": _soft,
    "questions": _questions,
    "mondrian": _mondrian,
}
"""Function that runs the models of each kind."""


class _Counter(event.Listener):
    """Counts the kernels of the package that are compiled, not loaded."""

    def __init__(self) -> None:
        self.compiled = 0

    def on_start(self, event):
        """Count a kernel."""
        module = event.data["dispatcher"].py_func.__module__ or ""
        self.compiled += module.startswith("pymc_trees.core.")

    def on_end(self, event):
        """Do nothing."""


def compile_ahead(kinds: list[str]) -> dict[str, tuple[int, float]]:
    """Compile the kernels of some kinds of models.

    Parameters
    ----------
    kinds : list of str
        Of `KINDS`.

    Returns
    -------
    dict
        For each kind, the number of kernels compiled and the seconds that it took.
    """
    counter, counts = _Counter(), {}
    event.register("numba:compile", counter)
    try:
        for kind in kinds:
            before, start = counter.compiled, perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about two draws
                KINDS[kind]()
            counts[kind] = (counter.compiled - before, perf_counter() - start)
    finally:
        event.unregister("numba:compile", counter)
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Compile, and print what was compiled."""
    parser = argparse.ArgumentParser(
        prog="python -m pymc_trees.compile", description=__doc__.split("\n")[0]
    )
    kinds_help = f"all, or some of: {', '.join(KINDS)}"
    parser.add_argument("kinds", nargs="*", metavar="kind", help=kinds_help)
    options = parser.parse_args(arguments)
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(KINDS)}.")
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder is not None and not _can_be_written(folder):
        parser.error(
            f"{folder}: this folder, named by NUMBA_CACHE_DIR, cannot be written. Name another one."
        )
    logging.getLogger("pymc").setLevel(logging.WARNING)
    total, start = 0, perf_counter()
    for kind in options.kinds or KINDS:
        [(compiled, seconds)] = compile_ahead([kind]).values()
        total += compiled
        print(f"{kind:10s} {compiled:4d} kernels compiled, {seconds:5.1f} s", flush=True)
    destination = folder or "the folders of the package, or numba's folder of the user"
    print(f"{total} kernels in {perf_counter() - start:.0f} s, stored in {destination}.")
    return 0


def _can_be_written(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


if __name__ == "__main__":
    sys.exit(main())
