"""A process that is interrupted again and again, at random times, in works of several kinds.

``python storm.py COUNT KIND ...`` prints, for each kind, a line of JSON: how many interrupts were
sent, how many ended a work by an exception and how many let it return what there was so far, and
every error that was not an interrupt. It is to end with 0. A second process sends the interrupts,
to the whole group as a terminal does, since a thread would have to wait until a kernel is over.
"""

import json
import signal
import subprocess
import sys
import time
import traceback
import warnings

KILLER = """
import os, random, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
dice = random.Random(7)
print(flush=True)
for line in sys.stdin:
    time.sleep(dice.uniform(0.0, float(line)))
    os.killpg(0, signal.SIGINT)
"""


def storm(kind, work, count):
    """Interrupt a work ``count`` times."""
    work()  # compiled
    begun = time.perf_counter()
    work()
    span = 1.5 * (time.perf_counter() - begun)  # some come while nothing is at work
    came = []

    def handler(number, frame):
        came.append(number)
        signal.default_int_handler(number, frame)

    raised = returned = 0
    errors = []
    killer = subprocess.Popen(
        [sys.executable, "-S", "-c", KILLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    killer.stdout.readline()
    for _ in range(count):
        came.clear()
        before = signal.signal(signal.SIGINT, handler)
        try:
            killer.stdin.write(b"%f\n" % span)
            killer.stdin.flush()
            while not came:
                work()
            returned += 1
        except KeyboardInterrupt:
            raised += 1
        except BaseException as error:
            told = "".join(traceback.format_exception(error))
            if not came and "KeyboardInterrupt" not in told:
                raise
            errors.append(told)
        signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
        while not came:
            time.sleep(0.001)
        signal.signal(signal.SIGINT, before)
    killer.stdin.close()
    killer.wait()
    found = {"kind": kind, "sent": count, "raised": raised, "returned": returned, "errors": errors}
    sys.stdout.write(f"{json.dumps(found)}\n")
    sys.stdout.flush()


def data():
    import numpy as np

    rng = np.random.default_rng(1)
    X = rng.random((60, 2))
    return X, np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=60)


def forest_model():
    import pymc as pm

    import pymc_trees as pmt

    X, y = data()
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=5)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model


def steps(apart=False):
    """Steps of every kind go on from where they were after an interrupt."""
    import pymc_trees as pmt
    from pymc_trees.step_methods.kernels import local_moves, tree_redraw

    if apart:  # as in large models
        local_moves.LONG_CONJUGATE = tree_redraw.LONG = 0
    model = forest_model()
    kinds = (pmt.Hybrid, pmt.CGM, lambda **given: pmt.ParticleGibbs(num_particles=5, **given))
    stepping = [kind(model=model) for kind in kinds]
    state = {"point": model.initial_point()}

    def work():
        for step in stepping:
            for _ in range(5):
                state["point"], _ = step.step(state["point"])

    return work


def sample(cores):
    """Interrupted sampling gives the draws made so far."""
    import pymc as pm

    import pymc_trees as pmt

    model = forest_model()
    with model:
        steps = [pmt.Hybrid(), pm.NUTS([model["sigma"]])]

    def work():
        made = {}

        def count(trace, draw):
            if not draw.tuning:
                made[draw.chain] = made.get(draw.chain, 0) + 1

        options = {"progressbar": False, "compute_convergence_checks": False, "cores": cores}
        try:
            with model:
                idata = pm.sample(
                    80, tune=5, chains=2, step=steps, random_seed=1, callback=count, **options
                )
        except ValueError as error:  # what PyMC says when there is nothing to give back
            assert "Not enough samples" in str(error) and not made
            raise KeyboardInterrupt from error
        # PyMC takes as many chains, cut to one length, as give the most draws
        kept = idata.posterior.sizes if made else {"chain": 0, "draw": 0}
        assert kept["chain"] * kept["draw"] >= max(made.values(), default=0)

    return work


