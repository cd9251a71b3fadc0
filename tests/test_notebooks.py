"""The notebooks run from top to bottom, and are stored with what they showed."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest

# What a notebook must have printed at the end of a run, however short.
PRINTS = {
    "01_regression": "equal, draw by draw: True",
    "02_deep_tree": "columns at the root, chain by chain",
    "03_counts": "counts inside their 90% intervals",
    "04_two_forests": "rows whose 90% interval holds the truth",
    "05_dart": "weight of the five columns that matter",
    "07_two_soft_trees": "log evidence of the two trees",
    "06_categories_and_missing_cells": "equal, draw by draw: True",
    "08_coal_and_bikes": "years whose 90% interval holds the true rate",
    "09_hawks_softmax": "held-out birds classified correctly",
    "10_heteroscedasticity": "rows whose 90% interval holds the true standard deviation",
    "11_quantiles": "rows where curves cross",
    "12_model_checks": "elpd by five folds",
    "13_causal": "patients whose 90% interval holds the true effect",
    "14_survival": "true incidences inside their 90% intervals",
    "15_tables_and_boosting": "held-out rows inside 90% intervals",
    "16_slopes": "patients whose 90% interval holds the true effect of the dose",
    "17_monotone_dose_response": "doses at which the monotone 90% band holds the true mean",
    "18_smooth_functions": "weight of the five columns that matter",
    "19_six_samplers": "chains of RestructureCGM that saw both trees",
    "20_schools": "sd of the level of a new school",
    "21_areas": "areas whose 90% interval holds the true effect",
    "22_partially_linear": "coefficient with its 90% interval",
    "mondrian_bayesian_optimisation": "equal, draw by draw: True",
    "mondrian_learning_from_a_stream": "equal, draw by draw: True",
}
# Before its first cell: chains are short, and run in the process of the notebook. Others would each
# compile what no process has compiled yet.
FEW = """
import pymc as pm, pymc_trees as pmt
pmt.BART  # the first name puts on the wrappers, one of them on pm.sample
_sample = pm.sample
def few(*given, **options):
    short = {} if given else {"draws": 20, "tune": 20}
    return _sample(*given, **{**options, **short, "cores": 1})
pm.sample = few
"""
# Graphs of PyTensor that a short run evaluates a few times only are left to Python, which spares
# half of the time. But those of soft decision trees are: NUTS goes through them by the thousand.
COMPILED = {"07_two_soft_trees", "19_six_samplers"}
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_as_executed_from_top_to_bottom(path):
    cells = code_cells(nbformat.read(path, 4))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs
    assert not [output for output in outputs if output.output_type == "error"]
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.full
# The notebook client and its kernel bring their own warnings, from threads and sockets.
@pytest.mark.filterwarnings("default")
def test_notebook_runs(path, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.setenv("NOTEBOOK_DRAWS", "20")  # of those that sample in other ways too
    if path.stem not in COMPILED:
        flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE"
        monkeypatch.setenv("PYTENSOR_FLAGS", flags.lstrip(","))
    notebook = nbformat.read(path, 4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FEW))
    NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
    text = "".join(
        output.get("text", "") for cell in code_cells(notebook) for output in cell.outputs
    )
    assert PRINTS[path.stem] in text
