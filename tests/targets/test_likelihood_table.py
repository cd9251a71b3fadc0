"""Every distribution of PyMC in every form: what a sampler is told is PyMC's own log-probability.

A step is made, and the log density of f by the numbers that its target has differs between forests
as the log-probability of the model does.
"""

from functools import partial

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from support.densities import log_density
from support.tiers import tiers

import pymc_trees as pmt
from benchmarks.likelihoods.forms.declare import FORMS, is_form_of, pymc_dims
from benchmarks.likelihoods.forms.distributions import DISTRIBUTIONS, EXCLUDED, N
from pymc_trees.targets.graph import NotConjugateError

# PyMC's own, of a MatrixNormal
pytestmark = pytest.mark.filterwarnings("ignore:pytensor.tensor.linalg.trace:FutureWarning")
FORMS = {**FORMS, "pymc_dims": pymc_dims}
LACKING = {"censored", "censored_above", "truncated", "hurdle", "mixture", "shares_of_a_mixture"}
LACKING |= {"missing", "nan"}
"""Forms that PyMC does not have of every distribution: it may have no logcdf, say."""
SEVEN_DIGITS = {"OrderedProbit", "TruncatedNormal", "Normal", "LogNormal"}
"""Of these PyMC computes the distribution function with constants of single precision."""
CONSTANT = {("truncated", "Uniform"), ("truncated", "DiscreteUniform"), ("hurdle", "Uniform")}
"""Cut off above the bound that f is, whose density then does not depend on f."""
X = np.random.default_rng(3).uniform(size=(N, 2))


@pytest.fixture(autouse=True, scope="module")
def _light(quick_compile):
    """Graphs do not remember where they were made: a fifth of the time."""
    with pytensor.config.change_flags(traceback__limit=0):
        yield


@pytest.fixture(scope="module")
def forests():
    """Five values of a forest, each with its function, and five of another: of any model here."""
    with pm.Model() as model:
        functions = [bart("f"), bart("g")]
    found = {}
    for k, (rv, function) in enumerate(zip(model.free_RVs, functions, strict=True)):
        found[rv.name] = list(zip(*pm.draw([rv, function], 5, random_seed=k), strict=True))
    return found


def bart(name):
    return pmt.BART(name, X, m=3, leaf=pmt.NormalLeaf(0.0, 1.0))


def soft():
    return pmt.SoftBART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 1.0))


def cells():
    """Form, distribution and parameter: other parameters than the first are plain."""
    for form in FORMS:
        for name in filter(partial(is_form_of, form), DISTRIBUTIONS):
            seeing = DISTRIBUTIONS[name].seeing
            for parameter in seeing if form == "plain" else seeing[:1]:
                yield form, name, parameter


def declared(form, name, parameter, rows_of):
    """A model of a cell, where ``rows_of`` makes functions of rows."""
    with pm.Model() as model:
        f = rows_of("f")
        FORMS[form](name, parameter, f, rows_of("g") if form == "two_forests" else None)
    return model


def is_lacking(form, name, parameter):
    """Whether PyMC has no such density, whatever the parameter is."""
    if form not in LACKING | {"potential", "pymc_dims"}:
        return False
    try:
        model = declared(form, name, parameter, lambda one: pm.Normal(one, shape=N))
        model.logp(), model.initial_point()
    except Exception:
        return True
    return False


W = np.linspace(-1.0, 1.5, N)
OF_OUTPUTS = {
    "a sum": lambda f: f[0] + f[1] * W,
    "a sum and numbers": lambda f: f[0] + f[1] * W + 0.3 * W**2,
    "stacked with numbers": lambda f: pt.stack([f[0], f[1] * W, 0.3 * W**2]).sum(axis=0),
    "joined with numbers": lambda f: pt.concatenate([f.T, W[:, None]], axis=1) @ [0.5, -0.4, 0.3],
}
"""What a likelihood sees of the two outputs of shared trees."""


def shared(name):
    return pmt.BART(name, X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5), shape=(2, N), separate_trees=False)


