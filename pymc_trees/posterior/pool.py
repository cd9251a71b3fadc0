"""Whether chains taken together can be used, where none of them can by itself: `judge_pool`.

On large tables R-hat of f alarms at any length: each chain tiles the surface of f in a way of its
own, and leaves it slowly. The draws of all chains together can be right nevertheless, if every
chain has reached the posterior and there are enough of them. Three numbers say so.

- Pooled sd of f in the second half of the draws, over that in the first. Chains that are still on
  their way make it fall; chains that still move apart make it rise.
- Trend of sigma and of other scalars, second half less first, in sds.
- Variance of f between chains against within. Let B be the share of the former. If f, and where
  each chain has its mean, are draws of one distribution, an interval of one chain covers f with
  probability 2 Phi(z sqrt((1 - B) / (1 + B))) - 1 instead of 2 Phi(z) - 1, and is sqrt(1 - B) as
  wide as that of many chains.

Changes between halves are judged by a t test over chains: these are independent, and if they are
stationary the two halves of each have the same distribution. `benchmarks/notes/pools` has the rates
of errors, from which the bounds are chosen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from scipy.special import ndtr
from scipy.stats import norm, t

from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.posterior.draws import SAMPLE

LEVEL = 0.05
"""Of the t tests."""
SPREAD = 0.05
"""Relative change of the pooled sd of f that matters."""
TREND = 0.5
"""Change of a scalar, in its pooled sds, that matters."""
APART = 0.8
"""Width of a chain's interval of a scalar over that of the pool, below which fits differ."""
AGREE = 0.95
"""The same of f, from which on a chain can be used alone: R-hat of 1.05."""
COVERED = 0.8
"""Coverage that is expected of a nominal 0.95, below which there are too few chains."""
OVER_ROWS = "the sd of f over rows"
"""A scalar of any model, whose trend is judged too."""
CHAINS, DRAWS = 4, 40
"""Fewest chains, and draws of each, that can be judged as a pool."""
NOMINAL = 0.95
"""Probability of the intervals whose coverage is computed."""


class Change(NamedTuple):
    """Change from the first half of the draws to the second."""

    size: float
    """Relative, or in sds."""
    p: float
    """Of a t test over chains; NaN for one chain."""

    def matters(self, bound: float, level: float = LEVEL) -> bool:
        """Whether it is larger than a bound, and not by chance."""
        return abs(self.size) > bound and self.p < level


@dataclass(frozen=True)
class PoolCheck:
    """What `judge_pool` found.

    Attributes
    ----------
    verdict : str
        "agree": chains can be used, together and alone. "pool": together only. "warm-up": they have
        not reached the posterior. "apart": a scalar, such as sigma, differs between chains. "few":
        too few chains for how far they are apart. "short": too few chains or draws to judge.
    chains, draws : int
        That were judged.
    width : float
        Width of an interval of one chain over that of the pool, over all rows.
    spread : Change
        Of the pooled sd of f, relative.
    trends : dict of str and Change
        Of scalars, in sds.
    widths : dict of str and float
        Width of an interval of one chain over that of the pool, for scalars.
    coverage_of_chain, coverage_of_pool : float
        To expect of 95% intervals of f, from the width and the number of chains.
    """

    verdict: str
    chains: int
    draws: int
    width: float
    spread: Change
    trends: dict[str, Change] = field(default_factory=dict)
    widths: dict[str, float] = field(default_factory=dict)
    coverage_of_chain: float = np.nan
    coverage_of_pool: float = np.nan

    @property
    def usable(self) -> bool:
        """Whether draws of all chains together can be used."""
        return self.verdict in ("agree", "pool")

    @property
    def advice(self) -> str:
        """What to do, as a sentence."""
        return ADVICE[self.verdict]

    def __str__(self) -> str:
        return WORDS[self.verdict].format(
            chains="one chain" if self.chains == 1 else f"{self.chains} chains",
            draws=self.draws,
            least=CHAINS,
            few=DRAWS,
            width=f"{self.width:.2f}",
            one=f"{self.coverage_of_chain:.2f}",
            all=f"{self.coverage_of_pool:.2f}",
            what=self._what_changed if self.verdict == "warm-up" else self._what_differs,
        )

    @property
    def _what_changed(self) -> str:
        level = LEVEL / (1 + len(self.trends))
        found = [
            f"{name} {one.size:+.1f} sd"
            for name, one in self.trends.items()
            if one.matters(TREND, level)
        ]
        if self.spread.matters(SPREAD, level):
            found.append(f"the pooled sd of f {self.spread.size:+.0%}")
        return " and ".join(found)

    @property
    def _what_differs(self) -> str:
        return ", ".join(name for name, width in self.widths.items() if width < APART)


