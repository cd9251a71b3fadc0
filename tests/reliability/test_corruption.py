"""Values with anything written into them: never a finite wrong number, always found.

Every kind of value that a tree variable can have, 400 corruptions each in the ordinary run. A
corruption that goes unnoticed is one whose 52-bit checksum happens to match: once in 4.5e15.
"""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr
from support.scale import scaled
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
N_EACH = 400
ROWS = 12
NORMAL = pmt.NormalLeaf(0.3, 1.0)


def numbers():
    return np.random.default_rng(3).random((ROWS, 2))


def mixed_columns():
    X = numbers()
    X[::4, 1] = np.nan
    return pd.DataFrame({"level": list("abcabdabcabd"), "number": X[:, 1]})


def hard(X, leaf, m=3, **settings):
    function = pmt.BART if m > 1 else pmt.DecisionTree
    given = {"m": m} if m > 1 else {}
    function("mu", X, leaf=leaf, max_nodes=m * (2 * ROWS - 1), **given, **settings)


KINDS = {
    "normal": lambda **s: hard(numbers(), NORMAL, **s),
    "cuts on a grid": lambda **s: hard(numbers(), NORMAL, n_cuts=5, **s),
    "several outputs": lambda **s: hard(
        numbers(), NORMAL, shape=(2, ROWS), separate_trees=False, **s
    ),
    "normal-gamma": lambda **s: hard(numbers(), pmt.NormalGammaLeaf(), m=1, **s),
    "Dirichlet": lambda **s: hard(numbers(), pmt.DirichletLeaf(3.0, 3), m=1, **s),
    "levels and missing cells": lambda **s: hard(mixed_columns(), NORMAL, **s),
    "times": lambda **s: hard(numbers(), NORMAL, tree_prior=pmt.MondrianPrior(2.0), **s),
    "soft, normal": lambda: pmt.SoftDecisionTree("mu", numbers(), leaf=NORMAL, h=(0.2, 0.1)),
    "soft, Dirichlet": lambda: pmt.SoftDecisionTree(
        "mu", numbers(), leaf=pmt.DirichletLeaf(3.0, 3), h=(0.2, 0.1)
    ),
}
CASES = list(KINDS)


def corruptions(good, count, rng):
    """(count, rows, fields) copies of (k, rows, fields) values, each changed into none of them."""
    known = {value.tobytes() for value in good}
    out = good[rng.integers(len(good), size=count)]
    others = good[rng.integers(len(good), size=count)]
    flat, donors = out.reshape(count, -1), others.reshape(count, -1)
    ways = rng.integers(len(WAYS), size=count)
    for k, way in enumerate(ways):
        while flat[k].tobytes() in known:
            with np.errstate(all="ignore"):  # a cut may be the largest float
                WAYS[way](flat[k], donors[k], good.shape[2], rng)
            way = 0  # a swap of equal entries, say, changed nothing: then it is bits
    return out


def bits(value, donor, fields, rng):
    """One to eight bits, anywhere."""
    at = rng.integers(8 * value.nbytes, size=rng.integers(1, 9))
    raw = value.view(np.uint8)
    for bit in np.unique(at):
        raw[bit // 8] ^= np.uint8(1 << (bit % 8))


def whole_bytes(value, donor, fields, rng):
    """Up to 64 random bytes in a row."""
    raw = value.view(np.uint8)
    start, length = rng.integers(raw.size), rng.integers(1, 65)
    raw[start : start + length] = rng.integers(256, size=raw[start : start + length].size)


def entry(value, donor, fields, rng):
    """A number that might belong there."""
    at = rng.integers(value.size)
    likely = [0.0, -1.0, -2.0, 1.0, np.nan, np.inf, -np.inf, 1e308, rng.normal(), rng.random()]
    near = [np.nextafter(value[at], np.inf), np.nextafter(value[at], -np.inf), value[at] + 1.0]
    value[at] = rng.choice([*likely, *near])


def exchange(value, donor, fields, rng):
    """Two entries, or two rows."""
    if rng.random() < 0.5:
        a, b = rng.integers(value.size, size=2)
        value[[a, b]] = value[[b, a]]
    else:
        rows = value.reshape(-1, fields)
        a, b = rng.integers(len(rows), size=2)
        rows[[a, b]] = rows[[b, a]]


def graft(value, donor, fields, rng):
    """A stretch of another draw."""
    a, b = np.sort(rng.integers(value.size + 1, size=2))
    value[a:b] = donor[a:b]


def coarser(value, donor, fields, rng):
    """Single precision, or some digits."""
    value[:] = value.astype(np.float32) if rng.random() < 0.5 else np.round(value, 4)


def blank(value, donor, fields, rng):
    """A stretch of zeros, or of what a file holds where nothing was written."""
    a, b = np.sort(rng.integers(value.size + 1, size=2))
    value[a:b] = rng.choice([0.0, np.nan, 9.969209968386869e36])


WAYS = [bits, whole_bytes, entry, exchange, graft, coarser, blank]


QUICK = ["levels and missing cells", "normal", "soft, normal"]


@pytest.fixture(
    scope="module",
    params=tiers(CASES, QUICK, single=True),
)
def case(request, quick_compile):
    """Model, draws of its tree variable, and its function at two sets of rows with its logp."""
    with pm.Model() as model:
        KINDS[request.param]()
    forest = model["mu_forest"]
    good = pm.draw(forest, 30, random_seed=5)
    value, X = model.rvs_to_values[forest], model["mu_X"]
    logp = model.logp(vars=[forest])
    outputs = model.replace_rvs_by_values([v for v in model.deterministics])
    seen = pytensor.function([value], [*outputs, logp], on_unused_input="ignore")
    new = np.vstack([X.get_value()[::-1], X.get_value()[:3]])
    return model, good, seen, (X, X.get_value(), new)


def test_corrupted_values_are_never_finite(case, rng):
    model, good, seen, (X, train, new) = case
    bad = corruptions(good, scaled(N_EACH), rng)
    for rows in (train, new):
        X.set_value(rows)
        for value in good:
            assert all(np.isfinite(v).all() for v in seen(value))
        for value in bad:
            *functions, logp = seen(value)
            assert all(np.isnan(f).all() for f in functions) and logp == -np.inf
    X.set_value(train)


def test_check_draws_finds_every_one(case, rng):
    model, good, _, _ = case
    bad = corruptions(good, scaled(N_EACH), rng)

    def draws_of(values):
        data = xr.Dataset({"mu_forest": (("chain", "draw", "r", "f"), values[None])})
        return xr.DataTree.from_dict({"posterior": data})

    pmt.check_draws(draws_of(good), model)
    with pytest.raises(ValueError, match="mu_forest, chain 0, draw 0, is not .* nor is any other"):
        pmt.check_draws(draws_of(bad), model)
    for k in range(3):
        some = good.copy()
        some[4 + k] = bad[k]
        with pytest.raises(ValueError, match=f"draw {4 + k}, is not .*1 of 30 draws"):
            pmt.check_draws(draws_of(some), model)
