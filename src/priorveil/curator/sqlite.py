"""The embedded store: one SQLite file with a write-ahead log and full sync. Only one process may open it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from priorveil.atomic_files import atomic_write, lock_file
from priorveil.curator.settings import DEFAULTS, DatabaseLimits
from priorveil.curator.store import (
    FORM_NUMBERS,
    NO_CAMPAIGN,
    CellCounts,
    Group,
    Statements,
    Store,
    StoreFull,
    Unavailable,
    cells_as_json,
    count_cells,
)
from priorveil.errors import InvalidInput

T = TypeVar("T")
FileIdentity = tuple[int, int]  # of a file, whatever its names: its device and its number there

# The files that this process holds. POSIX keeps locks by process, so this cannot be kept by store.
_HELD: set[FileIdentity] = set()
_HOLDING = threading.Lock()

_log = logging.getLogger(__name__)

_STATEMENTS = Path(__file__).with_name("sqlite.sql").read_text(encoding="utf-8")
_SETTINGS, _KNOWN = _STATEMENTS.split("\n\n")

_BACKUP = "stop the curator, restore a backup and run `priorveil recount`"
_WRITABLE = "let the curator's user write to the file and its folder"
_ADVICE = {
    sqlite3.SQLITE_BUSY: "another program writes to the file: end it",
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_CORRUPT: _BACKUP,
    sqlite3.SQLITE_IOERR: "the disk fails: look into the log of the system",
    sqlite3.SQLITE_READONLY: _WRITABLE,
}


class SqliteStore(Store):
    """A store in one file. Without `create` the file must be one that a curator has made."""

    campaign_lock = "SELECT $1"  # there is only one writer

    def __init__(
        self, path: str | Path, *, create: bool = True, limits: DatabaseLimits = DEFAULTS.database
    ) -> None:
        # WITHOUT ROWID: rows lie in the order of their key, so the file does not tell the order of arrival.
        dialect = {"bytes": "blob", "number": "integer", "json_each": "json_each"}
        options = dict.fromkeys(["options", "cell_options"], "WITHOUT ROWID")
        super().__init__(str(Path(path)), create, **dialect, **options)
        self.path = Path(path).resolve()
        self._busy: dict[str, Any] = {"timeout": limits.lock_seconds, "isolation_level": None}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="priorveil-writer")
        self._opened = ExitStack()  # the lock and the connection
        self._connection: sqlite3.Connection | None = None
        self._files: list[FileIdentity] = []

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Lock the file for this process, and make the tables that are missing."""
        await self._in_thread(self._open)

    async def close(self) -> None:
        """Finish the work under way, then close the file."""
        await self._in_thread(self._opened.close)
        self._thread.shutdown()

    def _open(self) -> None:
        self._check_path()
        with ExitStack() as opened:
            identity = opened.enter_context(self._hold_file())
            db = opened.enter_context(
                closing(sqlite3.connect(self.path, check_same_thread=False, **self._busy))
            )
            version = self._schema_version(db)
            db.executescript(_SETTINGS)
            if version < self._newest_version:
                self._migrate(db, version)
            self._schema_version(db)  # SQLite makes its write-ahead log when the file is next read
            self._files = self._find_files()
            if self._files[:1] != [identity]:
                raise Unavailable(f"{self.path} was replaced while it was opened: try again")
            self._connection, self._opened = db, opened.pop_all()

    def _migrate(self, db: sqlite3.Connection, version: int) -> None:
        """Bring the tables to the newest version in one transaction, after a copy of the file if it has any."""
        backup = self._back_up(db, version) if version else None
        statements = " ".join(self._migrations[version:])
        newest = self._newest_version
        db.executescript(f"BEGIN IMMEDIATE; {statements} PRAGMA user_version = {newest}; COMMIT;")
        if backup is not None:
            _log.warning(
                "%s now has schema %d; %s is a copy with schema %d", self.path, newest, backup, version
            )

    def _back_up(self, db: sqlite3.Connection, version: int) -> Path:
        """A copy of the file beside it, durable."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")  # two copies may be made in one second
        backup = self._sibling(f".schema-{version}.{now}")
        with atomic_write(backup, private=True, argument="store") as draft:
            db.execute("VACUUM INTO ?", [str(draft.name)])
        return backup

    async def back_up(self, file: BinaryIO) -> None:
        """Write a backup into an empty file; a curator may go on."""

        def save() -> None:
            self._check_path()
            with self._connect() as db:
                self._schema_version(db)
                db.execute("VACUUM INTO ?", [file.name])

        with self._own_errors():
            await asyncio.to_thread(save)

    async def restore(self, file: Path, replace: bool) -> None:
        """Fill the file from a backup in one transaction, which succeeds as a whole or changes nothing."""

        def load() -> None:
            self._check_path()
            if not replace and self.path.exists() and self.path.stat().st_size:
                raise self._holds_something()
            with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as backup:
                _check_backup(file, backup, self._newest_version)
                with self._hold_file(), self._connect() as db:
                    backup.backup(db)

        with self._own_errors():
            await asyncio.to_thread(load)

    def _check_path(self) -> None:
        """Refuse what cannot be a store, before any file is made."""
        if self.path.is_dir():
            raise self._invalid("this is a folder: give a file in it")
        if not self.path.parent.is_dir():
            raise self._invalid(f"there is no folder {self.path.parent}: make it first")
        if not self.path.exists() and not self._create:
            raise self._invalid("there is no such file: give the one that `priorveil serve` uses")

    @contextmanager
    def _hold_file(self) -> Iterator[FileIdentity]:
        """Lock the file itself, whatever its name, and make it if there is none. Yield its identity.

        The lock is one of `flock`, which SQLite does not use. Closing any descriptor of the file would release the
        locks that SQLite has in this process: so the descriptor is closed last, and a file that this process already
        holds is not opened again. SQLite gives its log the permissions of the file.
        """
        flags = os.O_RDWR | (os.O_CREAT if self._create else 0)
        with _HOLDING:
            if self.path.exists() and _identity(os.stat(self.path)) in _HELD:
                raise self._in_use()
            try:
                file = os.open(self.path, flags, 0o600)
            except OSError as error:
                problem = f"the file cannot be opened or created ({error.strerror})"
                raise self._invalid(f"{problem}: {_WRITABLE}, or choose another folder") from error
            try:
                lock_file(file, wait=False)
            except OSError as error:
                os.close(file)
                raise self._in_use() from error
            identity = _identity(os.fstat(file))
            _HELD.add(identity)
        try:
            if (names := os.fstat(file).st_nlink) > 1:
                problem = (
                    f"the file has {names} names (hard links), and SQLite keeps its log under one of them"
                )
                raise self._invalid(f"{problem}: remove the others")
            yield identity
        finally:
            os.close(file)
            _HELD.discard(identity)

    def _in_use(self) -> Unavailable:
        problem = f"{self.path} is in use by another process, or cannot be locked on this system"
        return Unavailable(f"{problem}: stop it, or use PostgreSQL")

    def _schema_version(self, db: sqlite3.Connection) -> int:
        """The schema that the file has, 0 for none; refuses one that we cannot use."""
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        self._check_version(version)
        return version

    def _sibling(self, ending: str) -> Path:
        return self.path.parent / f"{self.path.name}{ending}"

    async def ready(self) -> None:
        """Store a report and roll it back, on a fresh connection: that of the writer has pages in memory."""

        def probe() -> None:
            self._check_files()
            with self._connect() as db:
                db.execute("BEGIN IMMEDIATE")
                for statement in self._probe():  # closing rolls them back
                    _execute(db, *statement)

        await self._in_thread(probe)

    # -- reports ---------------------------------------------------------------------------------------------

    async def commit(self, groups: Sequence[Group]) -> Counter[str]:
        """Store and count the new reports in one durable transaction; return how many were new, by campaign."""
        return await self._in_thread(lambda: self._commit(groups))

    def _commit(self, groups: Sequence[Group]) -> Counter[str]:
        cells: dict[int, CellCounts] = {}
        new = Counter[str]()
        with self._transaction() as db:
            for group in groups:
                form, counted = self._add(db, group)
                cells[form] = cells[form] + counted if form in cells else counted
                new[group.campaign] += int(counted[0])
            for form, counted in cells.items():
                _execute(db, self.add_cells, form, cells_as_json(counted))
        return new

    def _add(self, db: sqlite3.Connection, group: Group) -> tuple[int, CellCounts]:
        """Store the new reports of one group: the number of its form, and the cells of their tally.

        It is the only writer, so this check cannot race.
        """
        numbers = _execute(db, f"{FORM_NUMBERS} AND id = $2", group.campaign, group.form.id)
        if not numbers:
            raise Unavailable(NO_CAMPAIGN)
        _, campaign, form = numbers[0]
        new = group.select(np.unique(group.rows()[0], return_index=True)[1])  # sorted, each id once
        arguments = {"campaign": campaign, "ids": new.ids, "reports": new.size}
        duplicates = json.loads(db.execute(_KNOWN, arguments).fetchone()[0])
        if duplicates:
            new = new.select(np.delete(np.arange(new.size), duplicates))
        if new.size:
            size = len(new.words) // new.size
            _execute(db, self.add_reports, campaign, new.ids, form, new.words, size)
        if group.cells is not None and new.size == group.size:
            return form, group.cells
        return form, count_cells(new.form, new.words)

    # -- the file --------------------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run something in the one thread that writes."""
        with self._own_errors():
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def transact(self, statements: Callable[[], Statements[T]]) -> T:
        """Run a transaction; return its result when it is durable."""

        def run() -> T:
            with self._transaction() as db:
                steps = statements()
                try:
                    statement = next(steps)
                    while True:
                        statement = steps.send(_execute(db, *statement))
                except StopIteration as end:
                    result: T = end.value
                    return result

        return await self._in_thread(run)

    async def _change(self, *statements: tuple[Any, ...]) -> list[list[Any]]:
        def change() -> list[list[Any]]:
            with self._transaction() as db:
                return [_execute(db, *statement) for statement in statements]

        return await self._in_thread(change)

    async def _fetch(self, statement: str, *arguments: object) -> list[Any]:
        """Rows as of the last commit, on a connection of their own that does not wait for the writer."""

        def fetch() -> list[Any]:
            with self._connect() as db:
                return _execute(db, statement, *arguments)

        with self._own_errors():
            return await asyncio.to_thread(fetch)

    def _connect(self) -> closing[sqlite3.Connection]:
        """One more connection, which never makes a file."""
        uri = f"{self.path.as_uri()}?mode=rw"
        return closing(sqlite3.connect(uri, uri=True, **self._busy))

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Translate SQLite's errors into ours."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the bits that tell more
            if code == sqlite3.SQLITE_FULL:
                raise StoreFull(f"the disk is full: free some space for {self.path}") from error
            if code == sqlite3.SQLITE_NOTADB:
                raise self._invalid("this is not an SQLite database: give another file") from error
            advice = _ADVICE.get(code, "look into the log of the system")
            raise Unavailable(f"SQLite: {error}: {advice}: {self.path}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        db = self._connection
        if db is None:
            raise Unavailable("the store is not open")
        self._check_files()
        with db:  # commits, or rolls back after an error
            db.execute("BEGIN IMMEDIATE")
            yield db
        self._check_files()

    def _check_files(self) -> None:
        """Refuse to go on when a file was deleted or replaced: SQLite would write into the old one, which is lost."""
        if self._find_files() != self._files:
            raise Unavailable(f"{self.path} was removed or replaced while it was open: restart the curator")

    def _find_files(self) -> list[FileIdentity]:
        """The identities of the database and its write-ahead log."""
        try:
            return [_identity(os.stat(path)) for path in (self.path, self._sibling("-wal"))]
        except FileNotFoundError:
            return []


def _execute(db: sqlite3.Connection, statement: str, *arguments: object) -> list[Any]:
    return db.execute(statement, {str(n): value for n, value in enumerate(arguments, start=1)}).fetchall()


def _identity(file: os.stat_result) -> FileIdentity:
    return file.st_dev, file.st_ino


def _check_backup(file: Path, backup: sqlite3.Connection, newest: int) -> None:
    """Refuse a file that is not a sound backup of a store."""
    try:
        version = int(backup.execute("PRAGMA user_version").fetchone()[0])
        problems = [text for (text,) in backup.execute("PRAGMA quick_check")]
    except sqlite3.DatabaseError as error:
        raise InvalidInput("file", str(file), f"it is not a backup of an SQLite store ({error})") from error
    if not 1 <= version <= newest:
        advice = (
            f"it has schema {version}, this priorveil knows 1 to {newest}: use the priorveil that made it"
        )
        raise InvalidInput("file", str(file), advice)
    if problems != ["ok"]:
        raise InvalidInput("file", str(file), "the backup is damaged: take another one")
