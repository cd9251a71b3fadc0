"""What are random columns of X worth, and what do they cost?

    python -m benchmarks.random_columns

Errors in variables: a steep jump at 0 in a column of which a measurement is seen. Three fits: the
true column, the measurement in its place (naive), and the column as a random variable
(`with_columns`). Missing cells: 40% of the decisive column are lost where another one is large.
Three fits: no cell lost, NaN as the forest takes it, and cells with a regression on the other
column. Printed for each: RMSE of f on a grid of the true column, share of the points within its 90%
interval, sigma (its truth stands above the table), R-hat of f on the grid, and CPU milliseconds of
a step.

    python -m benchmarks.random_columns --cost

CPU milliseconds of each step method with a random column and with its measurement in its place, f
evaluated once a draw as `pm.sample` records it; one thread. Then nanoseconds a row and tree that
splits on the column: of the pass through the trees, and of the whole step `LatentColumn`.
"""

import argparse
import warnings
from time import process_time

import arviz as az
import numpy as np
import pymc as pm
from pymc.exceptions import ImputationWarning

import pymc_trees as pmt
from pymc_trees.core.compile.threads import give_threads
from pymc_trees.core.samplers.latent_column import cell_trees, cuts_in_use, outputs_by_cell

SAMPLE = {"progressbar": False, "cores": 1, "compute_convergence_checks": False}


def f_of(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The function: a jump of 4 within a tenth of the column, and a line in the other column."""
    return 2 * np.tanh(20 * z) + x


def grid_of(column: np.ndarray) -> np.ndarray:
    """Rows at which functions are compared: the middle of the other column."""
    return np.column_stack([np.full_like(column, 0.5), column])


def fit(declare, options, cells, seed):
    """Draws of f on the grid, of sigma, and CPU milliseconds of a step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImputationWarning)
        with pm.Model() as model:
            declare()
            start = process_time()
            idata = pm.sample(
                options.draws, tune=options.tune, chains=2, random_seed=seed, **SAMPLE
            )
    steps = 2 * (options.draws + options.tune)
    at = pmt.evaluate(model["f_forest"], cells)
    function = pm.compile([model["f_forest"]], at)
    values = idata.posterior["f_forest"].to_numpy()
    f = np.array([[function(value) for value in chain] for chain in values])
    return f, idata.posterior["sigma"].to_numpy(), 1e3 * (process_time() - start) / steps


def numbers(f, sigma, truth) -> list[float]:
    """RMSE, coverage, sigma, median R-hat."""
    low, high = np.quantile(f, [0.05, 0.95], axis=(0, 1))
    r_hat = [float(az.rhat(f[..., k])) for k in range(f.shape[-1])]
    rmse = np.sqrt(np.mean((f.mean(axis=(0, 1)) - truth) ** 2))
    covered = np.mean((low <= truth) & (truth <= high))
    return [rmse, covered, sigma.mean(), np.median(r_hat)]


def forest(inputs, y, m):
    """f, sigma and the rows."""
    f = pmt.BART("f", inputs, y, m=m)
    pm.Normal("y", f, pm.HalfNormal("sigma", 1), observed=y)


def errors_in_variables(options, seed):
    """Rows of the first table."""
    rng, n = np.random.default_rng(seed), options.rows
    z, x = rng.normal(0, 0.5, n), rng.random(n)
    w, y = z + rng.normal(0, 0.2, n), f_of(z, x) + rng.normal(0, 0.2, n)

    def random():
        column = pm.Normal("z", 0, 0.5, shape=n, initval=w)
        pm.Normal("w", column, 0.2, observed=w)
        forest(pmt.with_columns(x[:, None], z=column), y, options.trees)

    column = np.linspace(-1, 1, 41)
    cells = grid_of(column)
    fits = {
        "true column": lambda: forest(np.column_stack([x, z]), y, options.trees),
        "measurement (naive)": lambda: forest(np.column_stack([x, w]), y, options.trees),
        "random column": random,
    }
    for name, declare in fits.items():
        f, sigma, cost = fit(declare, options, cells, seed)
        yield name, [*numbers(f, sigma, f_of(column, 0.5)), cost]


def missing_cells(options, seed):
    """Rows of the second table."""
    rng, n = np.random.default_rng(seed), options.rows
    x = rng.normal(size=n)
    z = 0.7 * x + np.sqrt(0.51) * rng.normal(size=n)
    y = 2 * np.sin(2 * z) + 0.5 * x + rng.normal(0, 0.5, n)
    p = 1 / (1 + np.exp(-2 * x))
    lost = rng.random(n) < 0.8 * p
    seen = np.where(lost, np.nan, z)

    def random():
        mean = pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * x
        cells = np.ma.masked_invalid(seen)
        column = pm.Normal("z", mean, pm.HalfNormal("spread", 1), observed=cells)
        forest(pmt.with_columns(x[:, None], z=column), y, options.trees)

    new = rng.normal(size=200)
    column = 0.7 * new + np.sqrt(0.51) * rng.normal(size=200)
    cells = np.column_stack([new, column])
    truth = 2 * np.sin(2 * column) + 0.5 * new
    fits = {
        "no cell lost": lambda: forest(np.column_stack([x, z]), y, options.trees),
        "NaN to a side": lambda: forest(np.column_stack([x, seen]), y, options.trees),
        "random column": random,
    }
    for name, declare in fits.items():
        f, sigma, cost = fit(declare, options, cells, seed)
        yield name, [*numbers(f, sigma, truth), cost]


