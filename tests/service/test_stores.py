"""What a store promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import words_per_report
from priorveil.curator import seen
from priorveil.curator.keys import in_order
from priorveil.curator.sqlite import MIGRATIONS, SqliteStore
from priorveil.curator.store import Group, SchemaTooNew, Store, StoreFull, Unavailable, open_store, recounted
from priorveil.errors import InvalidInput

RNG = np.random.default_rng(7)


def group(campaign: Campaign, count: int, cohort: str | None = None, ids: bytes | None = None) -> Group:
    """Reports of random people."""
    plan = campaign.plan_for(cohort)
    reports = plan.mechanism.sample(RNG.integers(0, 4, count), _source())
    words = reports.astype("<u8").tobytes()
    assert len(words) == 8 * words_per_report(plan.mechanism) * count
    return Group(campaign.id, plan.id, plan.mechanism, os.urandom(16 * count) if ids is None else ids, words)


def _source():
    from priorveil.mechanisms.randomness import as_source

    return as_source(RNG)


def on(url: str, work: Callable[[Store], Awaitable[None]]) -> None:
    """Open a store, do something, close it."""

    async def run() -> None:
        store = open_store(url)
        await store.open()
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(run())


def test_every_mechanism_is_counted_and_recounted(store_url: str, cohorts: Campaign) -> None:
    groups = [group(cohorts, 50 + 10 * i, name) for i, name in enumerate(cohorts.cohorts)]

    async def work(store: Store) -> None:
        assert await store.add_campaign(cohorts)
        assert not await store.add_campaign(cohorts)
        assert await store.commit(groups) == sum(len(g.ids) for g in groups) // 16
        tallies = await store.tallies(cohorts)
        for g in groups:
            reports = np.frombuffer(g.words, "<u8").astype(np.uint64)
            expected = cohorts.plans[g.plan].tally(
                reports.reshape(-1, 1) if g.mechanism.kind == "unary" else reports.astype(np.int64)
            )
            assert tallies[g.plan] == expected
        assert await recounted(store, cohorts) == tallies

    on(store_url, work)


def test_an_id_counts_once_for_ever(store_url: str, campaign: Campaign, cohorts: Campaign) -> None:
    first, other = group(campaign, 100), group(cohorts, 100, "columns")

    async def fill(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.add_campaign(cohorts)
        assert await store.commit([first]) == 100
        assert await store.commit([first]) == 0
        overlapping = group(campaign, 100, ids=first.ids[800:] + os.urandom(800))
        assert await store.commit([overlapping]) == 50
        twice = os.urandom(16)
        assert await store.commit([group(campaign, 3, ids=twice * 3)]) == 1
        same = Group(other.campaign, other.plan, other.mechanism, first.ids, other.words)
        assert await store.commit([same]) == 100, "another campaign may use the same ids"
        assert await store.commit([group(cohorts, 100, "arc", ids=first.ids)]) == 0, (
            "but not another cohort of it"
        )

    async def after(store: Store) -> None:
        assert await store.commit([first]) == 0
        assert (await store.tallies(campaign))[first.plan].reports == 151
        assert await recounted(store, campaign) == await store.tallies(campaign)
        assert await recounted(store, cohorts) == await store.tallies(cohorts)

    on(store_url, fill)
    on(store_url, after)


def test_tallies_can_be_made_again(store_url: str, campaign: Campaign) -> None:
    async def work(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.commit([group(campaign, 10)])
        right = await store.tallies(campaign)
        wrong = {plan: tally + tally for plan, tally in right.items()}
        await store.replace_tallies(campaign, wrong)
        assert await store.tallies(campaign) == wrong
        await store.replace_tallies(campaign, await recounted(store, campaign))
        assert await store.tallies(campaign) == right
        await store.commit([group(campaign, 5)])
        assert await recounted(store, campaign) == await store.tallies(campaign)

    on(store_url, work)


def test_closing_refusals_and_tokens_stay(store_url: str, campaign: Campaign) -> None:
    async def fill(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.close_campaign(campaign.id, "2026-01-01T00:00:00Z")
        await store.close_campaign(campaign.id, "2027-01-01T00:00:00Z")
        await store.refuse({(campaign.id, "closed"): 2, (campaign.id, "malformed"): 1})
        await store.refuse({(campaign.id, "closed"): 3})
        await store.add_token(b"x" * 32)
        await store.add_token(b"x" * 32)

    async def after(store: Store) -> None:
        assert await store.campaign_ids() == [(campaign.id, "2026-01-01T00:00:00Z")]
        stored = await store.campaign(campaign.id)
        assert stored is not None and stored.campaign.id == campaign.id
        assert await store.campaign("0" * 64) is None
        assert await store.refusals(campaign.id) == {"closed": 5, "malformed": 1}
        assert await store.token_digests() == [b"x" * 32]
        await store.ready()

    on(store_url, fill)
    on(store_url, after)


def test_two_writers_share_a_postgres_database(postgres, campaign: Campaign) -> None:
    url = postgres.url("two_writers")

    async def run() -> None:
        stores = [open_store(url), open_store(url)]
        for store in stores:
            await store.open()
        await stores[0].add_campaign(campaign)
        same = [group(campaign, 200) for _ in range(10)]
        await asyncio.gather(*(store.commit([g]) for store in stores[:1] for g in same[:1]))

        async def writes(store: Store, groups: list[Group]) -> int:
            return sum([await store.commit([g]) for g in groups])

        stored = await asyncio.gather(writes(stores[0], same), writes(stores[1], same[::-1]))
        assert sum(stored) == 1800
        tallies = await stores[1].tallies(campaign)
        assert tallies[same[0].plan].reports == 2000
        assert await recounted(stores[0], campaign) == tallies
        assert [store._session.shard for store in stores] == [0, 1]  # type: ignore[attr-defined]
        for store in stores:
            await store.close()

    asyncio.run(run())


def test_ids_that_come_again_now_and_then(store_url: str, campaign: Campaign) -> None:
    """Commits with and without such ids, in any order: each id is counted once, with the report that came first."""
    sent = [group(campaign, 40) for _ in range(12)]
    again = [group(campaign, 40, ids=g.ids[:320] + os.urandom(320)) for g in sent[:4]]

    async def work(store: Store) -> None:
        await store.add_campaign(campaign)
        stored = [await store.commit([g]) for g in (*sent[:6], again[0], *sent[6:], *again[1:])]
        assert stored == [40] * 6 + [20] + [40] * 6 + [20] * 3
        kept = {}
        for g in (*sent, *again):
            for i in range(40):
                kept.setdefault(g.id_of(i), g.words[8 * i : 8 * i + 8])
        chunks = [chunk async for chunk in store.reports(campaign)]
        ids, words = b"".join(c.ids for c in chunks), b"".join(c.words for c in chunks)
        there = {ids[16 * i : 16 * i + 16].hex(): words[8 * i : 8 * i + 8] for i in range(len(ids) // 16)}
        assert there == kept
        assert await recounted(store, campaign) == await store.tallies(campaign)

    on(store_url, work)


def test_postgres_copies_again_after_a_while(
    postgres, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    from priorveil.curator import sessions as own

    monkeypatch.setattr(own, "_CAREFUL", 2)
    first = group(campaign, 5)

    async def work(store: Store) -> None:
        await store.add_campaign(campaign)
        careful = []
        for g in (first, first, group(campaign, 5), group(campaign, 5), first):
            await store.commit([g])
            careful.append(store._session.careful)  # type: ignore[attr-defined]
        assert careful == [0, 2, 1, 0, 2]

    on(postgres.url("copies_again"), work)


# -- SQLite's own --------------------------------------------------------------------------------------------


def test_one_process_holds_the_file(tmp_path: Path, campaign: Campaign) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(Unavailable, match="in use"):
            await open_store(str(tmp_path / "a.db")).open()

    on(str(tmp_path / "a.db"), work)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(SchemaTooNew):
        asyncio.run(open_store(str(tmp_path / "a.db")).open())


def test_unknown_addresses_are_refused() -> None:
    with pytest.raises(InvalidInput, match="postgresql://"):
        open_store("mysql://somewhere/db")


@pytest.mark.parametrize("url", ["mysql://me:hunter2@host/db", "postgresql://me:hunter2@host:port/db"])
def test_an_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        asyncio.run(open_store(url).open())
    assert "hunter2" not in str(refused.value) and "me:***@host" in str(refused.value)


def test_a_full_disk_loses_nothing_and_recovers(tmp_path: Path, campaign: Campaign) -> None:
    store = SqliteStore(tmp_path / "a.db")

    async def run() -> None:
        await store.open()
        await store.add_campaign(campaign)
        await store.commit([group(campaign, 10)])
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
        lost = group(campaign, 5000)
        with pytest.raises(StoreFull):
            await store.commit([lost])
        assert await recounted(store, campaign) == await store.tallies(campaign)
        store._db.execute("PRAGMA max_page_count = 1000000")
        assert await store.commit([lost]) == 5000
        assert await recounted(store, campaign) == await store.tallies(campaign)
        await store.close()

    asyncio.run(run())


def test_ids_in_many_runs_are_found(tmp_path: Path, campaign: Campaign) -> None:
    """Small runs, many merges, a restart in between; then without runs, and beside a foreign one."""
    groups = [group(campaign, 100) for _ in range(60)]

    async def fill(flush: int, expected: int, part: list[Group]) -> SqliteStore:
        store = SqliteStore(tmp_path / "a.db", flush)
        await store.open()
        await store.add_campaign(campaign)
        assert sum([await store.commit([g]) for g in part]) == expected
        assert sum([await store.commit([g]) for g in part]) == 0
        await store.close()
        return store

    asyncio.run(fill(100, 3000, groups[:30]))
    store = asyncio.run(fill(100, 3000, groups))
    assert 1 < store._seen.runs < 20, "runs are merged"
    folder = tmp_path / "a.db.ids"
    for path in folder.iterdir():
        path.unlink()
    (folder / "1-5-0123456789abcdef.ids").write_bytes(bytes(1600))
    (folder / "nonsense.ids").write_bytes(b"abc")
    asyncio.run(fill(1000, 0, groups))
    assert not (folder / "1-5-0123456789abcdef.ids").exists()


def test_ids_that_agree_in_their_first_half(tmp_path: Path) -> None:
    """Somebody may choose ids badly on purpose: still exact."""
    keys = np.stack([np.repeat(np.uint64(5), 300), np.arange(300, dtype=np.uint64)], axis=1)
    found = seen.Seen(tmp_path / "ids", 50)
    found.open(lambda number: None, lambda number: [])
    for number, part in enumerate(np.split(keys, 10), start=1):
        pending: set[bytes] = set()
        assert found.fresh(part, pending).all()
        found.add(pending, [seen.Entry(number, part)])
    assert not found.fresh(keys, set()).any()
    assert found.fresh(keys + np.uint64(1000), set()).all()
    found.close()


@pytest.mark.parametrize("block", [1, 7, 1 << 15])
def test_merged_runs_hold_every_key_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Runs of uneven sizes, with keys that agree in their first half across and within runs."""
    monkeypatch.setattr(seen, "BLOCK", block)
    runs, every = [], []
    for number, size in enumerate((1, 60, 200, 7), start=1):
        keys = RNG.integers(0, 40, (size, 2), dtype=np.uint64)
        every.append(keys)
        runs.append(seen._write(tmp_path, number, number, "0" * 16, in_order(keys)))
    merged = seen._merged(tmp_path, tuple(runs), Event())
    whole = np.concatenate(every)
    assert np.array_equal(merged.keys.T, whole[np.lexsort((whole[:, 1], whole[:, 0]))])
    assert (merged.first, merged.last) == (1, 4) and merged.holds(whole).all()
    closing = Event()
    closing.set()
    with pytest.raises(OSError):
        seen._merged(tmp_path, tuple(runs), closing)
    assert not list(tmp_path.glob("*.part"))


