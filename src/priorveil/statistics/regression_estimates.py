"""What follows from the coefficients of a regression: predictions and average marginal effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import label_text
from priorveil.reading.interval_estimate import IntervalEstimate
from priorveil.reading.moments import normal_width
from priorveil.statistics.estimating_equation import row_blocks
from priorveil.statistics.logit import logit_shares


@dataclass(frozen=True, eq=False)
class Predictions(IntervalEstimate):
    """The predicted share of each value for each row of covariates, or the predicted mean of a statistic.

    `values` and `std_error` have a row for each row of covariates, and a column for each of `labels`. Intervals of
    shares are normal on the scale of log-odds, so they stay between 0 and 1.
    """

    labels: tuple[Label, ...]
    values: Array
    std_error: Array
    are_shares: bool

    @property
    def name(self) -> str:
        """What the numbers are."""
        return str(Note("predictionsTitle"))

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """The ends of the intervals."""
        width = normal_width(confidence)
        if not self.are_shares:
            return self.values - width * self.std_error, self.values + width * self.std_error
        inside = np.clip(self.values, 1e-300, 1 - 1e-16)
        odds = np.log(inside) - np.log1p(-inside)
        reach = width * self.std_error / (inside * (1 - inside))
        low, high = (1 / (1 + np.exp(-np.clip(end, -700, 700))) for end in (odds - reach, odds + reach))
        return low, high

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: the row, the value, and its number with its interval."""
        return _columns(self, {"row": range(len(self.values))}, "estimate", confidence)


@dataclass(frozen=True, eq=False)
class MarginalEffects(IntervalEstimate):
    """The average over all rows of the derivative of each value's share by each covariate.

    `values` and `std_error` have a row for each covariate (`covariates`; a constant one has no effect) and a column for
    each value. Standard errors are for these rows of covariates.
    """

    covariates: tuple[str, ...]
    labels: tuple[Label, ...]
    values: Array
    std_error: Array

    @property
    def name(self) -> str:
        """What the numbers are."""
        return str(Note("marginalEffectsTitle"))

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """The ends of normal intervals."""
        width = normal_width(confidence) * self.std_error
        return self.values - width, self.values + width

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: covariate, value, and the effect with its interval."""
        return _columns(self, {"covariate": self.covariates}, "effect", confidence)


def _columns(
    found: Predictions | MarginalEffects, rows: Mapping[str, Sequence[Any]], number: str, confidence: float
) -> dict[str, Any]:
    """A row for each number, beside what stands for its row of `values`, and for its column."""
    low, high = found.interval(confidence)
    repeated = {name: np.repeat(entries, len(found.labels)) for name, entries in rows.items()}
    return {
        **repeated,
        "value": [label_text(label) for label in found.labels] * len(found.values),
        number: found.values.ravel(),
        "std_error": found.std_error.ravel(),
        "low": low.ravel(),
        "high": high.ravel(),
    }


def predict_shares(
    labels: Sequence[Label], coefficients: Array, covariance: Array, covariates: Array
) -> Predictions:
    """Predicted shares by the delta method; the last label is the baseline."""
    q, p = coefficients.shape
    values = logit_shares(coefficients @ covariates)
    blocks = covariance[: q * p, : q * p].reshape(q, p, q, p)
    variances = np.empty_like(values)
    for part in row_blocks(covariates.shape[1]):
        Z, pi = covariates[:, part], values[:, part]
        of_pairs = np.einsum("akbl,kn,ln->abn", blocks, Z, Z, optimize=True)
        by_predictor = _share_slopes(pi)
        variances[:, part] = np.einsum("jan,jbn,abn->jn", by_predictor, by_predictor, of_pairs, optimize=True)
    errors = np.sqrt(np.maximum(variances, 0.0))
    return Predictions(tuple(labels), values.T.copy(), errors.T.copy(), are_shares=True)


def predict_means(label: Label, coefficients: Array, covariance: Array, covariates: Array) -> Predictions:
    """Predicted means of a statistic."""
    values = coefficients @ covariates
    variances = np.einsum("kl,kn,ln->n", covariance, covariates, covariates, optimize=True)
    errors = np.sqrt(np.maximum(variances, 0.0))[:, None]
    return Predictions((label,), values.T.copy(), errors, are_shares=False)


def _share_slopes(pi: Array) -> Array:
    """The derivative of each share by each linear predictor: shape (values, outcomes, reports)."""
    slopes = -pi[:, None] * pi[None, :-1]
    outcomes = np.arange(len(pi) - 1)
    slopes[outcomes, outcomes] += pi[:-1]
    return slopes


def average_effects(coefficients: Array, covariates: Array) -> tuple[Array, Array]:
    """The average effect of each covariate on each share, and its derivatives by the coefficients.

    The effect of covariate `k` on `pi_j` is `pi_j (b_jk - sum_l pi_l b_lk)`. Shapes: (covariates, values) and
    (covariates, values, outcomes, covariates).
    """
    q, p = coefficients.shape
    all_rows = np.concatenate([coefficients, np.zeros((1, p))])
    effects, slopes = np.zeros((p, q + 1)), np.zeros((p, q + 1, q, p))
    for part in row_blocks(covariates.shape[1]):
        Z = covariates[:, part]
        pi = logit_shares(coefficients @ Z)
        by_predictor = _share_slopes(pi)
        centred = (
            all_rows[:, :, None] - (all_rows.T @ pi)[None]
        )  # b_jk less their mean: value, covariate, report
        effects += np.einsum("jn,jkn->kj", pi, centred, optimize=True)
        for j in range(q + 1):
            for a in range(q):
                weights = by_predictor[j, a] * centred[j] - pi[j] * pi[a] * centred[a]
                slopes[:, j, a] += weights @ Z.T
                slopes[np.arange(p), j, a, np.arange(p)] += by_predictor[j, a].sum()
    n = covariates.shape[1]
    return effects / n, slopes / n
