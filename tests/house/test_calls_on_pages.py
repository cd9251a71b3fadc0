"""Calls within the sentences of README and of troubleshooting run.

Blocks of code are run by `test_pages_run.py`; what stands between backticks in a sentence or a
table is run here, on small data, or named with the reason why not.
"""

import ast
import re
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import scipy
import xarray as xr
from support.few_draws import sample_few
from support.fitted import frame, on_a_frame

import pymc_trees as pmt
from pymc_trees import causal, survival

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    # Few draws say little, and a model is predicted from draws of its prior.
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
X, Y = frame()[["age", "dose"]].fillna(50.0).to_numpy(), frame()["dose"].to_numpy()
N = len(Y)


def pages() -> list[Path]:
    """README and the pages of troubleshooting, which have no blocks to run."""
    return [ROOT / "README.md", *sorted((DOCS / "troubleshooting").glob("*.md"))]


def calls(text: str) -> list[str]:
    """What a page calls in its sentences; pieces of messages are none."""
    text = re.sub(r"^( *)```.*?^\1```$|\*\*`[^`]+`\*\*", "", text, flags=re.M | re.S)
    found = [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    return [span for span in dict.fromkeys(found) if _calls(span)]


def _calls(span: str) -> bool:
    try:
        tree = ast.parse(span)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call) for node in ast.walk(tree))


