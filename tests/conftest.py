"""The same examples on every machine: a failure here is a failure everywhere."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "priorveil",
    derandomize=True,
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("priorveil")

# Whoever runs the tests in the background has ctrl-C ignored, and so would the programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
