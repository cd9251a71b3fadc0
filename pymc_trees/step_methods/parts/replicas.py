"""Parallel tempering by replicas of a whole step: the part of `Tempering`.

Replica k = 1, 2, ... is a forest with the fixed target

    q_k(f) = p(f) L*(f)**b_k,        1 > b_1 > b_2 > ... > 0,

where p is the prior of the model's forest and L* its likelihood at fixed values of everything else.
The parts of the tempered step keep each q_k, and neighbours exchange their forests, which keeps the
product of all targets (Geyer 1991; Earl and Deem 2005, eq. 1). A single tree is exchanged with its
leaf values integrated out (`core.samplers.exchange`); there q_k may have a power of the marginal
likelihood of the tree instead. Trees of a sum are exchanged with their values (`ladder`).

L* and, where they are not given, the powers are found in tuning and fixed afterwards: L* has the
mean of the target of f and the geometric mean of its precision; the gap between the logarithms of
two neighbouring powers is moved until one of their exchanges in four is accepted (Miasojedow,
Moulines and Vihola 2013).
"""

from copy import copy

import numpy as np

from pymc_trees.core.compile.direct import DirectCalls
from pymc_trees.core.leaves.contract import flatter
from pymc_trees.core.moves.by_address import ByAddress
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.samplers.exchange import close_exchanged, log_exchange
from pymc_trees.step_methods.parts.ladder import (
    ACCEPTED,
    Ladder,
    LadderPart,
    Place,
    change_places,
    exchange,
)
from pymc_trees.step_methods.parts.local_moves import CHANGES
from pymc_trees.targets.conjugate_target import ConjugateTarget
from pymc_trees.targets.errors import UnsupportedModelError
from pymc_trees.targets.latent_target import LatentTarget


class FreeLadder(Ladder):
    """Flatter posteriors with given powers, or with a gap for each pair of neighbours."""

    WIDEST = 3.0

    def __init__(self, given, *of_ladder):
        super().__init__(*of_ladder)
        n = len(self.trees)
        self.given = np.asarray(given, dtype=np.float64)
        """(n,) powers, or (0,) where tuning finds them."""
        self.log_gaps = np.full(n, self.log_gap)
        self.replica = np.arange(n + 1)
        """Number of the replica whose forest is in each place."""

    @property
    def powers(self):
        """Powers b of the flatter likelihoods."""
        return self.given if self.given.size else np.exp(-np.cumsum(np.exp(self.log_gaps)))

    def adapt(self, share):
        """Bring the share of accepted exchanges of each pair nearer to what it is to be."""
        rate = 1 / np.sqrt(self.n_tuned)
        change = np.where(np.isnan(share), 0.0, rate * (share - ACCEPTED))
        self.log_gaps = np.minimum(self.log_gaps + change, self.WIDEST)


def check_forest(forest) -> None:
    """Refuse a forest that has no flatter posteriors to exchange with."""
    name, target = forest.name.removesuffix("_forest"), forest.target
    if not isinstance(target, ConjugateTarget | LatentTarget):
        raise UnsupportedModelError(
            f"Tempering: the leaf values of {name} do not integrate out of its likelihood, so that "
            "there are no flatter posteriors to sample. Use the step without Tempering."
        )
    if not forest.has_fixed_prior:
        raise UnsupportedModelError(
            f"Tempering: the prior of {name} has random parameters, on which flatter posteriors "
            "would depend. Give its leaf and tree prior numbers, or use the step without Tempering."
        )
    if isinstance(target, ConjugateTarget):
        _check_rows(name, target)


def _check_rows(name, target) -> None:
    """Refuse rows that are no likelihood of f alone, or that L* cannot hold fixed."""
    if target.likelihood.rows_as == "residual":
        raise UnsupportedModelError(
            f"Tempering: the leaves of {name} have several values each, for which flatter "
            "posteriors are not available. Use the step without Tempering."
        )
    if target.others and target.likelihood.rows_as == "data":
        raise UnsupportedModelError(
            f"Tempering: the rows of {name} are not data but follow {', '.join(target.others)}, so "
            "that flatter posteriors would change with it. Use the step without Tempering."
        )


