"""Who may send a report: invitations, the largest number of reports of a campaign, and withdrawn reports.

An invitation is a random code, of which only the SHA-256 is stored. The row of a used code is deleted in the
transaction that stores its report, so that no row shows which code a report came with.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import CODE_BYTES, hex_bytes
from priorveil.curator.store import (
    LASTING,
    REPORT_COUNT,
    Ended,
    Statements,
    Store,
    Unavailable,
    count_words,
    published_because,
)

FULL = "full"
NO_INVITATION = "no invitation"  # no code, an unknown one or a used one: they are not told apart
ID_IN_USE = "id in use"

_NUMBER = "SELECT number FROM campaigns WHERE id = $1"
_LASTING = f"SELECT id FROM campaigns WHERE number = $1 AND {LASTING}"
_PUBLISHED = "SELECT published FROM campaigns WHERE number = $1"
_FORMS = "SELECT id, number FROM forms WHERE campaign = $1"
_FIND = "SELECT form, words FROM submissions WHERE campaign = $1 AND report_id = $2"
_ADD = "INSERT INTO submissions (campaign, report_id, form, words) VALUES ($1, $2, $3, $4)"
_REMOVE = "DELETE FROM submissions WHERE campaign = $1 AND report_id = $2 RETURNING form, words"
_USE = "DELETE FROM invitations WHERE campaign = $1 AND digest = $2 RETURNING digest"


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


class Admitted(NamedTuple):
    """For each claim why it is refused, or None if its report is stored; and how many are new, by campaign."""

    reasons: list[str | None]
    new: Counter[str]


async def admit(store: Store, claims: Sequence[Claim]) -> Admitted:
    """Store and count the reports that may be stored, in one durable transaction.

    A report that is stored already is acknowledged before its code is looked at, so a sender can always try again.
    """

    def statements() -> Statements[Admitted]:
        campaigns = {claim.campaign.id: claim.campaign for claim in claims}
        numbers: dict[str, int] = {}
        forms: dict[tuple[str, str], int] = {}
        room: dict[str, int] = {}
        for id in sorted(campaigns):  # the same order in all writers, to avoid deadlocks
            numbers[id] = yield from _lock(store, id)
            if not (yield _LASTING, numbers[id]):
                raise Unavailable("the reports of this campaign were deleted, or its results published")
            forms |= {(id, form): number for form, number in (yield _FORMS, numbers[id])}
            most = campaigns[id].most_reports
            if most is not None:
                [[count]] = yield REPORT_COUNT, id
                room[id] = max(0, most - count)
        reasons: list[str | None] = []
        new: dict[tuple[str, str], list[bytes]] = {}
        for claim in claims:
            id = claim.campaign.id
            if (id, claim.form) not in forms:  # it was deleted meanwhile
                raise Unavailable("this store does not have the campaign")
            number, form = numbers[id], forms[id, claim.form]
            stored = yield _FIND, number, claim.report_id
            reason = None
            if stored:
                reason = None if tuple(stored[0]) == (form, claim.words) else ID_IN_USE
            elif room.get(id) == 0:
                reason = FULL
            elif claim.campaign.admission == "invitation" and not (yield from _use(number, claim.code)):
                reason = NO_INVITATION
            else:
                yield _ADD, number, claim.report_id, form, claim.words
                new.setdefault((id, claim.form), []).append(claim.words)
                if id in room:
                    room[id] -= 1
            reasons.append(reason)
        for key in sorted(new, key=forms.__getitem__):
            form_of_key = campaigns[key[0]].forms[key[1]]
            yield store.add_cells, forms[key], count_words(form_of_key, b"".join(new[key]))
        counts = Counter[str]()
        for (id, _), its_words in new.items():
            counts[id] += len(its_words)
        return Admitted(reasons, counts)

    return await store.transact(statements)


async def withdraw(store: Store, campaign: Campaign, report_ids: Iterable[bytes]) -> int:
    """Remove reports by their ids, and take them out of the tallies; return how many there were.

    Raises `Ended` once the results are published.
    """

    def statements() -> Statements[int]:
        campaign_number = yield from _lock(store, campaign.id)
        [[published]] = yield _PUBLISHED, campaign_number
        if published is not None:
            raise Ended(f"no report can be removed from this campaign: {published_because(published)}")
        forms = {number: campaign.forms[id] for id, number in (yield _FORMS, campaign_number)}
        removed: dict[int, list[bytes]] = {}
        for report_id in sorted(set(report_ids)):
            for form, words in (yield _REMOVE, campaign_number, report_id):
                removed.setdefault(form, []).append(words)
        for form in sorted(removed):
            yield store.add_cells, form, count_words(forms[form], b"".join(removed[form]), sign=-1)
        return sum(map(len, removed.values()))

    return await store.transact(statements)


def _lock(store: Store, campaign: str) -> Statements[int]:
    """Wait for other transactions that admit or remove reports of a campaign; its number."""
    rows = yield _NUMBER, campaign
    if not rows:
        raise Unavailable("this store does not have the campaign")
    [[number]] = rows
    yield store.campaign_lock, number
    return int(number)


def _use(campaign: int, code: str | None) -> Statements[bool]:
    """Use up the invitation with this code; False if there is none."""
    digest = code_digest(code)
    return digest is not None and bool((yield _USE, campaign, digest))


def fresh_codes(count: int) -> list[str]:
    """New codes for invitations: random bytes, in hexadecimal."""
    return [secrets.token_hex(CODE_BYTES) for _ in range(count)]
