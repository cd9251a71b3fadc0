"""Parallel tempering: replicas of a forest under flatter posteriors, and exchanges with them.

Besides the forest of the model, whose posterior given everything else is p(f) L(f), there are
replicas with the fixed targets

    q_k(f) = p(f) L*(f)**b_k,        1 > b_1 > b_2 > ... > 0,

where p is the same prior and L* is the likelihood at fixed values of everything else: in the joint
distribution of all replicas, the other variables of the model have their posterior. Kernels of the
step leave each q_k invariant, and neighbours exchange their forests with probability

    min(1, q_k(f_{k+1}) q_{k+1}(f_k) / (q_k(f_k) q_{k+1}(f_{k+1}))),        q_0 = p L

(Geyer 1991; Earl and Deem 2005, eq. 1), in which the prior cancels only if its settings are not
random. A single tree is exchanged with its leaf values integrated out (`core.samplers.exchange`);
there q_k may have a power of the marginal likelihood of the tree instead. Trees of a sum are
exchanged with their values. Where rows have latent variables, L is that of the rows given them.

Where f has a level that other variables move along ridges (`SweepData.level`), L* is one of f less
that level, and forests of sums are shifted by it on their way to and from the model.

L* and, unless they are given, the inverse temperatures b are adapted in tuning and fixed
afterwards. L* has the mean of the target of f and the geometric mean of its precision; the gaps
between the logarithms of neighbouring b are adapted until one exchange in four is accepted
(Miasojedow, Moulines and Vihola 2013).
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.forest.trees import Trees
from pymc_trees.core.leaves.contract import tempered
from pymc_trees.core.leaves.latent.rows import no_latents
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.core.leaves.threaded import ThreadedNormal
from pymc_trees.core.moves.problem import Problem, Workspace
from pymc_trees.core.samplers.exchange import close_exchanged, log_exchange
from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.step_methods.kernels.contract import CHANGES, Kernel, SweepData
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.lift import Lift

ACCEPTED = 0.25
"""Target share of accepted exchanges in tuning (Atchade, Roberts and Rosenthal 2011: .234)."""
FIRST_GAP = 0.1
"""Logarithm of the ratio of two neighbouring inverse temperatures before tuning (benchmarks)."""
WIDEST = 3.0
"""Largest logarithm of a gap that tuning comes to."""
AVERAGED = 100
"""Steps of tuning over which the fixed likelihood is averaged."""


class Replica(NamedTuple):
    """A forest under a flatter posterior; all arrays are changed in place."""

    trees: Trees
    r: np.ndarray
    """(n,) residual: target of L* less the forest; (0,) where a leaf has no residual."""
    work: Workspace | None
    """Of the trees; None in a stored state."""


class Ladder(NamedTuple):
    """The fixed likelihood, the inverse temperatures, and the replicas of one forest."""

    target: np.ndarray
    """(n,) target of f under L*."""
    w: np.ndarray
    """(n,) precisions, or (1,) of all rows."""
    log_gaps: np.ndarray
    """(K,) logarithm of the gap between each inverse temperature and the one above."""
    places: np.ndarray
    """(K + 1,) number of the replica whose forest is at each temperature."""
    n_tuned: int = 0
    """Steps of tuning so far."""
    n_steps: int = 0
    information: float = np.inf
    """Precision of all rows times the prior variance of f, averaged over tuning."""
    replicas: tuple[Replica, ...] = ()
    """Empty before they are first needed."""

    @classmethod
    def start(cls, n_replicas: int, target, w) -> "Ladder":
        """Of a new chain."""
        log_gaps = np.full(n_replicas, np.log(FIRST_GAP))
        return cls(target.copy(), w.copy(), log_gaps, np.arange(n_replicas + 1))

    def averaged(self, target, w) -> "Ladder":
        """With the current likelihood of the model's forest; residuals are changed in place."""
        n_tuned = self.n_tuned + 1
        rate = max(1 / n_tuned, 1 / AVERAGED)
        change = rate * (target - self.target)
        for replica in self.replicas:
            replica.r[:] += change
        # geometric mean: given latent variables a precision is occasionally very large; 0 is that
        # of a row of another component, after which a geometric mean would be 0 for ever
        by_roots = ((1 - rate) * np.sqrt(self.w) + rate * np.sqrt(w)) ** 2
        w = np.where((self.w > 0) & (w > 0), self.w ** (1 - rate) * w**rate, by_roots)
        return self._replace(target=self.target + change, w=w, n_tuned=n_tuned)

    def adapted(self, shares, shared: bool, widest: float) -> "Ladder":
        """With gaps nearer to the target share of accepted exchanges.

        Parameters
        ----------
        shares : (K,) array
            Probability of each pair's exchange; NaN where none was proposed, or it is not known.
        shared : bool
            Whether all gaps are the same.
        """
        if shared and not np.isnan(shares).all():
            shares = np.full(shares.size, np.nanmean(shares))
        change = (shares - ACCEPTED) / np.sqrt(self.n_tuned)
        log_gaps = self.log_gaps + np.where(np.isnan(change), 0.0, change)
        return self._replace(log_gaps=np.minimum(log_gaps, widest))

    def pairs(self) -> range:
        """Places to exchange with the next place; even and odd pairs take turns."""
        n_places = self.places.size
        return range(self.n_steps % 2 if n_places > 2 else 0, n_places - 1, 2)


