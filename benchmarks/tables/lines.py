"""Results as lines of a file, one a job: what is there is not run again."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd


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
        with out.open("a") as file:
            file.write(json.dumps(found[-1]) + "\n")
    return pd.DataFrame(found)
