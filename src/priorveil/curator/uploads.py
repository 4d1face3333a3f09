"""Uploads: bodies of reports, read and sorted by plan. `priorveil.collect.wire` describes the formats."""

from __future__ import annotations

import binascii
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from priorveil.collect.wire import (
    ID_BYTES,
    LARGEST_REPORT,
    PACKED_HEADER,
    PACKED_MAGIC,
    WORD_BYTES,
    pack_report,
    sends_numbers,
    words_per_report,
)
from priorveil.curator.store import Group
from priorveil.errors import PriorveilError
from priorveil.mechanisms import Mechanism
from priorveil.plans import Plan

JSON = "application/json"
PACKED = "application/vnd.priorveil.reports"
LARGEST_BATCH = 10_000
MALFORMED = "malformed"
OUT_OF_RANGE = "out of range"
UNKNOWN_PLAN = "unknown plan"

UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)

_LONGEST_QUOTE = 200  # characters of what a decoder says


class BadBody(PriorveilError):
    """A body that cannot be read at all; `status` is the HTTP status that says so."""

    def __init__(self, detail: str, status: int = 400) -> None:
        super().__init__(detail)
        self.status = status


class Answer(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One report."""

    id: str
    plan: str
    report: int | str


class Answers(msgspec.Struct, forbid_unknown_fields=True):
    """A batch that is decoded in one step; one malformed report makes the decoding fail."""

    reports: list[Answer]


class Pieces(msgspec.Struct, forbid_unknown_fields=True):
    """A batch whose reports are not decoded yet."""

    reports: list[msgspec.Raw]


class Refusal(msgspec.Struct):
    """A report that was not taken: its place in the request, its id if it had one, and why."""

    index: int
    id: str | None
    reason: str


class Receipt(msgspec.Struct):
    """The answer to an upload: how many reports are stored (now or before), and those that are not."""

    accepted: int
    refused: list[Refusal]


class Upload(NamedTuple):
    """A body that was read: groups to store, the places of their reports, and what is refused already."""

    groups: list[Group]
    places: list[Sequence[int]]
    refused: list[Refusal]

    def refuse_all(self, reason: str) -> Upload:
        """The same with every report refused."""
        others = [
            Refusal(place, group.id_of(i), reason)
            for group, places in zip(self.groups, self.places, strict=True)
            for i, place in enumerate(places)
        ]
        return Upload([], [], [*self.refused, *others])


_one = msgspec.json.Decoder(Answer)
_many = msgspec.json.Decoder(Answers)
_pieces = msgspec.json.Decoder(Pieces)


def read_json(body: bytes, campaign: str, plans: Mapping[str, Plan]) -> Upload:
    """The reports of a JSON body, single or batch."""
    batch = b'"reports"' in body[:64]
    try:
        answers = _many.decode(body).reports if batch else [_one.decode(body)]
    except UNREADABLE:
        return _read_each(body, campaign, plans)
    _check_batch(len(answers))
    group = _group_of_one_plan(answers, campaign, plans)
    if group is None:
        return _sort_by_plan(list(answers), [a.id for a in answers], campaign, plans)
    return Upload([group], [range(len(answers))], [])


def read_packed(body: bytes, campaign: str, plans: Mapping[str, Plan]) -> Upload:
    """The reports of a packed body, all of one plan."""
    if len(body) < PACKED_HEADER.size:
        raise BadBody("a packed body begins with PVR1, a plan id and a number of reports")
    magic, plan_bytes, count = PACKED_HEADER.unpack_from(body)
    if magic != PACKED_MAGIC:
        raise BadBody("a packed body begins with PVR1")
    _check_batch(count)
    plan = plans.get(plan_bytes.hex())
    ids_end = PACKED_HEADER.size + ID_BYTES * count
    if plan is None and len(body) >= ids_end + WORD_BYTES * count:  # as much as the reports of any plan
        told = [body[at : at + ID_BYTES].hex() for at in range(PACKED_HEADER.size, ids_end, ID_BYTES)]
        return Upload([], [], [Refusal(i, told[i], UNKNOWN_PLAN) for i in range(count)])
    if plan is None or len(body) != ids_end + WORD_BYTES * words_per_report(plan.mechanism) * count:
        raise BadBody(f"{count} reports of this plan do not have this length")
    return Upload(
        [Group(campaign, plan.id, plan.mechanism, body[PACKED_HEADER.size : ids_end], body[ids_end:])],
        [range(count)],
        [],
    )


def _check_batch(size: int) -> None:
    if size > LARGEST_BATCH:
        raise BadBody(f"{size} reports at once: send at most {LARGEST_BATCH}", 413)


def _group_of_one_plan(answers: list[Answer], campaign: str, plans: Mapping[str, Plan]) -> Group | None:
    """The group of a batch in which all is as it should be: one plan, well-formed. Otherwise None."""
    if not answers:
        return None
    told = [a.id for a in answers]
    plan = plans.get(answers[0].plan)
    if plan is None or {a.plan for a in answers} != {answers[0].plan} or {*map(len, told)} != {2 * ID_BYTES}:
        return None
    try:
        ids = binascii.unhexlify("".join(told))
    except ValueError:
        return None
    words = _pack_reports([a.report for a in answers], plan.mechanism)
    return None if words is None else Group(campaign, plan.id, plan.mechanism, ids, words)


def _pack_reports(reports: list[int | str], mechanism: Mechanism) -> bytes | None:
    """The words of all reports, or None if one of them has not the right form."""
    if sends_numbers(mechanism):
        try:
            return struct.pack(f"<{len(reports)}Q", *reports) if max(reports) < LARGEST_REPORT else None  # type: ignore[operator]
        except (struct.error, TypeError):
            return None
    each = [pack_report(mechanism, r) for r in reports]
    return None if None in each else b"".join(e for e in each if e is not None)


def _read_each(body: bytes, campaign: str, plans: Mapping[str, Plan]) -> Upload:
    """The reports of a body in which something is wrong, each read on its own."""
    try:
        pieces = _pieces.decode(body).reports
    except UNREADABLE as error:
        if b'"reports"' in body[:64]:
            raise BadBody(_decoding_error(error)) from error
        pieces = [_single_report(body)]
    _check_batch(len(pieces))
    answers: list[Answer | None] = []
    for piece in pieces:
        try:
            answers.append(_one.decode(piece))
        except UNREADABLE:
            answers.append(None)
    return _sort_by_plan(
        answers, [a.id if a else _find_id(p) for a, p in zip(answers, pieces, strict=True)], campaign, plans
    )


def _single_report(body: bytes) -> msgspec.Raw:
    """The body, if it is one report."""
    try:
        _one.decode(body)
    except UNREADABLE as error:
        raise BadBody(_decoding_error(error)) from error
    return msgspec.Raw(body)


def _find_id(piece: msgspec.Raw) -> str | None:
    """The id of a report that is otherwise malformed, if it can be made out."""
    try:
        found = msgspec.json.decode(piece)
    except UNREADABLE:
        return None
    told = found.get("id") if isinstance(found, dict) else None
    return told if isinstance(told, str) and len(told) == 2 * ID_BYTES else None


def _decoding_error(error: Exception) -> str:
    return (
        "the body is nested too deeply"
        if isinstance(error, RecursionError)
        else f"not a body of reports: {str(error)[:_LONGEST_QUOTE]}"  # it may quote the body
    )


def _sort_by_plan(
    answers: Sequence[Answer | None], ids: Sequence[str | None], campaign: str, plans: Mapping[str, Plan]
) -> Upload:
    """Groups by plan, and a refusal for each malformed report."""
    refused: list[Refusal] = []
    parts: dict[str, tuple[list[bytes], list[bytes], list[int]]] = {}
    for i, answer in enumerate(answers):
        plan = plans.get(answer.plan) if answer else None
        told = _id_bytes(answer.id) if answer else None
        if answer is None or told is None:
            refused.append(Refusal(i, ids[i] if answer is None else None, MALFORMED))
        elif plan is None:
            refused.append(Refusal(i, answer.id, UNKNOWN_PLAN))
        elif (words := pack_report(plan.mechanism, answer.report)) is None:
            number = type(answer.report) is int and sends_numbers(plan.mechanism)
            refused.append(Refusal(i, answer.id, OUT_OF_RANGE if number else MALFORMED))
        else:
            columns = parts.setdefault(plan.id, ([], [], []))
            for column, entry in zip(columns, (told, words, i), strict=True):
                column.append(entry)  # type: ignore[attr-defined]
    groups = [
        Group(campaign, p, plans[p].mechanism, b"".join(c[0]), b"".join(c[1])) for p, c in parts.items()
    ]
    return Upload(groups, [c[2] for c in parts.values()], refused)


def _id_bytes(text: str) -> bytes | None:
    if len(text) != 2 * ID_BYTES:
        return None
    try:
        return binascii.unhexlify(text)
    except ValueError:
        return None
