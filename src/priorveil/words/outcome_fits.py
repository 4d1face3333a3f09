"""The words of a linear model of an outcome on randomised answers."""

from __future__ import annotations

import math

from priorveil.catalogue import say
from priorveil.formatting import level_at_most
from priorveil.priors.label_texts import label_text
from priorveil.statistics.outcome_fit import OutcomeFit
from priorveil.words import html
from priorveil.words.notes import reports_text
from priorveil.words.regressions import coefficient_text
from priorveil.words.text_tables import text_lines

_CONFIDENCE = 0.95
_ENDS = "0.025", "0.975"


def outcome_fit_text(fit: OutcomeFit) -> str:
    """The summary as plain text."""
    level, *about = _headlines(fit)
    heads, rows = _coefficients(fit)
    return "\n".join([level, _title(fit), *about, *text_lines(heads, rows, 2), *map(str, fit.notes)])


def outcome_fit_html(fit: OutcomeFit) -> str:
    """The summary for a notebook."""
    heads, rows = _coefficients(fit)
    table, notes = html.table(heads, rows, range(2, len(heads))), html.notes(map(str, fit.notes))
    return html.sheet(_title(fit), html.notes(_headlines(fit)), table, notes)


def outcome_fit_summary(fit: OutcomeFit) -> str:
    """What was fitted, in a line."""
    return f"OutcomeFit({_title(fit)}: {', '.join(fit.names)})"


def _title(fit: OutcomeFit) -> str:
    return say("outcomeTitle", reports=reports_text(fit.reports))


def _headlines(fit: OutcomeFit) -> list[str]:
    """The LDP level first, since other columns stand beside the reports."""
    finite = math.isfinite(fit.ldp)
    level = say("ldpBesideCovariates", ldp=level_at_most(fit.ldp)) if finite else say("noLdpBesideCovariates")
    errors = say("observedErrors")
    how = say("fitByLikelihood", loglik=f"{fit.loglik:,.4f}", errors=errors)
    return [level, say("outcomeBaseline", label=label_text(fit.labels[-1])), how]


def _coefficients(fit: OutcomeFit) -> tuple[list[str], list[list[str]]]:
    """The heads and the rows: the mean of the outcome, its spread, the shares of the values, and compliance."""
    rows = [
        [say("shareOfValue", value=value) if value else say("outcomeName"), name, *_number_texts(*numbers)]
        for value, name, *numbers in zip(*fit.columns(_CONFIDENCE).values(), strict=True)
    ]
    sigma = coefficient_text(fit.sigma), coefficient_text(fit.sigma_std_error)
    rows.insert(len(fit.names), [say("outcomeName"), say("sigmaName"), *sigma, *["-"] * 4])
    if fit.compliance is not None:
        ends, known = fit.compliance_interval(_CONFIDENCE), ["-"] * 5
        if ends is not None and fit.compliance_std_error is not None:
            known = [coefficient_text(fit.compliance_std_error), "-", "-", *map("{:.3f}".format, ends)]
        rows.append(["", say("complianceName"), coefficient_text(fit.compliance), *known])
    heads = [say("meanOfHead"), say("covariateHead"), say("coefficientHead"), say("stdErrorHead")]
    heads += [say("zHead"), say("zProbabilityHead")]
    return [*heads, say("intervalStartHead", share=_ENDS[0]), say("intervalEndHead", share=_ENDS[1])], rows


def _number_texts(value: float, error: float, *others: float) -> list[str]:
    return [coefficient_text(value), coefficient_text(error), *map("{:.3f}".format, others)]
