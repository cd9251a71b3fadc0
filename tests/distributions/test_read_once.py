"""A declaration reads X once, whatever X is and however many forests are grown on it."""

from collections import Counter

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.distributions.data import table as module
from pymc_trees.distributions.data.table import read

N = 20
X = np.random.default_rng(0).random((N, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))
LEVELS = FRAME.assign(d=np.array(["u", "v"])[np.arange(N) % 2])
READERS = ("matrix_of_reals", "columns_of", "_read_variable")
"""Functions of `data.table` that look at the cells of what they are given."""


@pytest.fixture
def readings(monkeypatch):
    """Names of the readers, as often as they are called."""
    seen: Counter = Counter()

    def counted(name, reader):
        def call(*args):
            seen[name] += 1
            return reader(*args)

        return call

    for name in READERS:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    return seen


SOURCES = {
    "array": lambda: X,
    "list": lambda: X.tolist(),
    "frame": lambda: FRAME,
    "levels": lambda: LEVELS,
    "pm.Data": lambda: pm.Data("X", X),
    "pmt.Data": lambda: pmt.Data("X", LEVELS),
    "expression": lambda: pm.Data("X", X) * 2.0,
}
LEAF = pmt.NormalLeaf(0.0, 1.0)
FRONT_ENDS = {
    "BART": lambda X: pmt.BART("f", X, leaf=LEAF, m=3),
    "outputs": lambda X: pmt.BART("f", X, leaf=LEAF, m=3, shape=(2, N)),
    "grid": lambda X: pmt.BART("f", X, leaf=LEAF, m=3, n_cuts=5, split_prior=np.ones(3)),
    "DecisionTree": lambda X: pmt.DecisionTree("f", X, leaf=LEAF),
    "SoftBART": lambda X: pmt.SoftBART("f", X, leaf=LEAF, m=3),
    "SoftDecisionTree": lambda X: pmt.SoftDecisionTree("f", X),
    "Forest": lambda X: pmt.Forest("f", X, leaf=LEAF, m=3),
}
TAKES_LEVELS = ("BART", "outputs", "DecisionTree", "Forest")
CASES = [
    (front_end, source)
    for front_end in FRONT_ENDS
    for source in SOURCES
    if front_end in TAKES_LEVELS or source not in ("levels", "pmt.Data")
]


@pytest.mark.parametrize(("front_end", "source"), CASES)
def test_inputs_are_read_once(readings, front_end, source):
    with pm.Model():
        inputs = SOURCES[source]()
        readings.clear()
        FRONT_ENDS[front_end](inputs)
    assert readings.total() == 1, dict(readings)


def test_a_table_is_taken_as_it_is(readings):
    table = read(LEVELS)
    readings.clear()
    assert read(table) is table
    with pm.Model() as model:
        pmt.BART("f", table, leaf=LEAF, m=3)
    assert readings.total() == 0
    assert model["f_X"].get_value(borrow=True) is table.values
