"""What a store promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from local_server import in_store
from patience import PATIENCE
from priorveil.curator.admission import withdraw
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import (
    FormTally,
    Group,
    Store,
    StoreFull,
    Unavailable,
    open_store,
)
from priorveil.curator.tokens import Token
from priorveil.errors import InvalidInput
from priorveil.questions.campaign import Campaign, ask_with
from refusals import raises
from sample_surveys import people
from submissions import plan_of

TOKEN = Token.of("secret", "alice", "analyst", "2027-01-01T00:00:00Z")
RNG = np.random.default_rng(7)
ROW = 308  # bytes that a small report takes in a page


def group(campaign: Campaign, count: int, cohort: str | None = None, ids: bytes | None = None) -> Group:
    """Reports of random people."""
    plan = plan_of(campaign, cohort)
    reports = plan.mechanism.sample(RNG.integers(0, 4, count), _source())
    words = reports.astype("<u8").tobytes()
    return Group(
        campaign.id, campaign.form_for(cohort), os.urandom(16 * count) if ids is None else ids, words
    )


def _source():
    from priorveil.mechanisms.randomness import as_source

    return as_source(RNG)


async def test_every_mechanism_is_counted_and_recounted(store_url: str, cohorts: Campaign) -> None:
    groups = [group(cohorts, 50 + 10 * i, name) for i, name in enumerate(cohorts.cohorts)]
    async with open_store(store_url) as store:
        assert await store.add_campaign(cohorts)
        assert not await store.add_campaign(cohorts)
        assert (await store.commit(groups)).total() == sum(len(g.ids) for g in groups) // 16
        tallies = await store.tallies(cohorts)
        for g in groups:
            reports = np.frombuffer(g.words, "<u8").astype(np.uint64)
            plan = g.form.parts[0].plan
            expected = plan.tally(
                reports.reshape(-1, 1) if plan.mechanism.kind == "unary" else reports.astype(np.int64)
            )
            assert tallies[g.form.id] == FormTally(expected.reports, (expected,))
        assert await store.recount(cohorts) == tallies


async def test_sums_of_many_orders_are_counted_and_recounted(store_url: str) -> None:
    """Nearly every report changes every number of such a tally."""
    plan = pv.design(pv.Prior.zipf(40), 1.0, pv.Distribution(), method="arc")
    campaign = ask_with("Which of these?", {"all": plan}, smallest_count=1)
    groups = [group(campaign, count, "all") for count in (1, 30, 200)]
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        for each in groups:
            await store.commit([each])
        tallies = await store.tallies(campaign)
        reports = np.frombuffer(b"".join(each.words for each in groups), "<i8")
        assert tallies == {campaign.form_for(None).id: FormTally(231, (plan.tally(reports),))}
        assert await store.recount(campaign) == tallies


async def test_submissions_to_a_survey_are_counted_whole(store_url: str, survey: Campaign) -> None:
    """Every part of a form has a tally of its own, and a drawn slot counts in one of its parts."""
    form = survey.form_for(None)
    words = np.concatenate([form.privatize(survey.attribute_values(one), rng=RNG) for one in people(60, RNG)])
    ids = os.urandom(16 * 60)
    group = Group(survey.id, form, ids, words.tobytes())
    async with open_store(store_url) as store:
        await store.add_campaign(survey)
        assert (await store.commit([group])).total() == 60
        assert (await store.commit([group])).total() == 0
        (tally,) = (await store.tallies(survey)).values()
        assert (tally.reports, tally.parts) == (60, form.tallies(form.count(words)))
        ills, hours, packs = (part.reports for part in tally.parts)
        assert ills == hours + packs == 60 and hours and packs
        assert await store.recount(survey) == {form.id: tally}
        assert await withdraw(store, survey, [ids[:16]]) == 1
        (rest,) = (await store.tallies(survey)).values()
        assert rest.reports == 59 and rest.parts == form.tallies(form.count(words[1:]))
        await store.replace_tallies(survey, {form.id: tally})
        assert await store.tallies(survey) == {form.id: tally}


def test_an_id_counts_once_for_ever(store_url: str, campaign: Campaign, cohorts: Campaign) -> None:
    first, other = group(campaign, 100), group(cohorts, 100, "columns")

    async def fill(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.add_campaign(cohorts)
        assert (await store.commit([first])).total() == 100
        assert (await store.commit([first])).total() == 0
        overlapping = group(campaign, 100, ids=first.ids[800:] + os.urandom(800))
        assert (await store.commit([overlapping])).total() == 50
        twice = os.urandom(16)
        assert (await store.commit([group(campaign, 3, ids=twice * 3)])).total() == 1
        same = Group(other.campaign, other.form, first.ids, other.words)
        assert (await store.commit([same])).total() == 100, "another campaign may use the same ids"
        assert (await store.commit([group(cohorts, 100, "arc", ids=first.ids)])).total() == 0, (
            "but not another cohort of it"
        )

    async def after(store: Store) -> None:
        assert (await store.commit([first])).total() == 0
        assert (await store.tallies(campaign))[first.form.id].reports == 151
        assert await store.recount(campaign) == await store.tallies(campaign)
        assert await store.recount(cohorts) == await store.tallies(cohorts)

    in_store(store_url, fill)
    in_store(store_url, after)


async def test_tallies_can_be_made_again(store_url: str, campaign: Campaign) -> None:
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        await store.commit([group(campaign, 10)])
        right = await store.tallies(campaign)
        wrong = {id: FormTally.of(campaign.forms[id], 2 * tally.cells()) for id, tally in right.items()}
        await store.replace_tallies(campaign, wrong)
        assert await store.tallies(campaign) == wrong
        await store.replace_tallies(campaign, await store.recount(campaign))
        assert await store.tallies(campaign) == right
        await store.commit([group(campaign, 5)])
        assert await store.recount(campaign) == await store.tallies(campaign)


def test_closing_refusals_and_tokens_stay(store_url: str, campaign: Campaign) -> None:
    async def fill(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.close_campaign(campaign.id, "2026-01-01T00:00:00Z")
        await store.close_campaign(campaign.id, "2027-01-01T00:00:00Z")
        await store.refuse({(campaign.id, "closed"): 2, (campaign.id, "malformed"): 1})
        await store.refuse({(campaign.id, "closed"): 3})
        assert await store.add_token(TOKEN)
        for same in (TOKEN._replace(name="bob"), TOKEN._replace(digest=bytes(32))):
            assert not await store.add_token(same)

    async def after(store: Store) -> None:
        assert await store.campaign_ids() == [(campaign.id, "2026-01-01T00:00:00Z", None, None)]
        stored = await store.campaign(campaign.id)
        assert stored is not None and stored.campaign.id == campaign.id
        assert await store.campaign("0" * 64) is None
        assert await store.refusals(campaign.id) == {"closed": 5, "malformed": 1}
        assert await store.tokens() == [TOKEN]
        await store.replace_token(TOKEN._replace(digest=bytes(32)))
        assert await store.tokens() == [TOKEN._replace(digest=bytes(32))]
        assert [await store.remove_token(TOKEN.name) for _ in range(2)] == [True, False]
        assert await store.tokens() == []
        await store.ready()

    in_store(store_url, fill)
    in_store(store_url, after)


async def test_two_writers_share_a_postgres_database(postgres, campaign: Campaign) -> None:
    url = postgres.url("two_writers")
    stores = [open_store(url), open_store(url)]
    for store in stores:
        await store.open()
    await stores[0].add_campaign(campaign)
    same = [group(campaign, 200) for _ in range(10)]
    await asyncio.gather(*(store.commit([g]) for store in stores[:1] for g in same[:1]))

    async def writes(store: Store, groups: list[Group]) -> int:
        return sum([(await store.commit([g])).total() for g in groups])

    stored = await asyncio.gather(writes(stores[0], same), writes(stores[1], same[::-1]))
    assert sum(stored) == 1800
    tallies = await stores[1].tallies(campaign)
    assert tallies[same[0].form.id].reports == 2000
    assert await stores[0].recount(campaign) == tallies
    for store in stores:
        await store.close()


async def test_ids_that_come_again_now_and_then(store_url: str, campaign: Campaign) -> None:
    """Commits with and without such ids, in any order: each id is counted once, with the report that came first."""
    sent = [group(campaign, 40) for _ in range(12)]
    again = [group(campaign, 40, ids=g.ids[:320] + os.urandom(320)) for g in sent[:4]]
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        stored = [(await store.commit([g])).total() for g in (*sent[:6], again[0], *sent[6:], *again[1:])]
        assert stored == [40] * 6 + [20] + [40] * 6 + [20] * 3
        kept = {}
        for g in (*sent, *again):
            for i in range(40):
                kept.setdefault(g.id_of(i), g.words[8 * i : 8 * i + 8])
        stored_reports = [report async for page in store.reports(campaign) for report in page]
        assert {id.hex(): words for id, _, words in stored_reports} == kept
        assert len(stored_reports) == len(kept)
        assert await store.recount(campaign) == await store.tallies(campaign)


async def test_ids_chosen_badly_on_purpose(store_url: str, campaign: Campaign) -> None:
    """All of them neighbours, or equal in their first half, or all zeros: still exact."""
    near = [bytes(14) + i.to_bytes(2, "big") for i in range(600)] + [
        i.to_bytes(2, "little") + bytes(14) for i in range(600)
    ]
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        parts = [group(campaign, 30, ids=b"".join(near[i::40][:30])) for i in range(40)]
        kept = sum([(await store.commit([part])).total() for part in parts])
        assert kept == len({part.ids[i : i + 16] for part in parts for i in range(0, 480, 16)})
        everything = group(campaign, len(near), ids=b"".join(near))
        assert (await store.commit([everything])).total() == len(set(near)) - kept
        assert (await store.commit([everything])).total() == 0
        assert await store.recount(campaign) == await store.tallies(campaign)


def test_the_same_id_twice_in_one_commit(store_url: str, campaign: Campaign, cohorts: Campaign) -> None:
    """Under two forms of one campaign the first counts. In two campaigns it is two ids."""
    one, two = (cohorts.form_for(name) for name in ("columns", "arc"))
    ids = os.urandom(32)
    for first, second in ((one, two), (two, one)):
        groups = [Group(cohorts.id, form, ids, bytes(16)) for form in (first, second)]

        async def work(store: Store, groups: list[Group] = groups) -> None:
            await store.add_campaign(cohorts)
            await store.add_campaign(campaign)
            before = await store.tallies(cohorts)
            assert (await store.commit([*groups, group(campaign, 2, ids=groups[0].ids)])).total() == 4
            after = await store.tallies(cohorts)
            assert [after[g.form.id].reports - before[g.form.id].reports for g in groups] == [2, 0]
            assert await store.recount(cohorts) == after

        in_store(store_url, work)
        ids = os.urandom(32)


async def test_reports_are_read_in_the_order_of_their_ids(
    store_url: str, cohorts: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of arrival was, across plans and pages."""
    monkeypatch.setattr("priorveil.curator.store._PAGE_BYTES", 7 * ROW)
    groups = [group(cohorts, 10, name) for name in (*cohorts.cohorts, *cohorts.cohorts)]
    async with open_store(store_url) as store:
        await store.add_campaign(cohorts)
        for part in groups:
            await store.commit([part])
        pages = [page async for page in store.reports(cohorts)]
        ids = [report[0] for page in pages for report in page]
        assert ids == sorted(part.ids[i : i + 16] for part in groups for i in range(0, 160, 16))
        assert {len(page) for page in pages[:-1]} == {7}
        assert await store.recount(cohorts) == await store.tallies(cohorts)


