"""`SoftBART`: a sum of soft trees inside a PyMC model."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import Continuous
from pytensor.graph.basic import Variable

from pymc_trees.core.soft_forest.encode import SoftLayout
from pymc_trees.core.soft_forest.trees import make_unit_map
from pymc_trees.core.value.fields import fingerprint
from pymc_trees.distributions.capacity import check_m, soft_max_nodes, with_capacity
from pymc_trees.distributions.data.named import register, rows_dim, unnamed
from pymc_trees.distributions.data.numbers import as_tensor, is_number
from pymc_trees.distributions.data.schema import column_index, listed_columns
from pymc_trees.distributions.data.table import Table, keep_schema, read
from pymc_trees.distributions.data.variables import all_or_nothing, check_new, registered
from pymc_trees.distributions.leaves.contract import check_leaf
from pymc_trees.distributions.leaves.default import default_leaf
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.distributions.ops.soft_forest_rv import SoftForestRV, evaluate_soft
from pymc_trees.distributions.tree_priors.contract import check_depth_prior
from pymc_trees.distributions.tree_priors.read import read_split_prior
from pymc_trees.predictors.columns import Schema

# --------------------------- Settings that soft trees alone have, checked before anything is built


def check_bandwidth(bandwidth) -> float:
    """Prior mean of the bandwidths."""
    if isinstance(bandwidth, Variable):
        raise TypeError(
            "bandwidth must be a number, the prior mean of the bandwidths of the trees: each tree "
            "has a random bandwidth of its own."
        )
    if not is_number(bandwidth) or not 1e-6 <= bandwidth <= 1e6:
        raise ValueError(
            f"bandwidth={bandwidth!r}: must be a number from 1e-6 to 1e6, the prior mean of the "
            "bandwidths in units of columns mapped to [0, 1]; 0.1 by default."
        )
    return float(bandwidth)


def check_hard(hard, schema: Schema) -> np.ndarray:
    """(p,) bool: columns whose gates are steps."""
    labels = schema.labels
    is_hard = np.zeros(len(labels), dtype=np.bool_)
    for column in [] if hard is None else listed_columns(hard):
        index = column_index(column, labels)
        if index is None:
            raise ValueError(
                f"hard holds {column!r}, which is not a column of X: choose from {labels}."
            )
        is_hard[index] = True
    return is_hard


# --------------------------------------------------------------------------------------------------


class SoftForest(Continuous):
    """The random variable behind `SoftBART`; its arguments are checked there."""

    rv_type = SoftForestRV

    @classmethod
    def dist(cls, table: Table, hard, bandwidth, depth, split_prior, leaf, layout, **kwargs):
        """Forest of soft trees that is not registered in a model."""
        X = table.values
        weights, stamp = read_split_prior(split_prior, table.schema.labels)
        _, forest = SoftForestRV(layout=layout)(
            pt.constant(X),
            *(pt.constant(v) for v in make_unit_map(X)),
            pt.constant(hard),
            pt.constant(fingerprint(X, hard, stamp, layout.stamp), dtype="float64"),
            pt.constant(bandwidth, dtype="float64"),
            *(as_tensor(v) for v in depth),
            weights,
            *(as_tensor(v) for v in leaf.parameters),
            rng=pt.random.shared_rng(seed=None),
            return_next_rng=True,
        )
        keep_schema(forest, table.schema)
        return forest


def SoftBART(
    name,
    X,
    Y=None,
    m=50,
    alpha=0.95,
    beta=2.0,
    *,
    bandwidth=0.1,
    hard=None,
    leaf=None,
    split_prior=None,
    dims=None,
    max_nodes=None,
):
    """Sum of soft regression trees: BART for smooth functions.

    Registers the free random variable ``{name}_forest``, whose value is the encoded trees, the
    Dirichlet variable ``{name}_split_weights`` unless ``split_prior`` is given or X has one column,
    the half-Cauchy variable ``{name}_leaf_sd`` unless ``leaf`` is given, and the Deterministic
    ``name``, the sum of the trees at ``X``. An array or frame ``X`` becomes the model data
    ``{name}_X``. Give the observed variable ``shape=mu.shape``: otherwise PyMC keeps the training
    length when you predict another number of rows.

    Parameters
    ----------
    name : str
        Name of the function.
    X : (n, p) array, frame, `pymc.Data`, `pymc.dims.Data` or `pymc_trees.Data`
        Inputs: finite numbers. Each column is mapped to [0, 1] by its training rows.
    Y : (n,) array, optional
        Only sets the default leaf prior.
    m : int, default 50
        Number of trees. For large tables as well: in equal time more soft trees predict worse.
    alpha, beta : float or scalar random variable
        A node at depth d splits with probability ``alpha * (1 + d)**-beta``; defaults 0.95 and 2
        (Chipman 2010; Linero and Yang 2018, section 3).
    bandwidth : float, default 0.1
        Prior mean of the bandwidth of each tree, in units of the mapped columns; the prior is
        exponential (Linero and Yang 2018, section 3.1). Smaller bandwidths make steeper gates.
    hard : sequence of int or str, optional
        Columns, by index or by name in a frame, on which every split is a step, as in `BART`.
        Default: none.
    leaf : NormalLeaf, optional
        Prior of the leaf values; needed when Y is None. Default: the mean of `BART`'s, and a
        half-Cauchy sd with `BART`'s sd as scale, so the overall scale of the trees is learnt from
        the data (Linero and Yang 2018, section 3.1).
    split_prior : (p,) array, dict of column and weight, or vector random variable, optional
        Weights of the columns; 0 excludes a column, except where it is random; ``numpy.ones(p)``
        gives equal weights. Default: Dirichlet with the concentration ``1 / p`` for each column,
        which favours few columns (Linero 2018, eq. 4, with a = 1, where SoftBart 1.0.3 starts; its
        prior of a is not part of this default).
    dims : str, optional
        Named dimension of the rows.
    max_nodes : int, optional
        Room for nodes, over all trees. Default: three times the prior mean plus 200, or
        ``3 n**(3/4)`` when that is more (but not n / 2 or 65,536). A forest that does not fit stops
        the run with an error.

    Returns
    -------
    TensorVariable
        Shape (n,): the function at the rows of X.

    Raises
    ------
    ValueError, TypeError
        For an invalid argument; the message names it and says what to give instead.

    Notes
    -----
    At a split of column j at cut c a row goes left with weight ``1 / (1 + exp(-(c - u_j) / tau))``
    and right with the remaining weight; u are the mapped columns, tau is the bandwidth of the tree.
    The weight of a leaf is the product of the weights along its path, and the output of a tree is
    the weighted sum of its leaf values (eq. 3). Every node may split, whatever its rows. The column
    is drawn from all columns with the split weights, and the cut uniformly between the bounds set
    by the splits above it.

    A column is mapped by its empirical distribution function, with ties at the middle of their
    step, so that the smallest training value is 0 and the largest 1. The map is linear between two
    values and constant beyond the extremes, so f is constant beyond the training rows. It uses the
    fewest quantiles that stay within ``1.36 / sqrt(n)`` of the empirical function, which is within
    sampling error: a column that may well be uniform is only shifted and scaled. A side that would
    get less than 1e-15 of a row's weight gets none.

    Only one output, a `NormalLeaf` and numeric columns are supported: for several outputs declare
    one `SoftBART` for each.

    References
    ----------
    Linero and Yang (2018). Bayesian regression tree ensembles that adapt to smoothness and
    sparsity. Journal of the Royal Statistical Society B 80(5), 1087-1110.
    Linero (2018). Bayesian regression trees for high-dimensional prediction and variable selection.
    Journal of the American Statistical Association 113(522), 626-636.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((50, 2))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=50)
    >>> with pm.Model() as model:
    ...     mu = pmt.SoftBART("mu", X, y, m=10)
    ...     sigma = pm.HalfNormal("sigma", 1)
    ...     obs = pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    >>> [v.name for v in model.free_RVs]
    ['mu_leaf_sd', 'mu_split_weights', 'mu_forest', 'sigma']
    """
    model = pm.modelcontext(None)
    check_new(model, name)
    with all_or_nothing(model):
        leaf, split_prior, alpha, beta = map(unnamed, (leaf, split_prior, alpha, beta))
        table = read(X).complete()
        table.check_training()
        rows, (n, p) = rows_dim(table.dims, dims), table.values.shape
        m = check_m(m)
        depth = check_depth_prior(alpha, beta)
        bandwidth = check_bandwidth(bandwidth)
        hard = check_hard(hard, table.schema)
        leaf = check_leaf(_default_leaf(f"{name}_leaf_sd", Y, n, m) if leaf is None else leaf)
        if type(leaf) is not NormalLeaf:
            raise TypeError(f"leaf={leaf!r}: SoftBART needs a NormalLeaf.")
        layout = with_capacity(SoftLayout(m, 0, n), max_nodes, lambda: soft_max_nodes(m, n, *depth))
        table = registered(f"{name}_X", table)
        if split_prior is None:
            split_prior = _dirichlet(f"{name}_split_weights", p)
        forest = SoftForest(
            f"{name}_forest", table, hard, bandwidth, depth, split_prior, leaf, layout
        )
        return register(name, evaluate_soft(forest, table.variable), dims, rows, model)


def _default_leaf(name: str, Y, n: int, m: int) -> NormalLeaf:
    """The leaf of `BART`, with a scale to be learnt."""
    leaf = default_leaf(Y, n, m)
    return NormalLeaf(leaf.mean, pm.HalfCauchy(name, leaf.sd))


def _dirichlet(name: str, p: int):
    """Split weights by default."""
    return np.ones(1) if p == 1 else pm.Dirichlet(name, np.full(p, 1.0 / p))
