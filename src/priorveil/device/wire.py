"""Wire formats: how reports travel from a client to the curator.

A submission is what one person sends: a row of 64-bit words, as many for everybody with the same form. A body in JSON
is one submission, `{"report_id": 32 hexadecimal digits, "form": form id, "report": 16 hexadecimal digits for each
word}`, or `{"reports": [...]}`. One for a campaign with invitations also has a `"code"`, 32 hexadecimal digits. A
packed body holds submissions of one form: `PVR1`, the form id (32 bytes), their number (4 bytes), all ids (16 bytes
each), all words. Words and whole numbers are little-endian.
"""

from __future__ import annotations

import binascii
import secrets
import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

JSON = "application/json"
PACKED = "application/vnd.priorveil.reports"
PACKED_MAGIC = b"PVR1"
PACKED_HEADER = struct.Struct("<4s32sI")  # magic, form id, number of submissions
ID_BYTES = 16
CODE_BYTES = 16  # of an invitation
NO_INVITATION = "no invitation"  # why a report without a code, or with an unknown or used one, is refused
WORD_BYTES = 8


@dataclass(frozen=True)
class Report:
    """What a device sends: a random id, the campaign and the form it answers, and its words in hexadecimal.

    The form is named so that an answer to another version of a campaign cannot be counted by mistake. `replayed` says
    that it was made for an earlier answer, and the new one was not used; it does not leave.

    >>> Report("00" * 16, "campaign", "form", "0300000000000000").document()
    {'report_id': '00000000000000000000000000000000', 'form': 'form', 'report': '0300000000000000'}
    """

    report_id: str
    campaign: str
    form: str
    report: str
    replayed: bool = field(default=False, compare=False)

    def document(self) -> dict[str, str]:
        """The submission as JSON; its campaign is in the address that it is sent to."""
        return {"report_id": self.report_id, "form": self.form, "report": self.report}


def fresh_id() -> str:
    """A new report id: 16 random bytes, in hexadecimal."""
    return secrets.token_hex(ID_BYTES)


def words_to_hex(words: npt.NDArray[np.uint64]) -> str:
    """The words of one submission in hexadecimal.

    >>> words_to_hex(np.array([3], dtype=np.uint64))
    '0300000000000000'
    """
    return words.astype("<u8").tobytes().hex()


def hex_bytes(text: object, size: int) -> bytes | None:
    r"""The bytes that `2 * size` hexadecimal digits stand for; None for anything else.

    >>> hex_bytes("00ff", 2), hex_bytes("00 ff", 2), hex_bytes(None, 2)
    (b'\x00\xff', None, None)
    """
    try:
        return binascii.unhexlify(text) if isinstance(text, str) and len(text) == 2 * size else None
    except ValueError:
        return None


def unpack_words(width: int, words: bytes) -> npt.NDArray[np.uint64]:
    """Rows of so many words, one for each submission."""
    return np.frombuffer(words, dtype="<u8").reshape(-1, width)


def packed_body(form: str, ids: bytes, words: bytes) -> bytes:
    """A packed body.

    >>> len(packed_body("00" * 32, bytes(16), bytes(8)))
    64
    """
    return PACKED_HEADER.pack(PACKED_MAGIC, bytes.fromhex(form), len(ids) // ID_BYTES) + ids + words