def test_a_full_disk_keeps_ids_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    found = seen.Seen(tmp_path / "ids", 10)
    found.open(lambda number: None, lambda number: [])
    keys = np.arange(40, dtype=np.uint64).reshape(-1, 2)
    with monkeypatch.context() as broken:
        broken.setattr(seen, "_write", full)
        pending: set[bytes] = set()
        found.fresh(keys, pending)
        found.add(pending, [seen.Entry(1, keys)])
        assert found.runs == 0 and not found.fresh(keys, set()).any()
    pending = set()
    more = keys + np.uint64(100)
    found.fresh(more, pending)
    found.add(pending, [seen.Entry(2, more)])
    assert found.runs == 1 and not found.fresh(np.concatenate([keys, more]), set()).any()
    found.close()


def test_ids_that_agree_in_their_first_half_are_told_apart(tmp_path: Path) -> None:
    """Somebody may choose them so: every one is found, and no other, also beside ordinary ones."""
    rng = np.random.default_rng(3)
    chosen = np.column_stack([np.repeat([5, 9], 3000), rng.integers(0, 1 << 63, 6000)]).astype(np.uint64)
    others = rng.integers(0, 1 << 63, (500, 2)).astype(np.uint64)
    there = np.unique(np.concatenate([chosen, others]), axis=0)
    run = seen.Run(tmp_path / "none", 1, 1, "", in_order(there))
    assert run.holds(rng.permutation(there)).all()
    absent = there + np.array([0, 1], dtype=np.uint64)
    known = {tuple(key) for key in there.tolist()}
    assert run.holds(absent).tolist() == [tuple(key) in known for key in absent.tolist()]
    edges = np.array([[5, 0], [9, 2**64 - 1], [0, 0], [2**64 - 1, 2**64 - 1]], dtype=np.uint64)
    assert run.holds(edges).tolist() == [tuple(key) in known for key in edges.tolist()]


