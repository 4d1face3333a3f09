"""Stores of campaigns, reports and tallies: the interface, and the SQL that SQLite and PostgreSQL share.

`schema/001.sql`, `002.sql`, ... make the tables, each file from those of the one before. A store of an older version is
migrated in one transaction. The tables are:

* `campaigns` and `forms` give each campaign and each of its forms a short number;
* `submissions` has one row for each submission, with the unique key (campaign, report_id). It has no serial number and
  no time, so the order in which people answered is not stored. `words` holds the words of its reports;
* `tallies` has one row for each cell of a form's tally. Cell 0 is the number of submissions, the others are what the
  form counts. Cells change in the transaction that stores the reports;
* `refusals` counts refused reports by campaign and reason;
* `daily_counts` counts the reports of each campaign by day, and changes in transactions of its own;
* `results` has the last stored results of each campaign, which analysts see;
* `tokens` holds the SHA-256 of every token, with its name and role;
* `invitations` holds the SHA-256 of every free invitation;
* `records` says what the holders of tokens did.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.curator.settings import DEFAULTS, DatabaseLimits, hide_password
from priorveil.curator.tokens import DIGEST_BYTES, Token
from priorveil.device.wire import ID_BYTES, WORD_BYTES, unpack_words
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.plans.form import Form
from priorveil.questions.campaign import Campaign, CampaignOutline, State, stamp
from priorveil.reading.tally import Tally

_SCHEMA_FILES = sorted(Path(__file__).with_name("schema").glob("*.sql"))
_MIGRATIONS = [file.read_text(encoding="utf-8") for file in _SCHEMA_FILES]
_STATEMENTS = Path(__file__).with_name("store.sql").read_text(encoding="utf-8")
*_DIALECT_STATEMENTS, _REPORTS, _PUBLISH, _STORE_RESULT, _REFUSE, _ADD_TO_DAY, _TOTALS = _STATEMENTS.split(
    "\n\n"
)
# The pieces of this many bytes that stand one after the other in $2, with their places: one statement for all of them,
# so that a transaction is as short over a network as it is here.
_PIECES = """(
    WITH RECURSIVE places (place) AS (
        SELECT 0 UNION ALL SELECT place + 1 FROM places WHERE {size} * (place + 1) < length(CAST($2 AS {bytes}))
    ) SELECT place, substr(CAST($2 AS {bytes}), {size} * place + 1, {size}) AS piece FROM places
) AS pieces"""
_DELETION = Path(__file__).with_name("deletion.sql").read_text(encoding="utf-8")
_END, _UNFINISHED, _DELETE_SOME, _DELETE_REST = _DELETION.split("\n\n")
_LEAST_FURTHER = 20  # reports, between two results for analysts
_PAGE = 20_000  # rows that are deleted at once
_PAGE_BYTES = 1 << 20  # of reports that are read at once; a stalled export keeps a few such pages
_ROW = 300  # bytes that a report takes in memory besides its words
_MEMORY = 12  # bytes that a campaign and its plans take for each byte of its document, at most
_AROUND_REPORT = 4 << 10  # bytes of a submission besides its report
_OF_CAMPAIGN = "(SELECT number FROM campaigns WHERE id = $1)"
_ADD_TOKEN = """INSERT INTO tokens (digest, name, role, expires) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING RETURNING name"""
_INVITATIONS = f"invitations WHERE campaign = {_OF_CAMPAIGN}"
LASTING = "deleted IS NULL AND published IS NULL"  # of a campaign that can still take reports
_OF_LASTING_CAMPAIGN = f"(SELECT number FROM campaigns WHERE id = $1 AND {LASTING})"
NO_CAMPAIGN = "this store does not have the campaign"
FORM_NUMBERS = f"SELECT id, campaign, number FROM forms WHERE campaign = {_OF_LASTING_CAMPAIGN}"
_ADD_CAMPAIGN = """
    INSERT INTO campaigns (id, document, keep_until) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING number
"""
_ADD_FORM = """
    INSERT INTO forms (campaign, id) SELECT number, CAST($2 AS text) FROM campaigns WHERE id = $1 AND deleted IS NULL
    ON CONFLICT DO NOTHING
