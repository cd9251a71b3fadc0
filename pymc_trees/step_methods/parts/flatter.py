"""Parallel tempering within a step: forests of flatter posteriors, and exchanges with them.

Slowly mixing directions of f mix much faster if the likelihood is flattened
(`benchmarks.mixing.temperatures`). In addition to the forest of the model, whose posterior given
everything else is p(f) L(f), there are forests with the fixed targets

    q_k(f) = p(f) L*(f)**b_k,        b_k = exp(-k gap),        k = 1, 2, ...

where p is the same prior and L* a Gaussian likelihood that depends on no random variable of the
model: in the joint distribution of all forests, the model's own variables have their posterior.
Sweeps of local moves leave each q_k invariant. Neighbours exchange their forests with probability

    min(1, q_k(f_{k+1}) q_{k+1}(f_k) / (q_k(f_k) q_{k+1}(f_{k+1}))),        q_0 = p L

(Geyer 1991; Earl and Deem 2005, eq. 1), in which the prior cancels only if its settings are not
random.

Where rows have latent variables, L is that of the rows given them.

L* and the gap are adapted in tuning and fixed afterwards. L* has the means of the target of f and
of its precision; the gap is adapted until one exchange in four is accepted. If rows are few or
carry little information relative to the prior, chains mix well without flatter posteriors, and
unless their number is given there are none (benchmarks).
"""

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.moves.problem import Problem
from pymc_trees.step_methods.parts.ladder import Ladder, LadderPart, Place
from pymc_trees.targets.conjugate_target import ConjugateTarget
from pymc_trees.targets.latent_target import LatentTarget
from pymc_trees.targets.likelihoods.normal import NormalLikelihood

LARGEST = 2_000_000
"""Rows times trees beyond which there are no flatter forests, which take as much room each."""


USUAL = 3
"""Posteriors, that of the model included, unless given (benchmarks)."""

LEAST_INFORMATION = 20_000.0
"""Precision of all rows, times the prior variance of f, from which on flatter forests pay."""


def places_of(forest, temperatures: int) -> int:
    """Number of forests on the ladder, the forest itself included, if rows are informative."""
    target, layout = forest.target, forest.layout
    is_normal = isinstance(target, LatentTarget) or (
        isinstance(target, ConjugateTarget)
        and isinstance(target.likelihood, NormalLikelihood)
        and not target.is_prior
    )
    fits = layout.n_rows * layout.m <= LARGEST
    able = is_normal and fits and forest.has_fixed_prior
    return temperatures if able else 1


class FlatterForests(LadderPart):
    """Sweeps of flatter posteriors, and exchanges with them, as a part of a step.

    Parameters
    ----------
    temperatures : int or None
        Posteriors, that of the model included; 1 for no other; None for `USUAL` where they pay.
    local : LocalMoves
        Sweeps of the flatter ones.
    """

    def __init__(self, temperatures, local):
        super().__init__()
        self.least = LEAST_INFORMATION if temperatures is None else 0.0
        given = USUAL if temperatures is None else temperatures
        self.temperatures, self.local = check_number("temperatures", given, 1), local
        self.statistics = (
            ("accept_exchange", "min_inverse_temperature") if self.temperatures > 1 else ()
        )

    def places(self, forest):
        """Forests that share the sweeps of a step."""
        ladder = self.ladders.get(forest.name)
        kept = self.restored.get(forest.name, {})
        information = kept.get("information", np.inf) if ladder is None else ladder.information
        return places_of(forest, self.temperatures) if information >= self.least else 1

    def update(self, rng, forest, problem, tuning):
        """Sweep the flatter forests and exchange with them."""
        target, leaf = forest.aim, problem.leaf
        nothing = dict.fromkeys(self.statistics, np.nan)
        if target is None or places_of(forest, self.temperatures) == 1:
            return nothing
        ladder = self.take(forest, lambda: self._new_ladder(forest, problem, target))
        if tuning:
            ladder.follow(target, leaf.w)
            layout = forest.layout
            ladder.information = float(layout.n_rows * ladder.w.mean() * leaf.sd**2 * layout.m)
        if ladder.information < self.least:
            self.ladders[forest.name] = ladder
            return nothing
        kept = leaf
        if isinstance(forest.target, LatentTarget):
            kept = leaf._replace(latent=self.unchanging)
        n_sweeps = self.local.sweeps_of(forest)
        for k, place in enumerate(ladder.places):
            flatter = kept._replace(r=place.r, w=place.w)
            found = Problem(place.trees, problem.design, problem.prior, flatter)
            if self.local.sweep(rng, forest, found, place.work, n_sweeps) is None:
                if not tuning:
                    return None
                ladder.restart(problem.trees, target - leaf.r, k)
        first = Place(problem.trees, forest.work, leaf.r, target, leaf.w)
        share = ladder.exchange(rng, first)
        if tuning:
            ladder.adapt(share)
        self.ladders[forest.name] = ladder
        return dict(zip(self.statistics, (share, ladder.powers[-1]), strict=True))

    def _new_ladder(self, forest, problem, target):
        """Copies of the forest."""
        works = [forest.make_work(forest.work.index) for _ in range(1, self.temperatures)]
        return Ladder(problem.trees, problem.leaf.r, target, problem.leaf.w, works)
