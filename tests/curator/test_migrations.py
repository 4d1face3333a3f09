"""Stores of older versions are brought forward with everything in them, or stay as they were."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_server import in_store
from patience import run_apart
from priorveil.curator.maintenance import back_up_store, restore_store
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import Group, Record, Store, StoreFull, Unavailable, count_words, open_store
from priorveil.curator.tokens import Token
from priorveil.errors import InvalidInput
from priorveil.questions.campaign import Campaign
from refusals import raises
from small_disk import small_disk

NEWEST = open_store("any.db")._newest_version
DIGESTS = [hashlib.sha256(token).digest() for token in (b"one", b"two")]
BROKEN = "CREATE TABLE halfway (number integer); INSERT INTO nowhere VALUES (1);"


def reports_of(campaign: Campaign) -> Group:
    ids = b"".join(hashlib.sha256(bytes([n])).digest()[:16] for n in range(20))
    return Group(campaign.id, campaign.form_for(None), ids, bytes(8 * 20))


def fill_old_store(url: str, version: int, campaign: Campaign) -> None:
    """Make a store of an older version with a closed campaign, reports, refusals and tokens."""

    async def fill() -> None:
        store = open_store(url)
        store._migrations = store._migrations[:version]
        async with store:
            # In plain SQL: what the code of today stores, older tables may not have.
            text, closed = campaign.to_json(), "2026-01-01T00:00:00Z"
            make = "INSERT INTO campaigns (id, document, closed) VALUES ($1, $2, $3)"
            await store._change((make, campaign.id, text, closed))
            reports = reports_of(campaign)
            await store._change(("INSERT INTO forms (campaign, id) VALUES (1, $1)", reports.form.id))
            add = "INSERT INTO submissions (campaign, report_id, form, words) VALUES (1, $1, 1, $2)"
            await store._change(*[(add, *map(bytes, row)) for row in zip(*reports.rows(), strict=True)])
            await store._change((store.add_cells, 1, count_words(reports.form, reports.words)))
            await store.refuse({(campaign.id, "closed"): 3})
            if version == 1:
                await store._change(*[("INSERT INTO tokens (digest) VALUES ($1)", each) for each in DIGESTS])
            else:
                for number, digest in enumerate(DIGESTS, start=1):
                    await store.add_token(Token(digest, f"token-{number}", "admin", None))

    run_apart(fill())


async def check_content(store: Store, campaign: Campaign) -> None:
    assert await store.campaign_ids() == [(campaign.id, "2026-01-01T00:00:00Z", None, None)]
    assert (await store.tallies(campaign))[campaign.form_for(None).id].reports == 20
    assert await store.recount(campaign) == await store.tallies(campaign)
    assert await store.refusals(campaign.id) == {"closed": 3}
    assert (await store.commit([reports_of(campaign)])).total() == 0


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def backups(path: str) -> list[Path]:
    return list(Path(path).parent.glob("*.schema-*"))


@pytest.mark.parametrize("version", range(1, NEWEST))
async def test_every_older_version_is_brought_forward(
    store_url: str, version: int, campaign: Campaign
) -> None:
    fill_old_store(store_url, version, campaign)
    async with open_store(store_url, migrate=True) as store:
        await check_content(store, campaign)
        tokens = await store._fetch("SELECT digest, name, role, expires FROM tokens ORDER BY name")
        assert [tuple(row[1:]) for row in tokens] == [
            ("token-1", "admin", None),
            ("token-2", "admin", None),
        ]
        assert {row[0] for row in tokens} == set(DIGESTS)
        assert await store._fetch("SELECT deleted FROM campaigns") == [(None,)]
        for table in ("invitations", "records", "daily_counts", "results"):
            assert await store._fetch(f"SELECT * FROM {table}") == []
    in_store(store_url, lambda store: check_content(store, campaign))


@pytest.mark.parametrize("version", range(1, NEWEST))
def test_an_older_backup_replaces_a_newer_store(
    store_url: str, tmp_path: Path, version: int, campaign: Campaign
) -> None:
    """With all that the newer store had; then it is brought forward like any older store."""
    file = tmp_path / "backup"
    fill_old_store(store_url, version, campaign)
    asyncio.run(back_up_store(store_url, file))

    async def migrate(*checks: Callable[[Store], Awaitable[None]]) -> None:
        async with open_store(store_url, migrate=True) as store:
            for check in checks:
                await check(store)

    async def use(store: Store) -> None:
        await store.add_invitations(campaign.id, [bytes(32)])
        await store.add_record(Record("2026-02-02T00:00:00Z", "anna", "closed"))
        await store.add_daily_counts({(campaign.id, "2026-02-02"): 20})
        await store.store_result(campaign, "closed", "2026-02-02T00:00:00Z")

    async def check(store: Store) -> None:
        await check_content(store, campaign)
        assert await store.daily_counts(campaign.id) == {} and await store.stored_result(campaign) is None
        assert await store.free_invitations(campaign.id) == 0 and await store.records(9) == []

    asyncio.run(migrate(use))
    for _ in range(2):
        asyncio.run(restore_store(file, store_url, replace=True))
    asyncio.run(migrate(check))


def test_a_migrated_store_is_like_a_new_one(tmp_path: Path, campaign: Campaign) -> None:
    async def nothing(store: Store) -> None:
        pass

    def columns(path: Path) -> list[tuple[Any, ...]]:
        query = "SELECT m.name, c.* FROM sqlite_master m, pragma_table_info(m.name) c ORDER BY 1, 2"
        with closing(sqlite3.connect(path)) as db:
            return db.execute(query).fetchall()

    fill_old_store(str(tmp_path / "old.db"), 1, campaign)
    for name in ("old.db", "new.db"):
        in_store(str(tmp_path / name), nothing)
    assert columns(tmp_path / "old.db") == columns(tmp_path / "new.db")


def test_a_file_is_copied_first(tmp_path: Path, campaign: Campaign, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "reports.db")
    fill_old_store(path, 1, campaign)
    with caplog.at_level(logging.WARNING):
        in_store(path, lambda store: check_content(store, campaign))
        in_store(path, lambda store: check_content(store, campaign))
    [backup] = backups(path)
    assert backup.stat().st_mode & 0o777 == 0o600
    assert [str(backup) in message for message in caplog.messages] == [True]
    assert "records" in tables(Path(path)) and "records" not in tables(backup)
    in_store(str(backup), lambda store: check_content(store, campaign))


def test_a_migration_that_fails_half_way_changes_nothing(store_url: str, campaign: Campaign) -> None:
    fill_old_store(store_url, 1, campaign)

    async def fail() -> None:
        store = open_store(store_url, migrate=True)
        store._migrations = [*store._migrations, BROKEN]
        with pytest.raises((Unavailable, InvalidInput)):
            await store.open()
        await store.close()

    async def still_old() -> None:
        store = open_store(store_url)
        store._migrations = store._migrations[:1]
        async with store:
            for table, rows in (("campaigns", 1), ("submissions", 20), ("tokens", 2)):
                assert [tuple(row) for row in await store._fetch(f"SELECT count(*) FROM {table}")] == [
                    (rows,)
                ]
            with pytest.raises(Unavailable):
                await store._fetch("SELECT * FROM halfway")
            with pytest.raises(Unavailable):
                await store._fetch("SELECT role FROM tokens")

    asyncio.run(fail())
    asyncio.run(still_old())


def test_without_room_for_the_copy_nothing_changes(tmp_path: Path, campaign: Campaign) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        path = str(disk / "reports.db")
        fill_old_store(path, 1, campaign)
        # SQLite needs 32 KiB for the index of its log; the copy is larger than what then is left.
        (disk / "rest").write_bytes(bytes(shutil.disk_usage(disk).free - (44 << 10)))
        with pytest.raises(StoreFull):
            in_store(path, lambda store: check_content(store, campaign))
        assert backups(path) == [] and "records" not in tables(Path(path))
        (disk / "rest").unlink()
        in_store(path, lambda store: check_content(store, campaign))


def test_a_newer_schema_is_refused(store_url: str) -> None:
    async def make_newer(store: Store) -> None:
        if isinstance(store, SqliteStore):
            store._connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
        else:
            await store._change((f"INSERT INTO schema_version VALUES ({NEWEST + 1})",))

    in_store(store_url, make_newer)
    with raises(InvalidInput, argument="store"):
        asyncio.run(open_store(store_url, migrate=True).open())


# -- PostgreSQL makes no copy of its own ------------------------------------------------------------------


def test_postgres_is_migrated_only_when_asked(postgres: Any, campaign: Campaign) -> None:
    url = postgres.url("asked")
    fill_old_store(url, 1, campaign)
    for create in (True, False):
        with raises(InvalidInput, argument="store"):
            asyncio.run(open_store(url, create).open())


async def test_postgres_is_not_migrated_under_a_curator(postgres: Any, campaign: Campaign) -> None:
    url = postgres.url("under")
    fill_old_store(url, 1, campaign)
    old = open_store(url)
    old._migrations = old._migrations[:1]
    async with old:
        await old._connect_writer()  # type: ignore[attr-defined]
        with pytest.raises(Unavailable):
            await open_store(url, migrate=True).open()

    async with open_store(url, migrate=True) as new:
        assert (await new.commit([reports_of(campaign)])).total() == 0
