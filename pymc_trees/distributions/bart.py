"""`BART`: Bayesian additive regression trees inside a PyMC model."""

from typing import Any, NamedTuple

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.named import rows_dim, unnamed
from pymc_trees.distributions.data.variables import all_or_nothing, register_inputs, training_inputs
from pymc_trees.distributions.declaration import (
    check_m,
    check_outputs,
    check_shape,
    shape_of_dims,
)
from pymc_trees.distributions.forest import Forest
from pymc_trees.distributions.leaves.contract import LeafPrior
from pymc_trees.distributions.leaves.default import default_leaf, with_response
from pymc_trees.distributions.leaves.monotone import with_monotone
from pymc_trees.distributions.ops.evaluation import evaluate


class Outputs(NamedTuple):
    """What a front-end makes of its forests."""

    shape: Any
    dims: Any
    separate_trees: bool
    response: str
    monotone: Any


def declare(name, X, Y, leaf, outputs: Outputs, *, m, **settings):
    """Register the forests of a front-end and the function they stand for."""
    model = pm.modelcontext(None)
    with all_or_nothing(model):
        rows = rows_dim(X, outputs.dims)
        X, leaf, settings = unnamed(X), unnamed(leaf), {k: unnamed(v) for k, v in settings.items()}
        inputs = training_inputs(X, settings["split_rules"])
        n = len(inputs.values)
        shape = outputs.shape
        if shape is None and not getattr(leaf, "rows_first", False):
            shape = shape_of_dims(outputs.dims, n, model)
        n_outputs = check_shape(shape, n)
        leaf = default_leaf(Y, n, check_m(m), n_outputs=n_outputs or 1) if leaf is None else leaf
        leaf = with_response(leaf, outputs.response, n_outputs)
        leaf = with_monotone(leaf, outputs.monotone)
        leaves = _leaf_of_each(leaf, n_outputs, outputs.separate_trees)
        if not isinstance(X, Variable):
            X, inputs = register_inputs(f"{name}_X", inputs)
        forests = [
            Forest(f"{name}{part}_forest", inputs, m=m, leaf=leaf, **settings)
            for part, leaf in leaves.items()
        ]
        functions = [evaluate(forest, X) for forest in forests]
        whole = functions[0] if "" in leaves else pt.stack(functions)
        return leaf.registered(name, whole, outputs.dims, rows, model)


def _leaf_of_each(leaf, n_outputs: int | None, separate_trees: bool) -> dict[str, LeafPrior]:
    """Leaf prior of each forest, by what its name has between those of the function and itself."""
    if n_outputs is None:
        return {"": leaf}
    check_outputs(leaf, n_outputs)
    if separate_trees:
        return {f"_{k}": leaf.of_output(k) for k in range(n_outputs)}
    return {"": leaf.of_outputs(n_outputs)}


