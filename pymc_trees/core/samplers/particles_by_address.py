"""What particles ask of a forest's model by address."""

from numba import typeof

from pymc_trees.core.columns.design import draw_cut, partition_rows, varying, write_cells
from pymc_trees.core.columns.mixed import column_of, rule_from_prior
from pymc_trees.core.columns.rules import draw_rule, draw_side, log_rule, log_side
from pymc_trees.core.compile.handle import Handles, made_in_kernels
from pymc_trees.core.forest.trees import Labels, Trees
from pymc_trees.core.histograms.contract import (
    ColumnSubset,
    CutScores,
    Histogram,
    Packed,
    add_to_histogram,
    left_stats,
    pack_rows,
    score_cuts,
    tempering,
)
from pymc_trees.core.leaves.contract import (
    add_rows,
    draw_leaves,
    log_marginal,
    path_below,
    reads_path,
    resample_latents,
    swap_residual,
)
from pymc_trees.core.leaves.nonconjugate.gaussian import with_prior
from pymc_trees.core.moves.by_address import is_common
from pymc_trees.core.moves.problem import Problem, Workspace
from pymc_trees.core.priors.contract import (
    Place,
    column_weight,
    draw_column,
    draw_time,
    log_column,
    log_split,
    log_stop,
    node_summary,
    renew_times,
    split_weight,
)
from pymc_trees.core.samplers.growth import Growth
from pymc_trees.core.samplers.optimal import LookAhead, columns_of, find_by_prior

DESIGN = (
    column_of,
    varying,
    draw_cut,
    rule_from_prior,
    draw_rule,
    log_rule,
    draw_side,
    log_side,
    partition_rows,
    write_cells,
    find_by_prior,
)
PRIOR = (
    node_summary,
    log_split,
    log_stop,
    draw_time,
    draw_column,
    log_column,
    column_weight,
    split_weight,
    renew_times,
)
LEAF = (
    reads_path,
    path_below,
    swap_residual,
    resample_latents,
    add_rows,
    log_marginal,
    draw_leaves,
    pack_rows,
    add_to_histogram,
    tempering,
    score_cuts,
    left_stats,
)


def handles_of_particles() -> Handles:
    """Makes handles for one forest."""
    return Handles({"design": DESIGN, "prior": PRIOR, "leaf": LEAF})


def grown_by_address(
    handles: Handles, problem: Problem, growth: Growth, surrogate, work: Workspace, *, always=False
) -> tuple:
    """Arguments of `particle_sweep`: the problem, the one under which particles grow, a surrogate.

    Handles stand for the model, so that no growth of particles is compiled anew, unless it is
    common. A leaf with a surrogate stays as it is beside its design and prior.
    """

    def places():
        histograms = growth.look.histograms
        return {
            Trees: typeof(problem.trees),
            Labels: typeof(problem.trees.leaf_of[0]),
            Place: typeof(Place(0, 0.0, 0.0, False)),
            LookAhead: typeof(growth.look),
            Packed: typeof(histograms.packed),
            Histogram: typeof(histograms.sums[0]),
            ColumnSubset: made_in_kernels(columns_of.py_func(growth.look)),
            CutScores: typeof(growth.look.scores),
        }

    trees, design, prior, leaf = problem
    if surrogate is not None:
        surrogate = with_prior(surrogate, leaf.mean, leaf.sd)
    grown = problem if surrogate is None else problem._replace(leaf=surrogate)
    if work.order is not None or (is_common(grown) and not always):  # an order knows the leaf
        return grown._replace(leaf=leaf), grown, surrogate
    given = {"design": design, "prior": prior, "leaf": grown.leaf}
    grown = Problem(trees, *handles(places, frozenset(), **given))
    return grown if surrogate is None else grown._replace(leaf=leaf), grown, surrogate
