"""`with_columns`: inputs of a forest some of whose columns are random variables."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Cast
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import BernoulliRV, BinomialRV, CategoricalRV
from pytensor.tensor.random.op import RandomVariable

from pymc_trees.core.columns.cells import MAX_LEVELS
from pymc_trees.distributions.data.named import is_named
from pymc_trees.distributions.data.numbers import present_numbers
from pymc_trees.distributions.data.schema import check_number_of_cuts, check_rules
from pymc_trees.distributions.data.table import Columns, Table, read
from pymc_trees.distributions.data.variables import registered
from pymc_trees.predictors.columns import CONTINUOUS, SUBSET, real_array

N_CUTS = 99
"""Cuts of each column of numbers, unless given: codes of a byte."""
DRAWS = 10_000
"""Numbers drawn from the prior of a column, at least, for its quantiles."""
SEED = 54


def with_columns(X, *, cuts=None, **columns):
    """Inputs of a forest with further columns that are random variables of the model.

    For a covariate that is measured with error, cells that are missing and have a distribution, or
    a latent trait: the forest takes part in what is known of them. ``pm.sample()`` draws a column
    with `LatentColumn`, given the trees, from its prior, the likelihood of the rows and whatever
    else of the model depends on it.

    Parameters
    ----------
    X : (n, p) array, frame, `pymc.Data` or `pymc_trees.Data`
        The columns that are constant, as `BART` takes them.
    cuts : dict of column name and increasing numbers, optional
        Where trees may cut a random column. Default: quantiles of its prior, or of the observed
        cells of a partly observed column.
    **columns : vector random variable
        Random columns by name: free variables of the model with n entries, of any prior that is
        independent from row to row given other variables; or a variable that is partly observed,
        ``pm.Normal("x", ..., observed=x)`` with NaN in ``x``, whose missing cells are drawn.
        Discrete ones are ``pm.Categorical``, ``pm.Bernoulli``, ``pm.Binomial`` and
        ``pm.DiscreteUniform`` of known support.

    Returns
    -------
    Columns
        For the argument X of `BART` and `DecisionTree`. Columns of an array are called "x0", "x1"
        and so on; the names serve ``monotone``, ``split_prior`` and ``split_rules``.

    Raises
    ------
    TypeError, ValueError
        For a column that is no such variable, or cuts that are not increasing numbers.

    Notes
    -----
    The prior of the trees must not change with the column. It is that of `Forest` given *reference
    rows*, which are fixed when the forest is declared: the constant columns of X, and in a random
    column n quantiles of its prior in an arbitrary order, or the middle of the intervals between
    the ``cuts`` you give. So a node can be split where its reference rows differ, and a leaf may
    have no row. All columns of numbers have a grid, of 99 cuts unless you give ``n_cuts``. The
    quantiles are estimated from draws with a fixed seed: under a wide prior of its parameters most
    of them are far from the data, and you should give ``cuts``. A column without an initial value
    of its own (``initval``) starts at a draw from its prior.

    A ``pm.Categorical`` of three categories or more is split by sets of them ("subset"), other
    discrete columns by cuts; ``split_rules`` chooses. The reference rows have every category where
    there is room.

    See Also
    --------
    LatentColumn : the step that draws the column.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X, measured = rng.random((50, 2)), rng.normal(size=50)
    >>> with pm.Model() as model:
    ...     z = pm.Normal("z", 0, 1, shape=50)
    ...     w = pm.Normal("w", z, 0.3, observed=measured)
    ...     f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=pmt.NormalLeaf(0, 0.5), m=5)
    ...     y = pm.Normal("y", f, 0.5, observed=measured > 0)
    >>> [v.name for v in model.free_RVs]
    ['z', 'f_forest']
    """
    model = pm.modelcontext(None)
    if not columns:
        raise ValueError("with_columns: give at least one column, such as z=z.")
    for name, variable in columns.items():
        latent = _check_column(model, name, variable)
        if model.rvs_to_initial_values.get(latent) is None:
            # from equal entries, PyMC's start, the spread of a column would be drawn towards 0
            model.set_initval(latent, "prior")
    cuts = {} if cuts is None else cuts
    if not isinstance(cuts, Mapping) or any(name not in columns for name in cuts):
        raise ValueError(
            f"cuts={cuts!r}: must be None or a dict from the name of a random column, of "
            f"{list(columns)}, to increasing numbers."
        )
    return Columns(X, columns, {name: _check_cuts(name, given) for name, given in cuts.items()})


def _check_column(model, name, variable) -> Variable:
    """The free variable of a column, or an error."""
    if not isinstance(variable, Variable) or is_named(variable) or variable.ndim != 1:
        raise TypeError(
            f"with_columns: {name} must be a vector random variable of the model, with an entry "
            "for each row and without named dimensions; give constant columns in X."
        )
    latent = latent_part(model, variable)
    if latent is None:
        raise TypeError(
            f"with_columns: {name} must itself be a free variable of the model, or one that is "
            "partly observed, and not a function of some: declare pm.Normal(...) or another "
            "distribution with shape=n, and give that. Constant columns belong in X."
        )
    op = latent.owner.op
    if not isinstance(op, RandomVariable) or op.ndim_supp > 0:
        raise TypeError(
            f"with_columns: the prior of {name} must be independent from row to row given other "
            "variables: declare it as pm.Normal, pm.Uniform or another of PyMC's plain continuous "
            "distributions, with shape=n."
        )
    if variable.dtype != "float64" and support_of(latent) is None:
        raise TypeError(
            f"with_columns: {name} is {variable.dtype}, but its categories are not known: a random "
            "column is continuous, or pm.Categorical, pm.Bernoulli, pm.Binomial with a fixed n or "
            "pm.DiscreteUniform with fixed bounds."
        )
    return latent


def support_of(rv: Variable) -> np.ndarray | None:
    """Values of a discrete column as float64; None for other columns, and if they are not known."""
    op = rv.owner.op
    parameters = list(op.dist_params(rv.owner)) if isinstance(op, RandomVariable) else []
    low: np.ndarray | None = np.zeros(1)
    if isinstance(op, CategoricalRV):
        n = parameters[0].type.shape[-1]
        high = present_numbers(parameters[0].shape[-1]) if n is None else np.array(n)
        high = None if high is None else high - 1
    elif isinstance(op, BernoulliRV):
        high = np.ones(1)
    elif isinstance(op, BinomialRV):
        high = present_numbers(parameters[0])
    elif isinstance(op, pm.DiscreteUniform.rv_type):
        low, high = (present_numbers(bound) for bound in parameters)
    else:
        return None
    if low is None or high is None:
        return None
    return np.arange(np.min(low), np.max(high) + 1, dtype=np.float64)


def latent_part(model: pm.Model, variable: Variable) -> Variable | None:
    """The free variable that a random column is, or whose entries are its missing cells."""
    if any(variable is rv for rv in model.free_RVs):
        return variable
    if not any(variable is one for one in model.deterministics):
        return None
    behind = list(ancestors([variable], blockers=model.basic_RVs))
    names = f"{variable.name}_unobserved", f"{variable.name}_observed"
    free, observed = ([v for v in behind if v.name == name] for name in names)
    if len(free) != 1 or len(observed) != 1 or not any(free[0] is rv for rv in model.free_RVs):
        return None
    return free[0] if any(observed[0] is rv for rv in model.observed_RVs) else None


def _check_cuts(name, given) -> np.ndarray:
    try:
        cuts = real_array(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cuts of {name} must be numbers ({error}).") from error
    increasing = cuts.ndim == 1 and cuts.size and np.isfinite(cuts).all() and (np.diff(cuts) > 0)
    if not np.all(increasing):
        raise ValueError(f"cuts of {name} must be a vector of increasing finite numbers.")
    check_number_of_cuts(cuts.size, f"cuts of {name}")
    return cuts


# ---------------------------------------------------------------- The table that defines the prior


@dataclass(frozen=True, eq=False)
class ReferenceTable(Table):
    """Reference rows of a forest with random columns; ``variable`` are the rows themselves."""

    base: Table | None = None
    """The constant columns."""
    random: Mapping[str, Variable] | None = None
    cuts: Mapping[str, np.ndarray] | None = None

    default_cuts = N_CUTS

    @property
    def n_random(self) -> int:
        """Random columns, the last ones."""
        return len(self.random or ())

    def joined(self, base: Table) -> "ReferenceTable":
        """With the constant columns as model data."""
        columns = [v.astype("float64")[:, None] for v in (self.random or {}).values()]
        return replace(self, base=base, variable=pt.concatenate([base.variable, *columns], axis=1))

    def with_cuts(self, grid: list[np.ndarray]) -> list[np.ndarray]:
        """A grid of all columns, with the cuts that are given for some."""
        first = len(grid) - self.n_random
        given = self.cuts or {}
        random = [given.get(name, own) for name, own in zip(self.random or {}, grid[first:])]
        return [*grid[:first], *random]


def read_columns(X: Columns, split_rules=None) -> Table:
    """Inputs of a forest, as `with_columns` returns them."""
    base = read(X.X)
    if base.dims is not None:
        raise TypeError(
            "X: dimensions of with_columns have no names. Give the constant columns as an array, a "
            "frame or pm.Data."
        )
    names = base.schema.names or tuple(f"x{j}" for j in range(base.values.shape[1]))
    if taken := [name for name in X.random if name in names]:
        raise ValueError(f"with_columns: {taken} are columns of X, too: give other names.")
    schema = base.schema._replace(names=names)
    rules = check_rules(split_rules, [*names, *X.random])
    if any(rule is not None for rule in rules[: len(names)]):
        base = read(X.X, list(rules[: len(names)]))
        schema = base.schema._replace(names=names)
    schema = schema.with_numbers(X.random)
    model = pm.modelcontext(None)
    cells = []
    of_random = zip(X.random.items(), rules[len(names) :], strict=True)
    for j, ((name, variable), rule) in enumerate(of_random, start=len(names)):
        levels = _levels(model, name, variable, rule, X.cuts.get(name))
        cells.append(_reference(model, name, variable, len(base), X.cuts.get(name), levels))
        if levels is not None:
            schema = schema._replace(
                rules=(*schema.rules[:j], rule or SUBSET, *schema.rules[j + 1 :]),
                levels=(*schema.levels[:j], tuple(levels), *schema.levels[j + 1 :]),
            )
    values = np.ascontiguousarray(np.column_stack([base.values, *cells]))
    return ReferenceTable(values, schema, None, None, base, dict(X.random), dict(X.cuts))


def _levels(model, name, variable, rule, cuts) -> np.ndarray | None:
    """Categories of a discrete column that is split by sets of them; None where it has cuts."""
    latent = latent_part(model, variable)
    assert latent is not None
    support = support_of(latent)
    if support is None and rule not in (None, CONTINUOUS):
        raise ValueError(
            f"split_rules: the random column {name} is continuous, and split by cuts. Leave it out "
            "of split_rules."
        )
    by_sets = rule not in (None, CONTINUOUS)
    if rule is None and support is not None:
        # text and categories of a frame are split likewise, whole numbers by cuts
        categorical = isinstance(latent.owner.op, CategoricalRV)
        by_sets = categorical and 2 < len(support) <= MAX_LEVELS and cuts is None
    if not by_sets or support is None:
        return None
    if cuts is not None:
        raise ValueError(
            f"cuts of {name}: split_rules says that it is split by sets of categories, which have "
            "no cuts. Leave out one of the two."
        )
    if support[0] != 0 or len(support) > MAX_LEVELS:
        raise ValueError(
            f"split_rules: {name} has the categories {support[0]:.0f} to {support[-1]:.0f}, but "
            f"sets are of 0 to {MAX_LEVELS - 1} at most. Give it the rule 'continuous', which "
            "takes them in their order."
        )
    return support


def _reference(model, name, variable, n, cuts, levels=None) -> np.ndarray:
    """(n,) cells of a random column in the reference rows."""
    length = int(variable.shape[0].eval())
    if length != n:
        raise ValueError(
            f"with_columns: {name} has {length} entries, but X has {n} rows: declare it with "
            f"shape={n}."
        )
    latent = latent_part(model, variable)
    rng = np.random.default_rng([SEED, crc32(name.encode())])
    cells, moving = np.empty(n), np.ones(n, dtype=bool)
    known = np.empty(0)
    if latent is not variable:
        cells, moving = cells_at(model, variable, latent)
        known = cells[~moving]
    if cuts is not None:
        middle = (cuts[1:] + cuts[:-1]) / 2
        edge = np.ptp(cuts) / cuts.size if cuts.size > 1 else 1.0
        sorted_cells = np.concatenate([[cuts[0] - edge], middle, [cuts[-1] + edge]])
        k, n_cells = int(moving.sum()), sorted_cells.size
        # the first and the last of few rows in the outer intervals, so that every cut is between
        spread = np.linspace(0, n_cells - 1, k).round() if k < n_cells else np.arange(k) % n_cells
        cells[moving] = rng.permutation(sorted_cells[spread.astype(np.int64)])
        return cells
    if known.size < 2:
        draws = max(1, -(-DRAWS // n))
        with np.errstate(all="ignore"):
            known = np.ravel(pm.draw(latent, draws=draws, random_seed=SEED, mode="FAST_COMPILE"))
    if not np.isfinite(known).all():
        raise ValueError(
            f"with_columns: draws from the prior of {name} are not finite. Give "
            f"cuts={{{name!r}: ...}}."
        )
    k = int(moving.sum())
    support = support_of(latent)
    if support is None:
        cells[moving] = rng.permutation(np.quantile(known, (np.arange(k) + 0.5) / max(k, 1)))
        return cells
    # every category once where there is room, so that trees can tell rare ones from others
    once = np.setdiff1d(support, cells[~moving])
    if levels is not None and len(once) > k:
        raise ValueError(
            f"with_columns: {name} has {len(support)} categories, more than there are rows to draw "
            f"to define the prior: give it an order, by split_rules={{{name!r}: 'continuous'}}."
        )
    once = once if levels is not None or 2 * len(once) <= k else once[:0]
    shares = (np.arange(k - len(once)) + 0.5) / max(k - len(once), 1)
    others = np.quantile(known, shares, method="inverted_cdf")
    cells[moving] = rng.permutation(np.concatenate([once, others]))
    return cells


def cells_at(model: pm.Model, variable: Variable, latent: Variable):
    """Cells of a partly observed column, NaN for the missing ones, and which these are.

    The entries of its latent part are those cells, in this order.
    """
    [graph] = model.replace_rvs_by_values([variable])
    value = model.rvs_to_values[latent]
    n = int(latent.shape[0].eval())
    if value.dtype == "float64":
        cells = graph.eval({value: np.full(n, np.nan)}, mode="FAST_COMPILE")
        return np.array(cells, dtype=np.float64), np.isnan(cells)
    cells, other = (
        np.asarray(graph.eval({value: np.full(n, k, dtype=value.dtype)}, mode="FAST_COMPILE"))
        for k in (0, 1)
    )
    return np.where(cells == other, cells, np.nan).astype(np.float64), cells != other


def registered_columns(name: str, table: Table) -> Table:
    """`registered`, of a table that may have random columns."""
    if not isinstance(table, ReferenceTable) or table.base is None:
        return registered(name, table)
    return table.joined(registered(name, table.base))


# ------------------------------------------------- The inputs of an evaluation, taken apart again


def split_inputs(X: Variable, n_random: int) -> tuple[Variable, list[Variable]] | None:
    """Constant columns and random ones of inputs as `ReferenceTable.joined` makes them, or None."""
    node = X.owner
    if node is None or not isinstance(node.op, Join) or len(node.inputs) != n_random + 1:
        return None
    if node.op.axis != 1:
        return None
    base, *columns = node.inputs
    vectors = []
    for column in map(_uncast, columns):
        inner = column.owner
        if inner is None or not isinstance(inner.op, DimShuffle):
            return None
        if inner.op.new_order != (0, "x"):
            return None
        vectors.append(_uncast(inner.inputs[0]))
    return base, vectors


def _uncast(variable: Variable) -> Variable:
    """A discrete column as it was before it became one of floats."""
    node = variable.owner
    if node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Cast):
        return node.inputs[0]
    return variable