class ReplicaExchange(Kernel):
    """Kernels under flatter posteriors, and exchanges with these.

    Parameters
    ----------
    kernels : sequence of Kernel
        Kernels of the step that update the replicas too, with what they have adapted for the
        forest of the model.
    n_temperatures : int
        Number of posteriors, that of the model included.
    inverse_temperatures : sequence of float
        Of the flatter ones; empty if they are adapted.
    """

    shared_gap = False
    """Whether the ratios of neighbouring temperatures are all the same."""
    widest = WIDEST
    min_information = 0.0
    """Information from which on there are replicas."""
    integrates_out = True
    """Whether a single tree is exchanged with its leaf values integrated out."""

    def __init__(self, kernels, n_temperatures, inverse_temperatures=()):
        self.kernels, self.n_replicas = kernels, n_temperatures - 1
        self.fixed = np.asarray(inverse_temperatures, dtype=np.float64)
        self.without_latents = no_latents()

    def statistics(self, forest):
        """Of the exchanges."""
        numbers = "accept_exchange", "min_inverse_temperature", "replica"
        return dict.fromkeys(numbers, ()) | {"accept_exchange_each": (self.n_replicas,)}

    def is_able(self, data: SweepData) -> bool:
        """Whether the likelihood at the current point is one of f alone."""
        if data.forest.has_random_columns:
            return False
        # A target too far away has no residual to exchange (`is_far`).
        is_lost = data.target is None and hasattr(data.problem.leaf, "r")
        return not (is_lost or getattr(data.forest.target, "is_prior", False))

    def inverse_temperatures(self, ladder: Ladder) -> np.ndarray:
        """(K,) inverse temperatures of the replicas."""
        return self.fixed if self.fixed.size else np.exp(-np.cumsum(np.exp(ladder.log_gaps)))

    def update(self, rng, state: Ladder | None, data):
        """Update the replicas, exchange forests with them, adapt."""
        shares = np.full(self.n_replicas, np.nan)
        nothing = dict.fromkeys(self.statistics(data.forest), np.nan)
        nothing["accept_exchange_each"] = shares
        if not self.is_able(data):
            return state, nothing
        leaf, target = data.problem.leaf, data.target
        if isinstance(data.forest.target, LatentTarget):
            leaf = leaf._replace(latent=self.without_latents)
        ladder = state
        if ladder is None:
            of_rows = (np.zeros(0), np.zeros(0))
            if target is not None:
                of_rows = (target - data.level, leaf.w)
            ladder = Ladder.start(self.n_replicas, *of_rows)
        if data.tuning:
            ladder = self._averaged(ladder, data)
        if ladder.information < self.min_information:
            return ladder, nothing
        ladder = _with_replicas(ladder, data)
        places = [data, *self._tempered(ladder, data, leaf)]
        for place in places[1:]:
            self._sweep(rng, place, data)
        trees_alone = self.integrates_out and _is_single(data.forest)
        exchange = exchange_trees if trees_alone else exchange_outputs
        numbers, n_changed = ladder.places.copy(), 0
        for k in ladder.pairs():
            shares[k], accepted = exchange(rng, places[k], places[k + 1])
            if accepted:
                n_changed += data.forest.layout.m if k == 0 else 0
                numbers[[k, k + 1]] = numbers[[k + 1, k]]
        ladder = ladder._replace(places=numbers, n_steps=ladder.n_steps + 1)
        if data.tuning:
            ladder = ladder.adapted(shares, self.shared_gap, self.widest)
        proposed = shares[~np.isnan(shares)]
        return ladder, {
            "accept_exchange": float(proposed.mean()) if proposed.size else np.nan,
            "accept_exchange_each": shares,
            "min_inverse_temperature": self.inverse_temperatures(ladder)[-1],
            "replica": float(numbers[0]),
            CHANGES: n_changed,
        }

    def stored(self, state):
        """State without workspaces."""
        if state is None:
            return None
        return state._replace(replicas=tuple(one._replace(work=None) for one in state.replicas))

    def interrupted(self, state):
        """State without replicas, whose trees and residuals may not fit each other."""
        return None if state is None else state._replace(replicas=())

    def _averaged(self, ladder, data):
        if data.target is None:
            return ladder._replace(n_tuned=ladder.n_tuned + 1)
        return ladder.averaged(data.target - data.level, data.problem.leaf.w)

    def _tempered(self, ladder, data, leaf):
        """The data of each replica."""
        _, design, prior, _ = data.problem
        target = None if data.target is None else ladder.target
        n_temperatures = self.n_temperatures(data.forest, ladder)
        for replica, b in zip(ladder.replicas, self.inverse_temperatures(ladder), strict=True):
            fixed = leaf if target is None else leaf._replace(r=replica.r, w=ladder.w)
            problem = Problem(replica.trees, design, prior, tempered(fixed, b))
            yield data._replace(
                problem=problem,
                work=replica.work,
                target=target,
                n_sweeps=None,
                n_temperatures=n_temperatures,
                level=0.0,
            )

    def _sweep(self, rng, place, data):
        """Update a replica; in tuning, one that outgrew its capacity starts anew."""
        try:
            for kernel in self.kernels:
                kernel.update(rng, data.states.get(kernel), place)
        except ForestTooLargeError:
            if not data.tuning:
                raise
            _copy(data.problem.trees, place.problem.trees)
            place.work.rows_valid[:] = False
            if place.target is not None:
                place.problem.leaf.r[:] = place.target - (data.target - data.problem.leaf.r)


