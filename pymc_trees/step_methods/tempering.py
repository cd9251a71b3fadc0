"""`Tempering`: parallel tempering of any step that moves forests with hard splits."""

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.step_methods.kernels.replica_exchange import ReplicaExchange
from pymc_trees.step_methods.sweep import SweepStep
from pymc_trees.step_methods.variables import HARD
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.graph import UnsupportedModelError


class Tempering(SweepStep):
    """Parallel tempering: a step, and exchanges with chains under flatter likelihoods.

    Beside the forest of the model, replicas of it are updated by the same step under the likelihood
    raised to powers ``1 / temperature``; then neighbouring temperatures exchange their forests with
    the probability that leaves all of these posteriors invariant. A forest that is stuck in one
    mode is exchanged for one from where modes are connected. This is meant for single trees,
    `DecisionTree`; `Hybrid`, which ``pm.sample()`` assigns, has exchanges of its own for sums of
    trees.

    Parameters
    ----------
    step : CGM, GrowPrune, RestructureCGM, ParticleGibbs or Hybrid
        The step, of the same model. `Hybrid` must have ``temperatures=1``.
    temperatures : int or sequence of float, default 5
        Number of temperatures, at least 2, that of the model included. Their ratios are adapted
        during tuning so that one exchange in four of each pair of neighbours is accepted
        (Miasojedow, Moulines and Vihola 2013), and fixed afterwards. Or the temperatures
        themselves, increasing from 1, which are kept. A temperature costs as much time and memory
        as the forest of the model.
    threads : int, optional
        As for `CGM`. Default: that of ``step``.
    {options}

    Raises
    ------
    TypeError
        If ``step`` is not a step of forests with hard splits.
    ValueError
        For invalid ``temperatures``, or a `Hybrid` that exchanges forests itself.
    UnsupportedModelError
        If leaf values do not integrate out of the likelihood, possibly given latent variables, if
        leaves have several values each, if the rows of a `DirichletLeaf` or a `NormalGammaLeaf` are
        a free variable, or if the prior of the forest has random parameters. The message says what
        to use instead.

    Notes
    -----
    If the likelihood depends on other variables of the model, the flatter posteriors have them
    fixed at values found during tuning, so that in the joint law of all replicas the variables of
    the model keep their posterior. A single tree is exchanged with its leaf values integrated out.
    There are no exchanges while f, or what a Normal's mean needs it to be, exceeds 1e5 times the
    prior scale ``sd + |mean|`` of a leaf value: digits would be lost.

    Statistics per draw: those of ``step``, and ``accept_exchange``, the mean acceptance probability
    of the proposed exchanges; ``accept_exchange_each``, that of each pair of neighbours, shape
    (temperatures - 1,), NaN where none was proposed; ``min_inverse_temperature``, the inverse of
    the highest temperature; and ``replica``, the number of the replica whose forest the model has
    now: how often it changes tells how well forests travel between the temperatures.

    References
    ----------
    Geyer (1991). Markov chain Monte Carlo maximum likelihood. Computing Science and Statistics 23.
    Earl and Deem (2005). Parallel tempering: theory, applications, and new perspectives. Physical
    Chemistry Chemical Physics 7, eq. 1.
    Miasojedow, Moulines and Vihola (2013). An adaptive parallel tempering algorithm. Journal of
    Computational and Graphical Statistics 22(3).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model():
    ...     f = pmt.DecisionTree("f", X, [0.0, 0.1, 1.1, 1.0])
    ...     y = pm.Normal("y", f, 0.5, observed=[0.0, 0.1, 1.1, 1.0], shape=f.shape)
    ...     step = pmt.Tempering(pmt.CGM([f]), temperatures=3)
    >>> step.name
    'tempering'
    """

    name = "tempering"

    def __init__(self, step, temperatures=5, **options):
        if isinstance(step, type) and issubclass(step, SweepStep):
            raise TypeError(
                f"step is the class {step.__name__}: pass an instance, such as "
                f"pymc_trees.{step.__name__}([f])."
            )
        if not isinstance(step, SweepStep) or isinstance(step, Tempering) or step.kind is not HARD:
            raise TypeError(
                f"step={getattr(step, 'name', step)!r}: must be a step of BART or DecisionTree, "
                "such as pymc_trees.CGM([f])."
            )
        if any(isinstance(kernel, ReplicaExchange) for kernel in step.kernels):
            raise ValueError(
                f"step={step.name!r}: exchanges forests with flatter posteriors itself. Pass "
                "Hybrid(temperatures=1), or leave out Tempering."
            )
        exchange = ReplicaExchange(step.kernels, *read_temperatures(temperatures))
        options = {"threads": step.threads} | options
        vars = [forest.name for forest in step.forests]
        super().__init__(vars, *step.kernels, exchange, in_rounds=step.in_rounds, **options)
        for forest in self.forests:
            check_forest(forest)


def read_temperatures(temperatures) -> tuple[int, np.ndarray]:
    """Number of temperatures, and the inverses of those above 1: none if they are adapted."""
    if np.ndim(temperatures) == 0:
        more = ", that of the model included"
        return check_number("temperatures", temperatures, 2, more), np.zeros(0)
    try:
        values = np.asarray(temperatures, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    is_list = values.ndim == 1 and values.size > 1 and np.isfinite(values).all()
    if not (is_list and values[0] == 1 and (np.diff(values) > 0).all()):
        raise ValueError(
            f"temperatures={temperatures!r}: must be a number of temperatures, or increasing "
            "temperatures of which the first is 1, such as [1, 2, 4, 8]."
        )
    return values.size, 1 / values[1:]


def check_forest(forest) -> None:
    """Refuse a forest that has no flatter posteriors to exchange with."""
    name, target = forest.name.removesuffix("_forest"), forest.target
    if forest.has_random_columns:
        raise UnsupportedModelError(
            f"Tempering: {name} has random columns (with_columns), whose rows move. Use the step "
            "without Tempering."
        )
    if not isinstance(target, ConjugateTarget | LatentTarget):
        raise UnsupportedModelError(
            f"Tempering: the leaf values of {name} do not integrate out of its likelihood, so that "
            "there are no flatter posteriors to sample. Use the step without Tempering."
        )
    if not forest.has_fixed_prior:
        raise UnsupportedModelError(
            f"Tempering: the prior of {name} has random parameters, on which flatter posteriors "
            "would depend. Give its leaf and tree prior numbers, or use the step without Tempering."
        )
    if isinstance(target, ConjugateTarget):
        _check_rows(name, target)


def _check_rows(name, target) -> None:
    """Refuse rows that are no likelihood of f alone, or that L* cannot hold fixed."""
    if target.likelihood.rows_as == "residual":
        raise UnsupportedModelError(
            f"Tempering: the leaves of {name} have several values each, for which flatter "
            "posteriors are not available. Use the step without Tempering."
        )
    if target.others and target.likelihood.rows_as == "data":
        raise UnsupportedModelError(
            f"Tempering: the rows of {name} are not data but follow {', '.join(target.others)}, so "
            "that flatter posteriors would change with it. Use the step without Tempering."
        )