def tree_smc(cores=1):
    import pymc as pm

    import pymc_trees as pmt

    X, y = data()
    with pm.Model() as model:
        mu = pmt.DecisionTree("mu", X, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)

    def work():
        with model, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the islands that were complete
            pmt.sample_tree_smc(100, islands=3, cores=cores, random_seed=1, progressbar=False)

    return work


def dcc(cores=1):
    import pymc as pm

    import pymc_trees as pmt

    X, y = data()
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree("mu", X[:20], y[:20])
        pm.Normal("y", mu, 0.5, observed=y[:20], shape=mu.shape)
    settings = {"local_draws": 5, "tune": 20, "initial_trees": 3}
    if cores == 1:  # one posterior is compiled once: what `sample_dcc` does at each iteration
        from pymc_trees.dcc.dcc import DCC, Settings
        from pymc_trees.dcc.topology_model import TopologyModel

        posterior = TopologyModel(model)

        def work():
            run = DCC(posterior, Settings(chains=2, **settings), 1)
            for _ in range(3):
                run.iterate()
            run.combine()

        return work

    def work():
        with model, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            pmt.sample_dcc(3, 10, 2, cores=cores, random_seed=1, progressbar=False, **settings)

    return work


def predictive(kind):
    import pymc as pm

    model = forest_model()
    with model:
        if kind == "posterior":
            idata = pm.sample_prior_predictive(20, random_seed=1)
            idata["posterior"] = idata["prior"]

    def work():
        with model:
            if kind == "posterior":
                pm.sample_posterior_predictive(
                    idata, sample_vars=["y"], random_seed=1, progressbar=False
                )
            else:
                pm.sample_prior_predictive(100, random_seed=1)

    return work


def mondrian(kind, n_jobs=1):
    import numpy as np

    import pymc_trees as pmt

    rng = np.random.default_rng(1)
    X = rng.random((600, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=600)
    make = dict(n_estimators=10, n_jobs=n_jobs, random_state=1, hyperparameters="heuristic")
    forest = pmt.MondrianForestRegressor(**make).fit(X[:300], y[:300])

    def fit():
        pmt.MondrianForestRegressor(**make).fit(X, y)

    def partial_fit():
        nonlocal forest
        if forest.n_samples_seen_ > 3000:
            forest = pmt.MondrianForestRegressor(**make).fit(X[:300], y[:300])
        rows = forest.n_samples_seen_
        try:
            forest.partial_fit(X, y)  # many rows: each tree in a call of its own
            forest.partial_fit(X[:5], y[:5])  # few: all in one
        except KeyboardInterrupt:
            assert rows <= forest.n_samples_seen_ == forest._fitted.rows.n
            assert {int(tree.state[4]) for tree, _ in forest._fitted.trees} == {
                forest.n_samples_seen_
            }
            assert np.isfinite(forest.predict(X[:3])).all()
            raise

    def predict():
        assert np.isfinite(forest.predict(X, return_std=True)).all()
        forest.sample_y(X[:50], 10, random_state=1)

    return {"fit": fit, "partial_fit": partial_fit, "predict": predict}[kind]


WORKS = {
    "step": steps,
    "step apart": lambda: steps(apart=True),
    "sample": lambda: sample(1),
    "sample, 2 cores": lambda: sample(2),
    "tree_smc": tree_smc,
    "tree_smc, 2 cores": lambda: tree_smc(2),
    "dcc": dcc,
    "dcc, 2 cores": lambda: dcc(2),
    "prior": lambda: predictive("prior"),
    "posterior": lambda: predictive("posterior"),
    "fit": lambda: mondrian("fit"),
    "fit, 2 jobs": lambda: mondrian("fit", 2),
    "partial_fit": lambda: mondrian("partial_fit"),
    "partial_fit, 2 jobs": lambda: mondrian("partial_fit", 2),
    "predict": lambda: mondrian("predict"),
    "predict, 2 jobs": lambda: mondrian("predict", 2),
}

if __name__ == "__main__":
    for name in sys.argv[2:]:
        storm(name, WORKS[name](), int(sys.argv[1]))
