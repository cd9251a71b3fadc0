"""`Forest`: the random variable under BART and the single trees."""

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Continuous

from pymc_trees.core.value.checksum import fingerprint
from pymc_trees.core.value.fields import Layout
from pymc_trees.distributions.capacity import (
    check_memory,
    default_max_nodes,
    mondrian_max_nodes,
)
from pymc_trees.distributions.data.schema import check_rules, kinds_of
from pymc_trees.distributions.data.variables import training_inputs
from pymc_trees.distributions.declaration import (
    as_tensor,
    check_depth_prior,
    check_leaf,
    check_m,
    check_ranges,
    make_grid,
)
from pymc_trees.distributions.mondrian_prior import check_tree_prior
from pymc_trees.distributions.ops.forest_rv import ForestRV
from pymc_trees.distributions.split_prior import read_split_prior

CACHE_FIT = 20_000
"""Numbers, rows times outputs, up to which the value carries the fitted function by default."""


class Forest(Continuous):
    """A sum of trees as a random variable; its value is the encoded trees.

    Most models use `BART` or `DecisionTree`, which declare a forest and evaluate it.

    The prior of each tree is that of Chipman, George and McCulloch given the training rows: a node
    at depth d that has a valid split splits with probability ``alpha * (1 + d)**-beta``; its column
    is drawn by ``split_prior`` among the columns that vary in the node, its cut uniformly between
    the extremes of that column there (with ``n_cuts``: uniformly over the grid cuts available
    there). ``x <= cut`` goes left.

    Parameters
    ----------
    name : str
        Name of the variable.
    X : (n, p) array, frame or model data
        Training inputs. Their present values define the prior.
    m : int, default 50
        Number of trees.
    alpha : float or scalar random variable in (0, 1), default 0.95
        Prior split probability of the root (Chipman 2010).
    beta : float or scalar random variable, at least 0, default 2
        How fast split probabilities fall with depth (Chipman 2010).
    leaf : NormalLeaf, NormalGammaLeaf or DirichletLeaf
        Prior of the leaf values.
    tree_prior : MondrianPrior, optional
        Prior of each tree. Default: the one described above.
    split_prior : (p,) array, dict of column name and weight, or vector random variable, optional
        Weights of the columns. 0 excludes a column, except where it is random. Weights that are
        model data may be set anew for the same columns. Default: equal, and 1 for a column that a
        dict does not name.
    split_rules : str, sequence of p str, or dict of column name and str, optional
        "continuous", "subset" or "onehot" for each column, see Notes. Default: as `Data` says.
    n_cuts : int, optional
        Cuts only on a grid of at most this many quantiles per column. Default: anywhere.
    max_nodes : int, optional
        Room for nodes, over all trees. Default: three times the prior mean plus 200, or
        ``3 n**(3/4)`` when that is more (but not n / 2), and at most ``m (2n - 1)``. A forest that
        does not fit stops the run with an error.
    cache_fit : bool, optional
        Whether the value carries the function at the training rows, so that nothing walks the
        trees there. Default: up to 20,000 numbers, rows times outputs.

    Returns
    -------
    TensorVariable
        Shape (rows, fields), float64; the fields are described in the data model of the docs.

    Raises
    ------
    ValueError
        With the name of the argument and what to give instead.

    Notes
    -----
    A column varies in a node when its rows have two different values there, or both missing and
    present ones. A column of levels is split by a set of levels that go left: "subset" draws it
    uniformly among those that part the d levels present in the node, and each level absent from it
    goes to either side by a fair coin; "onehot" sends one of the d levels left and all others
    right. Rows whose cell is missing go to either side by a fair coin of the rule, drawn whether
    there are any or not. Where there are some, beside d distinct present values, the split is
    missing against present with probability ``1 / (1 + d)``, or 1 when d = 1.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1), 266-298.
    Lakshminarayanan, Roy and Teh (2015). Particle Gibbs for Bayesian additive regression trees.
    AISTATS, eq. 4-6.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with pm.Model() as model:
    ...     forest = pmt.Forest("trees", X, m=3, leaf=pmt.NormalLeaf(0, 1))
    >>> bool(np.isfinite(model.compile_logp()(model.initial_point())))
    True
    """

    rv_type = ForestRV

    @classmethod
    def dist(
        cls,
        X,
        m=50,
        alpha=0.95,
        beta=2.0,
        *,
        leaf=None,
        tree_prior=None,
        split_prior=None,
        split_rules=None,
        n_cuts=None,
        max_nodes=None,
        cache_fit=None,
        **kwargs,
    ):
        """Forest that is not registered in a model."""
        if kwargs.pop("shape", None) is not None or kwargs.pop("size", None) is not None:
            raise ValueError("shape: a forest has the shape of its encoding; do not give one.")
        if kwargs:
            raise TypeError(f"Forest got unknown arguments: {sorted(kwargs)}.")
        X_train, schema = training_inputs(X, split_rules)
        n, p = X_train.shape
        names = None if schema is None else schema.names
        kinds = kinds_of(X_train, schema, check_rules(split_rules, names, p))
        if n == 0:
            raise ValueError("X has no rows: a forest needs at least one training row.")
        check_ranges(X_train)
        m = check_m(m)
        alpha, beta = check_depth_prior(alpha, beta)
        process = check_tree_prior(tree_prior, alpha, beta, split_prior, n_cuts, X_train, kinds)
        if process is not None:
            alpha, beta = process.lifetime, 0.0
        leaf = check_leaf(leaf)
        weights, weights_stamp = read_split_prior(split_prior, p, names)
        if m > 1 and not leaf.in_sums:
            raise ValueError(
                f"m={m}: a {type(leaf).__name__} belongs to a single tree (m=1, DecisionTree). A "
                "sum of trees takes a NormalLeaf."
            )
        given = max_nodes is not None
        if not given:
            max_nodes = (
                default_max_nodes(m, n, alpha, beta)
                if process is None
                else mondrian_max_nodes(m, X_train, process.lifetime)
            )
        elif (
            isinstance(max_nodes, bool)
            or not isinstance(max_nodes, int | np.integer)
            or max_nodes < m
        ):
            raise ValueError(
                f"max_nodes={max_nodes!r}: must be a whole number of at least m={m}, one node a "
                "tree."
            )
        if not isinstance(cache_fit, bool | np.bool_ | None):
            raise TypeError(f"cache_fit={cache_fit!r}: must be None, True or False.")
        if cache_fit is None:
            cache_fit = n * leaf.n_values <= CACHE_FIT
        layout = Layout(
            m,
            int(max_nodes),
            leaf.n_values,
            n,
            bool(cache_fit),
            mixed=bool(len(kinds)),
            timed=process is not None,
        )
        check_memory(layout, given)
        grid = make_grid(X_train, n_cuts, kinds)
        flat = np.concatenate(grid) if grid else np.empty(0)
        offsets = np.cumsum([0] + [len(g) for g in grid]) if grid else np.empty(0, dtype=np.int64)
        stamp = fingerprint(X_train, kinds, flat, offsets, weights_stamp, leaf.name, tuple(layout))
        _, forest = ForestRV(layout=layout, leaf=leaf.name)(
            pt.constant(X_train),
            pt.constant(flat),
            pt.constant(offsets.astype("int64")),
            pt.constant(stamp, dtype="float64"),
            pt.constant(kinds),
            as_tensor(alpha),
            as_tensor(beta),
            weights,
            *(as_tensor(v) for v in leaf.parameters),
            rng=pt.random.shared_rng(seed=None),
            return_next_rng=True,
        )
        forest.tag.pymc_trees_columns = schema
        return forest
