"""A predictor in a file: the same one again, in any process, or an error."""

import json
import pickle
import re
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from support import predictor_models as models

import pymc_trees as pmt
from pymc_trees.predictors import file
from pymc_trees.predictors.packed import PackedForest

STORED = Path(__file__).parent / "version_1.pmt"
"""Written by the first release of the format."""
ROWS = [
    {"a": 0.3, "b": 0.5, "c": 0.2, "town": "Bonn", "size": "S"},
    {"a": 0.9, "b": None, "c": None, "town": "Ulm", "size": None},
]
CORRUPTIONS = 2_000


@pytest.fixture(scope="module")
def predictor():
    case = models.mixed()
    return pmt.predictor(case.idata, case.model)


@pytest.fixture
def path(predictor, tmp_path):
    return predictor.save(tmp_path / "fit.pmt")


CASES = {
    "expressions": models.expressions,
    "soft": models.soft,
    "slopes": models.linear,
    "ordered": lambda: models.response("ordered logistic"),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_file_holds_the_predictor(kind, tmp_path):
    case = CASES[kind]()
    predictor = pmt.predictor(case.idata, case.model)
    again = pmt.load(predictor.save(tmp_path / "fit.pmt"))
    assert again.draws(case.new).identical(predictor.draws(case.new))
    assert repr(again) == repr(predictor)
    assert again.save(tmp_path / "again.pmt").read_bytes() == (tmp_path / "fit.pmt").read_bytes()


def test_another_process_writes_and_this_one_reads(predictor, path, tmp_path):
    other = tmp_path / "other.pmt"
    code = f"import pymc_trees; pymc_trees.load({str(path)!r}).thinned(4).save({str(other)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    expected = predictor.thinned(4)
    assert (pmt.load(other).predict(ROWS, "sd") == expected.predict(ROWS, "sd")).all()


def test_reading_and_predicting_loads_nothing_else(path):
    code = f"""
import sys
import pymc_trees
heavy = ("pymc", "pytensor", "numba", "xarray", "pandas", "scipy", "sklearn", "arviz", "rich")
assert not [name for name in heavy if name in sys.modules], "import"
predictor = pymc_trees.load({str(path)!r})
predictor.predict({ROWS!r}, quantiles=(0.05, 0.95))
assert not [name for name in heavy if name in sys.modules], "predict"
from pymc_trees import BART
import pymc
from pymc_trees.hooks.wrap import WRAPPED
assert WRAPPED and any(step.__module__.startswith("pymc_trees") for step in
                       pymc.step_methods.STEP_METHODS), "hooks"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_of_the_first_format_are_read():
    found = pmt.load(STORED).predict(ROWS, quantiles=(0.25, 0.75))
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-12)


EXPECTED = [[-1.2638375014450591, 0.7060781139178194], [-0.2615695702801255, 0.8398135240184218]]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """A file with bytes flipped, put in, taken out, or with an end that is lost."""
    changed, kind = bytearray(content), rng.integers(5)
    at = int(rng.integers(len(content)))
    if kind <= 1:
        for k in rng.integers(len(content), size=rng.integers(1, 4)):
            changed[k] ^= int(rng.integers(1, 256))
    elif kind == 2:
        return content[:at]
    elif kind == 3:
        del changed[at : at + int(rng.integers(1, 64))]
    else:
        changed[at:at] = rng.bytes(int(rng.integers(1, 64)))
    return bytes(changed)


def test_damage_is_an_error(path, tmp_path):
    """20,000 were tried once, with the same result."""
    content, rng, other = path.read_bytes(), np.random.default_rng(1), tmp_path / "damaged.pmt"
    for _ in range(CORRUPTIONS):
        changed = damaged(content, rng)
        if changed == content:
            continue
        other.write_bytes(changed)
        with pytest.raises(ValueError, match="is no predictor that can be read"):
            pmt.load(other)


def test_arrays_that_are_no_forest_are_refused(predictor):
    """Even where checksums match."""
    forest, rng = predictor._evaluator.forests[0], np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        arrays = {name: one.copy() for name, one in forest.arrays.items()}
        name = rng.choice(["sizes", "rules", "places", "levels", "cuts"])
        one = arrays[name].reshape(-1)
        one[rng.integers(one.size)] = rng.choice([0, 1, 2, 200])
        try:
            changed = PackedForest(arrays, forest.about)
        except ValueError as error:
            assert "not those of a forest" in str(error)
            refused += 1
            continue
        links = changed.links  # leads somewhere
        assert links.right.max() < links.roots[-1] and links.depth <= len(arrays["rules"])
    assert refused > 100


def test_memory_is_bounded_before_it_is_taken(path):
    with pytest.raises(ValueError, match="more than max_bytes=1000"):
        pmt.load(path, max_bytes=1000)
    bomb = zlib.compress(bytes(10_000_000))
    head = file._HEAD.pack(file.MAGIC, 1, 1, 0)
    entry = file._ENTRY.pack(len(bomb), 100, file.checksum(bomb))
    length = len(head) + len(entry) + 16 + len(bomb)
    head = file._HEAD.pack(file.MAGIC, 1, 1, length) + entry
    with pytest.raises(file.DamagedError, match="another length"):
        file.unpacked(head + file.checksum(head) + bomb, 1000)


def test_a_later_format_is_named(path):
    content = bytearray(path.read_bytes())
    content[8:12] = struct.pack("<I", 2)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="format 2, and this release reads up to 1"):
        pmt.load(path)


def test_a_file_holds_no_row_and_no_python_object(path):
    about, arrays = file.unpacked(path.read_bytes(), 2**30)
    assert all(one.dtype.kind in "biuf" for one in arrays.values())
    sizes = {one.size for name, one in arrays.items() if not name.startswith("forest")}
    assert models.N not in sizes and "pickle" not in Path(file.__file__).read_text()
    assert re.search("Bonn", str(about))


def test_it_is_pickled_and_shows_progress(predictor, capsys):
    again = pickle.loads(pickle.dumps(predictor))
    assert (again.predict(ROWS, progressbar=True) == predictor.predict(ROWS)).all()


def other_pythons():
    """Interpreters of other minor versions that the package supports and that have numpy."""
    found = []
    for minor in range(12, 21):
        name = shutil.which(f"python3.{minor}")
        if minor != sys.version_info.minor and name:
            tried = subprocess.run([name, "-c", "import numpy"], capture_output=True)
            found += [name] if tried.returncode == 0 else []
    return found


def test_another_python_reads_it(path, predictor):
    pythons = other_pythons()
    if not pythons:
        pytest.skip("no other Python of at least 3.12 here has numpy")
    code = (
        "import json, sys; import pymc_trees as pmt; rows = json.loads(sys.argv[2]);"
        "print(json.dumps(pmt.load(sys.argv[1]).predict(rows, 'sd').tolist()))"
    )
    package = str(Path(pmt.__file__).parents[1])
    for python in pythons:
        done = subprocess.run(
            [python, "-c", code, str(path), json.dumps(ROWS)],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert done.returncode == 0, done.stderr
        expected = predictor.predict(ROWS, "sd")
        np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-12, atol=0)