async def test_a_page_of_large_reports_takes_no_more_memory(store_url: str) -> None:
    """An export keeps some pages for each reader that stalls."""
    plan = pv.design(pv.Prior.uniform(4000), 1.0, pv.Histogram(), method="unary")
    campaign = ask_with("Which of thousands?", plan)
    form, people = campaign.form_for(None), 2500
    ids = os.urandom(16 * people)
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        await store.commit([Group(campaign.id, form, ids, bytes(8 * form.width * people))])
        pages = [page async for page in store.reports(campaign)]
        assert sum(len(page) for page in pages) == people
        memory = [sum(sys.getsizeof(part) for row in page for part in (row, *row)) for page in pages]
        assert max(memory) <= 1 << 20


# -- SQLite's own --------------------------------------------------------------------------------------------


async def test_one_process_holds_the_file(tmp_path: Path, campaign: Campaign) -> None:
    async with open_store(str(tmp_path / "a.db")):
        with pytest.raises(Unavailable):
            await open_store(str(tmp_path / "a.db")).open()


@pytest.mark.parametrize("url", ["mysql://me:hunter2@host/db", "postgresql://me:hunter2@host:port/db"])
def test_an_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        asyncio.run(open_store(url).open())
    assert "hunter2" not in str(refused.value) and "me:***@host" in str(refused.value)


