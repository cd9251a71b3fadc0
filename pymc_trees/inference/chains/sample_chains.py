"""`sample_chains`: `pymc.sample` with its chains wherever joblib puts them."""

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
    """Refuse what is no number of chains at once."""
    if not isinstance(cores, int) or isinstance(cores, bool) or cores == 0:
        raise ValueError(
            f"cores={cores!r}: give the number of chains to run at once, or -1 for all cores."
        )


def check_options(name: str, options: dict) -> None:
    """Refuse options of `pymc.sample` that mean nothing to chains in other processes."""
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
    """Draw chains by `pymc.sample`, each of them a task of joblib.

    Where they run is joblib's to say: in processes of this machine by default, on a cluster within
    ``joblib.parallel_config("dask")``, where a ``distributed.Client`` is, or
    ``joblib.parallel_config("ray")`` after ``ray.util.joblib.register_ray()``. The same seed gives
    the same draws everywhere, and those of ``pymc.sample(draws, tune=tune, chains=chains,
    random_seed=...)``.

    Parameters
    ----------
    model : pymc.Model, optional
        Default: the model on the context stack.
    chains : int, default 4
        Number of chains.
    draws, tune : int, default 1000
        Iterations of a chain that are kept, and before them those that tune.
    random_seed : int, sequence of int or numpy.random.Generator, optional
        As for `pymc.sample`.
    cores : int, default -1
        Chains at once, as joblib's ``n_jobs``: -1 for as many as there are cores or workers.
    progressbar : bool, default True
        Whether to show how much of the chains has been drawn.
    checkpoint : str or path, optional
        A file for `resume`, in tuning too: all draws so far with the states of the steps, written
        again and again while chains are drawn, and the result at the end. Default: none.
    every : int, optional
        Iterations of each chain between two writes, tuning included. Default: a tenth of the run,
        ``(tune + draws) / 10``.
    **options
        Other arguments of `pymc.sample`, such as ``step``, ``initvals`` or ``target_accept``.

    Returns
    -------
    xarray.DataTree
        As `pymc.sample` returns it, of the chains that were complete.

    Raises
    ------
    ValueError, TypeError
        With the name of the argument, also one that `pymc.sample` lacks or that means nothing here;
        ``every`` without ``checkpoint``.

    Warns
    -----
    UserWarning
        A process ended before its chain had, for want of memory or because it was killed: the
        chains that are missing are drawn again, with the same seeds, the third time one after the
        other. A chain that ends in an error is left out, and so are those that an interrupt leaves
        unfinished. A checkpoint could not be written, for want of room for example: the one before
        is unchanged and the run goes on.

    Notes
    -----
    A process compiles the model when it is given a chain; for a small model that takes longer than
    the chain. All its draws come back when the chain is complete: they must fit in the memory of
    the process, and all chains in that of this one.

    With a checkpoint chains are drawn in pieces of ``every`` iterations, which go back to this
    process; it alone writes the file, so that workers need not see its disk. All chains end a piece
    before any begins the next, and meanwhile the file is written as by `save`: whole or not at all.
    The draws are the same bit for bit. A process that ends takes one piece of its chains with it,
    and an interrupt leaves what the pieces before had. Each write takes as long as `save` takes for
    all draws so far. A file that is there already is replaced by the first of them, so that a job
    that begins again must look for it first.

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
