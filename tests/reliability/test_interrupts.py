"""Interrupts at random times, in a loop, end no process and spoil nothing.

``PYMC_TREES_RELIABILITY_SCALE=50`` makes 500 and more of each kind.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.scale import scaled

STORM = Path(__file__).parents[1] / "support" / "storm.py"


KINDS = [
    (["step", "step apart"], 20),
    (["sample", "sample, 2 cores"], 10),
    (["tree_smc", "dcc", "prior", "posterior"], 10),
    (["fit", "fit, 2 jobs", "predict", "predict, 2 jobs"], 20),
    (["partial_fit", "partial_fit, 2 jobs"], 20),
]
if scaled(1) > 1:  # every interrupt ends processes that take seconds to begin
    KINDS += [(["tree_smc, 2 cores"], 10), (["dcc, 2 cores"], 10)]


@pytest.mark.full
@pytest.mark.parametrize("kinds, count", KINDS, ids=[kinds[0] for kinds, _ in KINDS])
def test_interrupts_at_any_time(kinds, count):
    run = subprocess.run(
        [sys.executable, STORM, str(scaled(count)), *kinds],
        capture_output=True,
        text=True,
        start_new_session=True,  # the interrupts are for this group of processes alone
        timeout=scaled(300),
    )
    found = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert run.returncode == 0, f"ended with {run.returncode} after {found}: {run.stderr[-3000:]}"
    assert [kind["kind"] for kind in found] == kinds
    for kind in found:
        assert not kind["errors"], kind["errors"][0]
        assert kind["raised"] + kind["returned"] == kind["sent"] == scaled(count)
