"""The expected information of reports about the coefficients of a logit, and the errors that follow from it.

`Pr(X = j | z) = softmax_j(z' beta)`, the last value is the baseline. One person's report through a channel `Q` has the
expected information `J = sum_z f(z) sum_y (D_z' Q_y)(D_z' Q_y)' / (pi(z) . Q_y)` about the coefficients, with `D_z` the
derivative of the shares `pi(z)` by them; `n` people have the covariance `J**-1 / n`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, real_numbers
from priorveil.errors import NOT_SHOWN, InvalidInput, NotIdentifiable
from priorveil.statistics.logit import LEAST, comply, logit_shares, weighted_products
from priorveil.statistics.planning import require_people

_BLOCK_ENTRIES = 1 << 20  # numbers in a block of rows
_IDENTIFIED = 1e-12  # eigenvalues of the scaled information below this are not identified


class Device(NamedTuple):
    """Which reports have passed through a channel, and the channel: a row for each report that it can make.

    With `can_deny` some carriers may not comply.
    """

    rows: Ints
    table: Array
    can_deny: bool = False


def expected_information(
    covariates: Array, coefficients: Array, devices: Sequence[Device], compliance: float | None = None
) -> Array:
    """The expected information of the reports that these devices could have made; compliance, if given, is the last.

    `covariates` has a row for each covariate, `coefficients` one for each value but the last.

    >>> Z = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> expected_information(Z, np.zeros((1, 2)), [Device(np.arange(2), np.eye(2))]).round(9).tolist()
    [[0.5, 0.25], [0.25, 0.25]]
    """
    count = coefficients.size
    total = np.zeros((count + (compliance is not None), count + (compliance is not None)))
    for device in devices:
        table, change = device.table, np.zeros(len(device.table))
        if compliance is not None and device.can_deny:
            table, change = comply(table, compliance)
        step = max(1, _BLOCK_ENTRIES // table.size)
        for first in range(0, len(device.rows), step):
            Z = covariates[:, device.rows[first : first + step]]
            shares = logit_shares(coefficients @ Z)
            law = np.maximum(table @ shares, LEAST)
            root = np.sqrt(law)
            slopes = (table.T[:-1, :, None] - law) * shares[:-1, None] / root  # by value, report and row
            weights = np.einsum("ayn,byn->abn", slopes, slopes)
            total[:count, :count] += weighted_products(weights, Z)
            if compliance is not None:
                by_share = change[:, None] * shares[0] / root
                total[count, count] += float((by_share**2).sum())
                total[count, :count] += Z @ (by_share * slopes[0]).sum(axis=0)
    total[:count, count:] = total[count:, :count].T
    return total


def coefficient_errors(channel: Array, X: npt.ArrayLike, beta: npt.ArrayLike, people: int) -> Array:
    """The standard errors that the coefficients will have, in the shape of `beta`."""
    rows, coefficients = real_numbers(X), real_numbers(beta)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidInput(
            "X", NOT_SHOWN, "give finite numbers: a row for each person, a column for each covariate"
        )
    wanted = (rows.shape[1], len(channel) - 1)
    if coefficients.shape != wanted and coefficients.shape != wanted[:1] * (wanted[1] == 1):
        flat = " or a list" if wanted[1] == 1 else ""
        advice = f"shape {coefficients.shape}; give a matrix of {wanted[0]} by {wanted[1]} numbers{flat}: a row for"
        raise InvalidInput(
            "beta", NOT_SHOWN, f"{advice} each column of X, a column for each value but the last"
        )
    if not np.isfinite(coefficients).all():
        raise InvalidInput("beta", NOT_SHOWN, "give finite numbers")
    device = Device(np.arange(len(rows)), channel.T)
    information = expected_information(rows.T, coefficients.reshape(wanted).T, [device]) / len(rows)
    scale = np.sqrt(np.diag(information))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = information / scale / scale[:, None]
    if not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled)[0] <= _IDENTIFIED:
        advice = "a covariate follows from others, or the channel does not distinguish the values"
        raise NotIdentifiable(f"reports do not determine the coefficients: {advice}")
    errors = np.sqrt(np.diag(np.linalg.inv(scaled)) / require_people(people)) / scale
    return errors.reshape(wanted[::-1]).T.reshape(coefficients.shape)
