"""`resume`: continue chains where they stopped."""

import logging
from collections.abc import Sequence

import numpy as np
import pymc as pm
import pymc.backends.arviz as backend
import xarray as xr
from pymc.stats.convergence import log_warnings, run_convergence_checks

from pymc_trees.arguments import check_number
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.inference.chains.checkpoint import check_checkpoint
from pymc_trees.inference.chains.runner import Runner
from pymc_trees.inference.chains.sample_chains import check_cores, check_options
from pymc_trees.inference.chains.states import (
    GROUP,
    WHY,
    Left,
    longest_tuning,
    numbers_of_chains,
    read_states,
)

# --------------------------------------------------------------------------------------------------
# Whether a model is the one that chains were drawn from, by its data and the trees it can read.


def check_data(idata: xr.DataTree, model: pm.Model) -> None:
    """Refuse a model whose data are not those stored with the draws."""
    now = {
        "observed_data": backend.find_observations(model),
        "constant_data": backend.find_constants(model),
    }
    changed = [
        name
        for group, found in now.items()
        for name, value in found.items()
        if group in idata.children
        and name in idata[group].data_vars
        and not _are_equal(value, idata[group][name].to_numpy())
    ]
    if changed:
        raise ValueError(
            f"idata: its chains were drawn with other data: {changed} of the model differ. Set the "
            "data back with pm.set_data, or sample the new model from the beginning."
        )


def _are_equal(found, stored: np.ndarray) -> bool:
    found = np.asarray(found)
    if found.shape != stored.shape:
        return False
    has_nan = found.dtype.kind in "fc" and stored.dtype.kind in "fc"
    return np.array_equal(found, stored, equal_nan=has_nan)


def check_trees(left: Sequence[Left], model: pm.Model) -> None:
    """Refuse a model whose trees are declared otherwise than those that chains stopped with."""
    for tree in tree_variables(model):
        name = model.rvs_to_values[tree.rv].name
        values = [np.asarray(one.point[name]) for one in left]
        if not all(v.shape == tree.shape and tree.is_intact(v) for v in values):
            raise ValueError(
                f"idata: its chains stopped at trees of another declaration than {tree.name}: with "
                "other inputs, leaves or sizes. Declare the model as it was, or sample the new one "
                "from the beginning."
            )


# --------------------------------------------------------------------------------------------------


_log = logging.getLogger("pymc.sampling.mcmc")

RESERVED = {
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
    """Continue the chains of a run where they stopped.

    The draws are bit for bit those of a longer run. The states of all step methods, including tuned
    parameters and random generators, are stored with the draws of every model with trees, in the
    group ``sampling_state``, which `save` writes to the file.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, `sample_chains` or `resume` for this model; or a file of such a
        result, or a checkpoint, read by ``xarray.open_datatree``.
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
        other data or trees.
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
    if not isinstance(idata, xr.DataTree) or GROUP not in idata.children:
        raise ValueError(
            "idata: the states of the step methods are missing from these draws, so the chains "
            "cannot be resumed. pymc.sample, sample_chains and resume keep them for models with "
            "trees, unless var_names= was given to pymc.sample, or an interrupted process did "
            "not respond. sample_dcc, sample_sharded and sample_tree_smc cannot be resumed."
        )
    if not idata[GROUP].children:
        raise ValueError(f"idata: its chains cannot be resumed. {idata[GROUP].attrs[WHY]}")
    check_data(idata, model)
    checks = options.pop("compute_convergence_checks", True)
    chains, tune = len(idata[GROUP].children), longest_tuning(idata)

    def goes_on(step):
        left = read_states(idata, step)
        check_trees(left, model)
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
