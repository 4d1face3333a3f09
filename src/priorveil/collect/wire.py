"""Wire formats: how reports travel from a client to the curator.

A body in JSON is one report, `{"report_id": 32 hexadecimal digits, "plan": plan id, "report": number or hexadecimal}`,
or `{"reports": [...]}`. A report for a campaign with invitations also has a `"code"`, 32 hexadecimal digits. A packed
body holds reports of one plan: `PVR1`, the plan id (32 bytes), the number of reports (4 bytes), all ids (16 bytes
each), all reports (64-bit words). Whole numbers are little-endian.
"""

from __future__ import annotations

import binascii
import secrets
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms import Mechanism

JSON = "application/json"
PACKED = "application/vnd.priorveil.reports"
PACKED_MAGIC = b"PVR1"
PACKED_HEADER = struct.Struct("<4s32sI")  # magic, plan id, number of reports
ID_BYTES = 16
CODE_BYTES = 16  # of an invitation
WORD_BYTES = 8
LARGEST_REPORT = 2**53  # JavaScript would round whole numbers from here on


@dataclass(frozen=True)
class Report:
    """What leaves a device: a random id, the campaign and the plan it answers, and the report as JSON.

    The plan is named so that an answer to another version of a campaign cannot be counted by mistake.

    >>> Report("00" * 16, "campaign", "plan", 3).document()
    {'report_id': '00000000000000000000000000000000', 'plan': 'plan', 'report': 3}
    """

    report_id: str
    campaign: str
    plan: str
    report: int | str

    def document(self) -> dict[str, int | str]:
        """The report as JSON; its campaign is in the address that it is sent to."""
        return {"report_id": self.report_id, "plan": self.plan, "report": self.report}


def fresh_id() -> str:
    """A new report id: 16 random bytes, in hexadecimal."""
    return secrets.token_hex(ID_BYTES)


def words_per_report(mechanism: Mechanism) -> int:
    """The number of 64-bit words of a report: one for a whole number, more for a row of bits."""
    return mechanism.width or 1


def report_to_json(mechanism: Mechanism, report: Any) -> int | str:
    """A report as JSON: a whole number below 2**53, or the words of a row of bits as little-endian hexadecimal."""
    return np.asarray(report).astype("<u8").tobytes().hex() if mechanism.width else int(report)


def pack_report(mechanism: Mechanism, report: object) -> bytes | None:
    """The 64-bit words of a report in JSON, or None if this mechanism's reports do not look like it."""
    if width := mechanism.width:
        return hex_bytes(report, WORD_BYTES * width)
    if type(report) is not int or not 0 <= report < LARGEST_REPORT:
        return None
    return report.to_bytes(WORD_BYTES, "little")


def hex_bytes(text: object, size: int) -> bytes | None:
    r"""The bytes that `2 * size` hexadecimal digits stand for; None for anything else.

    >>> hex_bytes("00ff", 2), hex_bytes("00 ff", 2), hex_bytes(None, 2)
    (b'\x00\xff', None, None)
    """
    try:
        return binascii.unhexlify(text) if isinstance(text, str) and len(text) == 2 * size else None
    except ValueError:
        return None


def unpack_reports(mechanism: Mechanism, words: bytes) -> npt.NDArray[Any]:
    """The reports in a sequence of words, as the mechanism's own arrays."""
    if mechanism.width:
        return np.frombuffer(words, dtype="<u8").reshape(-1, mechanism.width)
    return np.frombuffer(words, dtype="<i8")


def packed_body(plan: str, ids: bytes, words: bytes) -> bytes:
    """A packed body.

    >>> len(packed_body("00" * 32, bytes(16), bytes(8)))
    64
    """
    return PACKED_HEADER.pack(PACKED_MAGIC, bytes.fromhex(plan), len(ids) // ID_BYTES) + ids + words
