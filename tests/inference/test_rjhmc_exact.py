"""Weights of topologies under RJHMC against quadrature.

Shares among the topologies of up to three leaves, batch means of 30 batches; the worst of up to
four z-scores of a t law with 29 degrees of freedom exceeds 4.5 once in 2,500 runs. The shares of
the longest chain have standard errors below 0.006, and must be within .02 of the quadrature.
"""

import numpy as np
import pymc as pm
import pytest
from support.chains.jumps import (
    ALPHA,
    BETA,
    H,
    ProgramsWarmUp,
    batches_of,
    kernels_of,
    labels_of,
    weak_model,
    weak_step,
)
from support.naive.batches import gap
from support.soft_models import all_topologies
from support.soft_quadrature import (
    log_evidence,
    log_evidence_by_index,
    log_evidence_of_classes,
    topology_weights,
)

import pymc_trees as pmt
from pymc_trees.dcc.jump_chain import JumpChain

SMALL = ["L", *all_topologies(2), *all_topologies(3)]
Z, TOLERANCE = 4.5, 0.02


def weights(evidence):
    return topology_weights({label: evidence(label) for label in SMALL}, ALPHA, BETA)


@pytest.fixture(scope="module")
def one_input():
    X, y = weak_step()
    exact = weights(lambda label: log_evidence(label, X, y, H, 60, 200))
    assert exact.min() > 0.05  # all four matter
    return *kernels_of(weak_model(X, y)), exact


def test_weights_equal_quadrature(one_input):
    kernels, state, exact = one_input
    labels = labels_of(kernels, state, 2500, bridge=2, seed=1)
    assert gap(batches_of(labels, SMALL), exact).within(Z, 0.08)


@pytest.mark.full
@pytest.mark.parametrize(
    ("bridge", "draws", "tolerance"), [(0, 6000, 0.05), (5, 12_000, TOLERANCE)]
)
def test_weights_do_not_depend_on_the_bridge(bridge, draws, tolerance, one_input):
    kernels, state, exact = one_input
    labels = labels_of(kernels, state, draws, bridge=bridge, seed=2)
    assert gap(batches_of(labels, SMALL), exact).within(Z, tolerance)


@pytest.mark.full
def test_burn_in_that_the_ratio_leaves_out_moves_the_posterior():
    """Many rows make densities that are far higher in the larger topology than its prior's."""
    X, y = weak_step(n=60, size=0.0)
    exact = weights(lambda label: log_evidence(label, X, y, H, 60, 200))
    kernels, state = kernels_of(weak_model(X, y))
    right, wrong = (
        gap(
            batches_of(labels_of(kernels, state, 1000, bridge=0, seed=3, chain=chain), SMALL), exact
        )
        for chain in (JumpChain, ProgramsWarmUp)
    )
    assert right.within(Z, 0.12) and wrong.z > Z and wrong.absolute > 0.12


class WithoutStumpInRatio(JumpChain):
    """The program counts a tree of one split as growing half the time, though it always grows."""

    def log_ratio_of_growing(self, change):
        return super().log_ratio_of_growing(change) + (np.log(2) if change.smaller == "L" else 0.0)


@pytest.mark.full
def test_a_factor_of_two_in_the_ratio_is_noticed(one_input):
    kernels, state, exact = one_input
    labels = labels_of(kernels, state, 12_000, bridge=0, seed=1, chain=WithoutStumpInRatio)
    assert gap(batches_of(labels, SMALL), exact).z > Z


@pytest.mark.full
def test_weights_of_trees_by_index_equal_quadrature_over_inputs():
    X, y = weak_step(p=2)
    exact = weights(lambda label: log_evidence_by_index(label, X, y, H, 40, 60))
    kernels, state = kernels_of(weak_model(X, y, direction="index"))
    labels = labels_of(kernels, state, 5000, bridge=0, seed=4)
    assert gap(batches_of(labels, SMALL), exact).within(Z, 0.06)


@pytest.mark.full
def test_weights_of_classes_equal_quadrature():
    X, y = weak_step(n=12)
    classes = (y > 0).astype(int)
    alpha = 1.0  # per class, of the default leaf
    exact = weights(lambda label: log_evidence_of_classes(label, X, classes, H, alpha, 60))
    with pm.Model() as model:
        prob = pmt.SoftDecisionTree("p", X, classes, ALPHA, BETA, h=(2 * H, H))
        pm.Categorical("y", p=prob, observed=classes)
    kernels, state = kernels_of(model)
    labels = labels_of(kernels, state, 4000, bridge=2, seed=5)
    assert gap(batches_of(labels, SMALL), exact).within(Z, 0.06)