def check(model, forests, tolerance, is_constant=False):
    """The targets of a step against the model."""
    with model:
        step = pmt.Hybrid()
    point = {**model.initial_point(), **{one.name: forests[one.name][0][0] for one in step.forests}}
    for forest in step.forests:
        rv = model[forest.name]
        ours = log_density(forest.target, point)
        terms = [v for v in model.basic_RVs if v is not rv] + list(model.potentials)
        theirs = model.compile_logp(vars=terms)
        found = []
        for value, function in forests[rv.name]:
            fit = np.atleast_2d(function).T.copy()
            found.append([ours(fit), float(theirs({**point, rv.name: value}))])
        ours, theirs = np.transpose(found)
        seen = np.isfinite(theirs)  # a distribution function may be 0 far out
        np.testing.assert_array_equal(ours[~seen], theirs[~seen])
        ours, theirs = ours[seen], theirs[seen]
        assert theirs.size > 2 and (
            np.ptp(theirs) < 1e-12 if is_constant else np.ptp(theirs) > 1e-3
        )
        np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], tolerance, tolerance)


CELLS = list(cells())
# Each distribution once, in forms that take turns; and what more than one reader looks at.
TURNING = [form for form in FORMS if form not in LACKING]
TURNS = [
    next(
        (form, name, law.seeing[0])
        for form in (TURNING * 2)[k % len(TURNING) :]
        if is_form_of(form, name)
    )
    for k, (name, law) in enumerate(DISTRIBUTIONS.items())
]
CHOSEN = [
    (form, name, DISTRIBUTIONS[name].seeing[0])
    for form, names in {
        "plain": ["Normal", "TruncatedNormal"],
        "missing": ["Normal", "Poisson", "Categorical"],
        "nan": ["StudentT"],
        "censored": ["Normal", "Poisson", "Gamma"],
        "censored_above": ["LogNormal", "Weibull", "Exponential"],
        "truncated": ["Normal", "Poisson", "Gamma"],
        "mixture": ["Normal", "StudentT"],
        "shares_of_a_mixture": ["Normal"],
        "hurdle": ["Poisson", "Gamma"],
        "total_size": ["Normal", "Poisson", "Bernoulli", "StudentT", "Dirichlet"],
        "custom_dist": ["Normal"],
        "two_forests": ["Normal", "Gamma"],
        "subset": ["Normal"],
        "broadcast": ["Normal"],
    }.items()
    for name in names
]
QUICK = list(dict.fromkeys([*TURNS, *CHOSEN]))


def test_every_distribution_has_a_place():
    known = {*DISTRIBUTIONS, *EXCLUDED}
    assert len(known) == len(DISTRIBUTIONS) + len(EXCLUDED)
    assert set(pm.distributions.__all__) <= known


@pytest.mark.parametrize(("form", "name", "parameter"), tiers(CELLS, QUICK))
def test_log_probabilities_are_the_models(form, name, parameter, forests):
    try:
        model = declared(form, name, parameter, bart)
        tolerance = 1e-6 if name in SEVEN_DIGITS else 1e-8
        check(model, forests, tolerance, (form, name) in CONSTANT)
    except Exception as error:
        if isinstance(error, AssertionError) or not is_lacking(form, name, parameter):
            raise
        assert (form, name, parameter) not in QUICK
        pytest.skip("PyMC has no such density")


def seen(form):
    """Distributions of one number a row, by their first parameter."""
    return [(form, name) for name in DISTRIBUTIONS if is_form_of("plain", name)]


@pytest.fixture(scope="module")
def shared_forests():
    """Five values of shared trees, each with its two functions."""
    with pm.Model() as model:
        function = shared("f")
    return {"f_forest": list(zip(*pm.draw([model["f_forest"], function], 5, random_seed=4)))}


@pytest.mark.parametrize(
    ("form", "name"),
    tiers(
        [cell for form in OF_OUTPUTS for cell in seen(form)],
        [
            ("a sum", "Poisson"),
            ("a sum and numbers", "Beta"),
            ("stacked with numbers", "Poisson"),
            ("stacked with numbers", "Normal"),
            ("stacked with numbers", "Bernoulli"),
            ("joined with numbers", "Bernoulli"),
            ("joined with numbers", "Beta"),
        ],
    ),
)
def test_log_probabilities_of_what_is_made_of_outputs(form, name, shared_forests):
    made = declared(
        "plain", name, DISTRIBUTIONS[name].seeing[0], lambda f: OF_OUTPUTS[form](shared(f))
    )
    check(made, shared_forests, 1e-6 if name in SEVEN_DIGITS else 1e-8)


