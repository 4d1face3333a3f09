"""Every kind of upload, sent to curators that crash; after each crash, what they acknowledged must be there.

A few crashes are in the tests, many in `benchmarks/crashes.py`.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import numpy as np

from local_server import HEADER, Server, served
from patience import PATIENCE, wait_until
from postgres_server import PostgresServer
from power_loss import UnsafeDisk
from priorveil.curator.admission import NO_INVITATION, code_digest
from priorveil.curator.store import open_store
from priorveil.device.wire import words_to_hex
from priorveil.questions.campaign import Campaign
from sample_surveys import health, people
from submissions import submission

KINDS = ("single", "batch", "invited", "withdrawal")
_CODES = 20  # invitations that are made at once
_OTHERS = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
AND state <> 'idle' AND pid <> pg_backend_pid()"""


@cache
def campaigns() -> tuple[Campaign, Campaign]:
    """One for everybody, and one that needs invitations. A submission has two reports."""
    return health(), health(admission="invitation")


@cache
def _answers() -> list[str]:
    """The words of some submissions: both campaigns have the same form."""
    campaign, _ = campaigns()
    form, rng = campaign.form_for(None), np.random.default_rng(1)
    rows = [campaign.attribute_values(answers) for answers in people(200, rng)]
    columns = {name: [row[name] for row in rows] for name in form.attributes}
    return [words_to_hex(row) for row in form.privatize(columns, rng=rng)]


@dataclass
class Known:
    """What the senders know. What they attempt is noted before a request, what was acknowledged after it."""

    attempted: set[str] = field(default_factory=set)  # ids of reports
    acknowledged: set[str] = field(default_factory=set)
    withdrawing: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    codes: dict[str, set[str]] = field(default_factory=dict)  # each with the ids that were sent with it
    surprises: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)  # acknowledged requests, by kind
    answers: Counter[int | str] = field(default_factory=Counter)


