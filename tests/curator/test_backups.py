"""`priorveil backup` and `priorveil restore`, on both stores. `test_deploy.py` runs them on a curator under load."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from conftest import _numbers
from curator.test_stores import group
from local_server import in_store
from priorveil.cli import run
from priorveil.curator.maintenance import back_up_store, restore_store
from priorveil.curator.store import Store, Unavailable, open_store
from priorveil.errors import InvalidInput
from priorveil.questions.campaign import Campaign
from refusals import raises


@pytest.fixture
def another_url(store_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of another empty store of the same kind."""
    if not store_url.startswith("postgresql"):
        return str(tmp_path / "another.db")
    url: str = request.getfixturevalue("postgres").url(f"another{next(_numbers)}")
    return url


def fill(url: str, campaign: Campaign, reports: int) -> None:
    async def work(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.commit([group(campaign, reports)])

    in_store(url, work)


def held(url: str, campaign: Campaign) -> int:
    """The reports of a store, whose tallies agree."""
    reports = []

    async def work(store: Store) -> None:
        tallies = await store.tallies(campaign)
        assert await store.recount(campaign) == tallies
        reports.append(sum(tally.reports for tally in tallies.values()))

    in_store(url, work)
    return reports[0]


async def test_a_store_is_copied_and_filled_again(
    store_url: str, another_url: str, tmp_path: Path, campaign: Campaign
) -> None:
    file = tmp_path / "backup"
    fill(store_url, campaign, 30)
    async with open_store(store_url) as store:
        await store.commit([group(campaign, 5)])
        await back_up_store(store_url, file)
        await store.commit([group(campaign, 7)])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert held(store_url, campaign) == 42
    await restore_store(file, another_url)
    assert held(another_url, campaign) == 35
    with raises(InvalidInput, argument="store"):
        await restore_store(file, store_url)
    assert held(store_url, campaign) == 42
    await restore_store(file, store_url, replace=True)
    assert held(store_url, campaign) == 35
    fill(store_url, campaign, 3)
    assert held(store_url, campaign) == 38


def test_a_restored_file_does_not_tell_the_order_of_long_reports(tmp_path: Path, campaign: Campaign) -> None:
    """SQLite puts the ends of long rows on pages of their own as they come; a backup has them sorted by id."""
    old, file, new = (tmp_path / name for name in ("old.db", "backup", "new.db"))
    arrived = [(os.urandom(16), os.urandom(400)) for _ in range(50)]

    async def add(store: Store) -> None:
        await store.add_campaign(campaign)
        for report in arrived:
            await store._change(("INSERT INTO submissions VALUES (1, $1, 1, $2)", *report))

    def in_order(path: Path, reports: list[tuple[bytes, bytes]]) -> bool:
        places = [path.read_bytes().index(words[-16:]) for _, words in reports]
        return places == sorted(places)

    in_store(str(old), add)
    asyncio.run(back_up_store(str(old), file))
    asyncio.run(restore_store(file, str(new)))
    assert in_order(old, arrived)
    assert in_order(new, sorted(arrived))


def test_a_backup_is_not_overwritten_unasked(store_url: str, tmp_path: Path, campaign: Campaign) -> None:
    fill(store_url, campaign, 3)
    file = tmp_path / "backup"
    file.write_text("mine")
    assert run(["backup", store_url, str(file)]) == 2
    assert file.read_text() == "mine"
    assert run(["backup", "--force", store_url, str(file)]) == 0
    assert run(["restore", str(file), store_url]) == 2
    assert run(["restore", "--force", str(file), store_url]) == 0
    assert held(store_url, campaign) == 3


async def test_nothing_is_restored_under_a_curator(
    store_url: str, tmp_path: Path, campaign: Campaign
) -> None:
    file = tmp_path / "backup"
    fill(store_url, campaign, 3)
    await back_up_store(store_url, file)
    async with open_store(store_url) as store:
        await store.commit([group(campaign, 4)])
        with raises(Unavailable):
            await restore_store(file, store_url, replace=True)
    assert held(store_url, campaign) == 7


@pytest.mark.parametrize("content", [b"", b"not a backup", b"SQLite format 3\0" + bytes(2000)])
def test_what_is_not_a_backup_changes_nothing(
    store_url: str, tmp_path: Path, campaign: Campaign, content: bytes
) -> None:
    file = tmp_path / "backup"
    file.write_bytes(content)
    fill(store_url, campaign, 3)
    with raises((InvalidInput, Unavailable)):  # type: ignore[arg-type]
        asyncio.run(restore_store(file, store_url, replace=True))
    assert held(store_url, campaign) == 3


def test_a_damaged_backup_is_refused(tmp_path: Path, campaign: Campaign) -> None:
    store, file = str(tmp_path / "reports.db"), tmp_path / "backup"
    fill(store, campaign, 2000)
    asyncio.run(back_up_store(store, file))
    content = bytearray(file.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = bytes(4096)
    file.write_bytes(content)
    with raises(InvalidInput, argument="file"):
        asyncio.run(restore_store(file, store, replace=True))
    assert held(store, campaign) == 2000


def test_an_empty_store_has_no_backup(store_url: str, tmp_path: Path) -> None:
    with raises(InvalidInput, argument="store"):
        asyncio.run(back_up_store(store_url, tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()


def test_without_the_programs_of_postgres_it_says_so(
    postgres: Any, tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url("no_programs")
    fill(url, campaign, 3)
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises(Unavailable, cause=FileNotFoundError):
        asyncio.run(back_up_store(url, tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()
