"""`sample_chains`, `pymc.sample` with chains run by joblib, and `resume`, which continues them."""

import hashlib
import inspect
import logging
from collections.abc import Sequence

import numpy as np
import pymc as pm
import pymc.backends.arviz as backend
import xarray as xr
from pymc.stats.convergence import log_warnings, run_convergence_checks

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.inference.chains.run import Runner
from pymc_trees.inference.chains.states import (
    GROUP,
    REASON,
    StoppedChain,
    check_checkpoint,
    labels_of_draws,
    longest_tuning,
    note_ends,
    numbers_of_chains,
    read_states,
    with_its_states,
)
from pymc_trees.posterior.saving import LEFT_OUT

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
    parameters = inspect.signature(pm.sample).parameters
    for option in options:
        if option in REFUSED:
            raise TypeError(
                f"{name} takes no {option}=, which {REFUSED[option]}: leave it out, or call "
                "pm.sample."
            )
        if option not in parameters:
            raise TypeError(f"{option}= is not an argument of pymc.sample.")
    steps = options.get("step")
    for step in steps if isinstance(steps, list | tuple) else getattr(steps, "methods", [steps]):
        if isinstance(step, pm.DEMetropolis):  # its chains are drawn together, by a loop of its own
            raise TypeError(
                f"step: {name} draws each chain by itself, and pm.DEMetropolis needs all of "
                "them. Use pm.DEMetropolisZ."
            )


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
    result = runner.sample(
        draws=draws, tune=tune, chains=chains, random_seed=random_seed, model=model, **options
    )
    return runner.finish(result)


# ------------------------------------ Whether chains were drawn from a model, by its data and trees


def _data_of(model: pm.Model) -> dict[str, dict]:
    """Observed values and data of a model, by the groups in which they are stored."""
    return {
        "observed_data": backend.find_observations(model),
        "constant_data": backend.find_constants(model),
    }


def digest_of_data(model: pm.Model) -> str:
    """Of observed values and of the data of a model."""
    digest = hashlib.sha256()
    for values in _data_of(model).values():
        for name, value in sorted(values.items()):
            digest.update(str(name).encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:16]


def check_data(idata: xr.DataTree, model: pm.Model) -> None:
    """Refuse a model whose data differ from those stored with the draws."""
    changed = [
        name
        for group, variables in _data_of(model).items()
        for name, value in variables.items()
        if group in idata.children
        and name in idata[group].data_vars
        and not _are_equal(value, idata[group][name].to_numpy())
    ]
    if changed:
        raise ValueError(
            f"idata: its chains were drawn with other data: {changed} of the model differ. Set the "
            "data back with pm.set_data, or sample the new model from the beginning."
        )


def _are_equal(value, drawn: np.ndarray) -> bool:
    value = np.asarray(value)
    if value.shape != drawn.shape:
        return False
    has_nan = value.dtype.kind in "fc" and drawn.dtype.kind in "fc"
    return np.array_equal(value, drawn, equal_nan=has_nan)


def check_trees(stopped: Sequence[StoppedChain], model: pm.Model) -> None:
    """Refuse a model whose trees are declared with other settings than those of the chains."""
    for tree in tree_variables(model):
        name = model.rvs_to_values[tree.rv].name
        values = [np.asarray(chain.point[name]) for chain in stopped]
        if not all(v.shape == tree.shape and tree.is_intact(v) for v in values):
            raise ValueError(
                f"idata: its chains stopped at trees of another declaration than {tree.name}: with "
                "other inputs, leaves or sizes. Rebuild the model with its original settings, or "
                "sample the new one from the beginning."
            )


# --------------------------------------------------------------------------------------------------


_log = logging.getLogger("pymc.sampling.mcmc")

RESERVED = {
    "chains": "are those of the draws",
    "tune": "is over when chains are resumed",
    "random_seed": "is in the states of the chains",
    "initvals": "are where the chains stopped",
}
"""Arguments of `pymc.sample` that the draws determine, and how."""


