"""`sample_tree_smc`: one decision tree by top-down sequential Monte Carlo, with its evidence."""

import time
import warnings

import joblib
import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.traversal import ancestors

from pymc_trees.arguments import check_choice, check_number, check_seed, check_share
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.contract import log_constant, n_stats
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.samplers.growth import FULL
from pymc_trees.core.samplers.particles import SCHEMES, log_sum_exp
from pymc_trees.core.samplers.proposals import PROPOSALS
from pymc_trees.core.samplers.top_down import DEGENERATE, EXPANSIONS, UNFINISHED, p_in_order
from pymc_trees.distributions.capacity import ForestTooLargeError, too_small
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.inference.results import check_var_names, data_tree, record_points
from pymc_trees.inference.tree_smc.island import Island, Settings, TreeModel, run_island
from pymc_trees.processes import make_parallel, run_tasks
from pymc_trees.progress import track
from pymc_trees.targets.choose import refuse_random
from pymc_trees.targets.conjugate import ConjugateTarget
from pymc_trees.targets.forest_state import ForestData
from pymc_trees.targets.graph import NotConjugateError, read_graph


def read_tree(model: pm.Model) -> tuple[ForestData, TreeModel, float]:
    """Read the tree of a model, its arrays for `run_island`, and the constant of its evidence.

    The constant has the factors that the marginal likelihoods of leaves leave out, and the
    log-probability of all observed variables that do not depend on the tree.

    Raises
    ------
    ValueError, NotImplementedError, UnsupportedModelError
        When the model is not one `DecisionTree` whose leaf values integrate out, and nothing else
        to infer.
    """
    trees = [rv for rv in model.free_RVs if is_forest(rv)]
    soft = [tree for tree in tree_variables(model) if tree.is_soft]
    if soft:
        raise NotImplementedError(
            "sample_tree_smc grows trees with hard splits; for a "
            f"{soft[0].declared_by} use {soft[0].sampled_by}."
        )
    if len(trees) != 1:
        raise ValueError(
            f"sample_tree_smc needs a model with one DecisionTree; this one has {len(trees)}. "
            "Several trees or forests are sampled by pm.sample()."
        )
    [tree] = trees
    if tree.owner.op.layout.m != 1:
        raise NotImplementedError(
            f"{tree.name} is a sum of {tree.owner.op.layout.m} trees, but sample_tree_smc grows "
            "one: declare a DecisionTree, or sample the sum by pm.sample() with "
            "pymc_trees.ParticleGibbs."
        )
    others = [rv.name for rv in model.free_RVs if rv is not tree]
    if others:
        raise NotImplementedError(
            f"sample_tree_smc samples the tree only, but {others} would have to be sampled too. "
            "Observe them or give numbers instead (compare candidate numbers by the "
            "log_marginal_likelihood of a run with each), or sample the model by pm.sample() "
            "with pymc_trees.ParticleGibbs."
        )
    graph = read_graph(model, tree)
    refuse_random(graph)
    try:
        ConjugateTarget(graph)
    except NotConjugateError as error:
        raise NotConjugateError(
            f"sample_tree_smc needs leaf values that integrate out. {error} pm.sample() "
            "samples a NormalLeaf tree under any likelihood."
        ) from None
    forest = ForestData(model, tree)
    point = model.initial_point()
    settings, seen = forest.target.at(point)
    no_fit = np.zeros((forest.layout.n_rows, forest.layout.n_outputs))
    leaf, _ = forest.target.leaf_data(settings, seen, no_fit)
    constant = log_constant(leaf) + forest.target.log_scale(seen) + _other_terms(model, tree, point)
    problem = TreeModel(
        forest.design,
        forest.prior(settings),
        leaf,
        forest.sizes,
        forest.fingerprint,
        forest.directions,
    )
    return forest, problem, constant


def _other_terms(model, tree, point) -> float:
    others = [
        term
        for term in [*model.observed_RVs, *model.potentials]
        if not any(a is tree for a in ancestors([term]))
    ]
    return float(model.compile_logp(vars=others)(point)) if others else 0.0


