"""What people should know about an estimate: its method, what it assumes, and the check of the prior, as notes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priorveil.notes import Note
from priorveil.reading.averages import Averages
from priorveil.reading.estimate_data import EstimateData
from priorveil.reading.moments import normal_width
from priorveil.reading.prior_check import DOUBTFUL

LEANING, LEANING_ON_ASSUMED = Note("leaning"), Note("leaningOnAssumed")
_NOTABLE = 1.2  # a gain of mle that is worth a sentence
# An interval with fewer people on one side contains the truth less often than its confidence says.
_FEW_PEOPLE = 50
FEW_PEOPLE = Note("fewPeople", {"most": _FEW_PEOPLE})
OUTSIDE_UNBIASED = Note("outsideUnbiased")
ABOUT_POINTS, ABOUT_CELLS = Note("aboutPoints"), Note("aboutCells")


def prior_is_assumed(estimate: EstimateData) -> bool:
    """Whether a prior was only assumed, so that no numbers are expected of it."""
    return any(reading.prior.assumed for reading in estimate.readings)


def leaning_note(estimate: EstimateData) -> Note | None:
    """That the answer leans on a known or on an assumed prior; None if it does not."""
    if not estimate.leans_on_prior:
        return None
    return LEANING_ON_ASSUMED if prior_is_assumed(estimate) else LEANING


def prior_warning(estimate: EstimateData) -> Note | None:
    """What to do if the answer leans on a prior that the reports contradict; None if it does not."""
    if not estimate.leans_on_prior or estimate.prior_check is None or estimate.prior_check >= DOUBTFUL:
        return None
    determined = bool(estimate.readings) and all(reading.determined for reading in estimate.readings)
    is_free = determined or estimate.unbiased_difference is not None
    code = "contradictedPrior" if is_free else "contradictedPriorUndetermined"
    return Note(code)


def estimate_notes(estimate: EstimateData, averages: Averages | None) -> tuple[Note, ...]:
    """The method, what it assumes, the prior check with its limits, and what else is needed to read the numbers."""
    return (*_notes(estimate), *(unbounded_averages(averages) if averages else ()), *estimate.remarks)


def _notes(estimate: EstimateData) -> Iterator[Note]:
    yield Note("methodAssumes", {"method": estimate.method, "assumes": estimate.assumes})
    yield from _check_notes(estimate)
    if _counts_points(estimate):
        yield Note("countsOfPoints")
    if estimate.sums_over_cells:
        yield ABOUT_CELLS
    if estimate.unbiased_difference is not None:
        code = "unbiasedDifference" if estimate.bias is None else "unexplainedDifference"
        yield Note(code, {"errors": estimate.unbiased_difference})
    if estimate.mle_gain is not None and estimate.mle_gain > _NOTABLE:
        code = "gainOfThisMle" if estimate.method == "mle" else "gainOfMle"
        yield Note(code, {"times": estimate.mle_gain})
    if _is_outside_unbiased(estimate):
        yield OUTSIDE_UNBIASED
    if not estimate.converged:
        yield Note("searchStopped", {"shortfall": estimate.shortfall or 0.0})
    yield from _negative_notes(estimate)
    if _has_few_people(estimate):
        yield FEW_PEOPLE


def _check_notes(estimate: EstimateData) -> Iterator[Note]:
    p_value = estimate.prior_check
    if prior_is_assumed(estimate) and not estimate.leans_on_prior:
        yield Note("noPrior")
        return
    if p_value is None:
        yield Note("noCheck")
        return
    if estimate.unseen_changes is not None:
        yield estimate.unseen_changes
    if p_value < DOUBTFUL:
        yield Note("checkFailed", {"p_value": p_value})
        yield Note("whyCheckFailed", {"doubtful": DOUBTFUL})
        if not estimate.leans_on_prior:
            yield Note("priorNotUsed")
        return
    yield Note("checkPassed", {"p_value": p_value, "doubtful": DOUBTFUL})
    if estimate.noticeable_change is not None:
        code = "noticeableChange" if estimate.unseen_changes is None else "noticeableChangeToldApart"
        yield Note(code, {"change": estimate.noticeable_change})


def _counts_points(estimate: EstimateData) -> bool:
    margin = estimate.margin_attributes
    of_grid = not margin or any(set(margin) & set(r.prior.domain.grids) for r in estimate.readings)
    return estimate.has_grid and estimate.histogram and of_grid


def _is_outside_unbiased(estimate: EstimateData) -> bool:
    """Whether the intervals of the unbiased answer do not hold some values of mle."""
    if estimate.limits is None or estimate.histogram:
        return False
    nearest = np.clip(estimate.interval_centre, *estimate.limits)
    beyond = np.abs(estimate.values - nearest) - 2 * estimate.std_error
    return bool((beyond > 1e-9 * np.ptp(estimate.limits, axis=0)).any())


def _negative_notes(estimate: EstimateData) -> Iterator[Note]:
    cut_off = estimate.limits is not None or estimate.total is not None
    if cut_off or not estimate.counts_people or not (estimate.values < 0).any():
        return
    yield Note("negativeInterval" if (estimate.interval()[1] < 0).any() else "negativeCount")
    yield Note("mleOrProject" if estimate.histogram else "mleIsNotNegative")


def _has_few_people(estimate: EstimateData) -> bool:
    if not estimate.counts_people or estimate.people <= 0 or not estimate.reports:
        return False
    low, high = np.array(estimate.interval()) * estimate.reports / estimate.people  # of those who were asked
    few = (high < _FEW_PEOPLE) | (low > estimate.reports - _FEW_PEOPLE)
    return bool(few[estimate.std_error > 0].any())  # everybody is known for sure


def unbounded_averages(averages: Averages) -> tuple[Note, ...]:
    """Notes that the reports do not bound the averages of some groups, and how many people would; none if they do."""
    return _unbounded_note(averages, 0.95, "unboundedAverage")


def unbounded_shares(shares: Averages, confidence: float) -> tuple[Note, ...]:
    """Notes that the reports do not bound the shares within some groups, and how many people would; none if they do."""
    return _unbounded_note(shares, confidence, "unboundedShare")


def _unbounded_note(averages: Averages, confidence: float, code: str) -> tuple[Note, ...]:
    unbounded = [each for each in averages.statistics if each.is_unbounded(confidence)]
    if not unbounded:
        return ()
    needed = [each.people_to_bound for each in unbounded]
    if None in needed:
        return (Note(code),)
    factor = (normal_width(confidence) / normal_width(0.95)) ** 2
    return Note(code), Note("peopleToBound", {"people": factor * max(filter(None, needed))})
