"""Public names for type checkers and editors; `tests/support/public_names.py` writes this file."""

from pymc_trees import causal as causal
from pymc_trees import formula as formula
from pymc_trees import pymc_bart as pymc_bart
from pymc_trees import survival as survival
from pymc_trees._version import __version__ as __version__
from pymc_trees.dcc.dcc_tree import DCCTree as DCCTree
from pymc_trees.dcc.plots import plot_soft_tree as plot_soft_tree
from pymc_trees.dcc.plots import plot_topologies as plot_topologies
from pymc_trees.dcc.rjhmc import RJHMC as RJHMC
from pymc_trees.dcc.sample_dcc import sample_dcc as sample_dcc
from pymc_trees.dcc.soft_decision_tree import SoftDecisionTree as SoftDecisionTree
from pymc_trees.distributions.bart import BART as BART
from pymc_trees.distributions.bart import DecisionTree as DecisionTree
from pymc_trees.distributions.data.random_columns import with_columns as with_columns
from pymc_trees.distributions.data.variables import Data as Data
from pymc_trees.distributions.data.variables import set_data as set_data
from pymc_trees.distributions.forest import Forest as Forest
from pymc_trees.distributions.leaves.basis import BasisLeaf as BasisLeaf
from pymc_trees.distributions.leaves.dirichlet import DirichletLeaf as DirichletLeaf
from pymc_trees.distributions.leaves.linear import LinearLeaf as LinearLeaf
from pymc_trees.distributions.leaves.normal import NormalLeaf as NormalLeaf
from pymc_trees.distributions.leaves.normal_gamma import NormalGammaLeaf as NormalGammaLeaf
from pymc_trees.distributions.ops.evaluation import evaluate as evaluate
from pymc_trees.distributions.soft_bart import SoftBART as SoftBART
from pymc_trees.distributions.tree_priors.mondrian import MondrianPrior as MondrianPrior
from pymc_trees.estimators.classifier import BARTClassifier as BARTClassifier
from pymc_trees.estimators.regressor import BARTRegressor as BARTRegressor
from pymc_trees.formula.build import model as model
from pymc_trees.inference.chains.sample import resume as resume
from pymc_trees.inference.chains.sample import sample_chains as sample_chains
from pymc_trees.inference.chains.until import sample_until as sample_until
from pymc_trees.inference.chains.update import update as update
from pymc_trees.inference.tree_smc.sample_tree_smc import sample_tree_smc as sample_tree_smc
from pymc_trees.mondrian.classifier import MondrianForestClassifier as MondrianForestClassifier
from pymc_trees.mondrian.regressor import MondrianForestRegressor as MondrianForestRegressor
from pymc_trees.plots.common_support import plot_overlap as plot_overlap
from pymc_trees.plots.convergence import plot_convergence as plot_convergence
from pymc_trees.plots.dependence import plot_ale as plot_ale
from pymc_trees.plots.dependence import plot_ice as plot_ice
from pymc_trees.plots.dependence import plot_pdp as plot_pdp
from pymc_trees.plots.diagnosis import plot_diagnosis as plot_diagnosis
from pymc_trees.plots.importance import plot_scatter_submodels as plot_scatter_submodels
from pymc_trees.plots.importance import plot_variable_importance as plot_variable_importance
from pymc_trees.plots.importance import plot_variable_inclusion as plot_variable_inclusion
from pymc_trees.plots.predictive_densities import (
    plot_predictive_densities as plot_predictive_densities,
)
from pymc_trees.plots.shap import plot_shap as plot_shap
from pymc_trees.plots.survival_curves import plot_survival as plot_survival
from pymc_trees.plots.tree import plot_tree as plot_tree
from pymc_trees.posterior.accumulated_effects import accumulated_effects as accumulated_effects
from pymc_trees.posterior.comparisons import comparisons as comparisons
from pymc_trees.posterior.comparisons import predictions as predictions
from pymc_trees.posterior.comparisons import slopes as slopes
from pymc_trees.posterior.convergence import summarise_function as summarise_function
from pymc_trees.posterior.dependence import partial_dependence as partial_dependence
from pymc_trees.posterior.diagnosis import diagnose as diagnose
from pymc_trees.posterior.draws import check_draws as check_draws
from pymc_trees.posterior.explain.interactions import interaction_strength as interaction_strength
from pymc_trees.posterior.explain.shapley import shap_interactions as shap_interactions
from pymc_trees.posterior.explain.shapley import shap_values as shap_values
from pymc_trees.posterior.explain.shapley import to_shap as to_shap
from pymc_trees.posterior.explain.variance import sobol_indices as sobol_indices
from pymc_trees.posterior.exporting.predictor import predictor as predictor
from pymc_trees.posterior.forecasts import forecast as forecast
from pymc_trees.posterior.importance.permutation import (
    permutation_importance as permutation_importance,
)
from pymc_trees.posterior.importance.selection import select_variables as select_variables
from pymc_trees.posterior.importance.submodels import (
    compute_variable_importance as compute_variable_importance,
)
from pymc_trees.posterior.importance.submodels import vi_to_kulprit as vi_to_kulprit
from pymc_trees.posterior.inclusion import get_interaction_inclusion as get_interaction_inclusion
from pymc_trees.posterior.inclusion import get_variable_inclusion as get_variable_inclusion
from pymc_trees.posterior.saving import open as open
from pymc_trees.posterior.saving import save as save
from pymc_trees.posterior.tree_text import summarise_trees as summarise_trees
from pymc_trees.posterior.tree_text import tree_text as tree_text
from pymc_trees.predictors.load import load as load
from pymc_trees.predictors.predictor import Predictor as Predictor
from pymc_trees.sharded.sample_sharded import sample_sharded as sample_sharded
from pymc_trees.step_methods.cgm import CGM as CGM
from pymc_trees.step_methods.cgm import GrowPrune as GrowPrune
from pymc_trees.step_methods.cgm import RestructureCGM as RestructureCGM
from pymc_trees.step_methods.hybrid import Hybrid as Hybrid
from pymc_trees.step_methods.latent_column import LatentColumn as LatentColumn
from pymc_trees.step_methods.latent_normals import LatentNormals as LatentNormals
from pymc_trees.step_methods.noise_scale import NoiseScale as NoiseScale
from pymc_trees.step_methods.particle_gibbs import PGBART as PGBART
from pymc_trees.step_methods.particle_gibbs import ParticleGibbs as ParticleGibbs
from pymc_trees.step_methods.soft_cgm import SoftCGM as SoftCGM
from pymc_trees.step_methods.split_weights import SplitWeights as SplitWeights
from pymc_trees.step_methods.tempering import Tempering as Tempering
from pymc_trees.terms.one_sided_step import OneSidedErrors as OneSidedErrors
from pymc_trees.terms.step import GaussianTerms as GaussianTerms
