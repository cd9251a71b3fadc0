"""Ops in a likelihood that PyTensor has no derivative of, no code for, or that raise an error."""

import sys

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise

import pymc_trees as pmt
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import read_graph
from pymc_trees.targets.rowwise import RowwiseTarget

pytestmark = pytest.mark.filterwarnings("ignore:The likelihood of a forest uses")
N = 4
X = np.arange(N).reshape(-1, 1)


class NoCode(UnaryScalarOp):
    """Can be differentiated to, but not computed."""

    nfunc_spec = None


class Sinh(UnaryScalarOp):
    nfunc_spec = ("numpy.sinh", 1, 1)

    def impl(self, x):
        return np.sinh(x)

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0] * NoCode(upgrade_to_float, name="none")(inputs[0])]


class Cosh(UnaryScalarOp):
    nfunc_spec = ("numpy.cosh", 1, 1)

    def impl(self, x):
        return np.cosh(x)

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0] * Sinh(upgrade_to_float, name="sinh")(inputs[0])]


cosh = Elemwise(Cosh(upgrade_to_float, name="cosh"))


class NotBelowZero(Op):
    """A black box that raises an error for some of its inputs."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        if inputs[0].min() < 0:
            raise ArithmeticError("below zero")
        outputs[0][0] = inputs[0].copy()


def read(likelihood, reader=read_target):
    with pm.Model() as model:
        likelihood(pmt.BART("f", X, m=1, leaf=pmt.NormalLeaf(1.0, 0.1)))
    target = reader(model, model["f_forest"])
    return target, target.at(model.initial_point())[1]


def call(function, fit, seen, shape):
    result = np.empty(shape)
    rows = np.arange(len(fit))
    call_native(function.address, len(fit), rows, fit, seen.table, seen.data, result)
    return result


def test_a_second_derivative_without_code_row_by_row():
    target, seen = read(lambda f: pm.Potential("y", -cosh(f)))
    assert target.kind == "rowwise"
    fit = np.linspace(-1, 1, N).reshape(N, 1)
    np.testing.assert_allclose(call(target.value, fit, seen, (N, 1)), -np.cosh(fit))
    slopes = np.concatenate([-np.sinh(fit), np.full((N, 1), np.nan)], axis=1)  # differences
    np.testing.assert_allclose(call(target.slopes, fit, seen, (N, 2)), slopes)


def test_a_second_derivative_without_code_as_a_whole():
    target, seen = read(lambda f: pm.Potential("y", -cosh(f.sum())))
    assert target.kind == "joint"
    fit = np.linspace(-1, 2, N).reshape(N, 1)
    found = call(target.gradient, fit, seen, (N, 1))
    np.testing.assert_allclose(found, np.full((N, 1), -np.sinh(fit.sum())))
    both = np.concatenate([fit, np.ones((N, 1))])
    assert np.isnan(call(target.product, both, seen, (N, 1))).all()  # differences in its place


def test_an_op_that_raises_an_error(monkeypatch):
    """The error is shown, and one of ours follows; Python itself goes on."""
    target, seen = read(lambda f: pm.Potential("y", -NotBelowZero()(f).sum()))
    fit = np.ones((N, 1))
    assert call(target.value, fit, seen, (1, 1)) == -N
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="could not be evaluated.*reported above"):
            call(target.value, -fit, seen, (1, 1))
    assert [str(one.exc_value) for one in shown] == ["below zero"] * 3
    assert call(target.value, fit, seen, (1, 1)) == -N


def test_one_row_as_a_softmax_reference():
    """The zeros of a reference category reach compiled code with an entry for each row."""
    y = np.arange(N) % 2
    target, seen = read(
        lambda f: pm.Categorical("y", logit_p=pt.stack([f, pt.zeros(N)], axis=1), observed=y),
        lambda model, forest: RowwiseTarget(read_graph(model, forest)),
    )
    fit = np.linspace(-1, 1, N).reshape(N, 1)
    p = 1 / (1 + np.exp(-fit[:, 0]))
    np.testing.assert_allclose(
        call(target.value, fit, seen, (N, 1))[:, 0], np.log(np.where(y == 0, p, 1 - p))
    )
