"""What an edit of one file recompiles: the kernels that depend on it, and no others.

The files are those of a small family of kernels in a copy of the package: two types of one contract
(`first`, `second`), one whose implementation is a kernel of another file (`third`), a type that a
kernel makes (`made`), whose implementation is registered in a file that the kernel does not import
(`elsewhere`), a file that replaces a default (`late`), one that registers what the kernel has no
use for (`far`), two kernels that call one of a tuple (`sums`), a kernel that other compiled code
calls by name (`named`), and a type of a user (`outside`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pymc_trees

NJIT = "from pymc_trees.core.compile.cache import njit\n"
TYPE = NJIT + "from typing import NamedTuple\n"
TINY = "pymc_trees.core.tiny"
FILES = {
    "contract": NJIT
    + """
from typing import NamedTuple
from pymc_trees.core.compile.dispatch import generic, registrar

class Kernels(NamedTuple):
    weigh: object

@generic("leaf")
def weigh(leaf, x):
    "Weight of a number."

def _untinted(leaf, x):
    return 0.0

@generic("leaf", default=njit(cache=True)(_untinted))
def tint(leaf, x):
    "Nothing, for most."

register = registrar(Kernels)
""",
    "more": """
from pymc_trees.core.compile.dispatch import generic

@generic("leaf")
def colour(leaf, x):
    "Of no use here."
""",
    "helper": f"""{NJIT}
@njit(cache=True)
def shift(x):
    return x + 1.0
""",
    "first": f"""{TYPE}
from {TINY}.contract import register
from {TINY}.helper import shift

class First(NamedTuple):
    number: float

@njit(cache=True)
def _weigh(leaf, x):
    return shift(x) * 10.0

register(First, weigh=_weigh)
""",
    "second": f"""{TYPE}
from {TINY}.contract import register

class Second(NamedTuple):
    number: float

@njit(cache=True)
def _weigh(leaf, x):
    return leaf.number * 7.0

register(Second, weigh=_weigh)
""",
    "shared": f"""{NJIT}
@njit(cache=True)
def one(leaf, x):
    return 1.0

@njit(cache=True)
def two(leaf, x):
    return 2.0
""",
    "third": f"""
from typing import NamedTuple
from pymc_trees.core.compile import dispatch
from {TINY}.contract import register
from {TINY}.shared import one, two

class Third(NamedTuple):
    number: float

kernels = {{"weigh": one}}
register(Third, **kernels)
""",
    "late": f"""
from {TINY}.shared import two
from {TINY}.third import Third
from pymc_trees.core.compile.dispatch import register
register(Third, tint=two)
""",
    "each": f"""{NJIT}
from {TINY}.contract import weigh
from pymc_trees.core.compile.dispatch import generic, register

@generic("leaves")
def each(leaves, x):
    "Sum over several."

@njit(cache=True)
def _each(leaves, x):
    if len(leaves) == 0:
        return 0.0
    return weigh(leaves[0], x) + each(leaves[1:], x)

register(tuple, each=_each)
""",
    "sums": f"""{NJIT}
from {TINY}.each import each

@njit(cache=True)
def single(leaves, x):
    return each(leaves, x)

@njit(cache=True)
def double(leaves, x):
    return 2.0 * each(leaves, x)
""",
    "made": "from typing import NamedTuple\nclass Made(NamedTuple):\n    number: float\n",
    "elsewhere": f"""{NJIT}
from {TINY}.contract import register
from {TINY}.made import Made

@njit(cache=True)
def _weigh(leaf, x):
    return 100.0

register(Made, weigh=_weigh)
""",
    "far": f"""{NJIT}
from {TINY}.first import First
from {TINY}.more import colour
from pymc_trees.core.compile.dispatch import register

@njit(cache=True)
def _colour(leaf, x):
    return 3.0

register(First, colour=_colour)
""",
    "sweep": f"""{NJIT}
from {TINY}.contract import tint, weigh
from {TINY}.made import Made

@njit(cache=True)
def sweep(leaf, x):
    return weigh(leaf, x) + weigh(Made(x), x) + tint(leaf, x)
""",
    "alone": f"""{NJIT}
@njit(cache=True)
def alone(x):
    return x - 1.0
""",
    "named": """
from numba import types
from pymc_trees.core.compile.cache import described
from pymc_trees.core.compile.external import external

def by_name(function):
    @external(types.int64(types.int64), of=described(function.py_func))
    def apply(n):
        return int(function(float(n)))

    return apply
""",
    "__init__": "",
}
OUTSIDE = f"""{TYPE}
from {TINY}.contract import register

class Outside(NamedTuple):
    number: float

@njit(cache=True)
def _weigh(leaf, x):
    return 5.0

@njit(cache=True)
def own(x):
    return 2.0 * x

register(Outside, weigh=_weigh)
"""
CHILD = f"""
import importlib, json, sys

imports, *edit = json.loads(sys.argv[1])
for name in imports:
    importlib.import_module(f"{TINY}." + name)
import outside
from {TINY} import alone, elsewhere, first, helper, named, second, sums, sweep, third

for path, text in edit:  # while this process runs
    open(path, "w").write(text)

calls = {{
    "first": (sweep.sweep, first.First(2.0), 3.0),
    "second": (sweep.sweep, second.Second(2.0), 3.0),
    "third": (sweep.sweep, third.Third(2.0), 3.0),
    "single": (sums.single, (first.First(2.0),), 3.0),
    "double": (sums.double, (first.First(2.0),), 3.0),
    "outside": (sweep.sweep, outside.Outside(2.0), 3.0),
    "own": (outside.own, 3.0),
    "alone": (alone.alone, 3.0),
    "named": (named.by_name(helper.shift), 3),
}}
values, hits = {{}}, {{}}
for name, (kernel, *arguments) in calls.items():
    values[name] = kernel(*arguments)
    types = None if name == "named" else kernel.signatures[-1]
    hits[name] = kernel._kernel.cache_hits if types is None else kernel.stats.cache_hits[types]
