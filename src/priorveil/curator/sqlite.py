"""The embedded store: one SQLite file, write-ahead log, full sync. One process at a time may hold it.

Reports are kept in a packed log, one entry for each plan in each commit; which ids were seen is answered by
`seen`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from priorveil.collect.campaign import Campaign
from priorveil.curator import seen
from priorveil.curator.keys import as_keys
from priorveil.curator.store import (
    Cells,
    Chunk,
    Group,
    Stored,
    StoreFull,
    Unavailable,
    add_chunk,
    as_cells,
    as_tally,
    changed_chunks,
    chunk,
    counted,
    no_cells,
    only,
    read_stored,
    refuse_schema,
)
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.plans.tally import Tally

try:
    import fcntl
except ImportError:  # pragma: no cover: Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

MIGRATIONS = (
    """
    CREATE TABLE campaigns (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, document TEXT NOT NULL, closed TEXT
    );
    CREATE TABLE plans (
        number INTEGER PRIMARY KEY, campaign INTEGER NOT NULL REFERENCES campaigns, id TEXT NOT NULL,
        UNIQUE (campaign, id)
    );
    CREATE TABLE log (
        number INTEGER PRIMARY KEY AUTOINCREMENT, plan INTEGER NOT NULL REFERENCES plans,
        ids BLOB NOT NULL, words BLOB NOT NULL
    );
    CREATE TABLE tallies (
        plan INTEGER NOT NULL REFERENCES plans, shard INTEGER NOT NULL, chunk INTEGER NOT NULL,
        cells BLOB NOT NULL, PRIMARY KEY (plan, shard, chunk)
    );
    CREATE TABLE refusals (
        campaign TEXT NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (campaign, reason)
    ) WITHOUT ROWID;
    CREATE TABLE tokens (digest BLOB PRIMARY KEY) WITHOUT ROWID;
    """,
)

_SHARD = 0  # there is one writer
_CHECKPOINT_PAGES = 4000
_PUT_CHUNK = """
    INSERT INTO tallies (plan, shard, chunk, cells) VALUES (?, ?, ?, ?)
    ON CONFLICT (plan, shard, chunk) DO UPDATE SET cells = excluded.cells
"""
_TALLY = """
    SELECT plans.id, chunk, cells FROM tallies JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign WHERE campaigns.id = ?
"""
_LOG = """
    SELECT log.number, plans.id, ids, words FROM log JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign
    WHERE campaigns.id = ? AND log.number > ? ORDER BY log.number LIMIT ?
"""
_ENTRIES = """
    SELECT log.number, ids, campaigns.id FROM log JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign WHERE log.number {} ? ORDER BY log.number
