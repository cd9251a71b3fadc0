"""`SoftDecisionTree`: a decision tree with soft gates inside a PyMC model."""

import functools

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.dcc.kernels.encode import default_max_nodes, evaluate, is_intact, n_fields
from pymc_trees.dcc.soft_tree_rv import (
    LOG_DENSITY,
    SoftEvaluate,
    SoftTree,
    SoftTreeRV,
    declared,
    fingerprint_of,
)
from pymc_trees.distributions.data.named import register, rows_dim, unnamed
from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.data.table import no_batch, read, sees_batch
from pymc_trees.distributions.data.variables import all_or_nothing, check_new, registered
from pymc_trees.distributions.leaves.contract import check_leaf
from pymc_trees.distributions.leaves.dirichlet import DirichletLeaf
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.distributions.tree_priors.contract import check_depth_prior
from pymc_trees.distributions.tree_variable import (
    TREE_VARIABLES,
    TreeVariable,
    evaluations,
    evenly_spaced,
)


def SoftDecisionTree(
    name,
    X,
    Y=None,
    alpha=0.95,
    beta=1.0,
    *,
    leaf=None,
    h=(0.1, 0.005),
    direction="dirichlet",
    dims=None,
    max_nodes=None,
):
    """One Bayesian decision tree whose splits are soft: the model of DCC-Tree.

    At a split a row goes left with probability ``logistic((x . Delta - tau) / h)``: the gate
    depends on a weighted mean of the inputs, and a smaller ``h`` makes it harder. Registers the
    free random variable ``{name}_forest``, whose value is the encoded tree, and the Deterministic
    ``name``. Inputs, also those of new rows, are scaled to [0, 1] by the range of the training
    rows.

    Parameters
    ----------
    name : str
        Name of the function.
    X : (n, p) array, frame, `pymc.Data`, `pymc.dims.Data` or `pymc_trees.Data`
        Inputs; numeric and finite. Their range at declaration defines the scaling.
    Y : (n,) array, optional
        Only sets the kind of the default leaf: classes 0 .. K - 1 of an integer or boolean dtype
        give a `DirichletLeaf`, floating-point numbers (or None) a `NormalLeaf`. For a regression
        on whole numbers convert them, ``Y.astype(float)``, or give ``leaf``.
    alpha, beta : float, in (0, 1) and at least 0
        A node at depth d splits with prior probability ``alpha * (1 + d)**-beta``; defaults 0.95
        and 1 (Cochrane 2024, section 4.1). Numbers only: the weight of a topology must not depend
        on other variables.
    leaf : NormalLeaf or DirichletLeaf, optional
        Prior of the leaf values. Default ``NormalLeaf(0, 1)``, which suits a response on that
        scale, or ``DirichletLeaf(alpha=K, n_classes=K)``, 1 per class (both the authors' program).
    h : (float, float), default (0.1, 0.005)
        Width of the gates, in units of scaled inputs, at the start of a warm-up and after it, both
        positive, the second not larger; the model uses the second. Smaller is sharper (the authors'
        program).
    direction : "dirichlet" or "index", default "dirichlet"
        What a split weighs: all inputs, ``Delta ~ Dirichlet(1, .., 1)``, or one, drawn with equal
        probabilities, for which Delta is 1. The models of HMC-DFI and HMC-DF (Cochrane et al.
        2023). DCC-Tree samples the first, `RJHMC` both.
    dims : str or tuple of str, optional
        Named dimensions of the result: of the rows, and with a `DirichletLeaf` of the classes too.
    max_nodes : int, optional
        Room for nodes. Default: at least 63, and enough for all but one in 1e9 trees of the prior.

    Returns
    -------
    TensorVariable
        `NormalLeaf`: the mean, shape (n,). `DirichletLeaf`: probabilities, shape (n, n_classes).

    Raises
    ------
    ValueError, TypeError
        For an invalid argument; the message names it and says what to give instead.

    Notes
    -----
    ``tau ~ Beta(1, 1)`` at every split; with one input Delta is 1 in both kinds of directions. The
    noise and other parameters of the likelihood are variables of the model with priors of their
    own; Cochrane (2024) has ``pm.InverseGamma("sigma", 1.5, 1.5)``, on the *standard deviation*:
    eq. 9 squares it.

    With a `DirichletLeaf` the likelihood of DCC-Tree is eq. 8, in which row i counts in leaf k with
    the probability of reaching it, ``prod_i prod_k theta[k, y_i] ** phi[i, k]`` with the class
    probabilities integrated out. That is *not* ``Categorical(p)``, the likelihood whose p is the
    mean over leaves; they agree where gates are hard. The draws hold probabilities from their
    conditional under eq. 8, and predictions are means over leaves.

    References
    ----------
    Cochrane, Wills and Johnson (2024). Divide, conquer, combine Bayesian decision tree sampling,
    eq. 4-9.

    Cochrane, Wills and Johnson (2023). RJHMC-Tree for exploration of the Bayesian decision tree
    posterior.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    >>> with pm.Model() as model:
    ...     mu = pmt.SoftDecisionTree("mu", X, y)
    ...     sigma = pm.InverseGamma("sigma", 1.5, 1.5)
    ...     obs = pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    >>> [v.name for v in model.free_RVs]
    ['mu_forest', 'sigma']
    """
    model = pm.modelcontext(None)
    leaf, table = unnamed(leaf), read(X).complete()
    table.check_training()
    rows, X_train = rows_dim(table.dims, dims), table.values
    n, p = X_train.shape
    for setting, value in (("alpha", alpha), ("beta", beta)):
        if isinstance(value, Variable):
            raise TypeError(
                f"{setting} must be a number for a SoftDecisionTree: the prior weights of "
                "topologies must not depend on random variables."
            )
    check_depth_prior(alpha, beta)
    leaf = check_leaf(_default_leaf(Y, n) if leaf is None else leaf)
    if not leaf.in_soft_trees or not leaf.is_constant():
        raise ValueError(
            f"leaf={leaf!r}: a SoftDecisionTree needs a NormalLeaf or a DirichletLeaf."
        )
    h = _check_sharpness(h)
    direction = check_choice("direction", direction, LOG_DENSITY)
    if max_nodes is None:
        max_nodes = default_max_nodes(float(alpha), float(beta))
    max_nodes = check_number("max_nodes", max_nodes, 1)
    low = X_train.min(axis=0)
    span = X_train.max(axis=0) - low
    span = np.where(span > 0, span, 1.0)  # a column that does not vary scales to 0
    fingerprint = declared(X_train, h[1], leaf.name, leaf.n_values, direction)
    check_new(model, name)
    with all_or_nothing(model):
        table = registered(f"{name}_X", table)
        forest = SoftTree(
            f"{name}_forest",
            fingerprint,
            leaf,
            p,
            max_nodes,
            float(alpha),
            float(beta),
            h,
            direction,
        )
        out = SoftEvaluate(leaf.n_values)(forest, table.variable, low, span, h[1], fingerprint)
        return register(name, leaf.functions(out), dims, rows, model)


