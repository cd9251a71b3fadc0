"""The README tells the truth: its blocks run from top to bottom, and its links hold anywhere."""

import re
import tomllib
from pathlib import Path

import pytest
from support.few_draws import sample_few

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


# PyTensor divides 0 by 0 where new inputs have as many rows as the old, and some cell is 0 in both.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
@pytest.mark.versions
def test_blocks_run_from_top_to_bottom(monkeypatch):
    sample_few(monkeypatch, 3)  # an estimator looks at R-hat from four on
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 3
    rows = len(names["X_new"])
    assert names["pred"].predictions["mu"].shape == (2, 3, rows)
    assert names["pred"].predictions["y"].shape == (2, 3, rows)
    assert names["quantiles"].shape == (rows, 2)
    assert names["mean"].shape == names["sd"].shape == (rows,)
    assert names["forest"].n_samples_seen_ == rows + len(names["X_train"])


def test_links_hold_on_an_index():
    """Outside the repository only whole addresses do; what they name exists here."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    links = re.findall(r"\]\(([^)]*)\)", README)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    raw = urls["Source"].replace("github.com", "raw.githubusercontent.com")
    places = {
        f"{urls['Documentation']}/": lambda name: ROOT / "docs" / name.replace(".html", ".md"),
        f"{urls['Source']}/blob/main/": lambda name: ROOT / name,
        f"{raw}/main/": lambda name: ROOT / name,
    }
    for base, file in places.items():
        names = [link.removeprefix(base) for link in links if link.startswith(base)]
        assert names, f"nothing links to {base}"
        assert [name for name in names if not file(name).is_file()] == []