# On draws of a model of `age`, `site` and `dose`.
ASKED = {
    'az.summary(idata, var_names=["~mu_forest"])',
    'az.summary(idata, var_names=["~_forest"], filter_vars="like")',
    *[
        "idata.isel(chain=[0])",
    ],
    *[],
    *["model.debug()", "model.point_logps()"],
    "model.compile_logp()(model.initial_point())",
    "tree_text(tree=None)",
    "pmt.plot_pdp(idata, model, X=X)",
    'comparisons(..., variables={"dose": (0, 1)})',
    "declare(y)",
}
# These compile kernels of their own, or sample.
SLOW = {
    "pm.sample()",
}
NORMAL = "mu = pmt.BART('mu', X, Y, m=2); sigma = pm.HalfNormal('sigma')"
ROWS_OF = "mu = pmt.BART('mu', pm.Data('X', X), y_train, m=2); sigma = tau = 1.0"
STEPPED = f"{NORMAL}; pm.Normal('y', mu, sigma, observed=Y)"
BOTH = "f = pmt.BART('f', X, m=2, shape=(2, n), leaf=pmt.NormalLeaf(0, 1))"
SOFT = (
    "mu = pmt.SoftDecisionTree('mu', X, Y); sigma = pm.HalfNormal('sigma');"
    "pm.Normal('y', mu, sigma, observed=Y)"
)
PRIOR = "; idata = prior_as_posterior()"
# Call -> what comes before it in the context of a model, where it is to be run.
DECLARED = {
    "leaf=pmt.NormalLeaf(mean, sd)": "mean, sd = 0, 1",
    "leaf=pmt.NormalLeaf(0, 1)": "",
    "tree_prior=pmt.MondrianPrior(lifetime=2.0)": "",
    'BART("mu", ...)': "",
    "pm.Model()": "",
    'pm.Model(coords={"species": [...]})': "",
    'pm.Normal("y", mu, sigma, observed=y_train, shape=mu.shape)': NORMAL,
    'pm.Normal("y", mu, sqrt(exp(f) + c))': "f = pmt.BART('f', X, Y, m=2); mu = 0; c = 1;"
    "exp, sqrt = pt.exp, pt.sqrt",
    'eps = pm.Normal("eps", 0, tau, shape=mu.shape)': ROWS_OF,
    'pm.sample_posterior_predictive(idata, predictions=True, sample_vars=["eps", "y"])': ROWS_OF
    + "; eps = pm.Normal('eps', 0, 1, shape=mu.shape);"
    "pm.Normal('y', mu + eps, 1, observed=y_train, shape=mu.shape)"
    + PRIOR
    + "; pm.set_data({'X': X_new})",
    'pmt.set_data({"f_X": X_new, "f_basis": basis_new})': "basis_new = np.ones((3, 1));"
    "pmt.BART('f', X, m=2, leaf=pmt.BasisLeaf(np.ones((n, 1))))",
    "p=pm.math.switch(z > 0, 1.0, 0.0)": BOTH
    + "; z = pm.MvNormal('z', f.T, cov=np.eye(2), shape=(n, 2))",
    "mu - mu.mean()": NORMAL,
    "mu.cumsum()": NORMAL,
    "pmt.CGM([f])": STEPPED + "; f = mu",
    "pmt.Hybrid(temperatures=1)": STEPPED,
    "RJHMC([mu])": SOFT,
    "RJHMC()": SOFT,
    "step=[pmt.RJHMC([mu]), pm.NUTS([sigma])]": SOFT,
    "partial_fit(X, y, classes=all_there_will_be)": "all_there_will_be = [0, 1, 2]; y = Y;"
    "partial_fit = pmt.MondrianForestClassifier().partial_fit",
    "plot_overlap(causal.overlap(propensity, z))": "propensity, z = np.full(n, 0.5), Y > 0",
    "X.reshape(-1, 1)": "X = X[:, 0]",
    "X.reshape(1, -1)": "X = X[:, 0]",
    "y.ravel()": "y = Y[:, None]",
    "y.mean() / m": "y, m = Y, 50",
}
TIMES = (
    "time, event = np.arange(1.0, n + 1), np.ones(n); "
    "model = survival.accelerated_failure_time(X, time, event, m=2);"
)
CURVES = (
    "time, event = np.arange(1.0, n + 1), np.ones(n); "
    "model = survival.discrete_time(frame.rename(columns={'site': 'arm'}), time, event, m=2);"
    "idata = prior_as_posterior(model); X = frame.rename(columns={'site': 'arm'});"
    "survival_function = survival.survival_function;"
)
LOG_TIMES = "f = pmt.BART('f', X, Y, m=2); sigma = 1.0; time = Y + 1; limit = np.full(n, np.inf)"
DECLARED |= {
    "survival_function(idata, model, X)": CURVES,
    'survival_function(by="arm")': CURVES + "given = (idata, model, X)",
}
GROUPS = (
    "model.add_coord('school', list('abc')); model.add_coord('effect', ['u', 'v']);"
    "model.add_coord('year', [1, 2, 3]); tau, mu_a = 1.0, 0.0; mean, chol = np.zeros(2), np.eye(2);"
    "district, district_of = np.zeros(2), np.array([0, 1, 1]); codes = values = district_of;"
    "z = pm.Normal('z', shape=3)"
)
DECLARED |= dict.fromkeys(
    [
        'pm.Data("u", values, dims="school")',
        "z - z.mean()",
    ],
    GROUPS,
)
NAMED = "import pymc, pymc.dims as pmd; X = pmd.as_xtensor(X, dims=('row', 'column'))"
OF_DOSES = (
    "forest = causal.BayesianCausalForest(m=2, m_effect=2, draws=2, tune=2, chains=1, cores=1,"
    "random_state=1).fit(X, X[:, 0], X[:, 0] + X[:, 1], propensity=X[:, 0]); model = forest.model_"
)
TWO_ARMS = (
    "z, y, model = np.arange(n) % 3, X[:, 0], pm.Model(); two = np.isin(z, [0, 2]);"
    "fit = lambda *rows: causal.BayesianCausalForest(m=2, m_effect=2, draws=2, tune=2, chains=1,"
    "cores=1, random_state=1).fit(*rows, propensity=np.full(8, 0.5))"
)
DECLARED |= {
    'X.transpose("row", "column")': f"{NAMED}; X = X.transpose('column', 'row')",
    'X.rename({"row": "unit"})': NAMED,
    'BART(dims=("species", "row"))': f"{NAMED};"
    "model.add_coord('species', ['oak', 'ash']); model.add_coord('row', list(range(n)));"
    "BART = lambda **given: pmt.BART('f', X, m=2, leaf=pmt.NormalLeaf(0, 1), **given)",
    'pymc.dims.as_xtensor(f, dims=("row", "label"))': "import pymc, pymc.dims;"
    "f = pmt.DecisionTree('f', X, leaf=pmt.DirichletLeaf(1.0, 3))",
    '(forest.unit_effects() * w).sum("row") / w.sum()': f"{OF_DOSES}; w = Y + 1",
    "two = np.isin(z, [0, 2])": "z = np.arange(n) % 3",
    "fit(X[two], y[two], z[two] == 2)": TWO_ARMS,
    "y.to_numpy()": "y = frame['dose']",
    'pm.sample_posterior_predictive(idata, freeze_vars=["mu"])': f"{STEPPED}{PRIOR};"
    "kept = idata['posterior'].to_dataset().drop_vars('mu_forest');"
    "idata['posterior'] = xr.DataTree(kept)",
    'pm.CustomDist("y", mu, logp=..., observed=y)': f"{NORMAL}; y = Y",
    'frame.assign(size=frame["size"].cat.codes)': "frame['size'] = "
    "frame['site'].astype('category')",
}
SELECTED = (
    "n_permutations=2, n_replicates=1, cores=1, progressbar=False, sample_kwargs={'draws': 4}"
)
# Call -> why it is not run.
FORMULAS = ["bart(...)", "z:bart(x)", "pm.Normal.dist(0, 1)", "to_pandas()"]
NOT_RUN = {
    "az.summary(idata)": "fails at the largest float, the cut of a split of missing cells",
    **dict.fromkeys(FORMULAS, "a piece of a formula: tests/formula"),
    'Forest("mu_forest", ...)': "quoted from a message",
    **dict.fromkeys(
        ['z = pm.Normal("z", 0, 1, shape=n)', "pmt.with_columns(X, z=z)"],
        "run together: tests/distributions/test_with_columns.py",
    ),
    "log_density(X, y)": "of a fitted estimator: estimators/test_density.py",
    "sate(contrast=(low, high))": "of a fitted causal forest: causal/test_causal_forest.py",
}


