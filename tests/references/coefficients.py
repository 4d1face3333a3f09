"""Designs for coefficients: figures of the maths page, section 13, computed there without this package's code."""

from __future__ import annotations

# N times the summed variance of the slopes of a weak binary covariate, at the shares (.2, .1, .7), LIP 1: four times
# the error of the rows of log-odds, under plans for three queries. `W = D` has the rows of diag(P) - P P' without the
# last.
SHARES = (0.2, 0.1, 0.7)
LOG_ODDS_ERROR = 116.446
SLOPE_ERRORS = {"log_odds": 465.785, "W = D": 543.0, "distribution": 468.5}

# Two equal groups with the intercept -1.6 and the slope .5, LIP 1 at the margin: people for power .8 at 5 %, two-sided.
INTERCEPT_AND_SLOPE = (-1.6, 0.5)
PEOPLE, PEOPLE_WITHOUT_NOISE = 2_829, 785
