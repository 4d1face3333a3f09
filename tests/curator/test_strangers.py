"""Strangers cannot stall the curator: what is done before a request is refused is counted, never timed."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from local_server import TOKEN, Place, place, report, responses_with, running, statuses
from patience import PATIENCE, until
from priorveil import Distribution, Histogram, Linear, Prior, design
from priorveil.curator import app, create_app, loaded_campaigns, responses, uploads
from priorveil.curator.body_memory import SMALL_BODY, BodyMemory
from priorveil.curator.loaded_campaigns import LoadedCampaigns
from priorveil.curator.messages import LARGEST_BATCH
from priorveil.curator.results import campaign_results
from priorveil.curator.service import Service
from priorveil.curator.settings import AttemptLimits, CampaignLimits, RequestLimits, Settings
from priorveil.curator.shared_runs import SharedRuns
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import FormTally, StoredCampaign, count_cells, open_store
from priorveil.curator.token_attempts import TokenAttempts
from priorveil.curator.tokens import Token
from priorveil.device.wire import JSON
from priorveil.frames import pyarrow
from priorveil.mechanisms import Orders
from priorveil.questions.campaign import Campaign, ask, ask_with
from refusals import raises
from submissions import submissions

# -- batches -------------------------------------------------------------------------------------------------


class CountingDecoder:
    """A decoder that counts its calls."""

    def __init__(self, decoder: Any) -> None:
        self.decoder, self.calls = decoder, 0

    def decode(self, body: bytes) -> Any:
        self.calls += 1
        return self.decoder.decode(body)


@pytest.mark.parametrize("piece", ["0", "{}", "[]", '"x"', '{"report_id":"x","form":"y","report":"0"}'])
def test_too_many_pieces_are_refused_before_they_are_decoded(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    """At most one piece more than a batch may have is looked at; the list of all pieces is never made."""
    one, many, undecoded = (
        CountingDecoder(each) for each in (uploads._one, uploads._many, uploads._undecoded)
    )
    monkeypatch.setattr(uploads, "_one", one)
    monkeypatch.setattr(uploads, "_many", many)
    monkeypatch.setattr(uploads, "_undecoded", undecoded)
    sizes = []
    check = uploads._check_batch
    monkeypatch.setattr(uploads, "_check_batch", lambda size: (sizes.append(size), check(size)))
    body = f'{{"reports":[{",".join([piece] * 3 * LARGEST_BATCH)}]}}'.encode()
    with raises(Exception, status_code=413):
        uploads.read_json(body, campaign.id, campaign.forms)
    assert many.calls == ("report_id" not in piece), "it stops at the first piece that is no report"
    assert one.calls == undecoded.calls == 0 and len(sizes) <= LARGEST_BATCH + 2


def test_a_full_batch_of_nonsense_is_still_listed(campaign: Campaign) -> None:
    body = f'{{"reports":[{",".join(["0"] * LARGEST_BATCH)}]}}'.encode()
    assert len(uploads.read_json(body, campaign.id, campaign.forms).refused) == LARGEST_BATCH


def batch(campaign: Campaign, count: int) -> bytes:
    return b'{"reports":[%s]}' % b",".join(report(campaign) for _ in range(count))


def reading_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which bodies are read, from now on."""
    names: list[str] = []
    read = uploads.read_json

    def noted(*arguments: Any) -> Any:
        names.append(threading.current_thread().name)
        return read(*arguments)

    monkeypatch.setitem(create_app.__globals__["_READERS"], JSON, noted)
    return names


