"""What somebody who sees only published totals can learn about one person of a cohort.

It may be said of one publication that never changes, made after admission had closed, if each report needed an
invitation of its own: the curator sees to that. What no code can check is that a reader has no log of the order of
arrival, no earlier totals and no reports; a stated share of the people may let others see theirs. It says nothing
against the curator, who has the reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from priorveil.plans.form import Form, Part
from priorveil.priors import Prior
from priorveil.priors.label_texts import label_names
from priorveil.reading.tally import Tally
from priorveil.results.document import Belief, Totals
from priorveil.results.form_estimates import CohortForms

DELTA = 1e-6  # of all totals of a person together

_Published = list[tuple[Part, Tally]]


def totals_of(
    forms: CohortForms,
    tallies: Mapping[Any, Sequence[Tally]],
    colluding: float,
    delta: float = DELTA,
) -> dict[Any, Totals]:
    """What the published totals of each cohort tell, from the tallies of its parts, without those that are withheld.

    Nothing if it cannot be said of every cohort: the secret of a plan is behind the value, people have weights, or
    there is no finite level.
    """
    published = {
        cohort: [own for own in _published_slots(form, tallies[cohort], forms.smallest_count) if own]
        for cohort, form in forms.forms.items()
    }
    every = [pair for slots in published.values() for slot in slots for pair in slot]
    if any(part.plan.secret is not None or tally.weighted is not None for part, tally in every):
        return {}
    found = {cohort: _cohort_totals(slots, colluding, delta) for cohort, slots in published.items() if slots}
    return {} if any(math.isinf(each.epsilon) for each in found.values()) else found


def people_who_do_not_collude(reports: int, colluding: float) -> int:
    """How many reports a person is hidden among, if this share of the people may let others see what they sent.

    >>> people_who_do_not_collude(1_000, 0.1), people_who_do_not_collude(15, 0.1), people_who_do_not_collude(1, 0.1)
    (900, 13, 1)
    """
    return max(reports - math.ceil(reports * colluding), 1)


def _published_slots(form: Form, tallies: Sequence[Tally], smallest_count: int) -> Iterator[_Published]:
    """For each slot of a form its parts that are not withheld, with their tallies."""
    every = list(zip(form.parts, tallies, strict=True))
    for start, end in pairwise(accumulate((len(slot.parts) for slot in form.slots), initial=0)):
        yield [(part, tally) for part, tally in every[start:end] if tally.reports >= max(smallest_count, 1)]


def _cohort_totals(slots: Sequence[_Published], colluding: float, delta: float) -> Totals:
    """The totals of one cohort: levels of slots add up, and a person reports about one part of each."""
    levels = [
        max(
            part.plan.totals_level(people_who_do_not_collude(tally.reports, colluding), delta / len(slots))
            for part, tally in slot
        )
        for slot in slots
    ]
    every = [pair for slot in slots for pair in slot]
    priors = ((part, part.plan.prior, tally) for part, tally in every)
    known = [(part, prior, tally) for part, prior, tally in priors if isinstance(prior, Prior)]
    return Totals(
        epsilon=math.fsum(levels),
        delta=delta,
        people=min(people_who_do_not_collude(tally.reports, colluding) for _, tally in every),
        colluding=colluding,
        beliefs=tuple(_belief(part, prior, tally) for part, prior, tally in known)
        if len(known) == len(every)
        else (),
    )


def _belief(part: Part, prior: Prior, tally: Tally) -> Belief:
    """The value whose probability changes by the largest factor for somebody who starts from the prior.

    To an observer for whom people are independent draws of the prior, the lift of a tally is the average of the lifts
    of its reports: the probability that a given person has a value moves to the share of it by method mmse.
    """
    plan, before = part.plan, prior.probabilities
    moments = plan.reader.answer("mmse", tally.counts, before, None, False)
    after = np.clip(moments.mean / tally.reports, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        most = int(np.argmax(np.abs(np.log(after / before))))
    return Belief(
        part.attributes, label_names([plan.labels[most]])[0], float(before[most]), float(after[most])
    )
