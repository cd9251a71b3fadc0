"""`Forest`: the random variable under BART and the single trees."""

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Continuous
from pytensor.graph.basic import Variable
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pymc_trees.core.columns.table_file import in_file
from pymc_trees.core.value.fields import Layout, fingerprint
from pymc_trees.distributions.capacity import check_m, with_capacity
from pymc_trees.distributions.data.named import unnamed
from pymc_trees.distributions.data.numbers import as_tensor
from pymc_trees.distributions.data.table import Table, keep_random_columns, keep_schema, read
from pymc_trees.distributions.leaves.contract import LeafPrior, check_leaf, check_outputs_at
from pymc_trees.distributions.ops.forest_rv import ForestRV
from pymc_trees.distributions.tree_priors.read import DeclaredPrior, read_prior

# ----------------------- Training inputs as a constant of the graph, also where they lie in a file


class TableConstant(TensorConstant):
    """A table in a file, compared with other constants by a number: PyTensor would read it all."""

    stamp: float

    def signature(self):
        """Two constants with the same signature are the same constant."""
        return type(self), self.type, self.stamp

    def __copy__(self):
        return stamped(self.data, self.stamp)

    def __deepcopy__(self, memo):
        return stamped(self.data, self.stamp)


def stamped(X: np.ndarray, stamp: float) -> TensorConstant:
    """Constant of (n, p) inputs; ``stamp`` is the fingerprint of a forest that is grown on them."""
    if not in_file(X):
        return pt.constant(X)
    constant = TableConstant(TensorType("float64", shape=X.shape), X)
    constant.stamp = stamp
    return constant


# --------------------------------------------------------------------------------------------------


class Forest(Continuous):
    """A sum of trees as a random variable; its value is the encoded trees.

    Most models use `BART` or `DecisionTree`, which declare a forest and evaluate it.

    The prior of each tree is that of Chipman, George and McCulloch given the training rows: a node
    at depth d that has a valid split splits with probability ``alpha * (1 + d)**-beta``; its column
    is drawn with the weights ``split_prior`` from the columns that vary in the node, its cut
    uniformly between the extremes of that column in the node (with ``n_cuts``: uniformly over the
    grid cuts available there). ``x <= cut`` goes left.

    Parameters
    ----------
    name : str
        Name of the variable.
    X : (n, p) array, frame or model data
        Training inputs. Their values at declaration define the prior.
    m : int, default 50
        Number of trees.
    alpha : float or scalar random variable in (0, 1), default 0.95
        Prior split probability of the root (Chipman 2010).
    beta : float or scalar random variable, at least 0, default 2
        How fast split probabilities fall with depth (Chipman 2010).
    leaf : NormalLeaf, NormalGammaLeaf, DirichletLeaf, LinearLeaf or BasisLeaf
        Prior of the leaf values.
    tree_prior : MondrianPrior, optional
        Prior of each tree. Default: the one described above.
    split_prior : (p,) array, dict of column and weight, or vector random variable, optional
        Weights of the columns. 0 excludes a column, except where it is random. Weights that are
        model data may be replaced for the same columns. Default: equal, and 1 for a column that a
        dict does not name.
    split_rules : str, sequence of p str, or dict of column name and str, optional
        "continuous", "subset" or "onehot" for each column, see Notes. Default: as `Data` says.
    n_cuts : int, optional
        Restrict cuts to a grid of at most this many quantiles per column. Default: no grid.
    max_nodes : int, optional
        Room for nodes, over all trees. Default: three times the prior mean plus 200, or
        ``3 n**(3/4)`` when that is more (but not n / 2 or 65,536), and at most ``m (2n - 1)``. A
        forest that does not fit stops the run with an error.

    Returns
    -------
    TensorVariable
        Shape (rows, fields), float64; the fields are described in the data model of the docs.

    Raises
    ------
    ValueError
        For an invalid argument; the message names it and says what to give instead.

    Notes
    -----
    A column varies in a node when the rows of the node have two different values in it, or both
    missing and present cells. A column of levels is split by the set of levels that go left:
    "subset" draws it uniformly from the sets that separate the d levels present in the node, and
    each absent level goes to either side by a fair coin; "onehot" sends one of the d levels left
    and all others right. The side of rows with a missing cell is part of the rule, a fair coin that
    is tossed whether or not the node has such rows. When it has some, and d distinct present
    values, the split separates missing from present cells with probability ``1 / (1 + d)``, or 1
    when d = 1.

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
        **kwargs,
    ):
        """Forest that is not registered in a model."""
        if kwargs.pop("shape", None) is not None or kwargs.pop("size", None) is not None:
            raise ValueError(
                "shape: the shape of a forest follows from its encoding; leave shape out."
            )
        if kwargs:
            raise TypeError(f"Forest got unknown arguments: {sorted(kwargs)}.")
        leaf, tree_prior, split_prior, alpha, beta = map(
            unnamed, (leaf, tree_prior, split_prior, alpha, beta)
        )
        table = read(X, split_rules)
        table.check_training()
        m = check_m(m)
        n_cuts = table.default_cuts if n_cuts is None else n_cuts
        if table.n_random and (tree_prior is not None or not check_leaf(leaf).is_constant()):
            raise NotImplementedError(
                "X has random columns: the forest needs constant leaves, such as a NormalLeaf, and "
                "the prior of alpha and beta. Leave out tree_prior and response, and give "
                "leaf=pymc_trees.NormalLeaf(...)."
            )
        prior = read_prior(tree_prior, alpha, beta, split_prior, n_cuts, table)
        leaf = check_leaf(leaf).for_inputs(table, prior.kinds)
        if leaf.has_order():
            prior.check_fixed()
        if m > 1 and not leaf.in_sums:
            raise ValueError(
                f"m={m}: a {type(leaf).__name__} is for a single tree (m=1, DecisionTree). A sum "
                "of trees needs a NormalLeaf."
            )
        check_outputs_at(leaf, table.values)
        layout = Layout(
            m,
            max_nodes=0,
            n_values=leaf.n_values,
            n_rows=len(table),
            mixed=bool(len(prior.kinds)),
            timed=prior.trees.timed,
            own_outputs=None if leaf.is_constant() else leaf.n_outputs,
        )
        layout = with_capacity(layout, max_nodes, lambda: prior.trees.max_nodes(m, table.values))
        return _random_variable(table, prior, leaf, layout)


def _random_variable(
    table: Table, prior: DeclaredPrior, leaf: LeafPrior, layout: Layout
) -> Variable:
    """Random variable of a declaration, with its fingerprint."""
    constants = np.array(leaf.constants, dtype=np.float64)
    stamp = fingerprint(
        table.values,
        prior.kinds,
        prior.cuts,
        prior.offsets,
        prior.weights_stamp,
        leaf.name,
        layout.stamp,
        *([prior.trees.stamp] if prior.trees.stamp else []),
        *([constants] if constants.size else []),
    )
    _, forest = ForestRV(layout=layout, leaf=leaf.name, tree_prior=prior.trees.name)(
        stamped(table.values, stamp),
        pt.constant(prior.cuts),
        pt.constant(prior.offsets),
        pt.constant(stamp, dtype="float64"),
        pt.constant(prior.kinds),
        *(as_tensor(v) for v in prior.trees.parameters),
        prior.weights,
        pt.constant(constants),
        *(as_tensor(v) for v in leaf.parameters),
        rng=pt.random.shared_rng(seed=None),
        return_next_rng=True,
    )
    keep_schema(forest, table.schema)
    keep_random_columns(forest, table.n_random)
    return forest
