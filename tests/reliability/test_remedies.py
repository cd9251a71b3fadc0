"""Each message that proposes something: what it proposes is done, and comes through.

The rows stand in the modules of `support.remedies`; `house/test_messages.py` asks for one for each
message that proposes something.
"""

import re

import numpy as np
import pytest
from house.test_messages import MESSAGES, explains
from sklearn.exceptions import ConvergenceWarning
from support.odd.table import X, Y
from support.remedies import ROWS

import pymc_trees as pmt
from pymc_trees import causal

FEW = {"draws": 4, "tune": 2, "chains": 2, "cores": 1, "random_state": 1}

pytestmark = pytest.mark.usefixtures("quick_compile")


def whole(message: str) -> str:
    """Pattern of a message, with anything for each value put in."""
    return ".*".join(re.escape(part) for part in message.split("…"))


@pytest.mark.parametrize(
    "row",
    [pytest.param(r, marks=pytest.mark.full if r.full else ()) for r in ROWS],
    ids=[r.message for r in ROWS],
)
def test_what_a_message_proposes_comes_through(row):
    possible = [message for message in MESSAGES if explains(row.message, message)]
    with pytest.raises(Exception) as refused:  # noqa: PT011  (a warning is an error here)
        assert row.wrong() is None
    said = " ".join(str(refused.value).split())
    assert any(re.search(whole(message), said) for message in possible), said
    assert row.right
    for proposal in row.right:
        found = proposal()
        assert found is not None
        assert not (isinstance(found, bool) and not found)


CONVERGES = {
    "noise of its own": lambda: pmt.BARTRegressor(m=2, scale_trees=2, **FEW).fit(X, Y),
    "one noise": lambda: pmt.BARTRegressor(m=2, noise="constant", **FEW).fit(X, Y),
    "classes": lambda: pmt.BARTClassifier(m=2, **FEW).fit(X, np.arange(20) % 2),
    **{
        f"causal, {forests}": lambda forests=forests: causal.BayesianCausalForest(
            m=2, m_effect=2, forests=forests, **FEW
        ).fit(X, Y, np.arange(20) % 2, propensity=np.full(20, 0.5))
        for forests in ("two", "one", "arms")
    },
}


@pytest.mark.full
@pytest.mark.parametrize("fit", CONVERGES.values(), ids=CONVERGES)
def test_the_call_of_the_warning_that_chains_disagree_works(fit, monkeypatch):
    monkeypatch.setattr("pymc_trees.estimators.base.R_HAT", 0.0)
    with pytest.warns(ConvergenceWarning) as said:
        estimator = fit()
    (call,) = re.findall(r"pymc_trees\.\w+\(.*?\)", str(said[0].message))
    drawn = eval(call, {"pymc_trees": pmt, "estimator": estimator})
    assert drawn.viz["plot"].to_dataset().data_vars.keys() >= {"r_hat", "ess_bulk", "ess_tail"}
