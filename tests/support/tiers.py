"""Which cases of a test are in the quick tier (`pytest`) and which in the rest (`pytest -m full`).

The tiers differ in the number of cases and of draws, never in a tolerance.
"""

import pytest


def tiers(cases, quick):
    """Cases for `pytest.mark.parametrize`; those not listed in ``quick`` are left to the rest."""
    cases, quick = list(cases), list(quick)
    assert all(case in cases for case in quick), "a quick case that is none"
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=_marks(case in quick))
        for case in cases
    ]


def _marks(quick):
    return () if quick else pytest.mark.full
