"""The words of estimates and precision: assumptions, warnings, notes, sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priorveil.formatting import p_value_text, percent, round_up
from priorveil.mechanisms.estimators import DOUBTFUL
from priorveil.priors import Label
from priorveil.priors.labels import aligned_texts, label_text

if TYPE_CHECKING:
    from priorveil.reading.estimate import Estimate
    from priorveil.reading.precision import Precision

AVERAGE = "average per person"
_NOTABLE = 1.2  # a gain of mle that is worth a sentence
_MOST_SHOWN = 50  # values that are printed
OUTSIDE_UNBIASED = (
    "Rare values come out too common if no share is negative, and over many values this adds up: the answer is outside "
    "the interval of method unbiased. For cumulative shares, quantiles and sums of many values use that method."
)

ASSUMES = {
    "mmse": "the prior is right: the spread is that of the posterior",
    "unbiased": "nothing about the prior: the spread is the sampling noise of the reports",
    "mle": "nothing about the prior: the intervals are those of method unbiased, within what shares can be",
}

WEIGHTED = {
    "mmse": "the prior is right, and right for people of every weight: the spread is that of the posterior",
    "mle": "nothing about the prior: weights multiply the log-likelihood, and the intervals are those of method "
    "unbiased, within what shares can be",
}

RARE_CHANGES = (
    "The prior check does not look at all values one by one: a change among rare or neighbouring ones can pass, "
    "however large."
)


# -- estimates -------------------------------------------------------------------------------------------


def prior_warning(estimate: Estimate) -> str | None:
    """What to do if the answer leans on a prior that the reports contradict; None if it does not."""
    if not estimate.leans_on_prior or estimate.prior_check is None or estimate.prior_check >= DOUBTFUL:
        return None
    determined = bool(estimate.readings) and all(reading.determined for reading in estimate.readings)
    if determined or estimate.unbiased_difference is not None:
        advice = "Read the reports with method unbiased, or give a better prior"
    else:
        advice = "Give a better prior, or design a plan for the query distribution"
    return (
        f"The reports contradict the prior ({p_value_text(estimate.prior_check)}), and this estimate leans on it: the "
        f"truth may be far outside the intervals. {advice}."
    )


def estimate_notes(estimate: Estimate) -> tuple[str, ...]:
    """The method, what it assumes, and the prior check with its limits, in a sentence or two each."""
    notes = [f"Method {estimate.method}: assumes {estimate.assumes}.", _check_note(estimate)]
    if estimate.has_grid and estimate.histogram:
        notes.append("The counts are those of points of a grid, after numbers were rounded at random.")
    if estimate.unbiased_difference is not None:
        notes.append(
            "The answer of method unbiased, which does not use the prior, is up to "
            f"{estimate.unbiased_difference:.1f} of its own standard errors away from this one."
        )
    if estimate.mle_gain is not None and estimate.mle_gain > _NOTABLE:
        which = f"about {estimate.mle_gain:.1f} times less squared error than unbiased, if the prior is about right"
        notes.append(
            f"Shares are not negative and add up to one, and mle uses that: it has {which}. On average rare values "
            "come out too common; for sums over many surveys, or many values as in a quantile, use unbiased."
            if estimate.method == "mle"
            else f"Method mle uses that shares are not negative and add up to one: it has {which}."
        )
    if estimate.limits is not None and not estimate.histogram:
        far = (
            np.abs(estimate.values - np.clip(estimate.interval_centre, *estimate.limits))
            - 2 * estimate.std_error
        )
        notes += [OUTSIDE_UNBIASED] * bool((far > 1e-9 * np.ptp(estimate.limits, axis=0)).any())
    if not estimate.converged:
        lacking = f"the mean log-likelihood may lack {estimate.shortfall or 0:.1g}"
        notes.append(f"The search stopped early: {lacking}.")
    if (
        estimate.limits is None
        and estimate.total is None
        and (estimate.values < 0).any()
        and estimate.counts_people
    ):
        whole = ", even with its whole interval" if (estimate.interval()[1] < 0).any() else ""
        methods = "Method mle, or project()," if estimate.histogram else "Method mle"
        notes.append(
            f"An unbiased estimate of a small count can be below zero{whole}: its share is near zero. {methods} "
            "gives counts that are not."
        )
    return (*notes, *estimate.remarks)


def _check_note(estimate: Estimate) -> str:
    if estimate.prior_check is None:
        return "Prior check: none. There are too few reports, or they say too little."
    doubtful, unseen = estimate.prior_check < DOUBTFUL, estimate.unseen_changes
    note = f"{unseen + ' ' if unseen else ''}Prior check: {p_value_text(estimate.prior_check)}."
    if doubtful:
        note += " The prior is wrong or somebody manipulates the reports."
    if doubtful and not estimate.leans_on_prior:
        note += " This method does not rest on the prior."
    if estimate.noticeable_change is not None:
        return (
            f"{note} The check notices{' other changes' if unseen else ''}, nine times in ten, if "
            f"{100 * estimate.noticeable_change:.2g} % of the people have moved from one value to another"
            f"{'' if doubtful else '; smaller changes can pass'}."
        )
    return note if doubtful else f"{note} There may be too few reports to notice even a large change."


def changes_among(alike: tuple[Label, Label] | None) -> str:
    """Which changes the prior check never notices, if reports do not tell some values apart, such as these two."""
    example = "" if alike is None else f", for instance {label_text(alike[0])} and {label_text(alike[1])}"
    return (
        f"The reports do not tell all values apart{example}: the prior check never notices a change among those, "
        "however large."
    )


def estimate_text(estimate: Estimate) -> str:
    """The warning, the values with their intervals, and the notes."""
    low, high = estimate.interval()
    lines = [] if estimate.warning is None else [f"Warning: {estimate.warning}"]
    shown = most_relevant(estimate)
    names = aligned_texts([estimate.labels[i] for i in shown])
    width = max(map(len, names), default=20)
    lines.append(f"{'value':<{width}} {'estimate':>12} {'95 % interval':>25}  by {estimate.method}")
    for name, i in zip(names, shown, strict=True):
        lines.append(f"{name} {estimate.values[i]:>12.1f} {low[i]:>12.1f} {high[i]:>12.1f}")
    if len(shown) < len(estimate.labels):
        lines.append(f"and {len(estimate.labels) - len(shown):,} more")
    return "\n".join([*lines, *estimate.notes])


def most_relevant(estimate: Estimate) -> list[int]:
    """What to print, by index: all in their order; of more than 50 the largest counts, or the first statistics."""
    if len(estimate.labels) <= _MOST_SHOWN:
        return list(range(len(estimate.labels)))
    order = np.argsort(-estimate.values, kind="stable") if estimate.histogram else np.arange(_MOST_SHOWN)
    return list(map(int, order[:_MOST_SHOWN]))


# -- precision -------------------------------------------------------------------------------------------


def precision_text(precision: Precision) -> str:
    """What is known about the population and, leaning on the prior, about these people."""
    people = f"{precision.people:,} people"
    sentence = "reports alone do not determine the population, however many there are"
    if precision.determined:
        sentence = f"reports of {people} are too few to estimate the population without the prior"
    if precision.population is not None:
        sentence = f"with {people} {_half_width_text(precision, '', precision.population)}"
    if precision.these_people is None:
        return sentence
    leaning = _half_width_text(precision, f" among {people}", precision.these_people)
    return f"{sentence}; leaning on the prior, {leaning}, if the prior is right"


def _half_width_text(precision: Precision, among: str, half_width: float) -> str:
    each, better = ("the", "") if precision.statistic == AVERAGE else ("every", " or better")
    units = {"share": f"{round_up(100 * half_width)} points", AVERAGE: round_up(half_width)}
    width = units.get(precision.statistic, f"{round_up(half_width)} per person")
    return (
        f"{each} {precision.statistic}{among} is known to ±{width}{better} ({percent(precision.confidence)})"
    )
