"""What the curator takes in, on loopback, durable: requests and reports a second, 50th and 99th percentile.

    python benchmarks/curator.py                  both stores, single reports and batches, a few seconds each
    python benchmarks/curator.py --hold 10000000 --seconds 300
                                                  batches of 100 on top of ten million stored reports
    python benchmarks/curator.py --abuse          single reports on SQLite while strangers attack, and the share of
                                                  their rate that honest uploads keep

`cpu us` is what the server's process uses for one request, `database` what PostgreSQL's processes do. `bare`
is the ceiling: a server written as one usually would, Starlette and msgspec on the same server, which reads the body
and stores nothing. `nothing` is our own server with a store that stores nothing. Load generator and server
share this machine; requests are made before the clock starts. PostgreSQL is started for the occasion, and
left out where it is not installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

from _attacks import ATTACKS
from priorveil import Distribution, Prior, design
from priorveil.curator.store import Group, open_store
from priorveil.device.wire import JSON, PACKED, packed_body
from priorveil.questions.campaign import Campaign, ask, ask_with

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from postgres_server import PostgresServer
from reserved_ports import free_port

TOKEN, COLLECTOR = "benchmark", "collector"
PREPARED = 2_000_000  # weight of the requests made beforehand
VALUES = 5000  # of the large campaign
ROUNDS = 5  # of each attack, and without it
ATTACKS_FILE = Path(__file__).with_name("_attacks.py")
PASS = 1_000_000  # reports in one sorted pass of preloading
TUNED = {
    "shared_buffers": "2GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "wal_compression": "on",
}
SERVER = """
import asyncio, sys
from collections import Counter
from priorveil.questions.campaign import Campaign
from priorveil.curator import create_app, open_store
from priorveil.curator.server import find_address, run
from priorveil.curator.settings import CampaignLimits, Settings
from priorveil.curator.tokens import Token
url, port, campaign = sys.argv[1], int(sys.argv[2]), Campaign.from_json(open(sys.argv[3]).read())
async def prepare():
    store = open_store(url)
    await store.open()
    await store.add_token(Token.of("benchmark", "benchmark", "admin"))
    await store.add_token(Token.of("collector", "collector", "collect"))
    await store.add_campaign(campaign)
    await store.close()
class Nothing:
    def __init__(self, store): self._store = store
    def __getattr__(self, name): return getattr(self._store, name)
    async def commit(self, groups): return Counter()
if sys.argv[4] != "nothing":
    asyncio.run(prepare())
    few = Settings(campaigns=CampaignLimits(loaded=10)) if sys.argv[4] == "abuse" else Settings()
    run(create_app(open_store(url), few), find_address("127.0.0.1", port))
else:
    asyncio.run(prepare())
    run(create_app(Nothing(open_store(url))), find_address("127.0.0.1", port))
"""


BARE = """
import asyncio, sys, msgspec, struct, uvloop
from priorveil.curator.server import find_address, serving
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
class Answer(msgspec.Struct):
    report_id: str
    plan: str
    report: int
class Answers(msgspec.Struct):
    reports: list[Answer]
one, many = msgspec.json.Decoder(Answer), msgspec.json.Decoder(Answers)
async def take(request):
    body = await request.body()
    if body[:4] == b"PVR1":
        count = struct.unpack_from("<I", body, 36)[0]
    else:
        count = len(many.decode(body).reports) if b'"reports"' in body[:64] else one.decode(body) and 1
    return Response(b'{"accepted":%d,"refused":[]}' % count, media_type="application/json")
async def fine(request):
    return Response(b"{}")
routes = [Route("/readyz", fine), Route("/v1/campaigns/{id}/status", fine)]
app = Starlette(routes=[Route("/v1/campaigns/{id}/reports", take, methods=["POST"]), *routes])
async def main():
    async with serving(app, find_address("127.0.0.1", int(sys.argv[2]))):
        await asyncio.Event().wait()
uvloop.run(main())
"""


class Connection(asyncio.Protocol):
    """One keep-alive connection: sends the next request when the last was answered."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.buffer = b""
        self.sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.next()

    def next(self) -> None:
        request = self.load.request()
        if request is None:
            self.transport.close()
            return
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        low = self.buffer[:head].lower()
        at = low.index(b"content-length:") + 15
        end = head + 4 + int(low[at : (low + b"\r\n").index(b"\r\n", at)])
        if len(self.buffer) < end:
            return
        self.load.answered(self.buffer[9:12], self.buffer[head + 4 : end], time.perf_counter() - self.sent)
        self.buffer = self.buffer[end:]
        self.next()

    def connection_lost(self, error: Exception | None) -> None:
        self.load.ended()