"""


class SqliteStore:
    """A store in one file. `flush` is how many recent ids are kept in memory.

    Without `create` there must be one that a curator has made, with the schema that we know.
    """

    def __init__(self, path: str | Path, flush: int = seen.FLUSH, *, create: bool = True) -> None:
        self.path = Path(path).resolve()  # one file has one name, and so one lock
        self._given = str(Path(path))
        self._create = create
        self._seen = seen.Seen(self._beside(".ids"), flush)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="priorveil-writer")
        self._lock: IO[str] | None = None
        self._writer: sqlite3.Connection | None = None
        self._files: list[tuple[int, int]] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._cells: dict[int, Cells] = {}

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Lock the file for this process, bring its schema up to date, and read which ids were seen."""
        await self._write(self._open)

    async def close(self) -> None:
        """Close the file after what is under way."""
        await self._write(self._close)
        self._thread.shutdown()

    def _open(self) -> None:
        self._look()
        self._lock = _locked(self._beside(".lock"))
        self._writer = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        version = self._version(self._writer)
        for setting in (
            "journal_mode = WAL",
            "synchronous = FULL",
            f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        ):
            self._writer.execute(f"PRAGMA {setting}")
        _migrate(self._writer, version)
        self._files = self._found_files()
        self._seen.open(self._entry, self._entries)

    def _look(self) -> None:
        """Refuse what cannot be a store, before anything is made in it or beside it."""
        if self.path.is_dir():
            raise InvalidInput("store", self._given, "this is a folder: give a file in it")
        if not self.path.parent.is_dir():
            raise InvalidInput("store", self._given, f"there is no folder {self.path.parent}: make it first")
        if self.path.exists():
            if not self._beside(".lock").exists():  # no curator has it open: it bears to be looked at
                with closing(sqlite3.connect(self.path)) as db:
                    self._version(db)
        elif not self._create:
            advice = "there is no such file: give the one that `priorveil serve` uses"
            raise InvalidInput("store", self._given, advice)

    def _version(self, db: sqlite3.Connection) -> int:
        """The schema that the file has, 0 for none; refuses one that we cannot use."""
        try:
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                advice = "this is not an SQLite database: give another file"
                raise InvalidInput("store", self._given, advice) from error
            raise
        refuse_schema(self._given, version, len(MIGRATIONS), self._create)
        return version

    def _beside(self, ending: str) -> Path:
        return self.path.parent / f"{self.path.name}{ending}"

    def _close(self) -> None:
        self._seen.close()
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.close()

    async def ready(self) -> None:
        """Return if a transaction can be opened."""
        await self._write(self._probe)

    def _probe(self) -> None:
        with self._transaction():
            pass

    # -- reports ---------------------------------------------------------------------------------------------

    async def commit(self, groups: Sequence[Group]) -> int:
        """Store what is new, durably, and count it; return how many were new."""
        return await self._write(lambda: self._commit(groups))

    def _commit(self, groups: Sequence[Group]) -> int:
        pending: set[bytes] = set()
        changed: dict[int, Cells] = {}
        stored: list[seen.Entry] = []
        with self._transaction() as db:
            for group in groups:
                keys = as_keys(group.ids, group.campaign)
                new = self._seen.fresh(keys, pending)
                if not new.any():
                    continue
                kept = group if new.all() else only(group, new)
                plan = self._plan_number(group)
                entry = db.execute(
                    "INSERT INTO log (plan, ids, words) VALUES (?, ?, ?)", (plan, kept.ids, kept.words)
                )
                stored.append(seen.Entry(int(entry.lastrowid or 0), keys[new]))
                before = changed[plan] if plan in changed else self._tally(plan, group)
                changed[plan] = self._count(db, plan, before, counted(group.mechanism, kept.words))
        if stored:
            self._cells.update(changed)
            self._seen.add(pending, stored)
        return len(pending)

    def _count(self, db: sqlite3.Connection, plan: int, before: Cells, delta: Cells) -> Cells:
        after = before + delta
        db.executemany(_PUT_CHUNK, [(plan, _SHARD, n, chunk(after, n)) for n in changed_chunks(delta)])
        return after

    def _tally(self, plan: int, group: Group) -> Cells:
        """What is counted so far; read once, then kept beside the file."""
        if plan not in self._cells:
            cells = no_cells(group.mechanism)
            rows = self._db.execute(
                "SELECT chunk, cells FROM tallies WHERE plan = ? AND shard = ?", (plan, _SHARD)
            )
            for number, stored in rows:
                add_chunk(cells, number, stored)
            self._cells[plan] = cells
        return self._cells[plan]

    def _plan_number(self, group: Group) -> int:
        key = (group.campaign, group.plan)
        if key not in self._numbers:
            found = self._db.execute(
                "SELECT plans.number FROM plans JOIN campaigns ON campaigns.number = plans.campaign "
                "WHERE campaigns.id = ? AND plans.id = ?",
                key,
            ).fetchone()
            self._numbers[key] = int(found[0])
        return self._numbers[key]

    async def reports(self, campaign: Campaign) -> AsyncIterator[Chunk]:
        """All reports of a campaign, some entries of the log at a time."""
        number, at_once = 0, 500
        while True:
            rows = await self._read(_LOG, (campaign.id, number, at_once))
            for plan in dict.fromkeys(row[1] for row in rows):
                own = [row for row in rows if row[1] == plan]
                yield Chunk(plan, b"".join(row[2] for row in own), b"".join(row[3] for row in own))
            if len(rows) < at_once:
                return
            number = rows[-1][0]

    async def tallies(self, campaign: Campaign) -> dict[str, Tally]:
        """What has been counted, by plan."""
        cells = {plan.id: no_cells(plan.mechanism) for plan in campaign.plans.values()}
        for plan, number, stored in await self._read(_TALLY, (campaign.id,)):
            add_chunk(cells[plan], number, stored)
        return {plan: as_tally(plan, campaign.plans[plan].mechanism, found) for plan, found in cells.items()}

    async def replace_tallies(self, campaign: Campaign, tallies: Mapping[str, Tally]) -> None:
        """Put recounted tallies in the place of the stored ones."""
        await self._write(lambda: self._replace(campaign, tallies))

    def _replace(self, campaign: Campaign, tallies: Mapping[str, Tally]) -> None:
        with self._transaction() as db:
            for plan, tally in tallies.items():
                number = self._plan_number(Group(campaign.id, plan, campaign.plans[plan].mechanism, b"", b""))
                db.execute("DELETE FROM tallies WHERE plan = ?", (number,))
                cells = as_cells(tally)
                self._count(db, number, np.zeros_like(cells), cells)
        self._cells.clear()

    # -- campaigns -------------------------------------------------------------------------------------------

    async def add_campaign(self, campaign: Campaign) -> bool:
        """Store a campaign; False if it was there."""
        return await self._write(lambda: self._add_campaign(campaign))

    def _add_campaign(self, campaign: Campaign) -> bool:
        with self._transaction() as db:
            if db.execute("SELECT 1 FROM campaigns WHERE id = ?", (campaign.id,)).fetchone():
                return False
            row = db.execute(
                "INSERT INTO campaigns (id, document) VALUES (?, ?)", (campaign.id, campaign.to_json())
            )
            for plan in campaign.plans:
                db.execute("INSERT INTO plans (campaign, id) VALUES (?, ?)", (row.lastrowid, plan))
        return True

    async def close_campaign(self, campaign: str, when: str) -> None:
        """Take no more reports for this campaign; the first closing counts."""
        await self._change(
            "UPDATE campaigns SET closed = ? WHERE id = ? AND closed IS NULL", [(when, campaign)]
        )

    async def campaign_ids(self) -> list[tuple[str, str | None]]:
        """All campaigns, oldest first."""
        return await self._read("SELECT id, closed FROM campaigns ORDER BY number", ())

    async def campaign(self, campaign: str) -> Stored | None:
        """A campaign by its id."""
        rows = await self._read("SELECT document, closed FROM campaigns WHERE id = ?", (campaign,))
        return await asyncio.to_thread(read_stored, campaign, *rows[0]) if rows else None

    # -- counters and tokens ---------------------------------------------------------------------------------

    async def refuse(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add to the refusals."""
        add = "INSERT INTO refusals VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
        await self._change(add, [(campaign, reason, n) for (campaign, reason), n in counts.items()])

    async def refusals(self, campaign: str) -> dict[str, int]:
        """How many reports were refused, by reason."""
        return dict(
            await self._read("SELECT reason, count FROM refusals WHERE campaign = ? ORDER BY 1", (campaign,))
        )

    async def add_token(self, digest: bytes) -> None:
        """Remember the SHA-256 of a curator token."""
        await self._change("INSERT OR IGNORE INTO tokens VALUES (?)", [(digest,)])

    async def token_digests(self) -> list[bytes]:
        """The SHA-256 of every curator token."""
        return [row[0] for row in await self._read("SELECT digest FROM tokens", ())]

    # -- the file --------------------------------------------------------------------------------------------

    @property
    def _db(self) -> sqlite3.Connection:
        if self._writer is None:
            raise Unavailable("the store is not open")
        return self._writer

    async def _write(self, work: Callable[[], T]) -> T:
        """Do something in the one thread that writes."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise _explained(error, self.path) from error

    async def _change(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        def change() -> None:
            with self._transaction() as db:
                db.executemany(statement, rows)

        await self._write(change)

    async def _read(self, query: str, arguments: tuple[object, ...]) -> list[Any]:
        """Rows as of the last commit, without waiting for the writer."""
        return await asyncio.to_thread(self._fetch, query, arguments)

    def _fetch(self, query: str, arguments: tuple[object, ...]) -> list[Any]:
        try:
            place = f"{self.path.as_uri()}?mode=rw"  # never makes a file
            with closing(sqlite3.connect(place, uri=True, isolation_level=None)) as db:
                return db.execute(query, arguments).fetchall()
        except sqlite3.Error as error:
            raise _explained(error, self.path) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        db = self._db
        self._require_files()
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._require_files()

    def _require_files(self) -> None:
        """SQLite writes on into files that were deleted or replaced: what goes there would be lost."""
        if self._found_files() != self._files:
            raise Unavailable(f"{self.path} was removed or replaced while it was open: restart the curator")

    def _found_files(self) -> list[tuple[int, int]]:
        """Which files the database, its log and its lock are now."""
        try:
            found = [os.stat(path) for path in (self.path, self._beside("-wal"), self._beside(".lock"))]
        except FileNotFoundError:
            return []
        return [(file.st_dev, file.st_ino) for file in found]

    def _entry(self, number: int) -> seen.Entry | None:
        return next(self._found_entries("=", number), None)

    def _entries(self, number: int) -> Iterator[seen.Entry]:
        return self._found_entries(">=", number)

    def _found_entries(self, relation: str, number: int) -> Iterator[seen.Entry]:
        for n, ids, campaign in self._db.execute(_ENTRIES.format(relation), (number,)):
            yield seen.Entry(n, as_keys(ids, campaign))


def _locked(path: Path) -> IO[str]:
    """The lock file, held by this process until it ends."""
    if fcntl is None:
        raise Unavailable(
            "this system cannot lock a file so that two curators never share it: give --store a PostgreSQL URL"
        )
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise Unavailable(
            f"{path.with_suffix('')} is in use by another process: stop it, or use PostgreSQL"
        ) from error
    return file


def _migrate(db: sqlite3.Connection, version: int) -> None:
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")


def _explained(error: sqlite3.Error, path: Path) -> PriorveilError:
    """A failure of SQLite in our words."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return StoreFull("the disk is full")
    return Unavailable(f"SQLite: {error}: {path}")
