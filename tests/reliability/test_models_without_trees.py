"""`import pymc_trees` changes nothing for a model without trees: draws, warnings, errors, log."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, json, logging, re, sys, warnings

import numpy as np
import pymc as pm

if sys.argv[1] == "with":
    import pymc_trees
    pymc_trees.BART  # installs the hooks
    assert "pymc_trees.hooks" in sys.modules

records, said = [], {}


class Handler(logging.Handler):
    def emit(self, record):
        text = record.getMessage()
        if "took" not in text:  # seconds
            records.append([record.name, record.levelname, text])


logging.getLogger("pymc").handlers = [Handler()]


def digest(dataset):
    numbers = hashlib.sha256()
    for name in sorted(dataset.data_vars):
        if not any(word in name for word in ("time", "perf_counter")):
            numbers.update(f"{name} {dataset[name].dims} {dataset[name].shape} ".encode())
            numbers.update(np.ascontiguousarray(dataset[name].values).tobytes())
    return numbers.hexdigest()


def error_of(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "none"


fast = dict(progressbar=False, random_seed=3)
few = dict(draws=2, tune=2, chains=1, **fast)
rng = np.random.default_rng(1)
x = rng.normal(size=30)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with pm.Model(coords={"row": range(30)}) as model:
        X = pm.Data("X", x, dims="row")
        slope = pm.Normal("slope")
        sigma = pm.HalfNormal("sigma")
        is_on = pm.Bernoulli("is_on", 0.5)
        count = pm.Poisson("count", 2.0)
        mu = pm.Deterministic("mu", slope * X + is_on + 0.1 * count)
        pm.Normal("y", mu, sigma, observed=2 * x + rng.normal(size=30))
    # NUTS, Metropolis and a sampler of binary variables; chains here and in processes; tuning kept
    many = dict(draws=8, tune=8, chains=2, discard_tuned_samples=False, **fast)
    with model:
        here = pm.sample(cores=1, **many)
        apart = pm.sample(cores=2, mp_ctx="fork", **many)
        walks = pm.sample(cores=1, step=pm.Metropolis([slope, sigma]), **many)
        predicted = pm.sample_posterior_predictive(here, **fast)
        prior = pm.sample_prior_predictive(draws=5, random_seed=3)
        optimum = pm.find_MAP(vars=[slope, sigma], progressbar=False)
        pm.compute_log_likelihood(here, progressbar=False)
    results = dict(here=here, apart=apart, walks=walks, predicted=predicted, prior=prior)
    for name, result in results.items():
        said[name] = {group: digest(node.to_dataset()) for group, node in result.children.items()}
    said["optimum"] = {k: np.asarray(v).tolist() for k, v in optimum.items()}
    shown = [repr(model), model.str_repr(), str(slope), repr(pm.Normal.dist())]
    said["repr"] = [re.sub("0x[0-9a-f]+", "address", text) for text in shown]
    said["point"] = {name: np.asarray(v).tolist() for name, v in model.initial_point(1).items()}
    with model:
        said["errors"] = [
            error_of(pm.set_data, {"X": np.zeros((2, 2))}),
            error_of(pm.set_data, {"nothing": x}),
            error_of(pm.set_data, {"X": ["a"]}),
            error_of(pm.sample, **few, initvals={"nothing": 1.0}),
            error_of(pm.sample, **few, initvals={"sigma": -1.0}),
            error_of(pm.sample, **few, step=pm.Metropolis([slope, sigma]), nuts={"a": 1}),
        ]
        pm.set_data({"X": np.zeros(7)}, coords={"row": range(7)})
        said["errors"].append(error_of(pm.sample_posterior_predictive, here, **fast))
        del here["log_likelihood"]
        said["errors"].append(error_of(pm.compute_log_likelihood, here))
texts = [re.sub("pid=[0-9]+", "pid", str(w.message)) for w in caught]
said["warnings"] = [[w.category.__name__, text] for w, text in zip(caught, texts)]
said["log"] = records
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def runs() -> list[dict]:
    """What a process reports with the package, and one without it."""
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE,cxx="
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, which],
            env={**os.environ, "PYTENSOR_FLAGS": flags.lstrip(",")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for which in ("with", "without")
    ]
    outputs = [process.communicate()[0] for process in processes]
    return [json.loads(output.splitlines()[-1]) for output in outputs]


PARTS = "here apart walks predicted prior optimum repr point errors warnings log".split()


@pytest.mark.parametrize("part", PARTS)
def test_nothing_changes(runs, part):
    changed, plain = (found[part] for found in runs)
    assert plain, "there is something to compare"
    assert changed == plain


def test_all_parts_are_compared(runs):
    assert all(set(found) == set(PARTS) for found in runs)


def test_what_is_compared_happened(runs):
    _, plain = runs
    assert {"posterior", "warmup_posterior", "sample_stats"} <= set(plain["here"])
    assert sum(error != "none" for error in plain["errors"]) >= 6
    steps = "\n".join(text for _, _, text in plain["log"])
    for step in ("NUTS: [", "Metropolis: [", "BinaryGibbsMetropolis: ["):
        assert step in steps