def _outputs(campaign: Campaign) -> int:
    """How many different reports the only plan of a campaign makes."""
    (part,) = campaign.form_for(None).parts
    return int(part.plan.mechanism.outputs)


class Load:
    """Makes requests of `size` reports until time or number is used up, and keeps the score."""

    def __init__(
        self, campaign: Campaign, size: int, packed: bool, seconds: float | None, reports: int | None
    ) -> None:
        self.form, self.size, self.packed = campaign.form_for(None), size, packed
        bearer = f"authorization: Bearer {COLLECTOR}\r\n" if packed or size > 1 else ""
        self.head = (
            f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1\r\nhost: x\r\ncontent-type: "
            f"{PACKED if packed else JSON}\r\n{bearer}content-length: "
        ).encode()
        self.left = reports
        self.times: list[float] = []
        self.failed = 0
        self.open = 0
        self.done = asyncio.Event()
        self.values = np.random.default_rng(1).integers(0, _outputs(campaign), 1 << 16)
        self.at = 0
        self.ready = [self.whole() for _ in range(PREPARED // (2 * size + 20))]
        self.until = None if seconds is None else time.perf_counter() + seconds

    def request(self) -> bytes | None:
        if (self.until is not None and time.perf_counter() > self.until) or (
            self.left is not None and self.left <= 0
        ):
            return None
        if self.left is not None:
            self.left -= self.size
        return self.ready.pop() if self.ready else self.whole()

    def whole(self) -> bytes:
        body = self.body()
        return b"%s%d\r\n\r\n%s" % (self.head, len(body), body)

    def body(self) -> bytes:
        self.at = (self.at + self.size) % ((1 << 16) - 10_000)
        values = self.values[self.at : self.at + self.size]
        if self.packed:
            return packed_body(self.form.id, os.urandom(16 * self.size), values.astype("<i8").tobytes())
        ids, form, words = (
            os.urandom(16 * self.size).hex(),
            self.form.id,
            values.astype("<i8").tobytes().hex(),
        )
        each = [
            f'{{"report_id":"{ids[32 * i : 32 * i + 32]}","form":"{form}","report":"{words[16 * i : 16 * i + 16]}"}}'
            for i in range(self.size)
        ]
        return (each[0] if self.size == 1 else f'{{"reports":[{",".join(each)}]}}').encode()

    def answered(self, status: bytes, body: bytes, took: float) -> None:
        self.times.append(took)
        if status != b"200" or not body.endswith(b'"refused":[]}'):
            self.failed += 1

    def ended(self) -> None:
        self.open -= 1
        if self.open == 0:
            self.done.set()


async def loaded(port: int, load: Load, connections: int) -> float:
    """Seconds that the load took."""
    start = time.perf_counter()
    loop = asyncio.get_running_loop()
    load.open = connections
    for _ in range(connections):
        await loop.create_connection(lambda: Connection(load), "127.0.0.1", port)
    await load.done.wait()
    return time.perf_counter() - start


@contextmanager
def served(url: str, campaign: Campaign, kind: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and process id."""
    port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(campaign.to_json())
        file.flush()
        process = subprocess.Popen(
            [sys.executable, "-c", BARE if kind == "bare" else SERVER, url, str(port), file.name, kind]
        )
        try:
            for _ in range(200):
                time.sleep(0.05)
                try:
                    if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                        break
                except httpx.TransportError:
                    continue
            httpx.get(f"http://127.0.0.1:{port}/v1/campaigns/{campaign.id}/status").raise_for_status()
            yield port, process.pid
        finally:
            process.terminate()
            process.wait()


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processors: a figure that does not depend on who else is busy."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(
    port: int, pid: int, campaign: Campaign, size: int, packed: bool, seconds: float, connections: int
) -> dict[str, float]:
    """One row of the table."""

    async def run() -> tuple[Load, float]:
        load = Load(campaign, size, packed, seconds, None)
        return load, await loaded(port, load, connections)

    import uvloop

    before = cpu_seconds(pid)
    load, took = uvloop.run(run())
    spent = (cpu_seconds(pid) - before) / len(load.times) * 1e6
    p50, p99 = np.percentile(load.times, [50, 99]) * 1000
    rate = len(load.times) / took
    return {
        "requests": rate,
        "reports": rate * size,
        "p50": float(p50),
        "p99": float(p99),
        "cpu": spent,
        "failed": load.failed,
    }


def table(campaign: Campaign, places: dict[str, str], seconds: float, connections: int) -> None:
    """Every store, single reports, batches in JSON and packed batches."""
    names = ("store", "body", "requests/s", "reports/s", "p50 ms", "p99 ms", "ceiling", "cpu us", "failed")
    print("".join(f"{name:<14}" if i < 2 else f"{name:>12}" for i, name in enumerate(names)))
    ceilings: dict[str, float] = {}
    for kind, url in places.items():
        with served(url, campaign, kind) as (port, pid):
            for name, size, packed, clients in (
                ("single", 1, False, connections),
                ("100, JSON", 100, False, 32),
                ("100, packed", 100, True, 32),
                ("1000, packed", 1000, True, 16),
            ):
                row = measured(port, pid, campaign, size, packed, seconds, clients)
                share = row["requests"] / ceilings.setdefault(name, row["requests"])
                rates = (
                    f"{row['requests']:>12,.0f}{row['reports']:>12,.0f}{row['p50']:>12.1f}{row['p99']:>12.1f}"
                )
                print(
                    f"{kind:<14}{name:<14}{rates}{share:>12.0%}{row['cpu']:>12.0f}{row['failed']:>12.0f}",
                    flush=True,
                )


def resident(pid: int) -> float:
    """Private memory of a process in MiB (pages of files are the system's to keep or drop)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("RssAnon"))) / 1024


def database_seconds(postmaster: int | None) -> float:
    """What PostgreSQL's processes have used of the processors."""
    if postmaster is None:
        return 0.0
    used = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == postmaster:
                used += cpu_seconds(int(stat.parent.name))
        except FileNotFoundError:
            continue
    return used


async def preload(url: str, campaign: Campaign, total: int) -> None:
    """Put reports straight into the store: passes over all ids, each sorted, which leave the index as random ids do."""
    store = open_store(url)
    await store.open()
    await store.add_campaign(campaign)
    form, rng = campaign.form_for(None), np.random.default_rng(2)
    for done in range(0, total, PASS):
        ids = np.sort(np.frombuffer(os.urandom(16 * min(PASS, total - done)), "V16"))
        for part in np.array_split(ids, 10):
            words = rng.integers(0, _outputs(campaign), len(part)).astype("<i8").tobytes()
            await store.commit([Group(campaign.id, form, part.tobytes(), words)])
    await store.close()


async def checkpoint(url: str) -> None:
    """Make PostgreSQL write a checkpoint now. SQLite makes one by itself every few seconds of this load."""
    if url.startswith("postgresql"):
        import asyncpg

        db = await asyncpg.connect(url)
        await db.execute("CHECKPOINT")
        await db.close()


def hold(campaign: Campaign, kind: str, url: str, total: int, seconds: float, postmaster: int | None) -> None:
    """Batches of 100 in JSON on top of many stored reports, with a checkpoint after a third of the time."""
    start = time.perf_counter()
    asyncio.run(preload(url, campaign, total))
    print(f"{kind}: {total:,} reports put into the store in {time.perf_counter() - start:.0f} s", flush=True)
    with served(url, campaign, kind) as (port, pid):
        cpu, database, memory = cpu_seconds(pid), database_seconds(postmaster), [resident(pid)]
        load = Load(campaign, 100, False, seconds, None)
        rates: list[float] = []

        async def watch() -> None:
            """Note rate and memory ten times, and ask for the checkpoint."""
            for part in range(10):
                before = len(load.times)
                await asyncio.sleep(seconds / 10)
                rates.append(100 * (len(load.times) - before) / (seconds / 10))
                memory.append(resident(pid))
                if part == 2:
                    await checkpoint(url)

        async def run() -> float:
            watching = asyncio.create_task(watch())
            took = await loaded(port, load, 32)
            watching.cancel()
            return took

        took, stored = asyncio.run(run()), 100 * len(load.times)
        cpu, database = cpu_seconds(pid) - cpu, database_seconds(postmaster) - database
        with httpx.Client(headers={"authorization": f"Bearer {TOKEN}"}, timeout=60, verify=False) as http:
            answers = []
            for _ in range(6):  # the first one connects
                start = time.perf_counter()
                found = http.get(f"http://127.0.0.1:{port}/v1/campaigns/{campaign.id}/estimates").json()
                answers.append((time.perf_counter() - start) * 1000)
        counted = found["result"]["reports"]
        assert counted == total + stored and not load.failed, (counted, total + stored)
        p50, p99 = np.percentile(load.times, [50, 99]) * 1000
        spread = f"{min(rates):,.0f} to {max(rates):,.0f} in each tenth of the time"
        print(f"  {stored / took:,.0f} reports/s over {took:.0f} s, {spread}")
        print(f"  p50 {p50:.0f} ms, p99 {p99:.0f} ms; estimates in {sorted(answers[1:])[2]:.1f} ms")
        here, there = cpu / stored * 1e6, database / stored * 1e6
        print(f"  processor time of one report: {here:.1f} us in the curator, {there:.1f} us in PostgreSQL")
        print("  memory of the curator in MiB: " + ", ".join(f"{size:.0f}" for size in memory), flush=True)


def abuse(campaign: Campaign, url: str, seconds: float, connections: int) -> None:
    """The rate of honest uploads with and without each attack, in turns."""
    shares = 1 / np.arange(1, VALUES + 1)
    plan = design(Prior(shares / shares.sum()), 1.0, Distribution(), method="arc")
    large = ask_with("Which of thousands?", plan, smallest_count=1)
    cold = [ask(f"Question {i}?", Prior(np.full(50, 1 / 50))) for i in range(30)]
    with served(url, campaign, "abuse") as (port, pid):
        bearer = {"authorization": f"Bearer {TOKEN}"}
        base = f"http://127.0.0.1:{port}/v1/campaigns"
        with httpx.Client(headers=bearer, timeout=120) as http:
            for each in (large, *cold):
                http.post(base, content=each.to_json()).raise_for_status()
            reports = plan.privatize(np.arange(1000) % VALUES, np.random.default_rng(3), codes=True)
            body = packed_body(large.form_for(None).id, os.urandom(16_000), reports.astype("<i8").tobytes())
            kind = {"content-type": PACKED}
            http.post(f"{base}/{large.id}/reports", content=body, headers=kind).raise_for_status()
        targets = {
            "honest": campaign.id,
            "large": large.id,
            "large_form": large.form_for(None).id,
            "cold": [each.id for each in cold],
            "admin": TOKEN,
            "collector": COLLECTOR,
        }
        columns = ("uploads/s", "attacked", "kept", "p99 ms", "attacked", "failed", "MiB")
        print(f"{'attack':<12}" + "".join(f"{name:>12}" for name in columns))
        for name in ATTACKS:
            rows: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
            memory = 0.0
            for attacked in (False, True) * ROUNDS:
                arguments = [sys.executable, str(ATTACKS_FILE), name, str(port), json.dumps(targets)]
                attack = subprocess.Popen(arguments, stderr=subprocess.DEVNULL) if attacked else None
                time.sleep(1.0)  # it has begun, or the last one has ended
                rows[attacked].append(measured(port, pid, campaign, 1, False, seconds, connections))
                memory = max(memory, resident(pid))
                if attack is not None:
                    assert attack.poll() is None, f"{name} has ended by itself"
                    attack.kill()
                    attack.wait()
            quiet, busy = ([row["requests"] for row in each] for each in rows)
            kept = float(np.median(np.array(busy) / quiet))  # neighbours in time: the machine may be busy
            slow = [float(np.median([row["p99"] for row in each])) for each in rows]
            failed = sum(row["failed"] for each in rows for row in each)
            print(
                f"{name:<12}{np.median(quiet):>12,.0f}{np.median(busy):>12,.0f}{kept:>12.0%}{slow[0]:>12.0f}{slow[1]:>12.0f}"
                f"{failed:>12.0f}{memory:>12.0f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--hold", type=int, default=0)
    parser.add_argument("--abuse", action="store_true")
    parser.add_argument("--stores", default="bare,nothing,sqlite,postgres")
    chosen = parser.parse_args()
    campaign = ask("What kind of work do you do?", Prior([0.69, 0.11, 0.13, 0.07]))
    with tempfile.TemporaryDirectory(prefix="priorveil-bench-") as name:
        folder = Path(name)
        if chosen.abuse:
            return abuse(campaign, str(folder / "abuse.db"), chosen.seconds, min(chosen.connections, 64))
        places = {name: str(folder / f"{name}.db") for name in ("bare", "nothing", "sqlite")}
        server = None
        try:
            server = PostgresServer(**TUNED) if "postgres" in chosen.stores else None
            if server is not None:
                places["postgres"] = server.url("curator")
        except BaseException as error:
            if type(error).__name__ != "Skipped":
                raise
            print(error)
        places = {kind: url for kind, url in places.items() if kind in chosen.stores.split(",")}
        try:
            if chosen.hold:
                for kind, url in places.items():
                    if kind not in ("bare", "nothing"):
                        lines = (server.data / "postmaster.pid").read_text() if server else ""
                        mine = int(lines.split()[0]) if server and kind == "postgres" else None
                        hold(campaign, kind, url, chosen.hold, chosen.seconds, mine)
            else:
                table(campaign, places, chosen.seconds, chosen.connections)
        finally:
            if server is not None:
                server.remove()


if __name__ == "__main__":
    main()
