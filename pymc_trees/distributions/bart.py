"""`BART` and `DecisionTree`: Bayesian regression trees inside a PyMC model."""

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_trees.distributions.capacity import check_m, default_size
from pymc_trees.distributions.data.named import rows_dim, unnamed
from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.data.random_columns import read_columns, registered_columns
from pymc_trees.distributions.data.table import Columns, read
from pymc_trees.distributions.data.variables import all_or_nothing, check_new
from pymc_trees.distributions.forest import Forest
from pymc_trees.distributions.leaves.contract import LeafPrior, check_outputs
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


def declare(name, X, Y, leaf, outputs: Outputs, *, m, beta, split_rules, **settings):
    """Register the forests of a front-end and the function they stand for.

    The way is the same for all: a table of the inputs, the prior of leaves and trees over its rows,
    the random variables, their function at the inputs.
    """
    model = pm.modelcontext(None)
    check_new(model, name)
    with all_or_nothing(model):
        read_inputs = read_columns if isinstance(X, Columns) else read
        table = read_inputs(X, split_rules)
        rows, n = rows_dim(table.dims, outputs.dims), len(table)
        m, beta = default_size(m, beta, n, name, settings["tree_prior"])
        leaf, shape = unnamed(leaf), outputs.shape
        if shape is None and not getattr(leaf, "rows_first", False):
            shape = shape_of_dims(outputs.dims, n, model)
        n_outputs = check_shape(shape, n)
        leaf = default_leaf(Y, n, check_m(m), n_outputs=n_outputs or 1) if leaf is None else leaf
        leaf = with_response(leaf, outputs.response)
        leaf = with_monotone(leaf, outputs.monotone)
        leaves = _leaf_of_each(leaf, n_outputs, outputs.separate_trees)
        table = registered_columns(f"{name}_X", table)
        forests = [
            Forest(f"{name}{suffix}_forest", table, m=m, beta=beta, leaf=leaf, **settings)
            for suffix, leaf in leaves.items()
        ]
        functions = [evaluate(forest, table.variable) for forest in forests]
        function = functions[0] if "" in leaves else pt.stack(functions)
        return leaf.registered(name, function, outputs.dims, rows, model)


def shape_of_dims(dims, n: int, model: pm.Model) -> tuple[int, int] | None:
    """``(K, n)`` when dims name outputs and rows, K being the length of the first; else None."""
    if dims is None or isinstance(dims, str) or len(dims) != 2:
        return None
    length = model.dim_lengths.get(dims[0])
    if length is None:
        raise ValueError(
            f"dims={tuple(dims)}: the model has no dimension {dims[0]!r}, whose length is the "
            f"number of outputs. Give pm.Model(coords={{{dims[0]!r}: ...}}), or shape=(K, {n})."
        )
    return int(length.eval()), n


def check_shape(shape, n: int) -> int | None:
    """Number of outputs of ``shape=(K, n)``; None without a shape or for ``(n,)``."""
    if shape is None:
        return None
    sizes = tuple(shape) if isinstance(shape, tuple | list | np.ndarray) else (shape,)
    if not all(is_number(s) and isinstance(s, int | np.integer) for s in sizes):
        raise TypeError(f"shape={shape!r}: must be None or whole numbers (K, n).")
    sizes = tuple(int(s) for s in sizes)
    if sizes == (n,):
        return None
    if len(sizes) != 2 or sizes[1] != n or sizes[0] < 1:
        raise ValueError(
            f"shape={sizes}: must be (K, n) for K outputs and the n={n} rows of X; leave it out "
            "for one output."
        )
    return sizes[0]


