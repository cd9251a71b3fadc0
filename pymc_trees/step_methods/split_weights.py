"""`SplitWeights`: Dirichlet split weights given the trees."""

import numpy as np
import pymc as pm
from pymc.logprob.transforms import SimplexTransform
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import DirichletRV

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.split_weights import draw_log_weights
from pymc_trees.core.soft_forest.encode import soft_sizes, summarise
from pymc_trees.core.value.fields import sizes
from pymc_trees.core.value.summary import column_choices_of
from pymc_trees.distributions.forest_inputs import (
    declared,
    fingerprint_of,
    forest_inputs,
    training_rows,
)
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.step_methods.variable_step import VariableStep
from pymc_trees.targets.settings import compile_values


@dataclass_state
class SplitWeightsState(StepMethodState):
    """Nothing but the generator is kept between steps."""


def forests_split_by(model: pm.Model, rv: Variable) -> list[Variable] | None:
    """Forests whose split weights are this variable; None when anything else depends on it."""

    def sees(variables):
        return any(v is rv for v in ancestors(variables, blockers=model.basic_RVs))

    if any(sees([potential]) for potential in model.potentials):
        return None
    forests = []
    for other in model.basic_RVs:
        if other is rv or not sees(other.owner.inputs):
            continue
        if not (is_forest(other) or is_soft_forest(other)):
            return None
        known = forest_inputs(other)
        weights = known.weights
        if not sees([weights]) or sees([known.alpha, known.beta, *known.leaf]):
            return None
        if not (isinstance(weights.owner.op, Elemwise) and rv in weights.owner.inputs):
            return None
        forests.append(other)
    return forests


class SplitWeights(VariableStep):
    """Gibbs step for Dirichlet split weights of forests.

    NUTS cannot sample a sparse Dirichlet. Given the trees, this step draws the weights from their
    conditional, which auxiliary variables turn into a Dirichlet. It is exact although each split
    chooses only among the columns that vary in its node. ``pm.sample()`` assigns it automatically
    to a `pymc.Dirichlet` that is the ``split_prior`` of forests and used nowhere else. A
    concentration of ``theta / p`` for each of p columns gives DART, whose ``theta`` may have a
    prior.

    Parameters
    ----------
    vars : list of variables, optional
        Dirichlet variables. Default: all that are the split weights of a forest.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        A variable that is not the Dirichlet split prior of a forest, or that something else
        depends on.

    References
    ----------
    Linero (2018). Bayesian regression trees for high-dimensional prediction and variable selection.
    Journal of the American Statistical Association 113(522), 626-636, section 3.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(1).random((30, 10))
    >>> with pm.Model():
    ...     weights = pm.Dirichlet("weights", np.full(10, 0.1))
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5, split_prior=weights)
    ...     step = pmt.SplitWeights([weights])
    >>> step.name
    'splitweights'
    """

    name = "splitweights"
    _state_class = SplitWeightsState

    @staticmethod
    def read(model, rv):
        """Whether a variable is the Dirichlet split prior of forests."""
        if not (isinstance(rv, Variable) and rv.owner and isinstance(rv.owner.op, DirichletRV)):
            return False
        if rv not in model.rvs_to_values or rv.ndim != 1:
            return False
        if not isinstance(model.rvs_to_transforms.get(rv), SimplexTransform):
            return False
        return bool(forests_split_by(model, rv))

    @staticmethod
    def error_for(unable):
        """The error for other variables."""
        return ValueError(
            f"vars: {unable} is not a pm.Dirichlet that is used, untransformed, as the split_prior "
            "of BART, DecisionTree or SoftBART and nowhere else. Leave it to pm.sample()."
        )

    def prepare(self, model, rvs, found, compile_kwargs):
        """Each variable, with its forests."""
        self._blocks = [_Block(model, rv) for rv in rvs]

    def step(self, point):
        """Draw every vector of weights once."""
        point = dict(point)
        with deferred_interrupts():
            for block in self._blocks:
                point[block.name] = block.draw(self.rng, point)
        return point, [{}]


class HardChoices:
    """Columns that the splits of a forest chose, and the sets they were chosen from."""

    def __init__(self, forest: Variable):
        self.known, self.layout = declared(forest), sizes(forest.owner.op.layout)
        self.p = self.known.X.shape[1]

    def of(self, value):
        """(p,) splits of each column; (s, p) sets of columns, and how many splits have each."""
        X, grid, offsets, fingerprint, kinds, _ = self.known
        mixed = kinds if self.layout.mixed else None
        return column_choices_of(value, X, grid, offsets, fingerprint, self.layout, mixed)


class SoftChoices:
    """The same of soft trees, all of whose splits choose among all columns.

    So the conditional is Dirichlet as it is (Linero 2018, section 3), and there are no sets.
    """

    def __init__(self, forest: Variable):
        self.layout = soft_sizes(forest.owner.op.layout)
        self.fingerprint, self.p = fingerprint_of(forest), training_rows(forest).shape[1]

    def of(self, value):
        """As `HardChoices.of`."""
        columns = summarise(value, self.p, self.layout, self.fingerprint)[3]
        return columns, np.empty((0, self.p)), np.empty(0)


class _Block:
    """One vector of weights and the forests it splits."""

    def __init__(self, model, rv):
        self.name = model.rvs_to_values[rv].name
        concentration = rv.owner.op.dist_params(rv.owner)[0]
        [concentration] = model.replace_rvs_by_values([concentration])
        self._concentration, self._names = compile_values(model, [concentration], [])
        self._size = rv.type.shape[0]
        self._forests = []
        for forest in forests_split_by(model, rv) or []:
            choices = SoftChoices(forest) if is_soft_forest(forest) else HardChoices(forest)
            self._size = choices.p
            self._forests.append((model.rvs_to_values[forest].name, choices))

    def draw(self, rng, point):
        """New value of the variable."""
        [concentration] = self._concentration(*(point[name] for name in self._names))
        splits, sets, counts = np.zeros(self._size), [], []
        for name, choices in self._forests:
            of_this = choices.of(np.ascontiguousarray(point[name]))
            splits += of_this[0]
            sets.append(of_this[1])
            counts.append(of_this[2])
        value = np.append(point[self.name], -np.sum(point[self.name]))
        largest = value.max()
        log_weights = value - (largest + np.log(np.sum(np.exp(value - largest))))
        log_weights = draw_log_weights(
            rng,
            log_weights,
            np.broadcast_to(np.asarray(concentration, dtype=np.float64), splits.shape).copy(),
            splits,
            np.concatenate(sets),
            np.concatenate(counts),
        )
        return log_weights[:-1] - log_weights.mean()
