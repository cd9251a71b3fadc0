"""Tiny test problems with a posterior spread over many trees."""

from dataclasses import dataclass

import numpy as np

from .leaves import DirichletLeaf, NormalGammaLeaf, NormalLeaf


@dataclass(frozen=True)
class Problem:
    """Data, tree prior and leaf settings of one test problem.

    ``y`` is for normal and normal-gamma leaves, ``labels`` (0..2) for the Dirichlet.
    ``prior`` holds the keyword arguments alpha, beta (and split_prior, cuts) shared
    by `enumerate_trees`, `dynamic_posterior`, `two_tree_posterior`, `draw_tree`.
    """

    X: np.ndarray
    y: np.ndarray
    labels: np.ndarray
    prior: dict
    sigma: float | np.ndarray = 0.7
    mean: float = 0.2
    sd: float = 1.0
    nu: float = 3.0
    lam: float = 0.4
    a: float = 0.3
    n_classes: int = 3
    alpha_total: float = 1.5

    @property
    def n(self):
        return len(self.X)

    def normal(self):
        return NormalLeaf(self.y, self.sigma, self.mean, self.sd)

    def normal_gamma(self):
        return NormalGammaLeaf(self.y, self.nu, self.lam, self.a)

    def dirichlet(self):
        return DirichletLeaf(self.labels, self.n_classes, self.alpha_total)


def _problem(X, y, labels, prior, **kwargs):
    return Problem(np.array(X, float), np.array(y, float), np.array(labels, int), prior, **kwargs)


def datasets():
    """Dictionary name -> `Problem`.

    gaps : one column, very unequal gaps
    repeats : repeated rows (equal in every column), two columns
    binary_constant : a two-valued column, a constant column and a numeric one
    two_columns, three_columns : general position; the latter has column weights
    deep : one column and a binary one, most posterior mass three or more levels deep
    grid : the grid prior, with two grid cuts in one gap, cuts outside the data, a cut
        equal to a data value, and nodes that vary but have no grid cut left
    noisy : `gaps` with a different noise sd in every row
    """
    gaps = dict(
        X=[[0.0], [0.1], [0.5], [2.0], [2.3], [7.0]],
        y=[-0.9, -0.2, -1.1, 1.2, 0.4, 1.3],
        labels=[0, 0, 1, 1, 2, 2],
        prior=dict(alpha=0.8, beta=1.0),
    )
    return {
        "gaps": _problem(**gaps),
        "repeats": _problem(
            X=[[0, 1], [0, 1], [1, 0], [1, 0], [1, 2], [3, 2], [3, 2]],
            y=[-0.6, 0.1, 1.3, 0.4, -0.4, -1.0, -1.4],
            labels=[0, 1, 1, 1, 0, 2, 2],
            prior=dict(alpha=0.9, beta=0.8),
        ),
        "binary_constant": _problem(
            X=[[0, 5, 0.3], [1, 5, 0.4], [0, 5, 1.0], [1, 5, 1.7], [0, 5, 2.0], [1, 5, 4.0]],
            y=[-0.7, 0.6, -0.1, 1.2, -1.0, 1.9],
            labels=[0, 1, 0, 1, 2, 1],
            prior=dict(alpha=0.9, beta=1.0),
        ),
        "two_columns": _problem(
            X=[[0.0, 2.0], [0.4, 0.3], [1.0, 1.1], [1.9, 0.0], [2.2, 1.6], [3.0, 0.9]],
            y=[0.9, -0.8, 0.5, -1.2, 1.6, 0.1],
            labels=[2, 0, 1, 0, 2, 1],
            prior=dict(alpha=0.9, beta=1.0),
        ),
        "three_columns": _problem(
            X=[
                [0.0, 1.5, 3.0],
                [0.7, 0.2, 1.0],
                [1.0, 3.1, 0.0],
                [2.5, 0.9, 2.2],
                [2.9, 2.0, 0.6],
            ],
            y=[1.0, -0.6, -0.2, 0.8, -1.4],
            labels=[0, 1, 1, 0, 2],
            prior=dict(alpha=0.9, beta=0.7, split_prior=np.array([0.2, 1.0, 0.5])),
        ),
        "deep": _problem(
            X=[[0, 0], [0.5, 1], [1.2, 0], [2, 1], [2.4, 0], [3.5, 1], [4, 0], [5, 1]],
            y=[-1.2, 0.8, 1.4, -0.3, -1.0, 1.6, 0.1, -0.9],
            labels=[0, 1, 1, 2, 0, 1, 2, 0],
            prior=dict(alpha=0.95, beta=0.5),
        ),
        "grid": _problem(
            X=[[0, 0.0], [1, 2.0], [2, 1.0], [3, 4.0], [4, 1.0], [6, 3.0]],
            y=[-0.8, -0.3, 0.9, 1.1, 0.2, -1.0],
            labels=[0, 0, 1, 1, 2, 0],
            prior=dict(
                alpha=0.9,
                beta=0.8,
                cuts=[np.array([-1.0, 0.5, 1.2, 1.7, 3.0, 6.0]), np.array([0.5, 2.5, 9.0])],
            ),
        ),
        "noisy": _problem(**gaps, sigma=np.array([0.3, 0.9, 0.6, 1.2, 0.5, 0.8])),
    }


def mixed_datasets():
    """Dictionary name -> `Problem` with levels and missing cells (NaN in X).

    levels : subsets of four levels, one of them absent from part of the tree, and a column with
        ties
    missing : a column with missing cells and ties, and one whose only value is missing or present
    onehot : one level against the rest, with missing cells, and column weights
    mixed_grid : the grid prior with missing cells, beside subsets with missing cells
    """
    nan = np.nan
    return {
        "levels": _problem(
            X=[[0, 0.0], [1, 0.0], [2, 0.0], [0, 1.0], [1, 1.0], [3, 1.0], [3, 2.5]],
            y=[-0.9, 0.8, -0.3, -1.1, 1.3, 0.2, 0.9],
            labels=[0, 1, 0, 0, 1, 2, 2],
            prior=dict(alpha=0.9, beta=0.8, kinds=["subset", "number"]),
        ),
        "missing": _problem(
            X=[[0.0, nan], [0.7, 1], [0.7, nan], [2.0, nan], [nan, 1], [nan, nan], [3.0, 1]],
            y=[-0.8, 0.3, 0.9, 1.4, -1.2, -0.2, 0.6],
            labels=[0, 1, 1, 2, 0, 0, 2],
            prior=dict(alpha=0.9, beta=0.7, kinds=["number", "number"]),
        ),
        "onehot": _problem(
            X=[[0, 0.0], [1, 0.4], [2, 1.0], [nan, 1.9], [0, 2.2], [2, 2.2]],
            y=[0.9, -0.8, 0.5, -1.2, 1.6, 0.1],
            labels=[2, 0, 1, 0, 2, 1],
            prior=dict(
                alpha=0.9,
                beta=1.0,
                kinds=["onehot", "number"],
                split_prior=np.array([0.7, 0.3]),
            ),
        ),
        "mixed_grid": _problem(
            X=[[0, 0], [1, 1], [2, nan], [nan, 2], [4, 0], [nan, nan], [6, 2]],
            y=[-0.8, -0.3, 0.9, 1.1, 0.2, -1.0, 0.4],
            labels=[0, 0, 1, 1, 2, 0, 2],
            prior=dict(
                alpha=0.9,
                beta=0.8,
                kinds=["number", "subset"],
                cuts=[np.array([-1.0, 0.5, 1.2, 1.7, 3.0, 6.0]), np.array([])],
            ),
        ),
    }
