"""Remedies of messages about the settings of forests: priors, leaves, outputs, room for nodes."""

import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt

import pymc_trees as pmt
from support.odd import bart as odd
from support.odd import soft as odd_soft
from support.odd import soft_sums as odd_sums
from support.odd.table import FRAME, LEAF, X, Y, with_entry
from support.remedies.table import bart, forest, remedy, soft_bart, soft_tree, tree

PRIOR = pmt.MondrianPrior(1.0)


def _drawn(change, **given):
    """Draws of the prior, and of one that opens fewer nodes."""

    def call():
        with pm.Model():
            mu = pmt.BART("mu", **{"X": X, "Y": Y, "m": 3, **given, **change})
        return np.isfinite(pm.draw(mu, draws=20, random_seed=1)).all()

    return call


def _soft_drawn(front_end, **given):
    def call():
        with pm.Model():
            mu = front_end("mu", X, Y, **given)
        return np.isfinite(pm.draw(mu, draws=20, random_seed=1)).all()

    return call


def _with_basis(new):
    with pm.Model():
        mu = pmt.BART("f", X, m=2, leaf=pmt.BasisLeaf(np.ones((20, 1))))
        pm.Normal("y", mu.sum(axis=-1) if mu.ndim == 2 else mu, 1.0, observed=Y, shape=mu.shape[:1])
        prior = pm.sample_prior_predictive(2, random_seed=1)
        pmt.set_data(new)
        prior["posterior"] = prior["prior"]
        return pm.sample_posterior_predictive(
            prior, progressbar=False, predictions=True, var_names=["y"]
        )


def _data(make, table):
    with pm.Model():
        return make("rows", table) is not None


def _two_of(*names):
    with pm.Model() as model:
        for name in names:
            pmt.BART(name, X, Y, m=2)
    return len(model.deterministics) == 2


def _started(follows=True, **initvals):
    with pm.Model():
        mu = pmt.BART("mu", pm.Data("X", X), Y, m=2)
        more = {"shape": mu.shape} if follows else {}
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=Y, **more)
        few = {"draws": 4, "tune": 2, "chains": 1, "cores": 1, "quiet": True}
        return pm.sample(
            **few, initvals=initvals, progressbar=False, compute_convergence_checks=False
        )


def _warned(follows=False):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return _started(follows)


def _predicted(follows=False):
    with pm.Model():
        mu = pmt.BART("mu", pm.Data("X", X), Y, m=2)
        pm.Normal("y", mu, 1.0, observed=Y, **({"shape": mu.shape} if follows else {}))
        prior = pm.sample_prior_predictive(2, random_seed=1)
        pm.set_data({"X": X[:3]})
        prior["posterior"] = prior["prior"]
        return pm.sample_posterior_predictive(prior, progressbar=False, predictions=True)