# ------------------------------------------------------------------------------------------- Cost


def declare_for_cost(n, m, random) -> pm.Model:
    """Errors in variables, or the measurement in place of the column, on a grid as well."""
    rng = np.random.default_rng(1)
    z, x = rng.normal(0, 0.5, n), rng.random(n)
    w, y = z + rng.normal(0, 0.2, n), f_of(z, x) + rng.normal(0, 0.2, n)
    with pm.Model() as model:
        if random:
            column = pm.Normal("z", 0, 0.5, shape=n, initval=w)
            pm.Normal("w", column, 0.2, observed=w)
            f = pmt.BART("f", pmt.with_columns(x[:, None], z=column), y, m=m)
        else:
            f = pmt.BART("f", np.column_stack([x, w]), y, m=m, n_cuts=99)
        pm.Normal("y", f, pm.HalfNormal("sigma", 1), observed=y)
    return model


def costs(n, m, random, warm, steps) -> dict[str, float]:
    """CPU milliseconds a draw of each step method, and of f; nanoseconds of passes."""
    model = declare_for_cost(n, m, random)
    with model:
        methods = [pmt.LatentColumn(rng=1)] if random else []
        methods += [pmt.Hybrid(rng=2, threads=1), pmt.NoiseScale(rng=3)]
    [f] = model.replace_rvs_by_values([model["f"]])
    record = model.compile_fn(f, inputs=model.value_vars, on_unused_input="ignore", point_fn=True)
    point, spent = model.initial_point(random_seed=1), dict.fromkeys([*methods, record], 0.0)
    for method in methods:
        method.setup_chain(np.random.default_rng(1), warm, steps)
    give_threads(1)
    for k in range(warm + steps):
        if k == warm:
            for method in methods:
                method.stop_tuning()
            spent = dict.fromkeys(spent, 0.0)
        for method in spent:
            start = process_time()
            if method is record:
                record(point)
            else:
                point, _ = method.step(point)
            spent[method] += process_time() - start
    found = {type(one).__name__: 1e3 * spent[one] / steps for one in methods}
    found |= {"f": 1e3 * spent[record] / steps}
    found["all"] = sum(found.values())
    if random:
        found |= passes(model, methods[0], point, found["LatentColumn"])
    give_threads(None)
    return found


def passes(model, method, point, whole) -> dict[str, float]:
    """Nanoseconds a row and tree that splits on the column."""
    [column] = method._columns
    [forest], data = column.forests, column.at(point)
    value, X, n = point[forest.name], data.inputs[0], len(data.inputs[0])
    cuts = np.unique(cuts_in_use(value, forest.sizes, X.shape[1], forest.place))
    points = np.append(cuts, np.inf)
    rows, out = np.arange(min(n, 1_000)), np.empty((len(points), min(n, 1_000), 2))
    trees = cell_trees(value, X, forest.X_train, forest.sizes, forest.place, points)
    outputs_by_cell(trees, X, rows, 1, out)
    start, repeats = process_time(), 100
    for _ in range(repeats):
        outputs_by_cell(trees, X, rows, 1, out)
    one = (process_time() - start) / repeats / len(rows)
    splitting = int((np.diff(trees.first_step) > 1).sum())
    return {
        "trees that split on it": splitting,
        "ns, pass": 1e9 * one / splitting,
        "ns, step": 1e6 * whole / n / splitting,
    }


def print_costs(m) -> None:
    """Print the table of costs."""
    rows = {}
    for n, warm, steps in ((1_000, 300, 300), (50_000, 60, 20)):
        for random in (False, True):
            rows[n, "random" if random else "measurement"] = costs(n, m, random, warm, steps)
    names = list(dict.fromkeys(name for row in reversed(rows.values()) for name in row))
    print("| rows | column | " + " | ".join(names) + " |\n|" + "---|" * (2 + len(names)))
    for (n, kind), row in rows.items():
        cells = [f"{row[name]:.1f}" if name in row else "" for name in names]
        print(f"| {n:,} | {kind} | " + " | ".join(cells) + " |")


TABLES = {
    "Errors in variables, sigma .2": errors_in_variables,
    "Missing cells, sigma .5": missing_cells,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--tune", type=int, default=250)
    parser.add_argument("--sets", type=int, default=1, help="data sets, of which means are shown")
    parser.add_argument("--cost", action="store_true", help="what a step costs, instead")
    options = parser.parse_args()
    if options.cost:
        print_costs(m=50)
        return
    for title, table in TABLES.items():
        found: dict = {}
        for seed in range(1, options.sets + 1):
            for name, row in table(options, seed):
                found.setdefault(name, []).append(row)
        print(f"\n{title}\n\n| | RMSE of f | cover 90% | sigma | R-hat | ms a step |")
        print("|" + "---|" * 6)
        for name, rows in found.items():
            rmse, cover, sigma, r_hat, cost = np.mean(rows, axis=0)
            print(f"| {name} | {rmse:.3f} | {cover:.2f} | {sigma:.2f} | {r_hat:.2f} | {cost:.1f} |")


if __name__ == "__main__":
    main()
