"""pymc-bart's names, arguments and shapes: ``import pymc_trees.pymc_bart as pmb``.

Models written for pymc-bart 0.13 are sampled by the steps of this package. Plots and importance
take a BART variable without its draws, so the module keeps, for each model with forests, what
`pymc.sample` returned last; importing it wraps that function. Where draws come from a file, give
them as ``idata=``. `docs/from_pymc_bart.md` says what differs.
"""

import re
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pymc as pm
import xarray as xr
from arviz_base import rcParams
from arviz_plots import plot_convergence_dist
from arviz_stats.base import array_stats
from pytensor.graph.basic import Variable
from scipy.signal import savgol_filter

import pymc_trees as pmt
from pymc_trees.arguments import check_choice, check_number
from pymc_trees.hooks.wrap import SAMPLE, wrap

_DRAWS: WeakKeyDictionary[pm.Model, Any] = WeakKeyDictionary()
"""What `pymc.sample` returned last for a model with forests; None before that."""


def _sample(original, *args, **kwargs):
    draws = original(*args, **kwargs)
    model = pm.modelcontext(kwargs.get("model"))
    if isinstance(draws, xr.DataTree) and any(v.name.endswith("_forest") for v in model.free_RVs):
        _DRAWS[model] = draws
    return draws


wrap(SAMPLE, "sample", _sample)


ContinuousSplitRule, OneHotSplitRule = "ContinuousSplit", "OneHotSplit"
SubsetSplitRule = "SubsetSplit"


def _rule(rule) -> str:
    short = re.sub("split(rule)?$", "", str(rule).lower())
    return check_choice("split_rules", short, ("continuous", "onehot", "subset"))


def BART(name, X, Y, m=50, alpha=0.95, beta=2.0, response="constant", split_rules=None, **kwargs):
    """Sum of trees, declared as in pymc-bart; `pymc_trees.BART` explains the arguments.

    Outputs share their trees unless ``separate_trees=True``. ``size=`` must be None.
    """
    if kwargs.pop("size", None) is not None:
        raise ValueError("size: leave it out, and give shape=(K, n) for K outputs.")
    if split_rules is not None:
        split_rules = [_rule(rule) for rule in split_rules]
    Y = Y.eval() if isinstance(Y, Variable) else Y
    kwargs = {"separate_trees": False, "response": response, "split_rules": split_rules} | kwargs
    mu = pmt.BART(name, X, Y, m, alpha, beta, **kwargs)
    _DRAWS.setdefault(pm.modelcontext(None), None)
    return mu


def PGBART(vars=None, num_particles=10, batch=(1.0, 1.0), **options):
    """Particle Gibbs with pymc-bart's arguments: a `pymc_trees.ParticleGibbs`.

    ``pm.sample()`` without it assigns `pymc_trees.Hybrid`, which mixes faster.
    """
    return pmt.ParticleGibbs(vars, num_particles=num_particles, batch=tuple(batch), **options)


# ------------------------------------------------------------------- A variable, its model, draws


