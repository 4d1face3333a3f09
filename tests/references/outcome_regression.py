"""A randomised answer as a covariate: figures of the maths page, section 13."""

from __future__ import annotations

# The data set `minarets` of the R package RRreg (Heck and Moshagen 2018), rows with randomized = 1:
# left_right ~ answer + age, with a share of compliant carriers, and the same share of carriers at every age. The
# maximum of the joint likelihood by an optimiser in R; RRreg itself stops at -3364.496.
MINARETS_LOGLIK = -3364.0142
MINARETS_COEFFICIENTS = (-1.56095, -0.00145, 1.36155)  # intercept, age, answer
MINARETS_SIGMA = 1.74990
