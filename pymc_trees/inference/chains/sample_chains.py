"""`sample_chains`: `pymc.sample` with chains run by joblib."""

import inspect

import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.inference.chains.checkpoint import check_checkpoint
from pymc_trees.inference.chains.runner import Runner

REFUSED = {
    "callback": "is called where the chains are",
    "trace": "is where one process records",
    "mp_ctx": "is how pymc.sample starts processes",
    "blas_cores": "is for processes of pymc.sample",
    "nuts_sampler": "of another package runs its chains itself",
    "return_inferencedata": "is always so",
}
"""Arguments of `pymc.sample` that have no meaning here, and why."""


def check_cores(cores) -> None:
    """Raise an error for an invalid number of concurrent chains."""
    if not isinstance(cores, int) or isinstance(cores, bool) or cores == 0:
        raise ValueError(
            f"cores={cores!r}: give the number of chains to run at once, or -1 for all cores."
        )


def check_options(name: str, options: dict) -> None:
    """Raise an error for options of `pymc.sample` without meaning for chains in other processes."""
    known = inspect.signature(pm.sample).parameters
    for option in options:
        if option in REFUSED:
            raise TypeError(
                f"{name} takes no {option}=, which {REFUSED[option]}: leave it out, or call "
                "pm.sample."
            )
        if option not in known:
            raise TypeError(f"{option}= is not an argument of pymc.sample.")


def sample_chains(
    model=None,
    chains=4,
    *,
    draws=1000,
    tune=1000,
    random_seed=None,
    cores=-1,
    progressbar=True,
    checkpoint=None,
    every=None,
    **options,
) -> xr.DataTree:
    """Draw chains with `pymc.sample`, each as a joblib task.

    joblib decides where they run: in processes of this machine by default, or on a cluster within
    ``joblib.parallel_config("dask")``, with a ``distributed.Client``, or
    ``joblib.parallel_config("ray")`` after ``ray.util.joblib.register_ray()``. The same seed gives
    the same draws everywhere, equal to those of ``pymc.sample(draws, tune=tune, chains=chains,
    random_seed=...)``.

    Parameters
    ----------
    model : pymc.Model, optional
        Default: the model on the context stack.
    chains : int, default 4
        Number of chains.
    draws, tune : int, default 1000
        Iterations of each chain that are kept, and tuning iterations before them.
    random_seed : int, sequence of int or numpy.random.Generator, optional
        As for `pymc.sample`.
    cores : int, default -1
        Number of chains that run at once, as joblib's ``n_jobs``; -1 for all cores or workers.
    progressbar : bool, default True
        Whether to show the progress of the chains.
    checkpoint : str or path, optional
        File for `resume`, also from tuning: all draws so far with the states of the steps, written
        repeatedly during the run, and the result at the end. Default: none.
    every : int, optional
        Iterations of each chain between two writes, tuning included. Default: a tenth of the run,
        ``(tune + draws) / 10``.
    **options
        Other arguments of `pymc.sample`, such as ``step``, ``initvals`` or ``target_accept``.

    Returns
    -------
    xarray.DataTree
        As `pymc.sample` returns it, for the chains that are complete.

    Raises
    ------
    ValueError, TypeError
        For an invalid argument, including one that `pymc.sample` does not have or that has no
        meaning here, and for ``every`` without ``checkpoint``.

    Warns
    -----
    UserWarning
        A process ended before its chain was complete, because it ran out of memory or was killed:
        the missing chains are drawn again with the same seeds, at the third attempt one after the
        other. Chains that fail, or that an interrupt leaves unfinished, are left out. A checkpoint
        could not be written, because the disk is full for example: the previous one is unchanged
        and the run continues.

    Notes
    -----
    A process compiles the model when it receives a chain; for a small model that takes longer than
    the chain itself. All draws are returned when the chain is complete: they must fit in the memory
    of the process, and all chains in the memory of the calling process.

    With a checkpoint, chains are drawn in pieces of ``every`` iterations, which are returned to the
    calling process. Only this process writes the file, so workers need no access to its disk. All
    chains finish a piece before the next one starts, and the file is then written as by `save`,
    completely or not at all. The draws are the same bit for bit. A process that dies loses the
    current piece of its chains, and an interrupt keeps the previous pieces. Each write takes as
    long as `save` for all draws so far. The first write replaces an existing file, so a restarted
    job must check for the file first.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model():
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pmt.sample_chains(
    ...         chains=2, draws=5, tune=10, cores=1, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False)
    >>> dict(idata.posterior["mu"].sizes)
    {'chain': 2, 'draw': 5, 'mu_dim_0': 30}
    """
    model = pm.modelcontext(model)
    chains = check_number("chains", chains, 1)
    draws, tune = check_number("draws", draws, 1), check_number("tune", tune, 0)
    check_seed(random_seed)
    check_cores(cores)
    check_options("sample_chains", options)
    file = check_checkpoint(checkpoint, every, draws + tune)
    runner = Runner(cores, progressbar, file)
    found = runner.sample(
        draws=draws, tune=tune, chains=chains, random_seed=random_seed, model=model, **options
    )
    return runner.finish(found)
