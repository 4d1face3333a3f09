"""kill -9 under load, on both stores; the database ended; power lost. Nothing acknowledged is lost or doubled.

A few crashes of each kind; `benchmarks/crashes.py` makes as many as it is told.
"""

from __future__ import annotations

import os
from pathlib import Path

from crash_runs import cut_power, end_database, kill_curators
from postgres_server import PostgresServer
from priorveil.collect.campaign import Campaign
from priorveil.curator.store import Store, open_store
from submissions import number_words, submission

KILLS = int(os.environ.get("PRIORVEIL_KILLS", "3"))
OUTPUTS = 1 << max(15, 10 + KILLS.bit_length() + 1)  # cells: more than are sent between the kills


@pytest.fixture(scope="module")
def cells() -> Campaign:
    """A cell for every report that these tests will ever send, of each of two questions."""
    return own_cells(OUTPUTS, questions=2)


class Senders:
    """Threads that send reports, each for a cell of its own, again until they are acknowledged."""

    def __init__(self, campaign: Campaign, ports: list[int], threads: int = 3) -> None:
        self.campaign, self.ports = campaign, ports
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
                batch = {"reports": [submission(self.campaign, 2 * number_words(v)) for v in values]}
                while not self._stop.is_set() and not self._acknowledged(http, chance, batch):
                    time.sleep(0.02)

    def _taken(self, count: int) -> range:
        with self._lock:
            start, self._next = self._next, self._next + count
            return range(start, start + count)

    def _acknowledged(
        self, http: httpx.Client, chance: random.Random, batch: dict[str, list[dict[str, object]]]
    ) -> bool:
        values = [int.from_bytes(bytes.fromhex(str(r["report"]))[:8], "little") for r in batch["reports"]]
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
            tally = (await store.tallies(campaign))[campaign.form_for(None).id]
            assert await store.recount(campaign) == {campaign.form_for(None).id: tally}
            first, second = tally.parts
            assert first == second and first.reports == tally.reports, "submissions are stored whole"
            counts = first.counts
            assert counts.max() == 1
            assert counts[sorted(senders.acknowledged)].all()
            assert set(np.flatnonzero(counts).tolist()) <= senders.attempted
            assert len(senders.acknowledged) > 20, senders.statuses
        finally:
            await store.close()

    asyncio.run(read())


def test_power_lost_under_load_on_postgres(tmp_path: Path) -> None:
    with unsafe_disk() as disk, PostgresServer(disk.folder) as database:
        cut_power(database.url("power"), tmp_path, 1, disk, database)


def test_a_power_loss_spares_only_what_was_synced() -> None:
    """The simulation itself."""
    with unsafe_disk(64) as disk:
        file, other = disk.folder / "synced", disk.folder / "unsynced"
        with file.open("wb") as synced:
            synced.write(b"first")
            synced.flush()
            os.fsync(synced.fileno())
            synced.write(b"second")
            synced.flush()
            other.write_bytes(b"third")
            disk.cut_power()
        disk.restart()
        assert file.read_bytes() == b"first" and not other.exists()
