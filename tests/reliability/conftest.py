"""Hypothesis here: the same examples in every run, and no clock."""

import pymc  # noqa: F401  it sets the recursion limit, which must not happen inside a test
from hypothesis import HealthCheck, settings
from support.scale import scaled

settings.register_profile(
    "house",
    derandomize=True,
    deadline=None,
    max_examples=scaled(60),
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no defect
)
settings.load_profile("house")
