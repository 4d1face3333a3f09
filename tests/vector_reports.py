"""Reports as the shared vectors write them: a whole number, or the words of a row of bits in hexadecimal."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms import Mechanism


def report_to_json(mechanism: Mechanism, report: Any) -> int | str:
    """A report of a mechanism as it stands in a vector."""
    return np.asarray(report).astype("<u8").tobytes().hex() if mechanism.width else int(report)


def report_array(mechanism: Mechanism, sent: list[int | str]) -> npt.NDArray[Any]:
    """The reports of vectors as an array of the mechanism; rows of bits have to have its width."""
    if mechanism.width:
        words = b"".join(bytes.fromhex(str(report)) for report in sent)
        return np.frombuffer(words, "<u8").reshape(len(sent), -1)
    return np.array(sent, dtype=np.int64)
