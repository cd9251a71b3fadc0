"""A function of a model as a sum over leaves of trees: what each leaf adds to each output.

Closed forms over the columns on a leaf's path hold for sums of leaves. A Deterministic that is a
linear function of its forests' outputs, row by row, is such a sum, draw by draw also where other
random variables are its coefficients: whether it is one, its Ops say (`linear`). So is anything at
all of one single tree, whose leaves then hold the transformed values.
"""

from functools import partial
from threading import Lock

import numpy as np
import pymc as pm
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalars
from pytensor.tensor import matrix
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_trees.core.explain.paths import add_values
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.reading.functions import Function
from pymc_trees.targets.graph import dependent_on, passes_through

# -------- Whether an expression is linear in what trees return, plus a constant: read from its Ops


ARRANGING = (DimShuffle, Reshape, Alloc, Subtensor, AdvancedSubtensor)
"""Ops that put the entries of their first input elsewhere."""


def is_linear(var: Variable, outputs: list[Variable]) -> bool:
    """Whether an expression is certainly linear in some variables, plus a constant.

    What is not known to be counts as curved.
    """
    return _is_linear(var, _dependent(var, outputs), outputs)


def _dependent(var, outputs):
    return set().union(*(dependent_on([var], one) for one in outputs))


def _is_linear(var, dependent, outputs):
    if var not in dependent or any(var is one for one in outputs):
        return True
    inner = passes_through(var)
    if inner is not None:
        return _is_linear(inner, dependent, outputs)
    node, op = var.owner, var.owner.op
    if isinstance(op, OpFromGraph):
        inside = op.fgraph.bind(node.inputs)[node.outputs.index(var)]
        return _is_linear(inside, dependent | _dependent(inside, outputs), outputs)
    if not _keeps_lines(op, [v in dependent for v in node.inputs]):
        return False
    return all(_is_linear(v, dependent, outputs) for v in node.inputs)


def _keeps_lines(op, bound: list[bool]) -> bool:
    """Whether an Op is linear in the inputs that are bound to the variables, together."""
    if isinstance(op, ARRANGING):
        return not any(bound[1:])
    if isinstance(op, Join):
        return True
    if isinstance(op, CAReduce):
        return isinstance(op.scalar_op, scalars.Add)
    if isinstance(op, CumOp):
        return op.mode == "add"
    if isinstance(getattr(op, "core_op", op), Dot) and isinstance(op, Blockwise | Dot):
        return sum(bound) == 1
    if not isinstance(op, Elemwise):
        return False
    kind = op.scalar_op
    if isinstance(kind, scalars.Mul):
        return sum(bound) == 1
    if isinstance(kind, scalars.TrueDiv):
        return not bound[1]
    if isinstance(kind, scalars.Switch):
        return not bound[0]
    return isinstance(kind, scalars.Add | scalars.Sub | scalars.Neg | scalars.Second)


# --------------------------------------------------------------------------------------------------


FAR = 2.0**40
"""Where slopes are read off, so that a constant however large rounds nothing."""


class NotAdditiveError(ValueError):
    """A function that is not a sum over leaves."""


