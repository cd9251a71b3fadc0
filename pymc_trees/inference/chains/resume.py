"""`resume`: chains go on where they stopped."""

import logging

import numpy as np
import pymc as pm
import xarray as xr
from pymc.stats.convergence import log_warnings, run_convergence_checks

from pymc_trees.arguments import check_number
from pymc_trees.inference.chains.checkpoint import check_checkpoint
from pymc_trees.inference.chains.left import (
    WHY,
    longest_tuning,
    numbers_of_chains,
    read_states,
)
from pymc_trees.inference.chains.runner import Runner
from pymc_trees.inference.chains.sample_chains import check_cores, check_options
from pymc_trees.inference.chains.states import GROUP

_log = logging.getLogger("pymc.sampling.mcmc")

OURS = {
    "chains": "are those of the draws",
    "tune": "is over when chains go on",
    "random_seed": "is in the states of the chains",
    "initvals": "are where the chains stopped",
}
"""Arguments of `pymc.sample` that the draws decide."""


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
    """Let the chains of a run go on where they stopped.

    The draws are those that the run would have made had it been longer, bit for bit: the states of
    all step methods, with what they learnt in tuning and their generators, are kept with the draws
    of every model with trees, in the group ``sampling_state``, and by `save` in the file.

    Parameters
    ----------
    idata : xarray.DataTree
        What `pymc.sample`, `sample_chains` or `resume` returned for this model, or a file of it, or
        a checkpoint, read by ``xarray.open_datatree``.
    model : pymc.Model, optional
        Default: the model on the context stack. As it was, with the same data.
    draws : int, default 1000
        Draws of each chain that are added. A run that was stopped while it tuned tunes first for as
        long as it was to.
    cores : int, default -1
        Chains at once, as joblib's ``n_jobs``: -1 for as many as there are cores or workers.
    progressbar : bool, default True
        Whether to show how much of the chains has been drawn.
    checkpoint, every : optional
        As for `sample_chains`; the file holds old and new draws. It may be the one that ``idata``
        was read from, where the operating system lets a file be replaced that is open (Windows does
        not).
    **options
        Other arguments of `pymc.sample`, as the run had them: ``step``, ``target_accept`` and such.

    Returns
    -------
    xarray.DataTree
        Old and new draws together, which can go on again. Groups made from the old draws alone
        (predictions, log likelihoods) are left out; ``idata`` itself is unchanged.

    Raises
    ------
    ValueError
        There are no states with the draws, or they are of other steps or options.
    TypeError
        An argument that `pymc.sample` lacks, or that the draws decide.

    Notes
    -----
    An interrupted run of `pymc.sample` or of `sample_chains` goes on as well. Where it was
    interrupted before any chain had tuned, the result holds the states alone, of those chains that
    had begun. Processes of `pymc.sample` have five seconds for the iterations that they are in, or
    there are no states. Where ``var_names=`` left variables of the model out of the draws,
    `sample_chains` and `resume` keep states, unless an interrupt left chains of different lengths
    (a checkpoint goes on then), and `pymc.sample` keeps none.

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
    for name, why in OURS.items():
        if name in options:
            raise TypeError(f"resume takes no {name}=, which {why}: leave it out.")
    check_options("resume", options)
    if not isinstance(idata, xr.DataTree) or GROUP not in idata.children:
        raise ValueError(
            "idata: the states of the step methods are missing from these draws, so the chains "
            "cannot be resumed. pymc.sample, sample_chains and resume keep them for models with "
            "trees, unless var_names= was given to pymc.sample, or an interrupted process did "
            "not respond."
        )
    if not idata[GROUP].children:
        raise ValueError(f"idata: its chains cannot be resumed. {idata[GROUP].attrs[WHY]}")
    checks = options.pop("compute_convergence_checks", True)
    chains, tune = len(idata[GROUP].children), longest_tuning(idata)

    def goes_on(step):
        left = read_states(idata, step)
        ahead = max(len(one.ahead) for one in left) - tune
        if ahead > draws:
            raise ValueError(
                f"draws={draws}: a chain was {ahead} draws ahead of the others when the run was "
                "interrupted; give at least that many."
            )
        return left

    def joined(new):
        return _joined(idata, new)

    file = check_checkpoint(checkpoint, every, draws + tune, joined)
    if file is not None:
        idata = idata.compute()  # once, and before the file that it is in may be replaced
    _log.info(f"Going on with {chains} chains for {tune + draws} iterations.")
    runner = Runner(cores, progressbar, file, goes_on)
    new = runner.sample(
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=0,
        model=model,
        compute_convergence_checks=False,
        **{"quiet": True} | options,
    )
    found = runner.finish(joined(new))
    if checks and "posterior" in found.children:
        log_warnings(run_convergence_checks(found, model))
    return found


def _joined(old: xr.DataTree, new: xr.DataTree) -> xr.DataTree:
    """Old draws and then new ones, in all groups that have both; states are the new ones.

    Chains that the new ones lack, which an error ended, are left out of the old ones.
    """
    numbers = numbers_of_chains(old)
    kept = numbers_of_chains(new) or list(range(len(numbers)))
    known = [node["chain"].to_numpy() for node in old.children.values() if "chain" in node.dims]
    chain = (known[0] if known else np.array(numbers))[kept]
    groups = {}
    for name, node in old.children.items():
        if name == GROUP:
            continue
        first = node.to_dataset()
        if "chain" in first.dims:
            first = first.isel(chain=kept)
        if name not in new.children:
            if name.startswith("warmup_") or "draw" not in first.dims:
                groups[name] = xr.DataTree(first)
            continue
        if "draw" not in first.dims:
            groups[name] = xr.DataTree(first)
            continue
        then, start = new[name].to_dataset(), int(first["draw"][-1]) + 1
        then = then.assign_coords(chain=chain, draw=range(start, start + then.sizes["draw"]))
        shared = [one for one in first.data_vars if one in then.data_vars]
        joined = xr.concat(
            [first[shared], then[shared]], "draw", join="override", combine_attrs="override"
        )
        groups[name] = xr.DataTree(joined)
    for name, node in new.children.items():
        if name not in old.children:  # the old ones were still tuning
            first = node.to_dataset()
            groups[name] = xr.DataTree(
                first.assign_coords(chain=chain) if "chain" in first.dims else first
            )
    found = xr.DataTree.from_dict(groups)
    found.attrs.update(old.attrs or new.attrs)
    states = {f"chain_{chain[j]}": new[GROUP][f"chain_{k}"] for j, k in enumerate(kept)}
    found[GROUP] = xr.DataTree.from_dict(states) if new[GROUP].children else new[GROUP].copy()
    return found
