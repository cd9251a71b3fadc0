"""Target of a forest whose likelihood has hand-written kernels."""

from dataclasses import dataclass
from types import ModuleType
from typing import Self

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.leaves.nonconjugate.laws.native_law import native_slopes, native_value
from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.conjugate.contract import ObservedTerm, rows_of
from pymc_trees.targets.conjugate.recognise import sole_term
from pymc_trees.targets.contract import Refusal, refuse_leaf
from pymc_trees.targets.errors import NotConjugateError
from pymc_trees.targets.laws.contract import LAWS, RowLaw
from pymc_trees.targets.native import LazilyCompiled, UnitData
from pymc_trees.targets.rowwise.target import RowwiseTarget
from pymc_trees.targets.settings import NumbersAt, Settings


@dataclass
class LawFunction(LazilyCompiled):
    """A native function of a law; compiled when its address is first asked for."""

    law: ModuleType
    with_slopes: bool

    def __post_init__(self):
        self.choices = [self.law]

    def _compile(self, law):
        return native_slopes(law.slopes) if self.with_slopes else native_value(law.value)


class LawTarget(RowwiseTarget):
    """Prior settings and row-wise likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    model : pymc.Model
        The model.
    forest : TensorVariable
        A forest of it with a `NormalLeaf` of one value.
    term : ObservedTerm
        The one variable that depends on it.

    Raises
    ------
    NotAffineError
        If its likelihood is not recognised.
    """

    def __init__(self, model: pm.Model, forest: Variable, term: ObservedTerm):
        self.name, self.layout = forest.name, forest.owner.op.layout
        self.likelihood, (wanted, outputs) = read_law(term)
        law = self.likelihood.law
        self.value, self.slopes = LawFunction(law, False), LawFunction(law, True)
        self._numbers_at = NumbersAt(model, forest, [term.value, *wanted], outputs, self._rows)

    @classmethod
    def read(cls, model: pm.Model, forest: Variable) -> Self | Refusal:
        """Target of a forest, if its likelihood is recognised."""
        refused = refuse_leaf(forest)
        if refused is not None:
            return refused
        try:
            term = sole_term(model, forest)
            if term is None or forest.owner.op.layout.n_values != 1 or term.value.ndim != 1:
                raise NotAffineError("another kind of likelihood")
            return cls(model, forest, term)
        except (NotConjugateError, NotAffineError) as error:
            return Refusal(error)

    def at(self, point: dict) -> tuple[Settings, UnitData]:
        """Settings, and the numbers of the rows at a point."""
        return self._numbers_at(point)

    def _rows(self, found):
        n = self.layout.n_rows
        given = [np.asarray(v, dtype=np.float64) for v in found[1:]]
        columns = self.likelihood.numbers(rows_of(found[0], n), given)
        numbers = np.stack([np.broadcast_to(np.ravel(c), (n,)) for c in columns], axis=1)
        if np.isnan(numbers).any():
            raise ValueError("Parameters of the observed variable are not finite at this point.")
        return UnitData(np.array(numbers.shape, dtype=np.int64), np.ravel(numbers))


def read_law(term: ObservedTerm) -> tuple[RowLaw, tuple[list[Variable], Variable]]:
    """The first likelihood that supports a term, and its expressions.

    Raises
    ------
    NotAffineError
        When there is none.
    """
    for kind in LAWS:
        if isinstance(term.rv.owner.op, kind.of):
            likelihood = kind()
            try:
                return likelihood, likelihood.read(term)
            except NotAffineError:
                continue
    raise NotAffineError(term.says)