def _with_replicas(ladder: Ladder, data: SweepData) -> Ladder:
    """A ladder with replicas: copies of the model's forest, where there are none."""
    replicas = ladder.replicas
    if not replicas:
        r = np.zeros(0)
        if data.target is not None:
            r = data.problem.leaf.r + (ladder.target - data.target)
        for _ in ladder.log_gaps:
            trees = Trees(*(field.copy() for field in data.problem.trees))
            replicas += (Replica(trees, r.copy(), None),)
    if any(one.work is None for one in replicas):
        replicas = tuple(one._replace(work=data.forest.make_work()) for one in replicas)
    return ladder._replace(replicas=replicas)


def _is_single(forest) -> bool:
    """Whether what is exchanged is one tree whose values integrate out without an order."""
    conjugate = isinstance(forest.target, ConjugateTarget)
    return conjugate and forest.layout.m == 1 and forest.directions is None


# ------------------------------------------ Exchanges: their probability, and whether they happened


def exchange_trees(rng, a: SweepData, b: SweepData) -> tuple[float, bool]:
    """Exchange the trees of two posteriors, their leaf values integrated out."""
    share = float(np.exp(min(log_exchange(a.problem, b.problem, a.work), 0.0)))
    accepted = rng.random() < share
    if accepted:
        _swap(a, b)
    close_exchanged(rng, a.problem, a.work)
    close_exchanged(rng, b.problem, a.work)
    return share, accepted


def exchange_outputs(rng, a: SweepData, b: SweepData) -> tuple[float, bool]:
    """Exchange the forests of two posteriors, with their leaf values.

    With r the residual of a forest under each likelihood; the prior cancels (Earl and Deem 2005,
    eq. 1), log ratio = -1/2 sum w_a (r_a'^2 - r_a^2) - 1/2 sum w_b (r_b'^2 - r_b^2).

    Where the level of a is not that of b, each forest is shifted by their difference on its way.
    The shares of the leaves depend on the trees alone, so that the exchange undoes itself and has
    Jacobian 1; the prior of the leaf values does not cancel then.
    """
    of_a, of_b = a.problem.leaf, b.problem.leaf
    up = a.level - b.level if isinstance(of_a, NormalData | ThreadedNormal) else 0.0
    apart = a.target - b.target - up
    new_a, new_b = apart + of_b.r, of_a.r - apart  # target_a - f_b, target_b - f_a
    log_ratio = -0.5 * np.sum(of_a.w * (new_a**2 - of_a.r**2))
    log_ratio -= 0.5 * np.sum(of_b.w * (new_b**2 - of_b.r**2))
    if up:
        lift_a, lift_b = (Lift.of_normal(k.problem.trees, k.problem.leaf) for k in (a, b))
        log_ratio += lift_a.log_density(-up) + lift_b.log_density(up)
    share = float(np.exp(min(log_ratio, 0.0)))
    accepted = rng.random() < share
    if accepted:
        _swap(a, b)
        of_a.r[:], of_b.r[:] = new_a, new_b
        if up:  # the nodes have kept their places
            lift_b._replace(values=a.problem.trees.values).rise(up)
            lift_a._replace(values=b.problem.trees.values).rise(-up)
    return share, accepted


def _swap(a: SweepData, b: SweepData) -> None:
    """Let two forests have each other's trees."""
    for of_a, of_b in zip(a.problem.trees, b.problem.trees, strict=True):
        of_a[...], of_b[...] = of_b, of_a.copy()
    a.work.rows_valid[:] = False
    b.work.rows_valid[:] = False


def _copy(source: Trees, target: Trees) -> None:
    for own, other in zip(target, source, strict=True):
        own[...] = other
