"""A column of reports in, tallies and estimates out: for everybody, and for each value of a public column."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from priorveil.errors import ForeignReport, TooLarge
from priorveil.plans import Plan
from priorveil.plans.estimate import Estimate, combined
from priorveil.plans.tally import Counts, Tally
from priorveil.priors import Prior
from priorveil.tables.arrow import pa
from priorveil.tables.cohorts import Plans, batch_rows, by_cohort, cohort_codes
from priorveil.tables.columns import FOREIGN, Codes, looked_up
from priorveil.tables.counting import counter
from priorveil.tables.pieces import Opened, Piece
from priorveil.tables.privatizing import REPORT, Progress
from priorveil.tables.refusals import BROKEN, NO_PLAN, Book, Places, Refused
from priorveil.tables.sources import open_table
from priorveil.tables.threads import in_threads, threads_here
from priorveil.tables.wire import no_reports, sift

Method = Literal["mmse", "unbiased", "mle"]

_MOST_GROUPS = 100_000


@dataclass(frozen=True, eq=False)
class Tallies:
    """The tallies of a table by `(cohort, group)`; None where there are no cohorts or no groups.

    `refused` has the rows in none of them. This is all that has to travel: tallies of parts add up.
    """

    plans: Mapping[Any, Plan]
    by: Mapping[tuple[Any, Any], Tally]
    refused: Refused = field(default_factory=Refused)

    def __add__(self, other: Tallies) -> Tallies:
        if not isinstance(other, Tallies):
            return NotImplemented
        both = dict(self.by)
        for key, tally in other.by.items():
            both[key] = both[key] + tally if key in both else tally
        counts = dict(Counter(self.refused.counts) + Counter(other.refused.counts))
        return Tallies({**self.plans, **other.plans}, both, Refused(counts, self.refused.rows))

    @property
    def groups(self) -> list[Any]:
        """The groups, in the order of their names."""
        found = dict.fromkeys(group for _, group in self.by)
        return sorted(found, key=lambda group: (group is None, str(group)))

    def estimate(
        self, method: Method = "mmse", prior: Prior | Sequence[float] | None = None, **only: Any
    ) -> Estimate:
        """What the tallies say of everybody, or with `group=...` of one group.

        The answer has its labels in the order of the first plan; a `prior` without names is in that order too.
        """
        known = None if prior is None else self._named(Prior.of(prior))
        return combined(
            [plan.estimate(self._of(cohort, only), method, known) for cohort, plan in self.plans.items()]
        )

    def _named(self, prior: Prior) -> Prior:
        """A prior that means the same to plans whatever the order of their labels."""
        orders = {plan.labels for plan in self.plans.values()}
        labels = next(iter(self.plans.values())).labels
        if len(orders) == 1 or len(labels) != len(prior):
            return prior
        return Prior.from_counts(prior.align_to(labels).weights, labels)

    def _of(self, cohort: Any, only: Mapping[str, Any]) -> Tally:
        whole = empty_tally(self.plans[cohort])
        for (own, group), tally in self.by.items():
            if own == cohort and ("group" not in only or only["group"] == group):
                whole += tally
        return whole


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """What a table of reports says: of everybody, of each group, and which rows it left out."""

    everybody: Estimate
    groups: dict[Any, Estimate]
    tallies: Tallies

    @property
    def refused(self) -> Refused:
        """The rows that were not counted."""
        return self.tallies.refused


def estimate_table(
    data: Any,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    method: Method = "mmse",
    prior: Prior | Sequence[float] | None = None,
    progress: Progress | None = None,
    on_refused: Callable[[int, str], None] | None = None,
) -> TableEstimate:
    """Estimate from a table of reports of any size; see `privatize_table` for what `data` may be.

    `by` names a public column: each of its values gets an estimate, with an interval of its own. With plans
    by `cohort`, everybody's estimate adds up those of the cohorts. Foreign and missing reports are left out,
    counted and listed by row.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> found = estimate_table({"report": [0, 1, 0, 9], "town": ["A", "A", "B", "B"]}, plan, by="town")
    >>> found.everybody.reports, {town: e.reports for town, e in found.groups.items()}, found.refused.rows
    (3, {'A': 2, 'B': 1}, ((3, 'foreign'),))
    """
    tallies = tally_table(
        data, plan, column=column, by=by, cohort=cohort, progress=progress, on_refused=on_refused
    )
    return read_tallies(tallies, by, method, prior)


def read_tallies(
    tallies: Tallies, by: str | None, method: Method, prior: Prior | Sequence[float] | None
) -> TableEstimate:
    """What tallies say of everybody and, if they are by a column, of each group."""
    groups = {} if by is None else {g: tallies.estimate(method, prior, group=g) for g in tallies.groups}
    return TableEstimate(tallies.estimate(method, prior), groups, tallies)


def tally_table(
    data: Any,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    progress: Progress | None = None,
    on_refused: Callable[[int, str], None] | None = None,
) -> Tallies:
    """Add up a table of reports, by cohort and group; memory grows with the tallies, never with the rows."""
    book, plans = Book(on_refused), by_cohort(plan, cohort)
    wanted = [name for name in (column, by, cohort) if name is not None]
    opened = open_table(data, wanted, batch_rows(plans), lambda row: book.enter(BROKEN, np.array([row])))
    _check_origin(opened, plans)
    told = None if progress is None else lambda seen: progress(seen, opened.rows, opened.share())
    return tally_pieces(opened.pieces, plans, column, by, cohort, book, told, threads_here(), opened.rows)


def tally_pieces(
    pieces: Iterable[Piece],
    plans: Mapping[Any, Plan],
    column: str,
    by: str | None = None,
    cohort: str | None = None,
    book: Book | None = None,
    told: Callable[[int], None] | None = None,
    threads: int = 1,
    rows: int | None = None,
) -> Tallies:
    """Add up pieces of a table, of so many rows if that is known; `told` hears how many there were so far."""
    work = _Work(dict(plans), column, by, cohort, book or Book(), rows)
    # Groups get their numbers here, one piece after another; what takes time is done in threads.
    shared = ((piece, list(_shares(work, piece))) for piece in pieces)
    read = in_threads(lambda job: (job[0].batch.num_rows, _read(work, *job)), shared, threads)
    seen = 0
    for rows, parts in read:
        for part in parts:
            _add(work, part)
        seen += rows
        if told is not None:
            told(seen)
    return _closed(work)


def empty_tally(plan: Plan) -> Tally:
    """The tally of nobody."""
    return Tally(plan.id, plan.mechanism.accumulate(no_reports(plan.mechanism)), 0)


def _check_origin(opened: Opened, plans: Mapping[Any, Plan]) -> None:
    """Reports that say which plan made them must have been made by one of these."""
    known = {plan.id for plan in plans.values()}
    if opened.plans and not opened.plans <= known:
        other = min(opened.plans - known)
        raise ForeignReport(
            "data", f"reports of plan {other[:12]}", f"read them with that plan, not {min(known)[:12]}"
        )


@dataclass(eq=False)
class _Sum:
    """A tally in the making."""

    counts: Counts
    reports: int = 0
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False)
class _Work:
    """What is to be done with every piece, and the tallies so far by `(cohort, group)` in numbers."""

    plans: dict[Any, Plan]
    column: str
    by: str | None
    cohort: str | None
    book: Book
    rows: int | None = None
    names: dict[Hashable, int] = field(default_factory=dict)
    sums: dict[tuple[int, int], _Sum] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mechanisms = [plan.mechanism for plan in self.plans.values()]
        self.counters = [counter(mechanism, self.rows) for mechanism in self.mechanisms]


Share = tuple[int, int, Codes | None]  # cohort, group, and which rows of the piece; None for all


@dataclass(frozen=True, eq=False)
class _Part:
    """What a piece adds to one tally: counts, how many reports, and the rows it refuses by their numbers."""

    cohort: int
    group: int
    counts: Counts | None
    reports: int
    refused: dict[str, Places]


def _read(work: _Work, piece: Piece, shares: Sequence[Share]) -> list[_Part]:
    """What a piece adds to the tallies. Changes nothing, so pieces can be read side by side."""
    return [_read_share(work, piece, *share) for share in shares]


def _read_share(work: _Work, piece: Piece, cohort: int, group: int, places: Codes | None) -> _Part:
    if cohort == FOREIGN:
        assert places is not None
        return _Part(cohort, group, None, 0, {NO_PLAN: piece.numbers(places)})
    column = piece.batch.column(work.column)
    found = sift(work.mechanisms[cohort], column if places is None else column.take(pa.array(places)))
    refused = {
        reason: piece.numbers(rows if places is None else places[rows])
        for reason, rows in found.refused.items()
    }
    return _Part(cohort, group, work.counters[cohort](found.reports), len(found.reports), refused)


def _add(work: _Work, part: _Part) -> None:
    """Add what a piece says to the tallies and to the book of what is refused."""
    for reason, rows in part.refused.items():
        work.book.enter(reason, rows)
    if part.counts is None:
        return
    own = work.sums.get((part.cohort, part.group))
    if own is None:
        work.sums[part.cohort, part.group] = own = _Sum(np.zeros_like(part.counts))
    own.counts += part.counts
    own.reports += part.reports
    own.refused.update({reason: rows.size for reason, rows in part.refused.items()})


def _shares(work: _Work, piece: Piece) -> Iterator[Share]:
    """The rows of a piece by cohort and group."""
    if work.cohort is None and work.by is None:
        yield 0, 0, None
        return
    rows = piece.batch.num_rows
    if rows == 0:
        return
    cohorts = groups = np.zeros(rows, dtype=np.int64)
    if work.cohort is not None:
        cohorts = cohort_codes(piece.batch.column(work.cohort), work.plans)
    if work.by is not None:
        groups = looked_up(piece.batch.column(work.by), lambda name: _named(work, name), _named(work, None))
    keys = (cohorts - FOREIGN) * max(len(work.names), 1) + groups
    if int(keys.max(initial=0)) < 1 << 16:
        keys = keys.astype(np.uint16)  # small numbers are sorted several times as fast
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)]
    for start, end in zip(starts, [*starts[1:], rows], strict=True):
        places = order[start:end]
        yield int(cohorts[places[0]]), int(groups[places[0]]), places


def _named(work: _Work, name: Any) -> int:
    """The number of a group."""
    name = math.nan if name != name else name  # one "not a number" is as good as another
    if name not in work.names and len(work.names) >= _MOST_GROUPS:
        raise TooLarge(f"{work.by!r} has more than {_MOST_GROUPS:,} values: group by something coarser")
    return work.names.setdefault(name, len(work.names))


def _closed(work: _Work) -> Tallies:
    keys, names = list(work.plans), list(work.names) or [None]
    by = {
        (keys[cohort], names[group]): Tally(
            work.plans[keys[cohort]].id, own.counts, own.reports, dict(own.refused)
        )
        for (cohort, group), own in work.sums.items()
    }
    return Tallies(work.plans, by, work.book.closed())
