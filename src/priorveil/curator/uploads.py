"""Uploads: bodies of reports, read and sorted by plan. `priorveil.collect.wire` describes the formats."""

from __future__ import annotations

import binascii
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from starlette.exceptions import HTTPException

from priorveil.collect import wire
from priorveil.curator.store import Group
from priorveil.mechanisms import Mechanism
from priorveil.plans import Plan

LARGEST_BATCH = 10_000
MALFORMED = "malformed"
OUT_OF_RANGE = "out of range"
UNKNOWN_PLAN = "unknown plan"

UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)

_LONGEST_QUOTE = 200  # characters of what a decoder says


class ReportBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One report with its id and the id of its plan."""

    id: str
    plan: str
    report: int | str


class BatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """A batch that is decoded in one step; one malformed report makes the decoding fail."""

    reports: list[ReportBody]


class Pieces(msgspec.Struct, forbid_unknown_fields=True):
    """A batch whose reports are not decoded yet."""

    reports: list[msgspec.Raw]


class Refusal(msgspec.Struct):
    """A report that was not taken: its index in the request, its id if it had one, and why."""

    index: int
    id: str | None
    reason: str


class Receipt(msgspec.Struct):
    """The answer to an upload: how many reports are stored (now or before), and those that are not."""

    accepted: int
    refused: list[Refusal]


class Upload(NamedTuple):
    """A body that was read: groups to store, the indices of their reports, and what is refused already."""

    groups: list[Group]
    indices: list[Sequence[int]]
    refused: list[Refusal]

    def refuse_all(self, reason: str) -> Upload:
        """The same with every report refused."""
        others = [
            Refusal(index, group.id_of(i), reason)
            for group, indices in zip(self.groups, self.indices, strict=True)
            for i, index in enumerate(indices)
        ]
        return Upload([], [], [*self.refused, *others])


_one = msgspec.json.Decoder(ReportBody)
_many = msgspec.json.Decoder(BatchBody)


def read_json(body: bytes, campaign: str, plans: Mapping[str, Plan]) -> Upload:
    """The reports of a JSON body, single or batch."""
    batch = b'"reports"' in body[:64]
    try:
        bodies = _many.decode(body).reports if batch else [_one.decode(body)]
    except UNREADABLE as error:
        return _sort_by_plan(_read_each(body, None if batch else error), campaign, plans)
    _check_batch(len(bodies))
    group = _group_of_one_plan(bodies, campaign, plans)
    return Upload([group], [range(len(bodies))], []) if group else _sort_by_plan(bodies, campaign, plans)


def read_packed(body: bytes, campaign: str, plans: Mapping[str, Plan]) -> Upload:
    """The reports of a packed body, all of one plan."""
    if len(body) < wire.PACKED_HEADER.size:
        raise HTTPException(400, "a packed body begins with PVR1, a plan id and a number of reports")
    magic, plan_bytes, count = wire.PACKED_HEADER.unpack_from(body)
    if magic != wire.PACKED_MAGIC:
        raise HTTPException(400, "a packed body begins with PVR1")
    _check_batch(count)
    plan = plans.get(plan_bytes.hex())
    ids_end = wire.PACKED_HEADER.size + wire.ID_BYTES * count
    if plan is None and len(body) >= ids_end + wire.WORD_BYTES * count:  # as much as the reports of any plan
        hex_ids = [
            body[at : at + wire.ID_BYTES].hex()
            for at in range(wire.PACKED_HEADER.size, ids_end, wire.ID_BYTES)
        ]
        return Upload([], [], [Refusal(i, hex_ids[i], UNKNOWN_PLAN) for i in range(count)])
    if plan is None or len(body) != ids_end + wire.WORD_BYTES * wire.words_per_report(plan.mechanism) * count:
        raise HTTPException(400, f"{count} reports of this plan do not have this length")
    group = Group(campaign, plan.id, plan.mechanism, body[wire.PACKED_HEADER.size : ids_end], body[ids_end:])
    return Upload([group], [range(count)], [])


def _check_batch(size: int) -> None:
    if size > LARGEST_BATCH:
        raise HTTPException(413, f"{size} reports at once: send at most {LARGEST_BATCH}")


def _group_of_one_plan(bodies: list[ReportBody], campaign: str, plans: Mapping[str, Plan]) -> Group | None:
    """The group of a batch in which all is as it should be: one plan, well-formed. Otherwise None."""
    if not bodies:
        return None
    hex_ids = [body.id for body in bodies]
    plan = plans.get(bodies[0].plan)
    if (
        plan is None
        or {body.plan for body in bodies} != {bodies[0].plan}
        or {*map(len, hex_ids)} != {2 * wire.ID_BYTES}
    ):
        return None
    try:
        ids = binascii.unhexlify("".join(hex_ids))
    except ValueError:
        return None
    words = _pack_reports([body.report for body in bodies], plan.mechanism)
    return None if words is None else Group(campaign, plan.id, plan.mechanism, ids, words)


def _pack_reports(reports: list[int | str], mechanism: Mechanism) -> bytes | None:
    """The words of all reports, or None if one of them has not the right form."""
    if mechanism.width == 0:
        try:
            return struct.pack(f"<{len(reports)}Q", *reports) if max(reports) < wire.LARGEST_REPORT else None  # type: ignore[operator]
        except (struct.error, TypeError):
            return None
    each = [wire.pack_report(mechanism, r) for r in reports]
    return None if None in each else b"".join(e for e in each if e is not None)


def _read_each(body: bytes, why_not_one: Exception | None) -> list[ReportBody | str | None]:
    """The reports of a batch in which something is wrong, each read on its own; of a malformed one, its id.

    A body that is no batch is refused; the error says `why_not_one`: why it is not a single report either.
    """
    try:
        pieces = msgspec.json.decode(body, type=Pieces).reports
    except UNREADABLE as why_no_batch:
        error = why_not_one or why_no_batch
        deep = isinstance(error, RecursionError)
        problem = f"not a body of reports: {str(error)[:_LONGEST_QUOTE]}"  # it may quote the body
        raise HTTPException(400, "the body is nested too deeply" if deep else problem) from error
    _check_batch(len(pieces))
    entries: list[ReportBody | str | None] = []
    for piece in pieces:
        try:
            entries.append(_one.decode(piece))
        except UNREADABLE:
            entries.append(_find_id(piece))
    return entries


def _find_id(piece: msgspec.Raw) -> str | None:
    """The id of a report that is otherwise malformed, if it can be made out."""
    try:
        report = msgspec.json.decode(piece)
    except UNREADABLE:
        return None
    id = report.get("id") if isinstance(report, dict) else None
    return id if isinstance(id, str) and len(id) == 2 * wire.ID_BYTES else None


def _sort_by_plan(
    entries: Sequence[ReportBody | str | None], campaign: str, plans: Mapping[str, Plan]
) -> Upload:
    """Groups by plan, and a refusal for each report that cannot be counted."""
    upload = Upload([], [], [])
    rows: dict[str, list[tuple[bytes, bytes, int]]] = {}
    for i, entry in enumerate(entries):
        if not isinstance(entry, ReportBody):
            upload.refused.append(Refusal(i, entry, MALFORMED))
        elif (id := _id_bytes(entry.id)) is None:
            upload.refused.append(Refusal(i, None, MALFORMED))
        elif (plan := plans.get(entry.plan)) is None:
            upload.refused.append(Refusal(i, entry.id, UNKNOWN_PLAN))
        elif (words := wire.pack_report(plan.mechanism, entry.report)) is None:
            number = type(entry.report) is int and plan.mechanism.width == 0
            upload.refused.append(Refusal(i, entry.id, OUT_OF_RANGE if number else MALFORMED))
        else:
            rows.setdefault(plan.id, []).append((id, words, i))
    for plan_id, columns in rows.items():
        ids, packed, indices = zip(*columns, strict=True)
        mechanism = plans[plan_id].mechanism
        upload.groups.append(Group(campaign, plan_id, mechanism, b"".join(ids), b"".join(packed)))
        upload.indices.append(indices)
    return upload


def _id_bytes(text: str) -> bytes | None:
    try:
        return binascii.unhexlify(text) if len(text) == 2 * wire.ID_BYTES else None
    except ValueError:
        return None
