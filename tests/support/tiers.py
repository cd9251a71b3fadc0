"""Which cases of a test are in the quick tier (`pytest`) and which in the rest (`pytest -m full`).

The tiers differ in the number of cases and of draws, never in a tolerance.
"""

import pytest


def tiers(cases, quick, single=False):
    """Cases for `pytest.mark.parametrize`; those not listed in ``quick`` are left to the rest.

    A tuple holds one value for each of several names, unless ``single``.
    """
    cases, quick = list(cases), list(quick)
    assert all(case in cases for case in quick), "a quick case that is none"
    return [
        pytest.param(
            *((case,) if single or not isinstance(case, tuple) else case),
            marks=() if case in quick else pytest.mark.full,
        )
        for case in cases
    ]