async def test_a_full_disk_loses_nothing_and_recovers(tmp_path: Path, campaign: Campaign) -> None:
    store = SqliteStore(tmp_path / "a.db")
    await store.open()
    await store.add_campaign(campaign)
    await store.commit([group(campaign, 10)])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    lost = group(campaign, 5000)
    with pytest.raises(StoreFull):
        await store.commit([lost])
    assert await store.recount(campaign) == await store.tallies(campaign)
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert (await store.commit([lost])).total() == 5000
    assert await store.recount(campaign) == await store.tallies(campaign)
    await store.close()


OPEN = """
import asyncio, sys
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import Unavailable
try:
    asyncio.run(SqliteStore(sys.argv[1]).open())
except Unavailable:
    sys.exit(7)
"""
LOOK = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM forms'); db.close()"


def run_elsewhere(code: str, path: Path) -> int:
    """Run code in another process; its exit status."""
    return subprocess.run([sys.executable, "-c", code, str(path)], timeout=PATIENCE).returncode


@pytest.mark.parametrize("kind", ["symlink", "hard link", "hard link elsewhere"])
def test_a_file_with_two_names_is_held_once(tmp_path: Path, campaign: Campaign, kind: str) -> None:
    """Two curators with a log each would overwrite each other's reports."""
    path, other = tmp_path / "a.db", tmp_path / "other.db"
    if kind == "hard link elsewhere":
        (tmp_path / "elsewhere").mkdir()
        other = tmp_path / "elsewhere" / "a.db"

    async def work() -> None:
        async with SqliteStore(path) as first:
            await first.add_campaign(campaign)
            other.symlink_to(path) if kind == "symlink" else other.hardlink_to(path)
            for name in (path, other):
                with pytest.raises(Unavailable):
                    await SqliteStore(name).open()
                assert run_elsewhere(OPEN, name) == 7
            assert run_elsewhere(LOOK, path) == 0, "it would remove the log if SQLite's own locks were gone"
            assert (await first.commit([group(campaign, 10)])).total() == 10

    async def again() -> None:
        async with SqliteStore(path) as store:
            assert (await store.tallies(campaign))[campaign.form_for(None).id].reports == 10

    asyncio.run(work())
    if kind != "symlink":  # after a crash, a curator under another name would not find the log
        for name in (path, other):
            with raises(InvalidInput, argument="store"):
                asyncio.run(SqliteStore(name).open())
        other.unlink()
    asyncio.run(again())


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_only_the_curators_user_can_read_the_files(tmp_path: Path, campaign: Campaign, umask: int) -> None:
    async def work(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.commit([group(campaign, 10)])
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert modes == dict.fromkeys(["a.db", "a.db-shm", "a.db-wal"], 0o600)

    before = os.umask(umask)
    try:
        in_store(str(tmp_path / "a.db"), work)
    finally:
        os.umask(before)


@pytest.mark.parametrize("harm", ["removed", "replaced", "log removed"])
async def test_nothing_is_acknowledged_into_a_file_that_is_gone(
    tmp_path: Path, campaign: Campaign, harm: str
) -> None:
    """SQLite itself would go on writing into it without a word."""
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    await store.open()
    await store.add_campaign(campaign)
    await store.ready()
    if harm == "replaced":
        path.with_name("other.db").write_bytes(path.read_bytes())
        path.with_name("other.db").rename(path)
    else:
        path.with_name("a.db-wal" if harm == "log removed" else "a.db").unlink()
    for again in (store.ready, lambda: store.add_token(TOKEN)):
        with pytest.raises(Unavailable):
            await again()
    if harm == "removed":
        with pytest.raises(Unavailable):
            await store.tokens()
        assert not path.exists()
    await store.close()


@pytest.mark.skipif(not os.access("/proc", os.W_OK), reason="only root gets as far as creating the file")
def test_a_folder_in_which_nothing_can_be_created_is_refused() -> None:
    async def nothing(store: Store) -> None:
        pass

    with raises(InvalidInput, argument="store") as refused:
        in_store("sqlite:////proc/x.db", nothing)
    assert ".lock" not in str(refused.value)


def test_a_backup_is_a_store_at_once(tmp_path: Path, campaign: Campaign) -> None:
    """SQLite writes it without a write-ahead log, which is made when the curator opens it."""

    async def run() -> int:
        async with SqliteStore(tmp_path / "reports.db") as store:
            await store.add_campaign(campaign)
        with closing(sqlite3.connect(tmp_path / "reports.db")) as file:
            file.execute("VACUUM INTO ?", [str(tmp_path / "backup.db")])
        async with SqliteStore(tmp_path / "backup.db") as store:
            return (await store.commit([group(campaign, 3)])).total()

    assert asyncio.run(run()) == 3
