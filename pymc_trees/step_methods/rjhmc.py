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
from pymc_trees.dcc.jump_chain import JumpChain, Kernels, Settings
from pymc_trees.dcc.jump_posterior import (
    JumpPosterior,
    State,
    check_variant,
    is_continuous,
    joint_competence,
    read_jump_model,
)
from pymc_trees.dcc.neighbours import GROW, PRUNE
from pymc_trees.dcc.soft_graph import check_inputs
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree

LEAST_WARM_UP = 20
"""Iterations that NUTS needs to adapt at all, as for DCC-Tree."""


@dataclass_state
class RJHMCState(StepMethodState):
    """What the step needs to go on exactly where it was."""

    tune: bool
    kept: dict[str, Any]


class RJHMC(BlockedStep):
    """Sampler of one `SoftDecisionTree` by reversible jumps between topologies.

    A step moves all parameters of the tree by NUTS within its topology, and then grows a leaf,
    prunes a split, or stays. The additional parameters of a larger tree are drawn from their prior;
    then Hamiltonian transitions pass through densities between those of the two topologies, and the
    acceptance ratio counts the whole way (annealed importance sampling), so that the posterior
    stays invariant for any number of them. The other continuous variables move with the tree.

    Parameters
    ----------
    vars : list of variables, optional
        The tree, and the continuous variables that move with it; all of them by default. Give
        continuous variables that are left out a step, such as ``pm.NUTS([sigma])``.
    variant : "DF" or "DFI", optional
        HMC-DF, for trees with ``direction="index"``, or HMC-DFI, for ``direction="dirichlet"``
        (Cochrane et al. 2023, whose names they are). By default that of the tree.
    grow, prune : float, positive, sum at most 1, default 0.2
        Probabilities of proposals; the rest of the steps stay (the authors' program). A stump grows
        with both.
    bridge : int, default 10
        Densities between two topologies, each with one Hamiltonian transition. With 0 a proposal
        is a plain jump. More are accepted more often, and cost more.
    local_draws : int, default 1
        NUTS iterations a step within the topology.
    warm_up : int, at least 20, default 200
        Iterations of NUTS, from a prior draw of the tree, when a topology is met for the first
        time; more where it diverges (the authors' program has 500 in each proposal).
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError, NotImplementedError
        For settings out of range, a variant that is not the tree's, or a model that is not one
        soft tree beside other variables.

    Notes
    -----
    Step sizes and variances are those of each topology; draws of the chain adapt them further
    while it tunes, and then they are fixed. A topology first proposed after tuning keeps those of
    its own warm-up, which does not depend on the state of the chain.

    The authors' program runs its burn-in within the proposed topology with adaptation, and
    ``h`` falling. Its acceptance ratio takes that for a transition that is reversible, which it is
    not, or leaves it out, so that the posterior is not invariant. Here the bridge takes its
    place.

    Statistics per draw: ``jump`` (1 where a split was proposed, -1 where its removal was, 0 for
    none), ``jump_accepted``, ``jump_log_ratio`` (log of the acceptance ratio, NaN without a jump),
    ``n_leaves``, ``log_likelihood`` (with the log priors of variables that other steps move, and
    of those that depend on the tree), ``local_divergences`` (of NUTS within the topology),
    ``gradients`` (evaluations) and ``n_topologies`` (met so far).

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
        self.warm_up = check_number("warm_up", warm_up, LEAST_WARM_UP)
        moved = {rv.name for rv in (self.soft.tree, *self.soft.others)}
        self.vars = [v for rv, v in model.rvs_to_values.items() if rv.name in moved]
        self.rng = get_random_generator(rng)
        self.tune = True
        self.posterior: JumpPosterior | None = None  # compiled once for all chains of a process
        self._forget()

    def _forget(self):
        self.kernels: Kernels | None = None
        self.state: State | None = None
        self.value: np.ndarray | None = None
        self.restored: dict | None = None

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before: one instance may serve several."""
        super().setup_chain(rng, tune, draws)
        self.tune = tune > 0
        self._forget()
        # The data may have been set anew after the step was made, or since the chain before.
        check_inputs(self.soft)
        if self.posterior is not None and not self.posterior.is_current():
            self.posterior = None

    def step(self, point):
        """Move within the topology, and propose another or stay."""
        # to the end: NUTS of a topology must not adapt to draws that are lost
        with deferred_interrupts():
            return self._step(point)

    def _step(self, point):
        if self.posterior is None:
            self.posterior = JumpPosterior(self.soft)
        posterior = self.posterior
        posterior.set_given(point)
        kernels = self._kernels(point)
        name = posterior.tree_name
        others = posterior.others_at(point)
        if self.tune:
            kernels.reference = others, posterior.given()
        state, value = self.state, self.value
        if state is None or value is None or not np.array_equal(point[name], value):
            state = posterior.state_at(point)  # the first, or another step moved the tree
        else:
            state = state._replace(q=np.append(others, state.q[len(others) :]))
        found = JumpChain(posterior, kernels, self.settings).iterate(self.rng, state, self.tune)
        self.state = found.state
        posterior.place(found.state.label, found.state.inputs)
        new = posterior.point(found.state.q, self.rng)
        self.value = new[name]
        stats = {
            "jump": found.jump,
            "jump_accepted": found.accepted,
            "jump_log_ratio": found.log_ratio,
            "n_leaves": found.state.label.count("L"),
            "log_likelihood": posterior.terms(found.state.q).likelihood,
            "local_divergences": found.divergences,
            "gradients": found.gradients,
            "n_topologies": len(kernels),
        }
        return {**point, **new}, [stats]

    def _kernels(self, point) -> Kernels:
        if self.kernels is None:
            posterior, restored = self.posterior, self.restored
            assert posterior is not None
            if restored is None:
                self.kernels = Kernels(posterior, self.warm_up)
                self.kernels.reference = posterior.others_at(point), posterior.given()
            else:
                self.kernels = Kernels(posterior, self.warm_up, restored["kernels"])
                self.kernels.reference = restored["reference"]
                self.state = State(restored["label"], restored["inputs"], restored["q"])
                self.value = restored["value"]
        return self.kernels

    @property
    def kept(self) -> dict:
        """What the chain knows beside its point, for the saved state."""
        if self.kernels is None or self.state is None:
            return self.restored or {}
        return {
            "kernels": self.kernels.known,
            "reference": self.kernels.reference,
            "label": self.state.label,
            "inputs": self.state.inputs,
            "q": self.state.q,
            "value": self.value,
        }

    @kept.setter
    def kept(self, kept):
        self._forget()
        self.restored = deepcopy(kept) or None

    def __getstate__(self):
        """Without compiled functions; each process makes its own."""
        kept = self.kept
        state = {**self.__dict__, "posterior": None, "kernels": None, "state": None}
        return {**state, "restored": kept or None}

    @staticmethod
    def competence(var, has_grad):
        """Best for a soft tree whose splits draw one input, and what is continuous beside it."""
        return joint_competence(var, by_index=True)


def _chosen(model: pm.Model, vars) -> list | None:
    """Random variables meant by what a user passed; None for all that can move."""
    if vars is None:
        return None
    given = vars if isinstance(vars, list | tuple) else [vars]
    values = model.value_vars
    if len(given) == len(values) and all(v is w for v, w in zip(given, values, strict=True)):
        return None  # what PyMC passes where a user gave nothing
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
