"""`sample_dcc`: a complete run of DCC-Tree, with the results of all topologies."""

import os
import time
import warnings

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.dcc.dcc import DCC, RUN, Combined, check_settings
from pymc_trees.dcc.topology_model import TopologyModel
from pymc_trees.inference.results import data_tree, record_points
from pymc_trees.progress import track


def sample_dcc(
    iterations=500,
    draws=1000,
    chains=RUN.chains,
    *,
    local_draws=RUN.local_draws,
    tune=RUN.tune,
    importance_draws=RUN.importance_draws,
    initial_trees=RUN.initial_trees,
    threshold=RUN.threshold,
    max_active=RUN.max_active,
    exploration=RUN.exploration,
    optimism=RUN.optimism,
    screening=RUN.screening,
    cores=None,
    random_seed=None,
    progressbar=True,
    model=None,
) -> xr.DataTree:
    """Sample a model with a `SoftDecisionTree` by divide, conquer, combine.

    Every topology has its own NUTS chains, warmed up once and continued at every visit, and an
    estimate of its evidence. Every second chain starts from a topology with one split less or more,
    the others from the prior; chains in the same mode share the covariance by which NUTS scales
    momenta. Each iteration visits the topology with the highest utility, which then proposes
    another one. At the end topologies are weighted by evidence and prior.

    Parameters
    ----------
    iterations : int, default 500
        T, global iterations: visits, over all topologies (Cochrane 2024, section 4.1).
    draws : int, default 1000
        Draws of the combined posterior per chain of the result, independent of each other.
    chains : int, default 16
        N_c, local chains per topology (the authors' program); also the number of chains of the
        result.
    local_draws : int, at least 2, default 100
        N_s, draws per local chain and visit (section 4.1).
    tune : int, at least 20, default 2000
        N_INIT, warm-up of a local chain, over which h falls (section 4.1). Then covariances are
        pooled over chains, twice (once in a short warm-up), and step sizes adapt to them for a
        twentieth of the warm-up each time; a chain that then diverges adapts its step size again,
        at most three times.
    importance_draws : int, default 10
        N_M, pseudo-draws from each Gaussian of the evidence (section 4.1).
    initial_trees : int, default 100
        T_0, topologies of the prior to start with (the authors' program).
    threshold : int, default 5
        C_0: a topology proposed more often than this becomes active (the authors' program).
    max_active : int, default 100
        Maximum number of active topologies (the authors' program). Topologies found later stay
        inactive.
    exploration : float in [0, 1], default 0
        Delta of eq. 10, the share of exploration in the utility (the authors' program has 0).
    optimism : float, positive, default 0.1
        Beta of eq. 10: a large value spreads visits almost evenly, a small one by evidence. The
        authors' program has 1; 0.1 comes from the benchmarks.
    screening : float in [0, 1], default 0.2
        The first visit of a topology, and the warm-up before it, are shortened to this share of
        ``local_draws`` and ``tune`` (at least 100 iterations). A topology that is visited again
        is warmed up in full, and its draws begin anew. 1 warms up every topology in full. Weights
        are consistent in either case.
    cores : int, optional
        Number of processes for local inference. Default: the number of cores, up to 4.
    random_seed : int, Generator or None
        Same seed, same draws, on any number of cores, up to the rounding of compiled code.
    progressbar : bool, default True
    model : pymc.Model, optional
        Default: the model on the context stack.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior``, ``sample_stats`` (``topology`` and ``n_leaves`` of each draw),
        ``observed_data``, ``constant_data``, and ``topologies``: for each visited topology, in
        order of decreasing weight, ``log_evidence`` (without its prior), its standard error
        ``log_evidence_error``, ``log_prior``, ``weight``, ``visits`` (with the short first one),
        ``warm_ups`` (of all chains) and ``gradients`` (evaluations), all so far, ``divergences``
        (since the last warm-up) and ``proposals``. A topology is named by its nodes in preorder:
        ``"L"`` the stump, ``"SLL"`` one split, ``"SSLLL"`` the left child split, ``"SLSLL"`` the
        right one.

    Raises
    ------
    ValueError, NotImplementedError
        For settings out of range, or a model that is not one soft tree and continuous variables
        with proper priors.

    Notes
    -----
    An interrupt (ctrl-C) ends the run with the results of the completed iterations and a warning.

    The error of the evidence is a jackknife over local chains (and over visits, whichever is
    larger). It is large if only one chain has found the best mode.

    References
    ----------
    Cochrane, Wills and Johnson (2024). Divide, conquer, combine Bayesian decision tree sampling,
    algorithm 1, eq. 10-14, 28-29, 46.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    >>> with pm.Model():
    ...     mu = pmt.SoftDecisionTree("mu", X, y)
    ...     obs = pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
    ...     idata = pmt.sample_dcc(
    ...         2, 50, 2, tune=20, local_draws=20, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> idata.posterior["mu"].sizes["chain"], idata.posterior["mu"].sizes["draw"]
    (2, 50)
    """
    model = pm.modelcontext(model)
    settings = check_settings(
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
    iterations = check_number("iterations", iterations, 1)
    draws = check_number("draws", draws, 1)
    cores = min(4, os.cpu_count() or 1) if cores is None else check_number("cores", cores, 1)
    rng = check_seed(random_seed)
    started = time.perf_counter()
    dcc = DCC(TopologyModel(model), settings, int(rng.integers(2**31)), cores)
    finished = iterate(dcc, iterations, progressbar)
    combined = dcc.combine()
    labels, points = draw_points(dcc, combined, rng, settings.chains, draws)
    groups = {
        "posterior": record_points(model, points),
        "sample_stats": {
            "topology": labels,
            "n_leaves": np.char.count(labels, "L"),
        },
    }
    idata = data_tree(model, groups, started, iterations=finished, local_draws=settings.local_draws)
    idata["topologies"] = xr.DataTree(describe(dcc, combined))
    return idata


def iterate(dcc: DCC, iterations: int, progressbar: bool) -> int:
    """Make global iterations until an interrupt; number of finished iterations."""
    finished = 0
    progress = track(range(iterations), "DCC-Tree", iterations, progressbar)
    try:
        for _ in progress:
            dcc.iterate()
            finished += 1
    except KeyboardInterrupt:
        if finished == 0:
            raise
        warnings.warn(
            f"Interrupted: the result is of {finished} global iterations instead of {iterations}.",
            stacklevel=3,
        )
    return finished


def draw_points(dcc: DCC, combined: Combined, rng, chains: int, draws: int):
    """(chains, draws) labels and points: topologies by weight, parameters by eq. 14."""
    chosen = rng.choice(len(combined.labels), (chains, draws), p=combined.weight)
    points = np.empty((chains, draws), dtype=object)
    for k, label in enumerate(combined.labels):
        where = np.argwhere(chosen == k)
        if len(where) == 0:
            continue
        parameters = dcc.draw_parameters(rng, label, len(where))
        for (chain, draw), q in zip(where, parameters, strict=True):
            points[chain, draw] = dcc.model.point(q, rng)
    return np.array(combined.labels)[chosen], points


def describe(dcc: DCC, combined: Combined) -> xr.Dataset:
    """The group ``topologies``."""
    topologies = [dcc.topologies[label] for label in combined.labels]
    variables = {
        "log_evidence": combined.log_evidence,
        "log_evidence_error": combined.error,
        "log_prior": combined.log_prior,
        "weight": combined.weight,
        "visits": [t.visits for t in topologies],
        "warm_ups": [sum(c.warm_ups for c in t.chains) for t in topologies],
        "divergences": [t.divergences for t in topologies],
        "gradients": [sum(c.gradients for c in t.chains) for t in topologies],
        "proposals": [dcc.search.proposed[label] for label in combined.labels],
    }
    return xr.Dataset(
        {name: ("topology", np.asarray(values)) for name, values in variables.items()},
        coords={"topology": combined.labels},
    )
