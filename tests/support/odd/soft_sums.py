"""Odd inputs of sums of soft trees: `SoftBART`, `SoftCGM`."""

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from support.odd.table import FRAME, LEAF, Odd, X, Y, declare, finite, with_entry

NUMBERS = pd.DataFrame(X, columns=["a", "b"])


def soft(said=None, holds=finite, **given):
    """A row about `SoftBART`."""
    return Odd(lambda: declare(pmt.SoftBART, **({"m": 3} | given)), said, holds)


def _random_bandwidth():
    with pm.Model():
        return pmt.SoftBART("mu", X, Y, bandwidth=pm.Exponential("b", 10))


def _failed():
    with pm.Model() as model:
        try:
            pmt.SoftBART("mu", X, Y, split_prior=[-1.0, 1.0])
        except ValueError:
            pass
        left = list(model.named_vars)
        pmt.SoftBART("mu", X, Y)
    return left


SOFT_BART = {
    "X NaN": soft(r"X .*NaN.*remove or impute", X=with_entry(X, np.nan)),
    "X infinite": soft(r"X .*infinite", X=with_entry(X, np.inf)),
    "X masked": soft(r"X .*NaN|mask", X=np.ma.masked_array(X, X > 0.9)),
    "X text": soft(r"X .*'b'.*Encode", X=FRAME),
    "X vector": soft(r"X .*two-dimensional", X=X[:, 0]),
    "X None": soft(r"X ", X=None),
    "X no rows": soft(r"X .*no rows", X=X[:0], Y=None, leaf=LEAF),
    "X no columns": soft(r"X .*no columns", X=X[:, :0]),
    "X too wide": soft(r"X spans.*rescale", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
    "X a numeric frame": soft(X=NUMBERS),
    "X bools": soft(X=X > 0.5),
    "X integers": soft(X=(9 * X).astype(np.int8)),
    "X constant": soft(X=np.ones((20, 2))),
    "X one row": soft(X=X[:1], Y=None, leaf=LEAF),
    "X at the largest floats": soft(X=X * 1e308),
    "X denormal": soft(X=X * 1e-310),
    "Y short": soft(r"Y .*20 rows", Y=Y[:-1]),
    "Y text": soft(r"Y .*numbers", Y=["a"] * 20),
    "Y NaN": soft(r"Y .*NaN.*leaf=", Y=with_entry(Y, np.nan)),
    "Y constant": soft(r"Y .*one value.*leaf=", Y=np.ones(20)),
    "Y None": soft(r"Y=None.*leaf=", Y=None),
    "m zero": soft(r"m=0.*at least 1", m=0),
    "m bool": soft(r"m=True.*whole number", m=True),
    "m fraction": soft(r"m=2.5.*whole number", m=2.5),
    "alpha one": soft(r"alpha=1.*\(0, 1\)", alpha=1),
    "alpha text": soft(r"alpha='x'.*number", alpha="x"),
    "beta negative": soft(r"beta=-1.*must be at least 0", beta=-1),
    "bandwidth zero": soft(r"bandwidth=0.*1e-6 to 1e6", bandwidth=0),
    "bandwidth negative": soft(r"bandwidth=-0.1.*1e-6", bandwidth=-0.1),
    "bandwidth NaN": soft(r"bandwidth=nan", bandwidth=np.nan),
    "bandwidth text": soft(r"bandwidth='x'.*number", bandwidth="x"),
    "bandwidth bool": soft(r"bandwidth=True", bandwidth=True),
    "bandwidth vector": soft(r"bandwidth=.*number", bandwidth=np.ones(3)),
    "bandwidth None": soft(r"bandwidth=None", bandwidth=None),
    "bandwidth random": Odd(_random_bandwidth, r"bandwidth must be a number"),
    "bandwidth small": soft(bandwidth=1e-6),
    "bandwidth large": soft(bandwidth=1e6),
    "hard a number": soft(hard=1),
    "hard a name": soft(X=NUMBERS, hard="a"),
    "hard unknown": soft(r"hard holds 'c', which is not a column.*'a', 'b'", X=NUMBERS, hard=["c"]),
    "hard names of no frame": soft(r"hard holds 'a'.*\[0, 1\]", hard=["a"]),
    "hard negative": soft(r"hard holds -1.*\[0, 1\]", hard=[-1]),
    "hard beyond": soft(r"hard holds 2.*\[0, 1\]", hard=[2]),
    "hard a mask": soft(r"hard holds True.*\[0, 1\]", hard=np.array([True, False])),
    "hard fraction": soft(r"hard holds 0.5", hard=[0.5]),
    "hard all": soft(hard=[0, 1]),
    "hard none of them": soft(hard=[]),
    "hard by name": soft(X=NUMBERS, hard=["b"]),
    "leaf a class": soft(r"leaf is the class.*instance", leaf=pmt.NormalLeaf),
    "leaf linear": soft(r"leaf=.*SoftBART needs a NormalLeaf", leaf=pmt.LinearLeaf(0, 1, 1)),
    "leaf of outputs": soft(r"leaf: every setting.*scalar", leaf=pmt.NormalLeaf(0.0, [1.0, 2.0])),
    "split_prior short": soft(r"split_prior.*\(1,\).*2 columns", split_prior=[1.0]),
    "split_prior zeros": soft(r"split_prior.*not all 0", split_prior=[0.0, 0]),
    "split_prior one column": soft(split_prior=[0, 1]),
    "split_prior a dict": soft(X=NUMBERS, split_prior={"a": 2.0}),
    "max_nodes few": soft(r"max_nodes=2.*at least 3", max_nodes=2),
    "max_nodes fraction": soft(r"max_nodes=30.5.*whole", max_nodes=30.5),
    "shape": soft(r"shape", shape=(2, 20)),
    "dims unknown": soft(r"Dimension a is not", dims="a"),
    "outside a model": Odd(lambda: pmt.SoftBART("mu", X, Y), r"[Mm]odel"),
    "a failed declaration leaves nothing": Odd(_failed, holds=lambda left: left == []),
}


def on_model(make, said=None, holds=lambda result: True, front=pmt.SoftBART):
    """A row about something made inside a small model."""

    def call():
        with pm.Model() as model:
            mu = front("mu", X, Y, m=2, max_nodes=80)
            sigma = pm.HalfNormal("sigma")
            pm.Normal("y", mu, sigma, observed=Y, shape=mu.shape)
            return make(model)

    return Odd(call, said, holds)


def _no_forest():
    with pm.Model():
        pm.Normal("x")
        return pmt.SoftCGM()


def moves(given, said=None, **others):
    """A row about ``moves``."""
    return on_model(lambda m: pmt.SoftCGM(moves=given), said, **others)


BOTH = {"grow": 1, "prune": 1, "bandwidth": 1}

SOFT_CGM = {
    "vars of another kind": on_model(lambda m: pmt.SoftCGM([m["sigma"]]), r"vars.*'sigma'.*forest"),
    "vars a name": on_model(lambda m: pmt.SoftCGM("foo"), r"vars: 'foo'.*neither a forest"),
    "vars a number": on_model(lambda m: pmt.SoftCGM(3), r"vars: 3.*neither a forest"),
    "vars the function": on_model(
        lambda m: pmt.SoftCGM([m["mu"]]), holds=lambda s: len(s.forests) == 1
    ),
    "hard trees": on_model(
        lambda m: pmt.SoftCGM(), r"\['mu_forest'\].*hard splits.*CGM and Hybrid", front=pmt.BART
    ),
    "no forest": Odd(_no_forest, r"no forest.*SoftBART"),
    "no model": Odd(pmt.SoftCGM, r"[Mm]odel"),
    "unknown argument": on_model(lambda m: pmt.SoftCGM(particles=3), r"particles"),
    "moves unknown": moves(BOTH | {"swap": 1}, r"moves.*'swap'.*'grow'"),
    "moves a list": moves(["grow"], r"moves=.*dict"),
    "moves empty": moves({}, r"moves=.*grow, prune and bandwidth"),
    "moves without bandwidth": moves({"grow": 1, "prune": 1}, r"moves=.*bandwidth"),
    "moves negative": moves(BOTH | {"grow": -1}, r"moves=.*at least 0"),
    "moves NaN": moves(BOTH | {"grow": np.nan}, r"moves=.*finite"),
    "moves text": moves(BOTH | {"grow": "often"}, r"moves=.*numbers"),
    "moves huge": moves(
        dict.fromkeys(BOTH, 1e308), holds=lambda s: np.allclose(s.moves.weights[:2], 1 / 3)
    ),
    **{
        f"{name} {given!r}": on_model(
            lambda m, name=name, given=given: pmt.SoftCGM(**{name: given}),
            rf"{name}=.*whole number",
        )
        for name in ("moves_per_visit", "n_sweeps")
        for given in (0, -2, 2.0, True, "3")
    },
    "Metropolis on the forest": on_model(lambda m: pm.Metropolis(), r"mu_forest.*SoftCGM"),
    "NUTS on the forest": on_model(lambda m: pm.NUTS(), r"(?i)soft|forest|tree"),
    "find_MAP": on_model(lambda m: pm.find_MAP(progressbar=False), r"find_MAP.*mu_forest"),
}
