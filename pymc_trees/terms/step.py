"""`GaussianTerms`: leaf values and the Gaussian vectors around forests, in one draw."""

from dataclasses import field
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from threadpoolctl import ThreadpoolController

from pymc_trees.arguments import check_number
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.slice_draw import INITIAL_WIDTH, adapted_width, slice_draw
from pymc_trees.distributions.without_dims import counterpart, random_variables, without_dims
from pymc_trees.terms.joint import JointDraw
from pymc_trees.terms.rows import GaussianRows, read_rows


@dataclass_state
class GaussianTermsState(StepMethodState):
    """Widths of the intervals of the slice sampler, and how many draws of tuning they rest on."""

    tune: bool
    n_steps: int = 0
    """Since the chain began."""
    n_tunes: int = 0
    widths: dict[str, float] = field(default_factory=dict)


class GaussianTerms(BlockedStep):
    """Leaf values of forests and the Gaussian vectors around them, drawn jointly.

    In ``mu = f(X) + a[group]`` the sum is well determined and its parts are not: drawn in turn,
    they need hundreds of steps to trade places. Given the trees, the rows are a linear regression
    on leaf values and vectors, so that one Gaussian draw moves both, for all forests in the mean.
    Scalar hyperparameters of the vectors (the sd of group effects) are drawn first, by slice
    sampling with leaf values and vectors integrated out.

    `pymc.sample` assigns it. A step that you pass for a forest leaves it out, as in
    ``pm.sample(step=[pmt.Hybrid()])``, unless you pass both:
    ``step=[pmt.CGM(), pmt.GaussianTerms()]``. It takes the free variables that

    - are Gaussian given other variables: `pymc.Normal`, `pymc.ZeroSumNormal`, `pymc.MvNormal`,
      `pymc.GaussianRandomWalk`, `pymc.CAR`, `pymc.ICAR`, `pymc.Flat`, and weights of a
      `pymc.gp.HSGP`, centred or not;
    - enter nothing but the mean of one likelihood with a forest, and that linearly;
    - where the rows are Gaussian (`pymc.Normal`, `pymc.LogNormal`) or are so given latent variables
      (logit and probit, for example);

    and the scalar variables that enter the priors or the scale of such vectors, and nothing else.
    PyMC assigns steps to all others: a Cholesky factor of correlated effects is drawn by NUTS,
    given the effects. Under other likelihoods no variable qualifies.

    Parameters
    ----------
    vars : list of variables, optional
        Vectors and hyperparameters. Default: all that qualify.
    model : pymc.Model, optional
        Default: the model on the context stack.
    most_leaves : int, optional
        Leaf values drawn at once. Where the forests have more, each step draws those of trees
        chosen at random, and the vectors, given the rest. Default: as many as cost about a quarter
        of a sweep over the trees, which is all of 50 trees with one precision for all rows, and
        fewer of more trees, of soft ones, with slopes or with precisions by row.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        For a variable that does not qualify.

    Notes
    -----
    Statistics of each draw: ``gaussian_terms_leaves``, the leaf values that were drawn, and
    ``gaussian_terms_evaluations``, those of the density of hyperparameters. Vectors of several
    hundred entries take longer than a sweep over the trees, and are drawn at every k-th step, k
    such that both cost the same; the others have 0 leaves. Nothing is drawn where the noise is
    smaller than a millionth of the leaf values, since rounding would decide. A vector with which
    there would be more than 800 entries in all is left to NUTS.

    Leaf values join the draw where a leaf is a normal number or vector, or a `LinearLeaf`, whose
    slopes join with its intercept, given which there are. Those of `SoftBART` join given cuts and
    bandwidths: a row is in all leaves of a tree, in each with its weight (Linero and Yang 2018, eq.
    3).

    References
    ----------
    Liu (1994). The collapsed Gibbs sampler in Bayesian computations with applications to a gene
    regulation problem. JASA 89(427), 958-966.

    Linero and Yang (2018). Bayesian regression tree ensembles that adapt to smoothness and
    sparsity. Journal of the Royal Statistical Society B 80(5), 1087-1110.

    Neal (2003). Slice sampling. The Annals of Statistics 31(3), 705-767.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X, group = rng.random((30, 2)), np.arange(30) % 3
    >>> with pm.Model():
    ...     tau = pm.HalfNormal("tau")
    ...     a = pm.Normal("a", 0, tau, shape=3)
    ...     f = pmt.BART("f", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", f + a[group], 0.5, observed=X[:, 0])
    ...     step = pmt.GaussianTerms()
    >>> [var.name for var in step.vars]
    ['a', 'tau_log__']
    """

    name = "gaussian_terms"
    default_blocked = True
    finishes_iterations = True
    _state_class = GaussianTermsState
    stats_dtypes_shapes: dict = {
        "gaussian_terms_leaves": (np.int64, []),
        "gaussian_terms_evaluations": (np.int64, []),
    }

    def __init__(
        self,
        vars=None,
        *,
        model=None,
        most_leaves: int | None = None,
        rng=None,
        blocked=True,
        initial_point=None,
        compile_kwargs=None,
    ):
        if most_leaves is not None:
            most_leaves = check_number("most_leaves", most_leaves, 1)
        model = pm.modelcontext(model)
        plain = without_dims(model)
        blocks = read_rows(plain)
        if vars is None:
            chosen = [rv for rows in blocks for rv in (*rows.vectors, *rows.hypers)]
        else:
            chosen = [counterpart(model, rv) for rv in random_variables(model, vars)]
        able = drawn_together(blocks, chosen)
        unable = [getattr(v, "name", v) for v in chosen if not any(v is one for one in able)]
        if unable or not chosen:
            raise ValueError(
                f"vars: {unable or 'no variable'} is not a Gaussian vector in the mean of Gaussian "
                "rows with a forest, nor a scalar that enters only the prior of vectors that are "
                "named too. Leave it to pm.sample(), which assigns a step."
            )
        self.vars = [model.rvs_to_values[model[rv.name]] for rv in chosen]
        self.rng = get_random_generator(rng)
        self._draws = [
            JointDraw(plain, rows, {rv.name for rv in chosen}, most_leaves)
            for rows in blocks
            if any(rv is v for rv in rows.vectors for v in chosen)
        ]
        self._forget()

    def share(self, step) -> None:
        """Use the states that a sweep has of its forests; the draws are the same."""
        for one in self._draws:
            one.share(step)

    def _forget(self):
        self.tune, self.n_steps, self.n_tunes = True, 0, 0
        self.widths: dict[str, Any] = {
            name: INITIAL_WIDTH for one in self._draws for name in one.hypers
        }

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before: one instance may serve several."""
        super().setup_chain(rng, tune, draws)
        self._forget()
        self.tune = tune > 0
        for one in self._draws:
            one.check_inputs()

    def step(self, point):
        """Draw hyperparameters, vectors and leaf values once."""
        point, leaves, evaluations = dict(point), 0, 0
        with deferred_interrupts(), np.errstate(all="ignore"), _blas().limit(limits=1):
            for one in self._draws:
                if self.n_steps % one.every:
                    continue
                integrated = one.integrate(self.rng, point)
                if integrated is None:
                    continue
                for name in one.hypers:
                    point[name], count = self._draw_hyper(one, name, point, integrated)
                    evaluations += count
                point = one.draw(self.rng, point, integrated)
                leaves += len(integrated.marginal.x)
        self.n_steps, self.n_tunes = self.n_steps + 1, self.n_tunes + (self.tune and leaves > 0)
        stats = {"gaussian_terms_leaves": leaves, "gaussian_terms_evaluations": evaluations}
        return point, [stats]

    def _draw_hyper(self, joint: JointDraw, name, point, integrated):
        """New value of a hyperparameter, and the evaluations of its density."""
        density, start = joint.evidence(name, point, integrated), float(point[name])
        new, count = slice_draw(self.rng, density, start, self.widths[name])
        if np.isnan(new):
            raise ValueError(
                f"At this point the density of {name} is 0 or not finite: give an initial value "
                "(initvals) inside its prior."
            )
        if self.tune:
            change = abs(new - start)
            self.widths[name] = adapted_width(self.widths[name], change, self.n_tunes)
        return np.array(new), count

    @staticmethod
    def competence(var, has_grad):
        """Best for what the class says it takes."""
        model = pm.Model.get_context(error_if_none=False)
        if model is not None:
            rv = counterpart(model, var)
            blocks = read_rows(without_dims(model))
            if any(rv is v for rows in blocks for v in (*rows.vectors, *rows.hypers)):
                return Competence.IDEAL
        return Competence.INCOMPATIBLE


@cache
def _blas():
    """Linear algebra of this process, which a step keeps on one thread.

    With several, OpenBLAS adds in another order, and draws would depend on their number. Matrices
    of a few hundred rows gain nothing from them, and lose much where other chains use the cores.
    """
    return ThreadpoolController().select(user_api="blas")


def drawn_together(blocks: list[GaussianRows], chosen) -> list:
    """Vectors among some variables, and the hyperparameters of these and no other vectors."""

    def among(rv):
        return any(rv is one for one in chosen)

    able = []
    for rows in blocks:
        able += [rv for rv in rows.vectors if among(rv)]
        able += [
            rv
            for rv, where in rows.hypers.items()
            if among(rv) and all(among(rows.vectors[k]) for k in where)
        ]
    return able


def can_draw(model: pm.Model, values) -> list:
    """Those of some value variables that a `GaussianTerms` of them all draws."""
    plain = without_dims(model)
    by_rv = [(counterpart(model, model.values_to_rvs[value]), value) for value in values]
    able = drawn_together(read_rows(plain), [rv for rv, _ in by_rv])
    return [value for rv, value in by_rv if any(rv is one for one in able)]