def _leaf_of_each(leaf, n_outputs: int | None, separate_trees: bool) -> dict[str, LeafPrior]:
    """Leaf prior of each forest, by the suffix of the forest's name."""
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
    m=None,
    alpha=0.95,
    beta=None,
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
    X : (n, p) array, frame, `pymc.Data`, `pymc.dims.Data`, `pymc_trees.Data` or `with_columns`
        Inputs: numbers, and in frames also text, categories and bools; see `Data`. NaN, None and NA
        are missing cells. The values at declaration define the prior. Columns that are random
        variables: `with_columns`.
    Y : (n,) or (n, K) array, optional
        Only sets the default leaf prior: mean ``(max + min) / (2m)`` and standard deviation
        ``(max - min) / (4 sqrt(m))``; when Y holds only 0 and 1, mean 0 and standard deviation
        ``3 / (2 sqrt(m))`` (Chipman 2010, k = 2). The same applies, with a warning, to K outputs
        when Y holds class codes 0, .., K - 1. A column for each of K outputs sets that of each.
    m : int, optional
        Number of trees. Default: 50, and from 5,000 rows on 200, which a log line says.
    alpha, beta : float or scalar random variable
        A node at depth d splits with probability ``alpha * (1 + d)**-beta``; defaults 0.95 and 2
        (Chipman 2010), beta from 5,000 rows on 1, which a log line says. See Notes.
    leaf : NormalLeaf, LinearLeaf or BasisLeaf, optional
        Prior of the leaf values; needed when Y is None.
    tree_prior : MondrianPrior, optional
        Prior of each tree. Default: that of alpha and beta.
    split_prior : (p,) array, dict of column and weight, or vector random variable, optional
        Weights of the columns. 0 excludes a column, except where it is random. Weights in model
        data can be set anew, but not which of them are 0. Default: equal, and 1 for a column that
        a dict does not name.
    split_rules : str, sequence of p str, or dict of column name and str, optional
        How columns are split: "continuous" by cuts, "subset" by sets of levels, "onehot" by one
        level against the rest; at most 50 levels. Default: "subset" for text and categories,
        "continuous" for everything else. `Forest` states the prior of each rule, and of missing
        cells.
    n_cuts : int, optional
        Restrict cuts to a grid of at most this many quantiles per column. Default: no grid, or 99
        if columns are random.
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
    The more rows a table has, the fewer splits the data leave free, and a chain of few shallow
    trees stays in the tiling of the inputs that it has found: intervals of one chain become too
    narrow. More and deeper trees have more free splits. The prior standard deviation of the
    function does not depend on m.

    With ``monotone`` every tree is monotone in those columns with all other columns held fixed,
    everywhere in the input space, also beyond the data (a missing cell is compared with missing
    cells only). The exception are missing cells of new rows where X has neither missing cells nor
    levels: a coin of each split of their column says where they go, and along another column the
    function may fall there. The prior of a tree and its leaf values is the usual one conditioned on
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


def DecisionTree(
    name,
    X,
    Y=None,
    alpha=0.95,
    beta=1.0,
    *,
    leaf=None,
    tree_prior=None,
    split_prior=None,
    split_rules=None,
    n_cuts=None,
    shape=None,
    dims=None,
    response="constant",
    monotone=None,
    max_nodes=None,
):
    """One Bayesian decision tree, for regression or classification.

    Parameters
    ----------
    name : str
        Name of the function; the trees are ``{name}_forest``.
    X : (n, p) array, frame, `pymc.Data`, `pymc.dims.Data` or `pymc_trees.Data`
        Inputs, as for `BART`.
    Y : (n,) array, optional
        Only sets the default leaf prior, a `NormalLeaf`, as in `BART` with m = 1.
    alpha, beta : float or scalar random variable
        A node at depth d splits with probability ``alpha * (1 + d)**-beta``; defaults 0.95 and 1.
    leaf : NormalLeaf, NormalGammaLeaf, DirichletLeaf, LinearLeaf or BasisLeaf, optional
        Prior of the leaf values; needed when Y is None.
    shape : tuple (K, n), optional
        K outputs of the one tree, with a `NormalLeaf`.
    tree_prior : MondrianPrior, optional
        Prior of the tree. Default: that of alpha and beta.
    split_prior, split_rules, n_cuts, dims, response, monotone, max_nodes
        See `BART`.

    Returns
    -------
    TensorVariable or tuple of two
        `NormalLeaf`: the mean, shape (n,). `NormalGammaLeaf`: mean and precision, both (n,),
        Deterministics ``name`` and ``{name}_tau``. `DirichletLeaf`: probabilities, shape
        (n, n_classes).

    Raises
    ------
    ValueError, TypeError, NotImplementedError
        For an invalid argument; the message names it and says what to give instead.

    References
    ----------
    Chipman, George and McCulloch (1998). Bayesian CART model search. Journal of the American
    Statistical Association 93, 935-948.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model() as model:
    ...     p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(alpha=2.0, n_classes=2))
    ...     y = pm.Categorical("y", p=p, observed=[0, 0, 1, 1])
    >>> p.ndim
    2
    """
    return declare(
        name,
        X,
        Y,
        leaf,
        Outputs(shape, dims, separate_trees=False, response=response, monotone=monotone),
        m=1,
        alpha=alpha,
        beta=beta,
        tree_prior=tree_prior,
        split_prior=split_prior,
        split_rules=split_rules,
        n_cuts=n_cuts,
        max_nodes=max_nodes,
    )