class Load:
    """Threads that send single reports, batches, reports with invitations, and withdrawals, until acknowledged."""

    def __init__(self, servers: list[Server], threads: int = 4) -> None:
        self.servers, self.known = servers, Known()
        self.open, self.invited = campaigns()
        self.stop = threading.Event()
        self.permits = threading.Semaphore(threads)  # one is needed for each request
        self._threads = [
            threading.Thread(target=_Sender(self, random.Random(seed)).run) for seed in range(threads)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def wait(self) -> None:
        """Until some more requests of each kind are acknowledged: a crash should hit a curator that is at work."""
        before, known = self.known.done.copy(), self.known

        def went_on() -> bool:
            return bool(known.surprises) or all(known.done[kind] > before[kind] for kind in KINDS)

        wait_until(went_on, "requests of each kind are acknowledged")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without a request under way."""
        for _ in self._threads:
            assert self.permits.acquire(timeout=PATIENCE), f"a request has no answer: {self.known.answers}"
        try:
            yield
        finally:
            self.permits.release(len(self._threads))


class _Sender:
    """A thread of senders. A request is repeated until it is acknowledged or the load ends."""

    def __init__(self, load: Load, chance: random.Random) -> None:
        self.load, self.chance, self.known = load, chance, load.known
        self.http = httpx.Client(timeout=PATIENCE, verify=False)

    def run(self) -> None:
        codes = list[str]()
        try:
            while not self.over:
                codes = codes or self._make_codes()
                size = self.chance.choice([0, 1, 5, 40])
                if size:
                    self._send_open(size)
                elif codes:
                    self._send_invited(codes.pop())
        except BaseException as error:
            self.known.surprises.append(repr(error))
            raise
        finally:
            self.http.close()

    @property
    def over(self) -> bool:
        return self.load.stop.is_set()

    def _post(self, campaign: Campaign, rest: str, **body: Any) -> Any:
        """The content of the response to one request, None if it was not acknowledged."""
        url = (
            f"http://127.0.0.1:{self.chance.choice(self.load.servers).port}/v1/campaigns/{campaign.id}/{rest}"
        )
        needs_token = rest == "invitations" or "reports" in body
        with self.load.permits:
            if self.over:
                return None
            try:
                response = self.http.post(url, json=body, headers=HEADER if needs_token else {})
                answer: int | str = response.status_code
            except httpx.TransportError as error:
                answer = type(error).__name__
        self.known.answers[answer] += 1
        if answer in (200, 201):
            return response.json()
        time.sleep(0.02)
        return None

    def _report(self, campaign: Campaign) -> dict[str, Any]:
        return submission(campaign, self.chance.choice(_answers()))

    def _make_codes(self) -> list[str]:
        made = self._post(self.load.invited, "invitations", count=_CODES)
        codes: list[str] = made["codes"] if made else []
        self.known.codes |= {code: set() for code in codes}
        return codes

    def _send_open(self, count: int) -> None:
        reports = [self._report(self.load.open) for _ in range(count)]
        ids = [report["report_id"] for report in reports]
        self.known.attempted.update(ids)
        body = reports[0] if count == 1 else {"reports": reports}
        lost = self.chance.random() < 0.2  # as if the first response had been lost
        while not self.over:
            receipt = self._post(self.load.open, "reports", **body)
            if receipt is None or lost:
                lost = lost and receipt is None
                continue
            self._expect(receipt, {"accepted": count, "refused": []})
            self.known.acknowledged.update(ids)
            self.known.done["single" if count == 1 else "batch"] += 1
            if self.chance.random() < 0.3:
                self._withdraw(self.load.open, ids[0])
            return

    def _send_invited(self, code: str) -> None:
        """Send one of two reports with the same code, after a failure perhaps the other one: only one can be taken."""
        one, other = self._report(self.load.invited), self._report(self.load.invited)
        refused = set[str]()
        while not self.over:
            id = one["report_id"]
            self.known.attempted.add(id)
            self.known.codes[code].add(id)
            receipt = self._post(self.load.invited, "reports", code=code, **one)
            if receipt is None:
                if self.chance.random() < 0.5:
                    one, other = other, one
                continue
            if receipt["accepted"]:
                self.known.acknowledged.add(id)
                self.known.done["invited"] += 1
                break
            self._expect([refusal["reason"] for refusal in receipt["refused"]], [NO_INVITATION])
            refused.add(id)
            one, other = other, one
            if one["report_id"] in refused:
                self.known.surprises.append("a code was used up, but no report was stored")
                return
        if self.over:
            return
        if self.chance.random() < 0.5:
            again = self._post(self.load.invited, "reports", code=code, **self._report(self.load.invited))
            if again is not None:
                self._expect(again["accepted"], 0)
        if self.chance.random() < 0.3:
            self._withdraw(self.load.invited, id)

    def _withdraw(self, campaign: Campaign, id: str) -> None:
        self.known.withdrawing.add(id)
        while not self.over:
            if self._post(campaign, "withdrawals", report_ids=[id]) is not None:
                self.known.withdrawn.add(id)
                self.known.done["withdrawal"] += 1
                return

    def _expect(self, found: object, expected: object) -> None:
        if found != expected:
            self.known.surprises.append(f"{found} instead of {expected}")


def check(url: str, load: Load) -> None:
    """The store holds what was acknowledged, once, and nothing else. No sender and no SQLite curator may run."""
    asyncio.run(_check(url, load))


async def _check(url: str, load: Load) -> None:
    known, stored = load.known, list[str]()
    if url.startswith("postgresql"):
        await _wait_for_transactions(url)
    async with open_store(url) as store:
        for campaign in (load.open, load.invited):
            ids = [id.hex() async for page in store.reports(campaign) for id, *_ in page]
            tallies = await store.tallies(campaign)
            assert sum(tally.reports for tally in tallies.values()) == len(ids), "tallies"
            assert await store.recount(campaign) == tallies, "a recount"
            stored += ids
        free = {bytes(row[0]) for row in await store._fetch("SELECT digest FROM invitations")}
    assert not known.surprises, known.surprises
    held = set(stored)
    assert len(held) == len(stored), "every report is there once"
    assert known.acknowledged - known.withdrawing <= held, "nothing acknowledged is lost"
    assert held <= known.attempted, "nothing else is there"
    assert not held & known.withdrawn, "what was removed is gone"
    taken = held | known.acknowledged
    for code, ids in dict(known.codes).items():
        used = ids & taken
        assert len(used) <= 1, "no code is used twice"
        assert (code_digest(code) in free) == (not used), "a code is used up with its report"


async def _wait_for_transactions(url: str) -> None:
    """The database may still be committing for a process that was killed."""
    db = await asyncpg.connect(url)
    async with asyncio.timeout(PATIENCE):
        while await db.fetchval(_OTHERS):
            await asyncio.sleep(0.02)
    await db.close()


# -- runs: a curator under load, crashes, and the check after each of them --------------------------------


def kill_curators(url: str, folder: Path, kills: int, curators: int = 1) -> Known:
    """Kill curators on one store in turn, with SIGKILL."""
    with running_load(url, folder, curators) as load:
        for number in range(kills):
            server = load.servers[number % curators]
            load.wait()
            time.sleep(random.Random(number).uniform(0.0, 0.5))
            server.kill()
            with load.paused():
                check(url, load)
                server.start()
    return load.known


def end_database(url: str, folder: Path, ends: int, database: PostgresServer) -> Known:
    """End PostgreSQL without warning, and start it again; the curator reconnects by itself."""
    with running_load(url, folder) as load:
        for _ in range(ends):
            load.wait()
            database.restart()
            load.wait()
            with load.paused():
                check(url, load)
    return load.known


def cut_power(
    url: str, folder: Path, cuts: int, disk: UnsafeDisk, database: PostgresServer | None = None
) -> Known:
    """Cut the power of the machine that has the store, and on which PostgreSQL or the curator runs."""
    with running_load(url, folder) as load:
        [server] = load.servers
        machine = database or server
        if database is not None:
            disk.sync()  # its files were made without waiting for the disk
        for number in range(cuts):
            load.wait()
            time.sleep(random.Random(number).uniform(0.0, 0.5))
            machine.halt()  # nothing leaves it from now on; a sync may succeed although the journal was just stopped
            disk.cut_power()
            machine.kill()
            disk.restart()
            if database is not None:
                database.start()
            with load.paused():
                check(url, load)
                if database is None:
                    server.start()
    return load.known


@contextmanager
def running_load(url: str, folder: Path, curators: int = 1) -> Iterator[Load]:
    """Curators under load. In the end all uploads work again, and the store is checked."""
    with served(url, folder, *campaigns(), count=curators) as servers:
        with Load(servers) as load:
            yield load
            load.wait()
        for server in servers:
            server.stop()
        check(url, load)
