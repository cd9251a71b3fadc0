"""Odd inputs of leaf priors and of `MondrianPrior`."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_trees as pmt
from support.odd.table import Odd


def normal(refused, *given):
    """A row about `NormalLeaf`."""
    return Odd(lambda: pmt.NormalLeaf(*given), refused)


def gamma(refused, **given):
    """A row about `NormalGammaLeaf`."""
    return Odd(lambda: pmt.NormalGammaLeaf(**given), refused)


def dirichlet(refused, *given):
    """A row about `DirichletLeaf`."""
    return Odd(lambda: pmt.DirichletLeaf(*given), refused)


def mondrian(refused, *given):
    """A row about `MondrianPrior`."""
    return Odd(lambda: pmt.MondrianPrior(*given), refused)


SQUARE = np.ones((4, 2))


def basis(refused, given=SQUARE, **settings):
    """A row about `BasisLeaf`."""
    return Odd(lambda: pmt.BasisLeaf(given, **settings), refused)


def linear(refused, **settings):
    """A row about `LinearLeaf`."""
    return Odd(lambda: pmt.LinearLeaf(**settings), refused)


NORMAL = {
    "sd zero": normal("sd", 0, 0),
    "sd negative": normal("sd", 0, -1.0),
    "sd NaN": normal("sd", 0, np.nan),
    "sd infinite": normal("sd", 0, np.inf),
    "sd None": normal("sd", 0, None),
    "sd text": normal("sd", 0, "a"),
    "sd texts": normal("sd", 0, ["a", "b"]),
    "sd bool": normal("sd", 0, True),
    "sd empty": normal("sd", 0, []),
    "sd a dict": normal("sd", 0, {}),
    "sd a matrix": normal("sd", 0, np.ones((2, 2))),
    "sd with a zero": normal("sd", 0, [1.0, 0.0]),
    "sd beyond squares": normal("sd", 0, 1e-300),
    "mean NaN": normal("mean", np.nan, 1),
    "mean infinite": normal("mean", -np.inf, 1),
    "mean text": normal("mean", "a", 1),
    "mean None": normal("mean", None, 1),
    "mean bool": normal("mean", False, 1),
    "mean complex": normal("mean", 1j, 1),
    "mean empty": normal("mean", [], 1),
    "lists": normal(None, [0, 1], [1, 2]),
    "numbers of numpy": normal(None, np.float32(0), np.int64(1)),
    "tensor": normal(None, 0, pt.constant(1.0)),
}

BASIS = {
    "basis one column": basis("basis", np.ones(4)),
    "basis no column": basis("basis", np.ones((4, 0))),
    "basis None": basis("basis", None),
    "basis text": basis(TypeError("basis"), [["a"], ["b"]]),
    "basis NaN": basis("basis", [[np.nan], [1.0]]),
    "basis infinite": basis("basis", [[np.inf], [1.0]]),
    "mean NaN": basis("mean", mean=np.nan),
    "mean text": basis(TypeError("mean"), mean="a"),
    "mean three": basis("mean", mean=[1.0, 2.0, 3.0]),
    "mean a matrix": basis("mean", mean=np.eye(2)),
    "sd zero": basis("sd", sd=0.0),
    "sd bool": basis("sd", sd=True),
    "sd three": basis("sd", sd=[1.0, 2.0, 3.0]),
    "sd no covariance": basis("sd", sd=[[1.0, 2.0], [2.0, 1.0]]),
    "sd not symmetric": basis("sd", sd=[[1.0, 0.5], [0.0, 1.0]]),
    "sd None": basis("sd", sd=None),
    "lists": basis(None, [[1.0], [2.0]], mean=[1.0], sd=[2.0]),
    "tensor": basis(None, mean=pt.constant([1.0, 2.0]), sd=pt.constant(2.0)),
}

LINEAR = {
    "mean text": linear("mean", mean="a"),
    "mean None": linear("mean", mean=None),
    "mean NaN": linear("mean", mean=np.nan),
    "sd zero": linear("sd", sd=0.0),
    "sd bool": linear("sd", sd=True),
    "sd huge": linear("sd", sd=1e200),
    "slope_sd negative": linear("slope_sd", slope_sd=-1.0),
    "slope_sd text": linear("slope_sd", slope_sd="a"),
    "columns a word": Odd(
        lambda: pmt.Forest.dist(np.eye(4), m=2, leaf=pmt.LinearLeaf(columns="parents")),
        "columns",
    ),
    "p_constant one": linear("p_constant", p_constant=1),
    "p_constant NaN": linear("p_constant", p_constant=np.nan),
    "p_constant text": linear("p_constant", p_constant="half"),
    "extrapolate a number": linear(TypeError("extrapolate"), extrapolate=1),
    "tensor": linear(None, mean=pt.constant(1.0), sd=pt.constant(2.0)),
}

GAMMA = {
    "a zero": gamma("a", a=0),
    "a text": gamma("a", a="x"),
    "a bool": gamma("a", a=True),
    "a vector": gamma("a", a=[1.0]),
    "nu negative": gamma("nu", nu=-1),
    "nu NaN": gamma("nu", nu=np.nan),
    "lam infinite": gamma("lam", lam=np.inf),
    "lam None": gamma("lam", lam=None),
}

DIRICHLET = {
    "alpha zero": dirichlet("alpha", 0.0, 2),
    "alpha NaN": dirichlet("alpha", np.nan, 2),
    "alpha per class": dirichlet("alpha", [1.0, 1.0], 2),
    "alpha bool": dirichlet("alpha", True, 2),
    "alpha text": dirichlet("alpha", "1", 2),
    "one class": dirichlet("n_classes", 1.0, 1),
    "half a class": dirichlet("n_classes", 1.0, 2.5),
    "classes bool": dirichlet("n_classes", 1.0, True),
    "classes None": dirichlet("n_classes", 1.0, None),
    "classes text": dirichlet("n_classes", 1.0, "two"),
}


def _random_vector():
    with pm.Model():
        return pmt.MondrianPrior(pm.Gamma("lifetime", 1, 1, shape=2))


MONDRIAN = {
    "zero": mondrian("lifetime", 0),
    "negative": mondrian("lifetime", -1.0),
    "infinite": mondrian("lifetime", np.inf),
    "NaN": mondrian("lifetime", np.nan),
    "text": mondrian(TypeError("lifetime"), "x"),
    "None": mondrian(TypeError("lifetime"), None),
    "bool": mondrian(TypeError("lifetime"), True),
    "vector": mondrian(TypeError("lifetime"), np.ones(2)),
    "random vector": Odd(_random_vector, TypeError("lifetime")),
}
