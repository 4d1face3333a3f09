"""Submissions for tests: what devices send to campaigns, one by one and in groups."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.device.wire import fresh_id, words_to_hex
from priorveil.plans import Plan
from priorveil.questions.campaign import Campaign


def plan_of(campaign: Campaign, cohort: str | None = None) -> Plan:
    """The only plan of a cohort."""
    (part,) = campaign.form_for(cohort).parts
    return part.plan


def number_words(number: int) -> str:
    """A report that is a whole number, as it is sent.

    >>> number_words(258)
    '0201000000000000'
    """
    return number.to_bytes(8, "little").hex()


def submission(
    campaign: Campaign, report: int | str = 0, cohort: str | None = None, **more: Any
) -> dict[str, Any]:
    """The body of one submission: of a report that is a whole number, or of its words."""
    words = number_words(report) if isinstance(report, int) else report
    return {"report_id": fresh_id(), "form": campaign.form_for(cohort).id, "report": words, **more}


def submissions(
    campaign: Campaign, answers: Any, cohort: str | None = None, rng: np.random.Generator | None = None
) -> list[dict[str, Any]]:
    """The bodies of many submissions; `answers` has a column for each attribute."""
    form = campaign.form_for(cohort)
    return [submission(campaign, words_to_hex(row), cohort) for row in form.privatize(answers, rng=rng)]


def report_words(plan: Plan, reports: npt.NDArray[Any]) -> bytes:
    """The words of reports of one plan, one after the other."""
    return reports.astype("<u8").tobytes()


def random_ids(count: int) -> bytes:
    """The ids of so many submissions."""
    return os.urandom(16 * count)
