"""Which file may know what, and who may import whom, read from the sources."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pymc_trees"
TREES = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}

# File that takes inputs of Ops by position -> why that is not for a forest's.
POSITIONS = {
    "distributions/forest_inputs.py": "the one file that knows those of forests",
    "dcc/read_model.py": "parameters of a pymc.Categorical",
    "dcc/soft_tree_rv.py": "the one file that knows those of a soft tree",
    "targets/likelihoods/expressions.py": "Ops between a forest's function and a mean",
    "terms/one_sided.py": "Ops between a scale and the prior or the rows that have it",
    **dict.fromkeys(
        [
            f"targets/likelihoods/{name}.py"
            for name in ("binary", "classes", "expressions", "observed", "robust")
        ],
        "Ops between a linear predictor and a likelihood",
    ),
    "targets/graph.py": "Ops between a forest's function and one of several outputs",
    "targets/latent_normals.py": "Ops between entries of normal rows and their limits",
    "targets/log_sums.py": "Ops between a forest's function and logarithms of sums",
    "targets/noise.py": "Ops between a variable and the sd of rows",
    "targets/separate.py": "Ops between a forest's function and one of two outputs",
    "targets/rows.py": "Ops between a forest's function and a log-probability",
    "targets/terms.py": "the same",
    "terms/rows.py": "the distributions that a random walk is made of",
}
BY_POSITION = re.compile(
    r"owner\.inputs\[|^ *\(?[\w*]+, [^=\n]+ = [\w.]*owner\.inputs$", re.MULTILINE
)

# Package that is optional -> imported in functions, so that the rest does without it.
OPTIONAL = {"formulae", "graphviz", "matplotlib", "pandas", "polars", "shap", "sksurv"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_one_file_knows_the_positions_of_a_forests_inputs():
    found = {name_of(path) for path in TREES if BY_POSITION.search(path.read_text())}
    assert found == set(POSITIONS), "take distributions/forest_inputs.py"


def test_no_test_knows_them():
    others = set((ROOT / "tests").rglob("*.py")) - {Path(__file__)}
    found = [path for path in others if BY_POSITION.search(path.read_text())]
    assert found == [], "take pymc_trees.distributions.forest_inputs"


@pytest.mark.parametrize(
    ("line", "knows"),
    [
        ("X = forest.owner.inputs[2].data", True),
        ("    X, grid, *_ = forest.owner.inputs", True),
        ("for v in var.owner.inputs:", False),
        ("seeing = sees(other.owner.inputs)", False),
    ],
)
def test_positions_are_seen(line, knows):
    assert bool(BY_POSITION.search(line)) is knows


def inner_imports(tree) -> list[tuple[int, str]]:
    """Line and module of every import that is not at the top of a file."""
    top = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        if id(node) in top:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.lineno, "." * node.level + (node.module or "")))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.append((node.lineno, ast.unparse(node.args[0])))
    return found


# Import that is not at the top of its file -> why; it closes no circle.
LATE: dict[tuple[str, str], str] = {
    ("__init__.py", "'pymc_trees.hooks'"): "public names are loaded when they are first used",
    ("__init__.py", "f'pymc_trees.{_HOMES[name]}'"): "the same",
    ("core/compile/turns.py", "'fcntl'"): "Windows does not have it",
    ("distributions/data/named.py", "pymc.dims"): "importing it changes how PyMC reads every model",
    ("distributions/without_dims.py", "pymc.dims.distributions"): "the same",
    ("predictors/evaluation.py", "pymc_trees.progress"): "predictors need numpy alone",
    ("predictors/predictor.py", "xarray"): "the same",
    ("predictors/elsewhere/methods.py", "onnx"): "the same",
}


def test_imports_stand_at_the_top():
    found = {
        (name_of(path), module): line
        for path, tree in TREES.items()
        for line, module in inner_imports(tree)
        if module.split(".")[0] not in OPTIONAL
    }
    assert set(found) == set(LATE), "an import in a function hides a circle from the contracts"


def test_inner_imports_are_seen():
    source = "import a\ndef f():\n    from b import c\n    import d.e\nclass K:\n    import g\n"
    assert [module for _, module in inner_imports(ast.parse(source))] == ["b", "d.e", "g"]


def imported(path: Path) -> set[Path]:
    """Files of the package that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(TREES[path]):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            place = ROOT / name.replace(".", "/")
            found |= {place.with_suffix(".py"), place / "__init__.py"} & set(TREES)
    return found


def test_no_import_closes_a_circle():
    """`__init__` files apart, which list the modules of their folders."""
    graph = {
        path: {p for p in imported(path) if p.name != "__init__.py"}
        for path in TREES
        if path.name != "__init__.py"
    }
    while free := {path for path, needs in graph.items() if not needs & set(graph)}:
        graph = {path: needs for path, needs in graph.items() if path not in free}
    assert sorted(map(name_of, graph)) == [], "these files import each other"


def test_mondrian_estimators_import_core_alone():
    allowed = ("core/compile/", "core/interrupts.py", "mondrian/", "arguments.py", "progress.py")
    allowed += ("predictors/",)  # numpy alone
    found = {
        (name_of(path), name_of(other))
        for path in TREES
        if name_of(path).startswith("mondrian/")
        for other in imported(path)
        if not name_of(other).startswith(allowed) and other != PACKAGE / "__init__.py"
    }
    assert found == set()


def test_test_files_have_names_of_their_own():
    """pytest takes two files of one name for one module, when both are collected."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
