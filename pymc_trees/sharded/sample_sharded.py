"""`sample_sharded`: a BART whose rows are in shards, on one or several machines."""

import time
import warnings
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.core.forest.trees import count_forest
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.moves.catalogue import MOVES, standard_moves
from pymc_trees.core.moves.contract import move_name
from pymc_trees.core.samplers.slice_draw import INITIAL_WIDTH, adapted_width, slice_draw
from pymc_trees.core.value.encode import encode
from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.capacity import ForestTooLargeError, too_small
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.inference.results import check_var_names, data_tree, record_points
from pymc_trees.progress import reporting
from pymc_trees.sharded.kernels.driver import Driver, FullPoolError, ResidualOverflowError
from pymc_trees.sharded.kernels.shard import Answer, Message
from pymc_trees.sharded.model import ShardedModel, read_model
from pymc_trees.sharded.transports import ShardLostError, Shards, make_shards
from pymc_trees.targets.noise import SummedDensity
from pymc_trees.targets.settings import compiled_at, numbers_at

# ------------------------------------------ One chain: its messages to the shards, and its draws


WEIGHTS = (0.25, 0.25, 0.4, 0.1)
"""Weights of grow, prune, change and swap (Chipman 2010)."""


class Sigma:
    """The sd of the noise, if it is a variable: its draws, and the precision of a row."""

    def __init__(self, model: pm.Model, rv: Variable, sd: Variable):
        self.name = model.rvs_to_values[rv].name
        self._density = SummedDensity(model, [rv], [sd])
        [sd] = model.replace_rvs_by_values([sd])
        self._sd, self._needs = compiled_at(model, [], sd.sum())

    def draw(self, rng, point: dict, root: float, n: int, width: float) -> float:
        """Draw a value given the root of the residual sum of squares."""
        density, start = self._density.at(point, [root, float(n)]), float(point[self.name])
        with np.errstate(all="ignore"):
            new, _ = slice_draw(rng, lambda v: density(np.array(v)), start, width)
        if np.isnan(new):
            raise ValueError(
                f"At this point the density of {self.name} is 0: give it a prior that covers the "
                "spread of y, or an initial value (initval=) inside the prior."
            )
        return new

    def precision(self, point: dict) -> float:
        """Precision of a row at a point."""
        return float(self._sd(*numbers_at(point, self._needs))) ** -2.0


class Chain:
    """A chain that records its draws.

    Parameters
    ----------
    model : ShardedModel
    rng : numpy.random.Generator
    sigma : Sigma or None
    """

    def __init__(self, model: ShardedModel, rng: np.random.Generator, sigma: Sigma | None):
        layout = model.layout
        size = (layout.m, layout.max_nodes, layout.n_rows)
        moves = standard_moves(np.array(WEIGHTS))
        self.driver = Driver(rng, model.without_cells, model.prior, model.scale, size, moves)
        self.model, self.rng, self.sigma = model, rng, sigma
        self.point, self.precision, self.width = dict(model.start), model.precision, INITIAL_WIDTH
        self.points: list[dict] = []
        self.stats: list[dict] = []
        self.n_draws = 0
        """Number of draws so far, including tuning."""

    def run(self, tune: int, draws: int, sweeps: int) -> Generator[Message, Answer, None]:
        """Run the chain. Yields messages to the shards; the caller sends back each answer."""
        yield from self.driver.start()
        for k in range(tune + draws):
            self.driver.counts[:] = 0
            for _ in range(sweeps):
                yield from self.driver.sweep(self.precision)
                if self.sigma is not None:
                    self._draw_sigma(self.sigma, k if k < tune else None)
            if k >= tune:
                self._record(self._log_likelihood())
            self.n_draws = k + 1

    def _log_likelihood(self) -> float:
        n, w = self.model.layout.n_rows, self.precision
        squares = (self._root()) ** 2
        return 0.5 * (n * np.log(w / (2 * np.pi)) - w * squares) + self.model.log_scale

    def _root(self) -> float:
        return self.model.scale.unit * float(np.sqrt(float(self.driver.square_sum)))

    def _draw_sigma(self, sigma: Sigma, n_tunes: int | None) -> None:
        old = float(self.point[sigma.name])
        root, n = self._root(), self.model.layout.n_rows
        new = sigma.draw(self.rng, self.point, root, n, self.width)
        if n_tunes is not None:
            self.width = adapted_width(self.width, abs(new - old), n_tunes)
        self.point[sigma.name] = np.array(new)
        self.precision = sigma.precision(self.point)

    def _record(self, log_likelihood: float) -> None:
        model, driver = self.model, self.driver
        trees, nodes = driver.forest.trees, driver.work.nodes
        given = (sizes(model.layout), model.fingerprint, nodes)
        value = encode(trees, driver.forest.design, model.prior, *given)
        self.points.append(self.point | {model.value_name: value})
        proposed, accepted = driver.counts
        stats: dict = {
            f"accept_{move_name(move)}": accepted[k] / proposed[k] if proposed[k] else np.nan
            for k, move in enumerate(MOVES)
        }
        inclusion = np.zeros(model.design.varies.size, dtype=np.int64)
        stats["n_leaves"], stats["max_depth"] = count_forest(trees, nodes, inclusion)
        stats |= {"variable_inclusion": inclusion, "log_likelihood": log_likelihood}
        self.stats.append(stats)


