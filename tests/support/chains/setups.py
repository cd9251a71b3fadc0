"""Arrays of a sampler for the tiny problems of the oracle."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.core.moves.problem import Problem, make_workspace
from pymc_trees.core.priors.cgm import make_prior


class Setup(NamedTuple):
    """Everything a sweep takes but the generator."""

    trees: tuple
    design: tuple
    prior: tuple
    leaf: tuple
    work: tuple

    @property
    def problem(self):
        """What kernels take as one."""
        return Problem(*self[:4])


def weights_of(problem, p):
    """Split weights of an oracle problem."""
    given = problem.prior.get("split_prior")
    return np.full(p, 1 / p) if given is None else np.asarray(given, dtype=float)


def design_of(problem):
    """Design of an oracle problem."""
    names = problem.prior.get("kinds")
    cuts = problem.prior.get("cuts")
    if names is None:
        return make_design(problem.X, cuts)
    signs = {"number": 0, "subset": 1, "onehot": -1}
    sizes = [0 if name == "number" else 1 + np.nanmax(x) for name, x in zip(names, problem.X.T)]
    kinds = np.array([signs[name] * int(size) for name, size in zip(names, sizes)])
    return make_design(np.where(np.isnan(problem.X), MISSING, problem.X), cuts, kinds)


def float_cells(design):
    """The same design with float64 cells."""
    if hasattr(design, "sides"):
        design = design._replace(sides=design.sides.astype(np.float64))
    return design._replace(columns=design.columns.astype(np.float64))


def make_setup(problem, leaf_name, m=1, data=True):
    """Sampler arrays for an oracle problem; ``data=False`` for a flat likelihood."""
    n, p = problem.X.shape
    weights = weights_of(problem, p)
    design = design_of(problem)
    design = design._replace(varies=design.varies & (weights > 0))
    if leaf_name != "normal":  # codes as floats: the same numbers, one compilation less
        design = float_cells(design)
    max_nodes = m * (2 * n - 1)
    if leaf_name == "normal":
        precision = np.asarray(problem.sigma, dtype=float) ** -2.0 if data else 0.0
        residual = problem.y - m * problem.mean if data else np.zeros(n)
        leaf = make_normal(problem.mean, problem.sd, residual, precision, max_nodes)
        n_values, n_stats = 1, 2
    elif leaf_name == "normal_gamma":
        y = problem.y if data else np.empty(0)
        leaf = make_normal_gamma(problem.a, problem.nu, problem.lam, y)
        n_values, n_stats = 2, 3
    else:
        y = problem.labels if data else np.empty(0)
        leaf = make_dirichlet(problem.alpha_total, problem.n_classes, y)
        n_values = n_stats = problem.n_classes
    trees = make_trees(m, max_nodes, n_values, n)
    if leaf_name == "normal":
        trees.values[:m] = problem.mean
    trees.unsplittable[:m] = not design.varies.any()
    prior = make_prior(problem.prior["alpha"], problem.prior["beta"], weights)
    return Setup(trees, design, prior, leaf, make_workspace(max_nodes, n_stats, design))


def with_float_cells(setup):
    """The same setup with float64 cells: one compilation less."""
    return setup._replace(design=float_cells(setup.design))
