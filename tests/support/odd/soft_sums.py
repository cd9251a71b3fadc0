"""Odd inputs of sums of soft trees: `SoftBART`, `SoftCGM`."""

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from support.odd.table import FRAME, LEAF, Odd, X, Y, declare, finite, with_entry

NUMBERS = pd.DataFrame(X, columns=["a", "b"])


def soft(refused=None, holds=finite, **given):
    """A row about `SoftBART`."""
    return Odd(lambda: declare(pmt.SoftBART, **({"m": 3} | given)), refused, holds)


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
    "X NaN": soft("X", X=with_entry(X, np.nan)),
    "X infinite": soft("X", X=with_entry(X, np.inf)),
    "X masked": soft("X", X=np.ma.masked_array(X, X > 0.9)),
    "X text": soft("X", X=FRAME),
    "X vector": soft("X", X=X[:, 0]),
    "X None": soft("X", X=None),
    "X no rows": soft("X", X=X[:0], Y=None, leaf=LEAF),
    "X no columns": soft("X", X=X[:, :0]),
    "X too wide": soft("X", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
    "X a numeric frame": soft(X=NUMBERS),
    "X bools": soft(X=X > 0.5),
    "X integers": soft(X=(9 * X).astype(np.int8)),
    "X constant": soft(X=np.ones((20, 2))),
    "X one row": soft(X=X[:1], Y=None, leaf=LEAF),
    "X at the largest floats": soft(X=X * 1e308),
    "X denormal": soft(X=X * 1e-310),
    "X far below zero": soft(X=-X * 1e300),
    "Y short": soft("Y", Y=Y[:-1]),
    "Y text": soft("Y", Y=["a"] * 20),
    "Y NaN": soft("Y", Y=with_entry(Y, np.nan)),
    "Y constant": soft("Y", Y=np.ones(20)),
    "Y None": soft("Y", Y=None),
    "m zero": soft("m", m=0),
    "m bool": soft("m", m=True),
    "m fraction": soft("m", m=2.5),
    "alpha one": soft("alpha", alpha=1),
    "alpha text": soft(TypeError("alpha"), alpha="x"),
    "beta negative": soft("beta", beta=-1),
    "bandwidth zero": soft("bandwidth", bandwidth=0),
    "bandwidth negative": soft("bandwidth", bandwidth=-0.1),
    "bandwidth NaN": soft("bandwidth", bandwidth=np.nan),
    "bandwidth text": soft("bandwidth", bandwidth="x"),
    "bandwidth bool": soft("bandwidth", bandwidth=True),
    "bandwidth vector": soft("bandwidth", bandwidth=np.ones(3)),
    "bandwidth None": soft("bandwidth", bandwidth=None),
    "bandwidth random": Odd(_random_bandwidth, TypeError("bandwidth")),
    "bandwidth small": soft(bandwidth=1e-6),
    "bandwidth large": soft(bandwidth=1e6),
    "hard a number": soft(hard=1),
    "hard a name": soft(X=NUMBERS, hard="a"),
    "hard unknown": soft("hard", X=NUMBERS, hard=["c"]),
    "hard names of no frame": soft("hard", hard=["a"]),
    "hard negative": soft("hard", hard=[-1]),
    "hard beyond": soft("hard", hard=[2]),
    "hard a mask": soft("hard", hard=np.array([True, False])),
    "hard fraction": soft("hard", hard=[0.5]),
    "hard all": soft(hard=[0, 1]),
    "hard none of them": soft(hard=[]),
    "hard by name": soft(X=NUMBERS, hard=["b"]),
    "leaf a class": soft(TypeError("leaf"), leaf=pmt.NormalLeaf),
    "leaf linear": soft(TypeError("leaf"), leaf=pmt.LinearLeaf(0, 1, 1)),
    "leaf of outputs": soft("leaf", leaf=pmt.NormalLeaf(0.0, [1.0, 2.0])),
    "split_prior short": soft("split_prior", split_prior=[1.0]),
    "split_prior zeros": soft("split_prior", split_prior=[0.0, 0]),
    "split_prior one column": soft(split_prior=[0, 1]),
    "split_prior a dict": soft(X=NUMBERS, split_prior={"a": 2.0}),
    "max_nodes few": soft("max_nodes", max_nodes=2),
    "max_nodes fraction": soft("max_nodes", max_nodes=30.5),
    "shape": soft(TypeError("shape"), shape=(2, 20)),
    "dims unknown": soft("Dimension", dims="a"),
    "outside a model": Odd(lambda: pmt.SoftBART("mu", X, Y), TypeError("model")),
    "a failed declaration leaves nothing": Odd(_failed, holds=lambda left: left == []),
}


def on_model(make, refused=None, holds=lambda result: True, front=pmt.SoftBART):
    """A row about something made inside a small model."""

    def call():
        with pm.Model() as model:
            mu = front("mu", X, Y, m=2, max_nodes=80)
            sigma = pm.HalfNormal("sigma")
            pm.Normal("y", mu, sigma, observed=Y, shape=mu.shape)
            return make(model)

    return Odd(call, refused, holds)


def _no_forest():
    with pm.Model():
        pm.Normal("x")
        return pmt.SoftCGM()


def moves(given, refused=None, **others):
    """A row about ``moves``."""
    return on_model(lambda m: pmt.SoftCGM(moves=given), refused, **others)


BOTH = {"grow": 1, "prune": 1, "bandwidth": 1}

SOFT_CGM = {
    "vars of another kind": on_model(lambda m: pmt.SoftCGM([m["sigma"]]), "vars"),
    "vars a name": on_model(lambda m: pmt.SoftCGM("foo"), "vars"),
    "vars a number": on_model(lambda m: pmt.SoftCGM(3), "vars"),
    "vars the function": on_model(
        lambda m: pmt.SoftCGM([m["mu"]]), holds=lambda s: len(s.forests) == 1
    ),
    "hard trees": on_model(lambda m: pmt.SoftCGM(), "'mu_forest'", front=pmt.BART),
    "no forest": Odd(_no_forest, "no"),
    "no model": Odd(pmt.SoftCGM, TypeError("model")),
    "unknown argument": on_model(lambda m: pmt.SoftCGM(particles=3), TypeError("particles")),
    "moves unknown": moves(BOTH | {"swap": 1}, "moves"),
    "moves a list": moves(["grow"], TypeError("moves")),
    "moves empty": moves({}, "moves"),
    "moves without bandwidth": moves({"grow": 1, "prune": 1}, "moves"),
    "moves negative": moves(BOTH | {"grow": -1}, "moves"),
    "moves NaN": moves(BOTH | {"grow": np.nan}, "moves"),
    "moves text": moves(BOTH | {"grow": "often"}, "moves"),
    "moves huge": moves(
        dict.fromkeys(BOTH, 1e308), holds=lambda s: np.allclose(s.kernels[0].weights[:2], 1 / 3)
    ),
    **{
        f"{name} {given!r}": on_model(
            lambda m, name=name, given=given: pmt.SoftCGM(**{name: given}),
            name,
        )
        for name in ("moves_per_visit", "n_sweeps")
        for given in (0, -2, 2.0, True, "3")
    },
    "Metropolis on the forest": on_model(
        lambda m: pm.Metropolis(), NotImplementedError("'mu_forest'")
    ),
    "NUTS on the forest": on_model(lambda m: pm.NUTS(), NotImplementedError("soft")),
    "find_MAP": on_model(lambda m: pm.find_MAP(progressbar=False), NotImplementedError("find_MAP")),
}