WORDS = {
    "agree": "the pool and single chains can be used (a chain's own interval is {width} as wide)",
    "pool": "the pool can be used, single chains cannot (a chain's own interval is {width} as "
    "wide; of 95% intervals expect {one} to cover for one chain, {all} for {chains} together)",
    "warm-up": "the chains have not reached the posterior: from the first half of the draws to the "
    "second there are changes, {what}",
    "apart": "chains do not agree on {what}: they are too short, or fit the data differently well",
    "few": "{chains} are too few for how far they are apart (a chain's own interval is "
    "{width} as wide; of 95% intervals of the pool expect {all} to cover)",
    "short": "{chains} of {draws} draws cannot be judged as a pool, which takes {least} of {few}",
}
"""Verdicts, in words."""
ADVICE = {
    "agree": "More draws make numbers more exact.",
    "pool": "Use all chains together. More chains help sooner than longer ones.",
    "warm-up": "Go on with pymc_trees.resume, and leave out the draws so far.",
    "apart": "Go on with pymc_trees.resume. If they still differ then, take more trees, or check "
    "whether the likelihood is too sharp.",
    "few": "Sample more chains, eight or sixteen.",
    "short": "Sample four chains or more, of 40 draws or more each (chains=4, draws=200).",
}
"""What to do, by verdict."""
ANEW = {
    "warm-up": "Sample again with more tune=: these draws hold no states for pymc_trees.resume.",
    "apart": "Sample again with more tune= and draws=: these draws hold no states for "
    "pymc_trees.resume. If chains still differ then, take more trees, or check whether the "
    "likelihood is too sharp.",
}
"""The same where the draws hold no states."""


def judge_pool(f: np.ndarray, scalars: Mapping[str, np.ndarray] | None = None) -> PoolCheck:
    """Judge the draws of all chains together.

    Parameters
    ----------
    f : (chains, draws, rows) array
        Values of a function at some rows.
    scalars : dict of str and (chains, draws) array, optional
        Scalar variables of the model, such as sigma. The sd of f over the rows is judged with them.

    Returns
    -------
    PoolCheck
        The numbers, and a verdict.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_trees.posterior.pool import judge_pool
    >>> rng = np.random.default_rng(1)
    >>> apart = rng.normal(size=(4, 1, 50))  # where each chain has its mean
    >>> found = judge_pool(apart + rng.normal(size=(4, 200, 50)))
    >>> found.verdict, round(found.width, 1)
    ('pool', 0.7)
    """
    chains, draws, rows = f.shape
    moving = {n: np.asarray(v) for n, v in (scalars or {}).items() if np.ptp(v) > 0}
    width, spread = width_of_chain(f), change_of_spread(f)
    widths = {name: width_of_chain(values[..., None]) for name, values in moving.items()}
    over_rows = f.std(axis=-1)
    if np.ptp(over_rows) > 0:
        moving[OVER_ROWS] = over_rows
    trends = {name: trend(values) for name, values in moving.items()}
    share = 1 - width**2
    one, pool = coverage_of_chain(share), coverage_of_pool(round(share, 2), chains)
    level = LEVEL / (1 + len(trends))
    changed = spread.matters(SPREAD, level) or any(c.matters(TREND, level) for c in trends.values())
    if changed:
        verdict = "warm-up"
    elif draws < DRAWS or chains < 2:
        verdict = "short"
    elif any(one < APART for one in widths.values()):
        verdict = "apart"
    elif width >= AGREE:
        verdict = "agree"
    elif chains < CHAINS:
        verdict = "short"
    else:
        verdict = "pool" if pool >= COVERED else "few"
    return PoolCheck(verdict, chains, draws, width, spread, trends, widths, one, pool)


