"""What three deployments hold: one process on SQLite, one on PostgreSQL, two behind nginx on partitioned PostgreSQL.

    python benchmarks/sizing.py --seconds 20

For each: single reports and batches of 100 a second at full load, the latency of single reports at half of that
rate, private memory of a process, and bytes on the disk for each report. At half load requests are due at even times,
and latency counts from when a request was due. Load generator, proxy, curators and database share this machine; the
table says how busy it was with other work. The proxy has no limits and no TLS.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg
import numpy as np

from curator import TUNED, Connection, Load, PostgresServer, free_port, resident, served
from patience import wait_until
from priorveil import Prior
from priorveil.curator.store import open_store
from priorveil.questions.campaign import Campaign, ask

CONNECTIONS = 64
PARTITIONS = 4
NAMES = {
    "sqlite": "one process, SQLite",
    "postgres": "one process, PostgreSQL",
    "nginx": "two processes behind nginx, partitioned PostgreSQL",
}
PROXY = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit; {user}
events {{ worker_connections 512; }}
http {{
    access_log off;
    {temporary}
    upstream curators {{ {servers} keepalive 64; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://curators;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_request_buffering off;
        }}
    }}
}}
"""


class PacedLoad(Load):
    """Requests that are due at even times, at a given rate."""

    def __init__(self, campaign: Campaign, seconds: float, rate: float) -> None:
        super().__init__(campaign, 1, False, seconds, None)
        self.interval, self.due = 1 / rate, time.perf_counter()

    def slot(self) -> float:
        """When the next request is due."""
        self.due += self.interval
        return self.due


class PacedConnection(Connection):
    """A connection that sends each request when it is due, or as soon as it can after that."""

    def next(self) -> None:
        assert isinstance(self.load, PacedLoad)
        request = self.load.request()
        if request is None:
            self.transport.close()
            return
        self.sent = self.load.slot()
        wait = max(0.0, self.sent - time.perf_counter())
        asyncio.get_running_loop().call_later(wait, self.transport.write, request)


def loaded(port: int, load: Load, kind: type[Connection], connections: int) -> float:
    """Seconds that the load took."""

    async def run() -> float:
        start, loop = time.perf_counter(), asyncio.get_running_loop()
        load.open, load.done = connections, asyncio.Event()
        for _ in range(connections):
            await loop.create_connection(lambda: kind(load), "127.0.0.1", port)
        await load.done.wait()
        return time.perf_counter() - start

    return asyncio.run(run())


def is_open(port: int) -> bool:
    """Whether something listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def proxied(ports: list[int]) -> Iterator[int]:
    """The port of nginx in front of several curators."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="priorveil-proxy-") as folder:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        path = Path(folder) / "nginx.conf"
        path.write_text(
            PROXY.format(
                folder=folder,
                user="user root;" if os.geteuid() == 0 else "",
                temporary=" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds),
                servers=" ".join(f"server 127.0.0.1:{each};" for each in ports),
                port=port,
            )
        )
        process = subprocess.Popen(["nginx", "-p", folder, "-c", str(path)])
        try:
            wait_until(lambda: is_open(port), "nginx listens")
            yield port
        finally:
            process.terminate()
            process.wait()


async def partition(url: str) -> None:
    """Make the tables, with submissions in partitions by their ids."""
    async with open_store(url):
        pass
    database = await asyncpg.connect(url)
    parts = "".join(
        f"CREATE TABLE part_{i} PARTITION OF submissions FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {i});"
        for i in range(PARTITIONS)
    )
    await database.execute(
        "BEGIN; ALTER TABLE submissions RENAME TO unsorted;"
        "CREATE TABLE submissions (LIKE unsorted INCLUDING ALL) PARTITION BY HASH (report_id);"
        f"{parts} DROP TABLE unsorted; COMMIT"
    )
    await database.close()


async def disk_bytes(url: str) -> int:
    """Bytes of the stored reports, with their index."""
    if not url.startswith("postgresql"):
        return Path(url).stat().st_size
    database = await asyncpg.connect(url)
    sizes = await database.fetchval(
        "SELECT sum(pg_total_relation_size(part)) FROM (SELECT 'submissions'::regclass AS part UNION "
        "SELECT inhrelid FROM pg_inherits WHERE inhparent = 'submissions'::regclass) AS parts"
    )
    await database.close()
    return int(sizes)


def row(campaign: Campaign, name: str, url: str, processes: int, seconds: float) -> str:
    """Measure one deployment."""
    with ExitStack() as stack:
        running = [stack.enter_context(served(url, campaign, "curator")) for _ in range(processes)]
        ports = [port for port, _ in running]
        port = stack.enter_context(proxied(ports)) if processes > 1 else ports[0]
        single = Load(campaign, 1, False, seconds, None)
        took = loaded(port, single, Connection, CONNECTIONS)
        rate = len(single.times) / took
        batch = Load(campaign, 100, False, seconds, None)
        took = loaded(port, batch, Connection, 16)
        batches = 100 * len(batch.times) / took
        half = PacedLoad(campaign, seconds, rate / 2)
        loaded(port, half, PacedConnection, CONNECTIONS)
        memory = max(resident(pid) for _, pid in running)
    p50, p99 = np.percentile(half.times, [50, 99]) * 1000
    reports = len(single.times) + 100 * len(batch.times) + len(half.times)
    size = asyncio.run(disk_bytes(url)) / reports
    failed = single.failed + batch.failed + half.failed
    return (
        f"| {name} | {rate:,.0f} | {batches:,.0f} | {p50:,.0f} ms | {p99:,.0f} ms | {memory:.0f} MiB "
        f"| {size:.0f} | {failed} | {os.getloadavg()[0]:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument(
        "--only", choices=NAMES, nargs="+", default=list(NAMES), help="these deployments alone"
    )
    chosen = parser.parse_args()
    campaign = ask("What kind of work do you do?", Prior([0.69, 0.11, 0.13, 0.07]))
    print(
        "| | single reports/s | in batches of 100 | half load, p50 | p99 | memory | bytes/report | failed | load |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    database = PostgresServer(**TUNED)
    try:
        with tempfile.TemporaryDirectory(prefix="priorveil-sizing-") as folder:
            one, parts = database.url("one"), database.url("parts")
            asyncio.run(partition(parts))
            places = {"sqlite": (f"{folder}/reports.db", 1), "postgres": (one, 1), "nginx": (parts, 2)}
            for name in chosen.only:
                print(row(campaign, NAMES[name], *places[name], chosen.seconds), flush=True)
    finally:
        database.remove()


if __name__ == "__main__":
    main()
