"""Target of a forest under logarithms of sums over rows: rows apart, given one number for each sum.

With weights w_s >= 0, sums S_s(f) = c_s + sum_i A_si exp f_i, c and A not negative, and

    log L(f) = sum_i l_i f_i - sum_s w_s log S_s(f) + constant,

let u_s be Gamma(w_s, rate S_s(f)), of density proportional to S_s^w_s u_s^(w_s - 1) exp(-u_s S_s).
The product of L and of these densities is, as a function of f, that of rows alone,

    sum_i (l_i f_i - E_i exp f_i),        E_i = sum_s u_s A_si,

a Poisson with exposure E_i but for a constant (Caron and Doucet 2012, section 2, for the ranking of
Plackett and Luce). A step draws u given f, and then f given u; u is no part of the model. Along a
contrast within a stratum u takes no information away. It does along the level of a stratum, of
which L says nothing: that is left to the prior, and `RidgeMoves` draw the level of all rows.
"""

from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors, explicit_graph_inputs

from pymc_trees.core.compile.cache import njit
from pymc_trees.targets.data_signs import data_of, is_data
from pymc_trees.targets.graph import ForestGraph, NotRecognisedError
from pymc_trees.targets.leaf_rows import leaf_rows
from pymc_trees.targets.likelihoods.contract import KernelLikelihood
from pymc_trees.targets.likelihoods.expressions import Slope, affine_pair, slope_of
from pymc_trees.targets.log_sums import LogSums, read_log_sums
from pymc_trees.targets.native import LazilyCompiled, UnitData
from pymc_trees.targets.rowwise import KernelFunction, RowwiseTarget
from pymc_trees.targets.settings import PointFunction, Settings, compile_values


@njit(cache=True)
def exposed_value(numbers, f):
    """Log-likelihood l e - E exp(e), e = slope f + offset; numbers: l, slope, offset, E."""
    e = numbers[1] * f + numbers[2]
    return numbers[0] * e - numbers[3] * np.exp(e)


@njit(cache=True)
def exposed_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[1]
    rate = numbers[3] * np.exp(slope * f + numbers[2])
    return slope * (numbers[0] - rate), -slope * slope * rate


class ExposedRows(KernelLikelihood):
    """Rows given the latent variables; made by `StrataTarget`, and of no distribution."""

    of = ()
    value = staticmethod(exposed_value)
    slopes = staticmethod(exposed_slopes)


class StrataData(NamedTuple):
    """Numbers of a point."""

    linear: np.ndarray
    """(n,) l"""
    slope: np.ndarray
    """(n,) of eta in f"""
    offset: np.ndarray
    """(n,)"""
    constant: float
    weights: list[np.ndarray]
    """w, in arrays of the shapes of the sums."""
    values: tuple
    """Values of the variables that the sums depend on."""
    of_leaves: tuple


