"""`diagnose`: what chains have not agreed on, whether it matters, and what to do, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.tree_variable import evenly_spaced
from pymc_trees.posterior.draws import SAMPLE, STATES, draws_of, model_of, thinned
from pymc_trees.posterior.goals import ENTRIES, worst
from pymc_trees.posterior.pool import ANEW, APART, PoolCheck, judge_pool, scalars_of
from pymc_trees.posterior.reading.features import free_name
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.reading.functions import Function
from pymc_trees.progress import track

# ------------ Columns of X, alone and in pairs, that explain the differences of the means of chains


BINS, CELLS = 50, 20
"""Most cells of a table of one column, and along each of two."""
PER_BIN, PER_CELL = 20, 10
"""Rows to a cell, by which there are fewer."""
MOST_COLUMNS = 10
"""Columns whose pairs are looked at."""


def cells_of(x: np.ndarray, most: int) -> np.ndarray:
    """(n,) numbers of the cells of a column: up to ``most``, with equally many rows each."""
    edges = np.unique(np.quantile(x, np.linspace(0, 1, most + 1)[1:-1], method="inverted_cdf"))
    return np.searchsorted(edges, x)


def explained(differences: np.ndarray, cells: np.ndarray) -> float:
    """Share of the variance over rows that a table explains, less that of chance.

    The adjusted R2 of means over cells, which is 0 on average where the cells say nothing.

    Parameters
    ----------
    differences : (chains, n) array
        With mean 0 over rows.
    cells : (n,) array of int
        Cell of each row.
    """
    _, codes = np.unique(cells, return_inverse=True)
    n, k = len(codes), int(codes.max()) + 1
    total = (differences**2).sum()
    if k >= n or total == 0:
        return 0.0
    counts = np.bincount(codes)
    sums = np.stack([np.bincount(codes, one) for one in differences])
    share = (sums**2 / counts).sum() / total
    return float(1 - (1 - share) * (n - 1) / (n - k))


def directions(
    apart: np.ndarray, X: np.ndarray, names: Sequence[str], splits: np.ndarray
) -> dict[tuple[str, ...], float]:
    """Shares of the variance of chains' means about their own, by columns.

    Parameters
    ----------
    apart : (chains, n) array
        Means of f at rows, less that over chains; several outputs are further chains.
    X : (n, p) array
        The rows.
    names : sequence of str
        Of the columns.
    splits : (p,) array
        How often trees split in each: pairs are those of the most frequent.

    Returns
    -------
    dict of tuple of str and float
        ``()`` is the level, the same at all rows; columns and pairs follow, largest first.
    """
    total = (apart**2).sum()
    if total == 0:
        return {(): 0.0}
    level = apart.mean(axis=1)
    apart = apart - level[:, None]
    rest = float((apart**2).sum() / total)
    found = {}
    for which, cells in _tables(X, splits):
        found[tuple(names[j] for j in which)] = rest * explained(apart, cells)
    ordered = dict(sorted(found.items(), key=lambda item: -item[1]))
    return {(): 1 - rest} | ordered


def _tables(X: np.ndarray, splits: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    n = len(X)
    bins = int(np.clip(n // PER_BIN, 2, BINS))
    each = int(np.clip(np.sqrt(n / PER_CELL), 2, CELLS))
    used = [j for j in np.argsort(-splits, kind="stable") if splits[j] > 0 and np.ptp(X[:, j]) > 0]
    for j in used:
        yield (int(j),), cells_of(X[:, j], bins)
    coarse = {j: cells_of(X[:, j], each) for j in used[:MOST_COLUMNS]}
    for i, j in combinations(sorted(coarse), 2):
        yield (int(i), int(j)), coarse[i] * (each + 1) + coarse[j]


ROWS, DRAWS = 5000, 50
"""Rows, and draws of each chain, from which means of chains are computed."""
R_HAT, ESS_PER_CHAIN = 1.01, 100
"""As in PyMC's checks."""
TILING = 0.15
"""Share that a pair of columns explains beyond each alone, from which on it is named."""
NARROW = 0.8
"""Width of a chain's interval at a row, relative to that of the pool, below which it is counted."""
TOLD = ("pool", "few")
"""Verdicts whose words say how often intervals cover."""
LOOSE = 0.1
"""Share of loosely bound splits below which more trees are proposed."""
LISTED, NAMED = 3, 0.03
"""Most rows and columns that are named, and the share from which on columns are."""
PARTS = 10
"""Of the run, for the picture."""


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; printed, it says so in words.

    Attributes
    ----------
    name : str
        The function.
    pool : PoolCheck
        Whether all chains together can be used: ``verdict``, ``width``, ``spread``, ``trends``,
        ``coverage_of_chain``, ``coverage_of_pool``.
    r_hat, ess : float
        The largest R-hat and smallest ESS of up to 50 rows.
    rows : xarray.Dataset
        By row ``mean``, ``sd`` and ``width``: of an interval of one chain, relative to the pool.
    shares : dict of tuple of str and float
        Of the variance between chains' means, explained by columns and pairs; ``()`` is the level.
    fits : xarray.Dataset
        Means of scalars by chain, such as sigma and, where the draws have it, log_likelihood.
    splits, loose : float
        Splits of the trees in a draw, and how many of them are in another column, or gone, half of
        the draws later.
    run : xarray.Dataset
        The pooled sd of the function, and scalars, by tenths of the draws, relative to all draws.
    goes_on : bool
        Whether the draws hold the states from which `resume` goes on.
    """

    name: str
    pool: PoolCheck
    r_hat: float
    ess: float
    rows: xr.Dataset
    shares: dict[tuple[str, ...], float]
    fits: xr.Dataset
    splits: float
    loose: float
    run: xr.Dataset
    goes_on: bool = True

    @property
    def lines(self) -> list[str]:
        """Sentences, one for each question."""
        sections = [self._verdict, self._numbers, self._fits, self._where, self._splits]
        return [text for text in (*sections, self._coverage, self._advice) if text]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        first, *others = (escape(line) for line in self.lines)
        items = "".join(f"<li>{line}</li>" for line in others)
        return f"<div><strong>{first}</strong><ul>{items}</ul></div>"

    @property
    def has_mixed(self) -> bool:
        """Whether R-hat and ESS of f are as PyMC asks, and no scalar moves or differs."""
        as_asked = self.r_hat <= R_HAT and self.ess >= ESS_PER_CHAIN * self.pool.chains
        return as_asked and self.pool.verdict not in ("warm-up", "apart")

    @property
    def _verdict(self) -> str:
        if self.has_mixed:
            return f"{self.name}: the chains agree."
        return f"{self.name}: {self.pool}."

    @property
    def _numbers(self) -> str:
        text = f"R-hat is up to {self.r_hat:.2f} and ESS from {self.ess:.0f}."
        if self.pool.chains < 2:
            text = f"R-hat takes two chains; ESS is from {self.ess:.0f}."
        if np.isnan(self.pool.spread.size):
            return text
        changes = {f"the pooled sd of {self.name}": f"{self.pool.spread.size:+.0%}"}
        changes |= {n: f"{one.size:+.2f} sd" for n, one in self.pool.trends.items()}
        told = ", ".join(f"{name} {size}" for name, size in changes.items())
        return f"{text} From the first half of the draws to the second: {told}."

    @property
    def _fits(self) -> str:
        if self.has_mixed or self.pool.chains < 2 or not self.fits.data_vars:
            return ""
        apart = [name for name, width in self.pool.widths.items() if width < APART]
        told = [
            f"{name} {float(means.min()):.4g} to {float(means.max()):.4g}"
            for name, means in self.fits.data_vars.items()
        ]
        what = "different fits" if apart else "different trees of one fit"
        return f"Chains sit in {what}: means by chain are {', '.join(told)}."

    @property
    def _where(self) -> str:
        if self.has_mixed or self.pool.chains < 2:
            return ""
        width = self.rows["width"]
        narrow = float((width < NARROW).mean())
        which = width.argsort()[:LISTED].to_numpy()
        text = f"At {narrow:.0%} of the rows a chain's own interval is less than {NARROW:g} as wide"
        text += f", least at rows {', '.join(str(k) for k in self.rows['row'].to_numpy()[which])}."
        top = [(names, share) for names, share in self.shares.items() if names and share > NAMED]
        told = ", ".join(f"{' and '.join(names)} {share:.2f}" for names, share in top[:LISTED])
        level = self.shares.get((), 0.0)
        if level > NAMED:
            told = ", ".join(one for one in (f"the level {level:.2f}", told) if one)
        if told:
            text += f" Of the variance between chains' means explain: {told}."
        if self.tiled:
            text += (
                f" Chains agree about {' and '.join(self.tiled)} one by one, and place small steps "
                "of their surface elsewhere: harmless for the pool."
            )
        return text

    @property
    def tiled(self) -> tuple[str, ...]:
        """The pair of columns whose surface chains tile differently; empty if there is none."""
        pairs = [names for names in self.shares if len(names) == 2]
        for names in pairs[:1]:
            alone = [self.shares.get((name,), 0.0) for name in names]
            if self.shares[names] > TILING + max(alone):
                return names
        return ()

    @property
    def _splits(self) -> str:
        if not self.splits > 0:
            return ""
        return (
            f"Of {self.splits:.0f} splits {self.loose:.0f} are loosely bound: in another column, "
            "or gone, half of the draws later."
        )

    @property
    def _coverage(self) -> str:
        if self.pool.chains < 2 or self.has_mixed or self.pool.verdict in ("warm-up", *TOLD):
            return ""
        return (
            f"Of 95% intervals expect {self.pool.coverage_of_chain:.2f} to cover for one chain, "
            f"{self.pool.coverage_of_pool:.2f} for all {self.pool.chains} together."
        )

    @property
    def _advice(self) -> str:
        if self.has_mixed:
            return "What to do: nothing."
        verdict = self.pool.verdict
        advice = [self.pool.advice if self.goes_on else ANEW.get(verdict, self.pool.advice)]
        bound = self.splits > 0 and self.loose < LOOSE * self.splits
        if bound and verdict in ("few", "pool", "apart"):
            advice.append("More trees (m=) have more loosely bound splits, and mix better.")
        return f"What to do: {' '.join(advice)}"


def diagnose(
    idata,
    model: pm.Model | None = None,
    rows=None,
    *,
    var_name: str | None = None,
    progressbar: bool = True,
) -> Diagnosis:
    """Say what chains have not agreed on, whether it matters, and what to do.

    Where R-hat of a function of trees is large, three things are possible. Chains have not reached
    the posterior; they fit the data differently well; or they sit in different trees of one fit,
    which is harmless if there are enough of them. The differences of the chains' means over rows
    say in which columns they differ.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rows : (n, p) array or frame, optional
        Rows at which it is judged, held-out ones for example. Default: the rows in the model.
    var_name : str, optional
        Name of the function, if the model has several.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    Diagnosis
        To print; its attributes hold the numbers, and `plot_diagnosis` draws it.

    Raises
    ------
    ValueError
        For a function that does not exist; the message lists those that do.

    Notes
    -----
    R-hat, ESS and the pool of chains are computed from all draws at up to 50 rows. Means and widths
    by row come from up to 50 draws of each chain at up to 5,000 rows. A table of a column explains
    the share of the variance of chains' means that means over its cells do, less what cells would
    by chance (the adjusted R2).

    Coverage is what intervals have if f and the mean of each chain are draws of one Normal
    distribution. Chains that are still on their way differ by more, and then all of them together
    cover more often.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021). Rank-normalization, folding, and
    localization: an improved R-hat. Bayesian Analysis 16(2).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=20, chains=2, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.diagnose(idata, model, progressbar=False)
    >>> found.pool.verdict
    'short'
    """
    model = model_of(pm.modelcontext(model))
    idata = draws_of(idata)
    function = Function(idata, model, var_name)
    X = function.rows(rows, "rows")
    wide = evenly_spaced(len(X), ROWS)
    few, many = _values(function, X[evenly_spaced(len(X), ENTRIES)], X[wide], progressbar)
    posterior = idata["posterior"].to_dataset()
    scalars = scalars_of(posterior, model)
    pool = judge_pool(few, scalars)
    means = many.mean(axis=1)  # chain, output, row
    by_row = xr.Dataset(
        {
            "mean": ("row", means.mean(axis=(0, 1))),
            "sd": ("row", np.sqrt(many.var(axis=(0, 1)).mean(axis=0))),
            "width": ("row", _widths(many)),
        },
        {"row": wide},
    )
    forests = [ForestDraws(idata, model, one.name, soft_too=True) for one in _forests(function)]
    columns, splits, loose = _splits(forests, function.n_columns)
    names = [str(name) for name in function.names]
    apart = (means - means.mean(axis=0)).reshape(-1, len(wide))
    return Diagnosis(
        function.name,
        pool,
        *worst(few),
        rows=by_row,
        shares=directions(apart, X[wide], names, columns) if len(means) > 1 else {},
        fits=_fits(scalars, idata),
        splits=splits,
        loose=loose,
        run=_by_parts(few, scalars),
        goes_on=STATES in idata.children,
    )


def _forests(function: Function) -> list:
    return [tree for tree in function.trees if is_forest(tree) or is_soft_forest(tree)]


def _values(function: Function, few: np.ndarray, many: np.ndarray, progressbar: bool):
    """(chains, draws, entries) values of all draws, and (chains, draws, outputs, rows) of some."""
    chains, draws = function.shape
    chosen = thinned(chains, draws, DRAWS * chains)
    first, second = [], []
    places = list(np.ndindex(chains, draws))
    for chain, draw in track(places, function.name, len(places), progressbar):
        at = function.at(chain, draw)
        first.append(at(few).ravel())
        if draw in chosen:
            second.append(at(many).reshape(-1, len(many)))
    of_all = np.array(first).reshape(chains, draws, -1)
    return of_all, np.array(second).reshape(chains, len(chosen), -1, len(many))


def _widths(many: np.ndarray) -> np.ndarray:
    """(rows,) widths of an interval of one chain, relative to that of the pool."""
    if len(many) < 2 or many.shape[1] < 2:
        return np.full(many.shape[-1], np.nan)
    within = many.var(axis=1, ddof=1).mean(axis=0).sum(axis=0)
    total = within + many.mean(axis=1).var(axis=0, ddof=1).sum(axis=0)
    return np.sqrt(np.divide(within, total, out=np.ones_like(total), where=total > 0))


def _fits(scalars: dict[str, np.ndarray], idata: xr.DataTree) -> xr.Dataset:
    """Means by chain of scalars, and of the log-likelihood where the draws have it."""
    found = {name: values.mean(axis=1) for name, values in scalars.items()}
    if "log_likelihood" in idata.children:
        group = idata["log_likelihood"].to_dataset()
        summed = [one.transpose(*SAMPLE, ...).to_numpy() for one in group.data_vars.values()]
        each = [one.reshape(*one.shape[:2], -1).sum(axis=-1) for one in summed]
        if each:
            found["log_likelihood"] = np.sum(each, axis=0).mean(axis=1)
    return xr.Dataset({name: ("chain", means) for name, means in found.items()})


def _by_parts(f: np.ndarray, scalars: dict[str, np.ndarray]) -> xr.Dataset:
    """The pooled sd of f and means of scalars, by parts of the draws, relative to all."""
    draws = f.shape[1]
    parts = np.array_split(np.arange(draws), min(PARTS, draws))
    sd = np.sqrt(f.var(axis=(0, 1)).sum()) or 1.0
    found = {"spread": [np.sqrt(f[:, k].var(axis=(0, 1)).sum()) / sd for k in parts]}
    for name, values in scalars.items():
        scale = values.std() or 1.0
        name = free_name(name, {"part", *found})
        found[name] = [(values[:, k].mean() - values.mean()) / scale for k in parts]
    at = [(k[-1] + 1) / draws for k in parts]
    return xr.Dataset({n: ("part", np.array(v)) for n, v in found.items()}, {"part": at})


# ------------------------------------------------------------------------- Splits that do not stay


def _splits(forests: list[ForestDraws], p: int) -> tuple[np.ndarray, float, float]:
    """Splits of each column, in a draw, and how many are gone half of the draws later."""
    columns, splits, gone = np.zeros(p), 0.0, 0.0
    for one in forests:
        chains, draws = one.shape
        later = draws // 2
        starts = evenly_spaced(draws - later, PARTS)
        for chain in range(chains):
            for draw in starts:
                now = columns_of_trees(one.value(chain, draw), one.layout.m, p)
                columns += now.sum(axis=0)
                then = columns_of_trees(one.value(chain, draw + later), one.layout.m, p)
                each = chains * len(starts)
                splits += now.sum() / each
                gone += (now - np.minimum(now, then)).sum() / each
    return columns, splits, gone


def columns_of_trees(value: np.ndarray, m: int, p: int) -> np.ndarray:
    """(m, p) numbers of splits in each column, by tree, of an encoded value."""
    kinds = np.where(value[:, 0] >= 0, 1, -1).cumsum()
    n = int(np.flatnonzero(kinds == -m)[0]) + 1
    ended = -np.minimum.accumulate(np.concatenate([[0], kinds[: n - 1]]))
    split = np.flatnonzero(value[:n, 0] >= 0)
    counts = np.zeros((m, p), dtype=np.int64)
    np.add.at(counts, (ended[split], value[split, 0].astype(np.int64) % p), 1)
    return counts
