"""Which likelihoods sample, by which reader, and what a step of them costs.

    python -m benchmarks.likelihoods.forms --out forms.json
    python -m benchmarks.likelihoods.forms --forms plain --timed Normal Poisson --out forms.json

A row for each distribution of PyMC and parameter that a forest can be, a column for each form: the
target that a step gets. Seconds of CPU of a step of `CGM` on 300 rows and 20 trees, the median of
30 after 20, over that of the mean of a Normal; plain forms alone. Cells are added to those in
``--out``.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
from pymc.exceptions import ShapeError
from pytensor.graph.utils import MissingInputError

import pymc_trees as pmt
from benchmarks.likelihoods.forms.declare import FORMS, is_form_of
from benchmarks.likelihoods.forms.distributions import DISTRIBUTIONS, N, kind_of
from benchmarks.peers import table
from pymc_trees.targets.graph import UnsupportedModelError

ROWS, TREES, TUNE, STEPS = 300, 20, 20, 30
LEAF = pmt.NormalLeaf(0.0, 0.3)


def reader_of(target) -> str:
    """Kind of a target, and the likelihood that it is recognised as."""
    likelihood = getattr(target, "likelihood", None)
    return target.kind if likelihood is None else f"{target.kind}: {type(likelihood).__name__}"


def read(form: str, name: str, parameter: str) -> str:
    """What a step makes of a cell of the table."""
    if not is_form_of(form, name):
        return "-"
    X = np.random.default_rng(3).uniform(size=(N, 2))
    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model():
        f, g = (pmt.BART(one, X, m=3, leaf=LEAF) for one in "fg")
        try:
            FORMS[form](name, parameter, f, g)
            step = pmt.CGM()
        except UnsupportedModelError:
            return "refused"
        except (NotImplementedError, TypeError, ValueError, ShapeError, MissingInputError) as error:
            return f"PyMC: {type(error).__name__}"
    return reader_of(step.forests[0].target)


def seconds(name: str, parameter: str) -> float:
    """Of CPU, of a step."""
    kind, law = kind_of(name)
    X = np.random.default_rng(3).uniform(size=(ROWS, 2))
    y = np.concatenate([law.observed] * (ROWS // N))
    with pm.Model() as model:
        f = pmt.BART("f", X, m=TREES, leaf=LEAF)
        chosen, given = kind(**law.at(ROWS, **{parameter: f}))
        chosen("y", **given, observed=y)
        step = pmt.CGM()
    point, clock = model.initial_point(), []
    step.setup_chain(np.random.default_rng(1), TUNE, STEPS)
    for k in range(TUNE + STEPS):
        if k == TUNE:
            step.stop_tuning()
        start = time.process_time()
        point, _ = step.step(point)
        clock.append(time.process_time() - start)
    return float(np.median(clock[TUNE:]))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likelihoods.forms")
    parser.add_argument("--forms", nargs="*", choices=list(FORMS), default=list(FORMS))
    parser.add_argument("--timed", nargs="*", choices=list(DISTRIBUTIONS), default=[])
    parser.add_argument("--out", type=Path, help="JSON with every cell, added to")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    known = options.out and options.out.exists()
    kept = json.loads(options.out.read_text()) if known else {}
    for name, law in DISTRIBUTIONS.items():
        for parameter in law.seeing:
            cell = kept.setdefault(f"{name} {parameter}", {})
            for form in options.forms:
                wanted = form == "plain" or parameter == law.seeing[0]
                if wanted and form not in cell:
                    cell[form] = read(form, name, parameter)
        if options.out:
            options.out.write_text(json.dumps(kept, indent=1))
    for name in options.timed:
        law = DISTRIBUTIONS[name]
        for parameter in law.seeing if law.by_row else []:
            kept[f"{name} {parameter}"]["seconds"] = seconds(name, parameter)
            if options.out:
                options.out.write_text(json.dumps(kept, indent=1))
    gaussian = kept["Normal mu"].get("seconds", np.nan)
    rows = [
        [row, *(of.get(form, "") for form in FORMS), f"{of['seconds'] / gaussian:.1f}"]
        if "seconds" in of
        else [row, *(of.get(form, "") for form in FORMS), ""]
        for row, of in kept.items()
    ]
    print(table.markdown(["distribution", *FORMS, "step"], rows))


if __name__ == "__main__":
    main()
