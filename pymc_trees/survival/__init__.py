"""When does it happen? Times to an event, censored, of several kinds, or again and again.

Reading order: `outcomes` (checks of times, events and grids), `long_table` (the long form),
`long_models` and `time_models` (the PyMC models of hazards and of log times), `laws` (the
distribution of times, read from a model), `curves` (survival functions), `causes` (cumulative
incidence), `histories` (expected numbers of events), `scores` (concordance and Brier scores).

May import: `posterior`, `distributions` and what is below them; scikit-survival in `scores`.
"""

import pymc_trees.hooks  # noqa: F401, models that are built here need the step methods
from pymc_trees.survival.causes import cumulative_incidence
from pymc_trees.survival.curves import restricted_mean, survival_function
from pymc_trees.survival.histories import expected_events
from pymc_trees.survival.long_models import competing_risks, discrete_time, recurrent_events
from pymc_trees.survival.long_table import LongForm, long_form
from pymc_trees.survival.scores import brier_score, concordance
from pymc_trees.survival.time_models import accelerated_failure_time

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
