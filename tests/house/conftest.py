"""Fixtures of the house tests."""

import pytest
from support.stored.results import ROOT


@pytest.fixture
def benchmarks(monkeypatch):
    """The benchmarks, which are found in the repository and not in the archive of sources."""
    monkeypatch.syspath_prepend(ROOT)
    pytest.importorskip("benchmarks")
