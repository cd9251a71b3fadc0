"""Whether draws hold the forests of a model."""

import numpy as np
import pymc as pm

from pymc_trees.core.forest.seal import is_sealed
from pymc_trees.core.soft.encode import n_fields
from pymc_trees.distributions.forest_rv import is_forest
from pymc_trees.distributions.soft_tree_rv import is_soft_tree, stamp_of


def check_draws(idata, model: pm.Model | None = None) -> None:
    """Raise an error when draws cannot predict with the forests of a model.

    Without a forest among the draws, `pymc.sample_posterior_predictive` would draw new trees from
    the *prior* with no more than an INFO line.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file; its ``posterior`` is checked.
    model : pymc.Model, optional
        Default: the model on the context stack.

    Raises
    ------
    ValueError
        When a forest is missing from the draws, has another shape, or was altered.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=3)
    ...     prior = pm.sample_prior_predictive(5, random_seed=1)
    >>> draws = prior.copy()
    >>> draws["posterior"] = prior["prior"].copy()
    >>> pmt.check_draws(draws, model)
    """
    model = pm.modelcontext(model)
    children = getattr(idata, "children", None)
    if children is None:
        raise TypeError("idata must be the result of pm.sample() or of xarray.open_datatree().")
    posterior = idata["posterior"] if "posterior" in children else None
    if posterior is None:
        raise ValueError("idata has no posterior group: pass the result of pm.sample().")
    for rv in model.free_RVs:
        if not is_forest(rv) and not is_soft_tree(rv):
            continue
        if rv.name not in posterior:
            raise ValueError(
                f"idata lacks {rv.name}: predictions would use trees drawn from the prior. Keep it "
                f"among var_names of pm.sample (and in the file you saved)."
            )
        draws = posterior[rv.name].values
        if is_soft_tree(rv):
            _check_soft_tree(rv, draws)
            continue
        layout = rv.owner.op.layout
        if draws.shape[2:] != layout.shape:
            raise ValueError(
                f"{rv.name} has shape {draws.shape[2:]} in idata, but {layout.shape} in the model: "
                "the draws belong to another model (other rows, m, max_nodes or cache_fit)."
            )
        fingerprint = float(rv.owner.inputs[5].data)
        for chain, draw in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[chain, draw], dtype=np.float64)
            if not is_sealed(value, layout.max_nodes, fingerprint):
                raise ValueError(
                    f"{rv.name}, chain {chain}, draw {draw}, is not a forest of this model: the "
                    "draws were altered (for example saved as float32), or the model was declared "
                    "with other training inputs. Declare it with the training X, then pm.set_data "
                    "the new one."
                )


def _check_soft_tree(rv, draws) -> None:
    op = rv.owner.op
    shape = (op.max_nodes, n_fields(op.p, op.n_values))
    if draws.shape[2:] != shape or not (draws[..., 0, -1] == stamp_of(rv)).all():
        raise ValueError(
            f"{rv.name}: the draws are not soft trees of this model: they were altered (for "
            "example saved as float32), or the model was declared with other training inputs, h or "
            "leaf. Declare it with the training X, then pm.set_data the new one."
        )
