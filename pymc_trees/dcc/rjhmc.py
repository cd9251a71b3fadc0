"""`RJHMC`: reversible jumps of a soft tree with Hamiltonian Monte Carlo, under `pm.sample`."""

from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.traversal import ancestors

from pymc_trees.arguments import check_number, check_share
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.dcc.jump_chain import GROW, PRUNE, JumpChain, Kernels, Settings
from pymc_trees.dcc.jump_model import JumpModel, State
from pymc_trees.dcc.read_model import (
    check_inputs,
    check_variant,
    is_continuous,
    joint_competence,
    read_jump_model,
)
from pymc_trees.dcc.soft_tree_rv import is_soft_tree

MINIMAL_WARM_UP = 20
"""Minimal number of iterations of a warm-up, as for DCC-Tree."""


@dataclass_state
class RJHMCState(StepMethodState):
    """Everything that the step needs to continue exactly where it stopped."""

    tune: bool
    chain_state: dict[str, Any]


class RJHMC(BlockedStep):
    """Sampler of one `SoftDecisionTree` by reversible jumps between topologies.

    A step moves all parameters of the tree by NUTS within its topology, and then grows a leaf,
    prunes a split, or stays. The additional parameters of a larger tree are drawn from their prior;
    then Hamiltonian transitions pass through densities between those of the two topologies. The
    acceptance ratio takes the whole path into account (annealed importance sampling), so the
    posterior is invariant for any number of densities. The other continuous variables move with
    the tree.

    Parameters
    ----------
    vars : list of variables, optional
        The tree, and the continuous variables that move with it; all of them by default. Give
        continuous variables that are left out a step, such as ``pm.NUTS([sigma])``.
    variant : "DF" or "DFI", optional
        HMC-DF, for trees with ``direction="index"``, or HMC-DFI, for ``direction="dirichlet"``
        (names of Cochrane et al. 2023). Default: the variant of the tree.
    grow, prune : float, positive, sum at most 1, default 0.2
        Probabilities of proposals (the authors' program); otherwise a step stays at its topology. A
        stump grows with the sum of both.
    bridge : int, default 10
        Number of densities between two topologies, each with one Hamiltonian transition. More of
        them are accepted more often, and cost more. With 0 a proposal is a plain jump.
    local_draws : int, default 1
        NUTS iterations per step within the topology.
    warm_up : int, at least 20, default 200
        Iterations of NUTS, from a prior draw of the tree, when a topology is proposed for the first
        time; more if it diverges (the authors' program has 500 in each proposal).
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError, NotImplementedError
        For settings out of range, a variant that is not the tree's, or a model without exactly one
        soft tree.

    Notes
    -----
    Each topology has its own step size and variances. Draws of the chain adapt them further during
    tuning; then they are fixed. A topology first proposed after tuning keeps those of its own
    warm-up, which does not depend on the state of the chain.

    In the authors' program each proposal includes a burn-in within the proposed topology, with
    adaptation and falling ``h``. Its acceptance ratio either ignores this or treats it as a
    reversible transition, which it is not, so the posterior is not invariant. Here the bridge
    replaces it.

    Statistics per draw: ``jump`` (1 if a split was proposed, -1 if its removal was, 0 for
    neither), ``jump_accepted``, ``jump_log_ratio`` (log of the acceptance ratio, NaN without a
    jump), ``n_leaves``, ``log_likelihood`` (with the log priors of variables that other steps move,
    and of those that depend on the tree), ``local_divergences`` (of NUTS within the topology),
    ``gradients`` (evaluations) and ``n_topologies`` (proposed so far).

    References
    ----------
    Cochrane, Wills and Johnson (2023). RJHMC-Tree for exploration of the Bayesian decision tree
    posterior.

    Karagiannis and Andrieu (2013). Annealed importance sampling reversible jump MCMC algorithms.
    Journal of Computational and Graphical Statistics 22(3), section 3.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    >>> with pm.Model():
    ...     mu = pmt.SoftDecisionTree("mu", X, y, alpha=0.5, beta=2)
    ...     sigma = pm.InverseGamma("sigma", 1.5, 1.5)
    ...     obs = pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    ...     step = pmt.RJHMC()
    >>> [v.name for v in step.vars]
    ['mu_forest', 'sigma_log__']
    """

    name = "rjhmc"
    default_blocked = True
    finishes_iterations = True  # as forest steps do: `hooks.runs`
    default_tune_steps = 500
    _state_class = RJHMCState
    stats_dtypes_shapes: ClassVar[dict] = {
        "jump": (np.int64, []),
        "jump_accepted": (np.bool_, []),
        "jump_log_ratio": (np.float64, []),
        "n_leaves": (np.int64, []),
        "log_likelihood": (np.float64, []),
        "local_divergences": (np.int64, []),
        "gradients": (np.int64, []),
        "n_topologies": (np.int64, []),
    }

    def __init__(
        self,
        vars=None,
        variant=None,
        *,
        grow=GROW,
        prune=PRUNE,
        bridge=10,
        local_draws=1,
        warm_up=200,
        model=None,
        rng=None,
        blocked=True,
        initial_point=None,
        compile_kwargs=None,
    ):
        model = pm.modelcontext(model)
        self.soft = read_jump_model(model, _chosen(model, vars))
        check_variant(variant, self.soft.tree)
        grow, prune = check_share("grow", grow), check_share("prune", prune)
        if not (grow > 0 and prune > 0 and grow + prune <= 1):
            raise ValueError(
                f"grow={grow}, prune={prune}: both must be positive, and their sum at most 1."
            )
        self.settings = Settings(
            grow,
            prune,
            check_number("bridge", bridge, 0),
            check_number("local_draws", local_draws, 1),
        )
        self.warm_up = check_number("warm_up", warm_up, MINIMAL_WARM_UP)
        moved = {rv.name for rv in (self.soft.tree, *self.soft.others)}
        self.vars = [v for rv, v in model.rvs_to_values.items() if rv.name in moved]
        self.rng = get_random_generator(rng)
        self.tune = True
        self.functions: JumpModel | None = None  # compiled once for all chains of a process
        self._forget()

    def _forget(self):
        self.kernels: Kernels | None = None
        self.state: State | None = None
        self.value: np.ndarray | None = None
        self.restored: dict | None = None

    def setup_chain(self, rng, tune, draws):
        """Start anew: one instance may run several chains."""
        super().setup_chain(rng, tune, draws)
        self.tune = tune > 0
        self._forget()
        # The data may have changed since the step was made, or since the previous chain.
        check_inputs(self.soft)
        if self.functions is not None and not self.functions.is_current():
            self.functions = None

    def step(self, point):
        """Move within the topology, then propose another one or stay."""
        # An interrupt waits: NUTS must not have adapted to draws that are lost.
        with deferred_interrupts():
            return self._step(point)

    def _step(self, point):
        if self.functions is None:
            self.functions = JumpModel(self.soft)
        model = self.functions
        model.set_fixed(point)
        kernels = self._kernels(point)
        name = model.tree_name
        others = model.others_at(point)
        if self.tune:
            kernels.reference = others, model.fixed_values()
        state, value = self.state, self.value
        if state is None or value is None or not np.array_equal(point[name], value):
            state = model.state_at(point)  # the first step, or another one moved the tree
        else:
            state = state._replace(q=np.append(others, state.q[len(others) :]))
        result = JumpChain(model, kernels, self.settings).iterate(self.rng, state, self.tune)
        self.state = result.state
        model.set_state(result.state.label, result.state.inputs)
        new = model.point(result.state.q, self.rng)
        self.value = new[name]
        stats = {
            "jump": result.jump,
            "jump_accepted": result.accepted,
            "jump_log_ratio": result.log_ratio,
            "n_leaves": result.state.label.count("L"),
            "log_likelihood": model.terms(result.state.q).likelihood,
            "local_divergences": result.divergences,
            "gradients": result.gradients,
            "n_topologies": len(kernels),
        }
        return {**point, **new}, [stats]

    def _kernels(self, point) -> Kernels:
        if self.kernels is None:
            model, restored = self.functions, self.restored
            assert model is not None
            if restored is None:
                self.kernels = Kernels(model, self.warm_up)
                self.kernels.reference = model.others_at(point), model.fixed_values()
            else:
                self.kernels = Kernels(model, self.warm_up, restored["kernels"])
                self.kernels.reference = restored["reference"]
                self.state = State(restored["label"], restored["inputs"], restored["q"])
                self.value = restored["value"]
        return self.kernels

    @property
    def chain_state(self) -> dict:
        """State of the chain apart from its point, as part of the sampling state."""
        if self.kernels is None or self.state is None:
            return self.restored or {}
        return {
            "kernels": self.kernels.adapted,
            "reference": self.kernels.reference,
            "label": self.state.label,
            "inputs": self.state.inputs,
            "q": self.state.q,
            "value": self.value,
        }

    @chain_state.setter
    def chain_state(self, state):
        self._forget()
        self.restored = deepcopy(state) or None

    def __getstate__(self):
        """Without compiled functions, which each process makes for itself."""
        chain = self.chain_state
        state = {**self.__dict__, "functions": None, "kernels": None, "state": None}
        return {**state, "restored": chain or None}

    @staticmethod
    def competence(var, has_grad):
        """Ideal for a soft tree whose splits use one input, and for the continuous variables."""
        return joint_competence(var, by_index=True)


def _chosen(model: pm.Model, vars) -> list | None:
    """Random variables that ``vars`` means; None for all that can move."""
    if vars is None:
        return None
    given = vars if isinstance(vars, list | tuple) else [vars]
    values = model.value_vars
    if len(given) == len(values) and all(v is w for v, w in zip(given, values, strict=True)):
        return None  # what PyMC passes by default
    chosen = []
    for one in given:
        variable = model.named_vars.get(one) if isinstance(one, str) else one
        rv = next((r for v, r in model.values_to_rvs.items() if v is variable), variable)
        if any(rv is d for d in model.deterministics):
            behind = [r for r in model.free_RVs if any(a is r for a in ancestors([rv]))]
            chosen += [r for r in behind if is_soft_tree(r) or is_continuous(r)]
            continue
        if not any(rv is r for r in model.free_RVs):
            name = getattr(one, "name", one)
            raise ValueError(
                f"vars: {name!r} is neither a free variable of the model nor the function of the "
                "tree."
            )
        chosen.append(rv)
    return chosen
