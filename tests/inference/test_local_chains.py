"""When a chain warms up anew, and where from; mostly the sampler is replaced by a script."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.dcc import local
from pymc_trees.dcc.nuts import NutsChain, Run
from pymc_trees.dcc.topology_model import TopologyModel


class Posterior:
    """What `warm_up` asks of a posterior; every prior draw is another number."""

    density = None

    class op:
        h = (0.5, 0.1)

    def __init__(self):
        self.drawn, self.levels = 0, []

    def set_topology(self, label):
        self.set_sharpness(self.op.h[1])

    def set_sharpness(self, h):
        self.levels.append(h)

    def is_finite(self, q):
        return True

    def draw_start(self, rng):
        self.drawn += 1
        return np.array([float(self.drawn)])


def play(monkeypatch, diverges, moves, tune=100, repeats=True):
    """Warm-ups, and the length, start and acceptance target of each adaptation; h at each trial.

    ``diverges`` and ``moves`` say what each trial after a warm-up does; the last goes on.
    """
    posterior, adaptations, trials = Posterior(), [], []

    def start_chain(density, start, rng, target, window, variances=None):
        adaptations.append([None, start[0], target])
        return NutsChain(position=start, state=None)

    def run_chain(density, chain, n, *, tune=False, before_each=None):
        if tune:
            adaptations[-1][0] = n
            for i in range(n if before_each else 0):
                before_each(i)
            return Run(chain, np.zeros((n, 1)), np.zeros(n, dtype=bool), n)
        at = len(trials)
        trials.append(posterior.levels[-1])
        draws = np.arange(n)[:, None] * float(moves[min(at, len(moves) - 1)])
        diverging = np.full(n, diverges[min(at, len(diverges) - 1)])
        moved = NutsChain(position=chain.position + 0.25, state=None)
        return Run(moved, draws, diverging, n)

    monkeypatch.setattr(local, "start_chain", start_chain)
    monkeypatch.setattr(local, "run_chain", run_chain)
    chain = local.warm_up(posterior, "SLL", np.random.default_rng(1), tune, (), repeats).chain
    assert chain.gradients == sum(a[0] for a in adaptations) + len(trials) * (tune // 20)
    assert trials == [0.1] * len(trials)  # h has fallen
    return chain.warm_ups, adaptations


FIRST = [[85, 1.0, 0.8], [15, 1.0, 0.8]]
"""While h falls, and after it."""


def test_a_chain_that_is_well_warms_up_once(monkeypatch):
    assert play(monkeypatch, [False], [True]) == (1, FIRST)


def test_a_divergence_has_it_adapt_anew_longer_and_with_smaller_steps(monkeypatch):
    again = [[150, 1.25, 0.9]]  # from where it stands
    assert play(monkeypatch, [True, False], [True]) == (2, FIRST + again)


def test_it_adapts_once_where_covariances_follow(monkeypatch):
    assert play(monkeypatch, [True], [True], repeats=False) == (1, FIRST)


def test_after_three_more_warm_ups_the_geometry_is_to_blame(monkeypatch):
    again = [[150, 1.25, 0.9], [200, 1.5, 0.95], [250, 1.75, 0.975]]
    assert play(monkeypatch, [True], [True]) == (4, FIRST + again)


def test_a_chain_that_does_not_move_starts_elsewhere(monkeypatch):
    warm_ups, adaptations = play(monkeypatch, [False], [False, True])
    assert warm_ups == 2
    assert [a[:2] for a in adaptations[2:]] == [[128, 2.0], [22, 2.0]]


@pytest.mark.usefixtures("quick_compile")
def test_a_likelihood_that_excludes_values_of_the_tree(monkeypatch):
    """Counts with the tree as mean: where h falls, a leaf mean of less than 0 may be seen."""
    X = np.linspace(0, 1, 30)[:, None]
    y = np.random.default_rng(0).poisson(np.where(X[:, 0] > 0.5, 4.0, 0.1))
    with pm.Model() as model:
        rate = pmt.SoftDecisionTree("rate", X, None, 0.7, 2.0, leaf=pmt.NormalLeaf(2.0, 1.0))
        pm.Poisson("y", rate, observed=y)
    posterior, fallen = TopologyModel(model), []

    def fall(*args, original=local._sharpen):
        fallen.append(original(*args))
        return fallen[-1]

    monkeypatch.setattr(local, "_sharpen", fall)
    for seed in range(12):
        run = local.warm_up(posterior, "SLL", np.random.default_rng(seed), 40)
        assert posterior.is_finite(run.chain.nuts.position)
        assert np.ptp(run.draws, axis=0).all()
    lengths = {len(run.draws) for run in fallen}
    assert 0 in lengths and len(lengths) > 1  # some stayed where they start, others did not