def _default_leaf(Y, n):
    if Y is None:
        return NormalLeaf(0.0, 1.0)
    if isinstance(Y, Variable):
        if sees_batch([Y]):
            raise TypeError(no_batch("Y"))
        Y = Y.get_value() if hasattr(Y, "get_value") else Y.eval()
    if np.ma.is_masked(Y):
        raise ValueError("Y holds masked entries: remove those rows, or give leaf.")
    y = np.asarray(Y)
    if y.shape != (n,):
        raise ValueError(f"Y has shape {y.shape}, but X has {n} rows: Y must have shape ({n},).")
    if y.dtype.kind == "f":
        return NormalLeaf(0.0, 1.0)
    if y.dtype.kind not in "iub" or y.min() < 0 or y.max() < 1:
        raise ValueError(
            "Y must hold floating-point numbers, or at least two classes 0 .. K - 1 as whole "
            "numbers; otherwise give leaf=pymc_trees.NormalLeaf or DirichletLeaf."
        )
    classes = int(y.max()) + 1
    return DirichletLeaf(alpha=float(classes), n_classes=classes)


def _check_sharpness(h) -> tuple[float, float]:
    try:
        first, last = h
        if not (is_number(first) and is_number(last)):
            raise TypeError("they are no finite numbers")
        first, last = float(first), float(last)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"h={h!r}: give two numbers, the width of the gates at the start of a warm-up and at "
            "its end, such as h=(0.1, 0.005); for one width give it twice."
        ) from error
    if not (np.isfinite(first) and first >= last > 0):
        raise ValueError(
            f"h={h!r}: both must be positive, and the second, which the model uses, not larger "
            "than the first."
        )
    return first, last


# ------------- What the rest of the package asks of a soft tree, and where it looks for the answers


class SoftTreeVariable(TreeVariable):
    """A soft tree; it is evaluated at the current rows of the model."""

    what = "soft tree"
    declared_by = "SoftDecisionTree"
    sampled_by = "pymc_trees.sample_dcc"
    moves_with_all = True
    is_soft = True
    settings = "training inputs X, h or leaf"
    field_settings = "columns of X or leaf"

    def __init__(self, rv: Variable):
        super().__init__(rv)
        self.step = "pymc_trees.RJHMC" if self.op.by_index else "pymc_trees.DCCTree"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a value."""
        return self.op.max_nodes, n_fields(self.op.p, self.op.n_values)

    @functools.cached_property
    def fingerprint(self) -> float:
        """Fingerprint of the declaration."""
        return fingerprint_of(self.rv)

    def is_intact(self, value: np.ndarray) -> bool:
        """Whether a value of the right shape is one of this declaration."""
        return is_intact(np.ascontiguousarray(value), self.fingerprint)

    def why_no_nodes(self, names: list[str]) -> str:
        """Why nodes are not sets of rows, and what describes the tree instead."""
        return (
            f"The trees of {names} are soft: a SoftDecisionTree uses all columns at every split, "
            "and every row is in every leaf. Draw it with plot_soft_tree; partial_dependence and "
            "permutation_importance show which columns matter."
        )

    def checksums(self, draws: np.ndarray) -> np.ndarray:
        """(chain, draw) checksums of values."""
        return draws[:, :, 0, -1]

    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs at the current rows."""
        first = evaluations(model.deterministics, self.rv)[0]
        X, low, span, h = (v.eval() for v in (first.X, *first.rest[:3]))
        X = X[evenly_spaced(len(X), most)]
        n_values, fingerprint = self.op.n_values, self.fingerprint
        out = np.empty((*draws.shape[:2], len(X) * n_values))
        for at in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[at])
            fit = evaluate(value, X, low, span, float(h), n_values, fingerprint)
            out[at] = fit.reshape(-1)
        return out


def register_trees() -> None:
    """Let the rest of the package know soft trees."""
    TREE_VARIABLES[SoftTreeRV] = SoftTreeVariable