def log_p_in_order(rng: np.random.Generator, problem: TreeModel, n_draws: int) -> float:
    """Log prior probability that a tree is monotone, by independent draws; 0 if none need be.

    The standard error of the probability is at most ``sqrt(probability / n_draws)``.
    """
    if problem.directions is None:
        return 0.0
    sizes, leaf = problem.sizes, problem.leaf
    trees = make_trees(1, sizes.max_nodes, sizes.n_values, sizes.n_rows)
    order = problem.directions.with_room(sizes.max_nodes, sizes.n_rows, n_stats(leaf))
    weights = np.empty(n_draws)
    forest = Problem(trees, problem.design, problem.prior, leaf)
    with deferred_interrupts():
        if not p_in_order(rng, forest, order, weights):
            raise ForestTooLargeError(
                "A tree drawn from the prior has more nodes than max_nodes: declare the tree "
                "with a larger max_nodes, or with a prior that favours smaller trees."
            )
    return float(np.log(weights.mean()))


# --------------------------------------------------- How the draws of several islands become chains


COMBINATIONS = ("average", "evidence")


def choose_draws(rng, combine: str, log_z: np.ndarray, n_draws: int):
    """Island and number of each draw of the result.

    By ``"average"`` chain i holds the draws of island i. By ``"evidence"`` the draws of all islands
    are one pool, in which those of island i weigh ``Z_i``: the whole is again an unbiased estimate
    of the unnormalised posterior. Islands are then shared out by systematic resampling, and draws
    of one island are used again only when all of them have been.

    Returns
    -------
    island, number : (islands, n_draws) int64
    """
    n = len(log_z)
    if combine == "average":
        return np.divmod(np.arange(n * n_draws).reshape(n, n_draws), n_draws)
    weights = np.exp(log_z - log_z.max())
    cumulative = np.cumsum(weights / weights.sum())
    points = (np.arange(n * n_draws) + rng.random()) / (n * n_draws)
    islands = np.minimum(np.searchsorted(cumulative, points, side="right"), n - 1)
    numbers = np.empty_like(islands)
    for i in range(n):
        [mine] = np.nonzero(islands == i)
        rounds = [rng.permutation(n_draws) for _ in range(-(-len(mine) // n_draws))]
        if rounds:
            numbers[mine] = np.concatenate(rounds)[: len(mine)]
    order = rng.permutation(n * n_draws)
    shape = (n, n_draws)
    return islands[order].reshape(shape), numbers[order].reshape(shape)


# ------------------------------------------------- The group ``sample_stats`` of a top-down SMC run


def smc_statistics(
    results: list[Island], log_z: np.ndarray, island: np.ndarray, number: np.ndarray
) -> xr.Dataset:
    """Statistics of islands and of their draws.

    Parameters
    ----------
    results : list of Island
        One per chain.
    log_z : (chains,) float64
        Log evidence.
    island, number : (chains, draws) int64
        Island of each draw, and its number there.
    """

    def pick(field):
        return np.stack([getattr(run, field) for run in results])[island, number]

    n_stages = max(run.ess.size for run in results)
    ess = np.full((len(results), n_stages), np.nan)
    resampled = np.zeros((len(results), n_stages), dtype=bool)
    for k, run in enumerate(results):
        ess[k, : run.ess.size] = run.ess
        resampled[k, : run.ess.size] = run.resampled
    counts = pick("counts")
    draws, stages = ("chain", "draw"), ("chain", "stage")
    weights = np.stack([run.log_weights for run in results])
    variables = {
        "log_marginal_likelihood": (("chain",), log_z),
        "log_weights": (("chain", "particle_number"), weights),
        "island": (draws, island),
        "particle": (draws, pick("particle")),
        "n_leaves": (draws, counts[..., 0]),
        "max_depth": (draws, counts[..., 1]),
        "variable_inclusion": ((*draws, "column"), pick("inclusion")),
        "stage_ess": (stages, ess),
        "resampled": (stages, resampled),
    }
    sizes = {
        "chain": len(results),
        "draw": island.shape[1],
        "particle_number": weights.shape[1],
        "stage": n_stages,
    }
    return xr.Dataset(variables, {name: np.arange(size) for name, size in sizes.items()})


# --------------------------------------------------------------------------------------------------


PRIOR_DRAWS = 20_000
"""Trees drawn from the prior to estimate how often they are monotone."""


def sample_tree_smc(
    particles=1000,
    *,
    islands=4,
    proposal="prior",
    expansion="node",
    resampling="systematic",
    ess_threshold=0.1,
    max_stages=5000,
    combine="average",
    cores=None,
    random_seed=None,
    progressbar=True,
    var_names=None,
    model=None,
) -> xr.DataTree:
    """Sample a model with one `DecisionTree` by top-down sequential Monte Carlo.

    Particles start as stumps and grow stage by stage, each weighed by how well its partial tree
    explains the data, until all trees are complete. The mean of the weights is an unbiased estimate
    of the evidence (the marginal likelihood).

    Parameters
    ----------
    particles : int, default 1000
        Particles per island, and draws per chain of the result.
    islands : int, default 4
        Independent runs, one for each chain of the result. With fewer than about 100 particles each
        they are worth less than one larger run (Lakshminarayanan 2016, figure 3.5).
    proposal : {"prior", "empirical", "optimal"}, default "prior"
        How particles grow (section 3.3): by the tree prior; with cuts uniform in a random gap
        between adjacent distinct values; or in proportion to prior times likelihood one split
        ahead, which needs fewer particles and is the best choice when most columns are irrelevant.
    expansion : {"node", "lowest", "layer"}, default "node"
        What a stage expands (section 3.4.1.1): the oldest node, the node of the lowest marginal
        likelihood, or all nodes of a layer.
    resampling : {"multinomial", "systematic", "stratified", "residual"}, default "systematic"
        Scheme.
    ess_threshold : float in [0, 1], default 0.1
        Particles are resampled when the effective sample size falls below this share of their
        number (section 3.4.1).
    max_stages : int, default 5000
        Stages after which an unfinished run is an error (section 3.4.1): its evidence would be
        biased.
    combine : {"average", "evidence"}, default "average"
        ``"average"``: every island is a chain, and averages over chains give all islands the same
        weight (the choice of section 3.4.1.3). ``"evidence"``: every chain is drawn from the
        islands in proportion to their evidence, as in one run with all particles; it relies on few
        islands when their evidence differs a lot.
    cores : int, optional
        Number of islands that run at once; default: the number of workers of the backend. The
        backend is joblib's: ``joblib.parallel_config(backend="loky" | "dask" | "ray" | ...)``.
    random_seed : int, sequence of int, Generator or None
        Same seed, same draws, on any number of cores and any backend.
    progressbar : bool, default True
        Counts islands.
    var_names : sequence of str, optional
        Variables of the posterior, as in `pymc.sample`; default all. The function at the training
        rows is by far the largest: leave it out of large runs; predictions only need the trees.
    model : pymc.Model, optional
        Default: the model on the context stack.

    Returns
    -------
    xarray.DataTree
        ``posterior`` (equally weighted draws after a final resampling, in random order),
        ``observed_data``, ``constant_data`` and ``sample_stats``:

        ``log_marginal_likelihood`` (chain)
            Log evidence of each island, every observed variable and constant included.
        ``log_weights`` (chain, particle)
            Normalised log weights of the complete trees, before the final resampling.
        ``island``, ``particle`` (chain, draw)
            Where a draw comes from.
        ``n_leaves``, ``max_depth`` (chain, draw), ``variable_inclusion`` (chain, draw, column)
            As for `CGM`.
        ``stage_ess``, ``resampled`` (chain, stage)
            Effective number of particles, and whether they were resampled; an island that ended
            earlier has NaN and False.

        The attribute ``log_marginal_likelihood`` is the log of the mean of the islands' evidence,
        which is unbiased like each of them. For trees with ``monotone`` columns it is divided by
        the prior probability that a tree is monotone, estimated from 20,000 draws.

    Raises
    ------
    ValueError, NotImplementedError, UnsupportedModelError
        For settings out of range, or a model that is not one `DecisionTree` whose leaf values
        integrate out and nothing else to infer.
    ForestTooLargeError
        A particle outgrew ``max_nodes`` of the declaration.
    RuntimeError
        Unfinished after ``max_stages``, or no particle with a weight.

    Notes
    -----
    An interrupted run returns the completed islands, with a warning.

    The optimal proposal looks index up to 256 distinct values of a column one by one, and index 255
    quantile intervals of a column with more, within which it then looks at the values one by one;
    with a normal leaf it weighs splits with the precision that the rows of a node have about their
    mean where the noise is smaller. The weights correct for both.

    References
    ----------
    Lakshminarayanan, Roy and Teh (2013). Top-down particle filtering for Bayesian decision trees.
    ICML. Lakshminarayanan (2016). Decision trees and forests: a probabilistic perspective. PhD
    thesis, University College London, algorithm 3.1.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = (X[:, 0] > 9).astype(int)
    >>> with pm.Model():
    ...     p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(alpha=2.0, n_classes=2))
    ...     pm.Categorical("y", p=p, observed=y)
    ...     idata = pmt.sample_tree_smc(50, islands=2, cores=1, random_seed=1, progressbar=False)
    y
    >>> idata.posterior["p"].sizes["chain"], idata.posterior["p"].sizes["draw"]
    (2, 50)
    >>> bool(-10 < idata.attrs["log_marginal_likelihood"] < -3)
    True
    """
    model = pm.modelcontext(model)
    settings = Settings(
        check_number("particles", particles, 1),
        check_choice("proposal", proposal, PROPOSALS),
        check_choice("expansion", expansion, EXPANSIONS),
        check_choice("resampling", resampling, SCHEMES),
        check_share("ess_threshold", ess_threshold),
        check_number("max_stages", max_stages, 1),
    )
    islands = check_number("islands", islands, 1)
    combine = check_choice("combine", combine, COMBINATIONS)
    cores = -1 if cores is None else check_number("cores", cores, 1)
    started = time.perf_counter()
    var_names = check_var_names(model, var_names)
    forest, problem, constant = read_tree(without_dims(model))
    rng = check_seed(random_seed)
    results = _run_islands(rng.spawn(islands), problem, settings, cores, progressbar, forest)
    constant -= log_p_in_order(rng, problem, PRIOR_DRAWS)
    log_z = np.array([island.log_z for island in results]) + constant
    island, number = choose_draws(rng, combine, log_z, settings.particles)
    points = np.empty(island.shape, dtype=object)
    for index in np.ndindex(points.shape):
        points[index] = {forest.value_name: results[island[index]].values[number[index]]}
    idata = data_tree(
        model,
        {"posterior": record_points(model, points, var_names)},
        started,
        log_marginal_likelihood=float(log_sum_exp(log_z) - np.log(len(log_z))),
    )
    idata["sample_stats"] = xr.DataTree(smc_statistics(results, log_z, island, number))
    return idata


def _run_islands(generators, problem, settings, cores, progressbar, forest) -> list[Island]:
    """Run the islands by joblib; results in order."""
    run = joblib.delayed(run_island)
    complete: list[Island] = []
    try:
        tasks = (run(rng, problem, settings) for rng in generators)
        finished = run_tasks(make_parallel(cores), tasks)
        shown = track(finished, "Top-down SMC", len(generators), progressbar)
        for island in shown:
            _check_status(island, settings, forest)
            complete.append(island)
    except KeyboardInterrupt:
        if not complete:
            raise
        warnings.warn(
            f"Interrupted: the result holds the {len(complete)} of {len(generators)} islands that "
            "were complete.",
            stacklevel=3,
        )
    return complete


def _check_status(island: Island, settings: Settings, forest) -> None:
    if island.status == FULL:
        raise ForestTooLargeError(too_small(f"A particle of {forest.name}", forest.layout))
    if island.status == UNFINISHED:
        raise RuntimeError(
            f"max_stages={settings.max_stages}: particles are unfinished after this many stages, "
            "and their evidence would be biased. Give a larger max_stages (with expansion='node' "
            "a tree takes a stage for each of its nodes), or expansion='layer'."
        )
    if island.status == DEGENERATE:
        raise RuntimeError(
            "No particle has a positive weight. Use more particles, or another proposal."
        )
