"""Functions of rows with random columns: trees of draws at chosen cells, and answers."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace

import pymc_trees as pmt

QUIET = {"progressbar": False}


def evaluated(case, forest="f_forest"):
    """The outputs of a draw of trees at rows, and all draws."""
    tree, matrix = case.model[forest], pt.matrix("rows")
    value = tree.type("value")
    at = clone_replace(pmt.evaluate(tree, matrix), {tree: value})
    values = case.idata.posterior[forest].stack(d=("chain", "draw")).transpose("d", ...)
    return pytensor.function([value, matrix], at, mode="FAST_COMPILE"), values.to_numpy()


def at_points(case, rows, *columns):
    """f in each draw, (draws, rows, points), with the columns held at points."""
    function, values = evaluated(case)
    points = np.stack(np.meshgrid(*columns, indexing="ij"), -1).reshape(-1, len(columns))
    table = [np.column_stack([np.tile(row, (len(points), 1)), points]) for row in rows]
    whole = np.concatenate(table)
    return np.array([function(v, whole).reshape(len(rows), len(points)) for v in values])


def between(cuts):
    return np.concatenate([[cuts[0] - 1], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1]])


def draws_of(case, *names):
    posterior = case.idata.posterior.to_dataset().stack(d=("chain", "draw"))
    return [posterior[name].to_numpy()[:, None] for name in names]


def found(case, data=None, name="prediction", call=pmt.predictions, **asked):
    """(draws, ...) what it returns."""
    made = call(case.idata, case.model, data=data, **{"var_name": "f"} | QUIET | asked)[name]
    return made.stack(d=("chain", "draw")).transpose("d", ...).to_numpy()


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)
