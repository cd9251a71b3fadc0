"""Results as lines of a file, one a job: what is there is not run again."""

import itertools
import json
import logging
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd


def run_table(
    parser: ArgumentParser,
    out: str,
    methods: Iterable[str],
    keys: tuple[str, ...],
    values: Callable[[Namespace], tuple[Iterable, ...]],
    run: Callable[..., dict[str, Any]],
    report: Callable[[pd.DataFrame], None],
    is_made: Callable[..., bool] = lambda *job: True,
) -> None:
    """What all tables do: run the jobs that the command line asks for, and report.

    ``values`` reads off the arguments what each of the keys goes through, ``is_made`` says which
    combinations there are.
    """
    parser.add_argument("--methods", nargs="+", default=list(methods), choices=methods)
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    jobs = [job for job in itertools.product(*values(arguments)) if is_made(*job)]
    report(kept_lines(arguments.out, keys, () if arguments.report else jobs, run))


def kept_lines(
    out: Path, keys: tuple[str, ...], jobs: Iterable[tuple], run: Callable[..., dict[str, Any]]
) -> pd.DataFrame:
    """All results of a file, after the jobs that it lacked have been run and added.

    A job is a value for each of the keys. One whose package is not installed is left out.
    """
    lines = out.read_text().splitlines() if out.exists() else []
    found = [json.loads(line) for line in lines]
    there = {tuple(one[key] for key in keys) for one in found}
    for job in jobs:
        if job in there:
            continue
        try:
            found.append(dict(zip(keys, job, strict=True)) | run(*job))
        except ImportError as error:
            print(f"{job} is left out: {error}")
            continue
        add_line(found[-1], out)
    return pd.DataFrame(found)


def origin() -> dict[str, str]:
    """When a result was measured, and with which versions."""
    packages = ("pymc", "pymc_trees")
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        **{f"version of {name}": version(name) for name in packages},
    }


def add_line(result: dict[str, Any], out: Path) -> None:
    """Add a result to a file, with its date and versions."""
    with out.open("a") as file:
        file.write(json.dumps(result | origin()) + "\n")


def show_line(result: dict[str, Any], out: Path | None) -> None:
    """Print a result as a line, and add it to a file, if any."""
    print(json.dumps(result), flush=True)
    if out is not None:
        add_line(result, out)