class AdditiveFunction:
    """A function of the rows of X under the draws of a model, as a sum of trees.

    Parameters
    ----------
    idata, model, var_name, func
        As for `Function`.
    soft_too : bool, default False
        Whether sums of soft trees are taken, whose leaves all add their share at every row.

    Raises
    ------
    NotAdditiveError
        When it is not a sum of trees: a nonlinear function of a sum, or func of one.
    """

    def __init__(
        self,
        idata,
        model: pm.Model,
        var_name: str | None = None,
        func=None,
        soft_too: bool = False,
    ):
        self.function = Function(idata, model, var_name, func)
        name, others = self.function.name, self.function.others
        evaluated = self.function.evaluated
        _refuse_made_rows(self.function)
        _refuse_soft(name, [one.tree for one in evaluated], soft_too)
        self.forests = [
            ForestDraws(idata, model, one.tree.name, soft_too=soft_too) for one in evaluated
        ]
        if any(not one.is_soft and one.layout.own_outputs is not None for one in self.forests):
            raise NotAdditiveError(f"{name} has leaves whose values vary between rows.")
        inputs = [matrix(f"outputs of {one.name}", dtype="float64") for one in self.forests]
        numbers = [rv.type() for rv in others]
        replaced = {one.outputs: v for one, v in zip(evaluated, inputs, strict=True)}
        replaced |= dict(zip(others, numbers, strict=True))
        [whole] = clone_replace([self.function.variable], replaced, rebuild_strict=False)
        hard = not any(one.is_soft for one in self.forests)
        self.single = hard and len(self.forests) == 1 and self.forests[0].layout.m == 1
        if set(ancestors([whole])) & set(self.function.bases):
            raise NotAdditiveError(
                f"{name} uses columns of X outside the splits of its trees: choose a function of "
                "trees alone by var_name."
            )
        if not self.single and (func or not is_linear(whole, inputs)):
            raise NotAdditiveError(
                f"{f'func({name})' if func else name} is not a sum of trees: leave func out, or "
                "choose the function inside it by var_name."
            )
        self._lock = Lock()
        self._whole = pm.compile([*inputs, *numbers], whole, on_unused_input="ignore")
        self._of_all_draws = None if self.single or others else self._lines([])

    @property
    def n_outputs(self) -> int:
        """Outputs, however they are arranged."""
        return int(np.prod(self.function.outputs))

    def constant(self, chain: int, draw: int) -> np.ndarray:
        """(outputs,) what no tree adds in a draw."""
        return np.zeros(self.n_outputs) if self.single else self._lines_at(chain, draw)[0]

    def draws_at(self, chain: int, draw: int) -> list[tuple[ForestDraws, np.ndarray, np.ndarray]]:
        """The forests, each with its encoded value in a draw and what its leaves add."""
        values = [one.value(chain, draw) for one in self.forests]
        if self.single:
            numbers = self.function.others_at(chain, draw)
            outputs = [self._on_leaves(0, values[0], lambda leaves: self._at([leaves], numbers))]
        else:
            _, slopes = self._lines_at(chain, draw)
            each = zip(values, slopes, strict=True)
            outputs = [
                self._on_leaves(k, v, partial(_times, slope)) for k, (v, slope) in enumerate(each)
            ]
        return list(zip(self.forests, values, outputs, strict=True))

    def sum_of_leaves(self, drawn, X: np.ndarray) -> np.ndarray:
        """(n, outputs) what the leaves add at the rows of X, without the constant."""
        total = np.zeros((len(X), self.n_outputs))
        for forest, value, outputs in drawn:
            add_values(value, X, forest.X_train, outputs, forest.sizes, total)
        return total

    def _on_leaves(self, which: int, value: np.ndarray, add) -> np.ndarray:
        """(max_nodes, outputs) what each leaf of an encoded forest adds; 0 in other rows."""
        layout = self.forests[which].layout
        nodes = value[: layout.max_nodes]
        leaves = nodes[:, 0] == -1
        outputs = np.zeros((layout.max_nodes, self.n_outputs))
        outputs[leaves] = add(nodes[leaves, 1 : 1 + layout.n_values])
        return outputs

    def _at(self, outputs: list[np.ndarray], numbers: list[np.ndarray]) -> np.ndarray:
        """(rows, outputs) values for given outputs of the forests and values of other variables."""
        with self._lock:  # a compiled function of PyTensor serves one thread at a time
            whole = self._whole(*outputs, *numbers)
        values = np.moveaxis(whole, self.function.axis, -1)
        return self.function.func(values).reshape(self.n_outputs, -1).T

    def _lines_at(self, chain: int, draw: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Constant and slopes in a draw."""
        if self._of_all_draws is not None:
            return self._of_all_draws
        return self._lines(self.function.others_at(chain, draw))

    def _lines(self, numbers: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Constant and slopes, (V, outputs) for each forest, of a linear function."""
        sizes = [one.layout.n_outputs for one in self.forests]
        total = sum(sizes)
        rows = np.concatenate([np.zeros((1, total)), FAR * np.eye(total)])
        values = self._at(np.split(rows, np.cumsum(sizes)[:-1], axis=1), numbers)
        slopes = (values[1:] - values[0]) / FAR
        return values[0], np.split(slopes, np.cumsum(sizes)[:-1], axis=0)

    def check_sum(self, chain: int, draw: int, drawn, X: np.ndarray, total: np.ndarray) -> None:
        """Raise an error unless (n, outputs) sums over the leaves drawn are f at the rows of X."""
        size = np.abs(self.constant(chain, draw)).max(initial=0.0)
        size += sum(np.abs(leaves).max() for _, _, leaves in drawn)
        with self._lock:
            f = self.function.func(self.function.at(chain, draw)(X))
        wrong = np.abs(f.reshape(self.n_outputs, -1).T - total).max()
        if not wrong <= 1e-9 * size:  # NaN too
            raise NotAdditiveError(
                f"{self.function.name}: the leaves do not add up to f, in chain {chain}, draw "
                f"{draw}, by {wrong:.2g}. Check that func is elementwise and returns finite "
                "numbers."
            )


def _times(slopes: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    return leaves @ slopes


def _refuse_made_rows(function: Function) -> None:
    """An error where trees are evaluated at rows that are made of those of X."""
    if not function.at_own_rows:
        raise NotAdditiveError(
            f"{function.name} evaluates its trees at rows made of those of X, with a column held: "
            "there is no closed form. Use partial_dependence, comparisons or "
            "permutation_importance."
        )


def _refuse_soft(name: str, trees: list, soft_too: bool) -> None:
    """An error where a function is of soft trees that are not taken."""
    if not all(is_forest(one) or is_soft_forest(one) for one in trees):
        raise NotAdditiveError(
            f"{name} is a function of soft trees that split on all columns at once: there is no "
            "closed form. Use partial_dependence or comparisons."
        )
    if not soft_too and not all(is_forest(one) for one in trees):
        raise NotAdditiveError(
            f"{name} is a function of soft trees, for which only shap_values and "
            "shap_interactions with background= are available. Use these, partial_dependence or "
            "comparisons."
        )