async def test_large_bodies_are_decoded_outside_the_event_loop(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(SqliteStore(tmp_path / "a.db"), campaign) as http:
        names = reading_threads(monkeypatch)
        for body in (report(campaign), batch(campaign, 1000)):
            answer = await http.post(f"/v1/campaigns/{campaign.id}/reports", content=body, headers=KIND)
            assert answer.status_code == 200 and answer.json()["refused"] == []
        here = threading.current_thread().name
        assert names[0] == here and names[1].startswith("priorveil-decoder"), names


async def test_arrow_is_loaded_outside_the_event_loop(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def load() -> Any:
        threads.append(threading.current_thread())
        return pyarrow()

    monkeypatch.setattr(responses, "pyarrow", load)
    async with running(SqliteStore(tmp_path / "a.db"), campaign) as http:
        assert (await http.get(f"/v1/campaigns/{campaign.id}/reports")).status_code == 200
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


async def test_a_batch_that_is_decoded_while_the_campaign_closes_is_refused(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored after the campaign counts as closed."""
    async with running(SqliteStore(tmp_path / "a.db"), campaign) as http:
        service, read = service_of(http), uploads.read_json
        decoding, closed = threading.Event(), threading.Event()

        def slow(*arguments: Any) -> Any:
            upload = read(*arguments)
            decoding.set()
            assert closed.wait(PATIENCE)
            return upload

        monkeypatch.setitem(create_app.__globals__["_READERS"], JSON, slow)
        body, url = batch(campaign, 100), f"/v1/campaigns/{campaign.id}/reports"
        sent = asyncio.create_task(http.post(url, content=body, headers=KIND))
        await until(decoding.is_set, "the batch is decoded")
        live = await service.campaigns.find(campaign.id)
        assert live is not None
        await service.life.close(live)
        closed.set()
        receipt = (await sent).json()
        assert receipt["accepted"] == 0 and {each["reason"] for each in receipt["refused"]} == {"closed"}
        assert sum(tally.reports for tally in (await service.store.tallies(campaign)).values()) == 0


KIND = {"content-type": JSON}


def service_of(http: httpx.AsyncClient) -> Service:
    service: Service = http.app.service  # type: ignore[attr-defined]
    return service


# -- bodies --------------------------------------------------------------------------------------------------


def test_memory_for_large_bodies_is_limited_and_given_back() -> None:
    memory = BodyMemory(1000)
    with memory.share() as first, memory.share() as second:
        first(SMALL_BODY)
        assert memory.held == 0
        first(SMALL_BODY + 600)
        first(SMALL_BODY + 700)
        with pytest.raises(Exception, match="large bodies"):
            second(SMALL_BODY + 301)
        second(SMALL_BODY + 300)
        assert memory.held == 1000
    assert memory.held == 0


async def test_unfinished_bodies_are_limited_in_total_and_hold_up_no_single_report(
    tmp_path: Path, campaign: Campaign
) -> None:
    """250 bodies of which each has sent 200 kB, where there is room for ten."""
    size, limits = 200_000, RequestLimits(bodies=2_000_000)

    async def unfinished(there: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await there.connect()
        writer.write(there.request(b" " * size)[:-1])
        return reader, writer

    async with place(tmp_path, campaign, limits=limits) as there:
        memory = there.app.service.bodies
        lines = [await unfinished(there) for _ in range(50)]
        await until(lambda: responses_with(there.app, 429) >= 40, "bodies beyond the limit are refused")
        assert memory.held <= limits.bodies
        assert await there.send(there.request(report(campaign))) == [(b"200", b'{"accepted":1,"refused":[]}')]
        for _, writer in lines:
            writer.transport.abort()
        await until(lambda: memory.held == 0, "the memory is given back")


async def test_a_stranger_sends_no_more_than_one_report_takes(tmp_path: Path) -> None:
    """The longest report of a wide plan fits; what is longer is refused before any of it is read."""
    prior = Prior.zipf(40_000)
    wide, narrow = (design(prior, 2.0, Histogram(), method=method) for method in ("unary", "arc"))
    cohorts = ask_with("Which one?", {"wide": wide, "narrow": narrow})
    [sent] = submissions(cohorts, {"answer": [0]}, "wide", np.random.default_rng(1))
    longest = json.dumps({**sent, "code": "0" * 32}, indent=4)
    assert len(longest) > 2 * SMALL_BODY

    async def send(http: httpx.AsyncClient, body: str, **headers: str) -> httpx.Response:
        kind = {"content-type": JSON, "authorization": "", **headers}
        return await http.post(f"/v1/campaigns/{cohorts.id}/reports", content=body, headers=kind)

    async with running(open_store(str(tmp_path / "a.db")), cohorts) as http:
        assert (await send(http, longest)).json() == {"accepted": 1, "refused": []}
        refused = await send(http, longest + " " * SMALL_BODY)
        assert refused.status_code == 413 and "role collect" in refused.json()["detail"]
        token = http.headers["authorization"]
        known = await send(http, longest + " " * SMALL_BODY, authorization=token)
        assert known.json() == {"accepted": 1, "refused": []}


async def test_the_body_of_a_stranger_is_refused_by_its_length_alone(
    tmp_path: Path, campaign: Campaign
) -> None:
    async with place(tmp_path, campaign) as there:
        reader, writer = await there.connect()
        line = f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\n"
        writer.write(line.encode() + b"content-length: 5000\r\n\r\n")
        assert statuses(await asyncio.wait_for(reader.read(), PATIENCE)) == [413]
        writer.close()


async def test_a_refused_body_says_when_to_come_back(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign, limits=RequestLimits(bodies=1)) as there:
        reader, writer = await there.connect()
        writer.write(there.request(batch(campaign, 100)))
        received = (await asyncio.wait_for(reader.read(), PATIENCE)).lower()
        assert statuses(received.upper()) == [429] and b"retry-after: 1" in received
        writer.close()


# -- shared work ---------------------------------------------------------------------------------------------


async def test_whoever_waits_shares_the_next_run() -> None:
    runs, begun, release = SharedRuns(), 0, asyncio.Event()

    async def work() -> int:
        nonlocal begun
        begun += 1
        mine = begun
        await release.wait()
        return mine

    first = asyncio.create_task(runs.run("key", work))
    await asyncio.sleep(0)
    others = [asyncio.create_task(runs.run("key", work)) for _ in range(9)]
    await asyncio.sleep(0)
    release.set()
    assert await first == 1 and await asyncio.gather(*others) == [2] * 9
    assert not runs._runs, "nothing is kept when nobody waits"


async def test_a_run_that_fails_fails_for_all_and_one_that_is_cancelled_for_nobody_else() -> None:
    runs, begun, release = SharedRuns(), 0, asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        await release.wait()
        raise ZeroDivisionError

    tasks = [asyncio.create_task(runs.run("key", work)) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    release.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in outcomes] == [asyncio.CancelledError] + [ZeroDivisionError] * 4
    assert begun == 2


async def test_ten_dashboards_cost_one_estimate(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for the first; the next reports cost one more, for all."""
    calls = 0
    estimate = app.campaign_results

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return estimate(*arguments)

    async with running(SqliteStore(tmp_path / "a.db"), campaign) as http:
        monkeypatch.setattr(app, "campaign_results", counted)
        url = f"/v1/campaigns/{campaign.id}"
        for expected in (1, 2):
            await http.post(f"{url}/reports", content=report(campaign), headers=KIND)
            answers = await asyncio.gather(*(http.get(f"{url}/estimates") for _ in range(10)))
            assert {answer.json()["result"]["reports"] for answer in answers} == {
                expected
            } and calls == expected
        assert (await http.get(f"{url}/estimates?confidence=0.9")).json()["result"][
            "confidence"
        ] == 0.9 and calls == 3
        assert (await http.get(f"{url}/estimates")).json()["result"]["confidence"] == 0.95 and calls == 3


# -- reports that are counted slowly ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def orders() -> Campaign:
    """A campaign of arcs in many orders."""
    plan = design(Prior(np.arange(1, 41) / 820), 1.0, Distribution(), method="arc")
    assert isinstance(plan.mechanism, Orders)
    return ask_with("Which of forty?", plan, smallest_count=1)


def slow_batch(campaign: Campaign, count: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return submissions(campaign, {"answer": rng.integers(0, 40, count)}, rng=rng)


async def test_slow_counting_is_done_in_pieces_before_the_transaction(
    store_url: str, orders: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction counts only if some of the reports were stored before; the tally is right in any case."""
    form = orders.form_for(None)
    pieces: list[int] = []
    within: list[int] = []

    def counter(sizes: list[int]) -> Callable[..., Any]:
        def counted(form: Any, words: bytes) -> Any:
            sizes.append(len(words) // 8)
            return count_cells(form, words)

        return counted

    async with running(open_store(store_url), orders) as http:
        monkeypatch.setattr("priorveil.curator.service.count_cells", counter(pieces))
        for module in ("sqlite", "postgres"):
            monkeypatch.setattr(f"priorveil.curator.{module}.count_cells", counter(within))
        first, second = slow_batch(orders, 1000, 1), slow_batch(orders, 300, 2)
        url = f"/v1/campaigns/{orders.id}/reports"

        async def send(reports: list[dict[str, Any]]) -> None:
            assert (await http.post(url, json={"reports": reports})).json() == {
                "accepted": len(reports),
                "refused": [],
            }

        await asyncio.gather(send(first), http.post(url, json=second[0]))
        assert within == [] and sum(pieces) == 1001 and max(pieces) <= 256
        await send(first)
        assert sum(within) == 0, "nothing is new"
        await send(second + second[:5])
        assert sum(within) == 299
        stored = (await service_of(http).store.tallies(orders))[form.id]
        words = b"".join(bytes.fromhex(each["report"]) for each in first + second)
        assert stored == FormTally.of(form, count_cells(form, words))


# -- cold campaigns ------------------------------------------------------------------------------------------


def questions(count: int) -> list[Campaign]:
    return [ask(f"Question {i}?", Prior([0.5, 0.5])) for i in range(count)]


class SlowLoading(SqliteStore):
    """A store that counts loads and their seconds; loading the campaigns in `held` waits until they are released."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.loads: Counter[str] = Counter()
        self.seconds, self.lists = 0.0, 0
        self.held: set[str] = set()
        self.release = asyncio.Event()

    async def campaign(self, campaign: str) -> StoredCampaign | None:
        self.loads[campaign] += 1
        began = time.monotonic()
        if campaign in self.held:
            await self.release.wait()
        found = await super().campaign(campaign)
        self.seconds += time.monotonic() - began
        return found

    async def campaign_ids(self) -> list[tuple[str, str | None, str | None, str | None]]:
        self.lists += 1
        return await super().campaign_ids()


async def test_loading_a_campaign_holds_up_no_other(tmp_path: Path) -> None:
    first, second = questions(2)
    store = SlowLoading(tmp_path / "a.db")
    async with running(store, first, second) as http:
        store.held.add(first.id)
        waiting = [asyncio.create_task(http.get(f"/v1/campaigns/{first.id}/status")) for _ in range(5)]
        await until(lambda: store.loads[first.id], "the first is being loaded")
        async with asyncio.timeout(PATIENCE):
            assert (await http.get(f"/v1/campaigns/{second.id}/status")).status_code == 200
        store.release.set()
        assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}
        assert store.loads == {first.id: 1, second.id: 1}


async def test_campaigns_are_loaded_in_turn_with_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once, the next one when the rest of one of them is over; loading takes a quarter of the time at most."""
    campaigns = questions(4)
    store = SlowLoading(tmp_path / "a.db")
    async with running(store, *campaigns) as http:
        rests: list[Callable[[], None]] = []
        lengths: list[float] = []
        loop, release = asyncio.get_running_loop(), service_of(http).campaigns._loading.release
        later = loop.call_later

        def call_later(seconds: float, work: Any, *arguments: Any, **context: Any) -> Any:
            if work != release:
                return later(seconds, work, *arguments, **context)
            lengths.append(seconds)
            return rests.append(work)

        monkeypatch.setattr(loop, "call_later", call_later)
        asked = [asyncio.create_task(http.get(f"/v1/campaigns/{each.id}/status")) for each in campaigns]
        for loads in (2, 3, 4):
            await until(lambda: len(rests) == loads, "the next ones are loaded")  # noqa: B023
            assert store.loads.total() == loads
            rests[loads - 2]()
        assert {(await each).status_code for each in asked} == {200}
        assert (sum(lengths) + store.seconds) / 2 >= 4 * store.seconds  # two threads


async def test_unknown_ids_load_nothing_and_share_one_list(tmp_path: Path, campaign: Campaign) -> None:
    store = SlowLoading(tmp_path / "a.db")
    async with running(store, campaign) as http:
        before = store.lists
        urls = [f"/v1/campaigns/{i:064x}/status" for i in range(200)]
        answers = await asyncio.gather(*(http.get(url) for url in urls))
        assert {answer.status_code for answer in answers} == {404}
        assert not store.loads and store.lists - before < 20  # the refresher may make some of them


async def test_unknown_ids_wait_for_a_list_that_is_rare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has other things to do than to list its campaigns for each unknown id."""
    monkeypatch.setattr(loaded_campaigns, "_LIST_SECONDS", 1e6, raising=False)
    store = SlowLoading(tmp_path / "a.db")
    async with store:
        campaigns = loaded_campaigns.CampaignLoader(store, CampaignLimits(), 2)
        asked = [asyncio.create_task(campaigns.find(f"{i:064x}")) for i in range(20)]
        answered, waiting = await asyncio.wait(asked, timeout=0.5)
        assert not answered and not store.lists
        for task in waiting:
            task.cancel()


async def test_a_campaign_that_another_process_adds_is_found_at_once(tmp_path: Path) -> None:
    first, second = questions(2)
    store = SlowLoading(tmp_path / "a.db")
    async with running(store, first) as http:
        await store.add_campaign(second)
        assert (await http.get(f"/v1/campaigns/{second.id}/status")).status_code == 200


def stored(campaign: Campaign) -> StoredCampaign:
    return StoredCampaign(campaign, campaign.to_json().encode(), None)


def test_campaigns_in_memory_are_limited_in_number_and_bytes() -> None:
    campaigns = [stored(each) for each in questions(5)]
    size = max(each.memory for each in campaigns)
    for limits in (CampaignLimits(loaded=2), CampaignLimits(loaded_bytes=2 * size)):
        loaded = LoadedCampaigns(limits)
        for each in campaigns:
            loaded.add(each)
            loaded.find(campaigns[0].campaign.id)  # used all the time
        ids = [each.campaign.id for each in campaigns]
        assert list(loaded._recent) == [ids[4], ids[0]] and loaded.bytes <= 2 * size
    one = LoadedCampaigns(CampaignLimits(loaded_bytes=1))
    one.add(campaigns[0])
    assert one.find(campaigns[0].campaign.id) is campaigns[0]


def estimated(document: str) -> StoredCampaign:
    """A campaign that was loaded, with reports that were counted and estimated."""
    each = StoredCampaign(Campaign.from_json(document), document.encode(), None)
    rng, tallies = np.random.default_rng(18), {}
    for id, form in each.campaign.forms.items():
        [plan] = [part.plan for part in form.parts]
        reports = plan.privatize(np.arange(100) % len(plan.labels), rng, codes=True)
        tally = plan.tally(reports)
        tallies[id] = FormTally(100, (tally,))
    campaign_results(each.campaign, tallies, "auto", 0.95, "open")
    return each


@pytest.mark.parametrize(
    ("method", "query"),
    [("arc", Distribution()), ("arc", Histogram()), ("unary", Histogram()), ("subset", Distribution())],
)
def test_a_campaign_takes_no_more_than_is_counted_for_it(method: str, query: Linear) -> None:
    """Also after it was estimated. What is kept for the last few plans in all does not grow with the campaigns."""
    shares = 1 / np.arange(1, 61)
    plan = design(Prior(shares / shares.sum()), 1.0, query, method=method)
    documents = [ask_with(f"{i}?", plan, smallest_count=1).to_json() for i in range(10)]
    tracemalloc.start()
    try:
        for document in documents[:8]:
            estimated(document)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        later = [estimated(document) for document in documents[8:]]
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken < sum(each.memory for each in later)


def test_a_dropped_campaign_is_the_same_while_somebody_uses_it() -> None:
    """Otherwise closing it would not reach the request that uses it."""
    loaded = LoadedCampaigns(CampaignLimits(loaded=1))
    using, other = (stored(each) for each in questions(2))
    id = using.campaign.id
    loaded.add(using)
    loaded.add(other)
    assert list(loaded._recent) == [other.campaign.id]
    assert loaded.find(id) is using and loaded.bytes == using.memory
    loaded.add(other)
    del using
    gc.collect()
    assert loaded.find(id) is None


async def test_a_dropped_campaign_is_loaded_again(tmp_path: Path) -> None:
    campaigns = questions(3)
    store = SlowLoading(tmp_path / "a.db")
    app = create_app(store, Settings(campaigns=CampaignLimits(loaded=2)))
    async with app.lifespan():
        for each in campaigns:
            await store.add_campaign(each)
        for each in campaigns * 2:
            assert (await app.service.campaigns.find(each.id)) is not None
            gc.collect()
    assert set(store.loads.values()) == {2} and len(app.service.campaigns.loaded._recent) == 2


# -- wrong tokens --------------------------------------------------------------------------------------------

LIMITS = AttemptLimits(burst=3, rate=0.5)


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def tries(attempts: TokenAttempts, address: str, count: int) -> int:
    """How many of so many wrong tokens are looked at."""
    looked = 0
    for _ in range(count):
        if attempts.wait(address, "wrong") == 0:
            looked += 1
            attempts.add_wrong(address, "wrong")
    return looked


def test_wrong_tokens_of_an_address_are_looked_at_a_few_at_a_time() -> None:
    clock = Clock()
    attempts = TokenAttempts(LIMITS, clock)
    assert tries(attempts, "192.0.2.1", 100) == 3
    assert attempts.wait("192.0.2.1", "wrong") == 2.0
    clock.now += 4
    assert tries(attempts, "192.0.2.1", 100) == 2
    clock.now += 1e6
    assert tries(attempts, "192.0.2.1", 100) == 3


async def test_failures_of_one_address_make_no_other_wait(tmp_path: Path, campaign: Campaign) -> None:
    """Neither strangers do, nor the holder of a token that was revoked, who was always looked at before."""
    async with running(open_store(str(tmp_path / "a.db")), campaign) as http:
        app, service = http.app, service_of(http)  # type: ignore[attr-defined]

        async def ask(address: str, secret: str) -> httpx.Response:
            transport = httpx.ASGITransport(app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://curator") as client:
                headers = {"authorization": f"Bearer {secret}"}
                return await client.get("/v1/campaigns", headers=headers)

        for name in ("revoked", "other"):
            await service.store.add_token(Token.of(name, name, "admin"))
        await service.load_tokens()
        clock = Clock()
        service.attempts = TokenAttempts(AttemptLimits(burst=3, rate=0.5), clock)
        assert (await ask("192.0.2.1", "revoked")).status_code == 200
        assert (await ask("192.0.2.1", TOKEN)).status_code == 200
        await service.store.remove_token("revoked")
        await service.load_tokens()
        codes = Counter([(await ask("192.0.2.1", "revoked")).status_code for _ in range(50)])
        assert codes == {401: 3, 429: 47}
        for i in range(2, 52):
            assert (await ask(f"192.0.2.{i}", "wrong")).status_code == 401
        assert (await ask("192.0.2.99", "other")).status_code == 200, "an address that is new"
        assert (await ask("192.0.2.1", TOKEN)).status_code == 200, "a token that was right there before"
        refused = await ask("192.0.2.1", "other")
        assert refused.status_code == 429 and refused.headers["retry-after"] == "2"
        clock.now += 2
        assert (await ask("192.0.2.1", "other")).status_code == 200


def test_many_tokens_that_were_right_make_nobody_wait_longer_than_the_burst() -> None:
    attempts = TokenAttempts(LIMITS, Clock())
    for i in range(50):
        attempts.add_right("192.0.2.1", f"revoked {i}")
    for i in range(50):
        assert attempts.wait("192.0.2.1", f"revoked {i}") == 0
        attempts.add_wrong("192.0.2.1", f"revoked {i}")
    assert attempts.wait("192.0.2.1", "revoked 0") == 2.0


def test_addresses_are_hashed_and_forgotten() -> None:
    attempts, others = TokenAttempts(), TokenAttempts()
    for each in (attempts, others):
        each.add_wrong("192.0.2.1", "other secret")
        each.add_right("192.0.2.1", "secret")
    assert "192.0.2" not in repr(vars(attempts)) and "secret" not in repr(vars(attempts))
    assert not set(attempts._wrong._addresses) & set(others._wrong._addresses), (
        "each process has its own salt"
    )
    for i in range(20_000):
        attempts.add_wrong(str(i), "wrong")
    assert len(attempts._wrong._addresses) == 10_000


async def test_wrong_tokens_are_slowed_down(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the token is not compared with those of the store."""
    async with running(SqliteStore(tmp_path / "a.db"), campaign) as http:
        service, clock, compared = service_of(http), Clock(), 0
        service.attempts = TokenAttempts(LIMITS, clock)
        find_token = service.find_token

        def counted(token: str) -> Any:
            nonlocal compared
            compared += 1
            return find_token(token)

        monkeypatch.setattr(service, "find_token", counted)
        assert (await http.get("/v1/campaigns")).status_code == 200
        wrong = {"authorization": "Bearer wrong"}
        answers = [await http.get("/v1/campaigns", headers=wrong) for _ in range(20)]
        assert Counter(each.status_code for each in answers) == {401: 3, 429: 17} and compared == 4
        assert answers[-1].headers["retry-after"] == "2"
        assert (await http.get("/v1/campaigns")).status_code == 200, "the right one goes on"
        elsewhere = {**wrong, "x-real-ip": "192.0.2.9"}
        assert (await http.get("/v1/campaigns", headers=elsewhere)).status_code == 401
        clock.now += 2
        assert (await http.get("/v1/campaigns", headers=wrong)).status_code == 401
        none = [await http.get("/v1/campaigns", headers={"authorization": ""}) for _ in range(20)]
        assert {each.status_code for each in none} == {401}, "without a token nothing is tried"


async def test_only_a_proxy_on_this_machine_names_the_address(tmp_path: Path, campaign: Campaign) -> None:
    app = create_app(SqliteStore(tmp_path / "a.db"), Settings(attempts=LIMITS))
    async with app.lifespan():
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://curator") as http:
            codes = []
            for i in range(20):
                headers = {"authorization": "Bearer wrong", "x-real-ip": f"198.51.100.{i}"}
                codes.append((await http.get("/v1/campaigns", headers=headers)).status_code)
    assert Counter(codes) == {401: 3, 429: 17}