class StrataTarget(RowwiseTarget):
    """Prior settings and likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model.

    Raises
    ------
    NotRecognisedError
        If its likelihood is not known to consist of logarithms of sums over rows.
    LeafNotProposedError
        For leaves that do not read Gaussian rows.

    References
    ----------
    Caron and Doucet (2012). Efficient Bayesian inference for generalized Bradley-Terry models.
    Journal of Computational and Graphical Statistics 21(1).
    """

    kind = "strata"

    def __init__(self, graph: ForestGraph):
        self.name, self.layout = graph.rv.name, graph.layout
        read = read_log_sums(graph)
        outputs, n = read.outputs, graph.layout.n_rows
        self.leaves = leaf_rows(graph, outputs)
        kind: Any = ExposedRows
        self.value: LazilyCompiled = KernelFunction(kind, False, False)
        self.slopes: LazilyCompiled = KernelFunction(kind, True, False)
        zero = {read.eta: pt.zeros(n)}
        sums_at_0 = clone_replace(read.sums, zero, rebuild_strict=False)
        zero |= {
            log: pt.zeros(tuple(total.shape) if None in log.type.shape else log.type.shape)
            for log, total in zip(read.logs, sums_at_0, strict=True)
        }
        slopes = pt.grad(read.total, [read.eta, *read.logs], disconnected_inputs="ignore")
        constant, *slopes = clone_replace([read.total, *slopes], zero, rebuild_strict=False)
        # without the fills of a raw gradient, which see what they only take the shape of
        linear, *slopes = (
            rewrite_graph(one, include=("canonicalize",), clone=True) for one in slopes
        )
        weights = [-slope for slope in slopes]
        self._check(weights)
        self.n_sums = len(weights)
        of_outputs = affine_pair(read.of_outputs, outputs)
        more = [] if self.leaves is None else self.leaves.wanted
        wanted = [linear, constant, *of_outputs, *weights, *more]
        self._numbers_at = PointFunction(graph.model, graph.rv, wanted, outputs, self._rows)
        self._compile(graph, read, sums_at_0)
        self.free_level = self._free_level(read, linear, weights)

    def _check(self, weights: list[Variable]) -> None:
        """Raise an error unless the weights are data, and none is negative."""
        if not weights:
            raise NotRecognisedError("no logarithms of sums")
        if not all(is_data(w) for w in weights):
            raise NotRecognisedError("weights that are not data")
        if not all((data_of(w) >= 0).all() for w in weights):
            raise NotRecognisedError("the logarithm of a sum that is added")

    def _compile(self, graph: ForestGraph, read: LogSums, sums_at_0: list[Variable]) -> None:
        """Functions of eta, or of u, and of the values of other variables."""
        model = graph.model
        us = [pt.TensorType("float64", total.type.shape)() for total in read.sums]
        terms = [(u * total).sum() for u, total in zip(us, read.sums, strict=True)]
        exposures = pt.grad(pt.add(pt.constant(0.0), *terms), read.eta)
        [exposures] = clone_replace([exposures], {read.eta: pt.zeros(self.layout.n_rows)})
        needed = set(explicit_graph_inputs([*read.sums, exposures]))
        self._names = [v.name for v in model.value_vars if v in needed]
        self._sums, names = compile_values(model, read.sums, [read.eta])
        self._places = [self._names.index(name) for name in names]
        self._exposures, names = compile_values(model, [exposures], us)
        self._places_of_exposures = [self._names.index(name) for name in names]

    def _free_level(self, read: LogSums, linear: Variable, weights: list) -> list | None:
        # the likelihood of f + t is exp(t (sum l - sum w)) times that of f if all c are 0
        if self.leaves is None or not self.leaves.is_constant or not read.rise:
            return None
        is_one = slope_of(read.of_outputs, read.outputs) is Slope.ONE
        if not (is_one and is_data(linear)):
            return None
        levels = data_of(linear.sum()), sum(data_of(w.sum()) for w in weights)
        shared = [v for v in ancestors([linear, *weights, *read.sums]) if hasattr(v, "get_value")]
        return shared if np.isclose(*levels, rtol=1e-12) else None

    def at(self, point: dict) -> tuple[Settings, Any]:
        """Settings; the numbers of the rows and of the sums."""
        settings, numbers = self._numbers_at(point)
        return settings, numbers._replace(values=tuple(point[name] for name in self._names))

    def _rows(self, values):
        n = self.layout.n_rows
        linear, constant, slope, offset, *rest = values
        linear, slope, offset = (
            np.broadcast_to(np.asarray(v, dtype=np.float64), (n,)) for v in (linear, slope, offset)
        )
        weights = rest[: self.n_sums]
        if not (np.isfinite(linear).all() and np.isfinite(slope + offset).all()):
            raise ValueError("Parameters of the observed variable are not finite at this point.")
        if not all((w >= 0).all() for w in weights):
            raise ValueError(
                f"The likelihood of {self.name} adds the logarithm of a sum of its exponentials, "
                "which it subtracted before pm.set_data: make the step anew with these data."
            )
        constant, more = float(constant), tuple(rest[self.n_sums :])
        return StrataData(linear, slope, offset, constant, weights, (), more)

    def leaf_data(self, settings: Settings, seen: Any, fit: np.ndarray, rng=None):
        """Leaf model given the latent variables, which are drawn; None, as of `RowwiseTarget`."""
        sums = self._sums_at(seen, self._eta(seen, fit))
        drawn = [
            np.where(w > 0, rng.standard_gamma(w) / total, 0.0)
            for w, total in zip(seen.weights, sums, strict=True)
        ]
        return super().leaf_data(settings, self.given(seen, drawn), fit, rng)

    def given(self, seen: StrataData, drawn: list[np.ndarray]) -> UnitData:
        """Numbers of the rows given the latent variables, arrays of the shapes of the sums."""
        values = (seen.values[k] for k in self._places_of_exposures)
        [exposure] = self._exposures(*drawn, *values)
        if not (exposure >= 0).all():
            raise ValueError("Parameters of the observed variable are not finite at this point.")
        numbers = np.stack([seen.linear, seen.slope, seen.offset, exposure], axis=1)
        return UnitData(np.array(numbers.shape, dtype=np.int64), np.ravel(numbers), seen.of_leaves)

    def level(self, leaf) -> float:
        """What f rises with, a function of the latent variables, where its level is free."""
        if self.free_level is None:
            return 0.0
        linear, _, offset, exposure = np.reshape(leaf.data, (-1, 4)).T
        return float(np.log(linear.sum() / np.sum(exposure * np.exp(offset))))

    def _eta(self, seen: StrataData, fit: np.ndarray) -> np.ndarray:
        f = fit if self.leaves is None else self.leaves.function(fit, seen.of_leaves)
        return seen.slope * f[:, 0] + seen.offset

    def _sums_at(self, seen: StrataData, eta: np.ndarray) -> list[np.ndarray]:
        return self._sums(eta, *(seen.values[k] for k in self._places))

    def log_likelihood(self, leaf, seen: StrataData, trees) -> float:
        """Log-likelihood at the outputs of all trees, the latent variables integrated out."""
        eta = self._eta(seen, trees())
        total = seen.constant + float(seen.linear @ eta)
        for w, one in zip(seen.weights, self._sums_at(seen, eta), strict=True):
            total -= float(np.sum(w * np.log(one), where=w > 0))
        return total
