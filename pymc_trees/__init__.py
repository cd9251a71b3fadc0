"""Bayesian trees for PyMC: forests as random variables, samplers as step methods.

Names are loaded on first use, so ``import pymc_trees`` costs next to nothing. The first use of any
name except the Mondrian estimators, `Predictor` and `load`, which do not need PyMC, registers the
step methods with PyMC and wraps functions of PyMC: docs/architecture/private_names.md lists them,
with the reasons.
Importing the package after PyMC adds a remedy to errors of `pymc.Data`, and nothing else.
"""

from importlib import import_module

from pymc_trees._version import __version__
from pymc_trees.unread_tables import explain_data

_HOMES = {
    "BART": "distributions.bart",
    "BARTClassifier": "estimators.classifier",
    "BARTRegressor": "estimators.regressor",
    "BasisLeaf": "distributions.leaves.basis",
    "CGM": "step_methods.cgm",
    "Hybrid": "step_methods.hybrid",
    "DCCTree": "dcc.dcc_tree",
    "Data": "distributions.data.variables",
    "DecisionTree": "distributions.bart",
    "DirichletLeaf": "distributions.leaves.dirichlet",
    "Forest": "distributions.forest",
    "GaussianTerms": "terms.step",
    "OneSidedErrors": "terms.one_sided_step",
    "GrowPrune": "step_methods.cgm",
    "LinearLeaf": "distributions.leaves.linear",
    "MondrianForestClassifier": "mondrian.classifier",
    "MondrianForestRegressor": "mondrian.regressor",
    "MondrianPrior": "distributions.tree_priors.mondrian",
    "LatentColumn": "step_methods.latent_column",
    "LatentNormals": "step_methods.latent_normals",
    "NoiseScale": "step_methods.noise_scale",
    "NormalGammaLeaf": "distributions.leaves.normal_gamma",
    "NormalLeaf": "distributions.leaves.normal",
    "PGBART": "step_methods.particle_gibbs",
    "Predictor": "predictors.predictor",
    "ParticleGibbs": "step_methods.particle_gibbs",
    "RJHMC": "dcc.rjhmc",
    "SoftBART": "distributions.soft_bart",
    "SoftCGM": "step_methods.soft_cgm",
    "SplitWeights": "step_methods.split_weights",
    "SoftDecisionTree": "dcc.soft_decision_tree",
    "RestructureCGM": "step_methods.cgm",
    "Tempering": "step_methods.tempering",
    "accumulated_effects": "posterior.accumulated_effects",
    "causal": "causal",
    "check_draws": "posterior.draws",
    "comparisons": "posterior.comparisons",
    "compute_variable_importance": "posterior.importance.submodels",
    "diagnose": "posterior.diagnosis",
    "evaluate": "distributions.ops.evaluation",
    "with_columns": "distributions.data.random_columns",
    "forecast": "posterior.forecasts",
    "formula": "formula",
    "get_interaction_inclusion": "posterior.inclusion",
    "get_variable_inclusion": "posterior.inclusion",
    "interaction_strength": "posterior.explain.interactions",
    "load": "predictors.load",
    "model": "formula.build",
    "open": "posterior.saving",
    "partial_dependence": "posterior.dependence",
    "permutation_importance": "posterior.importance.permutation",
    "plot_ale": "plots.dependence",
    "plot_convergence": "plots.convergence",
    "plot_diagnosis": "plots.diagnosis",
    "plot_ice": "plots.dependence",
    "plot_overlap": "plots.common_support",
    "plot_pdp": "plots.dependence",
    "plot_shap": "plots.shap",
    "plot_predictive_densities": "plots.predictive_densities",
    "plot_scatter_submodels": "plots.importance",
    "plot_soft_tree": "dcc.plots",
    "plot_survival": "plots.survival_curves",
    "plot_topologies": "dcc.plots",
    "plot_tree": "plots.tree",
    "plot_variable_importance": "plots.importance",
    "plot_variable_inclusion": "plots.importance",
    "predictions": "posterior.comparisons",
    "predictor": "posterior.exporting.predictor",
    "pymc_bart": "pymc_bart",
    "resume": "inference.chains.sample",
    "sample_chains": "inference.chains.sample",
    "sample_until": "inference.chains.until",
    "sample_sharded": "sharded.sample_sharded",
    "sample_dcc": "dcc.sample_dcc",
    "sample_tree_smc": "inference.tree_smc.sample_tree_smc",
    "save": "posterior.saving",
    "select_variables": "posterior.importance.selection",
    "set_data": "distributions.data.variables",
    "shap_interactions": "posterior.explain.shapley",
    "shap_values": "posterior.explain.shapley",
    "slopes": "posterior.comparisons",
    "summarise_trees": "posterior.tree_text",
    "summarise_function": "posterior.convergence",
    "survival": "survival",
    "tree_text": "posterior.tree_text",
    "update": "inference.chains.update",
    "vi_to_kulprit": "posterior.importance.submodels",
    "sobol_indices": "posterior.explain.variance",
    "to_shap": "posterior.explain.shapley",
}

_PACKAGES = {"causal", "formula", "pymc_bart", "survival"}
"""Names that are modules, with names of their own."""

_WITHOUT_PYMC = ("mondrian.", "predictors.")
"""Homes of names that do not need PyMC."""

__all__ = ["__version__", *_HOMES]

explain_data()


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'pymc_trees' has no attribute {name!r}")
    if not _HOMES[name].startswith(_WITHOUT_PYMC):
        import_module("pymc_trees.hooks")  # registers them
    home = import_module(f"pymc_trees.{_HOMES[name]}")
    value = home if name in _PACKAGES else getattr(home, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_HOMES])
