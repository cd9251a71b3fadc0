"""The main job: fit the bike rentals, print diagnostics, save the draws, predict from the file.

``python -m pymc_trees --help`` lists the options.
"""

import argparse
import logging
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from pymc_trees.datasets import load_bikes

FEATURES = ["hour", "temperature", "humidity", "workingday"]
TREES = 200
DRAWS, TUNE, CHAINS = 750, 500, 4
QUICK = {"trees": 50, "draws": 100, "tune": 100, "chains": 2}
"""What `--quick` runs, in place of the numbers above."""
HELD_OUT = 70
SHOWN = 50
"""Training rows whose R-hat and ESS are reported."""
CURVES = 200
"""Draws behind the picture."""
INTRODUCTION = """\
Bike rentals per hour: {train} rows to fit, {test} held out,
features {features}.
The spread of a count grows with its level, so the square root is modelled:
    sqrt(count) ~ Normal(mu, sigma),  mu ~ BART({m} trees),  sigma ~ HalfNormal
"""
QUICKLY = """\
Quick run: {given.trees} trees and {given.chains} chains of {given.draws} draws show that all works.
Without --quick: {trees} trees and {chains} chains of {draws} draws, for numbers to rely on.
"""


def split_rows(bikes, seed=2011):
    """Split the data at random, always in the same way."""
    order = np.random.default_rng(seed).permutation(len(bikes))
    return bikes.iloc[np.sort(order[HELD_OUT:])], bikes.iloc[np.sort(order[:HELD_OUT])]


def inputs(rows):
    """Matrix of the features."""
    return rows[FEATURES].to_numpy(dtype=float)


def build_model(train, trees):
    """Model of the square root of the count; ``X`` can be replaced."""
    root = np.sqrt(train["count"].to_numpy(dtype=float))
    with pm.Model() as model:
        X = pm.Data("X", inputs(train))
        mu = pmt.BART("mu", X, root, m=trees)
        sigma = pm.HalfNormal("sigma", root.std())
        pm.Normal("y", mu, sigma, observed=root, shape=mu.shape)
    return model


def predict(model, posterior, X, var_names, seed=0):
    """Predict at X, as a dataset; those of ``mu`` depend on ``posterior`` alone."""
    with model:
        pm.set_data({"X": X})
        result = pm.sample_posterior_predictive(
            posterior,
            predictions=True,
            var_names=var_names,
            random_seed=seed,
            progressbar=False,
        )
    return result["predictions"].to_dataset()


def diagnose(posterior, predictions, test):
    """Lines of the table of diagnostics: name and text."""
    rows = np.unique(np.linspace(0, posterior.sizes["mu_dim_0"] - 1, SHOWN).astype(int))
    f = posterior[["mu"]].isel(mu_dim_0=rows)
    sigma = posterior[["sigma"]]
    counts = test["count"].to_numpy(dtype=float)
    # A normal root with mean mu and sd sigma has the mean square mu^2 + sigma^2.
    expected = (predictions["mu"] ** 2 + posterior["sigma"] ** 2).mean(("chain", "draw"))
    low, high = predictions["y"].quantile([0.05, 0.95], ("chain", "draw")).to_numpy()
    inside = (np.sqrt(counts) >= low) & (np.sqrt(counts) <= high)
    error = np.sqrt(np.mean((expected.to_numpy() - counts) ** 2))
    where = f"at {len(rows)} training rows"
    return [
        (f"R-hat of mu, largest {where}", f"{float(az.rhat(f)['mu'].max()):.3f}"),
        (f"bulk ESS of mu, smallest {where}", f"{float(az.ess(f)['mu'].min()):.0f}"),
        (f"bulk ESS of mu, largest {where}", f"{float(az.ess(f)['mu'].max()):.0f}"),
        ("R-hat of sigma", f"{float(az.rhat(sigma)['sigma']):.3f}"),
        ("bulk ESS of sigma", f"{float(az.ess(sigma)['sigma']):.0f}"),
        ("RMSE, held out, rentals per hour", f"{error:.1f}"),
        ("(RMSE of the overall mean)", f"{counts.std():.1f}"),
        (
            "90% intervals that hold the count",
            f"{inside.sum()} of {len(test)} = {inside.mean():.2f}",
        ),
    ]