"""
REPORT_COUNT = f"""
    SELECT CAST(coalesce(sum(count), 0) AS bigint) FROM tallies JOIN forms ON number = form
    WHERE campaign = {_OF_CAMPAIGN} AND cell = 0
"""
_REPORT_COUNTS = """
    SELECT campaigns.id, sum(count) FROM tallies JOIN forms ON forms.number = form
    JOIN campaigns ON campaigns.number = campaign WHERE cell = 0 GROUP BY campaigns.id
"""
_REFUSALS = "SELECT reason, count FROM refusals WHERE campaign = $1 ORDER BY reason"
_DAILY_COUNTS = f"SELECT day, count FROM daily_counts WHERE campaign = {_OF_CAMPAIGN} ORDER BY day"
_RESULT = f"SELECT kind, made, content FROM results WHERE campaign = {_OF_CAMPAIGN}"
_RESULT_ORIGINS = "SELECT id, kind, made, reports FROM results JOIN campaigns ON number = campaign"
_TALLIES = f"SELECT id, cell, count FROM tallies JOIN forms ON number = form WHERE campaign = {_OF_CAMPAIGN}"


CellCounts = npt.NDArray[np.int64]
ResultKind = Literal["closed", "released", "published"]  # why results were stored
StoredReport = tuple[bytes, str, bytes]  # the id, the form's id, and the words
T = TypeVar("T")
_Counted = TypeVar("_Counted", "FormTally", Tally)
# A transaction: it yields statements with their arguments, is sent the rows of each, and returns its result.
Statements = Generator[tuple[Any, ...], list[Any], T]


class StoreFull(PriorveilError):
    """The disk is full. Nothing of the transaction was kept; the next one may succeed."""


class Unavailable(PriorveilError):
    """The database cannot be used at the moment."""


class Ended(PriorveilError):
    """The campaign was deleted or published: it takes no reports again, and no other can have its id."""


class StillOpen(PriorveilError):
    """The campaign can take reports, so its results cannot be published."""


class TooFewReports(PriorveilError):
    """New results would differ from the last stored ones by few reports, and so reveal them."""


class Damaged(PriorveilError):
    """A stored campaign cannot be loaded, or is not the one that was stored. The message shows none of its content."""

    def __init__(self, campaign: str, why: str) -> None:
        super().__init__(f"the stored campaign {campaign[:12]} is damaged ({why}): restore it from a backup")
        self.campaign = campaign


class Group(NamedTuple):
    """Submissions of one form: `ids` holds 16 bytes for each, `words` their words in the same order.

    `cells` is their tally if it was counted before: where counting is slow, no transaction waits for it.
    """

    campaign: str
    form: Form
    ids: bytes
    words: bytes
    cells: CellCounts | None = None

    @property
    def size(self) -> int:
        """The number of reports."""
        return len(self.ids) // ID_BYTES

    @property
    def memory(self) -> int:
        """The bytes that it takes."""
        return len(self.ids) + len(self.words) + (0 if self.cells is None else self.cells.nbytes)

    def id_of(self, place: int) -> str:
        """The id of one report in hexadecimal, as its sender wrote it."""
        return self.ids[ID_BYTES * place : ID_BYTES * (place + 1)].hex()

    def rows(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """The ids and the packed reports, one entry for each report."""
        size = WORD_BYTES * self.form.width
        return np.frombuffer(self.ids, f"V{ID_BYTES}"), np.frombuffer(self.words, f"V{size}")

    def select(self, chosen: npt.NDArray[np.bool_ | np.int64]) -> Group:
        """Some of the reports, by a mask or by their places."""
        ids, words = self.rows()
        return self._replace(ids=ids[chosen].tobytes(), words=words[chosen].tobytes(), cells=None)


@dataclass(frozen=True)
class FormTally:
    """The submissions of one form, added up: how many, and the tally of each of its parts, in their order."""

    reports: int
    parts: tuple[Tally, ...]

    @classmethod
    def of(cls, form: Form, cells: CellCounts) -> FormTally:
        """The tally that has these cells."""
        return cls(int(cells[0]), form.tallies(cells[1:]))

    def cells(self) -> CellCounts:
        """The cells as they are stored."""
        parts = [[[tally.reports], tally.counts.ravel()] for tally in self.parts]
        return np.concatenate([[self.reports], *(cells for part in parts for cells in part)])

    def releasable(self, now: FormTally, campaign: Campaign) -> FormTally:
        """Each of these tallies as it is now, or as it was if the difference could reveal single reports.

        It could not if enough further reports came, or if the tally had too few reports to be shown.
        """

        def select(old: _Counted, new: _Counted) -> _Counted:
            was_withheld = old.reports < max(campaign.smallest_count, 1)
            return new if was_withheld or new.reports - old.reports >= least_further(campaign) else old

        return FormTally(select(self, now).reports, tuple(map(select, self.parts, now.parts)))


@dataclass(frozen=True)
class StoredResult:
    """Results that do not change: why and when they were made, from which tallies, and the counters of that moment."""

    kind: ResultKind
    made: str
    tallies: Mapping[str, FormTally]
    refused: dict[str, int]
    by_day: dict[str, int]

    @property
    def reports(self) -> int:
        """How many submissions they are made from."""
        return sum(tally.reports for tally in self.tallies.values())

    def releasable(self, now: Mapping[str, FormTally], campaign: Campaign) -> dict[str, FormTally]:
        """The tallies that new results may have, one of each form."""
        return {form: tally.releasable(now[form], campaign) for form, tally in self.tallies.items()}

    @classmethod
    def read(cls, campaign: Campaign, kind: ResultKind, made: str, content: str) -> Self:
        """The results in a row of the store."""
        stored = json.loads(content)
        cells = [
            (form, int(cell), count)
            for form, counts in stored["tallies"].items()
            for cell, count in counts.items()
        ]
        return cls(kind, made, _read_tallies(campaign, cells), stored["refused"], stored["by_day"])

    def content(self) -> str:
        """The tallies and counters as JSON."""
        tallies = {form: json.loads(cells_as_json(tally.cells())) for form, tally in self.tallies.items()}
        return json.dumps({"tallies": tallies, "refused": self.refused, "by_day": self.by_day})


@dataclass
class StoredCampaign:
    """A campaign as the store holds it.

    `document` is what is sent of it, `closed` the time at which the curator closed it early, `deleted` the time at
    which its reports were deleted, `published` the time at which its results were published.
    """

    campaign: Campaign
    document: bytes
    closed: str | None
    deleted: str | None = None
    published: str | None = None

    @property
    def memory(self) -> int:
        """About the bytes that it takes, with the tables that are made when its reports are counted and read."""
        return _MEMORY * len(self.document)

    @cached_property
    def longest_submission(self) -> int:
        """Bytes in which one submission of any form fits, with its ids and its code, as JSON with some blanks."""
        words = max(form.width for form in self.campaign.cohorts.values())
        return _AROUND_REPORT + 2 * WORD_BYTES * words

    def state(self, now: datetime) -> State:
        """Whether it takes reports at this time."""
        return "closed" if self.closed is not None else self.campaign.state(now)


@dataclass(frozen=True)
class Record:
    """What somebody did: when, the name of the token, to which campaign, and how many reports or invitations."""

    at: str
    who: str
    action: str
    campaign: str | None = None
    count: int | None = None


class Store(ABC):
    """Campaigns, reports and tallies in a database. Several tasks of one event loop may share a store.

    Statements number their arguments `$1`, `$2`, ..., which both databases understand; `dialect` gives the words of
    the schema that they do not share. `campaign_lock` is the statement with which a transaction waits for others that
    have locked the same campaign, by its number; the other statements are those of `store.sql`.
    """

    campaign_lock: str

    def __init__(self, address: str, create: bool, **dialect: str) -> None:
        self._address, self._create = address, create
        self._migrations = [text.format(**dialect) for text in _MIGRATIONS]
        lists = {"ids": ID_BYTES, "digests": DIGEST_BYTES}
        pieces = {name: _PIECES.format(size=size, **dialect) for name, size in lists.items()}
        (
            self.add_cells,
            self.find_reports,
            self.add_reports,
            self.remove_reports,
            self._invite,
            self.find_invitations,
            self.use_invitations,
        ) = (text.format(**dialect, **pieces) for text in _DIALECT_STATEMENTS)

    def _invalid(self, advice: str) -> InvalidInput:
        """The error for an address that cannot be used."""
        return InvalidInput("store", hide_password(self._address), advice)

    @property
    def _newest_version(self) -> int:
        """The version of the schema that this priorveil makes and uses."""
        return len(self._migrations)

    def _check_version(self, version: int) -> None:
        """Refuse a schema that is newer than ours, and without `create` also an empty store (version 0)."""
        if version > self._newest_version:
            problem = f"it has schema {version}, this priorveil knows {self._newest_version}"
            raise self._invalid(f"{problem}: use a newer priorveil, or another store")
        if version == 0 and not self._create:
            advice = "give the one that `priorveil serve` uses"
            raise self._invalid(f"no curator has stored anything here: {advice}")

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the tables that are missing."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what is under way, and release everything."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def ready(self) -> None:
        """Return if a report can be stored now: store one and roll it back. Raises `Unavailable` or `StoreFull`."""

    def _probe(self) -> list[tuple[Any, ...]]:
        """What an upload does to each table, to be rolled back. Random keys do not wait for another process's probe."""
        return [
            (FORM_NUMBERS, ""),
            (self.add_reports, 0, os.urandom(ID_BYTES), 0, bytes(WORD_BYTES), WORD_BYTES),
            (self.add_cells, 0, json.dumps({secrets.randbelow(1 << 31): 1})),
            (self.use_invitations, 0, os.urandom(DIGEST_BYTES)),
        ]

    @abstractmethod
    async def back_up(self, file: BinaryIO) -> None:
        """Write a backup into an empty file; curators may go on.

        The store need not be open, and may have an older schema.
        """

    @abstractmethod
    async def restore(self, file: Path, replace: bool) -> None:
        """Fill the store from a backup. No curator may run, and without `replace` nothing may be in the store."""

    def _holds_something(self) -> InvalidInput:
        """The error for a store that would be overwritten unasked."""
        return self._invalid(
            "it holds a store already: restore into another one, or give --force to replace it"
        )

    @asynccontextmanager
    async def sole_writer(self) -> AsyncIterator[None]:
        """Let nobody else store reports meanwhile; an open SQLite file never has another writer."""
        yield

    @abstractmethod
    async def commit(self, groups: Sequence[Group]) -> Counter[str]:
        """Store and count the new reports in one durable transaction; return how many were new, by campaign.

        A report whose id the campaign already has is left out. The first of several reports with the same id counts.
        """

    @abstractmethod
    async def transact(self, statements: Callable[[], Statements[T]]) -> T:
        """Run a transaction; return its result when it is durable. It runs again after a lost connection."""

    @abstractmethod
    async def _fetch(self, statement: str, *arguments: object) -> list[Any]:
        """The rows of a query."""

    @abstractmethod
    async def _change(self, *statements: tuple[Any, ...]) -> list[list[Any]]:
        """Run statements, each given with its arguments, in one transaction; the rows that each returned."""

    # -- campaigns -------------------------------------------------------------------------------------------

    async def add_campaign(self, campaign: Campaign) -> bool:
        """Store a campaign; False if it was already there. Raises `Ended` if it was deleted."""
        forms = [(_ADD_FORM, campaign.id, form) for form in campaign.forms]
        add = (_ADD_CAMPAIGN, campaign.id, campaign.to_json(), stamp(campaign.keep_until))
        exists = ("SELECT number FROM campaigns WHERE id = $1 AND document <> ''", campaign.id)
        new, *_, stored = await self._change(add, *forms, exists)
        if not stored:
            why = "its report ids are gone, so that a report could be counted twice"
            raise Ended(f"this campaign was deleted and cannot be created again ({why}): change its question")
        return bool(new)

    async def close_campaign(self, campaign: str, when: str) -> None:
        """Close a campaign early; the first time that was given stays."""
        close = "UPDATE campaigns SET closed = $1 WHERE id = $2 AND closed IS NULL"
        await self._change((close, when, campaign))

    async def reopen_campaign(self, campaign: str) -> None:
        """Take back that a campaign was closed early; raises `Ended` if it was published, or its reports deleted."""
        reopen = f"UPDATE campaigns SET closed = NULL WHERE id = $1 AND {LASTING} RETURNING id"
        published = ("SELECT published FROM campaigns WHERE id = $1", campaign)
        reopened, rows = await self._change((reopen, campaign), published)
        if not reopened and rows and rows[0][0] is not None:
            raise Ended(f"this campaign cannot reopen: {published_because(rows[0][0])}")
        if not reopened:
            raise Ended(
                "the reports of this campaign were deleted: it cannot reopen, because their ids are gone"
            )

    async def publish(
        self, campaign: Campaign, tallies: Mapping[str, FormTally], publication: str, when: str, ended: bool
    ) -> bool:
        """Store what is published of a campaign; False if its tallies are others by now, or it was published before.

        `ended` says that the campaign's own end has passed. Raises `StillOpen` unless it is closed.
        """

        def statements() -> Statements[bool]:
            _, published, closed = yield from self.lock(campaign.id)
            if published is not None:
                return False
            if closed is None and not ended:
                raise StillOpen("this campaign takes reports: close it before you publish its results")
            if _read_tallies(campaign, (yield _TALLIES, campaign.id)) != tallies:
                return False
            yield _PUBLISH, campaign.id, when
            yield from _store_result(campaign.id, "published", when, tallies, publication)
            return True

        return await self.transact(statements)

    async def publication(self, campaign: str) -> bytes | None:
        """What was published of a campaign."""
        query = f"SELECT publication FROM results WHERE campaign = {_OF_CAMPAIGN}"
        rows = await self._fetch(query, campaign)
        return rows[0][0].encode() if rows and rows[0][0] is not None else None

    async def store_result(
        self, campaign: Campaign, kind: ResultKind, when: str, least: int = 0
    ) -> StoredResult:
        """Store the results of now for analysts, in place of the last ones.

        Raises `TooFewReports` if they would show nothing new, or fewer than `least` further reports; and `Ended` once
        results are published.
        """

        def statements() -> Statements[StoredResult]:
            _, published, _ = yield from self.lock(campaign.id)
            if published is not None:
                raise Ended(f"there are no new results of this campaign: {published_because(published)}")
            tallies = _read_tallies(campaign, (yield _TALLIES, campaign.id))
            further = sum(tally.reports for tally in tallies.values())
            rows = yield _RESULT, campaign.id
            if rows:
                last = StoredResult.read(campaign, *rows[0])
                further -= last.reports
                tallies = last.releasable(tallies, campaign)
            if further < least or (rows and tallies == last.tallies):
                raise TooFewReports(_too_few(campaign, further))
            return (yield from _store_result(campaign.id, kind, when, tallies))

        return await self.transact(statements)

    async def stored_result(self, campaign: Campaign) -> StoredResult | None:
        """The last stored results of a campaign."""
        rows = await self._fetch(_RESULT, campaign.id)
        return StoredResult.read(campaign, *rows[0]) if rows else None

    async def result_origins(self, campaign: str | None = None) -> dict[str, tuple[ResultKind, str, int]]:
        """Why and when the stored results of each campaign were made, and from how many reports; or of only one."""
        query = f"{_RESULT_ORIGINS} WHERE id = COALESCE(CAST($1 AS text), id)"
        return {id: tuple(origin) for id, *origin in await self._fetch(query, campaign)}

    def lock(self, campaign: str) -> Statements[tuple[int, str | None, str | None]]:
        """Let no report of a campaign come or go until this is done.

        Returns its number, and when it was published and closed early. Raises `Unavailable` if it was deleted.
        """
        rows = yield "SELECT number FROM campaigns WHERE id = $1", campaign
        if rows:
            yield self.campaign_lock, rows[0][0]
            query = "SELECT number, published, closed FROM campaigns WHERE id = $1 AND document <> ''"
            rows = yield query, campaign
        if not rows:
            raise Unavailable(NO_CAMPAIGN)
        number, published, closed = rows[0]
        return number, published, closed

    async def campaign_ids(self) -> list[tuple[str, str | None, str | None, str | None]]:
        """All campaigns, oldest first, each with the times at which it was closed early, was published and deleted."""
        query = "SELECT id, closed, published, deleted FROM campaigns WHERE document <> '' ORDER BY number"
        return [tuple(row) for row in await self._fetch(query)]

    async def campaign(self, campaign: str) -> StoredCampaign | None:
        """A campaign by its id, with its certificates proven again; raises `Damaged`."""
        query = "SELECT document, closed, deleted, published FROM campaigns WHERE id = $1 AND document <> ''"
        rows = await self._fetch(query, campaign)
        if not rows:
            return None
        document, *times = rows[0]
        try:
            content = await asyncio.to_thread(Campaign.from_json, document)
            stored = StoredCampaign(content, document.encode(), *times)
        except PriorveilError as error:
            raise Damaged(campaign, type(error).__name__) from error
        if stored.campaign.id != campaign:
            raise Damaged(campaign, "its content has another id")
        return stored

    async def outline(self, campaign: str) -> CampaignOutline | None:
        """What a list shows of a campaign, without proving its certificates; raises `Damaged` if it was changed."""
        rows = await self._fetch("SELECT document FROM campaigns WHERE id = $1 AND document <> ''", campaign)
        try:
            return await asyncio.to_thread(CampaignOutline.read, rows[0][0], campaign) if rows else None
        except PriorveilError as error:
            raise Damaged(campaign, type(error).__name__) from error

    # -- deletion --------------------------------------------------------------------------------------------

    async def expired_campaigns(self, now: str) -> list[str]:
        """The campaigns whose reports should be deleted by now, and were not."""
        query = "SELECT id FROM campaigns WHERE deleted IS NULL AND keep_until <= $1"
        return [id for (id,) in await self._fetch(query, now)]

    async def end_campaign(self, campaign: str, when: str, keep_results: bool) -> int | None:
        """End a campaign for good; the number of its reports, None if there is no such campaign.

        `finish_deletions` then deletes its reports, and unless results are kept everything else, except for the id.
        """

        def statements() -> Statements[int | None]:
            rows = yield "SELECT number FROM campaigns WHERE id = $1", campaign
            if not rows:
                return None
            yield self.campaign_lock, rows[0][0]  # reports that another process is storing are counted, too
            ended = yield _END, campaign, when, None if keep_results else ""
            return int(ended[0][0]) if ended else None

        return await self.transact(statements)

    async def finish_deletions(self) -> None:
        """Delete what is left of ended campaigns, in transactions that do not keep others waiting for long."""
        for (number,) in await self._fetch(_UNFINISHED):
            while await self._fetch("SELECT 1 FROM submissions WHERE campaign = $1 LIMIT 1", number):
                await self._change((_DELETE_SOME, number, _PAGE))
            await self._change(*[(statement, number) for statement in _DELETE_REST.split(";")])

    # -- reports and tallies ---------------------------------------------------------------------------------

    async def reports(self, campaign: Campaign) -> AsyncIterator[list[StoredReport]]:
        """All reports of a campaign, sorted by id, up to some thousands at a time."""
        width = max(form.width for form in campaign.forms.values())
        last, most = b"", max(1, _PAGE_BYTES // (_ROW + WORD_BYTES * width))
        while rows := await self._fetch(_REPORTS, campaign.id, last, most):
            yield [tuple(row) for row in rows]
            last = rows[-1][0]

    async def missing_reports(self, campaign: str) -> int:
        """How many reports were counted and are not stored; raises `Ended` if they were deleted."""
        [[deleted, counted, stored]] = await self._fetch(_TOTALS, campaign)
        if deleted is not None:
            raise Ended(f"the reports of this campaign were deleted {deleted}: there is nothing to read")
        return int(counted) - int(stored)

    async def tallies(self, campaign: Campaign) -> dict[str, FormTally]:
        """The stored tally of each form."""
        return _read_tallies(campaign, await self._fetch(_TALLIES, campaign.id))

    async def report_count(self, campaign: str) -> int:
        """How many reports of a campaign were counted."""
        [[count]] = await self._fetch(REPORT_COUNT, campaign)
        return int(count)

    async def report_counts(self) -> dict[str, int]:
        """How many reports were counted for each campaign that has any."""
        return {id: int(count) for id, count in await self._fetch(_REPORT_COUNTS)}

    async def recount(self, campaign: Campaign) -> dict[str, FormTally]:
        """The tally of each form, counted again from the stored reports."""
        cells = {id: count_cells(form, b"") for id, form in campaign.forms.items()}
        async for rows in self.reports(campaign):
            for id, form in campaign.forms.items():
                cells[id] += count_cells(
                    form, b"".join(words for _, its_form, words in rows if its_form == id)
                )
        return {id: FormTally.of(campaign.forms[id], row) for id, row in cells.items()}

    async def replace_tallies(self, campaign: Campaign, tallies: Mapping[str, FormTally]) -> None:
        """Overwrite stored tallies with recounted ones, as the `sole_writer` since before they were counted."""
        query = f"SELECT id, number FROM forms WHERE campaign = {_OF_CAMPAIGN}"
        numbers = dict(map(tuple, await self._fetch(query, campaign.id)))
        changes: list[tuple[Any, ...]] = []
        for form, tally in tallies.items():
            changes.append(("DELETE FROM tallies WHERE form = $1", numbers[form]))
            changes.append((self.add_cells, numbers[form], cells_as_json(tally.cells())))
        await self._change(*changes)

    # -- invitations -----------------------------------------------------------------------------------------

    async def add_invitations(self, campaign: str, digests: Iterable[bytes]) -> None:
        """Store the digests of new codes, in an order that does not tell the order of the codes."""
        await self._change((self._invite, campaign, b"".join(sorted(digests))))

    async def has_invitation(self, campaign: str, digest: bytes) -> bool:
        """Whether the code with this digest is free."""
        return bool(await self._fetch(f"SELECT 1 FROM {_INVITATIONS} AND digest = $2", campaign, digest))

    async def free_invitations(self, campaign: str) -> int:
        """How many codes are free."""
        [[count]] = await self._fetch(f"SELECT count(*) FROM {_INVITATIONS}", campaign)
        return int(count)

    # -- records ---------------------------------------------------------------------------------------------

    async def add_record(self, record: Record) -> None:
        """Remember what somebody did."""
        add = "INSERT INTO records (at, who, action, campaign, count) VALUES ($1, $2, $3, $4, $5)"
        await self._change((add, *astuple(record)))

    async def records(self, most: int) -> list[Record]:
        """The newest records, newest first."""
        query = "SELECT at, who, action, campaign, count FROM records ORDER BY number DESC LIMIT $1"
        return [Record(*row) for row in await self._fetch(query, most)]

    # -- counters and tokens ---------------------------------------------------------------------------------

    async def refuse(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add to the numbers of refused reports, by campaign and reason; those of deleted campaigns are left out."""
        rows = sorted((campaign, reason, n) for (campaign, reason), n in counts.items())
        await self._change(*[(_REFUSE, *row) for row in rows])

    async def refusals(self, campaign: str) -> dict[str, int]:
        """How many reports were refused, by reason."""
        return dict(map(tuple, await self._fetch(_REFUSALS, campaign)))

    async def add_daily_counts(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add to the numbers of reports, by campaign and day; those of deleted campaigns are left out."""
        rows = sorted((campaign, day, n) for (campaign, day), n in counts.items())
        await self._change(*[(_ADD_TO_DAY, *row) for row in rows])

    async def daily_counts(self, campaign: str) -> dict[str, int]:
        """About how many reports came, by day."""
        return dict(map(tuple, await self._fetch(_DAILY_COUNTS, campaign)))

    async def add_token(self, token: Token) -> bool:
        """Store a token; False if there already is one with its name or its secret."""
        return bool((await self._change((_ADD_TOKEN, *token)))[0])

    async def replace_token(self, token: Token) -> None:
        """Store a token; another one with its name is no longer valid."""
        remove = "DELETE FROM tokens WHERE name = $1 AND digest <> $2"
        await self._change((remove, token.name, token.digest), (_ADD_TOKEN, *token))

    async def tokens(self) -> list[Token]:
        """All tokens, sorted by name."""
        rows = await self._fetch("SELECT digest, name, role, expires FROM tokens ORDER BY name")
        return [Token(*row) for row in rows]

    async def remove_token(self, name: str) -> bool:
        """Forget a token; False if there is none with this name."""
        return bool((await self._change(("DELETE FROM tokens WHERE name = $1 RETURNING name", name)))[0])


def open_store(
    url: str, create: bool = True, migrate: bool = False, limits: DatabaseLimits = DEFAULTS.database
) -> Store:
    """The store at a URL: `postgresql://...`, or the path of an SQLite file (also as `sqlite:///path`).

    Without `create`, opening a store that no curator has made is refused, and nothing is made. A file with an older
    schema is copied and brought forward; PostgreSQL needs `migrate` for that, because it makes no copy.
    """
    if url.startswith(("postgresql://", "postgres://")):
        from priorveil.curator.postgres import PostgresStore

        return PostgresStore(url, create=create, migrate=migrate, limits=limits)
    path = url.removeprefix("sqlite:///")
    if "://" in path or not path:
        advice = "give the path of an SQLite file or postgresql://user@host/database"
        raise InvalidInput("store", hide_password(url), advice)
    from priorveil.curator.sqlite import SqliteStore

    return SqliteStore(path, create=create, limits=limits)


def published_because(when: str) -> str:
    """Why nothing changes any more after publication."""
    return f"its results were published {when}, and two tables that differ by one report reveal that report"


def least_further(campaign: Campaign) -> int:
    """How many more reports new results for analysts need than the last ones had."""
    return max(campaign.smallest_count, _LEAST_FURTHER)


def _too_few(campaign: Campaign, further: int) -> str:
    least = least_further(campaign)
    few = f"{max(further, 0)} of {least}" if further < least else f"no cohort or drawn question has {least}"
    return f"too few further reports for new results: {few}; results that differ by few reports reveal them"


def _store_result(
    campaign: str,
    kind: ResultKind,
    made: str,
    tallies: Mapping[str, FormTally],
    publication: str | None = None,
) -> Statements[StoredResult]:
    """Store results with the counters of now."""
    refused, by_day = (yield _REFUSALS, campaign), (yield _DAILY_COUNTS, campaign)
    result = StoredResult(kind, made, tallies, dict(map(tuple, refused)), dict(map(tuple, by_day)))
    yield _STORE_RESULT, campaign, kind, made, result.reports, result.content(), publication
    return result


def _read_tallies(campaign: Campaign, rows: Iterable[Any]) -> dict[str, FormTally]:
    """The tally of each form, from the stored cells."""
    cells = {id: count_cells(form, b"") for id, form in campaign.forms.items()}
    for id, cell, count in rows:
        cells[id][cell] = count
    return {id: FormTally.of(campaign.forms[id], row) for id, row in cells.items()}


def count_words(form: Form, words: bytes, sign: int = 1) -> str:
    """Count submissions: the cells of their tally as a JSON object; with `sign=-1`, what takes them out."""
    return cells_as_json(sign * count_cells(form, words))


def count_cells(form: Form, words: bytes) -> CellCounts:
    """Count submissions: how many they are, then what the form counts."""
    rows = unpack_words(form.width, words)
    counts = form.count(rows)
    cells = np.empty(1 + counts.size, dtype=np.int64)
    cells[0], cells[1:] = len(rows), counts
    return cells


def cells_as_json(cells: CellCounts) -> str:
    """The cells of a tally that are not zero, as a JSON object.

    >>> cells_as_json(np.array([3, 0, 1, 2]))
    '{"0": 3, "2": 1, "3": 2}'
    """
    places = np.flatnonzero(cells)
    return json.dumps(dict(zip(places.tolist(), cells[places].tolist(), strict=True)))
