"""Independent figures of planning, each with its source."""

# Forced response (truth with 2/3, yes with 1/6), 200 people, .2 against 0, one-sided test at level .01: power.rr.test
# of the R package rr.
FORCED_POWER = 0.9868872
# The least number of people for .2 against .1 with the same device, two-sided test at level .05, power .8. The R
# package rr answers 324, where the power is .791: its search stops within .01 of the target.
FORCED_PEOPLE, RR_PEOPLE, RR_POWER = 332, 324, 0.791
# Prior (.5, .3, .2), LIP 1, Distribution: N times the variances of the shares at the prior and at the worst truth, and
# people for a half width of .02 at 95 %: from a prototype that was written before this package.
AT_PRIOR, AT_WORST = [0.7204, 0.5944, 0.5895], [0.7292, 0.7398, 0.7583]
PEOPLE = (6_919, 7_283)
# Strata of weights .7, .2, .1 with shares .05, .3, .5 and a LIP 1 plan each: N times the variance of the whole share,
# in proportion to the strata and by Neyman's allocation. From the same prototype.
PROPORTIONAL, NEYMAN = 0.7493, 0.7433
# A slope of .5 on a covariate of two halves, intercept -1.6, LIP 1 at the margin, two-sided test at level .05, power
# .8: people with and without noise, from the same prototype; with 2,829 people its simulated power was .83.
COEFFICIENT_PEOPLE, COEFFICIENT_WITHOUT_NOISE = 2_829, 785