# --------------------------------------------------------------------------------------------------


def sample_sharded(
    model=None,
    shards=1,
    *,
    draws=1000,
    tune=1000,
    chains=4,
    sweeps=1,
    random_seed=None,
    progressbar=True,
    var_names=None,
) -> xr.DataTree:
    """Sample a model with one `BART` whose rows are distributed over several processes or machines.

    Every shard keeps its rows and their residuals; this process keeps the trees and the random
    generator, asks the shards for counts and sums, and accepts or rejects (Pratola 2014). Sums are
    sums of integers and therefore exact: the same seed gives the same draws, bit for bit, for any
    number and location of shards.

    Parameters
    ----------
    model : pymc.Model, optional
        One `BART` of constant `NormalLeaf` values over numeric columns, in the mean of one
        `pymc.Normal` (or LogNormal) whose sigma is a number or has a prior of its own. Default: the
        model on the context stack.
    shards : int, distributed.Client or the module ray, default 1
        Where the rows go: to this number of shards in the calling process; to an actor on each
        worker of a Dask cluster; or, with ``shards=ray`` after ``ray.init()``, to an actor on each
        processor of a Ray cluster.
    draws, tune : int, default 1000
        Draws of each chain that are kept, and draws before them that are discarded.
    chains : int, default 4
        Number of chains. Their messages travel together, so the latency is that of one chain.
    sweeps : int, default 1
        Sweeps per draw; in each sweep every tree receives one proposal and new leaf values.
    random_seed : int, sequence of int or numpy.random.Generator, optional
        Same seed, same draws.
    progressbar : bool, default True
        Whether to show the number of draws over all chains.
    var_names : sequence of str, optional
        Variables of the posterior. Default: all except functions of the forest, which have an entry
        for each row; `pm.sample_posterior_predictive` computes them from the trees.

    Returns
    -------
    xarray.DataTree
        ``posterior``, ``observed_data``, ``constant_data``, and ``sample_stats`` (chain, draw) with
        ``accept_grow``, ``accept_prune``, ``accept_change``, ``accept_swap`` (NaN where none was
        proposed), ``n_leaves``, ``max_depth``, ``variable_inclusion`` (of each column) and
        ``log_likelihood``. The attribute ``shards`` is their number.

    Raises
    ------
    ValueError, NotImplementedError, UnsupportedModelError
        For an invalid argument, or a part of the model that is not supported; the message names it.
    ForestTooLargeError
        The forest outgrew ``max_nodes`` of its declaration.
    ShardLostError
        A shard does not respond. As with the error above, ``error.idata`` holds the draws made so
        far.
    FloatingPointError
        Residuals grew beyond 16 times the range implied by the response and the leaf prior.

    Warns
    -----
    UserWarning
        An interrupted run returns the draws made so far.

    Notes
    -----
    A visit of a tree takes one round trip, which carries the new leaf values of the previous tree,
    the proposal for this tree, and a query about the next one. Visits of different trees of a chain
    cannot share a round trip, since each needs the residuals left by the previous one.

    The response and the leaf values are rounded to multiples of a power of two, ``2**-44`` of their
    range and ``2**-38`` with a million rows. The draws come from the exact posterior given the
    rounded response.

    The model holds X and y in the memory of the calling process; shards divide the time, and the
    memory of the residuals and leaf labels of the rows.

    References
    ----------
    Pratola, Chipman, Gattiker, Higdon, McCulloch and Rust (2014). Parallel Bayesian additive
    regression trees. Journal of Computational and Graphical Statistics 23(3), 830-852, section 3.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model():
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     sigma = pm.HalfNormal("sigma", 1)
    ...     y = pm.Normal("y", mu, sigma, observed=X[:, 0], shape=mu.shape)
    ...     idata = pmt.sample_sharded(
    ...         shards=2, draws=5, tune=10, chains=2, random_seed=1, progressbar=False)
    >>> sorted(idata.posterior.data_vars), idata.posterior["sigma"].shape
    (['mu_forest', 'sigma'], (2, 5))
    """
    model = pm.modelcontext(model)
    chains, sweeps = check_number("chains", chains, 1), check_number("sweeps", sweeps, 1)
    draws, tune = check_number("draws", draws, 1), check_number("tune", tune, 0)
    rng = check_seed(random_seed)
    started = time.perf_counter()
    plain = without_dims(model)
    sharded = read_model(plain)
    names = (
        _without_rows(plain, sharded) if var_names is None else check_var_names(model, var_names)
    )
    sigma = None if sharded.sigma is None else Sigma(plain, *sharded.sigma)
    runs = [Chain(sharded, child, sigma) for child in rng.spawn(chains)]

    def result():
        finished = min(len(run.points) for run in runs)
        return (
            _result(model, runs, finished, names, started, cluster.n_shards) if finished else None
        )

    cluster = make_shards(shards, sharded, chains)
    try:
        with reporting("Iterations", chains * (tune + draws), progressbar) as report:
            generators = [run.run(tune, draws, sweeps) for run in runs]
            _exchange(cluster, generators, report, runs)
    except KeyboardInterrupt:
        idata = result()
        if idata is None:
            raise
        warnings.warn(
            f"Interrupted: the result holds {idata.posterior.sizes['draw']} of {draws} draws.",
            stacklevel=2,
        )
        return idata
    except (FullPoolError, ResidualOverflowError, ShardLostError) as error:
        raise _with_draws(error, sharded, result()) from error
    finally:
        cluster.close()
    return result()


