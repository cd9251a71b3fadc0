"""Each odd input of each public name: an error of its type that names the argument, or a result.

The rows stand in the modules of `support.odd`; what is asked of a row is in `support.odd.table`.
"""

import pytest
from support.odd import (
    answers,
    bart,
    bart_estimators,
    data,
    estimators,
    explain,
    formulas,
    importance,
    leaves,
    pictures,
    predictors,
    runs,
    sharded,
    soft,
    soft_sums,
    steps,
    tree_pictures,
    trees,
)

import pymc_trees as pmt

TABLE = {
    "BART": bart.BART,
    "DecisionTree": bart.TREE,
    "Forest": bart.FOREST,
    "NormalLeaf": leaves.NORMAL,
    "NormalGammaLeaf": leaves.GAMMA,
    "BasisLeaf": leaves.BASIS,
    "LinearLeaf": leaves.LINEAR,
    "DirichletLeaf": leaves.DIRICHLET,
    "MondrianPrior": leaves.MONDRIAN,
    "Data": data.DATA,
    "set_data": data.SET_DATA,
    "evaluate": data.EVALUATE,
    "with_columns": data.WITH_COLUMNS,
    "CGM": steps.CGM,
    "GrowPrune": steps.GROW_PRUNE,
    "RestructureCGM": steps.RestructureCGM,
    "Tempering": steps.TEMPERING,
    "Hybrid": steps.HYBRID,
    "ParticleGibbs": steps.PARTICLE_GIBBS,
    "SplitWeights": steps.SPLIT_WEIGHTS,
    "NoiseScale": steps.NOISE_SCALE,
    "LatentNormals": steps.LATENT_NORMALS,
    "LatentColumn": steps.LATENT_COLUMN,
    "GaussianTerms": steps.GAUSSIAN_TERMS,
    "OneSidedErrors": steps.ONE_SIDED_ERRORS,
    "samplers of PyMC": steps.FOREIGN,
    "SoftDecisionTree": soft.SOFT,
    "SoftBART": soft_sums.SOFT_BART,
    "SoftCGM": soft_sums.SOFT_CGM,
    "DCCTree": soft.DCC_TREE,
    "RJHMC": soft.RJHMC,
    "sample_chains": runs.CHAINS,
    "resume": runs.RESUME,
    "sample_until": runs.UNTIL,
    "update": runs.UPDATE,
    "save": runs.SAVE,
    "sample_dcc": soft.SAMPLE_DCC,
    "sample_sharded": sharded.SHARDED,
    "sample_tree_smc": runs.SMC,
    "check_draws": runs.CHECK_DRAWS,
    "plot_soft_tree": runs.PLOT_SOFT_TREE,
    "plot_topologies": runs.PLOT_TOPOLOGIES,
    "plot_predictive_densities": runs.PLOT_DENSITIES,
    "predictions": answers.PREDICTIONS,
    "predictor": predictors.PREDICTOR,
    "Predictor": predictors.OF_PREDICTOR,
    "elsewhere": predictors.ELSEWHERE,
    "curves of a predictor": predictors.OF_TIMES,
    "load": predictors.LOAD,
    "open": predictors.OPEN,
    "comparisons": answers.COMPARISONS,
    "forecast": answers.FORECAST,
    "slopes": answers.SLOPES,
    "partial_dependence": answers.PARTIAL_DEPENDENCE,
    "accumulated_effects": answers.ACCUMULATED_EFFECTS,
    "shap_values": explain.SHAP_VALUES,
    "shap_interactions": explain.SHAP_INTERACTIONS,
    "sobol_indices": explain.SOBOL_INDICES,
    "interaction_strength": explain.INTERACTION_STRENGTH,
    "to_shap": explain.TO_SHAP,
    "get_variable_inclusion": trees.VARIABLE_INCLUSION,
    "get_interaction_inclusion": trees.INTERACTION_INCLUSION,
    "tree_text": trees.TREE_TEXT,
    "summarise_trees": trees.SUMMARISE_TREES,
    "diagnose": trees.DIAGNOSE,
    "plot_diagnosis": pictures.PLOT_DIAGNOSIS,
    "summarise_function": trees.SUMMARY_OF_FUNCTION,
    "plot_pdp": pictures.PLOT_PDP,
    "plot_ice": pictures.PLOT_ICE,
    "plot_shap": pictures.PLOT_SHAP,
    "plot_overlap": pictures.PLOT_OVERLAP,
    "plot_survival": pictures.PLOT_SURVIVAL,
    "plot_ale": pictures.PLOT_ALE,
    "plot_convergence": pictures.PLOT_CONVERGENCE,
    "plot_tree": tree_pictures.PLOT_TREE,
    "plot_variable_importance": importance.PLOT_VARIABLE_IMPORTANCE,
    "plot_scatter_submodels": importance.PLOT_SCATTER_SUBMODELS,
    "plot_variable_inclusion": pictures.PLOT_VARIABLE_INCLUSION,
    "compute_variable_importance": importance.COMPUTE_VARIABLE_IMPORTANCE,
    "permutation_importance": importance.PERMUTATION_IMPORTANCE,
    "select_variables": importance.SELECT_VARIABLES,
    "vi_to_kulprit": importance.VI_TO_KULPRIT,
    "model": formulas.MODEL,
    "BARTRegressor": bart_estimators.REGRESSOR,
    "BARTClassifier": bart_estimators.CLASSIFIER,
    "MondrianForestRegressor": estimators.REGRESSOR,
    "MondrianForestClassifier": estimators.CLASSIFIER,
}
ROWS = [(name, given) for name, rows in TABLE.items() for given in rows]
ALIASES = {"PGBART"}

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.mark.parametrize(("name", "given"), ROWS, ids=[f"{n}: {g}" for n, g in ROWS])
def test_odd_input(name, given):
    TABLE[name][given].check()


def test_the_table_has_every_public_name():
    public = {name for name in pmt.__all__ if callable(getattr(pmt, name))}
    assert public - ALIASES <= set(TABLE)
    assert len(ROWS) >= 300
