"""Which report ids were seen, for ever, in flat memory: sorted runs on disk beside the packed log of reports.

A unique index over random ids slows down as it grows, because every insert touches another page. Here recent
ids are in a set; when there are `FLUSH` of them they become a sorted, memory-mapped file (a run), and runs
are merged in the background, block by block, so that their number grows only with the logarithm of the number
of ids and memory with neither. A bitmap (a Bloom filter) answers for most new ids without looking
into any run.

Runs are made from the log and can be thrown away at any time: opening makes what is missing again. A run's
name says which entries of the log it covers and holds a digest of the last one, so that runs beside a
restored backup are not believed.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import numpy as np
import numpy.typing as npt

from priorveil.curator.keys import Bitmap, Keys, Mask, in_order, items

Places = npt.NDArray[np.intp]

FLUSH = 1 << 17
FAN = 8  # runs of one size that are merged into one of the next
BLOCK = 1 << 15  # keys of each run that are merged at a time
BITMAP_BITS = 28  # 32 MiB; one new id in 2,700 needs a search at ten million ids

_LONGEST_PAUSE = 0.1
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """One entry of the log: its number, the keys of its reports, and a digest that tells it from others."""

    number: int
    keys: Keys

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that depend on every key."""
        return hashlib.sha256(self.keys.tobytes()).hexdigest()[:16]


@dataclass(frozen=True)
class Run:
    """Sorted keys of the log entries `first` to `last`, mapped from a file."""

    path: Path
    first: int
    last: int
    digest: str
    keys: Keys  # (2, n)

    def holds(self, keys: Keys) -> Mask:
        """Which of the keys are in this run."""
        high, low = self.keys
        if not high.size:
            return np.zeros(len(keys), dtype=bool)
        at = np.searchsorted(high, keys[:, 0])
        near = np.minimum(at, high.size - 1)
        same = high[near] == keys[:, 0]
        found = same & (low[near] == keys[:, 1])
        again = np.flatnonzero(
            same & ~found
        )  # ids that agree in their first half: chance, or somebody's game
        if again.size:
            ends = np.searchsorted(high, keys[again, 0], side="right")
            places = _bisected(low, keys[again, 1], at[again], ends)
            found[again] = (places < ends) & (low[np.minimum(places, high.size - 1)] == keys[again, 1])
        return np.asarray(found)


def _bisected(ordered: Keys, wanted: Keys, first: Places, last: Places) -> Places:
    """Where each wanted number belongs between its two places in a column; all of them at once."""
    while (open_ := first < last).any():
        middle = (first + last) // 2
        above = ordered[np.minimum(middle, ordered.size - 1)] < wanted
        first, last = np.where(open_ & above, middle + 1, first), np.where(open_ & ~above, middle, last)
    return first


class Seen:
    """The ids of all entries of a log. `lookup(number)` returns a log entry; used when opening.

    Not safe for several threads: the writer owns it.
    """

    def __init__(self, folder: Path, flush: int = FLUSH) -> None:
        self._folder = folder
        self._flush = flush
        self._recent: set[bytes] = set()
        self._arrived: list[Keys] = []  # the same keys as arrays: sorting them needs no walk through the set
        self._first = 1  # of the log entries that are in the set and in no run
        self._bitmap = Bitmap(BITMAP_BITS, 2)
        self._runs: tuple[Run, ...] = ()
        self._merger = ThreadPoolExecutor(1, thread_name_prefix="priorveil-merge")
        self._merging: tuple[tuple[Run, ...], Future[Run]] | None = None
        self._closing = Event()

    def open(self, lookup: Callable[[int], Entry | None], entries: Callable[[int], Iterable[Entry]]) -> None:
        """Take the runs that the log confirms, the rest from the log: `entries(n)` are those from n on."""
        self._folder.mkdir(exist_ok=True)
        for draft in self._folder.glob("*.part"):
            draft.unlink()
        self._runs = _confirmed(self._folder, lookup)
        self._first = self._runs[-1].last + 1 if self._runs else 1
        for run in self._runs:
            self._bitmap.mark(run.keys.T)
        for entry in entries(self._first):
            self.add(set(items(entry.keys)), [entry])

    def close(self) -> None:
        """Give up a merge that is under way; it begins anew when the store is opened and grows."""
        self._closing.set()
        self._merger.shutdown(wait=True)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self._runs)

    def fresh(self, keys: Keys, pending: set[bytes]) -> Mask:
        """Which keys are new, each once; those go into `pending`, and into `add` once they are durable."""
        old = self._in_runs(keys)
        recent, named = self._recent, items(keys)
        once = set(named)
        if (
            len(once) == len(named)
            and not old.any()
            and recent.isdisjoint(named)
            and pending.isdisjoint(named)
        ):
            pending |= once
            return np.ones(len(keys), dtype=bool)
        new = np.zeros(len(keys), dtype=bool)
        for i, item in enumerate(named):
            if item not in recent and item not in pending and not old[i]:
                pending.add(item)
                new[i] = True
        return new

    def add(self, pending: set[bytes], entries: Sequence[Entry]) -> None:
        """Remember keys that were stored, in these entries of the log."""
        self._recent |= pending
        self._arrived += [entry.keys for entry in entries]
        self._flush_if_large(entries[-1])

    def _flush_if_large(self, last: Entry) -> None:
        """Make a run of the recent keys if there are many; a full disk only means trying again later."""
        if len(self._recent) < self._flush:
            return
        try:
            self._collect_merge()
            keys = in_order(np.concatenate(self._arrived))
            run = _write(self._folder, self._first, last.number, last.digest, keys)
        except OSError as error:
            _log.warning("ids stay in memory for now: %s", error.strerror)
            return
        self._bitmap.mark(run.keys.T)
        self._runs = (*self._runs, run)
        self._recent, self._arrived = set(), []
        self._first = last.number + 1
        self._start_merge()

    def _in_runs(self, keys: Keys) -> Mask:
        found = self._bitmap.may_hold(keys)
        suspects = np.flatnonzero(found)
        if suspects.size:
            suspects = suspects[np.argsort(keys[suspects, 0])]  # neighbours are looked up one after the other
            asked = keys[suspects]
            found[suspects] = np.logical_or.reduce([run.holds(asked) for run in self._runs])
        return found

    def _start_merge(self) -> None:
        tail = _to_merge(self._runs, self._flush)
        if self._merging is None and tail:
            self._merging = (tail, self._merger.submit(_merged, self._folder, tail, self._closing))

    def _collect_merge(self) -> None:
        """Take over a finished merge; a merge that failed is tried again when there are more runs."""
        if self._merging is None or not self._merging[1].done():
            return
        parts, future = self._merging
        self._merging = None
        try:
            run = future.result()
        except OSError as error:
            _log.warning("runs of ids stay unmerged for now: %s", error.strerror)
            return
        at = self._runs.index(parts[0])
        self._runs = (*self._runs[:at], run, *self._runs[at + len(parts) :])
        for part in parts:
            part.path.unlink(missing_ok=True)


