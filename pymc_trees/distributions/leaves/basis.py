"""Coefficients of a basis in every leaf: varying coefficients, splines, waves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.named import present, register, unnamed
from pymc_trees.distributions.leaves.normal import NormalVectorLeaf, for_each
from pymc_trees.predictors.columns import real_array

SQUARES = (1e-300, 1e300)
"""Variances outside are no floating-point numbers with an inverse."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class BasisLeaf(NormalVectorLeaf):
    """Normal coefficients of the columns of a basis in every leaf of every tree.

    The function is ``f(x_i) = b_i . beta(x_i)``, where b_i is row i of the basis and beta(x_i), the
    sum over trees of the coefficients in the leaf of x_i, has d entries. A basis of ones and a
    regressor gives an intercept and a slope that vary with x; several regressors share trees;
    columns may be splines or waves of one variable. Under a Gaussian likelihood the coefficients
    are integrated out of every move; under other likelihoods they are proposed like the several
    outputs of a tree.

    Front-ends register the Deterministic ``{name}_coefficients``, shape (n, d), beside the function
    itself, and an array ``basis`` as the model data ``{name}_basis``, which must be replaced
    together with X for predictions.

    Parameters
    ----------
    basis : (n, d) array, frame, `pymc.Data` or tensor of those
        Finite numbers, one row for each row of X. Missing cells are not allowed. Bring the columns
        to a common scale, for example by standardising them, since one ``sd`` applies to all.
    mean : float, tensor or (d,) array, default 0
        Means of the coefficients of one leaf of one tree, in units of y over those of the column.
        A sum of m trees has prior mean ``m * mean``.
    sd : float, tensor, (d,) array or (d, d) array, default 1
        Standard deviation of the coefficients of one leaf of one tree: one for all, one for each,
        or their covariance matrix. A sum of m trees has m times the variance.

    Raises
    ------
    TypeError, ValueError
        For an invalid argument; the message names it and says what to give instead.

    Notes
    -----
    With a covariance ``L L'`` trees hold ``z ~ N(L^-1 mean, I)``; the coefficients are ``L z``.
    `evaluate(forest, X)` returns z, of shape (d, rows), and plots of trees show z.

    References
    ----------
    Deshpande, Bai, Balocchi, Starling and Weiss (2020). VCBART: Bayesian trees for varying
    coefficients. arXiv:2003.06416.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X, dose = rng.random((60, 2)), rng.random(60)
    >>> y = np.where(X[:, 0] > 0.5, 2.0, -1.0) * dose + 0.1 * rng.normal(size=60)
    >>> with pm.Model() as model:
    ...     leaf = pmt.BasisLeaf(np.column_stack([np.ones(60), dose]), sd=[0.2, 0.5])
    ...     f = pmt.BART("f", X, m=10, leaf=leaf)
    ...     obs = pm.Normal("y", f, 0.1, observed=y, shape=f.shape)
    >>> [v.name for v in model.deterministics]
    ['f_coefficients', 'f']
    """

    basis: Any
    factor: Any
    """Cholesky factor of the covariance of a leaf's coefficients; None where they have none."""

    def __init__(self, basis, mean=0.0, sd=1.0):
        basis, mean, sd = unnamed(basis), unnamed(mean), unnamed(sd)
        data, d = _read_basis(basis)
        mean, sd = _read_setting("mean", mean, d), _read_setting("sd", sd, d)
        factor = None
        if sd.ndim == 2:
            factor = pt.linalg.cholesky(sd)
            mean = pt.linalg.solve_triangular(factor, for_each(mean, d), lower=True, b_ndim=1)
            sd = pt.constant(np.ones(d))
        for name, value in {"basis": data, "factor": factor}.items():
            object.__setattr__(self, name, value)
        super().__init__(for_each(mean, d), for_each(sd, d), d)

    def __repr__(self):
        """Its size; the basis may be large."""
        return f"BasisLeaf({self.k} columns)"

    def for_inputs(self, table, kinds):
        """Itself, where the basis has as many rows."""
        shape = self.basis.shape if isinstance(self.basis, np.ndarray) else self.basis.shape.eval()
        n = len(table)
        if shape[0] != n:
            raise ValueError(f"basis has {shape[0]} rows, but X has {n}: give one for each.")
        return self

    def registered(self, name, outputs, dims, rows, model):
        """The coefficients, and their products with the basis summed."""
        basis = self.basis
        if isinstance(basis, np.ndarray):
            basis = pm.Data(f"{name}_basis", basis, model=model)
        values = outputs.T if self.factor is None else outputs.T @ self.factor.T
        coefficients = pm.Deterministic(f"{name}_coefficients", values, model=model)
        coefficients.tag.pymc_trees_basis = basis
        return register(name, (basis * coefficients).sum(axis=1), dims, rows, model)


def _read_basis(basis):
    """A basis as an array or a variable, and its number of columns."""
    try:
        values = real_array(present(basis) if isinstance(basis, Variable) else basis)
    except (TypeError, ValueError) as error:
        raise TypeError(f"basis must hold numbers only: {error}.") from error
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            f"basis has shape {values.shape}: give a matrix with one row for each row of X and "
            "one column for each coefficient; basis[:, None] for a single coefficient."
        )
    if not np.isfinite(values).all():
        raise ValueError("basis holds missing or infinite values: impute or leave out those rows.")
    return (basis if isinstance(basis, Variable) else values), values.shape[1]


def _read_setting(name: str, value, d: int) -> Variable:
    """Mean or sd as a tensor of at most one or two dimensions, each of length d."""
    most = 2 if name == "sd" else 1
    wanted = "a number" + f", {d} numbers" + (f", or a ({d}, {d}) covariance" if most == 2 else "")
    error = f"BasisLeaf({name}={value!r}): give {wanted}, or a random variable."
    if not isinstance(value, Variable):
        try:
            numbers = real_array(value)
        except (TypeError, ValueError):
            raise TypeError(error) from None
        if not np.isfinite(numbers).all():
            raise ValueError(error)
        if value is True or (name == "sd" and not _is_positive(numbers)):
            raise ValueError(
                f"{error} Standard deviations must be positive, and a covariance matrix positive "
                "definite."
            )
        value = pt.constant(numbers)
    if value.ndim > most or any(size not in (None, d) for size in value.type.shape):
        raise ValueError(error)
    return value


def _is_positive(values: np.ndarray) -> bool:
    if values.ndim == 2:
        if values.shape[0] != values.shape[1] or not np.allclose(values, values.T):
            return False
        squares = np.linalg.eigvalsh(values)
    else:
        squares = np.where(values > 0, values**2, 0.0)
    return bool(np.all((SQUARES[0] < squares) & (squares < SQUARES[1])))