def test_a_file_with_two_names_is_one_store(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")

    async def work() -> None:
        first, second = SqliteStore(tmp_path / "a.db"), SqliteStore(tmp_path / "link.db")
        await first.open()
        with pytest.raises(Unavailable, match="in use by another process"):
            await second.open()
        await first.close()

    asyncio.run(work())


@pytest.mark.parametrize("harm", ["removed", "replaced", "log removed", "lock removed"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(
    tmp_path: Path, campaign: Campaign, harm: str
) -> None:
    """SQLite itself would go on writing into it without a word."""
    path = tmp_path / "a.db"

    async def work() -> None:
        store = SqliteStore(path)
        await store.open()
        await store.add_campaign(campaign)
        await store.ready()
        if harm == "replaced":
            path.with_name("other.db").write_bytes(path.read_bytes())
            path.with_name("other.db").rename(path)
        else:
            path.with_name(
                {"log removed": "a.db-wal", "lock removed": "a.db.lock"}.get(harm, "a.db")
            ).unlink()
        for again in (store.ready, lambda: store.add_token(b"x" * 32)):
            with pytest.raises(Unavailable, match="removed or replaced"):
                await again()
        if harm == "removed":
            with pytest.raises(Unavailable):
                await store.token_digests()
            assert not path.exists()
        await store.close()

    asyncio.run(work())
