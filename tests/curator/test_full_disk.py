"""A disk that fills up for real: answered with 507, nothing acknowledged is lost, and it goes on when there is space.

The store is on a file system of a few megabytes, in memory; only root may mount one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path

import asyncpg
import httpx
from click.testing import CliRunner

from local_server import HEADER, Server, served
from patience import PATIENCE, wait_until
from postgres_server import PostgresServer
from priorveil.cli import commands
from priorveil.curator.store import open_store
from priorveil.device.wire import ID_BYTES, PACKED, WORD_BYTES, packed_body
from priorveil.questions.campaign import Campaign
from small_disk import small_disk
from submissions import submission

BATCH = 5000


def left(disk: Path) -> int:
    return shutil.disk_usage(disk).free


class Sender:
    """Sends batches of reports and remembers what was acknowledged."""

    def __init__(self, server: Server, campaign: Campaign) -> None:
        self.base = f"http://127.0.0.1:{server.port}"
        self.campaign, self.form = campaign, campaign.form_for(None).id
        self.acknowledged: set[bytes] = set()
        self.refused: list[bytes] = []

    def send(self, ids: bytes | None = None, count: int = BATCH) -> httpx.Response:
        told = ids or os.urandom(ID_BYTES * count)
        body = packed_body(self.form, told, bytes(WORD_BYTES * (len(told) // ID_BYTES)))
        where = f"{self.base}/v1/campaigns/{self.campaign.id}/reports"
        answer = httpx.post(where, content=body, headers={"content-type": PACKED, **HEADER}, timeout=PATIENCE)
        if answer.status_code == 200:
            self.acknowledged.update(told[i : i + ID_BYTES] for i in range(0, len(told), ID_BYTES))
        else:
            self.refused.append(told)
        return answer

    def counted(self) -> int:
        where = f"{self.base}/v1/campaigns/{self.campaign.id}/counters"
        return int(httpx.get(where, headers=HEADER, timeout=PATIENCE).json()["reports"]["everyone"])

    def withdraw(self) -> int:
        """Withdraw a report that was acknowledged; the status."""
        id = min(self.acknowledged)
        status = post(self, self.campaign, "withdrawals", report_ids=[id.hex()]).status_code
        if status == 200:
            self.acknowledged.remove(id)
        return status


class Guest:
    """Somebody with an invitation, who sends a report again until it is acknowledged."""

    def __init__(self, sender: Sender, campaign: Campaign) -> None:
        self.sender, self.campaign = sender, campaign
        [self.code] = post(sender, campaign, "invitations", count=1).json()["codes"]
        self.report = submission(campaign)

    def send(self) -> int:
        """The status; the code is used up if and only if the report was acknowledged."""
        response = post(self.sender, self.campaign, "reports", code=self.code, **self.report)
        assert response.status_code == 507 or response.json() == {"accepted": 1, "refused": []}
        free = post(self.sender, self.campaign, "invitation", code=self.code).json()["free"]
        assert free == (response.status_code == 507)
        return response.status_code


def post(sender: Sender, campaign: Campaign, rest: str, **body: object) -> httpx.Response:
    where = f"{sender.base}/v1/campaigns/{campaign.id}/{rest}"
    return httpx.post(where, json=body, headers=HEADER, timeout=PATIENCE)


def stored_ids(url: str, campaign: Campaign) -> list[bytes]:
    async def read() -> list[bytes]:
        store = open_store(url)
        await store.open()
        ids = [report[0] async for page in store.reports(campaign) for report in page]
        await store.close()
        return ids

    return asyncio.run(read())


def ready(sender: Sender) -> int:
    return httpx.get(f"{sender.base}/readyz", timeout=PATIENCE).status_code


def fills_and_recovers(url: str, disk: Path, folder: Path, campaign: Campaign, room: int) -> None:
    invited = replace(campaign, admission="invitation")
    with served(url, folder, campaign, invited) as [server]:
        sender = Sender(server, campaign)
        guest = Guest(sender, invited)
        assert sender.send().status_code == 200
        filler = disk / "filler"
        filler.write_bytes(bytes(max(left(disk) - room, 0)))
        answers = [sender.send() for _ in range(100) if not sender.refused]
        assert len(answers) > 1, "some still fitted"
        full = answers[-1]
        kind = full.status_code, full.headers["content-type"]
        assert kind == (507, "application/problem+json"), server.log.read_text()[-2000:]
        assert (
            full.json()["status"] == 507 and "full" in full.json()["detail"] and full.headers["retry-after"]
        )
        later = [sender.send().status_code for _ in range(5)]
        # Seen once in PostgreSQL: a single 503 among them. Senders try again after either, and nothing is acknowledged.
        assert set(later) <= {503, 507} and later.count(507) >= 4, server.log.read_text()[-2000:]
        assert sender.counted() == len(sender.acknowledged), "what was acknowledged can be read all the same"
        assert httpx.get(f"{sender.base}/healthz", timeout=PATIENCE).status_code == 200
        assert server.process.poll() is None
        wait_until(lambda: ready(sender) == 503, "the curator is not ready")
        assert guest.send() in (200, 507) and sender.withdraw() in (200, 507)  # one row may still fit
        assert sender.counted() == len(sender.acknowledged)
        filler.unlink()
        again = [sender.send(ids).status_code for ids in (sender.refused[0], *[None] * 5)]
        assert again == [200] * 6, "without a restart"
        assert (guest.send(), sender.withdraw()) == (200, 200)
        wait_until(lambda: ready(sender) == 200, "the curator is ready again")
        known = b"".join(sorted(sender.acknowledged)[:BATCH])
        assert sender.send(known).status_code == 200, "sending again counts nothing twice"
        assert sender.counted() == len(sender.acknowledged)
        server.stop()
        log = server.log.read_text()
        assert "Traceback" not in log and log.count("full: free some space") == 1
    assert sorted(stored_ids(url, campaign)) == sorted(sender.acknowledged)
    found = CliRunner().invoke(commands, ["recount", "--store", url], standalone_mode=False)
    assert stored_ids(url, invited) == [bytes.fromhex(guest.report["report_id"])]
    size = f"2 campaigns, {len(sender.acknowledged) + 1:,} reports"
    assert found.output == f"all tallies agree with the reports: {size}\n"


def test_sqlite_on_a_full_disk(tmp_path: Path, campaign: Campaign) -> None:
    """The database and its write-ahead log compete for what is left."""
    with small_disk(tmp_path / "small", 24) as disk:
        fills_and_recovers(str(disk / "reports.db"), disk, tmp_path, campaign, room=6 << 20)


def test_postgres_on_a_full_disk(postgres: PostgresServer, tmp_path: Path, campaign: Campaign) -> None:
    """The database is in a tablespace on the small disk; its write-ahead log is elsewhere, as it should be."""
    url = postgres.url("crowded")

    def as_admin(*statements: str) -> None:
        async def run() -> None:
            admin = await asyncpg.connect(url.replace("/crowded", "/postgres"))
            for statement in statements:
                await admin.execute(statement)
            await admin.close()

        asyncio.run(run())

    with small_disk(postgres.folder / "small", 40) as disk:
        shutil.chown(disk, "postgres")
        move = "ALTER DATABASE crowded SET TABLESPACE small"
        as_admin(f"CREATE TABLESPACE small LOCATION '{disk}'", move)
        try:
            fills_and_recovers(url, disk, tmp_path, campaign, room=6 << 20)
        finally:
            as_admin("DROP DATABASE crowded WITH (FORCE)", "DROP TABLESPACE small")
