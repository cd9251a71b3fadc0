"""Fixtures of the house tests."""

import pytest
from support.stored.results import ROOT


@pytest.fixture
def benchmarks(monkeypatch):
    """The benchmarks, which are found beside the tests and not in an installed package."""
    monkeypatch.syspath_prepend(ROOT)
    pytest.importorskip("benchmarks")
