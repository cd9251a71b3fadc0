"""Odd inputs of leaf priors and of `MondrianPrior`."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_trees as pmt
from support.odd.table import Odd


def normal(said, *given):
    """A row about `NormalLeaf`."""
    return Odd(lambda: pmt.NormalLeaf(*given), said)


def gamma(said, **given):
    """A row about `NormalGammaLeaf`."""
    return Odd(lambda: pmt.NormalGammaLeaf(**given), said)


def dirichlet(said, *given):
    """A row about `DirichletLeaf`."""
    return Odd(lambda: pmt.DirichletLeaf(*given), said)


def mondrian(said, *given):
    """A row about `MondrianPrior`."""
    return Odd(lambda: pmt.MondrianPrior(*given), said)


SQUARE = np.ones((4, 2))


def basis(said, given=SQUARE, **settings):
    """A row about `BasisLeaf`."""
    return Odd(lambda: pmt.BasisLeaf(given, **settings), said)


def linear(said, **settings):
    """A row about `LinearLeaf`."""
    return Odd(lambda: pmt.LinearLeaf(**settings), said)


NORMAL = {
    "sd zero": normal(r"NormalLeaf\(sd=0\).*sd must be a positive", 0, 0),
    "sd negative": normal(r"sd must be a positive", 0, -1.0),
    "sd NaN": normal(r"sd must be a positive", 0, np.nan),
    "sd infinite": normal(r"sd must be a positive", 0, np.inf),
    "sd None": normal(r"sd must be a positive", 0, None),
    "sd text": normal(r"sd must be a positive", 0, "a"),
    "sd texts": normal(r"sd", 0, ["a", "b"]),
    "sd bool": normal(r"sd=True.*number", 0, True),
    "sd empty": normal(r"sd", 0, []),
    "sd a dict": normal(r"sd", 0, {}),
    "sd a matrix": normal(r"sd", 0, np.ones((2, 2))),
    "sd with a zero": normal(r"sd", 0, [1.0, 0.0]),
    "sd beyond squares": normal(r"sd=1e-300", 0, 1e-300),
    "mean NaN": normal(r"mean must be a finite", np.nan, 1),
    "mean infinite": normal(r"mean must be a finite", -np.inf, 1),
    "mean text": normal(r"mean must be a finite", "a", 1),
    "mean None": normal(r"mean must be a finite", None, 1),
    "mean bool": normal(r"mean=False.*number", False, 1),
    "mean complex": normal(r"mean", 1j, 1),
    "mean empty": normal(r"mean", [], 1),
    "lists": normal(None, [0, 1], [1, 2]),
    "numbers of numpy": normal(None, np.float32(0), np.int64(1)),
    "tensor": normal(None, 0, pt.constant(1.0)),
}

BASIS = {
    "basis one column": basis(r"basis has shape \(4,\): give a matrix", np.ones(4)),
    "basis no column": basis(r"basis has shape \(4, 0\)", np.ones((4, 0))),
    "basis None": basis(r"basis has shape \(\): give a matrix", None),
    "basis text": basis(r"basis must hold numbers only", [["a"], ["b"]]),
    "basis NaN": basis(r"basis holds missing", [[np.nan], [1.0]]),
    "basis infinite": basis(r"basis holds missing", [[np.inf], [1.0]]),
    "mean NaN": basis(r"mean=nan.*give a number, 2 numbers", mean=np.nan),
    "mean text": basis(r"mean='a'.*give a number", mean="a"),
    "mean three": basis(r"mean=.*2 numbers", mean=[1.0, 2.0, 3.0]),
    "mean a matrix": basis(r"mean=.*2 numbers", mean=np.eye(2)),
    "sd zero": basis(r"sd=0.0.*Standard deviations must be positive", sd=0.0),
    "sd bool": basis(r"sd=True", sd=True),
    "sd three": basis(r"sd=.*covariance", sd=[1.0, 2.0, 3.0]),
    "sd no covariance": basis(
        r"a covariance matrix positive definite", sd=[[1.0, 2.0], [2.0, 1.0]]
    ),
    "sd not symmetric": basis(
        r"a covariance matrix positive definite", sd=[[1.0, 0.5], [0.0, 1.0]]
    ),
    "sd None": basis(r"sd=None", sd=None),
    "lists": basis(None, [[1.0], [2.0]], mean=[1.0], sd=[2.0]),
    "tensor": basis(None, mean=pt.constant([1.0, 2.0]), sd=pt.constant(2.0)),
}

LINEAR = {
    "mean text": linear(r"mean='a'.*give a number", mean="a"),
    "mean None": linear(r"mean=None.*give a number", mean=None),
    "mean NaN": linear(r"mean=nan.*give a number", mean=np.nan),
    "sd zero": linear(r"sd must be a positive number", sd=0.0),
    "sd bool": linear(r"sd must be a positive number", sd=True),
    "sd huge": linear(r"the square of sd overflows or underflows", sd=1e200),
    "slope_sd negative": linear(r"slope_sd must be a positive number", slope_sd=-1.0),
    "slope_sd text": linear(r"slope_sd must be a positive number", slope_sd="a"),
    "columns a word": Odd(
        lambda: pmt.Forest.dist(np.eye(4), m=2, leaf=pmt.LinearLeaf(columns="parents")),
        r"columns='parents': X has no column 'parents'.*\"parent\"",
    ),
    "p_constant one": linear(r"p_constant=1.*at least 0 and below 1", p_constant=1),
    "p_constant NaN": linear(r"p_constant=nan", p_constant=np.nan),
    "p_constant text": linear(r"p_constant='half'", p_constant="half"),
    "extrapolate a number": linear(r"extrapolate=1: must be True or False", extrapolate=1),
    "tensor": linear(None, mean=pt.constant(1.0), sd=pt.constant(2.0)),
}

GAMMA = {
    "a zero": gamma(r"NormalGammaLeaf\(a=0\).*positive", a=0),
    "a text": gamma(r"a='x'.*positive", a="x"),
    "a bool": gamma(r"a=True", a=True),
    "a vector": gamma(r"a=.*positive", a=[1.0]),
    "nu negative": gamma(r"nu must be a positive", nu=-1),
    "nu NaN": gamma(r"nu must be a positive", nu=np.nan),
    "lam infinite": gamma(r"lam must be a positive", lam=np.inf),
    "lam None": gamma(r"lam must be a positive", lam=None),
}

DIRICHLET = {
    "alpha zero": dirichlet(r"alpha must be a positive", 0.0, 2),
    "alpha NaN": dirichlet(r"alpha must be a positive", np.nan, 2),
    "alpha per class": dirichlet(r"alpha", [1.0, 1.0], 2),
    "alpha bool": dirichlet(r"alpha=True", True, 2),
    "alpha text": dirichlet(r"alpha", "1", 2),
    "one class": dirichlet(r"n_classes must be a whole number of at least 2", 1.0, 1),
    "half a class": dirichlet(r"n_classes", 1.0, 2.5),
    "classes bool": dirichlet(r"n_classes", 1.0, True),
    "classes None": dirichlet(r"n_classes", 1.0, None),
    "classes text": dirichlet(r"n_classes", 1.0, "two"),
}


def _random_vector():
    with pm.Model():
        return pmt.MondrianPrior(pm.Gamma("lifetime", 1, 1, shape=2))


MONDRIAN = {
    "zero": mondrian(r"lifetime=0.*positive", 0),
    "negative": mondrian(r"lifetime=-1.*positive", -1.0),
    "infinite": mondrian(r"lifetime=inf.*finite", np.inf),
    "NaN": mondrian(r"lifetime=nan", np.nan),
    "text": mondrian(r"lifetime='x'.*number", "x"),
    "None": mondrian(r"lifetime=None.*number", None),
    "bool": mondrian(r"lifetime=True.*number", True),
    "vector": mondrian(r"lifetime=.*number", np.ones(2)),
    "random vector": Odd(_random_vector, r"lifetime must be a scalar"),
}
