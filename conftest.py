"""For the examples in docstrings, which tests/conftest.py does not reach."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _examples_compile_quickly(request: pytest.FixtureRequest):
    """Graphs of examples, which run a model for a moment, are left to Python."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    import pytensor

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield
