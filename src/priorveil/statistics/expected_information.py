"""The errors that coefficients of a logit regression on reports will have, before anyone reports.

`Pr(X = j | z) = softmax_j(z' beta)`, the last value is the baseline. One person's report through a channel `Q` has the
expected information `J = sum_z f(z) sum_y (D_z' Q_y)(D_z' Q_y)' / (pi(z) . Q_y)` about the coefficients, with `D_z` the
derivative of the shares `pi(z)` by them; `n` people have the covariance `J**-1 / n`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, InvalidInput, NotIdentifiable

_BLOCK_ENTRIES = 1 << 20  # numbers in a block of rows
_IDENTIFIED = 1e-12  # eigenvalues of the scaled information below this are not identified


def coefficient_information(channel: Array, X: Array, coefficients: Array) -> Array:
    """The expected information of one person's report, for the coefficients of each value in turn.

    `channel` has a row for each value; the rows of `X` stand for the distribution of the covariates; `coefficients`
    has a column for each value but the last.

    >>> Z = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> coefficient_information(np.eye(2), Z, np.zeros((2, 1))).round(9).tolist()
    [[0.25, 0.125], [0.125, 0.125]]
    """
    (people, columns), q = X.shape, coefficients.shape[1]
    Q = channel[:, channel.any(axis=0)]
    total = np.zeros((q, columns, q, columns))
    step = max(1, _BLOCK_ENTRIES // Q.size)
    for first in range(0, people, step):
        Z = X[first : first + step]
        shares = softmax_shares(Z @ coefficients)
        law = shares @ Q
        # The derivative of the law of reports by the predictor of value j is pi_j (Q_j - law).
        slopes = shares[:, :-1, None] * (Q[:-1] - law[:, None]) / np.sqrt(law)[:, None]
        total += np.einsum("njy,nky,na,nb->jakb", slopes, slopes, Z, Z, optimize=True)
    return np.asarray(total.reshape(q * columns, q * columns) / people)


def coefficient_errors(channel: Array, X: npt.ArrayLike, beta: npt.ArrayLike, people: int) -> Array:
    """The standard errors that the coefficients will have, in the shape of `beta`."""
    rows, coefficients = np.array(X, dtype=np.float64), np.array(beta, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidInput(
            "X", NOT_SHOWN, "give finite numbers: a row for each person, a column for each covariate"
        )
    if type(people) is bool or not isinstance(people, int | np.integer) or people < 1:
        raise InvalidInput("people", people, "give the number of people, one or more")
    wanted = (rows.shape[1], len(channel) - 1)
    if coefficients.shape != wanted and coefficients.shape != wanted[:1] * (wanted[1] == 1):
        flat = " or a list" if wanted[1] == 1 else ""
        advice = f"shape {coefficients.shape}; give a matrix of {wanted[0]} by {wanted[1]} numbers{flat}: a row for"
        raise InvalidInput(
            "beta", NOT_SHOWN, f"{advice} each column of X, a column for each value but the last"
        )
    if not np.isfinite(coefficients).all():
        raise InvalidInput("beta", NOT_SHOWN, "give finite numbers")
    information = coefficient_information(channel, rows, coefficients.reshape(wanted))
    scale = np.sqrt(np.diag(information))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = information / scale / scale[:, None]
    if not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled)[0] <= _IDENTIFIED:
        advice = "a covariate follows from others, or the channel does not distinguish the values"
        raise NotIdentifiable(f"reports do not determine the coefficients: {advice}")
    errors = np.sqrt(np.diag(np.linalg.inv(scaled)) / people) / scale
    return errors.reshape(wanted[::-1]).T.reshape(coefficients.shape)


def softmax_shares(predictors: Array) -> Array:
    """The shares of all values from the predictors of all but the last, which has zero; a row for each person.

    >>> softmax_shares(np.log([[1.0], [3.0]])).round(3).tolist()
    [[0.5, 0.5], [0.75, 0.25]]
    """
    complete = np.pad(predictors, ((0, 0), (0, 1)))
    weights = np.exp(complete - complete.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