def resume(
    idata,
    model=None,
    draws=1000,
    *,
    cores=-1,
    progressbar=True,
    checkpoint=None,
    every=None,
    **options,
) -> xr.DataTree:
    """Continue the chains of a run where they stopped.

    The draws are bit for bit those of a longer run. The states of all step methods, including tuned
    parameters and random generators, are stored with the draws of every model with trees, in the
    group ``sampling_state``, which `save` writes to the file.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, `sample_chains` or `resume` for this model; or a file of such a
        result, or a checkpoint, read by ``xarray.open_datatree``. Some of its chains go on alone,
        ``idata.isel(chain=[0, 2])``; of its draws only the first ones may be left out.
    model : pymc.Model, optional
        The same model with the same data. Default: the model on the context stack.
    draws : int, default 1000
        Draws added to each chain. A run that was stopped during tuning first completes its tuning.
    cores : int, default -1
        Number of chains that run at once, as joblib's ``n_jobs``; -1 for all cores or workers.
    progressbar : bool, default True
        Whether to show the progress of the chains.
    checkpoint, every : optional
        As for `sample_chains`; the file holds old and new draws. It may be the file that ``idata``
        was read from, if the operating system can replace an open file (Windows cannot).
    **options
        Other arguments of `pymc.sample`, as in the first run, such as ``step`` and
        ``target_accept``.

    Returns
    -------
    xarray.DataTree
        Old and new draws together, which can be resumed again. Groups computed from the old draws
        only (predictions, log likelihoods) are left out; ``idata`` itself is unchanged.

    Raises
    ------
    ValueError
        For draws without states, with the states of other steps or options, or of a model with
        other data or trees; for draws that are thinned or lack the last ones.
    TypeError
        For an argument that `pymc.sample` does not have, or that follows from the draws.

    Notes
    -----
    An interrupted run of `pymc.sample` or `sample_chains` can be resumed as well. If it is
    interrupted before any chain has finished tuning, the result holds only the states of the chains
    that have started. Processes of `pymc.sample` have five seconds to finish their current
    iteration; otherwise there are no states. If ``var_names=`` leaves variables of the model out of
    the draws, `pymc.sample` keeps no states; `sample_chains` and `resume` do, unless an interrupt
    leaves chains of different lengths (resume from a checkpoint then).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(
    ...         5, tune=10, chains=2, cores=1, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False)
    >>> more = pmt.resume(
    ...     idata, model, draws=3, cores=1, progressbar=False, compute_convergence_checks=False)
    >>> dict(more.posterior["mu"].sizes)
    {'chain': 2, 'draw': 8, 'mu_dim_0': 30}
    """
    model = pm.modelcontext(model)
    draws = check_number("draws", draws, 1)
    check_cores(cores)
    for name, why in RESERVED.items():
        if name in options:
            raise TypeError(f"resume takes no {name}=, which {why}: leave it out.")
    check_options("resume", options)
    if isinstance(idata, xr.DataTree) and idata.attrs.get(LEFT_OUT):
        raise ValueError(
            "idata: its training rows were left out (training_data=False of save), and with them "
            "the states of the chains. Resume from a file that has them, or start anew from its "
            "trees with pymc_trees.update."
        )
    if not isinstance(idata, xr.DataTree) or GROUP not in idata.children:
        raise ValueError(
            "idata: the states of the step methods are missing from these draws, so the chains "
            "cannot be resumed. pymc.sample, sample_chains and resume keep them for models with "
            "trees, unless var_names= was given to pymc.sample, or an interrupted process did "
            "not respond. sample_dcc, sample_sharded and sample_tree_smc cannot be resumed."
        )
    if not idata[GROUP].children:
        raise ValueError(f"idata: its chains cannot be resumed. {idata[GROUP].attrs[REASON]}")
    check_data(idata, model)
    idata = with_its_states(idata)
    checks = options.pop("compute_convergence_checks", True)
    chains, tune = len(idata[GROUP].children), longest_tuning(idata)

    def read_stopped(step):
        stopped = read_states(idata, step)
        check_trees(stopped, model)
        ahead = max(len(chain.ahead) for chain in stopped) - tune
        if ahead > draws:
            raise ValueError(
                f"draws={draws}: a chain was {ahead} draws ahead of the others when the run was "
                "interrupted; give at least that many."
            )
        return stopped

    def merged(new):
        return _merge_draws(idata, new)

    file = check_checkpoint(checkpoint, every, draws + tune, merged)
    if file is not None:
        idata = idata.compute()  # before its file may be replaced
    _log.info(f"Resuming {chains} chains for {tune + draws} iterations.")
    runner = Runner(cores, progressbar, file, read_stopped)
    new = runner.sample(
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=0,
        model=model,
        compute_convergence_checks=False,
        **{"quiet": True} | options,
    )
    result = runner.finish(merged(new))
    if checks and "posterior" in result.children:
        log_warnings(run_convergence_checks(result, model))
    return result


def _merge_draws(old: xr.DataTree, new: xr.DataTree) -> xr.DataTree:
    """Append new draws to old ones in all groups that have both; keep the new states.

    Chains without new draws, which an error ended, are left out.
    """
    numbers = numbers_of_chains(old)
    recorded = numbers_of_chains(new) or list(range(len(numbers)))
    labels = labels_of_draws(old)
    chain = (np.array(numbers) if labels is None else labels[0])[recorded]
    groups = {}
    for name, node in old.children.items():
        if name == GROUP:
            continue
        first = node.to_dataset()
        has_draws = "draw" in first.dims
        if has_draws and name not in new.children and not name.startswith("warmup_"):
            continue
        if "chain" in first.dims:
            first = first.isel(chain=recorded)
        if not has_draws or name not in new.children:
            groups[name] = xr.DataTree(first)
            continue
        second, start = new[name].to_dataset(), int(first["draw"][-1]) + 1
        second = second.assign_coords(chain=chain, draw=range(start, start + second.sizes["draw"]))
        shared = [variable for variable in first.data_vars if variable in second.data_vars]
        merged = xr.concat(
            [first[shared], second[shared]], "draw", join="override", combine_attrs="override"
        )
        groups[name] = xr.DataTree(merged)
    for name, node in new.children.items():
        if name not in old.children:  # the old run was still tuning
            first = node.to_dataset()
            groups[name] = xr.DataTree(
                first.assign_coords(chain=chain) if "chain" in first.dims else first
            )
    result = xr.DataTree.from_dict(groups)
    result.attrs.update(old.attrs or new.attrs)
    states = {f"chain_{chain[j]}": new[GROUP][f"chain_{k}"] for j, k in enumerate(recorded)}
    result[GROUP] = xr.DataTree.from_dict(states) if new[GROUP].children else new[GROUP].copy()
    if new[GROUP].children:
        note_ends(result, chain.tolist())
    return result
