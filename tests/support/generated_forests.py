"""Generated trees of all rules: encoded, as ragged arrays, and as a predictor."""

import numpy as np
import pandas as pd

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MAX_CUT, MISSING
from pymc_trees.core.value.fields import Layout, compute_checksum
from pymc_trees.posterior.exporting.expressions import levels_of_rules, packed_values
from pymc_trees.predictors.packed import PackedForest

P, N_LEVELS, FINGERPRINT = 3, 5, 12345.0
LEVELS = P - 1
"""The column of levels."""
CELLS = np.array([-1.0, 0.0, 0.25, 0.5, np.nextafter(0.5, 1.0), 1.0, 7.5])


def rows_of(rng, n, mixed, new=False):
    X = rng.choice(CELLS, (n, P))
    if mixed:
        X[:, LEVELS] = rng.integers(0, N_LEVELS + 2 * new, n)
    if mixed or new:
        X[rng.random((n, P)) < 0.15] = MISSING
    return X


def rule(rng, mixed):
    """Column, with the kind of rule, and cut or set of levels."""
    column, side = int(rng.integers(P)), int(rng.integers(2))
    if mixed and column == LEVELS:
        return column + P * (2 + side), float(rng.integers(0, 2**N_LEVELS))
    cut = rng.choice([*CELLS, -MAX_CUT, MAX_CUT]) if mixed else rng.choice(CELLS)
    return column + P * side * mixed, float(cut)


def tree(rng, depth, p_split, mixed, n_values):
    """Preorder rows of a tree."""
    if depth == 0 or rng.random() > p_split:
        return [[-1.0, *rng.normal(size=n_values)]]
    below = [tree(rng, depth - 1, p_split, mixed, n_values) for _ in range(2)]
    return [[*rule(rng, mixed), *[0.0] * (n_values - 1)], *below[0], *below[1]]


def forest(seed, m, n_draws, depth, mixed, n_values):
    """Encoded draws, their layout, and the same as ragged trees."""
    rng = np.random.default_rng(seed)
    X = rows_of(rng, 20, mixed)
    X[0, LEVELS] = N_LEVELS - 1.0 if mixed else X[0, LEVELS]
    draws = [
        [row for _ in range(m) for row in tree(rng, depth, 0.8, mixed, n_values)]
        for _ in range(n_draws)
    ]
    layout = Layout(m, max(map(len, draws)) + 1, n_values, len(X), mixed)
    values = []
    for rows in draws:
        value = np.zeros(layout.shape)
        value[: layout.max_nodes, 0] = -2.0
        value[: len(rows)] = rows
        value[layout.max_nodes, 0] = compute_checksum(value, layout.max_nodes, FINGERPRINT)
        values.append(value)
    arrays = packed_values(values, layout.max_nodes, n_values)
    if mixed:
        arrays["levels"] = levels_of_rules(X, arrays["rules"])
    else:
        seeds = [value[layout.max_nodes, 0] for value in values]
        arrays["seeds"] = np.array(seeds).astype(np.uint64)
    about = {"kind": "constant", "draws": n_draws, "trees": m, "columns": P, "mixed": mixed}
    return values, X, layout, PackedForest(arrays, about | {"outputs": n_values})


NAMES = ["a", 'b "quoted"', "town"]
TOWNS = ["Bonn", "Genf", "L'Aquila", "", "Ulm"]


def predictor_of(packed: PackedForest, mixed: bool, n_chains: int = 1) -> pmt.Predictor:
    """A predictor whose only function, f, are the outputs of ragged trees."""
    levels = [None] * LEVELS + [TOWNS if mixed else None]
    table = {"name": "X", "names": NAMES, "levels": levels, "complete": False}
    table["rules"] = ["continuous"] * LEVELS + ["subset" if mixed else "continuous"]
    program = [{"op": "rows", "of": [], "table": 0}, {"op": "forest", "of": [0], "forest": 0}]
    facts = {
        "chains": n_chains,
        "draws": packed.draws // n_chains,
        "tables": [table],
        "data": [],
        "forests": [packed.about | {"name": "f_forest"}],
        "program": program,
        "functions": {"f": {"of": 1, "axis": 0, "dims": ["row", "output"]}},
        "parameters": [],
        "coords": {"chain": list(range(n_chains)), "draw": list(range(packed.draws // n_chains))},
        "response": None,
        "why_no_law": "there is none",
        "classes": None,
        "default": "f",
    }
    return pmt.Predictor(facts, {f"forest0/{k}": v for k, v in packed.arrays.items()})


def frame_of(rows: np.ndarray, mixed: bool) -> pd.DataFrame:
    """Rows as a frame: codes as levels, new ones too, and None where a cell is missing."""
    frame = pd.DataFrame(np.where(rows == MISSING, np.nan, rows), columns=NAMES)
    if mixed:
        names = dict(enumerate([*TOWNS, "Rom", "Oslo"]))
        cells = [names.get(code) for code in rows[:, LEVELS].tolist()]
        frame[NAMES[LEVELS]] = np.array(cells, dtype=object)
    return frame
