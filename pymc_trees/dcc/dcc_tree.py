"""`DCCTree`: divide, conquer, combine as a step of `pm.sample`."""

from typing import Any, ClassVar

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

from pymc_trees.dcc.dcc import DCC, STEP, check_settings
from pymc_trees.dcc.read_model import (
    check_inputs,
    joint_competence,
    model_on_stack,
    read_model,
)
from pymc_trees.dcc.topology_model import TopologyModel


@dataclass_state
class DCCTreeState(StepMethodState):
    """Everything that the step needs to continue exactly where it stopped."""

    tune: bool
    run_state: dict[str, Any]


class DCCTree(BlockedStep):
    """Sampler of a model with one `SoftDecisionTree`; it samples all free variables jointly.

    While `pm.sample` tunes (``tune`` there, 500 by default), each iteration is one global
    iteration of DCC-Tree: new topologies are warmed up by NUTS, the topology with the highest
    utility is visited, its evidence is estimated and another topology is proposed. After tuning
    each draw is a topology, drawn by its posterior weight, with its parameters. These draws are
    independent, so agreement between chains also checks the weights. ``pm.sample()`` assigns this
    step automatically. `sample_dcc` runs the same algorithm with one set of topologies for all
    chains, on several cores, and reports the topologies.

    Parameters
    ----------
    vars : list of variables, optional
        The tree, or all free variables. The step samples all of them in any case, because the
        weights of topologies integrate over everything.
    chains : int, default 4
        Local chains per topology.
    local_draws : int, at least 2, default 100
        Draws per local chain and visit (Cochrane 2024, section 4.1).
    tune : int, at least 20, default 2000
        Warm-up of a local chain (Cochrane 2024, section 4.1), not ``tune`` of `pm.sample`.
    importance_draws : int, default 10
        Pseudo-draws per Gaussian of the evidence (Cochrane 2024, section 4.1).
    initial_trees, threshold, max_active, exploration, optimism, screening
        As for `sample_dcc`; defaults 100, 5, 100, 0, 0.1 and 0.2.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError, NotImplementedError
        For settings out of range, ``pm.sample(tune=0)``, a model that is not one soft tree and
        continuous variables, or another step on a variable of the model.

    Notes
    -----
    Statistics per draw: ``n_leaves`` and ``log_evidence`` of its topology, ``weight`` (posterior
    probability of that topology, NaN while tuning), ``n_topologies`` (visited so far) and
    ``local_divergences`` (of all local chains after their warm-up).

    References
    ----------
    Cochrane, Wills and Johnson (2024). Divide, conquer, combine Bayesian decision tree sampling,
    algorithm 1, eq. 14, 28-29, 46.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    >>> with pm.Model():
    ...     mu = pmt.SoftDecisionTree("mu", X, y)
    ...     obs = pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
    ...     step = pmt.DCCTree(tune=500)
    >>> step.name
    'dcctree'
    """

    name = "dcctree"
    default_blocked = True
    default_tune_steps = 500
    _state_class = DCCTreeState
    stats_dtypes_shapes: ClassVar[dict] = {
        "n_leaves": (np.int64, []),
        "log_evidence": (np.float64, []),
        "weight": (np.float64, []),
        "n_topologies": (np.int64, []),
        "local_divergences": (np.int64, []),
    }

    def __init__(
        self,
        vars=None,
        chains=STEP.chains,
        local_draws=STEP.local_draws,
        tune=STEP.tune,
        *,
        importance_draws=STEP.importance_draws,
        initial_trees=STEP.initial_trees,
        threshold=STEP.threshold,
        max_active=STEP.max_active,
        exploration=STEP.exploration,
        optimism=STEP.optimism,
        screening=STEP.screening,
        model=None,
        rng=None,
        blocked=True,
        initial_point=None,
        compile_kwargs=None,
    ):
        model = pm.modelcontext(model)
        soft = read_model(model)
        self.settings = check_settings(
            chains=chains,
            local_draws=local_draws,
            tune=tune,
            importance_draws=importance_draws,
            initial_trees=initial_trees,
            threshold=threshold,
            max_active=max_active,
            exploration=exploration,
            optimism=optimism,
            screening=screening,
        )
        self.model = model
        self.vars = list(model.value_vars)
        # PyMC passes value variables. Without a model on the context stack it assigns the tree
        # alone, and other variables may have steps of their own, which does no harm.
        given = [] if vars is None else (vars if isinstance(vars, list | tuple) else [vars])
        assigned = any(v is w for v in given for w in model.value_vars)
        self.shared = assigned and len(given) < len(self.vars)
        if self.shared and model_on_stack() is not None:
            missing = [v.name for v in self.vars if not any(v is w for w in given)]
            tree = soft.tree.name
            if tree in missing:
                raise ValueError(
                    f"{tree} has another step: give the other variables one too, for example "
                    "step=[pymc_trees.RJHMC([mu]), pm.NUTS([sigma])], or let that step move them."
                )
            raise ValueError(
                f"DCCTree samples all free variables of the model jointly, but {missing} have "
                "another step: leave them to DCCTree."
            )
        self.rng = get_random_generator(rng)
        self.tune = True
        self.functions: TopologyModel | None = None  # compiled once for all chains of a process
        self._forget()

    def _forget(self):
        self.dcc: DCC | None = None
        self.combined = None
        self.pools: dict = {}
        self.last: dict | None = None
        self.restored: dict | None = None

    def setup_chain(self, rng, tune, draws):
        """Start anew: one instance may run several chains."""
        super().setup_chain(rng, tune, draws)
        if tune < 1:
            raise ValueError(
                "tune=0: DCCTree finds and weights topologies during tuning; give pm.sample "
                "tune=100 or more."
            )
        self.tune = True
        self._forget()
        # The data may have changed since the step was made, or since the previous chain.
        check_inputs(read_model(self.model))
        if self.functions is not None and not self.functions.is_current():
            self.functions = None

    def step(self, point):
        """One global iteration while tuning; then one draw of the combined posterior."""
        if self.last is not None and not self.shared:
            moved = [n for n, v in self.last.items() if not np.array_equal(v, point[n])]
            if moved:
                raise ValueError(
                    f"Another step changed {moved}: DCCTree samples all free variables of the "
                    "model jointly; leave them to DCCTree."
                )
        dcc = self._dcc()
        if self.tune:
            label = dcc.iterate()
            q = dcc.topologies[label].draws[-1][0, -1]
            log_evidence, weight = dcc.topologies[label].estimate[0], np.nan
        else:
            if self.combined is None:
                self.combined = dcc.combine()
            k = self.rng.choice(len(self.combined.labels), p=self.combined.weight)
            label = self.combined.labels[k]
            log_evidence, weight = self.combined.log_evidence[k], self.combined.weight[k]
            if label not in self.pools:
                evidence = dcc.evidence(label)
                self.pools[label] = evidence.points, evidence.probabilities
            points, probabilities = self.pools[label]
            q = points[self.rng.choice(len(points), p=probabilities)]
        dcc.model.set_topology(label)
        self.last = dcc.model.point(q, self.rng)
        stats = {
            "n_leaves": label.count("L"),
            "log_evidence": float(log_evidence),
            "weight": float(weight),
            "n_topologies": sum(bool(t.draws) for t in dcc.topologies.values()),
            "local_divergences": sum(t.divergences for t in dcc.topologies.values()),
        }
        return {**point, **self.last}, [stats]

    def _dcc(self) -> DCC:
        if self.dcc is None:
            if self.functions is None:
                self.functions = TopologyModel(self.model)
            if self.restored is None:
                self.dcc = DCC(self.functions, self.settings, int(self.rng.integers(2**31)))
            else:
                self.dcc = DCC.resume(self.functions, self.settings, self.restored)
        return self.dcc

    @property
    def run_state(self) -> dict:
        """The run so far, as part of the sampling state."""
        if self.dcc is None:
            return self.restored or {}
        return self.dcc.state()

    @run_state.setter
    def run_state(self, state):
        self._forget()
        self.restored = state or None

    def __getstate__(self):
        """Without compiled functions, which each process makes for itself."""
        run = self.run_state
        state = {**self.__dict__, "dcc": None, "functions": None, "pools": {}}
        return {**state, "restored": run or None}

    @staticmethod
    def competence(var, has_grad):
        """Ideal for a soft tree that weighs all inputs, and for the continuous variables."""
        return joint_competence(var, by_index=False)
