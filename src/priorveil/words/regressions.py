"""The words of regressions: summaries, tests, predictions and marginal effects, as text and for notebooks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from priorveil.catalogue import say
from priorveil.formatting import level_at_most, p_value_text
from priorveil.priors.label_texts import label_text
from priorveil.statistics.regression_estimates import MarginalEffects, Predictions
from priorveil.statistics.regression_fit import RegressionFit
from priorveil.statistics.significance import ChiSquareTest
from priorveil.words import html
from priorveil.words.notes import interval_title, reports_text, sentence
from priorveil.words.text_tables import text_lines

_CONFIDENCE = 0.95
_ENDS = "0.025", "0.975"
_MOST_ROWS = 20  # of predictions that are shown

_Table = tuple[int, Sequence[str], Sequence[Sequence[str]]]  # columns of labels, heads, rows


def coefficient_text(number: float) -> str:
    """A number with four decimals, or with four digits if it is very small or large.

    >>> coefficient_text(0.62447), coefficient_text(0.000012345), coefficient_text(123456.7)
    ('0.6245', '1.234e-05', '1.235e+05')
    """
    size = abs(number)
    return f"{number:.4f}" if size == 0 or 1e-4 <= size < 1e4 or not math.isfinite(size) else f"{number:.4g}"


# -- fits ------------------------------------------------------------------------------------------------


def fit_text(fit: RegressionFit) -> str:
    """The summary as plain text."""
    level, *about = _headlines(fit)
    return "\n".join([level, *map(str, fit.notes), _title(fit), *about, *_text_lines(_coefficients(fit))])


def fit_html(fit: RegressionFit) -> str:
    """The summary for a notebook."""
    level, *about = _headlines(fit)
    remarks = html.notes([level]) + html.warnings(map(str, fit.notes)) + html.notes(about)
    return html.sheet(_title(fit), remarks, _html_table(_coefficients(fit)))


def fit_summary(fit: RegressionFit) -> str:
    """What was fitted, in a line."""
    return f"RegressionFit({_title(fit)}: {', '.join(fit.names)})"


def _title(fit: RegressionFit) -> str:
    reports = reports_text(fit.reports)
    if fit.is_linear:
        return say("linearTitle", statistic=label_text(fit.labels[0]), reports=reports)
    return say("logitTitle", reports=reports)


def _headlines(fit: RegressionFit) -> list[str]:
    """The LDP level first, since covariates stand beside the reports."""
    finite = math.isfinite(fit.ldp)
    level = say("ldpBesideCovariates", ldp=level_at_most(fit.ldp)) if finite else say("noLdpBesideCovariates")
    errors = say("clusterErrors" if fit.clusters is not None else _ERRORS[fit.errors])
    by_likelihood = say("fitByLikelihood", loglik=f"{fit.loglik:,.4f}", errors=errors)
    how = by_likelihood if fit.by_likelihood else say("fitByScores", errors=errors)
    baseline = [] if fit.is_linear else [say("logitBaseline", label=label_text(fit.labels[-1]))]
    return [level, *baseline, how]


_ERRORS = {
    "observed": "observedErrors",
    "expected": "expectedErrors",
    "outer": "outerErrors",
    "robust": "robustErrors",
}


def _coefficients(fit: RegressionFit) -> _Table:
    columns = fit.columns(_CONFIDENCE)
    rows = [
        [outcome, covariate, *_number_texts(*numbers)]
        for outcome, covariate, *numbers in zip(*columns.values(), strict=True)
    ]
    if fit.compliance is not None:
        error, ends = fit.compliance_std_error, fit.compliance_interval(_CONFIDENCE)
        known = ["-", "-", "-", "-", "-"]
        if error is not None and ends is not None:
            known = [coefficient_text(error), "-", "-", *map(_three_decimals, ends)]
        rows.append(["", say("complianceName"), coefficient_text(fit.compliance), *known])
    heads = [say("outcomeHead"), say("covariateHead"), say("coefficientHead"), say("stdErrorHead")]
    heads += [say("zHead"), say("zProbabilityHead")]
    heads += [say("intervalStartHead", share=_ENDS[0]), say("intervalEndHead", share=_ENDS[1])]
    return 2, heads, rows


def _number_texts(value: float, error: float, z: float, p: float, low: float, high: float) -> list[str]:
    return [
        coefficient_text(value),
        coefficient_text(error),
        _three_decimals(z),
        _three_decimals(p),
        *map(_three_decimals, (low, high)),
    ]


def _three_decimals(number: float) -> str:
    return f"{number:.3f}"


# -- tests -----------------------------------------------------------------------------------------------


def hypothesis_text(test: ChiSquareTest) -> str:
    """The test in a line."""
    return say(
        "chiSquareMixtureResult" if test.at_bound else "chiSquareResult",
        hypothesis=test.hypothesis,
        statistic=f"{test.statistic:.4f}",
        degrees=test.degrees,
        p_value=p_value_text(test.p_value),
    )


def hypothesis_html(test: ChiSquareTest) -> str:
    """The test for a notebook."""
    return html.sheet(hypothesis_text(test))


# -- predictions and effects -----------------------------------------------------------------------------


def predictions_text(predictions: Predictions) -> str:
    """The first predictions with their intervals, as plain text."""
    return "\n".join([*_text_lines(_predictions(predictions)), *_rest(predictions)])


def predictions_html(predictions: Predictions) -> str:
    """The first predictions with their intervals, for a notebook."""
    table = _html_table(_predictions(predictions))
    return html.sheet(sentence(predictions.name)[:-1], table, html.notes(_rest(predictions)))


def _predictions(predictions: Predictions) -> _Table:
    columns = predictions.columns(_CONFIDENCE)
    shown = min(_MOST_ROWS, len(predictions.values)) * len(predictions.labels)
    return _estimates(columns, shown, say("rowHead"), say("estimateHead"))


def _rest(predictions: Predictions) -> list[str]:
    rows = len(predictions.values)
    return [say("allRowsInFrame", shown=_MOST_ROWS, all=f"{rows:,}")] if rows > _MOST_ROWS else []


def effects_text(effects: MarginalEffects) -> str:
    """The average marginal effects with their intervals, as plain text."""
    return "\n".join(_text_lines(_effects(effects)))


def effects_html(effects: MarginalEffects) -> str:
    """The average marginal effects with their intervals, for a notebook."""
    return html.sheet(sentence(effects.name)[:-1], _html_table(_effects(effects)))


def _effects(effects: MarginalEffects) -> _Table:
    columns = effects.columns(_CONFIDENCE)
    return _estimates(columns, len(columns["effect"]), say("covariateHead"), say("effectHead"))


def _estimates(columns: Mapping[str, Any], shown: int, first: str, number: str) -> _Table:
    """Two columns of labels, the number, its error and the interval."""
    rows = [
        [str(where), label, *map(coefficient_text, numbers[:2]), _interval(*numbers[2:])]
        for where, label, *numbers in zip(*(list(column)[:shown] for column in columns.values()), strict=True)
    ]
    heads = [first, say("valueHead"), number, say("stdErrorHead"), interval_title(_CONFIDENCE)]
    return 2, heads, rows


def _interval(low: float, high: float) -> str:
    return f"{coefficient_text(low)} to {coefficient_text(high)}"


def _text_lines(cells: _Table) -> list[str]:
    labels, heads, rows = cells
    return text_lines(heads, rows, labels)


def _html_table(cells: _Table) -> str:
    labels, heads, rows = cells
    return html.table(heads, rows, range(labels, len(heads)))
