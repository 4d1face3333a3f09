"""Figures of regressions on randomised answers, from other software."""

# The data set `minarets` of the R package RRreg (Heck and Moshagen 2018), rows with randomized = 1, covariates centred
# by their means over all rows: yes ~ age * left_right, with a share of compliant carriers. The figures were given
# with the mathematics of this feature, as checked against RRreg.
MINARETS_LOGLIK = -821.0840
MINARETS_COEFFICIENTS = (1.89636, 0.013601, 0.624465, -0.020390)  # intercept, age, left_right, age:left_right
MINARETS_COMPLIANCE = 0.651708
# Twice the log-likelihood that is lost without each of the last three.
MINARETS_LIKELIHOOD_RATIOS = {"age": 0.0634, "left_right": 12.6147, "age:left_right": 1.9996}
# The model without left_right has several maxima: single starts end at -829.07 or -832.57.
MINARETS_WITHOUT_LEFT_RIGHT = -827.3913
# Without covariates; the standard error is from the information (RRreg prints .041118, with n - 1 in each group).
MINARETS_SHARE, MINARETS_SHARE_COMPLIANCE, MINARETS_SHARE_ERROR = 0.870695, 0.635806, 0.041085
