"""Uploads: bodies of reports, read and sorted by form. `priorveil.device.wire` describes the formats."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from starlette.exceptions import HTTPException

from priorveil.curator.admission import Claim
from priorveil.curator.messages import LARGEST_BATCH, BatchBody, Refusal, ReportBody
from priorveil.curator.store import Group
from priorveil.device import wire
from priorveil.plans.form import Form
from priorveil.plans.structure import Document, decode
from priorveil.questions.campaign import Campaign

MALFORMED = "malformed"
OUT_OF_RANGE = "out of range"
UNKNOWN_FORM = "unknown form"

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)
_LONGEST_QUOTE = 200  # characters of what a decoder says


class _UndecodedBatch(Document, frozen=True):
    """A batch whose reports are decoded one by one."""

    reports: list[msgspec.Raw]


class _Piece:
    """Any JSON value in the place of a report."""


class _PiecesBatch(Document, frozen=True):
    """A batch whose pieces are only counted."""

    reports: list[_Piece]


class Upload(NamedTuple):
    """A body that was read: groups of reports to store, and the reports that are refused.

    `indices` says where in the body the reports of each group came, `codes` has the codes of invitations by that index.
    """

    groups: list[Group]
    refused: list[Refusal]
    indices: list[Sequence[int]]
    codes: dict[int, str]

    def add(self, group: Group, indices: Sequence[int]) -> None:
        """Add the reports of one form, which came at these indices; those that it cannot have made are refused."""
        valid = group.form.accepts(wire.unpack_words(group.form.width, group.words))
        if not valid.all():
            bad = np.flatnonzero(~valid).tolist()
            self.refused.extend(Refusal(indices[i], group.id_of(i), OUT_OF_RANGE) for i in bad)
            group, indices = group.select(valid), [indices[i] for i in np.flatnonzero(valid).tolist()]
        if group.size:
            self.groups.append(group)
            self.indices.append(indices)

    def claims(self, campaign: Campaign) -> list[Claim]:
        """The same reports one by one, each with its code."""
        return [
            Claim(campaign, group.form.id, report_id, words, self.codes.get(index), index)
            for group, indices in zip(self.groups, self.indices, strict=True)
            for index, report_id, words in zip(
                indices, *(part.tolist() for part in group.rows()), strict=True
            )
        ]


# Reads a body that was sent to a campaign. A report of a form that is not among the forms is refused for the reason.
UploadReader = Callable[[bytes, str, Mapping[str, Form], str], Upload]

_one = msgspec.json.Decoder(ReportBody)
_many = msgspec.json.Decoder(BatchBody)
_undecoded = msgspec.json.Decoder(_UndecodedBatch)
_PIECE = _Piece()


def read_json(body: bytes, campaign: str, forms: Mapping[str, Form], reason: str = UNKNOWN_FORM) -> Upload:
    """The reports of a JSON body, single or batch."""
    upload = Upload([], [], [], {})
    rows: dict[str, list[tuple[bytes, bytes, int]]] = {}
    for i, report in enumerate(_decode(body)):
        if report is None or (report_id := wire.hex_bytes(report.report_id, wire.ID_BYTES)) is None:
            upload.refused.append(Refusal(i, None, MALFORMED))
        elif (form := forms.get(report.form)) is None:
            upload.refused.append(Refusal(i, report.report_id, reason))
        elif (words := wire.hex_bytes(report.report, wire.WORD_BYTES * form.width)) is None:
            upload.refused.append(Refusal(i, report.report_id, MALFORMED))
        else:
            rows.setdefault(report.form, []).append((report_id, words, i))
            if report.code is not None:
                upload.codes[i] = report.code
    for form_id, columns in rows.items():
        ids, packed, indices = zip(*columns, strict=True)
        upload.add(Group(campaign, forms[form_id], b"".join(ids), b"".join(packed)), indices)
    return upload


def read_packed(body: bytes, campaign: str, forms: Mapping[str, Form], reason: str = UNKNOWN_FORM) -> Upload:
    """The reports of a packed body, all of one form."""
    head = wire.PACKED_HEADER
    if len(body) < head.size or not body.startswith(wire.PACKED_MAGIC):
        raise HTTPException(400, "a packed body begins with PVR1, a form id and a number of reports")
    _, form_bytes, count = head.unpack_from(body)
    _check_batch(count)
    form = forms.get(form_bytes.hex())
    ids_end = head.size + wire.ID_BYTES * count
    ids, words = body[head.size : ids_end], body[ids_end:]
    least = wire.WORD_BYTES * count  # the reports of any form
    if len(words) < least or (form and len(words) != least * form.width):
        raise HTTPException(400, f"{count} reports of this form do not have this length")
    upload = Upload([], [], [], {})
    if form is not None:
        upload.add(Group(campaign, form, ids, words), range(count))
    else:
        names = ids.hex(" ", wire.ID_BYTES).split()
        upload.refused.extend(Refusal(i, name, reason) for i, name in enumerate(names))
    return upload


def is_batch(body: bytes) -> bool:
    """Whether a JSON body is read as a batch of reports; every other body is read as one report."""
    return b'"reports"' in body.lstrip()[:64]


def _check_batch(size: int) -> None:
    if size > LARGEST_BATCH:
        raise HTTPException(413, f"too many reports at once: send at most {LARGEST_BATCH}")


def _count_pieces(body: bytes) -> None:
    """Refuse a batch of too many pieces. Decoding stops at the first piece above the limit."""
    places = itertools.count(1)

    def count(_: type, __: object) -> _Piece:
        _check_batch(next(places))
        return _PIECE

    decode(body, _PiecesBatch, count)


def _decode(body: bytes) -> list[ReportBody | None]:
    """The reports of a body, None for each malformed one in a batch.

    Reports are counted before they are decoded: a stranger's body costs no more than a full batch.
    """
    try:
        if not is_batch(body):
            return [_one.decode(body)]
        _check_batch(body.count(b'"report_id"'))
        try:
            reports: list[ReportBody | None] = [*_many.decode(body).reports]
        except msgspec.ValidationError:  # a malformed report must not harm the others
            _count_pieces(body)
            reports = [_decode_piece(piece) for piece in _undecoded.decode(body).reports]
    except _UNREADABLE as error:
        deep = isinstance(error, RecursionError)
        problem = f"not a body of reports: {str(error)[:_LONGEST_QUOTE]}"  # it may quote the body
        raise HTTPException(400, "the body is nested too deeply" if deep else problem) from error
    _check_batch(len(reports))
    return reports


def _decode_piece(piece: msgspec.Raw) -> ReportBody | None:
    try:
        return _one.decode(piece)
    except _UNREADABLE:
        return None