print(json.dumps([values, hits]))
"""
VALUES = {
    "first": 140.0,
    "second": 114.0,
    "third": 101.0,
    "single": 40.0,
    "double": 80.0,
    "outside": 105.0,
    "own": 6.0,
    "alone": 2.0,
    "named": 4,
}
LEAVES = {"first", "second", "third", "outside"}
OF_FIRST = {"first", "single", "double"}


def run(place, code, *imports, edits=()):
    """Values of the kernels in a process, and the names of those that it compiled."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps([imports, *edits])],
        env=os.environ
        | {"PYTHONPATH": str(place), "NUMBA_CACHE_DIR": str(code), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    values, hits = json.loads(done.stdout)
    return values, {name for name, n in hits.items() if not n}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A copy of the package with these files, and the folder with its compiled code."""
    place = tmp_path_factory.mktemp("place")
    package = Path(pymc_trees.__file__).parent
    for name in ("__init__.py", "_version.py", "unread_tables.py", "core"):
        source, target = package / name, place / "pymc_trees" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    tiny = place / "pymc_trees" / "core" / "tiny"
    tiny.mkdir()
    for name, text in FILES.items():
        (tiny / f"{name}.py").write_text(text)
    (place / "outside.py").write_text(OUTSIDE)
    assert run(place, place / "code") == (VALUES, set(VALUES))
    return place


@pytest.fixture
def code(kept, tmp_path):
    """That folder, for one test."""
    shutil.copytree(kept / "code", tmp_path / "code")
    return tmp_path / "code"


def test_without_an_edit_all_are_loaded(kept, code):
    assert run(kept, code) == (VALUES, set())


def test_modules_that_a_kernel_has_no_use_for_change_nothing(kept, code):
    assert run(kept, code, "more", "far") == (VALUES, set())


def test_an_implementation_registered_later_is_not_overlooked(kept, code):
    tinted = VALUES | {"third": 103.0}
    assert run(kept, code, "late") == (tinted, {"third"})
    assert run(kept, code, "late") == (tinted, set())
    assert run(kept, code)[0] == VALUES


def test_an_edit_while_a_process_runs_is_not_taken_for_what_it_runs(kept, tmp_path):
    path = kept / "pymc_trees" / "core" / "tiny" / "helper.py"
    text = path.read_text()
    edited = text.replace("+ 1.0", "+ 2.0")
    try:
        assert run(kept, tmp_path, edits=[(str(path), edited)]) == (VALUES, set(VALUES))
        values, _ = run(kept, tmp_path)
        assert values == VALUES | {"first": 150.0, "single": 50.0, "double": 100.0, "named": 5}
    finally:
        path.write_text(text)


@pytest.mark.parametrize(
    ("file", "old", "new", "values", "anew"),
    [
        (
            "core/tiny/first",
            "* 10.0",
            "* 20.0",
            {"first": 180.0, "single": 80.0, "double": 160.0},
            OF_FIRST,
        ),
        ("core/tiny/second", "* 7.0", "* 8.0", {"second": 116.0}, {"second"}),
        ("core/tiny/third", '"weigh": one', '"weigh": two', {"third": 102.0}, {"third"}),
        (
            "core/tiny/third",
            "register(Third, **kernels)",
            "dispatch.register(Third, tint=two)\nregister(Third, **kernels)",
            {"third": 103.0},
            {"third"},
        ),
        (
            "core/tiny/helper",
            "+ 1.0",
            "+ 2.0",
            {"first": 150.0, "single": 50.0, "double": 100.0, "named": 5},
            OF_FIRST | {"named"},
        ),
        (
            "core/tiny/elsewhere",
            "100.0",
            "200.0",
            {"first": 240.0, "second": 214.0, "third": 201.0, "outside": 205.0},
            LEAVES,
        ),
        ("core/tiny/contract", "Weight of", "The weight of", {}, LEAVES | OF_FIRST | {"own"}),
        ("core/tiny/far", "3.0", "4.0", {}, set()),
        ("core/tiny/alone", "- 1.0", "- 2.0", {"alone": 1.0}, {"alone"}),
        ("core/tiny/named", "int(function", "2 * int(function", {"named": 8}, {"named"}),
        ("core/compile/pointer", "Named tuples that", "Tuples that", {}, set(VALUES)),
        ("../outside", "return 5.0", "return 6.0", {"outside": 106.0}, {"outside", "own"}),
    ],
)
def test_an_edit_recompiles_what_depends_on_it(kept, code, file, old, new, values, anew):
    path = kept / "pymc_trees" / f"{file}.py"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    try:
        assert run(kept, code) == (VALUES | values, anew)
        assert run(kept, code) == (VALUES | values, set())
    finally:
        path.write_text(text)
    assert run(kept, code)[0] == VALUES  # the new code is not taken for the old


def test_what_overload_of_numba_makes_calls_no_kernel():
    """numba types it once in a process: only the first caller would know what it depends on."""
    found = {}
    for path in (Path(pymc_trees.__file__).parent / "core").rglob("*.py"):
        for name in re.findall(r"^@overload\((\w+)", path.read_text(), re.MULTILINE):
            found[name] = path.name
    assert found == {"call_at": "address.py"}
