"""kill -9 under load, on both stores; responses lost; the database restarted. Nothing acknowledged is lost or
doubled.

A handful of kills here; `PRIORVEIL_KILLS=50` for dozens.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import pytest

from curator.test_api import own_cells
from local_server import HEADER, served
from patience import PATIENCE, wait_until
from postgres_server import PostgresServer
from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import fresh_id
from priorveil.curator.store import Store, open_store

KILLS = int(os.environ.get("PRIORVEIL_KILLS", "3"))
OUTPUTS = 1 << max(15, 10 + KILLS.bit_length() + 1)  # cells: more than are sent between the kills


@pytest.fixture(scope="module")
def cells() -> Campaign:
    """A cell for every report that these tests will ever send."""
    return own_cells(OUTPUTS)


class Senders:
    """Threads that send reports, each for a cell of its own, again until they are acknowledged."""

    def __init__(self, campaign: Campaign, ports: list[int], threads: int = 3) -> None:
        self.campaign, self.ports = campaign, ports
        self.plan = campaign.plan_for(None).id
        self.acknowledged: set[int] = set()
        self.attempted: set[int] = set()
        self.statuses: Counter[int | str] = Counter()
        self._next = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(i,)) for i in range(threads)]

    def __enter__(self) -> Senders:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _send(self, number: int) -> None:
        chance = random.Random(number)
        with httpx.Client(timeout=PATIENCE, verify=False, headers=HEADER) as http:
            while not self._stop.is_set() and self._next < OUTPUTS - 100:
                values = self._taken(chance.choice([1, 1, 5, 40]))
                batch = {
                    "reports": [{"report_id": fresh_id(), "plan": self.plan, "report": v} for v in values]
                }
                while not self._stop.is_set() and not self._acknowledged(http, chance, batch):
                    time.sleep(0.02)

    def _taken(self, count: int) -> range:
        with self._lock:
            start, self._next = self._next, self._next + count
            return range(start, start + count)

    def _acknowledged(
        self, http: httpx.Client, chance: random.Random, batch: dict[str, list[dict[str, object]]]
    ) -> bool:
        values = [int(str(r["report"])) for r in batch["reports"]]
        self.attempted.update(values)
        try:
            url = f"http://127.0.0.1:{chance.choice(self.ports)}/v1/campaigns/{self.campaign.id}/reports"
            answer = http.post(url, json=batch)
            if (
                answer.status_code == 200 and chance.random() < 0.2
            ):  # as if the response had been lost: once more
                answer = http.post(url, json=batch)
        except httpx.TransportError as error:
            self.statuses[type(error).__name__] += 1
            return False
        self.statuses[answer.status_code] += 1
        if answer.status_code != 200:
            return False
        assert answer.json() == {"accepted": len(values), "refused": []}
        self.acknowledged.update(values)
        return True

    def wait(self, more: int = 1) -> None:
        """Until so many more reports are acknowledged: a kill should hit a server that is at work."""
        enough = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= enough, f"{more} reports are acknowledged")


def check(url: str, campaign: Campaign, senders: Senders) -> None:
    """Every acknowledged report is there once, no other is there, and tallies equal a recount."""

    async def read() -> None:
        store: Store = open_store(url)
        await store.open()
        try:
            tally = (await store.tallies(campaign))[campaign.plan_for(None).id]
            assert await store.recount(campaign) == {tally.plan: tally}
            counts = tally.counts
            assert counts.max() == 1
            assert counts[sorted(senders.acknowledged)].all()
            assert set(np.flatnonzero(counts).tolist()) <= senders.attempted
            assert len(senders.acknowledged) > 20, senders.statuses
        finally:
            await store.close()

    asyncio.run(read())


def test_kill_9_under_load(store_url: str, tmp_path: Path, cells: Campaign) -> None:
    chance = random.Random(5)
    with served(store_url, tmp_path, cells) as [server], Senders(cells, [server.port]) as senders:
        for _ in range(KILLS):
            senders.wait()
            time.sleep(chance.uniform(0.0, 0.5))
            server.kill()
            server.start()
        senders.wait(20)
        server.stop()
    check(store_url, cells, senders)


def test_two_processes_on_one_database_one_killed(
    postgres: PostgresServer, tmp_path: Path, cells: Campaign
) -> None:
    url = postgres.url("crash_two")
    with served(url, tmp_path, cells, 2) as servers, Senders(cells, [s.port for s in servers], 4) as senders:
        for server in servers[: max(1, KILLS // 2)]:
            senders.wait()
            time.sleep(0.2)
            server.kill()
            server.start()
        senders.wait(20)
        for server in servers:
            server.stop()
    check(url, cells, senders)


def test_the_database_restarted_under_load(postgres: PostgresServer, tmp_path: Path, cells: Campaign) -> None:
    url = postgres.url("restarted")
    with served(url, tmp_path, cells) as [server], Senders(cells, [server.port]) as senders:
        for _ in range(max(1, KILLS // 2)):
            senders.wait()
            postgres.restart()
            senders.wait(50)  # the writer reconnects by itself
        server.stop()
    check(url, cells, senders)