def effect_of_hour(model, posterior, train):
    """Expected rentals by draw, kind of day and hour, averaged over the other features."""
    draws = posterior.sizes["draw"] * posterior.sizes["chain"]
    few = posterior.isel(draw=slice(None, None, max(1, draws // CURVES)))
    columns = FEATURES.index("workingday"), FEATURES.index("hour")
    of_square = pmt.partial_dependence(
        few,
        model,
        columns,
        inputs(train),
        grid={columns[0]: [1.0, 0.0], columns[1]: range(24)},
        func=np.square,
        progressbar=False,
    )
    expected = of_square["average"] + few["sigma"] ** 2  # the mean square of a normal root
    return expected.to_numpy().reshape(-1, 2, 24)


def draw_picture(effect, train, path):
    """Mean and 90% band of the effect of hour for both kinds of day, over the data."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    kinds = [("working day", 1, "#0b6e8a"), ("weekend or holiday", 0, "#c8531c")]
    for k, (kind, code, colour) in enumerate(kinds):
        rows = train[train["workingday"] == code]
        shift = 0.12 if code else -0.12
        axes.scatter(rows["hour"] + shift, rows["count"], s=9, color=colour, alpha=0.35, lw=0)
        low, high = np.quantile(effect[:, k], [0.05, 0.95], axis=0)
        axes.fill_between(range(24), low, high, color=colour, alpha=0.25, lw=0)
        axes.plot(range(24), effect[:, k].mean(axis=0), color=colour, lw=2, label=kind)
    axes.set(xlim=(-0.6, 23.6), ylim=(0, None), xticks=range(0, 24, 3))
    axes.set(xlabel="hour of the day", ylabel="bikes rented in the hour")
    axes.set_title("Effect of the hour, averaged over temperature and humidity", loc="left")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, title="posterior mean, 90% band", frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def read_options(arguments=None):
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m pymc_trees",
        description="Fit BART to the shipped bike rentals, predict held-out hours, draw the effect "
        "of the hour, save the draws and predict from the saved file.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    cores = min(4, os.cpu_count() or 1)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a smaller run, to see that all works: "
        + ", ".join(f"{number} {name}" for name, number in QUICK.items()),
    )
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws kept per chain")
    parser.add_argument("--tune", type=int, default=TUNE, help="tuning draws per chain")
    parser.add_argument("--chains", type=int, default=CHAINS, help="number of chains")
    parser.add_argument("--cores", type=int, default=cores, help="chains that run at once")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random numbers")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for picture and draws")
    if "--quick" in (sys.argv[1:] if arguments is None else arguments):
        parser.set_defaults(**QUICK)
    else:
        parser.set_defaults(trees=TREES)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the job; return the exit status."""
    options = read_options(arguments)
    logging.getLogger("pymc.sampling.forward").setLevel(logging.WARNING)  # one line a prediction
    options.out.mkdir(parents=True, exist_ok=True)
    train, test = split_rows(load_bikes())
    names = ", ".join(FEATURES)
    print(INTRODUCTION.format(train=len(train), test=len(test), features=names, m=options.trees))
    if options.quick:
        print(QUICKLY.format(given=options, trees=TREES, draws=DRAWS, chains=CHAINS))
    with_picture = find_spec("matplotlib") is not None
    if not with_picture:
        print("No picture will be drawn: matplotlib is not installed (extra `plots`).\n")

    start = time.perf_counter()
    model = build_model(train, options.trees)
    with model:
        idata = pm.sample(
            draws=options.draws,
            tune=options.tune,
            chains=options.chains,
            cores=options.cores,
            random_seed=options.seed,
        )
    seconds = time.perf_counter() - start
    posterior = idata["posterior"].to_dataset()
    predictions = predict(model, posterior, inputs(test), ["mu", "y"], options.seed)
    lines = diagnose(posterior, predictions, test)
    lines.append(("time to declare, compile and sample", f"{seconds:.0f} s"))
    print()
    for name, text in lines:
        print(f"{name:<46}{text:>18}")
    print()

    if with_picture:
        picture = options.out / "bikes_effect_of_hour.png"
        draw_picture(effect_of_hour(model, posterior, train), train, picture)
        print(f"Effect of the hour: {picture}")

    path = options.out / "bikes_draws.nc"
    pmt.save(idata, path)
    print(f"Draws: {path}, {path.stat().st_size / 1e6:.0f} MB")

    # As in another process: the same declaration, and the draws from the file.
    model = build_model(train, options.trees)
    with xr.open_datatree(path, engine="h5netcdf") as stored:
        pmt.check_draws(stored, model)
        draws = stored["posterior"].to_dataset()
        again = predict(model, draws, inputs(test), ["mu", "y"], options.seed)
    if not all(np.array_equal(again[name], predictions[name]) for name in ("mu", "y")):
        print("The prediction from the file differs from the one before saving.", file=sys.stderr)
        return 1
    which = len(test) // 2
    row = test.iloc[[which]]
    low, high = np.quantile(again["y"][..., which].clip(min=0) ** 2, [0.05, 0.95])
    described = ", ".join(f"{name} {row[name].item():g}" for name in FEATURES)
    print(
        "Read back: held-out predictions equal those before saving, draw by draw. One row:\n"
        f"    {described}:\n"
        f"    {low:.0f} to {high:.0f} rentals with probability 0.9; there were "
        f"{row['count'].item()}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
