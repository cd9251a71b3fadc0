"""Rows of several outputs with correlated errors: ``y_i ~ MvNormal(B_i f_i + c_i, S_i)``.

With ``L_i L_i' = S_i``, ``U_i = L_i^-1 B_i`` and ``e_i = L_i^-1 (y_i - c_i)`` the density of row i
is that of ``e_i ~ Normal(U_i f_i, 1)`` over the determinant of L_i. Where f_i is one number this is

    N(t_i | f_i, 1 / w_i) times a number free of f,    w_i = U_i'U_i,    t_i = U_i'e_i / w_i:

a Normal row. If f is the mean of output k alone, t_i is y_ik less the regression of its error on
those of the other outputs, and w_i the precision of that regression, entry kk of S^-1. The other
outputs may have forests of their own, or terms of any kind: they are in c.
"""

import math
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.multivariate import MvNormal
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pymc_trees.targets.graph import NotRecognisedError, dependent_on
from pymc_trees.targets.likelihoods.contract import ObservedTerm, refusal, rows_of
from pymc_trees.targets.likelihoods.expressions import rows_axis

LOG_2_PI = math.log(2.0 * math.pi)


def is_correlated(term: ObservedTerm) -> bool:
    """Whether the variable is a ``pm.MvNormal`` of two dimensions, rows first."""
    return isinstance(term.rv.owner.op, type(MvNormal.rv_op)) and term.value.ndim == 2


def read_correlated(term: ObservedTerm) -> tuple[list[Variable], Variable]:
    """Observed values, mean where the outputs are 0, covariance, and the columns of B.

    Raises
    ------
    NotConjugateError
        Unless the mean is affine in the outputs, row by row, and the covariance does not see them.
    """
    name, graph = term.rv.name, term.graph
    (mean, cov), outputs = term.opened()
    dependent = dependent_on([mean, cov], outputs)
    if cov in dependent:
        raise refusal(graph, f"the covariance of {name} depends on it")
    if graph.layout.n_rows == 1:
        raise refusal(graph, "there is a single row")
    try:
        row_by_row = mean in dependent and rows_axis(mean, outputs, dependent) == 0
    except NotRecognisedError as error:
        raise refusal(
            graph, f"the mean of {name} is not an affine function of it, row by row ({error})"
        ) from None
    if not row_by_row:
        raise refusal(graph, f"the rows of the mean of {name} are not those of its X")
    return [term.value, mean, cov, *_slopes(mean, outputs)], outputs


def _slopes(mean: Variable, outputs: Variable) -> list[Variable]:
    """(n, K) derivatives of a mean by each output of its row, which must be affine in them."""
    along = mean.type("along")
    back = pt.grad((mean * along).sum(), outputs, disconnected_inputs="ignore")
    slopes = [
        pt.grad(back[:, j].sum(), along, disconnected_inputs="ignore")
        for j in range(outputs.type.shape[1])
    ]
    return clone_replace(slopes, {along: pt.zeros_like(mean)}, rebuild_strict=False)


class Whitened(NamedTuple):
    """Rows ``e_i ~ Normal(U_i f_i, 1)``."""

    e: np.ndarray
    """(n, K)"""
    U: np.ndarray
    """(n, K, J), or (1, K, J) where all rows have the same."""
    log_determinant: float
    """Of all L_i together."""

    @classmethod
    def of(cls, numbers: list[np.ndarray], n: int) -> "Whitened":
        """From the numbers of the expressions of `read_correlated`, or an error."""
        observed, mean, cov, *slopes = numbers
        k = cov.shape[-1]
        observed = np.stack([rows_of(column, n) for column in observed.T], axis=1)
        basis = np.stack(np.broadcast_arrays(*slopes), axis=-1)
        if (basis == basis[:1]).all():
            basis = basis[:1]
        if not (np.isfinite(mean).all() and np.isfinite(basis).all()):
            raise ValueError("The mean of the observed variable is not finite at this point.")
        roots = _roots(np.reshape(cov, (-1, k, k)))
        inverse = np.linalg.inv(roots)
        e = ((observed - mean)[:, None, :] @ inverse.mT)[:, 0]
        logs = np.log(np.diagonal(roots, axis1=-2, axis2=-1))
        return cls(e, inverse @ basis, float(logs.sum()) * (n / len(roots)))

    def log_density(self, f: np.ndarray) -> float:
        """Of all rows, where the outputs are ``f``, (n, J)."""
        z = self.e - (self.U @ f[:, :, None])[:, :, 0]
        return -0.5 * float(np.sum(z**2) + z.size * LOG_2_PI) - self.log_determinant

    def as_normal(self) -> tuple:
        """One Normal row for each: target, offset, sd, slope or None, and what is free of f.

        J is 1. A slope of 0 marks rows that do not depend on f.
        """
        U = self.U[:, :, 0]
        w = np.sum(U**2, axis=1)
        sees = w > 0
        w = np.where(sees, w, 1.0)
        target = np.where(sees, np.sum(U * self.e, axis=1) / w, 0.0)
        n = target.size
        logs = float(np.sum(np.log(w))) * (n / w.size)
        free = self.log_density(target[:, None]) + 0.5 * (n * LOG_2_PI - logs)
        slope = None if sees.all() else sees.astype(np.float64)
        return target, np.zeros(1), w**-0.5, slope, free


def _roots(cov: np.ndarray) -> np.ndarray:
    """Cholesky factors of the covariance of each row, or of the only one."""
    try:
        roots = np.linalg.cholesky(cov[:1] if (cov == cov[:1]).all() else cov)
    except np.linalg.LinAlgError:
        roots = np.array(np.nan)
    if not np.isfinite(roots).all():
        raise ValueError(
            "The covariance of the observed variable must be positive definite and finite, but at "
            "this point it is not: give its standard deviations a prior that keeps them away from "
            "0."
        )
    return roots
