"""Hypothesis here: the same examples in every run, and no clock."""

from hypothesis import HealthCheck, settings
from scale import scaled

settings.register_profile(
    "house",
    derandomize=True,
    deadline=None,
    max_examples=scaled(60),
    # a fixture of the whole module may be shared by all examples
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")
