"""Odd inputs of soft trees: `SoftDecisionTree`, `DCCTree`, `RJHMC`, `sample_dcc`."""

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from support.odd.table import FRAME, LEAF, Odd, X, Y, declare, finite, with_entry


def soft(said=None, holds=finite, **given):
    """A row about `SoftDecisionTree`."""
    return Odd(lambda: declare(pmt.SoftDecisionTree, **given), said, holds)


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
    "X NaN": soft(r"X holds NaN in columns \d+, .*finite.*impute", X=with_entry(X, np.nan)),
    "X infinite": soft(r"X .*infinite", X=with_entry(X, np.inf)),
    "X masked": soft(r"X .*NaN|mask", X=np.ma.masked_array(X, X > 0.9)),
    "X text": soft(r"X .*'b'.*Encode", X=FRAME),
    "X vector": soft(r"X .*two-dimensional", X=X[:, 0]),
    "X None": soft(r"X ", X=None),
    "X no rows": soft(r"X .*no rows", X=X[:0], Y=None),
    "X no columns": soft(r"X .*no columns", X=X[:, :0]),
    "X too wide": soft(r"X spans.*rescale", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
    "X a numeric frame": soft(X=pd.DataFrame(X, columns=["a", "b"])),
    "X constant": soft(X=np.ones((20, 2))),
    "Y short": soft(r"Y .*20 rows", Y=Y[:-1]),
    "Y text": soft(r"Y must hold", Y=["a"] * 20),
    "Y negative classes": soft(r"Y must hold.*classes", Y=np.arange(20) - 1),
    "Y one class": soft(r"Y must hold.*two classes", Y=np.zeros(20, dtype=int)),
    "Y dates": soft(r"Y must hold", Y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "Y complex": soft(r"Y must hold", Y=Y + 1j),
    "Y masked": soft(r"Y .*(mask|NaN)", Y=np.ma.masked_array(Y, Y > 2)),
    "Y classes": soft(Y=(X[:, 0] > 0.5).astype(int)),
    "alpha one": soft(r"alpha=1.*\(0, 1\)", alpha=1),
    "alpha bool": soft(r"alpha=True", alpha=True),
    "alpha text": soft(r"alpha='x'.*number", alpha="x"),
    "alpha random": Odd(_random_alpha, r"alpha must be a number"),
    "beta negative": soft(r"beta=-1.*must be at least 0", beta=-1),
    "leaf normal-gamma": soft(r"leaf=.*NormalLeaf or a DirichletLeaf", leaf=pmt.NormalGammaLeaf()),
    "leaf text": soft(r"leaf='n'", leaf="n"),
    "leaf class": soft(r"leaf is the class", leaf=pmt.NormalLeaf),
    "h one number": soft(r"h=0.1.*two numbers.*h=\(0.1, 0.005\)", h=0.1),
    "h three numbers": soft(r"h=.*two numbers", h=(0.1, 0.05, 0.01)),
    "h zero": soft(r"h=.*positive", h=(0.1, 0.0)),
    "h rising": soft(r"h=.*not larger", h=(0.01, 0.1)),
    "h NaN": soft(r"h=.*two numbers", h=(np.nan, 0.1)),
    "h text": soft(r"h='ab'.*two numbers", h="ab"),
    "h None": soft(r"h=None.*two numbers", h=None),
    "direction text": soft(r"direction='x'.*choose from", direction="x"),
    "direction None": soft(r"direction=None.*choose from", direction=None),
    "direction index": soft(direction="index"),
    "max_nodes zero": soft(r"max_nodes=0.*at least 1", max_nodes=0),
    "max_nodes fraction": soft(r"max_nodes=2.5.*whole", max_nodes=2.5),
    "max_nodes one": soft(max_nodes=1, holds=lambda mu: mu.ndim == 1),
    "m": soft(r"m", m=3),
    "dims unknown": soft(r"Dimension a is not", dims="a"),
    "outside a model": Odd(lambda: pmt.SoftDecisionTree("mu", X, Y), r"[Mm]odel"),
    "a failed declaration leaves nothing": Odd(_failed, holds=lambda left: left == []),
}


def soft_model():
    """A soft tree and a likelihood."""
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree("mu", X, Y, leaf=LEAF)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
    return model


def on_soft(make, said):
    """A row about something made inside the small model."""

    def call():
        with soft_model():
            return make()

    return Odd(call, said)


def hard(make, said):
    """A row about something made in a model of hard trees."""

    def call():
        with pm.Model():
            pmt.BART("mu", X, Y, m=2, max_nodes=80)
            return make()

    return Odd(call, said)


def _discrete(make):
    with soft_model():
        pm.Poisson("count", 3)
        return make()


SETTINGS = {
    "chains zero": ({"chains": 0}, r"chains=0.*at least 1"),
    "chains bool": ({"chains": True}, r"chains=True"),
    "local_draws one": ({"local_draws": 1}, r"local_draws=1.*at least 2"),
    "local_draws text": ({"local_draws": "many"}, r"local_draws='many'"),
    "tune few": ({"tune": 19}, r"tune=19.*at least 20"),
    "tune fraction": ({"tune": 20.5}, r"tune=20.5"),
    "importance_draws zero": ({"importance_draws": 0}, r"importance_draws=0"),
    "initial_trees zero": ({"initial_trees": 0}, r"initial_trees=0"),
    "threshold negative": ({"threshold": -1}, r"threshold=-1.*at least 0"),
    "max_active zero": ({"max_active": 0}, r"max_active=0"),
    "exploration large": ({"exploration": 1.5}, r"exploration=1.5.*0 to 1"),
    "exploration NaN": ({"exploration": np.nan}, r"exploration=nan"),
    "exploration bool": ({"exploration": True}, r"exploration=True"),
    "optimism zero": ({"optimism": 0.0}, r"optimism=0.0.*positive"),
    "screening negative": ({"screening": -0.1}, r"screening=-0.1.*0 to 1"),
}
DCC_TREE = {
    name: on_soft(lambda g=given: pmt.DCCTree(**g), said)
    for name, (given, said) in SETTINGS.items()
} | {
    "no soft tree": hard(pmt.DCCTree, r"one SoftDecisionTree.*has none"),
    "no model": Odd(pmt.DCCTree, r"[Mm]odel"),
    "a discrete variable": Odd(lambda: _discrete(pmt.DCCTree), r"\['count'\].*discrete"),
    "Metropolis on the tree": on_soft(lambda: pm.Metropolis(), r"(?i)soft|forest|tree"),
    "NUTS on the tree": on_soft(lambda: pm.NUTS(), r"(?i)soft|forest|tree"),
    "find_MAP": on_soft(lambda: pm.find_MAP(progressbar=False), r"find_MAP.*mu_forest"),
}
RJHMC = {
    name: on_soft(lambda g=given: pmt.RJHMC(**g), said)
    for name, (given, said) in {
        "variant text": ({"variant": "X"}, r"variant='X'.*choose from"),
        "variant number": ({"variant": 1}, r"variant=1.*choose from"),
        "variant of other trees": ({"variant": "DF"}, r"variant='DF'.*direction='index'"),
        "grow zero": ({"grow": 0.0}, r"grow=0.0.*positive"),
        "grow NaN": ({"grow": np.nan}, r"grow=nan"),
        "grow bool": ({"grow": True}, r"grow=True"),
        "prune large": ({"prune": 0.9}, r"prune=0.9.*at most 1"),
        "prune text": ({"prune": "x"}, r"prune='x'"),
        "bridge negative": ({"bridge": -1}, r"bridge=-1.*at least 0"),
        "bridge fraction": ({"bridge": 1.5}, r"bridge=1.5.*whole"),
        "local_draws zero": ({"local_draws": 0}, r"local_draws=0.*at least 1"),
        "warm_up few": ({"warm_up": 19}, r"warm_up=19.*at least 20"),
        "warm_up None": ({"warm_up": None}, r"warm_up=None"),
        "vars of no model": ({"vars": [3]}, r"3 is neither a free variable"),
        "vars unknown": ({"vars": ["nu"]}, r"'nu' is neither a free variable"),
        "vars empty": ({"vars": []}, r"[Nn]o free"),
    }.items()
} | {
    "no soft tree": hard(pmt.RJHMC, r"one SoftDecisionTree.*has none"),
    "no model": Odd(pmt.RJHMC, r"[Mm]odel"),
    "a discrete variable": Odd(lambda: _discrete(lambda: pmt.RJHMC(["mu", "count"])), r"discrete"),
}
SAMPLE_DCC = {
    name: on_soft(lambda g=given: pmt.sample_dcc(2, 5, progressbar=False, **g), said)
    for name, (given, said) in SETTINGS.items()
} | {
    "iterations zero": on_soft(lambda: pmt.sample_dcc(0), r"iterations=0.*at least 1"),
    "iterations None": on_soft(lambda: pmt.sample_dcc(None), r"iterations=None"),
    "draws zero": on_soft(lambda: pmt.sample_dcc(2, 0), r"draws=0.*at least 1"),
    "draws text": on_soft(lambda: pmt.sample_dcc(2, "all"), r"draws='all'"),
    "cores zero": on_soft(lambda: pmt.sample_dcc(2, 5, cores=0), r"cores=0.*at least 1"),
    "random_seed text": on_soft(lambda: pmt.sample_dcc(2, 5, random_seed="x"), r"random_seed|seed"),
    "no soft tree": hard(pmt.sample_dcc, r"one SoftDecisionTree.*has none"),
    "no model": Odd(pmt.sample_dcc, r"[Mm]odel"),
    "a discrete variable": Odd(lambda: _discrete(pmt.sample_dcc), r"\['count'\].*discrete"),
}
