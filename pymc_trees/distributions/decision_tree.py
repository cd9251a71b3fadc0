"""`DecisionTree`: a single Bayesian decision tree inside a PyMC model."""

from pymc_trees.distributions.bart import Outputs, declare


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
