"""A source of given random words, for test vectors: a mechanism draws the same report from the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.mechanisms.randomness import WORD, Source, Words


@dataclass
class BytesSource(Source):
    """A fixed string of bytes, read once from front to back.

    >>> BytesSource(bytes([7] + [0] * 7)).words(1)
    array([7], dtype=uint64)
    """

    data: bytes
    used: int = 0

    def words(self, count: int) -> Words:
        """The next words of the string; an error when it is used up."""
        end = self.used + 8 * count
        if end > len(self.data):
            advice = f"give at least {end} bytes, eight for every word drawn"
            raise InvalidInput("data", NOT_SHOWN, f"{len(self.data)} bytes; {advice}")
        words = np.frombuffer(self.data, dtype=WORD, count=count, offset=self.used)
        self.used = end
        return words
