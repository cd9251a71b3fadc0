"""One case by one package: chains through `pm.sample`, and what they cost and agree on."""

import time

import numpy as np
import pymc as pm

from benchmarks.peers.metrics import ess, of_each, rhat

N_FOLLOWED = 60


def bart_of(package):
    """`BART` of a package."""
    if package == "pymc_trees":
        import pymc_trees

        return pymc_trees.BART
    import pymc_bart

    return pymc_bart.BART


def compiled(case, package, seed):
    """A model whose functions have been compiled by a few iterations."""
    with pm.Model() as model:
        names = case.declare(bart_of(package))
    sample(model, 3, 2, 1, seed)
    return model, names


def sample(model, tune, draws, chains, seed):
    """Posterior draws, and seconds of CPU of each iteration of each chain."""
    clock: list[float] = []
    with model:
        idata = pm.sample(
            draws=draws,
            tune=tune,
            chains=chains,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
            callback=lambda trace, draw: clock.append(time.process_time()),
        )
    return idata, np.array(clock).reshape(chains, -1)


def measure(case, package, tune, draws, chains, seed):
    """Numbers of one row of the table."""
    model, names = compiled(case, package, seed)
    idata, clock = sample(model, tune, draws, chains, seed + 1)
    # after warm-up, of all chains
    seconds = float((clock[:, -1] - clock[:, tune]).sum() * draws / (draws - 1))
    f = np.concatenate([_flat(idata.posterior[name].to_numpy()) for name in names], axis=2)
    followed = np.linspace(0, f.shape[2] - 1, N_FOLLOWED).round().astype(int)
    effective, agree = of_each(ess, f[:, :, followed]), of_each(rhat, f[:, :, followed])
    per_step = seconds / (chains * draws)
    found = {
        "ms_per_step": 1e3 * per_step,
        "us_per_row_and_tree": 1e6 * per_step / (case.rows * case.trees),
        "ess_per_second": float(np.median(effective) / seconds),
        "least_ess_per_second": float(effective.min() / seconds),
        "rhat": float(np.median(agree)),
        "worst_rhat": float(agree.max()),
        "seconds_of_all": float((clock[:, -1] - clock[:, 0]).sum()),
    }
    stats = idata.sample_stats
    screened = [name for name in stats if name.startswith("accept_delayed")]
    if screened:
        found["screened"] = float(np.nanmean([stats[name].mean() for name in screened]))
    return found


def _flat(draws):
    return draws.reshape(*draws.shape[:2], -1)
