"""What messages propose, and whether it works: one row for each message, by subject."""

from support.remedies.answers import QUESTIONS
from support.remedies.declarations import DECLARATIONS
from support.remedies.inputs import INPUTS
from support.remedies.likelihoods import LIKELIHOODS
from support.remedies.models import CAUSAL, ESTIMATORS, SURVIVAL
from support.remedies.pictures import DRAWS, PICTURES
from support.remedies.predictors import PREDICTORS
from support.remedies.runs import ROOM, RUNS, SHARDS, SMC
from support.remedies.samplers import SOFT_STEPS, STEP_METHODS

ROWS = [
    *[*INPUTS, *DECLARATIONS],
    *[*LIKELIHOODS, *STEP_METHODS, *SOFT_STEPS],
    *[*QUESTIONS, *DRAWS, *PICTURES, *PREDICTORS],
    *[*SHARDS, *SMC, *RUNS, *ROOM],
    *[*ESTIMATORS, *CAUSAL, *SURVIVAL],
]
