"""What proposals that were not built would change, beside the moves of the default step.

    python -m benchmarks.mixing.proposals

A move helps slow directions of f if it makes them jump. So, in states of a chain on Friedman's
first function (sigma at its true 1), each kind of proposal is made once for a tree, and judged by
its chance to be accepted and by the expected square of the jump of the posterior mean of f along
the leading principal components, in millionths of their variance. A kind of no more than so many
times the jump of the default mix may cost so many times the CPU of one of its moves. Moves of the
package are made by its kernels; the others are weighed (`unbuilt`), not made.
"""

import numpy as np

from benchmarks.mixing import turns, unbuilt
from benchmarks.mixing.directions import principal
from benchmarks.mixing.local_moves import EVERY, moves_of, start
from benchmarks.peers import data, table
from pymc_trees.core.samplers.backfitting import sweeps

COMPONENTS = 3
NAMES = ["grow", "prune", "change", "swap", "perturb"]
# A kind alone, but that grow and prune are each other's reverse.
ALONE = [
    [0.5, 0.5, 0, 0, 0],
    [0.5, 0.5, 0, 0, 0],
    [0, 0, 1, 0, 0],
    [0, 0, 0, 1, 0],
    [0, 0, 0, 0, 1],
]
DEFAULT = "perturb .3, four a visit"
OF_ONE_TREE = {
    "grow, rule from the prior (check)": unbuilt.grow_from_prior,
    "heat-bath grow": unbuilt.heat_bath_grow,
    "heat-bath prune": unbuilt.heat_bath_prune,
    "two nested splits at once": unbuilt.nested_grow,
    "a tree redrawn": unbuilt.redraw,
}
OF_TWO_TREES = {"transfer": unbuilt.transfer, "two trees redrawn": unbuilt.redraw_pair}


class Chain:
    """A forest that goes on by the default moves."""

    def __init__(self, case, seed):
        self.problem, self.work, self.y = start(case)
        self.problem.leaf.w[0] = 1.0
        self.moves, self.rng = moves_of(DEFAULT), np.random.default_rng(seed)
        self.counts = np.zeros((2, self.moves.weights.size), dtype=np.int64)

    def go_on(self, n_sweeps):
        if not sweeps(self.rng, self.problem, self.moves, self.work, n_sweeps, self.counts):
            raise ValueError("full")

    def draws(self, seconds):
        """f at all rows after the warm-up."""
        fs = []
        for is_kept in turns.blocks(seconds):
            self.go_on(EVERY)
            if is_kept:
                fs.append(self.y - self.problem.leaf.r)
        return np.array(fs)

    def only(self, t):
        """The problem of tree t given the others, and the residual of these."""
        trees = self.problem.trees
        one = trees._replace(roots=trees.roots[t : t + 1], leaf_of=trees.leaf_of[t : t + 1])
        fit = trees.values[trees.leaf_of[t], 0]
        return self.problem._replace(trees=one), self.problem.leaf.r + fit

    def try_move(self, weights, t, posterior):
        """Make one move: its kind, whether it was accepted, and the jump of the mean of f."""
        problem, r = self.only(t)
        before = self.rows_of_leaves(t)
        counts = np.zeros_like(self.counts)
        moves = self.moves._replace(weights=np.array(weights) / np.sum(weights), per_visit=1)
        sweeps(self.rng, problem, moves, self.work, 1, counts)
        after = self.rows_of_leaves(t)
        jump = posterior.fit(r, *after) - posterior.fit(r, *before)
        kind = NAMES[counts[0].argmax()] if counts.any() else None  # a tree may allow none
        return kind, float(counts[1].any()), jump

    def rows_of_leaves(self, t):
        leaf_of = self.problem.trees.leaf_of[t]
        return [np.flatnonzero(leaf_of == leaf) for leaf in np.unique(leaf_of)]


def weighed(result, n):
    """Chance to be accepted, and the jump."""
    log_ratio, jump = result
    return min(1.0, np.exp(min(log_ratio, 0.0))), np.zeros(n) if jump is None else jump


def main(arguments=None):
    parser = turns.parser_of("benchmarks.mixing.proposals")
    parser.add_argument("--states", type=int, default=2_000, help="in which each kind is tried")
    options = parser.parse_args(arguments)
    case = data.friedman("friedman", options.rows, options.trees)
    Chain(case, 0).go_on(1)  # compiles
    chains = [Chain(case, options.seed + k) for k in range(options.chains)]
    f = turns.together([chain.draws(options.seconds) for chain in chains])
    axes = principal(f, COMPONENTS)
    variance = ((f - f.mean(axis=(0, 1))) @ axes.T).var(axis=(0, 1))
    kept = {name: [] for name in [*NAMES, "the default mix", *OF_ONE_TREE, *OF_TWO_TREES]}

    def keep(name, chance, jump):
        kept[name].append([chance, *(chance * (axes @ jump) ** 2 / variance)])

    leaf = chains[0].problem.leaf
    posterior = unbuilt.Posterior(case.X, leaf.sd, 1.0)
    rng = np.random.default_rng(0)
    for state in range(options.states):
        chain = chains[state % len(chains)]
        chain.go_on(2)
        trees = chain.problem.trees
        t, u = rng.choice(options.trees, 2, replace=False)
        tree, other = (unbuilt.tree_of(trees, case.X, trees.roots[k]) for k in (t, u))
        r = chain.only(t)[1]
        for name, propose in OF_ONE_TREE.items():
            keep(name, *weighed(propose(rng, posterior, tree, r), len(r)))
        both = r + trees.values[trees.leaf_of[u], 0]
        for name, propose in OF_TWO_TREES.items():
            keep(name, *weighed(propose(rng, posterior, tree, other, both), len(r)))
        for weights in ALONE if tree.children else ALONE[1:]:  # so that grow is tried once a state
            kind, *outcome = chain.try_move(weights, t, posterior)
            if kind:
                keep(kind, *outcome)
        keep("the default mix", *chain.try_move(moves_of(DEFAULT).weights, t, posterior)[1:])
    found = {name: np.mean(values, axis=0) for name, values in kept.items()}
    mix = found["the default mix"][1:]
    rows = [row(name, values[0], values[1:], mix) for name, values in found.items()]
    header = ["proposal", "accepted", "jumps of components, 1e-6", "relative to the mix"]
    print(table.markdown(header, rows))


def row(name, accepted, jumps, mix):
    """Cells of the table."""
    told = " ".join(f"{1e6 * jump:.1f}" for jump in jumps)
    return [name, f"{accepted:.4f}", told, " ".join(f"{share:.2f}" for share in jumps / mix)]


if __name__ == "__main__":
    main()
