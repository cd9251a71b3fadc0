"""When does it happen? Times to an event, censored, of several kinds, or again and again.

Reading order: `long_table` (checks of times, events and grids, and the long form),
`models` (the PyMC models of hazards and of log times), `laws` (the distribution of times, read from
a model), `curves` (survival functions, cumulative incidence, expected numbers of events), `scores`
(concordance and Brier scores).

May import: `posterior`, `distributions` and what is below them; scikit-survival in `scores`.
"""

import pymc_trees.hooks  # noqa: F401, models that are built here need the step methods
from pymc_trees.survival.curves import (
    cumulative_incidence,
    expected_events,
    restricted_mean,
    survival_function,
)
from pymc_trees.survival.long_table import LongForm, long_form
from pymc_trees.survival.models import (
    accelerated_failure_time,
    competing_risks,
    discrete_time,
    recurrent_events,
)
from pymc_trees.survival.scores import brier_score, concordance

__all__ = [
    "LongForm",
    "accelerated_failure_time",
    "brier_score",
    "competing_risks",
    "concordance",
    "cumulative_incidence",
    "discrete_time",
    "expected_events",
    "long_form",
    "recurrent_events",
    "restricted_mean",
    "survival_function",
]