def _exchange(
    shards: Shards, generators: list, advance: Callable[[int], None], runs: list[Chain]
) -> None:
    """Pass messages and answers between chains and shards, one message of each chain at a time."""
    answers: dict[int, Any] = dict.fromkeys(range(len(generators)))
    while answers:
        messages = {}
        with deferred_interrupts():
            for chain, answer in answers.items():
                try:
                    messages[chain] = generators[chain].send(answer)
                except StopIteration:
                    continue
        answers = shards.ask(messages) if messages else {}
        advance(sum(run.n_draws for run in runs))


def _without_rows(model: pm.Model, sharded: ShardedModel) -> list[str]:
    """Names of the free variables, and of Deterministics that do not depend on the forest."""
    names = [v.name for v in model.free_RVs]
    for one in model.deterministics:
        if not any(v is sharded.forest for v in ancestors([one])):
            names.append(one.name)
    return names


def _result(model, runs: list[Chain], n_draws: int, names, started: float, n_shards: int):
    """The first draws of every chain."""
    points = np.empty((len(runs), n_draws), dtype=object)
    for k, run in enumerate(runs):
        points[k] = run.points[:n_draws]
    stats = {
        name: np.array([[draw[name] for draw in run.stats[:n_draws]] for run in runs])
        for name in runs[0].stats[0]
    }
    groups = {"posterior": record_points(model, points, names), "sample_stats": stats}
    return data_tree(model, groups, started, shards=n_shards)


def _with_draws(error: Exception, sharded: ShardedModel, idata) -> Exception:
    """The error that is raised, with the draws made before."""
    draws = "" if idata is None else " The draws made before are error.idata."
    name = sharded.forest.name
    if isinstance(error, FullPoolError):
        raised: Any = ForestTooLargeError(too_small(name, sharded.layout) + draws)
    elif isinstance(error, ResidualOverflowError):
        raised = FloatingPointError(
            f"Residuals of {name} outgrew the range that y and the leaf prior give them: give the "
            f"leaf a mean and an sd for which the sum of trees can reach y.{draws}"
        )
    else:
        raised = ShardLostError(f"{error}{draws}")
    raised.idata = idata
    return raised
