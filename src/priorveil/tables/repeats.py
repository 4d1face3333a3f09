"""Repeated reports: rows of a table with the id of an earlier row, found in bounded memory.

While the reports are counted, eight bytes of every id go into a spool: on disk, if there are many. Sorted afterwards,
they show whether any id may occur twice. Only then is the table read again: the rows in question are compared in
full, and the repeated ones are counted once more, and taken off the counts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Mask
from priorveil.device.wire import ID_BYTES
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.files.batches import Batch
from priorveil.frames import Column, distinct, look_up, present_rows, pyarrow
from priorveil.mechanisms.randomness import Words
from priorveil.tables.reports import REPORT_ID, number_buffer

RowPlace = tuple[
    str | None, int
]  # a file, and the number of a row in it, from 0; None where there are no files

_HEX_ID = re.compile(rf"[0-9a-fA-F]{{{2 * ID_BYTES}}}")
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)  # odd, with bits all over
_MOST_WORDS = 1 << 20  # of a spool in memory
_BUCKETS = np.arange(1, 256, dtype=np.uint64) << np.uint64(56)
_FILTER_BITS = 24


class ConflictingReports(InvalidInput):
    """Rows have the same id, and different reports, plans, cohorts or groups.

    `places` has the file and the row of two of them, if they are known. Rows are counted from 0 in each file; the file
    is None for a table without files.
    """

    def __init__(self, where: str, columns: Sequence[str], places: tuple[RowPlace, ...] = ()) -> None:
        advice = (
            f"{where} have the same {REPORT_ID} and differ in {' or '.join(columns)}: an id belongs to one report, "
            "so find out which is right, and delete the others"
        )
        super().__init__("data", NOT_SHOWN, advice)
        self.places = places

    @classmethod
    def at(cls, first: RowPlace, second: RowPlace, columns: Sequence[str]) -> ConflictingReports:
        """The error for rows at two places.

        >>> print(ConflictingReports.at(("a.csv", 0), ("b.csv", 6), ["report"]).advice[:64])
        a.csv row 1 and b.csv row 7 (the first row of data is row 1) hav
        """
        texts = [
            f"row {row + 1:,}" if file is None else f"{file} row {row + 1:,}" for file, row in (first, second)
        ]
        where = f"{' and '.join(texts)} (the first row of data is row 1)"
        return cls(where, columns, (first, second))


class IdSpool:
    """Eight bytes of every id of a table; `repeated_keys` says which ids may occur twice."""

    def __init__(self) -> None:
        self.without_id = 0
        self._keys = _Spool(1)

    def watch(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches as they are; their ids are noted on the way."""
        for batch in batches:
            ids, present = id_words(batch)
            self.without_id += batch.rows - int(present.sum())
            self._keys.add(_keys(ids)[:, np.newaxis])
            yield batch

    def repeated_keys(self) -> Mask | None:
        """Which leading bits of keys belong to ids that may occur twice; None if every id is there once."""
        flags: Mask | None = None
        for bucket in self._keys.buckets():
            keys = bucket[:, 0]
            repeated = keys[1:][keys[1:] == keys[:-1]]
            if len(repeated):
                flags = np.zeros(1 << _FILTER_BITS, dtype=bool) if flags is None else flags
                flags[_filter_bits(repeated)] = True
        return flags