class Replicas(LadderPart):
    """A cycle of parts for each flatter posterior, and exchanges with them.

    Parameters
    ----------
    n_places : int
        Posteriors, that of the model included.
    powers : sequence of float
        Powers of the flatter ones, or none: tuning finds them.
    parts : sequence of Part
        What a step does with the forest of the model, and with each of the flatter ones.
    """

    statistics = ("accept_exchange", "accept_exchange_each", "min_inverse_temperature", "replica")

    def __init__(self, n_places, powers, parts):
        super().__init__()
        self.n_places, self.powers, self.parts = n_places, powers, parts
        self.shapes = {"accept_exchange_each": [n_places - 1]}
        self.forests: dict[str, list] = {}

    def prepare(self, forest):
        """Make the working forests of the replicas."""
        check_forest(forest)
        self.forests[forest.name] = []
        for k in range(1, self.n_places):
            one = copy(forest)
            one.name, one.call = f"{forest.name} {k}", DirectCalls()
            one.by_address = ByAddress()
            one.work = forest.make_work(forest.work.index)
            for part in self.parts:
                part.prepare(one)
            self.forests[forest.name].append(one)

    def update(self, rng, forest, problem, tuning):
        """Update the replicas and exchange with them."""
        each = np.full(self.n_places - 1, np.nan)
        leaf, target = problem.leaf, forest.aim
        # a target too far away to be kept (`is_far`): its residual alone is no likelihood of f
        is_lost = target is None and hasattr(leaf, "r")
        if is_lost or getattr(forest.target, "is_prior", False):
            numbers = np.nan, each, np.nan, np.nan
            return dict(zip(self.statistics, numbers, strict=True))
        if isinstance(forest.target, LatentTarget):
            leaf = leaf._replace(latent=self.unchanging)
        ladder = self.take(forest, lambda: self._new_ladder(forest, problem))
        if tuning and target is not None:
            ladder.follow(target, leaf.w)
        elif tuning:
            ladder.n_tuned += 1
        others = self.forests[forest.name]
        problems = [problem]
        for k, (one, trees, b) in enumerate(zip(others, ladder.trees, ladder.powers, strict=True)):
            fixed = leaf if target is None else leaf._replace(r=ladder.r[k], w=ladder.w)
            found = Problem(trees, problem.design, problem.prior, flatter(fixed, b))
            if not all(self._fits(part, rng, one, found, tuning) for part in self.parts):
                if not tuning:
                    return None
                f = 0.0 if target is None else target - leaf.r
                ladder.restart(problem.trees, f, k)
            problems.append(found)
        change = self._exchange_trees if _is_single(forest) else self._exchange_outputs
        n_changed = 0
        for k in ladder.pairs():
            each[k], accepted = change(rng, k, problems, [forest, *others], ladder)
            if accepted:
                n_changed += forest.layout.m if k == 0 else 0
                ladder.replica[[k, k + 1]] = ladder.replica[[k + 1, k]]
        if tuning:
            ladder.adapt(each)
        self.ladders[forest.name] = ladder
        numbers = float(np.nanmean(each)), each, ladder.powers[-1], float(ladder.replica[0])
        return dict(zip(self.statistics, numbers, strict=True)) | {CHANGES: n_changed}

    @staticmethod
    def _fits(part, rng, forest, problem, tuning):
        return part.update(rng, forest, problem, tuning) is not None

    @staticmethod
    def _exchange_trees(rng, k, problems, forests, ladder):
        """Probability of an exchange with leaf values integrated out, and whether it came."""
        a, b = problems[k], problems[k + 1]
        work, other = forests[k].work, forests[k + 1].work
        share = float(np.exp(min(log_exchange(a, b, work), 0.0)))
        accepted = rng.random() < share
        if accepted:
            change_places(a.trees, b.trees, work, other)
        close_exchanged(rng, a, work)
        close_exchanged(rng, b, work)
        return share, accepted

    @staticmethod
    def _exchange_outputs(rng, k, problems, forests, ladder):
        """Probability of an exchange of forests with their values, and whether it came."""
        places = []
        for j in (k, k + 1):
            trees, leaf = problems[j].trees, problems[j].leaf
            target = ladder.target if j else forests[0].aim
            places.append(Place(trees, forests[j].work, leaf.r, target, leaf.w))
        return exchange(rng, *places)

    def _new_ladder(self, forest, problem):
        """Copies of the forest."""
        works = [one.work for one in self.forests[forest.name]]
        of_rows = np.zeros(0), np.zeros(0), np.zeros(0)
        if forest.aim is not None:
            of_rows = problem.leaf.r, forest.aim, problem.leaf.w
        return FreeLadder(self.powers, problem.trees, *of_rows, works)


def _is_single(forest) -> bool:
    """Whether what is exchanged is one tree whose values integrate out without an order."""
    conjugate = isinstance(forest.target, ConjugateTarget)
    return conjugate and forest.layout.m == 1 and forest.directions is None
