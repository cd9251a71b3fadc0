"""Remedies of messages of the estimators, causal forests and survival models."""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from pymc_trees import causal, survival
from pymc_trees.causal.models import check_treatment
from support.odd import bart_estimators as odd_bart
from support.odd import estimators as odd
from support.odd.table import X, Y
from support.remedies.table import remedy

CLASSES = odd.CLASSES
SMALL = odd_bart.SMALL
Z = (np.arange(20) % 2).astype(int)
DOSE = X[:, 0]
P = np.full(20, 0.5)
SCHOOL = np.where(np.arange(20) < 10, "a", "b")
OF_FOREST = {
    "m": 2,
    "m_effect": 2,
    "draws": 2,
    "tune": 2,
    "chains": 1,
    "cores": 1,
    "random_state": 1,
}
TIME = np.array([1.0, 2.0, 3.0, 1.5, 2.5, 3.5])
EVENT = np.array([1, 0, 1, 1, 0, 1])
ROWS = np.arange(12.0).reshape(6, 2)
RECORDS = {
    "X": ROWS[:3],
    "time": [1.0, 2.0, 3.0, 1.5, 2.5],
    "event": [1, 0, 0, 1, 0],
    "subject": [0, 0, 1, 2, 2],
}
QUIET = {"group": "prior", "progressbar": False}


def grown(**given):
    """A Mondrian forest of numbers, fitted."""
    rows = {"X": given.pop("X", X), "y": given.pop("y", Y)}
    return lambda: odd.regressor(**given).fit(**rows)


def _predicted(**given):
    return lambda: grown(**given)().predict(X)


def _partial(first, later=None, classes=CLASSES):
    def call():
        forest = odd.classifier().partial_fit(
            X, CLASSES, **({} if first is None else {"classes": first})
        )
        return forest if later is None else forest.partial_fit(X, classes, **later)

    return call


def _changed(**given):
    def call():
        forest = odd.regressor().fit(X, Y).set_params(**given)
        return forest.partial_fit(X, Y)

    return call


def _set_back():
    forest = odd.regressor().fit(X, Y)
    before = forest.get_params()["lifetime"]
    return forest.set_params(lifetime=1.0).set_params(lifetime=before).partial_fit(X, Y)


def _anew():
    return odd.regressor().fit(X, Y).set_params(lifetime=1.0).fit(X, Y)


def _other_classes_anew():
    return odd.classifier().partial_fit(X, np.where(Y > 2, "a", "b"), classes=["a", "b"])


def _saved(make, name=None, load=None, **given):
    """What writes a fitted estimator, and reads it as another class."""

    def call():
        with TemporaryDirectory() as folder:
            file = Path(folder) / "fit.nc"
            fitted = make(**SMALL | given).fit(X, Y)
            if name:
                pmt.save(fitted.idata_, file)
            else:
                fitted.save(file)
            return (load or make).load(file)

    return call