def repeated_rows(
    batches: Iterable[Batch], flags: Mask, columns: Sequence[str], place: Callable[[int], RowPlace]
) -> npt.NDArray[np.bool_]:
    """For every row of a table whether it repeats an earlier one: the same id, and the same entries in `columns`.

    The first of the columns has the reports. `flags` come from `IdSpool.repeated_keys`. The same id with another entry
    is an error. The flags of the rows are in a file that is mapped into memory.
    """
    rows, spool = 0, _Spool(5)
    for batch in batches:
        rows = batch.end
        ids, present = id_words(batch)
        keys = _keys(ids)
        chosen = np.flatnonzero(flags[_filter_bits(keys)])
        if len(chosen):
            indices = np.flatnonzero(present)[chosen]
            entries = _entry_digests(batch, columns)[indices]
            numbers = batch.row_numbers[indices].astype(np.uint64)
            spool.add(np.column_stack([keys[chosen], ids[chosen], numbers, entries]))
    with tempfile.TemporaryFile() as file:
        is_repeat = np.memmap(file, dtype=bool, mode="w+", shape=max(rows, 1))
    conflict: tuple[int, int] | None = None
    for bucket in filter(len, spool.buckets()):
        _, high, low, row, entry = bucket[np.lexsort([bucket[:, 3], bucket[:, 2], bucket[:, 1]])].T
        same = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        is_repeat[row[1:][same]] = True
        starts = np.concatenate([[0], np.where(same, 0, np.arange(1, len(row)))])
        first = np.maximum.accumulate(starts.astype(np.int64))  # the index of the first row with the same id
        others = np.flatnonzero(entry != entry[first])
        if len(others):
            nearest = others[np.argmin(row[others])]
            pair = int(row[nearest]), int(row[first[nearest]])
            conflict = pair if conflict is None else min(conflict, pair)
    if conflict is not None:
        raise ConflictingReports.at(place(conflict[1]), place(conflict[0]), columns)
    return is_repeat


def only_repeats(batches: Iterable[Batch], is_repeat: npt.NDArray[np.bool_]) -> Iterator[Batch]:
    """The rows that repeat an earlier one."""
    for batch in batches:
        if len(indices := np.flatnonzero(is_repeat[batch.row_numbers])):
            yield batch.take(indices)


# -- ids and entries as numbers ----------------------------------------------------------------------------


def id_words(batch: Batch) -> tuple[Words, Mask]:
    """The ids of a batch, as two words each, and which rows have one.

    An id is 16 bytes, or their hexadecimal digits; of any other text or number it is a digest.
    """
    column = batch.columns.get(REPORT_ID)
    if column is None:
        return np.empty((0, 2), dtype=np.uint64), np.zeros(batch.rows, dtype=bool)
    return _binary_words(column) or _text_words(column) or _other_words(column)


def _binary_words(column: Column) -> tuple[Words, Mask] | None:
    """The ids of an Arrow column of 16 bytes each, without a copy; None for other columns."""
    if isinstance(column, list):
        return None
    pa = pyarrow()
    if column.type not in (pa.binary(), pa.large_binary(), pa.binary(ID_BYTES)):
        return None
    whole = column.drop_null() if column.null_count else column
    try:
        whole = whole if whole.type == pa.binary(ID_BYTES) else whole.cast(pa.binary(ID_BYTES))
    except pa.ArrowInvalid:  # some ids have another length
        return None
    return number_buffer(whole, np.dtype("<u8"), 2), present_rows(column)


def _text_words(column: Column) -> tuple[Words, Mask] | None:
    """The ids of a list of hexadecimal digits, as in a CSV; None for other columns."""
    try:
        data = bytes.fromhex("".join(column)) if isinstance(column, list) else b""
    except (TypeError, ValueError):  # a gap, or other letters
        return None
    if len(data) != ID_BYTES * len(column) or set(map(len, column)) != {2 * ID_BYTES}:
        return None
    return np.frombuffer(data, dtype="<u8").reshape(-1, 2), np.ones(len(column), dtype=bool)


def _other_words(column: Column) -> tuple[Words, Mask]:
    entries, indices = distinct(column)
    digests = b"".join(_id_bytes(entry) or bytes(ID_BYTES) for entry in entries)
    present = np.array([*(_id_bytes(entry) is not None for entry in entries), False])[indices]
    return np.frombuffer(digests, dtype="<u8").reshape(-1, 2)[indices[present]], present


def _id_bytes(entry: Any) -> bytes | None:
    """The 16 bytes of an id, or a digest of it; None for an empty text, or for what is not a number."""
    text = _entry_text(entry)
    if text.lower() in ("", "nan"):
        return None
    return bytes.fromhex(text) if _HEX_ID.fullmatch(text) else blake2b(text.encode(), digest_size=16).digest()