def every_call() -> list[str]:
    return list(dict.fromkeys(span for page in pages() for span in calls(page.read_text())))


def test_every_call_is_run_or_named():
    found, known = set(every_call()), ASKED | SLOW | DECLARED.keys() | NOT_RUN.keys()
    assert sorted(found - known) == [], "run them, or say why not"
    assert sorted(known - found) == [], "no page has these any more"
    assert not (ASKED | SLOW | DECLARED.keys()) & NOT_RUN.keys()


@cache
def fitted():
    return on_a_frame()


def _declare(y):
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 1.0, observed=y, shape=mu.shape)
    return model


def prior_as_posterior(model=None):
    """Draws of the prior, in the place of those of the posterior."""
    drawn = pm.sample_prior_predictive(3, model=model, random_seed=1)
    return xr.DataTree.from_dict({"posterior": drawn["prior"].to_dataset()})


def names() -> dict:
    """What pages take for granted."""
    public = {name: getattr(pmt, name) for name in pmt.__all__}
    return public | {
        **{"pmt": pmt, "pm": pm, "az": az, "np": np, "pt": pt, "scipy": scipy, "xr": xr},
        **{"causal": causal, "survival": survival, "prior_as_posterior": prior_as_posterior},
        **{"X": X, "Y": Y, "y_train": Y, "n": N, "X_new": X[:3], "frame": frame()},
    }


def run(span: str, known: dict):
    """Value of a call, or what it is assigned to."""
    tree = ast.parse(span)
    tree.body[-1] = ast.Assign([ast.Name("result_", ast.Store())], tree.body[-1].value)
    exec(compile(ast.fix_missing_locations(tree), span, "exec"), known)
    return known["result_"]


@pytest.mark.parametrize(
    "span", [*sorted(ASKED), *[pytest.param(s, marks=pytest.mark.full) for s in sorted(SLOW)]]
)
def test_calls_on_draws(span, monkeypatch):
    sample_few(monkeypatch, 4)
    model, idata = fitted()
    known = names() | {"model": model, "idata": idata, "rows": frame()[:3], "X_new": frame()}
    known |= {"X": frame(), "new_frame": frame()[:3], "y_new": Y, "y": Y, "declare": _declare}
    if "(vi)" in span:
        known["vi"] = pmt.compute_variable_importance(idata, model, progressbar=False)
    if "(found)" in span:
        known["found"] = pmt.shap_values(idata, model, progressbar=False)
    few = {"draws=1000": "draws=2, cores=1, progressbar=False", "...,": "idata, model,"}
    few |= {"tree_text(": "tree_text(idata, model, ", "(declare, y)": f"(declare, y, {SELECTED})"}
    for said, put in few.items():
        span = span.replace(said, put)
    before = model["mu_X"].get_value()
    with nullcontext() if "declare" in span else model:
        run(span, known)
    model["mu_X"].set_value(before)


@pytest.mark.parametrize("span", sorted(DECLARED))
def test_calls_in_a_model(span):
    known = names() | {"model": pm.Model()}
    own = "model = " in DECLARED[span]
    with nullcontext() if own else known["model"]:
        exec(DECLARED[span], known)
    with known["model"]:
        if "[...]" in span:
            span = span.replace("[...]", "['oak', 'ash']")
        if span == 'BART("mu", ...)':
            span = span.replace("...", "X, Y")
        span = span.replace("NormalLeaf(...)", "NormalLeaf(0, 1)").replace("jobs=...", "jobs=1")
        span = span.replace("logp=...", "logp=lambda value, mu: -((value - mu) ** 2)")
        if span == 'survival_function(by="arm")':
            span = span.replace("(by", "(*given, by")
        run(span, known)
