"""The pages of the guide tell what runs: their code, on small data and with few draws.

The pages of pictures, of survival, of treatments and the tour have tests of their own.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from support.few_draws import sample_few

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
DOCS = Path(__file__).parents[2] / "docs"
DRAWS = 13
"""Of two chains: the fewest from which ArviZ computes Pareto k."""
FEW = {
    r"draws=\d{3,}": f"draws={DRAWS}",
    r"tune=\d{3,}": f"tune={DRAWS}",
    r"every=\d+": "every=5",
}
"""Numbers of draws as pages have them, and as tests do."""


def blocks(page: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run(code: str, names: dict) -> None:
    """Run a block, with few draws."""
    for pattern, few in FEW.items():
        code = re.sub(pattern, few, code)
    exec(code, names)


def run_page(page: str, names: dict, *changes: tuple[str, str], but: tuple[str, ...] = ()) -> None:
    """Run the blocks of a page in their order, with something put in place of what they say.

    Parameters
    ----------
    names : dict
        The data that the page takes for granted; what it imports and computes is added.
    *changes : pair of str
        What a block says, and what is put in its place.
    but : tuple of str
        Packages whose blocks are run elsewhere.
    """
    left = dict(changes)
    for code in blocks(page):
        if any(re.search(rf"^import {package}$", code, re.MULTILINE) for package in but):
            continue
        for said in [said for said in left if said in code]:
            code = code.replace(said, left.pop(said))
        run(code, names)
    assert not left, f"docs/{page}.md says {list(left)} no more"


ELSEWHERE = {
    "tour": "house/test_tour.py",
    "pictures": "plots/test_pictures_page.py",
    "survival": "survival/test_survival_page.py",
    "causal": "causal/test_causal_page.py",
    "sharded": "support/guide_cluster.py",
}
"""Pages whose blocks are run by another file."""


def test_every_page_with_code_is_run():
    index = (DOCS / "index.md").read_text()
    trees = re.findall(r"^:caption: (?:Start|Guide)\n(.*?)^```$", index, re.DOTALL | re.MULTILINE)
    pages = re.findall(r"^[\w/]+$", "".join(trees), re.MULTILINE)
    with_code = {page for page in ["index", *pages] if blocks(page)}
    here = set(re.findall(r'run_page\(\s*"([\w/]+)"', Path(__file__).read_text()))
    assert with_code <= here | ELSEWHERE.keys()
    assert len(with_code) > 15
    for page, file in ELSEWHERE.items():
        assert page in (DOCS.parent / "tests" / file).read_text()


@pytest.fixture
def names(monkeypatch, tmp_path) -> dict:
    """What pages take for granted: rows to train, and new ones."""
    sample_few(monkeypatch, DRAWS)
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    rng = np.random.default_rng(1)
    X, y = rng.random((40, 3)), rng.normal(size=40)
    columns = {"dose": rng.integers(0, 2, 40), "age": X[:, 1], "site": rng.choice(["a", "b"], 40)}
    frame = pd.DataFrame(columns)
    yield {
        **{"X": X, "y": y, "X_train": X, "y_train": y, "X_new": X[:7], "table": X},
        **{"frame": frame, "new_frame": frame[:7], "labels": (3 * X[:, 0]).astype(int)},
    }
    plt.close("all")


def build_model(X, y):
    """What readers of the page on prediction have a function of their own for."""
    with pm.Model() as model:
        mu = pmt.BART("mu", pm.Data("X", X), y, m=50)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model


@pytest.mark.full
def test_prediction_saving_and_going_on(names):
    run_page("index", names)
    names["build_model"] = build_model
    few = ("model, 4,", "model, 2, cores=1,"), ("draws - made,", "draws - made, cores=1,")
    resumed = ("draws=1000", f"draws={DRAWS}, cores=1")
    run_page("prediction", names, resumed, ("5000", f"{DRAWS}"), *few, but=("joblib",))
    assert names["pred"].predictions["mu"].shape == (2, DRAWS, 7)
    assert names["idata"].posterior.sizes["draw"] == DRAWS
    checkpoint = next(code for code in blocks("prediction") if "checkpoint=file" in code)
    for said, put in (("5000", f"{2 * DRAWS}"), *few):  # a run that goes on from its file
        checkpoint = checkpoint.replace(said, put)
    run(checkpoint, names)
    assert names["idata"].posterior.sizes["draw"] == 2 * DRAWS
    run_page("which_sampler", names)
    run_page("papers/wtw", names)


@pytest.mark.full
def test_a_large_table(names):
    run_page("scale", names, ("        4,\n", "        2,\n        cores=1,\n"))
    assert set(names["idata"].posterior) == {"mu_forest", "sigma"}


@pytest.mark.full
def test_frames_and_questions(names):
    run_page("data", names)
    pmt.set_data({"X": names["frame"]}, model=names["model"])
    run_page("questions", names)
    assert names["effect"].dims == ("chain", "draw", "dose_contrast")
    assert set(names["found"]["feature"].values) == {"dose", "age", "site"}


@pytest.mark.full
def test_from_pymc_bart(names):
    run_page("from_pymc_bart", names)


@pytest.mark.full
def test_mondrian_forests(names):
    names |= {"y_new": names["y"][:7], "X_test": names["X"], "y_test": names["y"]}
    names["stream"] = Classes([(names["X"], names["labels"])] * 2, [(names["X"], names["y"])] * 2)
    run_page("mondrian_classes", names)
    run_page("mondrian", names)
    assert names["mean"].shape == (7,)
    run_page("mondrian_streams", names)


class Classes:
    """A stream of classes the first time, then of numbers, as the page has them."""

    def __init__(self, first, then):
        self.parts = [first]
        self.then = then

    def __iter__(self):
        return iter(self.parts.pop() if self.parts else self.then)


# Few draws do not converge.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto distribution:UserWarning")
def test_estimators(names):
    run_page("estimators", names, ("[50, 200]", "[5]"), ("[1, 2, 3]", "[2]"), ("cv=5", "cv=2"))
    assert set(names["loo"]) == {"forest", "constant", "student"}


@pytest.mark.full
def test_one_tree_and_its_evidence(names):
    few = ("n_classes=10", "n_classes=3"), ("1000", "20"), ("2000", "20")
    names["y"] = names["labels"]
    run_page("tree_smc", names, *few)
    assert len(names["weights"]) == 9


# Two chains of five draws say nothing, and say so.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_soft_trees(names):
    few = "iterations=3, draws=5, chains=2, local_draws=5, tune=20, initial_trees=5, cores=1, "
    run_page("dcc_tree", names, ("random_seed=1", f"{few}progressbar=False, random_seed=1"))
    assert names["idata"].posterior["mu"].shape == (2, 5, 40)
    assert names["model"]["y"].owner.op.name == "categorical"


@pytest.mark.full
@pytest.mark.parametrize(("cluster", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_clusters(cluster, package):
    """Chains of docs/prediction.md and shards of docs/sharded.md, in two worker processes."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'pymc_trees[{cluster}]'")
    tests = DOCS.parent / "tests"
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE".lstrip(",")
    paths = os.pathsep.join([str(DOCS.parent), str(tests)])
    # Under `uv run`, Ray would build the environment anew for its workers: minutes.
    ray = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    done = subprocess.run(
        [sys.executable, tests / "support" / "guide_cluster.py", cluster],
        env=os.environ | {"PYTENSOR_FLAGS": flags, "PYTHONPATH": paths} | ray,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-5000:]
