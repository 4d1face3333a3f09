"""The words of regressions: summaries, tests, predictions and marginal effects, as text and for notebooks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from priorveil.catalogue import say
from priorveil.formatting import p_value_text
from priorveil.priors.label_texts import label_text
from priorveil.statistics.coefficient_fit import CoefficientFit
from priorveil.statistics.outcome_fit import OutcomeFit
from priorveil.statistics.regression_estimates import MarginalEffects, Predictions
from priorveil.statistics.regression_fit import RegressionFit
from priorveil.statistics.samples import beside_columns
from priorveil.statistics.significance import ChiSquareTest
from priorveil.words import html
from priorveil.words.notes import interval_title, reports_text, sentence
from priorveil.words.text_tables import TextTable

_ERRORS = {
    "observed": "observedErrors",
    "expected": "expectedErrors",
    "outer": "outerErrors",
    "robust": "robustErrors",
}
_CONFIDENCE = 0.95
_ENDS = "0.025", "0.975"
_MOST_ROWS = 20  # of predictions that are shown


def coefficient_text(number: float) -> str:
    """A number with four decimals, or with four digits if it is very small or large.

    >>> coefficient_text(0.62447), coefficient_text(0.000012345), coefficient_text(123456.7)
    ('0.6245', '1.234e-05', '1.235e+05')
    """
    size = abs(number)
    return f"{number:.4f}" if size == 0 or 1e-4 <= size < 1e4 or not math.isfinite(size) else f"{number:.4g}"


# -- fits ------------------------------------------------------------------------------------------------


class _Summary(NamedTuple):
    """A fit in words: its title, the level, warnings and remarks, what was fitted, and the coefficients."""

    title: str
    level: str
    notes: Sequence[str]
    about: Sequence[str]
    table: TextTable

    def text(self) -> str:
        return "\n".join([self.level, *self.notes, self.title, *self.about, *self.table.lines()])

    def html(self) -> str:
        remarks = html.notes([self.level]) + html.warnings(self.notes) + html.notes(self.about)
        return html.sheet(self.title, remarks, self.table.html())


def fit_text(fit: RegressionFit) -> str:
    """The summary as plain text."""
    return _summary(fit).text()


def fit_html(fit: RegressionFit) -> str:
    """The summary for a notebook."""
    return _summary(fit).html()


def fit_line(fit: RegressionFit) -> str:
    """What was fitted, in a line."""
    return f"RegressionFit({_title(fit)}: {', '.join(fit.names)})"


def outcome_fit_text(fit: OutcomeFit) -> str:
    """The summary as plain text."""
    return _outcome_summary(fit).text()


def outcome_fit_html(fit: OutcomeFit) -> str:
    """The summary for a notebook."""
    return _outcome_summary(fit).html()


def outcome_fit_line(fit: OutcomeFit) -> str:
    """What was fitted, in a line."""
    return f"OutcomeFit({_outcome_title(fit)}: {', '.join(fit.names)})"


def _title(fit: RegressionFit) -> str:
    reports = reports_text(fit.reports)
    if fit.is_linear:
        return say("linearTitle", statistic=label_text(fit.labels[0]), reports=reports)
    return say("logitTitle", reports=reports)


def _outcome_title(fit: OutcomeFit) -> str:
    return say("outcomeTitle", reports=reports_text(fit.reports))


_ERRORS = {
    "observed": "observedErrors",
    "expected": "expectedErrors",
    "outer": "outerErrors",
    "robust": "robustErrors",
}


def _summary(fit: RegressionFit) -> _Summary:
    errors = say("clusterErrors" if fit.clusters is not None else _ERRORS[fit.errors])
    by_likelihood = say("fitByLikelihood", loglik=f"{fit.loglik:,.4f}", errors=errors)
    how = by_likelihood if fit.by_likelihood else say("fitByScores", errors=errors)
    baseline = [] if fit.is_linear else [say("logitBaseline", label=label_text(fit.labels[-1]))]
    rows = [
        [outcome, covariate, *_number_texts(*numbers)]
        for outcome, covariate, *numbers in zip(*fit.columns(_CONFIDENCE).values(), strict=True)
    ]
    table = TextTable(2, _coefficient_heads(say("outcomeHead")), [*rows, *_compliance_rows(fit)])
    return _Summary(_title(fit), _level(fit.ldp, fit.lip), [*map(str, fit.notes)], [*baseline, how], table)


def _outcome_summary(fit: OutcomeFit) -> _Summary:
    """The rows are the mean of the outcome, its spread, the shares of the values, and compliance."""
    how = say("fitByLikelihood", loglik=f"{fit.loglik:,.4f}", errors=say("observedErrors"))
    about = [say("outcomeBaseline", label=label_text(fit.labels[-1])), how]
    rows = [
        [say("shareOfValue", value=value) if value else say("outcomeName"), name, *_number_texts(*numbers)]
        for value, name, *numbers in zip(*fit.columns(_CONFIDENCE).values(), strict=True)
    ]
    sigma = coefficient_text(fit.sigma), coefficient_text(fit.sigma_std_error)
    rows.insert(len(fit.names), [say("outcomeName"), say("sigmaName"), *sigma, *["-"] * 4])
    table = TextTable(2, _coefficient_heads(say("meanOfHead")), [*rows, *_compliance_rows(fit)])
    return _Summary(_outcome_title(fit), _level(fit.ldp, fit.lip), [*map(str, fit.notes)], about, table)


def _level(ldp: float, lip: float) -> str:
    """The level of privacy, which comes first, since other columns stand beside the reports."""
    return str(beside_columns(ldp, lip))


def _coefficient_heads(first: str) -> list[str]:
    named = ("covariateHead", "coefficientHead", "stdErrorHead", "zHead", "zProbabilityHead")
    ends = say("intervalStartHead", share=_ENDS[0]), say("intervalEndHead", share=_ENDS[1])
    return [first, *map(say, named), *ends]


def _compliance_rows(fit: CoefficientFit) -> list[list[str]]:
    if fit.compliance is None:
        return []
    ends, known = fit.compliance_interval(_CONFIDENCE), ["-"] * 5
    if ends is not None:
        known = [coefficient_text(fit.compliance_std_error), "-", "-", *map("{:.3f}".format, ends)]
    return [["", say("complianceName"), coefficient_text(fit.compliance), *known]]


def _number_texts(value: float, error: float, *others: float) -> list[str]:
    return [coefficient_text(value), coefficient_text(error), *map("{:.3f}".format, others)]


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
    return "\n".join([*_predictions(predictions).lines(), *_rest(predictions)])


def predictions_html(predictions: Predictions) -> str:
    """The first predictions with their intervals, for a notebook."""
    table = _predictions(predictions).html()
    return html.sheet(sentence(predictions.name)[:-1], table, html.notes(_rest(predictions)))


def _predictions(predictions: Predictions) -> TextTable:
    columns = predictions.columns(_CONFIDENCE)
    shown = min(_MOST_ROWS, len(predictions.values)) * len(predictions.labels)
    return _estimates(columns, shown, say("rowHead"), say("estimateHead"))


def _rest(predictions: Predictions) -> list[str]:
    rows = len(predictions.values)
    return [say("allRowsInFrame", shown=_MOST_ROWS, all=f"{rows:,}")] if rows > _MOST_ROWS else []


def effects_text(effects: MarginalEffects) -> str:
    """The average marginal effects with their intervals, as plain text."""
    return "\n".join(_effects(effects).lines())


def effects_html(effects: MarginalEffects) -> str:
    """The average marginal effects with their intervals, for a notebook."""
    return html.sheet(sentence(effects.name)[:-1], _effects(effects).html())


def _effects(effects: MarginalEffects) -> TextTable:
    columns = effects.columns(_CONFIDENCE)
    return _estimates(columns, len(columns["effect"]), say("covariateHead"), say("effectHead"))


def _estimates(columns: Mapping[str, Any], shown: int, first: str, number: str) -> TextTable:
    """Two columns of labels, the number, its error and the interval."""
    rows = [
        [str(where), label, *map(coefficient_text, numbers[:2]), _interval(*numbers[2:])]
        for where, label, *numbers in zip(*(list(column)[:shown] for column in columns.values()), strict=True)
    ]
    heads = [first, say("valueHead"), number, say("stdErrorHead"), interval_title(_CONFIDENCE)]
    return TextTable(2, heads, rows)


def _interval(low: float, high: float) -> str:
    return f"{coefficient_text(low)} to {coefficient_text(high)}"