DECLARATIONS = [
    remedy(
        "declare a prior of smaller trees, by a smaller alpha or larger beta, or a shorter",
        _drawn({"X": X[:, :1]}, monotone={0: 1}, alpha=1 - 1e-9, beta=0.0, max_nodes=117),
        _drawn({"X": X[:, :1]}, monotone={0: 1}, alpha=0.5, beta=2.0),
        _drawn({"X": X[:, :1]}, monotone={0: 1}, alpha=1 - 1e-9, beta=6.0),
        full=True,
    ),
    remedy(
        "declare it with a larger max_nodes, or a prior of smaller trees: a smaller alpha",
        _drawn({"max_nodes": 3}),
        _drawn({"max_nodes": 117}),
        _drawn({"max_nodes": 30}, alpha=0.1),
        _drawn({"max_nodes": 30}, beta=9.0),
        lambda: np.isfinite(
            pm.draw(bart(tree_prior=pmt.MondrianPrior(0.01), max_nodes=30)(), 20, random_seed=1)
        ).all(),
    ),
    remedy(
        "the prior draws trees of more than … leaves; give a larger beta, or max_nodes",
        soft_tree(alpha=0.999, beta=0.0),
        soft_tree(alpha=0.999, beta=2.0),
        soft_tree(alpha=0.999, beta=0.0, max_nodes=31),
    ),
    remedy(
        "declare it with a larger max_nodes, or with a smaller alpha or larger beta",
        _soft_drawn(pmt.SoftDecisionTree, max_nodes=1),
        _soft_drawn(pmt.SoftDecisionTree, max_nodes=99),
        _soft_drawn(pmt.SoftDecisionTree, max_nodes=15, alpha=0.05),
        _soft_drawn(pmt.SoftDecisionTree, max_nodes=15, beta=9.0),
    ),
    remedy(
        "has more nodes than max_nodes: declare it with a larger one",
        _soft_drawn(pmt.SoftBART, m=3, max_nodes=3),
        _soft_drawn(pmt.SoftBART, m=3, max_nodes=300),
    ),
    remedy(
        "so the size of the forest is unknown: give max_nodes",
        lambda: _flat(),
        lambda: _flat(max_nodes=50),
    ),
    remedy(
        "Use fewer trees (m), or set a smaller max_nodes",
        odd.BART["sizes beyond memory"],
        bart(m=10),
        bart(m=10, max_nodes=50),
    ),
    remedy(
        "dims=…: the model has no dimension",
        odd.BART["dims unknown"],
        lambda: _named(pm.Model(coords={"a": ["low", "high"], "b": range(20)}), dims=("a", "b")),
        lambda: _named(pm.Model(), shape=(2, 20)),
    ),
    remedy(
        "for K outputs and the n=… rows of X; leave it out for one output",
        odd.BART["shape"],
        bart(shape=(2, 20)),
        bart(),
    ),
    remedy(
        "give one for each output or one for all",
        odd.BART["leaves of outputs"],
        bart(shape=(2, 20), leaf=pmt.NormalLeaf(0.0, [1.0, 2.0])),
        bart(shape=(2, 20), leaf=pmt.NormalLeaf(0.0, 1.0)),
    ),
    remedy("leaf is the class …: give an instance", odd.BART["leaf a class"], bart(leaf=LEAF)),
    remedy("leave shape out", odd.FOREST["shape"], forest()),
    remedy(
        "…=…: choose from ….",
        odd.BART["response"],
        *(bart(response=response) for response in ("constant", "linear", "mix")),
    ),
    remedy(
        "set it together with X in pymc_trees.set_data",
        lambda: _with_basis({"f_X": X[:3]}),
        lambda: _with_basis({"f_X": X[:3], "f_basis": np.ones((3, 1))}),
    ),
    remedy(
        "use pymc_trees.Data(…, ...), which does; text stands in a pandas or polars frame there.",
        lambda: _data(pm.Data, np.full((3, 1), np.nan)),
        lambda: _data(pmt.Data, np.full((3, 1), np.nan)),
        lambda: _data(pmt.Data, pd.DataFrame({"a": ["u", "v"]})),
    ),
    remedy(
        "Give each forest a name of its own; where a cell of a notebook ran again, begin with a "
        "new pm.Model().",
        lambda: _two_of("mu", "mu"),
        lambda: _two_of("mu", "nu"),
        bart(),
    ),
    remedy(
        "Give it a value inside, or leave it out of initvals.",
        lambda: _started(sigma=-1.0),
        lambda: _started(sigma=1.0),
        lambda: _started(),
    ),
    remedy(
        "Declare it with shape=mu.shape, where mu is the function that BART or the tree returned.",
        lambda: _warned(),
        lambda: _warned(follows=True),
    ),
    remedy(
        "with shape=mu.shape, where mu is the function returned by BART or the tree",
        lambda: _predicted(),
        lambda: _predicted(follows=True),
    ),
    remedy(
        "replaces a NormalLeaf, but leaf=…: leave response out, or give",
        tree(response="linear", leaf=pmt.DirichletLeaf(1.0, 2)),
        tree(leaf=pmt.DirichletLeaf(1.0, 2)),
        tree(leaf=pmt.LinearLeaf(0.0, 1.0, 1.0)),
    ),
    remedy(
        "Y=None sets no scale for the leaves",
        odd.BART["Y None"],
        bart(),
        bart(Y=None, leaf=LEAF),
    ),
    remedy(
        "Y holds NaN or infinite values: remove those rows, or set the leaf yourself",
        odd.BART["Y NaN"],
        bart(X=X[1:], Y=Y[1:]),
        bart(Y=with_entry(Y, np.nan), leaf=LEAF),
    ),
    remedy("Y has the one value", odd.BART["Y constant"], bart(Y=np.ones(20), leaf=LEAF)),
    remedy(
        "If Y is on the scale of the outputs, give leaf=",
        bart(Y=np.arange(20) % 3, shape=(3, 20)),
        bart(Y=np.arange(20) % 3, shape=(3, 20), leaf=LEAF),
    ),
    remedy(
        "Y holds masked entries: remove those rows, or give leaf",
        odd_soft.SOFT["Y masked"],
        soft_tree(X=X[:19], Y=Y[:19]),
        soft_tree(Y=np.ma.masked_array(Y, Y > 2), leaf=LEAF),
    ),
    remedy(
        "such as h=(0.1, 0.005); for one width give it twice",
        odd_soft.SOFT["h one number"],
        soft_tree(h=(0.1, 0.005)),
        soft_tree(h=(0.1, 0.1)),
    ),
    remedy(
        "hard holds …, which is not a column of X: choose from",
        odd_sums.SOFT_BART["hard fraction"],
        soft_bart(hard=[0]),
        soft_bart(X=odd_sums.NUMBERS, hard=["b"]),
    ),
    remedy(
        "tree_prior is the class …: give",
        odd.BART["tree_prior class"],
        bart(tree_prior=pmt.MondrianPrior(1.0)),
    ),
    remedy(
        "alpha and beta belong to the default tree prior: leave them out",
        odd.BART["tree_prior and alpha"],
        bart(tree_prior=PRIOR),
    ),
    remedy(
        "a Mondrian process chooses columns by their range. Leave it out, and rescale columns",
        odd.BART["tree_prior and weights"],
        bart(tree_prior=PRIOR, X=X * [1.0, 2.0]),
    ),
    remedy(
        "the cuts of a Mondrian process are continuous. Leave it out",
        odd.BART["tree_prior and grid"],
        bart(tree_prior=PRIOR),
    ),
    remedy(
        "Encode levels as numbers and impute or drop missing cells, or leave tree_prior out",
        odd.BART["tree_prior and levels"],
        bart(tree_prior=PRIOR, X=pd.get_dummies(FRAME)),
        bart(X=FRAME),
    ),
    remedy(
        "Only mean and sd of the leaf may be random: give a number",
        lambda: _random_alpha(monotone={0: 1}),
        bart(monotone={0: 1}, alpha=0.9),
    ),
    remedy(
        "weights, but X has … columns: give one weight each",
        odd.BART["random weights of the wrong length"],
        lambda: _random_weights(2),
    ),
    remedy(
        "names the columns …, which X does not have: they are",
        bart(split_prior={"a": 2.0}),
        bart(split_prior={0: 2.0}),
        bart(split_prior=[2.0, 1.0]),
    ),
    remedy("split_prior has shape", odd.BART["split_prior short"], bart(split_prior=[1.0, 2.0])),
    remedy(
        "monotone: X has no column …; choose from",
        odd.BART["monotone unknown"],
        bart(X=FRAME, monotone={"a": 1}),
    ),
    remedy(
        "has levels, which have no order: leave it out, or make it an ordered category or a number",
        bart(X=FRAME, monotone={"a": 1, "b": 1}),
        bart(X=FRAME, monotone={"a": 1}),
        bart(
            X=FRAME.astype({"b": pd.CategoricalDtype(["u", "v"], ordered=True)}), monotone={"b": 1}
        ),
        bart(X=FRAME.assign(b=X[:, 1]), monotone={"b": 1}),
    ),
    remedy(
        "give each output its own trees with separate_trees=True",
        odd.BART["monotone and shared trees"],
        bart(monotone={0: 1}, shape=(2, 20), separate_trees=True),
    ),
    remedy(
        "Leave out columns without a direction",
        odd.BART["monotone two"],
        bart(monotone={0: 1}),
        bart(monotone={0: -1}),
        bart(monotone={1: 1}),
    ),
    remedy(
        "monotone needs constant leaf values",
        odd.BART["monotone and lines"],
        bart(monotone={0: 1}, leaf=LEAF),
        bart(response="linear"),
    ),
    remedy(
        "the square of sd overflows or underflows: rescale the response, and sd with it",
        lambda: pmt.NormalLeaf(0, 1e-300),
        lambda: pmt.NormalLeaf(0, 1e-300 * 1e300),
    ),
    remedy(
        "LinearLeaf(…=…): … must be … number, or a random variable",
        lambda: pmt.LinearLeaf(mean="a"),
        lambda: pmt.LinearLeaf(mean=1.0),
        lambda: pmt.LinearLeaf(mean=pt.constant(1.0)),
    ),
    remedy(
        "there can be at most …: name fewer, or give columns=",
        lambda: _lines("all"),
        lambda: _lines(list(range(52))),
        lambda: _lines("parent"),
    ),
    remedy(
        "np.flatnonzero(mask) converts a mask to numbers",
        bart(leaf=pmt.LinearLeaf(columns=[True, False])),
        bart(leaf=pmt.LinearLeaf(columns=np.flatnonzero([True, False]))),
    ),
    remedy(
        'Give some of them, "parent", "path" or "all"',
        bart(X=FRAME, leaf=pmt.LinearLeaf(columns=["c"])),
        *(bart(X=FRAME, leaf=pmt.LinearLeaf(columns=c)) for c in (["a"], "parent", "path", "all")),
    ),
    remedy(
        "is a column of levels, which has no slope: leave it out of columns",
        bart(X=FRAME, leaf=pmt.LinearLeaf(columns=["a", "b"])),
        bart(X=FRAME, leaf=pmt.LinearLeaf(columns=["a"])),
    ),
    remedy(
        "basis has … rows, but X has …: give one for each",
        bart(leaf=pmt.BasisLeaf(np.ones((4, 1)))),
        bart(leaf=pmt.BasisLeaf(np.ones((20, 1)))),
    ),
    remedy(
        "basis has shape …: give a matrix with one row for each row of X and one column",
        lambda: pmt.BasisLeaf(np.ones(4)),
        lambda: pmt.BasisLeaf(np.ones(4)[:, None]),
    ),
    remedy(
        "impute or leave out those rows",
        lambda: pmt.BasisLeaf([[np.nan], [1.0]]),
        lambda: pmt.BasisLeaf([[0.0], [1.0]]),
        lambda: pmt.BasisLeaf([[1.0]]),
    ),
    remedy(
        "BasisLeaf(…=…): give",
        lambda: pmt.BasisLeaf(np.ones((4, 2)), mean="a"),
        lambda: pmt.BasisLeaf(np.ones((4, 2)), mean=1.0),
        lambda: pmt.BasisLeaf(np.ones((4, 2)), mean=[1.0, 2.0]),
        lambda: pmt.BasisLeaf(np.ones((4, 2)), sd=np.eye(2)),
    ),
    remedy(
        "A forest has no batch dimensions: declare one per model",
        lambda: _batch((2,)),
        lambda: _batch(),
    ),
]


def _flat(**given):
    with pm.Model():
        return pmt.BART("mu", X, Y, m=3, alpha=pm.math.invlogit(pm.Flat("a")), **given)


def _named(model, **given):
    with model:
        return pmt.BART("mu", X, Y, m=3, leaf=LEAF, **given)


def _random_alpha(**given):
    with pm.Model():
        return pmt.BART("mu", X, Y, m=3, alpha=pm.Beta("alpha", 2, 1), **given)


def _random_weights(p):
    with pm.Model():
        return pmt.BART("mu", X, Y, m=3, split_prior=pm.Dirichlet("w", np.ones(p)))


def _lines(columns):
    rows = np.random.default_rng(0).random((20, 60))
    with pm.Model():
        return pmt.BART("mu", rows, m=2, leaf=pmt.LinearLeaf(columns=columns))


def _batch(size=None):
    with pm.Model() as model:
        pmt.BART("mu", X, Y, m=2)
    node = model["mu_forest"].owner
    given = [v.eval() for v in node.inputs[2:]]
    return node.op.rng_fn(np.random.default_rng(1), *given, size) is not None
