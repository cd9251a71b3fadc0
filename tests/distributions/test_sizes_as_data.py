"""A model of other rows, trees or max_nodes compiles no kernel; what is called by name agrees."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba.core import event

import pymc_trees as pmt
from pymc_trees.core.value.fields import Layout, sizes
from pymc_trees.distributions.ops.by_name import read_sizes, sizes_of


class Kernels(event.Listener):
    """Names of this package's functions that numba compiles."""

    def __init__(self):
        self.compiled = []

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").startswith("pymc_trees."):
            self.compiled.append(function.__qualname__)

    def on_end(self, event):
        pass


@pytest.fixture
def kernels():
    listener = Kernels()
    event.register("numba:compile", listener)
    yield listener
    event.unregister("numba:compile", listener)


def evaluated(n, m, max_nodes):
    """Log-probability and function at new rows of a model in its initial point."""
    X = np.random.default_rng(n).random((n, 3))
    new = pt.matrix("new")
    with pm.Model() as model:
        forest = pmt.Forest("trees", X, m=m, max_nodes=max_nodes, leaf=pmt.NormalLeaf(2.0, 1.0))
        f = pm.Deterministic("f", pmt.evaluate(forest, X))
        at_new = pmt.evaluate(forest, new)
        pm.Normal("y", f, 1.0, observed=X[:, 0])
    point = model.initial_point()
    inputs = [*model.value_vars, new]
    function = model.compile_fn(model.replace_rvs_by_values([at_new]), inputs=inputs)
    return model.compile_logp()(point), function, point


def test_other_sizes_compile_no_kernel(kernels):
    for n, m, max_nodes in [(20, 3, 40), (31, 5, 70), (7, 2, 9)]:
        kernels.compiled.clear()
        logp, function, point = evaluated(n, m, max_nodes)
        assert np.isfinite(logp)
        (found,) = function({**point, "new": np.zeros((4, 3))})
        np.testing.assert_allclose(found, np.full(4, 2.0 * m))
    assert kernels.compiled == []


def test_errors_and_invalid_values_are_those_of_the_kernel():
    _, function, point = evaluated(20, 3, 40)
    with pytest.raises(ValueError, match="another number of columns"):
        function({**point, "new": np.zeros((4, 2))})
    with pytest.raises(ValueError, match="infinite values"):
        function({**point, "new": np.full((4, 3), np.inf)})
    broken = point["trees"].copy()
    broken[0, 1] = 0.5
    assert np.isnan(function({"trees": broken, "new": np.zeros((4, 3))})[0]).all()


def test_sizes_come_back_from_numbers():
    for mixed, timed in [(False, False), (True, False), (False, True)]:
        layout = Layout(3, 50, 2, 20, mixed=mixed, timed=timed)
        assert read_sizes(sizes_of(layout)) == sizes(layout)
