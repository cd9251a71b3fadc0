"""Each odd input of each public name: an error that names argument and remedy, or a result.

The rows stand in the modules `odd_*`; what is asked of a row is in `odd_table`.
"""

import odd_bart
import odd_data
import odd_estimators
import odd_leaves
import odd_runs
import odd_soft
import odd_steps
import pytest
from odd_table import REFUSALS

import pymc_trees as pmt

TABLE = {
    "BART": odd_bart.BART,
    "DecisionTree": odd_bart.TREE,
    "Forest": odd_bart.FOREST,
    "NormalLeaf": odd_leaves.NORMAL,
    "NormalGammaLeaf": odd_leaves.GAMMA,
    "DirichletLeaf": odd_leaves.DIRICHLET,
    "MondrianPrior": odd_leaves.MONDRIAN,
    "Data": odd_data.DATA,
    "set_data": odd_data.SET_DATA,
    "evaluate": odd_data.EVALUATE,
    "CGM": odd_steps.CGM,
    "GrowPrune": odd_steps.GROW_PRUNE,
    "Hybrid": odd_steps.HYBRID,
    "ParticleGibbs": odd_steps.PARTICLE_GIBBS,
    "SplitWeights": odd_steps.SPLIT_WEIGHTS,
    "samplers of PyMC": odd_steps.FOREIGN,
    "SoftDecisionTree": odd_soft.SOFT,
    "DCCTree": odd_soft.DCC_TREE,
    "sample_dcc": odd_soft.SAMPLE_DCC,
    "sample_tree_smc": odd_runs.SMC,
    "check_draws": odd_runs.CHECK_DRAWS,
    "plot_soft_tree": odd_runs.PLOT_SOFT_TREE,
    "plot_topologies": odd_runs.PLOT_TOPOLOGIES,
    "plot_predictive_densities": odd_runs.PLOT_DENSITIES,
    "MondrianForestRegressor": odd_estimators.REGRESSOR,
    "MondrianForestClassifier": odd_estimators.CLASSIFIER,
}
ROWS = [(name, given) for name, rows in TABLE.items() for given in rows]
ALIASES = {"PGBART"}

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.mark.parametrize(("name", "given"), ROWS, ids=[f"{n}: {g}" for n, g in ROWS])
def test_odd_input(name, given):
    odd = TABLE[name][given]
    if odd.said is None:
        assert odd.holds(odd.call())
        return
    with pytest.raises(REFUSALS, match=f"(?s){odd.said}"):
        odd.call()


def test_the_table_has_every_public_name():
    public = {name for name in pmt.__all__ if callable(getattr(pmt, name))}
    assert public - ALIASES <= set(TABLE)
    assert len(ROWS) >= 300
