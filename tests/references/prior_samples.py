"""Priors from samples: figures of the maths page, section 15, computed there without this package's code."""

from __future__ import annotations

# The true shares; counts are n times these. LIP 1, `Distribution`, delta 1e-6.
SHARES = (0.69, 0.11, 0.13, 0.07)
KNOWN_PRIOR = 3.510  # N times the variance at the truth, of the plan for the shares themselves
# People in the sample; N times the variance at the truth; the level of the plan for the counts over the box.
ROWS = ((100, 7.24, 1.665), (1_000, 4.73, 1.241), (10_000, 3.93, 1.077), (100_000, 3.64, 1.024))
WORST_OF_THOUSAND = 4.865  # `expected_mse` of the plan for 1,000 people

# Levels after 1 to 6 fresh reports of a remembered one: (.5, .3, .2), the remembered report by the LIP 2
# `Distribution` plan, the fresh layer `.5 I + .5 / K`.
TWO_LAYERS = (0.832, 1.439, 1.821, 1.952, 1.988, 1.997)
