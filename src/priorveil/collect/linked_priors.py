"""Priors of questions that skip logic links: together they have to be margins of one joint law.

A question that is asked after some answers to another one is not asked with the probability of all other answers. If
the priors of both do not say so, they cannot both be right, and levels of LIP cannot be added: only LDP levels count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from priorveil.collect.questions import NOT_ASKED, Question
from priorveil.plans.composition import Names
from priorveil.plans.form import Form, Part
from priorveil.priors import Prior
from priorveil.priors.domain import entry_key
from priorveil.priors.label_texts import label_parts

_SAME_SHARES = 1e-9  # how much two shares may differ, relative: what floats lose in sums


def contradictory_parts(questions: Sequence[Question], form: Form) -> set[Names]:
    """The attributes of the parts whose priors count as unknown, in a form with several slots.

    A question that is not always asked counts as known if it has one gate, the gate is reported in the same form with
    a known prior, and both agree on how many people are asked. If they disagree the gate counts as unknown, too. So do
    parts that overlap in a circle, where a question overlaps with its gate.
    """
    unknown: set[Names] = set()
    if len(form.slots) == 1:
        return unknown
    for question in questions:
        parts = [(part, attribute) for attribute in question.attributes for part in _about(form, attribute)]
        if not question.asked_if or not parts:
            continue
        skipped = [_share(part, attribute, [NOT_ASKED]) for part, attribute in parts]
        gates = [(part, name) for name in question.asked_if for part in _about(form, name)]
        known = [
            1 - share
            for part, name in gates
            if (share := _share(part, name, question.asked_if[name])) is not None
        ]
        comparable = len(question.asked_if) == 1 and bool(known)
        if comparable and _all_equal([*skipped, *known]):
            continue
        unknown |= {part.attributes for part, _ in parts}
        if comparable:
            unknown |= {part.attributes for part, _ in gates}
    linked = [
        (*question.asked_if, *question.attributes) for question in questions if len(question.asked_if) == 1
    ]
    return unknown | form.cyclic_parts(linked)


def _about(form: Form, attribute: str) -> Iterator[Part]:
    return (part for part in form.parts if attribute in part.attributes)


def _share(part: Part, attribute: str, levels: Iterable[str]) -> float | None:
    """The probability of some levels of an attribute under the prior of a part; None if that is not known."""
    prior = part.plan.prior
    if not isinstance(prior, Prior) or prior.assumed:
        return None
    place, keys = part.attributes.index(attribute), set(map(entry_key, levels))
    own = zip(prior.labels, prior.probabilities.tolist(), strict=True)
    return math.fsum(p for label, p in own if entry_key(label_parts(label)[place]) in keys)


def _all_equal(shares: Sequence[float | None]) -> bool:
    first = shares[0]
    return first is not None and all(
        share is not None and math.isclose(share, first, rel_tol=_SAME_SHARES) for share in shares
    )