def scalars_of(posterior: xr.Dataset, model: pm.Model) -> dict[str, np.ndarray]:
    """(chains, draws) draws of the free variables of one number, such as sigma."""
    found = {}
    for rv in model.free_RVs:
        if not is_tree_variable(rv) and rv.name in posterior:
            values = posterior[rv.name].transpose(*SAMPLE, ...).to_numpy()
            if values.size == values.shape[0] * values.shape[1]:
                found[str(rv.name)] = values.reshape(values.shape[:2])
    return found


# ----------------------------------------------------------------------------------------- Numbers


def width_of_chain(f: np.ndarray) -> float:
    """Width of an interval of one chain over that of many, of (chains, draws, rows) values.

    The root of the variance within chains over that within and between, each summed over rows.
    """
    if len(f) < 2 or f.shape[1] < 2:
        return np.nan
    within = f.var(axis=1, ddof=1).mean(axis=0).sum()
    between = f.mean(axis=1).var(axis=0, ddof=1).sum()
    total = within + between
    return float(np.sqrt(within / total)) if total > 0 else 1.0


def _halves(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = f.shape[1] // 2
    return f[:, :half], f[:, f.shape[1] - half :]


def change_of_spread(f: np.ndarray) -> Change:
    """Relative change of the pooled sd of (chains, draws, rows) values between halves.

    Rows count alike, by their variance over all draws.
    """
    if f.shape[1] < 4:
        return Change(np.nan, np.nan)
    f = f[..., np.ptp(f, axis=(0, 1)) > 0]
    if f.shape[-1] == 0:
        return Change(0.0, 1.0)
    scale = f.var(axis=(0, 1))
    squares = [
        (((half - half.mean(axis=(0, 1))) ** 2).mean(axis=1) / scale).mean(axis=-1)
        for half in _halves(f)
    ]
    first, second = squares
    size = np.sqrt(second.mean() / first.mean()) - 1 if first.mean() > 0 else np.inf
    return Change(float(size), _p_value(second - first))


def trend(values: np.ndarray) -> Change:
    """Change of the mean of (chains, draws) values between halves, in pooled sds."""
    if values.shape[1] < 4:
        return Change(np.nan, np.nan)
    first, second = (half.mean(axis=1) for half in _halves(values))
    sd = values.std()
    return Change(float((second - first).mean() / sd) if sd > 0 else 0.0, _p_value(second - first))


def _p_value(differences: np.ndarray) -> float:
    """Of the mean of one number per chain being 0."""
    chains = len(differences)
    if chains < 2:
        return np.nan
    error = differences.std(ddof=1) / np.sqrt(chains)
    if error == 0:
        return 1.0 if differences.mean() == 0 else 0.0
    return float(2 * t.sf(abs(differences.mean()) / error, chains - 1))


def coverage_of_chain(share: float, prob: float = NOMINAL) -> float:
    """Coverage of an interval of one chain, from the share of the variance between chains."""
    z = norm.ppf(0.5 + prob / 2)
    return float(2 * ndtr(z * np.sqrt((1 - share) / (1 + share))) - 1)


@cache
def coverage_of_pool(share: float, chains: int, prob: float = NOMINAL, repeats: int = 2000):
    """Coverage of an interval of all chains together.

    A chain has a Normal distribution of variance 1 - share about a mean that is N(0, share), and f
    is N(0, 1); the interval is between quantiles of the mixture. The standard error of the
    simulation is below 0.005.
    """
    if not 0 <= share <= 1:
        return np.nan
    means = np.sqrt(share) * np.random.default_rng(1).standard_normal((repeats, chains))
    sd = np.sqrt(max(1 - share, 1e-6))
    ends = []
    for q in (0.5 - prob / 2, 0.5 + prob / 2):
        low, high = means.min(axis=1) - 6 * sd, means.max(axis=1) + 6 * sd
        for _ in range(30):
            x = (low + high) / 2
            below = ndtr((x[:, None] - means) / sd).mean(axis=1) < q
            low, high = np.where(below, x, low), np.where(below, high, x)
        ends.append((low + high) / 2)
    return float((ndtr(ends[1]) - ndtr(ends[0])).mean())
