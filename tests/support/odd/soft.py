"""Odd inputs of soft trees: `SoftDecisionTree`, `DCCTree`, `RJHMC`, `sample_dcc`."""

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from support.odd.table import FRAME, LEAF, Odd, X, Y, declare, finite, with_entry


def soft(refused=None, holds=finite, **given):
    """A row about `SoftDecisionTree`."""
    return Odd(lambda: declare(pmt.SoftDecisionTree, **given), refused, holds)


def _random_alpha():
    with pm.Model():
        return pmt.SoftDecisionTree("mu", X, Y, alpha=pm.Beta("alpha", 1, 1))


def _failed():
    with pm.Model() as model:
        try:
            pmt.SoftDecisionTree("mu", X, Y, h=0.1)
        except TypeError:
            pass
        left = list(model.named_vars)
        pmt.SoftDecisionTree("mu", X, Y)
    return left


SOFT = {
    "X NaN": soft("X", X=with_entry(X, np.nan)),
    "X infinite": soft("X", X=with_entry(X, np.inf)),
    "X masked": soft("X", X=np.ma.masked_array(X, X > 0.9)),
    "X text": soft("X", X=FRAME),
    "X vector": soft("X", X=X[:, 0]),
    "X None": soft("X", X=None),
    "X no rows": soft("X", X=X[:0], Y=None),
    "X no columns": soft("X", X=X[:, :0]),
    "X too wide": soft("X", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
    "X a numeric frame": soft(X=pd.DataFrame(X, columns=["a", "b"])),
    "X constant": soft(X=np.ones((20, 2))),
    "Y short": soft("Y", Y=Y[:-1]),
    "Y text": soft("Y", Y=["a"] * 20),
    "Y negative classes": soft("Y", Y=np.arange(20) - 1),
    "Y one class": soft("Y", Y=np.zeros(20, dtype=int)),
    "Y dates": soft("Y", Y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "Y complex": soft("Y", Y=Y + 1j),
    "Y masked": soft("Y", Y=np.ma.masked_array(Y, Y > 2)),
    "Y classes": soft(Y=(X[:, 0] > 0.5).astype(int)),
    "alpha one": soft("alpha", alpha=1),
    "alpha bool": soft(TypeError("alpha"), alpha=True),
    "alpha text": soft(TypeError("alpha"), alpha="x"),
    "alpha random": Odd(_random_alpha, TypeError("alpha")),
    "beta negative": soft("beta", beta=-1),
    "leaf normal-gamma": soft("leaf", leaf=pmt.NormalGammaLeaf()),
    "leaf text": soft(TypeError("leaf"), leaf="n"),
    "leaf class": soft(TypeError("leaf"), leaf=pmt.NormalLeaf),
    "h one number": soft(TypeError("h"), h=0.1),
    "h three numbers": soft(TypeError("h"), h=(0.1, 0.05, 0.01)),
    "h zero": soft("h", h=(0.1, 0.0)),
    "h rising": soft("h", h=(0.01, 0.1)),
    "h NaN": soft(TypeError("h"), h=(np.nan, 0.1)),
    "h text": soft(TypeError("h"), h="ab"),
    "h None": soft(TypeError("h"), h=None),
    "direction text": soft("direction", direction="x"),
    "direction None": soft("direction", direction=None),
    "direction index": soft(direction="index"),
    "max_nodes zero": soft("max_nodes", max_nodes=0),
    "max_nodes fraction": soft("max_nodes", max_nodes=2.5),
    "max_nodes one": soft(max_nodes=1, holds=lambda mu: mu.ndim == 1),
    "m": soft(TypeError("m"), m=3),
    "dims unknown": soft("Dimension", dims="a"),
    "outside a model": Odd(lambda: pmt.SoftDecisionTree("mu", X, Y), TypeError("model")),
    "a failed declaration leaves nothing": Odd(_failed, holds=lambda left: left == []),
}


def soft_model():
    """A soft tree and a likelihood."""
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree("mu", X, Y, leaf=LEAF)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
    return model


def on_soft(make, refused):
    """A row about something made inside the small model."""

    def call():
        with soft_model():
            return make()

    return Odd(call, refused)


def hard(make, refused):
    """A row about something made in a model of hard trees."""

    def call():
        with pm.Model():
            pmt.BART("mu", X, Y, m=2, max_nodes=80)
            return make()

    return Odd(call, refused)


def _discrete(make):
    with soft_model():
        pm.Poisson("count", 3)
        return make()


SETTINGS = {
    "chains zero": ({"chains": 0}, "chains"),
    "chains bool": ({"chains": True}, "chains"),
    "local_draws one": ({"local_draws": 1}, "local_draws"),
    "local_draws text": ({"local_draws": "many"}, "local_draws"),
    "tune few": ({"tune": 19}, "tune"),
    "tune fraction": ({"tune": 20.5}, "tune"),
    "importance_draws zero": ({"importance_draws": 0}, "importance_draws"),
    "initial_trees zero": ({"initial_trees": 0}, "initial_trees"),
    "threshold negative": ({"threshold": -1}, "threshold"),
    "max_active zero": ({"max_active": 0}, "max_active"),
    "exploration large": ({"exploration": 1.5}, "exploration"),
    "exploration NaN": ({"exploration": np.nan}, "exploration"),
    "exploration bool": ({"exploration": True}, "exploration"),
    "optimism zero": ({"optimism": 0.0}, "optimism"),
    "screening negative": ({"screening": -0.1}, "screening"),
}
DCC_TREE = {
    name: on_soft(lambda g=given: pmt.DCCTree(**g), refused)
    for name, (given, refused) in SETTINGS.items()
} | {
    "no soft tree": hard(pmt.DCCTree, "model"),
    "no model": Odd(pmt.DCCTree, TypeError("model")),
    "a discrete variable": Odd(lambda: _discrete(pmt.DCCTree), NotImplementedError("'count'")),
    "Metropolis on the tree": on_soft(lambda: pm.Metropolis(), NotImplementedError("soft")),
    "NUTS on the tree": on_soft(lambda: pm.NUTS(), NotImplementedError("soft")),
    "find_MAP": on_soft(lambda: pm.find_MAP(progressbar=False), NotImplementedError("find_MAP")),
}
RJHMC = {
    name: on_soft(lambda g=given: pmt.RJHMC(**g), refused)
    for name, (given, refused) in {
        "variant text": ({"variant": "X"}, "variant"),
        "variant number": ({"variant": 1}, "variant"),
        "variant of other trees": ({"variant": "DF"}, "variant"),
        "grow zero": ({"grow": 0.0}, "grow"),
        "grow NaN": ({"grow": np.nan}, "grow"),
        "grow bool": ({"grow": True}, "grow"),
        "prune large": ({"prune": 0.9}, "prune"),
        "prune text": ({"prune": "x"}, "prune"),
        "bridge negative": ({"bridge": -1}, "bridge"),
        "bridge fraction": ({"bridge": 1.5}, "bridge"),
        "local_draws zero": ({"local_draws": 0}, "local_draws"),
        "warm_up few": ({"warm_up": 19}, "warm_up"),
        "warm_up None": ({"warm_up": None}, "warm_up"),
        "vars of no model": ({"vars": [3]}, "vars"),
        "vars unknown": ({"vars": ["nu"]}, "vars"),
        "vars empty": ({"vars": []}, "free"),
    }.items()
} | {
    "no soft tree": hard(pmt.RJHMC, "model"),
    "no model": Odd(pmt.RJHMC, TypeError("model")),
    "a discrete variable": Odd(lambda: _discrete(lambda: pmt.RJHMC(["mu", "count"])), "discrete"),
}
SAMPLE_DCC = {
    name: on_soft(lambda g=given: pmt.sample_dcc(2, 5, progressbar=False, **g), refused)
    for name, (given, refused) in SETTINGS.items()
} | {
    "iterations zero": on_soft(lambda: pmt.sample_dcc(0), "iterations"),
    "iterations None": on_soft(lambda: pmt.sample_dcc(None), "iterations"),
    "draws zero": on_soft(lambda: pmt.sample_dcc(2, 0), "draws"),
    "draws text": on_soft(lambda: pmt.sample_dcc(2, "all"), "draws"),
    "cores zero": on_soft(lambda: pmt.sample_dcc(2, 5, cores=0), "cores"),
    "random_seed text": on_soft(
        lambda: pmt.sample_dcc(2, 5, random_seed="x"), TypeError("random_seed")
    ),
    "no soft tree": hard(pmt.sample_dcc, "model"),
    "no model": Odd(pmt.sample_dcc, TypeError("model")),
    "a discrete variable": Odd(lambda: _discrete(pmt.sample_dcc), NotImplementedError("'count'")),
}
