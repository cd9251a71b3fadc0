"""Chains of `sharded.kernels`, their rows in shards of this process."""

import numpy as np

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.moves.catalogue import standard_moves
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.sharded.kernels.driver import Driver, Scale
from pymc_trees.sharded.kernels.shard import Shard, ShardData, to_fixed, total, unit_of

from .record import Chain
from .setups import weights_of

MOVES = {
    "cgm": (0.25, 0.25, 0.4, 0.1),
    "grow_prune": (0.5, 0.5, 0.0, 0.0),
    "change_swap": (0.1, 0.1, 0.4, 0.4),
}


def carry(shards, generator):
    """Ask the shards every message of a generator; what it returns."""
    answer = None
    while True:
        try:
            message = generator.send(answer)
        except StopIteration as ended:
            return ended.value
        answer = total([shard.visit({0: message})[0] for shard in shards])


def make_driver(seed, problem, moves, m=1, n_shards=2, data=True):
    """Driver and shards of a problem of the oracle with a normal leaf."""
    n, p = problem.X.shape
    weights = weights_of(problem, p)
    design = make_design(problem.X, problem.prior.get("cuts"))
    design = design._replace(varies=design.varies & (weights > 0))
    target = problem.y - m * problem.mean if data else np.zeros(n)
    unit = unit_of(np.abs(target).max() + 6 * np.sqrt(m) * problem.sd, n)
    fixed, most = to_fixed(target, unit), m * (2 * n - 1)
    shards = [
        Shard(ShardData(design.columns[:, rows], design.varies, fixed[rows], m, most), 1)
        for rows in np.array_split(np.arange(n), n_shards)
    ]
    prior = make_prior(problem.prior["alpha"], problem.prior["beta"], weights)
    empty = design._replace(columns=design.columns[:, :0].copy())
    scale = Scale(unit, problem.mean, problem.sd)
    rng, moves = np.random.default_rng(seed), standard_moves(np.array(MOVES[moves]))
    driver = Driver(rng, empty, prior, scale, (m, most, n), moves)
    carry(shards, driver.start())
    return driver, shards


def run_sharded(seed, problem, moves, draws, m=1, n_shards=2, data=True):
    """Chain of sweeps, as `local_moves.run_chain` makes it; labels are read off the shards."""
    driver, shards = make_driver(seed, problem, moves, m, n_shards, data)
    precision = float(problem.sigma) ** -2.0 if data else 0.0
    n, trees = len(problem.y), driver.forest.trees
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    fits = np.empty((draws, n, 1))
    target = np.concatenate([shard.rows[0].residual for shard in shards])
    target = target if data else target * 0
    known = {}
    for s in range(draws):
        carry(shards, driver.sweep(precision))
        residual = carry(shards, driver.residual())
        fits[s, :, 0] = m * problem.mean + driver.scale.unit * (target - residual)
        labels = np.concatenate([shard.rows[0].labels for shard in shards], axis=1)
        for t in range(m):
            key = labels[t].tobytes()
            if key not in known:
                known[key] = _code(labels[t], n)
            codes[s, t] = known[key]
            leaves = np.unique(labels[t])
            depths[s, t] = trees.depth[leaves].max()
            roots[s, t] = trees.column[trees.roots[t]]
    return Chain(codes, depths, roots, fits, *driver.counts)


def _code(labels, n):
    """As `record.partition_code`."""
    code, names = 0, {}
    for label in labels.tolist():
        code = code * n + names.setdefault(label, len(names))
    return code
