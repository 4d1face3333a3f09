"""Report ids as keys, for stores that sort them: two numbers each, in order, and a bitmap of those there are."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]  # (n, 2): the two halves of n ids
Mask = npt.NDArray[np.bool_]

_HALF = 64  # bits
_BIT = np.left_shift(1, np.arange(8)).astype(np.uint8)
_AT_ONCE = 1 << 16  # keys that are marked together


def as_keys(ids: bytes, campaign: str) -> Keys:
    """Ids as keys: the same id in two campaigns is two keys."""
    mask = np.frombuffer(hashlib.sha256(campaign.encode()).digest()[:16], dtype=">u8").astype(np.uint64)
    return np.frombuffer(ids, dtype=">u8").astype(np.uint64).reshape(-1, 2) ^ mask


def items(keys: Keys) -> list[bytes]:
    """Each key as bytes, for sets."""
    found: list[bytes] = np.ascontiguousarray(keys).view("V16").ravel().tolist()
    return found


def in_order(keys: Keys) -> Keys:
    """Keys sorted by both halves, as two rows. A stable sort merges runs that are already sorted."""
    order = np.argsort(keys[:, 0], kind="stable")
    high, low = keys[order, 0], keys[order, 1]
    if np.any(high[1:] == high[:-1]):
        order = np.lexsort((low, high))
        high, low = high[order], low[order]
    return np.stack([high, low])


class Bitmap:
    """A Bloom filter of 2^`bits` bits. A key says itself where its own are: ids are random.

    `fields` places are taken from each half, so that every key has twice as many.

    >>> bitmap = Bitmap(20, 1)
    >>> bitmap.mark(np.array([[1 << 60, 2 << 60]], dtype=np.uint64))
    >>> bitmap.may_hold(np.array([[1 << 60, 2 << 60], [1 << 60, 3 << 60]], dtype=np.uint64)).tolist()
    [True, False]
    """

    def __init__(self, bits: int, fields: int) -> None:
        self._bits = bits
        self._all_fields = [(half, field) for half in (0, 1) for field in range(fields)]
        self._bytes = np.zeros(1 << (bits - 3), dtype=np.uint8)

    def mark(self, keys: Keys) -> None:
        """Add some keys."""
        for start in range(0, len(keys), _AT_ONCE):
            for field in self._all_fields:
                at, bit = self._places(keys[start : start + _AT_ONCE], *field)
                # Of several bits in one byte only the last is set; the others are set in the next round.
                while at.size:
                    self._bytes[at] |= bit
                    lost = np.flatnonzero(~self._bytes[at] & bit)
                    at, bit = at[lost], bit[lost]

    def may_hold(self, keys: Keys) -> Mask:
        """False for keys that were never added; True for those that were, and by chance for a few others."""
        left = np.arange(len(keys))
        for field in self._all_fields:
            at, bit = self._places(keys[left], *field)
            left = left[self._bytes[at] & bit != 0]
        found = np.zeros(len(keys), dtype=bool)
        found[left] = True
        return found

    def _places(
        self, keys: Keys, half: int, field: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """In which byte each key has its bit, and which one: the leading bits of a half, or those that follow."""
        shift, last = np.uint64(_HALF - self._bits * (field + 1)), np.uint64((1 << self._bits) - 1)
        places = keys[:, half] >> shift & last
        return (places >> np.uint64(3)).astype(np.int64), _BIT[places & np.uint64(7)]
