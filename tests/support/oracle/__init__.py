"""Slow, exact oracle for Bayesian trees on tiny data; independent of pymc_trees.

Rows are sets of ints, a partition is a frozenset of frozensets (the leaves), and the
trees are gap-collapsed: see `splits`.  `trees` lists them, `summaries` averages over
the list, `dynamic` finds the same numbers without the list, `paths` keeps what splits a
leaf has above it, `sums` adds trees up, `simulate` draws from the prior, `mondrian` is the
law of another one, `leaves` and `quadrature` hold the leaf models.
"""

from .datasets import Problem, datasets, mixed_datasets
from .dynamic import DynamicPosterior, dynamic_posterior
from .leaves import DirichletLeaf, NormalGammaLeaf, NormalLeaf
from .mondrian import MondrianLaw
from .partitions import collapse_trees, partition_prior, same_leaf
from .paths import path_prior
from .quadrature import QuadratureLeaf, normal_log_density
from .simulate import draw_tree, draw_values, structure_of
from .splits import Split, Splits, log_leaf_and_split, mask_of, rows_of
from .summaries import (
    depth_distribution,
    distribution,
    leaf_count_distribution,
    pair_probabilities,
    partition_probabilities,
    posterior,
    row_moments,
    structure_probabilities,
)
from .sums import TreeSumPosterior, tree_sum_posterior, two_tree_posterior
from .trees import TreeInfo, enumerate_trees

__all__ = [
    "DirichletLeaf",
    "DynamicPosterior",
    "MondrianLaw",
    "NormalGammaLeaf",
    "NormalLeaf",
    "Problem",
    "QuadratureLeaf",
    "Split",
    "Splits",
    "TreeInfo",
    "TreeSumPosterior",
    "collapse_trees",
    "datasets",
    "depth_distribution",
    "distribution",
    "draw_tree",
    "draw_values",
    "dynamic_posterior",
    "enumerate_trees",
    "leaf_count_distribution",
    "log_leaf_and_split",
    "mask_of",
    "mixed_datasets",
    "normal_log_density",
    "pair_probabilities",
    "partition_prior",
    "path_prior",
    "partition_probabilities",
    "posterior",
    "row_moments",
    "rows_of",
    "same_leaf",
    "structure_of",
    "structure_probabilities",
    "tree_sum_posterior",
    "two_tree_posterior",
]
