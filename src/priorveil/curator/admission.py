"""Who may send a report: invitations, the largest number of reports of a campaign, and withdrawn reports.

An invitation is a random code, of which only the SHA-256 is stored. The row of a used code is deleted in the
transaction that stores its report, so that no row shows which code a report came with.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from priorveil.curator.store import (
    FORM_NUMBERS,
    REPORT_COUNT,
    Ended,
    Statements,
    Store,
    Unavailable,
    count_words,
    published_because,
)
from priorveil.device.wire import CODE_BYTES, NO_INVITATION, hex_bytes
from priorveil.questions.campaign import Campaign

FULL = "full"
ID_IN_USE = "id in use"

_FORMS = "SELECT id, number FROM forms WHERE campaign = $1"


class Claim(NamedTuple):
    """A report for a campaign that does not take every report, with the code of its invitation.

    `place` says where in a body it came.
    """

    campaign: Campaign
    form: str
    report_id: bytes
    words: bytes
    code: str | None
    place: int = 0


def is_limited(campaign: Campaign) -> bool:
    """Whether a campaign does not take every report, so that each one is checked in its transaction."""
    return campaign.admission != "open" or campaign.most_reports is not None


def code_digest(code: str | None) -> bytes | None:
    """What is stored of a code; None if it cannot be one. Codes are random and long, so one hash is enough."""
    content = hex_bytes(code, CODE_BYTES)
    return None if content is None else hashlib.sha256(content).digest()


class AdmissionOutcome(NamedTuple):
    """For each claim why it is refused, or None if its report is stored; and how many are new, by campaign."""

    reasons: list[str | None]
    new: Counter[str]


async def admit(store: Store, claims: Sequence[Claim]) -> AdmissionOutcome:
    """Store and count the reports that may be stored, in one durable transaction.

    A report that is stored already is acknowledged before its code is looked at, so a sender can always try again. The
    number of statements does not depend on the number of claims.
    """

    def statements() -> Statements[AdmissionOutcome]:
        reasons: list[str | None] = [None] * len(claims)
        new = Counter[str]()
        by_campaign: dict[str, list[int]] = {}
        for place, claim in enumerate(claims):
            by_campaign.setdefault(claim.campaign.id, []).append(place)
        for id in sorted(by_campaign):  # the same order in all writers, to avoid deadlocks
            its_reasons = yield from _admit(store, [claims[place] for place in by_campaign[id]], new)
            for place, reason in zip(by_campaign[id], its_reasons, strict=True):
                reasons[place] = reason
        return AdmissionOutcome(reasons, new)

    return await store.transact(statements)


def _admit(store: Store, claims: Sequence[Claim], new: Counter[str]) -> Statements[list[str | None]]:
    """Admit claims to one campaign, one after the other; count those that are new."""
    campaign = claims[0].campaign
    number, _, _ = yield from store.lock(campaign.id)
    forms = {form: form_number for form, _, form_number in (yield FORM_NUMBERS, campaign.id)}
    if any(claim.form not in forms for claim in claims):
        raise Unavailable("the reports of this campaign were deleted, or its results published")
    room = math.inf
    if campaign.most_reports is not None:
        [[count]] = yield REPORT_COUNT, campaign.id
        room = campaign.most_reports - count
    rows = yield store.find_reports, number, b"".join(claim.report_id for claim in claims)
    stored = {id: (form, words) for id, form, words in rows}
    needs_code, free, used = campaign.admission == "invitation", set[bytes](), list[bytes]()
    digests = [code_digest(claim.code) if needs_code else None for claim in claims]
    if given := b"".join(filter(None, digests)):
        free = {digest for (digest,) in (yield store.find_invitations, number, given)}
    added: dict[str, list[tuple[bytes, bytes]]] = {}
    reasons: list[str | None] = []
    for claim, digest in zip(claims, digests, strict=True):
        report, reason = (forms[claim.form], claim.words), None
        if claim.report_id in stored:
            reason = None if stored[claim.report_id] == report else ID_IN_USE
        elif room <= 0:
            reason = FULL
        elif needs_code and digest not in free:
            reason = NO_INVITATION
        else:
            stored[claim.report_id] = report
            added.setdefault(claim.form, []).append((claim.report_id, claim.words))
            room -= 1
            if digest is not None:
                free.remove(digest)
                used.append(digest)
        reasons.append(reason)
    if used:
        yield store.use_invitations, number, b"".join(used)
    for form, reports in sorted(added.items()):
        ids, words = map(b"".join, zip(*sorted(reports), strict=True))  # not in the order in which they came
        yield store.add_reports, number, ids, forms[form], words, len(words) // len(reports)
        yield store.add_cells, forms[form], count_words(campaign.forms[form], words)
        new[campaign.id] += len(reports)
    return reasons


async def withdraw(store: Store, campaign: Campaign, report_ids: Iterable[bytes]) -> int:
    """Remove reports by their ids, and take them out of the tallies; return how many there were.

    Raises `Ended` once the results are published.
    """
    ids = b"".join(set(report_ids))

    def statements() -> Statements[int]:
        number, published, _ = yield from store.lock(campaign.id)
        if published is not None:
            raise Ended(f"no report can be removed from this campaign: {published_because(published)}")
        forms = {number: campaign.forms[id] for id, number in (yield _FORMS, number)}
        removed: dict[int, list[bytes]] = {}
        for form, words in (yield store.remove_reports, number, ids):
            removed.setdefault(form, []).append(words)
        for form in sorted(removed):
            yield store.add_cells, form, count_words(forms[form], b"".join(removed[form]), sign=-1)
        return sum(map(len, removed.values()))

    return await store.transact(statements)


def fresh_codes(count: int) -> list[str]:
    """New codes for invitations: random bytes, in hexadecimal."""
    return [secrets.token_hex(CODE_BYTES) for _ in range(count)]