def _until(given, **settings):
    """A fit that ends by itself."""

    def call():
        settings_of = {**SMALL, "chains": 2, "draws": 6, "tune": 10, "progressbar": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pmt.BARTRegressor(**settings_of | {"until": given} | settings).fit(X, Y)

    return call


ESTIMATORS = [
    remedy(
        "the time was over in tuning, so that there are no draws. Give a longer max_time, or less "
        "tune",
        _until({"max_time": 1e-9}),
        _until({"max_time": "5min", "r_hat": 99.0, "ess": 0.1}),
        _until({"max_time": 1e-9}, tune=0),
    ),
    remedy(
        "give a dict of arguments of sample_until",
        odd_bart.REGRESSOR["until text"],
        _until({"ess": 0.1, "r_hat": 99.0}),
    ),
    remedy(
        "Call 'fit' with appropriate arguments before using this estimator",
        odd.REGRESSOR["sample before fit"],
        lambda: odd.regressor().fit(X, Y).sample_y(X),
    ),
    remedy(
        "differ from those of the first call of partial_fit, …: leave them out, or fit a new",
        odd.CLASSIFIER["other classes later"],
        _partial(["high", "low"], {}),
        _other_classes_anew,
    ),
    remedy(
        "give all of them as classes at the first partial_fit",
        odd.CLASSIFIER["a new class later"],
        _partial(["high", "low", "new"], {}, np.array(["new"] * 20)),
    ),
    remedy("must be at least …, got …: rescale X", grown(lifetime=1e-320), grown()),
    remedy(
        "and partial_fit cannot change that: set it back, or call fit",
        _changed(lifetime=1.0),
        _set_back,
        _anew,
    ),
    remedy(
        "Give a hundred times as much, or grow fewer trees",
        grown(n_estimators=50, max_memory=0.01),
        grown(n_estimators=50, max_memory=1.0),
        grown(n_estimators=1, max_memory=1.0),
    ),
    remedy(
        "give one of them. A window bounds memory too",
        grown(window=10, max_memory=1.0),
        grown(window=10),
        grown(max_memory=1.0),
    ),
    remedy(
        "high - low overflows; rescale X",
        grown(scaling=(-1.7e308, 1.7e308)),
        grown(scaling=(0.0, 1.0)),
    ),
    remedy(
        "Leave these rows out, or rescale X",
        odd.REGRESSOR["X too wide"],
        grown(X=X[:5], y=Y[:5]),
        grown(X=np.where(X > 0.5, 1.7, -1.7)),
    ),
    remedy(
        "squares of these differences underflow to 0. Rescale y",
        _predicted(y=Y * 1e-200),
        _predicted(y=Y),
    ),
    remedy(
        "Leave gamma_2 out, or give gamma_1 too",
        _predicted(gamma_2=1.0, lifetime=1e-12),
        _predicted(lifetime=1e-12),
        _predicted(gamma_1=1.0, gamma_2=1.0, lifetime=1e-12),
    ),
    remedy(
        "and must hold numbers: convert it, for instance by ….astype(float)",
        grown(X=pd.DataFrame({"a": ["1.5", "x"] * 10})),
        grown(X=pd.DataFrame({"a": ["1.5", "2"] * 10}).astype(float)),
    ),
    remedy(
        "masked (missing) entries: leave them out",
        odd.CLASSIFIER["y masked"],
        grown(X=X[Y <= 2], y=Y[Y <= 2]),
    ),
    remedy(
        "Rescale y, or leave these rows out",
        odd.REGRESSOR["y huge"],
        grown(y=Y),
        grown(X=X[:5], y=Y[:5]),
    ),
    remedy(
        "holds no estimator: give a file written by save()",
        _saved(pmt.BARTRegressor, name="draws"),
        _saved(pmt.BARTRegressor),
        full=True,
    ),
    remedy(
        "holds a …: read it with ….load",
        _saved(pmt.BARTRegressor, load=pmt.BARTClassifier),
        _saved(pmt.BARTRegressor),
        full=True,
    ),
    remedy(
        "cannot be written to a file: give numbers, words, or lists and dicts of them",
        _saved(pmt.BARTRegressor, split_rules={"continuous", "onehot"}),
        _saved(pmt.BARTRegressor, split_rules=["continuous", "onehot"]),
        full=True,
    ),
]


def fitted(z=Z, X=X, y=Y, propensity=P, group=None, sample_weight=None, **given):
    """A causal forest, fitted."""
    return lambda: causal.BayesianCausalForest(**OF_FOREST | given).fit(
        X, y, z, propensity=propensity, group=group, sample_weight=sample_weight
    )


def _asked(ask, **given):
    return lambda: ask(fitted(**given)())


def _declared(z=Z, propensity=P, **rows):
    """Whether inputs are accepted; nothing is sampled."""

    def call():
        causal.overlap(propensity, z, **rows)
        return True

    return call


WEIGHTS = np.linspace(1.0, 2.0, 20)
TURNED = pd.DataFrame(X, columns=["age", "score"], index=np.arange(20)[::-1])
"""Rows whose labels are those of a series, in another order."""


def _with_weights_of_a_population(forest):
    effects = forest.unit_effects()
    average = (effects * WEIGHTS).sum("row") / WEIGHTS.sum()
    return average.dims == ("chain", "draw") and np.isfinite(average).all().item()


def _with_noise_of_each_row():
    """The causal forest written out, with noise of unequal sd, sampled by the usual steps."""
    with pm.Model():
        mu = pmt.BART("mu", np.column_stack([X, P]), Y, m=2)
        tau = pmt.BART("tau", X, m=2, alpha=0.25, beta=3.0, leaf=pmt.NormalLeaf(0.0, 1.0))
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu + tau * Z, sigma / np.sqrt(WEIGHTS), observed=Y)
        idata = pm.sample(
            draws=2,
            tune=2,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return {"mu", "tau", "sigma"} <= set(idata.posterior)


CAUSAL = [
    remedy(
        "sample_weight is not taken by causal forests: leave it out",
        fitted(sample_weight=WEIGHTS),
        fitted(),
        _asked(_with_weights_of_a_population),
        _with_noise_of_each_row,
        full=True,
    ),
    remedy(
        "names that the model gives to columns of its own: rename them, and leave the treatment",
        fitted(X=TURNED.rename(columns={"score": "propensity"})),
        fitted(X=TURNED.rename(columns={"score": "score_"})),
        full=True,
    ),
    remedy(
        "names that the model gives to columns of its own: rename them, and leave the treatment",
        fitted(X=TURNED.assign(treatment=Z), forests="one"),
        fitted(X=TURNED, forests="one"),
        fitted(X=TURNED.assign(earlier_treatment=1 - Z), forests="one"),
        full=True,
    ),
    remedy(
        "has the rows of X in another order, by its index: give",
        fitted(X=TURNED, y=pd.Series(Y)),
        fitted(X=TURNED, y=pd.Series(Y).loc[TURNED.index]),
        fitted(X=TURNED, y=pd.Series(Y).to_numpy()),
        fitted(X=TURNED, propensity=pd.Series(P).loc[TURNED.index]),
        fitted(X=TURNED, group=pd.Series(np.resize(["a", "a", "b", "b"], 20)).loc[TURNED.index]),
        full=True,
    ),
    remedy(
        "… has shape …: give ….",
        _declared(Z, propensity=P[:5]),
        _declared(Z),
    ),
    remedy(
        "overlap compares the arms of a binary treatment. Give z as 0 and 1",
        lambda: causal.overlap(P, DOSE),
        lambda: causal.overlap(P, (DOSE > 0.5).astype(int)),
    ),
    remedy(
        "z is empty: give the treatment of each row", lambda: causal.overlap([], []), _declared()
    ),
    remedy(
        "give 0 for untreated and 1 for treated rows",
        lambda: check_treatment(Z + 1),
        lambda: check_treatment(Z).binary,
        lambda: not check_treatment(Z + 1, kind="dose").binary,
    ),
    remedy(
        "group has shape …: give … names, one for each row of X",
        _declared(group=SCHOOL[:5]),
        _declared(group=SCHOOL),
    ),
    remedy(
        "group holds missing values: leave those rows out",
        _declared(group=np.where(Z, np.nan, 0.0)),
        _declared(group=np.zeros(20)),
    ),
    remedy("but X has … rows: give one for each", fitted(y=Y[:5]), fitted(y=Y), full=True),
    remedy(
        'forests="arms" needs a z of 0 and 1: for doses use "two" or "one"',
        fitted(z=DOSE, forests="arms"),
        fitted(z=DOSE, forests="two"),
        fitted(z=DOSE, forests="one"),
        full=True,
    ),
    remedy(
        "propensity was given to fit: give the propensity of these rows too",
        _asked(lambda f: f.cate(X[:3]), forests="one"),
        _asked(lambda f: f.cate(X[:3], propensity=P[:3]), forests="one"),
        full=True,
    ),
    remedy(
        "contrast=…: give two treatments to compare",
        _asked(lambda f: f.unit_effects(1)),
        _asked(lambda f: f.unit_effects((0, 1))),
        full=True,
    ),
    remedy(
        "contrast=…: z is binary, so give 0 and 1",
        _asked(lambda f: f.unit_effects((0, 2))),
        _asked(lambda f: f.unit_effects((0, 1))),
        full=True,
    ),
    remedy(
        "so there is no treated group: use sate(), which averages over all rows",
        _asked(lambda f: f.satt(), z=DOSE),
        _asked(lambda f: f.sate(), z=DOSE),
        full=True,
    ),
    remedy(
        "everybody or nobody was treated",
        fitted(z=(np.arange(20) < 10).astype(int), group=SCHOOL),
        lambda: causal.overlap(P, (np.arange(20) < 10).astype(int), group=SCHOOL),
        full=True,
    ),
]


def long(**given):
    """The long form of six subjects."""
    return lambda: survival.long_form(**{"X": ROWS, "time": TIME, "event": EVENT} | given)


def records(**given):
    """The long form of recurrent events."""
    return lambda: survival.long_form(**RECORDS | given)


def curves(of="survival_function", **given):
    """Survival curves under the prior, or what else `survival` makes of the same."""

    def call():
        model = survival.discrete_time(ROWS, TIME, EVENT, m=2)
        idata = pm.sample_prior_predictive(2, model=model, random_seed=1)
        return getattr(survival, of)(idata, model, **QUIET, **{"X": ROWS} | given)

    return call


def at_free_times(**given):
    """The same for log times."""

    def call():
        model = survival.accelerated_failure_time(ROWS, TIME, EVENT, m=2)
        idata = pm.sample_prior_predictive(2, model=model, random_seed=1)
        return survival.survival_function(idata, model, **QUIET, **given)

    return call


def _incidence(rows):
    def call():
        made = survival.long_form(ROWS, TIME, EVENT, times=[2.0, 4.0])
        with pm.Model() as model:
            leaf = pmt.NormalLeaf(0.0, 0.3)
            f = pmt.BART("f", made.X, m=2, leaf=leaf)
            g = pmt.BART("g", rows(made), m=2, leaf=leaf)
            pm.Bernoulli("event", logit_p=f, observed=made.y)
            pm.Bernoulli("cause", logit_p=g, observed=np.resize([0, 1], len(rows(made))))
        idata = pm.sample_prior_predictive(2, model=model, random_seed=1)
        return survival.cumulative_incidence(idata, model, ROWS, **QUIET)

    return call


def _competing(cause):
    return lambda: survival.competing_risks(ROWS, TIME, cause, m=2)


NAMED = pd.DataFrame(ROWS, columns=["time", "dose"])

SURVIVAL = [
    remedy(
        "… holds missing or infinite values: leave those rows out.",
        long(time=np.where(np.arange(6) == 2, np.nan, TIME)),
        long(X=ROWS[3:], time=TIME[3:], event=EVENT[3:]),
    ),
    remedy(
        "horizon=…: give a time above 0 and up to …, the last of the curves",
        lambda: survival.restricted_mean(curves()(), 99.0),
        lambda: survival.restricted_mean(curves()(), 2.0),
    ),
    remedy(
        "survival: give the Dataset returned by survival_function",
        lambda: survival.restricted_mean(None, 1.0),
        lambda: survival.restricted_mean(curves()(), 2.0),
    ),
    remedy(
        "call survival_function without by, for one curve per row",
        lambda: survival.concordance(curves(by=0)(), TIME, EVENT),
        lambda: survival.concordance(curves()(), TIME, EVENT),
    ),
    remedy(
        "give the subjects, because the rows of the model are those of the long form",
        curves(X=None),
        curves(X=ROWS),
    ),
    remedy(
        "is evaluated at no rows: give X at least one row", curves(X=ROWS[:0]), curves(X=ROWS[:1])
    ),
    remedy(
        "but the hazards of the model end at …: give earlier times",
        curves(times=[4.0]),
        curves(times=[3.0]),
    ),
    remedy(
        "whose first columns are time, since and count: use survival_function",
        curves(of="expected_events"),
        curves(),
    ),
    remedy(
        "is not a one-dimensional observed variable that depends on trees: choose from",
        at_free_times(var_name="f"),
        at_free_times(var_name="time"),
    ),
    remedy(
        "times: give at least one, in increasing order",
        at_free_times(times=[2.0, 1.0]),
        at_free_times(times=[1.0, 2.0]),
    ),
    remedy(
        "have forests on different columns: give both the same columns",
        _incidence(lambda made: ROWS),
        _incidence(lambda made: np.asarray(made.X)),
    ),
    remedy(
        "No event happens by …, the last of times: add later times",
        long(times=[0.2, 0.5]),
        long(times=[0.2, 0.5, 4.0]),
    ),
    remedy(
        "subject has … entries, but time has …: give the same number",
        records(subject=[0, 0, 1]),
        records(),
    ),
    remedy(
        "give the end of follow-up of each, with event 0, or leave them out",
        records(subject=[0, 0, 2, 2, 2], event=[1, 0, 1, 1, 0]),
        records(
            time=[1.0, 2.0, 1.5, 2.5, 3.0, 3.0],
            event=[1, 0, 1, 1, 0, 0],
            subject=[0, 0, 2, 2, 2, 1],
        ),
        records(
            X=ROWS[:2],
            subject=[0, 0, 1, 1, 1],
            event=[1, 0, 1, 1, 0],
            time=[1.0, 2.0, 1.5, 2.5, 3.0],
        ),
    ),
    remedy(
        "recurrent events are counted from time 0, so leave it out",
        records(entry=[0.0, 0.0, 0.5]),
        records(),
    ),
    remedy(
        "which are also names of columns of the long form: rename them",
        long(X=NAMED),
        long(X=NAMED.rename(columns={"time": "hours"})),
    ),
    remedy(
        "event has … entries, but time has …: give the same number", long(event=EVENT[:5]), long()
    ),
    remedy(
        "give 1 for an event and 0 for a censored time", long(event=EVENT + 1), long(event=EVENT)
    ),
    remedy(
        "cause has shape …: give … causes, one for each row of X",
        _competing([1, 2]),
        _competing([1, 0, 2, 1, 0, 2]),
    ),
    remedy(
        "cause holds the text '0', which would be one more cause: give the number 0, or None",
        _competing(["1", "0", "2", "1", "0", "2"]),
        _competing([1, 0, 2, 1, 0, 2]),
        _competing(["1", None, "2", "1", None, "2"]),
    ),
    remedy(
        "besides 0 or missing for censored times. Use discrete_time for events of one kind",
        _competing([1, 0, 1, 1, 0, 1]),
        _competing([1, 0, 2, 1, 0, 2]),
        lambda: survival.discrete_time(ROWS, TIME, EVENT, m=2),
    ),
]