def _entry_text(entry: Any) -> str:
    r"""The text of an entry, the same in every format of files: of bytes, hexadecimal digits.

    >>> _entry_text(7), _entry_text(7.0), _entry_text(" 7"), _entry_text(b"\xab")
    ('7', '7', '7', 'ab')
    """
    if isinstance(entry, bytes):
        return entry.hex()
    whole = isinstance(entry, float) and entry.is_integer()
    return str(int(entry) if whole else entry).strip()


def _entry_digests(batch: Batch, columns: Sequence[str]) -> Words:
    """A number for each row that two rows share if they have the same entries."""
    report, *others = columns
    digests = look_up(batch.columns[report], lambda entry: _digest(_report_text(entry)), 0, np.uint64)
    for name in others:
        entries = look_up(batch.columns[name], lambda entry: _digest(_entry_text(entry)), 0, np.uint64)
        digests = digests * _FACTORS[0] + entries
    return digests


def _report_text(entry: Any) -> str:
    """The text of a report, the same however it is written.

    Texts of 16 letters or more are the hexadecimal digits of bits, which keep their zeros.

    >>> _report_text("007"), _report_text(7), _report_text("00000000000000AB")
    ('7', '7', '00000000000000ab')
    """
    text = _entry_text(entry)
    is_number = len(text) < 16 and text.isascii() and text.isdecimal()
    return str(int(text)) if is_number else text.lower()


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _keys(ids: Words) -> Words:
    """Eight bytes for each id, scrambled: the keys of ids that are counted up also differ in their leading bits."""
    return np.asarray(ids[:, 0] * _FACTORS[0] + ids[:, 1] * _FACTORS[1])


def _filter_bits(keys: Words) -> npt.NDArray[np.int64]:
    return (keys >> np.uint64(64 - _FILTER_BITS)).astype(np.int64)


class _Spool:
    """Rows of words, which come back sorted by the first word, bucket by bucket; on disk if there are many."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._parts: list[Words] = []
        self._words = 0
        self._file: IO[bytes] | None = None
        self._blocks: list[
            tuple[int, list[int]]
        ] = []  # where a block is in the file, and where its buckets begin

    def add(self, rows: Words) -> None:
        self._parts.append(rows)
        self._words += rows.size
        if self._words >= _MOST_WORDS:
            self._flush()

    def buckets(self) -> Iterator[Words]:
        """The rows of each bucket, sorted; in one bucket if all are in memory."""
        if self._file is None:
            yield self._take_sorted()
            return
        self._flush()
        row_bytes = 8 * self._width
        with self._file as file:
            for bucket in range(len(_BUCKETS) + 1):
                pieces = []
                for position, bounds in self._blocks:
                    file.seek(position + row_bytes * bounds[bucket])
                    pieces.append(file.read(row_bytes * (bounds[bucket + 1] - bounds[bucket])))
                words = np.frombuffer(b"".join(pieces), dtype=np.uint64).reshape(-1, self._width)
                yield _sorted_rows(words)

    def _take_sorted(self) -> Words:
        empty = np.empty((0, self._width), dtype=np.uint64)
        rows = np.concatenate([empty, *self._parts])
        self._parts, self._words = [], 0
        return _sorted_rows(rows)

    def _flush(self) -> None:
        """Write what is in memory to the file, sorted, as one block."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed after the buckets are read
        block = self._take_sorted()
        bounds = [0, *np.searchsorted(block[:, 0], _BUCKETS).tolist(), len(block)]
        self._blocks.append((self._file.tell(), bounds))
        self._file.write(block.data)


def _sorted_rows(rows: Words) -> Words:
    if rows.shape[1] == 1:  # sorting is several times as fast as finding the order
        return np.sort(rows[:, 0])[:, np.newaxis]
    return rows[np.argsort(rows[:, 0], kind="stable")]