COUNTS = np.array([1, 2, 3, 1, 2, 3])
UNNAMED = {
    "truncated": lambda f: pm.Truncated("y", pm.Poisson.dist(pm.math.exp(f)), 1, observed=COUNTS),
    "total size": lambda f: pm.Normal("y", f, 1.0, observed=1.0 * COUNTS, total_size=60),
    "total size of several numbers": lambda f: pm.MvNormal(
        "y", f, np.eye(N), observed=1.0 * COUNTS, total_size=60
    ),
    "truncated, of several columns": lambda f: pm.Truncated(
        "y", pm.Gamma.dist(pm.math.exp(f[:, None]), 1.0), upper=9.0, observed=np.ones((N, 2))
    ),
    "censored, of a truncated one": lambda f: pm.Censored(
        "y",
        pm.Truncated.dist(pm.Gamma.dist(pm.math.exp(f), 1.0), upper=9.0),
        lower=None,
        upper=2.0,
        observed=np.minimum(COUNTS, 2.0),
    ),
    "censored, of a custom one": lambda f: pm.Censored(
        "y",
        pm.CustomDist.dist(f, dist=lambda mean, size: pm.Laplace.dist(mean, 1.0, size=size)),
        lower=None,
        upper=2.0,
        observed=np.minimum(COUNTS, 2.0),
    ),
    "a mixture with a truncated one": lambda f: pm.Mixture(
        "y",
        [0.5, 0.5],
        [
            pm.Truncated.dist(pm.Gamma.dist(pm.math.exp(f), 1.0), upper=9.0),
            pm.Gamma.dist(2.0, 1.0),
        ],
        observed=1.0 * COUNTS,
    ),
}
"""Distributions whose Ops, or those inside them, do not say which inputs are parameters."""


@pytest.mark.parametrize("case", UNNAMED)
def test_a_distribution_without_named_parameters(case, forests):
    with pm.Model() as model:
        UNNAMED[case](bart("f"))
    check(model, forests, 1e-8)


OTHER_LEAVES = {
    "normal and gamma": lambda: pmt.DecisionTree("f", X, leaf=pmt.NormalGammaLeaf())[0],
    "Dirichlet": lambda: pmt.DecisionTree("f", X, leaf=pmt.DirichletLeaf(1.0, 2))[:, 1],
}


@pytest.mark.parametrize("leaf", OTHER_LEAVES)
@pytest.mark.parametrize("case", UNNAMED)
def test_other_leaves_refuse_it_by_name(leaf, case):
    with pm.Model():
        UNNAMED[case](OTHER_LEAVES[leaf]())
        with pytest.raises(NotConjugateError, match="do not integrate out.*y is .*pm\\."):
            pmt.CGM()


@pytest.mark.parametrize("case", UNNAMED)
def test_leaves_with_slopes_take_what_is_a_product_over_rows(case):
    with pm.Model():
        UNNAMED[case](pmt.BART("f", X, m=2, leaf=pmt.LinearLeaf(0.0, 1.0, 1.0)))
        if case == "total size of several numbers":
            with pytest.raises(NotConjugateError, match="not known to be a product over rows"):
                pmt.CGM()
            return
        [forest] = pmt.CGM().forests
    assert forest.target.kind == "rowwise" and forest.target.has_coefficients


@pytest.mark.parametrize(
    "step", [pmt.CGM, pmt.GrowPrune, pmt.RestructureCGM, pmt.ParticleGibbs, pmt.SoftCGM]
)
@pytest.mark.parametrize("case", ["truncated", "total size"])
def test_every_sampler_takes_it(step, case):
    with pm.Model():
        UNNAMED[case](soft() if step is pmt.SoftCGM else bart("f"))
        [forest] = step().forests
    assert forest.target.kind == "rowwise"


@pytest.mark.parametrize(
    "likelihood",
    [
        lambda f: pm.Truncated("y", pm.Poisson.dist(3.0), 1, shape=f.shape, observed=COUNTS),
        lambda f: pm.Normal("y", 0.0, 1.0, shape=f.shape, observed=COUNTS, total_size=60),
    ],
)
def test_a_shape_says_nothing_of_the_forest(likelihood):
    with pm.Model():
        likelihood(bart("f"))
        [forest] = pmt.CGM().forests
    assert forest.target.kind == "conjugate" and forest.target.is_prior


def test_a_density_that_leaves_its_parameter_out():
    with pm.Model() as model:
        pm.CustomDist("y", bart("f"), logp=lambda y, f: -(y**2), observed=1.0 * COUNTS)
        [forest] = pmt.CGM().forests
    density = log_density(forest.target, model.initial_point())
    assert density(np.zeros((N, 1))) == density(np.ones((N, 1)))