class _Function:
    """A BART variable under some of its draws, in the shapes of pymc-bart."""

    def __init__(self, bartrv, idata, samples: int, seed):
        check_number("samples", samples, 1)
        models = [one for one in _DRAWS if any(v is bartrv for v in one.named_vars.values())]
        if not models:
            raise ValueError(
                "bartrv must be a variable made by BART of pymc_trees.pymc_bart, in a model that "
                "still exists; for several outputs declare one BART with shape=(K, n)."
            )
        self.model, self.name = models[0], bartrv.name
        idata = _DRAWS[self.model] if idata is None else idata
        if idata is None:
            raise ValueError(
                f"bartrv={self.name!r} has no draws yet: call pm.sample() first, or give the draws "
                "as idata=."
            )
        posterior = idata["posterior"].to_dataset()
        rng, chains = np.random.default_rng(seed), posterior.sizes["chain"]
        n = min(posterior.sizes["draw"], -(-samples // chains))
        at = np.sort(rng.choice(posterior.sizes["draw"], n, replace=False))
        self.draws = xr.DataTree.from_dict({"posterior": posterior.isel(draw=at)})
        self.n_draws = chains * n
        self.chosen = np.resize(rng.permutation(self.n_draws), samples)
        self.seed = int(rng.integers(2**31))
        self.n_outputs = 1 if bartrv.ndim == 1 else int(bartrv.shape[0].eval())
        alone = {"forest": self.name, "progressbar": False}
        counts = pmt.get_variable_inclusion(self.draws, self.model, **alone)
        self.names = [str(one) for one in counts["feature"].to_numpy()]
        self.options = {"var_name": self.name, "progressbar": False}

    def rows(self, X):
        """Rows of X as the model knows them: an array, or a frame with its columns."""
        is_array = self.names == [f"x{k}" for k in range(len(self.names))]
        return X.to_numpy() if is_array and hasattr(X, "columns") else X

    def stacked(self, values: xr.DataArray, *last: str) -> np.ndarray:
        """(samples, *last, outputs) array."""
        [*outputs] = [d for d in values.dims if d not in ("chain", "draw", *last)]
        array = values.transpose("chain", "draw", *last, *outputs).to_numpy()
        return array.reshape(-1, *(values.sizes[d] for d in last), self.n_outputs)[self.chosen]

    def dependence(self, X, column: int, values, kind="average", **options):
        """Values at which f is known, and f there: draws, (rows,) values, outputs."""
        X = self.rows(X)
        feature = str(X.columns[column]) if hasattr(X, "columns") else self.names[column]
        options |= {"grid": values, "kind": kind} | self.options
        curves = pmt.partial_dependence(self.draws, self.model, feature, X, **options)[kind]
        [dim] = [d for d in curves.dims if d in (feature, f"{feature}_")]
        at = curves[dim].to_numpy()
        if at.dtype.kind == "f":
            curves, at = curves.isel({dim: ~np.isnan(at)}), at[~np.isnan(at)]
        return at, self.stacked(curves, *(["row"] if kind == "individual" else []), dim)


def _table(X, discrete=None):
    """X, names of its columns, the columns, numbers of those that are discrete."""
    X = X.eval() if isinstance(X, Variable) else X
    if hasattr(X, "columns"):
        names, columns = [str(name) for name in X.columns], [np.asarray(X[c]) for c in X.columns]
    else:
        X = np.asarray(X)
        names, columns = [f"X_{k}" for k in range(X.shape[1])], list(X.T)
    levels = (k for k, column in enumerate(columns) if column.dtype.kind not in "biuf")
    return X, names, columns, {*(discrete or []), *levels}


def _values(column, discrete: bool, interval: str, values, most=100):
    """Values of a column at which f is shown; None for a column of levels."""
    check_choice("xs_interval", interval, ("insample", "linear", "quantiles"))
    if column.dtype.kind not in "biuf":
        return None
    column = np.asarray(column[~np.isnan(column.astype(float))], dtype=float)
    if discrete or interval == "insample":
        distinct = np.unique(column)
        return distinct[np.unique(np.linspace(0, distinct.size - 1, most).astype(int))]
    if interval == "linear":
        return np.linspace(column.min(), column.max(), 10 if values is None else values)
    default = [0.05, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95]
    return np.unique(np.quantile(column, default if values is None else values))


def _axes(grid, n: int, ax, figsize=None, **share):
    """A list of n axes, in a column, in a row, or as ``(rows, columns)`` says."""
    import matplotlib.pyplot as plt

    if ax is not None:
        return list(np.ravel(ax))
    if not isinstance(grid, tuple):
        check_choice("grid", grid, ("long", "wide"))
    rows, columns = {"long": (n, 1), "wide": (1, n)}.get(grid, grid)
    rows = max(rows, -(-n // columns))
    fig, axes = plt.subplots(rows, columns, figsize=figsize, squeeze=False, **share)
    for unused in axes.flat[n:]:
        fig.delaxes(unused)
    return axes.ravel()[:n]


class _Style(NamedTuple):
    """Keywords of `plot_pdp` and `plot_ice` alike: columns, draws, and how curves look."""

    var_idx: Any = None
    var_discrete: Any = None
    func: Any = None
    samples: int = 200
    random_seed: Any = None
    sharey: bool = True
    smooth: bool = True
    grid: Any = "long"
    color: Any = "C0"
    color_mean: Any = "C0"
    alpha: float = 0.1
    figsize: Any = None
    smooth_kwargs: dict | None = None
    ax: Any = None
    idata: Any = None

    def smoothed(self, x, y):
        """Columns of y at 200 values of x: interpolated, then through a Savitzky-Golay filter."""
        if not self.smooth or x.size < 2:
            return x, y
        at = np.linspace(x.min(), x.max(), 200)
        y = np.column_stack([np.interp(at, x, one) for one in y.T])
        options = {"window_length": 55, "polyorder": 2, **(self.smooth_kwargs or {})}
        return at, savgol_filter(y, axis=0, **options)

    def drawn(self, panels, draw, names, Y):
        """The axes, one for each panel: number of a column, its values, f there."""
        axes = _axes(self.grid, len(panels), self.ax, self.figsize, sharey=self.sharey)
        for axis, (k, at, f) in zip(axes, panels):
            draw(axis, k, at, f)
            axis.set_xlabel(names[k])
        text = f"Partial {getattr(Y, 'name', None) or 'Y'}"
        font = {"va": "center", "rotation": "vertical", "fontsize": 15}
        axes[0].get_figure().text(-0.05, 0.5, text, **font)
        return axes


def _hdi(values):
    return array_stats.hdi(values, prob=rcParams["stats.ci_prob"], axis=0)


def plot_pdp(bartrv, X, Y=None, xs_interval="quantiles", xs_values=None, *, ref_line=True, **style):
    """Partial dependence on each column, drawn as pymc-bart does; returns the axes.

    ``idata`` are the draws, by default those of the last `pymc.sample`; ``func`` gets an array
    (samples, values, outputs). Other keywords are pymc-bart's.
    """
    look, bartrvs = _Style(**style), bartrv if isinstance(bartrv, list) else [bartrv]
    functions = [_Function(one, look.idata, look.samples, look.random_seed) for one in bartrvs]
    X, names, columns, discrete = _table(X, look.var_discrete)
    panels = []
    for k in range(len(names)) if look.var_idx is None else look.var_idx:
        values = _values(columns[k], k in discrete, xs_interval, xs_values)
        parts = [one.dependence(X, k, values) for one in functions]
        f = (look.func or np.asarray)(np.concatenate([part for _, part in parts], axis=-1))
        panels += [(k, parts[0][0], one) for one in np.moveaxis(np.asarray(f), -1, 0)]

    def draw(axis, k, at, f):
        mean, band = f.mean(axis=0), _hdi(f)
        if k in discrete:
            axis.errorbar(at, mean, np.abs(band.T - mean), fmt=".", color=look.color)
            axis.set_xticks(at)
        else:
            x, y = look.smoothed(at, np.column_stack([mean, band]))
            axis.fill_between(x, y[:, 1], y[:, 2], color=look.color, alpha=look.alpha)
            axis.plot(x, y[:, 0], color=look.color_mean)
        if ref_line:
            axis.axhline(np.mean([f.mean() for *_, f in panels]), color="0.7", linestyle="--")

    return look.drawn(panels, draw, names, Y)


def plot_ice(bartrv, X, Y=None, *, centered=True, instances=30, **keywords):
    """Posterior mean of f at single rows as one column varies; returns the axes.

    ``func`` gets an array (rows, values, outputs). Keywords are those of `plot_pdp`.
    """
    look = _Style(**{"samples": 100} | keywords)
    function = _Function(bartrv, look.idata, look.samples, look.random_seed)
    X, names, columns, discrete = _table(X, look.var_discrete)
    options = {"subsample": min(instances, len(X)), "random_state": function.seed}
    panels = []
    for k in range(len(names)) if look.var_idx is None else look.var_idx:
        values = _values(columns[k], k in discrete, "insample", None, most=40)
        at, f = function.dependence(X, k, values, "individual", **options)
        f = np.asarray((look.func or np.asarray)(f.mean(axis=0)))
        panels += [(k, at, y.T) for y in np.moveaxis(f - f[:, :1] if centered else f, -1, 0)]

    def draw(axis, k, at, f):
        x, f = (at, f) if k in discrete else look.smoothed(at, f)
        one, mean = (".", "o") if k in discrete else ("-", "-")
        axis.plot(x, f, one, color=look.color, alpha=look.alpha)
        axis.plot(x, f.mean(axis=1), mean, color=look.color_mean)

    return look.drawn(panels, draw, names, Y)


# -------------------------------------------------------------------- Convergence and importance


def plot_convergence(idata, var_name=None, kind="ecdf", figsize=None, ax=None):
    """ESS and R-hat of the values of f, by `arviz_plots.plot_convergence_dist`; a list of axes."""
    if ax is not None:
        raise TypeError("ax: leave it out; the picture has three panels in a figure of its own.")
    names = sorted(set(_functions(idata).values())) if var_name is None else var_name
    look: dict[str, Any] = {} if figsize is None else {"figure_kwargs": {"figsize": figsize}}
    drawn = plot_convergence_dist(idata, var_names=names, kind=kind, backend="matplotlib", **look)
    return drawn.viz["figure"].item().axes


def _functions(idata) -> dict[str, str]:
    """Functions of forests: mu of mu_forest, and of mu_0_forest and mu_1_forest of two outputs."""
    groups = [idata[group] for group in ("posterior", "forests") if group in idata]
    forests = {v for group in groups for v in group.data_vars if v.endswith("_forest")}
    names, known, found = {v.removesuffix("_forest") for v in forests}, set(idata["posterior"]), {}
    for name in names:
        short = re.sub(r"_\d+$", "", name)
        alike = {v for v in names if re.fullmatch(rf"{re.escape(short)}_\d+", v)}
        numbered = {f"{short}_{k}" for k in range(len(alike))}
        found[f"{name}_forest"] = short if alike == numbered and not alike <= known else name
    return found


def get_variable_inclusion(idata, X, model=None, bart_var_name=None, labels=None, to_kulprit=False):
    """Shares of the splits that are on each column, largest first, and the names of the columns."""
    stats, functions, counted = idata["sample_stats"], _functions(idata), "variable_inclusion"
    names = sorted(set(functions.values()))
    if names and bart_var_name not in (names if len(names) > 1 else [None, *names]):
        raise ValueError(f"bart_var_name={bart_var_name!r}: choose from {names}.")
    of = {v: functions.get(v.removeprefix(f"{counted}_")) for v in stats if v.startswith(counted)}
    chosen = [v for v in of if bart_var_name in (None, of[v]) or len(of) == 1]
    counts = sum(stats[v].to_numpy().reshape(-1, stats[v].shape[-1]).sum(axis=0) for v in chosen)
    order = np.argsort(-counts, kind="stable")
    names = [str(c) for c in X.columns] if hasattr(X, "columns") else labels
    names = [str(k) if names is None else names[k] for k in order]
    if to_kulprit:
        return [names[:k] for k in range(len(names) + 1)]
    return (counts / counts.sum())[order], names


def _added(names) -> list[str]:
    return ["+ " * (k > 0) + name for k, name in enumerate(names)]


def plot_variable_inclusion(idata, X, labels=None, figsize=None, plot_kwargs=None, ax=None, **of):
    """Plot what `get_variable_inclusion` returns, of ``bart_var_name=``; returns the axes."""
    shares, names = get_variable_inclusion(idata, X, labels=labels, **of)
    look = {"color": "k", "marker": "o", "ls": "-", "rotation": 0} | (plot_kwargs or {})
    ax = _axes("long", 1, ax, figsize or (8, 3))[0]
    ax.axhline(1 / len(names), color="0.5", linestyle="--")
    ax.set_xticks(range(len(names)), _added(names), rotation=look.pop("rotation"))
    ax.plot(shares, **look)
    ax.set_ylim(0, 1)
    return ax


def _r2(a, b):
    a, b = (v.reshape(len(v), -1) - v.reshape(len(v), -1).mean(axis=1)[:, None] for v in (a, b))
    least = np.finfo(float).tiny
    return (a * b).sum(axis=1) ** 2 / np.maximum((a**2).sum(axis=1) * (b**2).sum(axis=1), least)


def compute_variable_importance(
    idata, bartrv, X, model=None, method="VI", fixed=0, samples=50, random_seed=None
):
    """R2 of submodels of one column, two, and so on, as pymc-bart's dict of arrays.

    R2 is of a submodel in one draw and f in another, as in pymc-bart, so that the last submodel,
    which has all columns, is no better than the line of reference.
    """
    if model is not None:
        _DRAWS.setdefault(model, None)
    one, (X, names, *_) = _Function(bartrv, idata, samples, random_seed), _table(X)
    fixed = fixed if method == "backward_VI" else 0
    options = one.options | {"method": method, "fixed": fixed, "samples": one.n_draws}
    found = pmt.compute_variable_importance(one.draws, one.model, one.rows(X), **options)
    preds = np.swapaxes(one.stacked(found["prediction"], "submodel", "row"), 0, 1)
    full = one.stacked(found["full"], "row")
    r2 = np.array([_r2(submodel, np.roll(full, 1, axis=0)) for submodel in preds])
    known = names if hasattr(one.rows(X), "columns") else one.names
    indices = np.array([known.index(str(name)) for name in found["feature"].to_numpy()])
    labels = [names[k] if hasattr(X, "columns") else str(k) for k in indices]
    return {
        "indices": indices,
        "labels": np.array(_added(labels)),
        "r2_mean": r2.mean(axis=1),
        "r2_hdi": np.array([_hdi(values) for values in r2]),
        "preds": preds if one.n_outputs > 1 else preds[..., 0],
        "preds_all": full if one.n_outputs > 1 else full[..., 0],
    }


def vi_to_kulprit(vi_results):
    """Names of the columns of each submodel, from none to all but one."""
    names = [str(label).removeprefix("+ ") for label in vi_results["labels"]]
    return [names[:k] for k in range(len(names))]


def _submodels(vi_results, submodels, labels):
    at = np.arange(len(vi_results["labels"])) if submodels is None else np.sort(submodels)
    return at, vi_results["labels"][at] if labels is None else labels


def plot_variable_importance(
    vi_results, submodels=None, labels=None, figsize=None, plot_kwargs=None, ax=None
):
    """R2 of each submodel, beside that of f in two draws; returns the axes."""
    at, labels = _submodels(vi_results, submodels, labels)
    look = plot_kwargs or {}
    mean, band, full = (vi_results[key] for key in ("r2_mean", "r2_hdi", "preds_all"))
    ax = _axes("long", 1, ax, figsize or (8, 3))[0]
    points = {"fmt": look.get("marker_r2", "o"), "mfc": look.get("marker_fc_r2", "white")}
    error = np.abs(band[at].T - mean[at])
    ax.errorbar(range(at.size), mean[at], error, color=look.get("color_r2", "k"), **points)
    reference, grey = _r2(full[1:], full[:-1]), look.get("color_ref", "grey")
    ax.axhline(reference.mean(), ls=look.get("ls_ref", "--"), color=grey)
    ax.fill_between([-0.5, at.size - 0.5], *_hdi(reference), alpha=0.1, color=grey)
    ax.set_xticks(range(at.size), labels, rotation=look.get("rotation", 0))
    ax.set_ylabel("R²", rotation=0, labelpad=12)
    ax.set(ylim=(0, 1), xlim=(-0.5, at.size - 0.5))
    return ax


def plot_scatter_submodels(vi_results, func=None, submodels=None, grid="long", **options):
    """Predictions of submodels against those of f, a panel for each; returns the axes.

    Further keywords are pymc-bart's: ``labels``, ``figsize``, ``plot_kwargs`` and ``ax``.
    """
    at, labels = _submodels(vi_results, submodels, options.pop("labels", None))
    get, func = (options.pop("plot_kwargs", None) or {}).get, func or (lambda values: values)
    sub, full = func(vi_results["preds"][at]), func(vi_results["preds_all"])
    several = full.ndim > 2
    sub, full = (v if several else v[..., None] for v in (sub, full))
    ax, figsize = options.pop("ax", None), options.pop("figsize", None)
    axes = _axes(grid, at.size * full.shape[-1], ax, figsize, sharex=True, sharey=True, **options)
    ends = [min(sub.min(), full.min()), max(sub.max(), full.max())]
    for number, axis in enumerate(axes):
        k, place = divmod(number, at.size)
        points = {"marker": get("marker_scatter", "."), "alpha": get("alpha_scatter", 0.1)}
        points["color"] = get("color_scatter", f"C{k}")
        axis.plot(sub[place, ..., k], full[..., k], ls="", **points)
        axis.axline(*zip(ends, ends), color=get("color_ref", "0.5"), ls=get("ls_ref", "--"))
        axis.set(xlabel=labels[place], ylabel="ref model", title=f"Category {k}" if several else "")
    return axes