def _to_merge(runs: tuple[Run, ...], flush: int) -> tuple[Run, ...]:
    """Neighbouring runs of about one size, if there are enough of them."""
    levels = [max(0, int(np.log(max(run.keys.shape[1], 1) / flush) / np.log(FAN) + 0.5)) for run in runs]
    for start in range(len(runs)):
        same = [level == levels[start] for level in levels[start:]]
        length = same.index(False) if False in same else len(same)
        if length >= FAN:
            return runs[start : start + length]
    return ()


class _Abandoned(OSError):
    """A merge that was not finished because the store closes."""


def _merged(folder: Path, runs: tuple[Run, ...], closing: Event) -> Run:
    """One run in the place of several, a block at a time and with pauses: who commits meanwhile comes first."""
    name = _name(runs[0].first, runs[-1].last, runs[-1].digest)
    return _written(folder, name, sum(run.keys.shape[1] for run in runs), _paced(_blocks(runs), closing))


def _blocks(runs: tuple[Run, ...]) -> Iterator[Keys]:
    """The keys of all runs in order; each block takes `BLOCK` from a run, or a few more that agree in their half."""
    places = [0] * len(runs)
    while left := [i for i, run in enumerate(runs) if places[i] < run.keys.shape[1]]:
        highs = {i: runs[i].keys[0, places[i] : places[i] + BLOCK + 1] for i in left}
        bound = min(high[-1] for high in highs.values())
        parts = []
        for i in left:
            end = int(np.searchsorted(runs[i].keys[0], bound, side="right"))
            parts.append(runs[i].keys[:, places[i] : end].T)
            places[i] = end
        yield in_order(np.concatenate(parts))


def _paced(blocks: Iterator[Keys], closing: Event) -> Iterator[Keys]:
    """The blocks, with a pause after each, twice as long as it took."""
    start = time.perf_counter()
    for block in blocks:
        yield block
        if closing.wait(min(2 * (time.perf_counter() - start), _LONGEST_PAUSE)):
            raise _Abandoned
        start = time.perf_counter()


def _write(folder: Path, first: int, last: int, digest: str, keys: Keys) -> Run:
    """A run in its file, all of it or nothing."""
    return _written(folder, _name(first, last, digest), keys.shape[1], [keys])


def _name(first: int, last: int, digest: str) -> str:
    return f"{first}-{last}-{digest}.ids"


def _written(folder: Path, name: str, size: int, blocks: Iterable[Keys]) -> Run:
    """A run of blocks in order: the leading halves of all keys, then the others."""
    path = folder / name
    draft = path.with_suffix(".part")
    try:
        with draft.open("wb") as high, draft.open("r+b") as low:
            low.seek(8 * size)
            for block in blocks:
                high.write(block[0].astype("<u8").tobytes())
                low.write(block[1].astype("<u8").tobytes())
            for half in (high, low):
                half.flush()
            os.fsync(high.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    found = _named(path)
    if found is None:
        raise OSError(errno.EIO, "a run of ids was not written as it should be")
    return found


def _mapped(path: Path) -> Keys:
    return np.memmap(path, dtype="<u8", mode="r").reshape(2, -1)


def _confirmed(folder: Path, lookup: Callable[[int], Entry | None]) -> tuple[Run, ...]:
    """The runs that cover the log without a gap, as far as the log agrees; others are removed."""
    found = sorted(
        (run for path in folder.glob("*.ids") if (run := _named(path))),
        key=lambda run: (run.first, -run.last),
    )
    kept: list[Run] = []
    for run in found:
        entry = lookup(run.last)
        starts = run.first == (kept[-1].last + 1 if kept else 1)
        if starts and entry is not None and entry.digest == run.digest:
            kept.append(run)
        else:
            run.path.unlink(missing_ok=True)
    return tuple(kept)


def _named(path: Path) -> Run | None:
    """The run in a file, or None (and no file) if it is not one."""
    try:
        first, last, digest = path.stem.split("-")
        return Run(path, int(first), int(last), digest, _mapped(path))
    except (ValueError, OSError):
        path.unlink(missing_ok=True)
        return None
