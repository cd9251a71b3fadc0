"""Ranks of prior draws among posterior draws.

A parameter is drawn from the prior, a response from the model given it; under an exact sampler the
rank of the parameter among independent posterior draws is uniform (Talts et al. 2018). Here the
chain starts at the very parameter that the response was drawn from, a draw from the posterior, at
a random place of the chain: it runs forwards from there and backwards with the steps in reversed
order (Gandy and Scott 2020). No warm-up is needed, and a wrong kernel drifts away from the
parameter and shows. Were the backward chain the exact reversal, ranks would be uniform whatever the
autocorrelation; within a step the trees are still visited in their own order, so that `thin` sweeps
must part the draws well enough for that order not to matter.
"""

import numpy as np
import pymc as pm
from scipy import stats

import pymc_trees as pmt
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest


def steps_of(model, seed, move=pmt.CGM):
    """One step method for each free variable; none of them needs tuning."""
    seeds = iter(np.random.SeedSequence(seed).spawn(len(model.free_RVs)))
    steps = []
    with model:
        terms = [rv for rv in model.free_RVs if pmt.GaussianTerms.competence(rv, True) > 0]
        if terms:
            rng = np.random.default_rng(next(seeds))
            steps.append(pmt.GaussianTerms(terms, rng=rng))
            steps[-1].stop_tuning()
        for rv in (rv for rv in model.free_RVs if not any(rv is v for v in terms)):
            rng = np.random.default_rng(next(seeds))
            if pmt.LatentColumn.competence(rv, True) > 0:
                steps.append(pmt.LatentColumn([rv], rng=rng))
            elif is_forest(rv):
                steps.append(move([rv], rng=rng))
            elif is_soft_forest(rv):
                steps.append(pmt.SoftCGM([rv], rng=rng))
            elif pmt.SplitWeights.competence(rv, True) > 0:
                steps.append(pmt.SplitWeights([rv], rng=rng))
            elif pmt.NoiseScale.competence(rv, True) > 0:
                steps.append(pmt.NoiseScale([rv], rng=rng))
                steps[-1].stop_tuning()
            else:
                steps.append(pm.Slice([model.rvs_to_values[rv]], rng=rng, tune=False))
    return steps


def ranks(case, replicates, length=9, thin=10, rows=(0, 7, 15), seed=1, move=pmt.CGM):
    """Ranks 0 .. length - 1 of each quantity in each replicate.

    Returns
    -------
    dict : name -> (replicates,) int array
    """
    model = case.model
    rng = np.random.default_rng(seed)
    steps = steps_of(model, seed + 1, move)
    truth = simulate(model, replicates, seed + 2)
    watched = model.compile_fn(
        model.replace_rvs_by_values([model[name] for name in [*case.functions, *case.settings]]),
        inputs=model.value_vars,
        on_unused_input="ignore",
        point_fn=True,
    )
    names = [f"{f}[{i}]" for f in case.functions for i in rows] + [
        f"{s}[{k}]"
        for s in case.settings
        for k in range(model[s].type.shape[0] or 1 if model[s].ndim else 1)
    ]
    found = {name: np.empty(replicates, dtype=int) for name in names}
    for r in range(replicates):
        with model:
            others = {name: values[r] for name, values in truth["others"].items()}
            pm.set_data({"response": truth["y"][r]} | others)
        start = {name: values[r] for name, values in truth["point"].items()}
        place = int(rng.integers(length))
        draws = [start]
        for order, count in ((steps[::-1], place), (steps, length - 1 - place)):
            point = dict(start)
            for _ in range(count):
                for _ in range(thin):
                    for step in order:
                        point, _ = step.step(point)
                draws.append(point)
        values = np.array([_read(watched(d), case, rows) for d in draws])
        below = (values[1:] < values[0]).sum(axis=0)
        ties = (values[1:] == values[0]).sum(axis=0)
        rank = below + rng.integers(0, ties + 1)
        for name, one in zip(names, rank, strict=True):
            found[name][r] = one
    return found


def simulate(model, replicates, seed):
    """Prior draws as points of the model, and responses given them.

    Another observed variable v has the model data ``v_response``.
    """
    free = list(model.free_RVs)
    others = [rv for rv in model.observed_RVs if rv.name != "y"]
    drawn = pm.draw([*free, *others, model["y"]], draws=replicates, random_seed=seed)
    point = {}
    for rv, values in zip(free, drawn, strict=False):
        transform = model.rvs_to_transforms[rv]
        name = model.rvs_to_values[rv].name
        if transform is not None:
            inputs = [v for v in rv.owner.inputs]
            values = np.array([transform.forward(v, *inputs).eval() for v in values])
        point[name] = values
    seen = zip(others, drawn[len(free) :], strict=False)
    named = {f"{rv.name}_response": values for rv, values in seen}
    return {"point": point, "others": named, "y": drawn[-1]}


def _read(results, case, rows):
    functions = results[: len(case.functions)]
    settings = results[len(case.functions) :]
    return np.concatenate(
        [np.asarray(f)[list(rows)] for f in functions] + [np.ravel(s) for s in settings]
    )


def uniformity(rank, length):
    """p-value of the chi-squared test that ranks are uniform over ``0 .. length - 1``."""
    return float(stats.chisquare(np.bincount(rank, minlength=length)).pvalue)


def coverage(ranks_of_rows, length):
    """Share of the rows at which the central interval holds the truth, and its standard error.

    The interval lies between the least and the greatest of ``length - 1`` draws: it is one of
    probability ``1 - 2 / length``, 95% of 40 ranks.

    Parameters
    ----------
    ranks_of_rows : (rows, replicates) int array
        Of f.
    length : int
        Number of ranks.
    """
    inside = (ranks_of_rows > 0) & (ranks_of_rows < length - 1)
    by_replicate = inside.mean(axis=0)
    return float(by_replicate.mean()), float(by_replicate.std(ddof=1) / by_replicate.size**0.5)