def BART(
    name,
    X,
    Y=None,
    m=50,
    alpha=0.95,
    beta=2.0,
    *,
    leaf=None,
    tree_prior=None,
    split_prior=None,
    split_rules=None,
    n_cuts=None,
    shape=None,
    dims=None,
    separate_trees=True,
    response="constant",
    monotone=None,
    max_nodes=None,
):
    """Sum of Bayesian regression trees.

    Registers the free random variable ``{name}_forest``, whose value is the encoded trees, and the
    Deterministic ``name``, the sum of the trees at ``X``. An array or frame ``X`` becomes the model
    data ``{name}_X``. Give the observed variable ``shape=mu.shape``: otherwise PyMC keeps the
    training length when you predict another number of rows.

    Parameters
    ----------
    name : str
        Name of the function.
    X : (n, p) array, frame, `pymc.Data`, `pymc.dims.Data` or `pymc_trees.Data`
        Inputs: numbers, and in frames also text, categories and bools; see `Data`. NaN, None and NA
        are missing cells. The values at declaration define the prior.
    Y : (n,) array, optional
        Only sets the default leaf prior: mean ``(max + min) / (2m)`` and standard deviation
        ``(max - min) / (4 sqrt(m))``; when Y holds only 0 and 1, mean 0 and standard deviation
        ``3 / (2 sqrt(m))`` (Chipman 2010, k = 2). The same applies, with a warning, to K outputs
        when Y holds class codes 0, .., K - 1.
    m : int, default 50
        Number of trees.
    alpha, beta : float or scalar random variable
        A node at depth d splits with probability ``alpha * (1 + d)**-beta``; defaults 0.95 and 2
        (Chipman 2010).
    leaf : NormalLeaf, LinearLeaf or BasisLeaf, optional
        Prior of the leaf values; needed when Y is None.
    tree_prior : MondrianPrior, optional
        Prior of each tree. Default: that of alpha and beta.
    split_prior : (p,) array, dict of column and weight, or vector random variable, optional
        Weights of the columns. 0 excludes a column, except where it is random. Default: equal, and
        1 for a column that a dict does not name.
    split_rules : str, sequence of p str, or dict of column name and str, optional
        How columns are split: "continuous" by cuts, "subset" by sets of levels, "onehot" by one
        level against the rest; at most 50 levels. Default: "subset" for text and categories,
        "continuous" for everything else. `Forest` states the prior of each rule, and of missing
        cells.
    n_cuts : int, optional
        Restrict cuts to a grid of at most this many quantiles per column. Default: no grid.
    shape : tuple (K, n), optional
        K outputs for the n training rows. Default: one output, of shape (n,), unless ``dims`` names
        two dimensions.
    dims : str or sequence of str, optional
        Names of the dimensions of the function: the rows, or outputs and rows. With two names, K is
        the length of the first in the model's coords.
    separate_trees : bool, default True
        With several outputs, whether each output has its own m trees: forests ``{name}_0_forest``,
        ``{name}_1_forest`` and so on. Otherwise all outputs share the m trees of ``{name}_forest``,
        whose leaves hold K values.
    response : {"constant", "linear", "mix"}, default "constant"
        Form of the leaves. "linear": a `LinearLeaf` with slopes in the column of the parent's rule,
        whose standard deviation is that of the leaf values. "mix": each leaf below a split is such
        a line or constant, with probability 1/2 each.
    monotone : dict, optional
        Direction by column name or number: 1 for a function that does not decrease in the column,
        -1 for one that does not increase. Needs a `NormalLeaf` and numeric columns. See Notes.
    max_nodes
        See `Forest`.

    Returns
    -------
    TensorVariable
        Shape (n,), or (K, n) for several outputs: the function at the rows of X. Where the
        dimensions of X have names (`pymc.dims`), an XTensorVariable, with the name of the rows.

    Raises
    ------
    ValueError, TypeError, NotImplementedError
        For an invalid argument; the message names it and says what to give instead.

    Notes
    -----
    With ``monotone`` every tree is monotone in those columns with all other columns held fixed,
    everywhere in the input space, also beyond the data (a missing cell is compared with missing
    cells only). The prior of a tree and its leaf values is the usual one conditioned on
    monotonicity: ``p(T, mu) = p0(T) p0(mu | T) 1[monotone] / c``. Trees with more splits in those
    columns are therefore rarer than without the constraint, since fewer of their leaf values are in
    order, and leaf values are not normal: low leaves are shifted down and high ones up. c does not
    depend on mean and sd of the leaf, which may be random variables; it depends on alpha, beta and
    the split weights, which must be numbers. The sum is monotone because each tree is, which is a
    stronger condition than monotonicity of the sum.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1), 266-298.
    Chipman, George, McCulloch and Shively (2022). mBART: Multidimensional monotone BART. Bayesian
    Analysis 17(2), 515-544.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((50, 2))
    >>> y = 5 * (X[:, 0] > 0.5) + rng.normal(size=50)
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, y, m=20)
    ...     sigma = pm.HalfNormal("sigma", 1)
    ...     obs = pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    >>> [v.name for v in model.free_RVs]
    ['mu_forest', 'sigma']
    """
    return declare(
        name,
        X,
        Y,
        leaf,
        Outputs(shape, dims, separate_trees, response, monotone),
        m=m,
        alpha=alpha,
        beta=beta,
        tree_prior=tree_prior,
        split_prior=split_prior,
        split_rules=split_rules,
        n_cuts=n_cuts,
        max_nodes=max_nodes,
    )
