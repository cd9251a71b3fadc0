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
