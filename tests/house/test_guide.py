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


def changed(code: str, *pairs: tuple[str, str]) -> str:
    """Code with something put in place of what it says."""
    for said, put in pairs:
        assert said in code, f"the page says {said} no more"
        code = code.replace(said, put)
    return code


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
    here = set(re.findall(r'blocks\(\s*"([\w/]+)"', Path(__file__).read_text()))
    assert with_code <= here | ELSEWHERE.keys()
    assert len(with_code) > 15
    for page, file in ELSEWHERE.items():
        assert page in (DOCS.parent / "tests" / file).read_text()


@pytest.fixture
def names(monkeypatch, tmp_path) -> dict:
    """What pages take for granted: rows to train, new ones, and the packages."""
    sample_few(monkeypatch, DRAWS)
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    rng = np.random.default_rng(1)
    X, y = rng.random((40, 3)), rng.normal(size=40)
    columns = {"dose": rng.integers(0, 2, 40), "age": X[:, 1], "site": rng.choice(["a", "b"], 40)}
    frame = pd.DataFrame(columns)
    yield {
        **{"np": np, "pm": pm, "pmt": pmt},
        **{"X": X, "y": y, "X_train": X, "y_train": y, "X_new": X[:7], "table": X},
        **{"frame": frame, "new_frame": frame[:7], "labels": (3 * X[:, 0]).astype(int)},
    }
    plt.close("all")


@pytest.mark.full
def test_prediction_saving_and_going_on(names):
    X = names["X_train"]
    run(blocks("index")[0], names)
    declare, check, table, chains, save, elsewhere, resume, checkpoint, dask, ray = blocks(
        "prediction"
    )
    run(declare, names)
    assert names["pred"].predictions["mu"].shape == (2, DRAWS, 7)
    for code in (check, table, chains, save):
        run(code, names)
    model = names["model"]
    pm.set_data({"X": X}, model=model)
    names["build_model"] = lambda X, y: model
    run(elsewhere, names)
    pm.set_data({"X": X}, model=model)
    run(changed(resume, ("draws=1000", f"draws={DRAWS}, cores=1")), names)
    assert names["idata"].posterior.sizes["draw"] == 2 * DRAWS
    for draws in (DRAWS, 2 * DRAWS):  # a run, and one that goes on from its file
        few = ("5000", f"{draws}"), ("model, 4,", "model, 2, cores=1,")
        run(changed(checkpoint, *few, ("draws - made", "draws - made, cores=1")), names)
        assert names["idata"].posterior.sizes["draw"] == draws
    assert "dask" in dask and "ray" in ray, "run by test_clusters"
    for code in (*blocks("which_sampler"), *blocks("papers/wtw")):
        run(code, names)


@pytest.mark.full
def test_a_large_table(names):
    (code,) = blocks("scale")
    run(changed(code, ("        4,\n", "        2,\n        cores=1,\n")), names)
    assert set(names["idata"].posterior) == {"mu_forest", "sigma"}


@pytest.mark.full
def test_frames_and_questions(names):
    (declare,) = blocks("data")
    run(declare, names)
    pmt.set_data({"X": names["frame"]}, model=names["model"])
    for code in blocks("questions"):
        run(code, names)
    assert names["effect"].dims == ("chain", "draw", "dose_contrast")
    assert set(names["found"]["feature"].values) == {"dose", "age", "site"}


@pytest.mark.full
def test_mondrian_forests(names):
    names["stream"] = [(names["X"], names["labels"])] * 2
    names |= {"y_new": names["y"][:7], "X_test": names["X"], "y_test": names["y"]}
    first, inspection, stream, prior, checks = blocks("mondrian")
    for code in (first, inspection, *blocks("mondrian_streams"), checks, prior):
        run(code, names)
    assert names["mean"].shape == (7,)
    run(stream, names | {"stream": [(names["X"], names["y"])] * 2})


# Few draws do not converge.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto distribution:UserWarning")
def test_estimators(names):
    fit, asked, search, compare = blocks("estimators")
    run(fit, names)
    run(asked, names)
    few = ("[50, 200]", "[5]"), ("[1, 2, 3]", "[2]"), ("cv=5", "cv=2")
    run(changed(search, *few), names)
    run(compare, names)
    assert set(names["loo"]) == {"forest", "constant", "student"}


@pytest.mark.full
def test_one_tree_and_its_evidence(names):
    grow, evidence = blocks("tree_smc")
    run(
        changed(grow, ("n_classes=10", "n_classes=3"), ("1000", "20")),
        names | {"y": names["labels"]},
    )
    run(changed(evidence, ("2000", "20")), names)
    assert len(names["weights"]) == 9


# Two chains of five draws say nothing, and say so.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_soft_trees(names):
    code, of_classes = blocks("dcc_tree")
    few = "iterations=3, draws=5, chains=2, local_draws=5, tune=20, initial_trees=5, cores=1, "
    run(changed(code, ("random_seed=1", f"{few}progressbar=False, random_seed=1")), names)
    assert names["idata"].posterior["mu"].shape == (2, 5, 40)
    run(of_classes, names)
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
