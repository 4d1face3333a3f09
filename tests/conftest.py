"""The same examples on every machine: a failure here is a failure everywhere."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "priorveil",
    derandomize=True,
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("priorveil")
