"""A curator under mixed load for an hour: rates, errors with their explanations, and memory.

    python benchmarks/soak.py                             an hour on SQLite, with a restart every ten minutes
    python benchmarks/soak.py --store postgres --minutes 10 --restart 2
    python benchmarks/soak.py --write docs/soak.md        also write the report into a page

People send single reports, a gateway sends batches of 100, invited people use their codes, and an admin
reads estimates and exports all reports. Every other restart is a kill -9. A sender repeats what was not
acknowledged, with the same ids, so at the end each report must be there exactly once. An error
is explained by a restart during the request, by a limit that asks to wait (429), or, if it is a timeout (408),
by a machine so busy that the senders themselves stood still for seconds. Any other error, or a wrong number of reports,
makes the command fail. Everything is on loopback. The load is bounded by pauses and by --most.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from priorveil import Prior
from priorveil.device.wire import fresh_id, words_to_hex
from priorveil.questions.campaign import ANSWER, Campaign, ask

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from local_server import Server
from postgres_server import PostgresServer

BATCH = 100  # reports of a gateway's upload
INVITED = 20  # codes that an admin makes at once
STALL = 2.0  # seconds for which the senders stood still
GRACE = 120.0  # seconds after the end in which what was not acknowledged is sent again
SAMPLE = 5.0  # seconds between two looks at the memory
LAST = 12  # looks at the memory in a minute
PAUSE = 0.2  # seconds before an unacknowledged request is sent again
PAUSES = {
    "single": 0.02,
    "batch": 0.2,
    "invited": 0.1,
    "estimate": 1.0,
    "export": 20.0,
}  # between two requests
SENDERS = {"single": 4, "batch": 1, "invited": 1, "estimate": 1, "export": 1}
EXPLANATIONS = {
    "restart": "the curator was restarted during the request",
    "limit": "a limit asked the sender to wait",
    "stall": "the senders stood still for seconds: the machine was too busy",
    "": "none",
}

HEAD = """# Soak test

Mixed load for an hour, written by `python benchmarks/soak.py --write docs/soak.md` and again with `--store postgres`.
People send single reports, a gateway sends batches of 100, invited people use codes, and an admin reads estimates and
exports all reports. What was not acknowledged is sent again, with the same ids. Every other restart is a
kill -9. The command fails if an error has no explanation, or if a report is missing or stored twice. Memory is
the private memory of the curator's process. On SQLite it has a cache that grows with the file up to about 75 MiB, and
is full at 1.8 million reports; `python benchmarks/curator.py --hold 10000000` shows that memory then stays as it is.
"""


@dataclass
class Life:
    """One process of the curator: when it began, how it ended, and its memory over time."""

    began: float
    end: str = "end of the run"
    memory: list[float] = field(default_factory=list)  # MiB


@dataclass
class Score:
    """What happened during the run."""

    times: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in PAUSES})
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # kind, error, explanation
    reports: Counter[str] = field(default_factory=Counter)  # acknowledged, by campaign
    restarts: list[tuple[float, float]] = field(default_factory=list)
    stalls: list[tuple[float, float]] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    exported: int = 0  # bytes

    @property
    def restarting(self) -> bool:
        """Whether a restart is going on."""
        return bool(self.restarts) and self.restarts[-1][1] == float("inf")

    def explain(self, error: str, began: float) -> str:
        """Why a request that began then, and failed now, failed."""
        now = time.monotonic()
        for why, spans in (("restart", self.restarts), ("stall", self.stalls if error == "408" else [])):
            if any(start <= now and began <= end for start, end in spans):
                return why
        return "limit" if error == "429" else ""


class Soak:
    """The load: each sender sends, waits for the response and pauses."""

    def __init__(self, server: Server, campaigns: dict[str, Campaign], until: float, most: int) -> None:
        self.server, self.campaigns, self.until, self.most = server, campaigns, until, most
        self.score = Score()
        self.rng = np.random.default_rng(26)
        self.admin = {"authorization": f"Bearer {server.token.read_text()}"}
        self.codes: list[str] = []

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until or self.score.reports.total() >= self.most

    async def pause(self, seconds: float) -> None:
        """Wait, at most until the end of the run."""
        await asyncio.sleep(max(0.0, min(seconds, self.until - time.monotonic())))

    def address(self, admission: str, rest: str) -> str:
        return f"/v1/campaigns/{self.campaigns[admission].id}/{rest}"

    def draw(self, admission: str, count: int) -> list[dict[str, object]]:
        form = self.campaigns[admission].form_for(None)
        labels = form.parts[0].plan.labels
        answers = [labels[code] for code in self.rng.integers(0, 4, count)]
        rows = form.privatize({ANSWER: answers}, rng=self.rng)
        return [{"report_id": fresh_id(), "form": form.id, "report": words_to_hex(row)} for row in rows]

    async def request(
        self, http: httpx.AsyncClient, kind: str, *arguments: Any, **more: Any
    ) -> httpx.Response:
        """Send a request until it is answered with success; note each failure."""
        while True:
            began = time.monotonic()
            try:
                response = await http.request(*arguments, **more)
                error = "" if response.is_success else str(response.status_code)
                if response.is_success and response.headers["content-type"].startswith("application/json"):
                    refused = response.json().get("refused")
                    error = f"refused: {refused[0]['reason']}" if refused else ""
            except httpx.TransportError as failure:
                error = type(failure).__name__
            if not error:
                self.score.times[kind].append(time.monotonic() - began)
                return response
            self.score.errors[kind, error, self.score.explain(error, began)] += 1
            if error.startswith("refused") or time.monotonic() > self.until + GRACE:
                raise SystemExit(f"{kind}: {error}")
            await asyncio.sleep(PAUSE)

    async def single(self, http: httpx.AsyncClient) -> None:
        [report] = self.draw("open", 1)
        await self.request(http, "single", "POST", self.address("open", "reports"), json=report)
        self.score.reports["open"] += 1

    async def batch(self, http: httpx.AsyncClient) -> None:
        body = {"reports": self.draw("open", BATCH)}
        place = self.address("open", "reports")
        await self.request(http, "batch", "POST", place, json=body, headers=self.admin)
        self.score.reports["open"] += BATCH

    async def invited(self, http: httpx.AsyncClient) -> None:
        if not self.codes:
            place = self.address("invitation", "invitations")
            made = await self.request(
                http, "invited", "POST", place, json={"count": INVITED}, headers=self.admin
            )
            self.codes = made.json()["codes"]
        [report] = self.draw("invitation", 1)
        body = {**report, "code": self.codes.pop()}
        await self.request(http, "invited", "POST", self.address("invitation", "reports"), json=body)
        self.score.reports["invitation"] += 1

    async def estimate(self, http: httpx.AsyncClient) -> None:
        await self.request(http, "estimate", "GET", self.address("open", "estimates"), headers=self.admin)

    async def export(self, http: httpx.AsyncClient) -> None:
        place = self.address("open", "reports")
        found = await self.request(http, "export", "GET", place, headers=self.admin)
        self.score.exported += len(found.content)

    async def repeat(self, kind: str, act: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
        base = f"http://127.0.0.1:{self.server.port}"
        async with httpx.AsyncClient(base_url=base, timeout=60, verify=False, trust_env=False) as http:
            while not self.over:
                await act(http)
                await self.pause(PAUSES[kind])

    async def sample(self) -> None:
        """Note the memory of the curator, except during restarts."""
        while not self.over:
            if not self.score.restarting:
                self.score.lives[-1].memory.append(private_memory(self.server.process.pid))
            await self.pause(SAMPLE)

    async def watch(self) -> None:
        """Note when this process was held up."""
        while not self.over:
            began = time.monotonic()
            await asyncio.sleep(STALL / 10)
            if time.monotonic() - began > STALL:
                self.score.stalls.append((began, time.monotonic()))

    async def restart(self, every: float) -> None:
        """Restart the curator, in turn by SIGTERM and by SIGKILL."""
        ends = (("SIGTERM", self.server.stop), ("SIGKILL", self.server.kill))
        due = time.monotonic() + every
        while not self.over:
            await asyncio.sleep(PAUSE)
            if time.monotonic() < due:
                continue
            name, stop = ends[len(self.score.restarts) % 2]
            self.score.lives[-1].end = name
            began = time.monotonic()
            self.score.restarts.append((began, float("inf")))
            await asyncio.to_thread(stop)
            await asyncio.to_thread(self.server.start)
            self.score.restarts[-1] = (began, time.monotonic())
            self.score.lives.append(Life(time.monotonic()))
            due = time.monotonic() + every

    async def run(self, every: float) -> None:
        self.score.lives.append(Life(time.monotonic()))
        senders = [self.repeat(kind, getattr(self, kind)) for kind in PAUSES for _ in range(SENDERS[kind])]
        await asyncio.gather(self.sample(), self.watch(), self.restart(every), *senders)


def private_memory(pid: int) -> float:
    """Private memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("RssAnon"))) / 1024


def stored_reports(soak: Soak) -> dict[str, int]:
    """The number of reports that the curator counts, by campaign."""
    with httpx.Client(verify=False, trust_env=False, timeout=60, headers=soak.admin) as http:
        base = f"http://127.0.0.1:{soak.server.port}"
        places = {name: base + soak.address(name, "counters") for name in soak.campaigns}
        return {name: sum(http.get(place).json()["reports"].values()) for name, place in places.items()}


def recount(url: str) -> str:
    """What `priorveil recount` says after the run."""
    command = [sys.executable, "-m", "priorveil", "recount", "--store", url]
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip()


def report(soak: Soak, store: str, seconds: float, stored: dict[str, int], recounted: str) -> str:
    """The report of the run, in Markdown."""
    score = soak.score
    cores, load = os.cpu_count(), os.getloadavg()[1]
    lines = [
        f"{seconds / 60:.0f} minutes on {store}, {len(score.restarts)} restarts. The machine has {cores} cores, which "
        f"also made the load; its load average was {load:.1f} at the end. The senders stood still for more than "
        f"{STALL:.0f} s {len(score.stalls)} times.",
        "",
        "| requests | answered | a second | 50th percentile | 99th percentile | longest |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind, times in score.times.items():
        p50, p99, longest = np.percentile(times, [50, 99, 100]) * 1000 if times else (0, 0, 0)
        row = f"| {kind} | {len(times):,} | {len(times) / seconds:,.1f} |"
        lines.append(f"{row} {p50:,.0f} ms | {p99:,.0f} ms | {longest:,.0f} ms |")
    lines += ["", "| errors | | number | explanation |", "|---|---|---:|---|"]
    lines += [
        f"| {kind} | {error} | {count:,} | {EXPLANATIONS[why]} |"
        for (kind, error, why), count in sorted(score.errors.items())
    ]
    lines += ["", "| process | ended by | memory at the start | in the middle | at the end | highest |"]
    lines += ["|---|---|---:|---:|---:|---:|"]
    lives = [life for life in score.lives if life.memory]
    for number, life in enumerate(lives, 1):
        sizes = (life.memory[0], life.memory[len(life.memory) // 2], life.memory[-1], max(life.memory))
        shown = " | ".join(f"{size:.0f} MiB" for size in sizes)
        lines.append(f"| {number} | {life.end} | {shown} |")
    first, last = (np.median(life.memory[-LAST:]) for life in (lives[0], lives[-1]))
    lines += [
        "",
        f"Median memory in the last minute of the first process: {first:.0f} MiB, of the last: {last:.0f} MiB.",
    ]
    acknowledged = " and ".join(f"{score.reports[name]:,} ({name})" for name in soak.campaigns)
    found = " and ".join(f"{stored[name]:,} ({name})" for name in soak.campaigns)
    lines += [
        "",
        f"Acknowledged reports: {acknowledged}; stored: {found}. Exports: {score.exported / 1e6:,.0f} MB.",
        f"`priorveil recount`: {recounted}.",
    ]
    return "\n".join(lines) + "\n"


def page(results: dict[str, str]) -> str:
    """The page of the documentation, with the reports of all runs."""
    return HEAD + "".join(f"\n## {store}\n\n{text}" for store, text in sorted(results.items()))


def write(path: Path, store: str, text: str) -> None:
    """Replace the report of this store in a page."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    sections = [part.partition("\n\n") for part in old.split("\n## ")[1:]]
    results = {name: content.rstrip("\n") + "\n" for name, _, content in sections}
    path.write_text(page({**results, store: text}), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--restart", type=float, default=10.0, help="minutes between two restarts")
    parser.add_argument("--most", type=int, default=20_000_000, help="stop after so many reports")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--write", type=Path, help="a page of the documentation")
    chosen = parser.parse_args()
    prior = Prior([0.69, 0.11, 0.13, 0.07])
    campaigns = {
        admission: ask("What kind of work do you do?", prior, admission=admission)
        for admission in ("open", "invitation")
    }
    database = PostgresServer() if chosen.store == "postgres" else None
    with tempfile.TemporaryDirectory(prefix="priorveil-soak-") as name:
        url = database.url("soak") if database else str(Path(name) / "reports.db")
        server = Server(url, Path(name))
        try:
            began = time.monotonic()
            soak = Soak(server, campaigns, began + 60 * chosen.minutes, chosen.most)
            with httpx.Client(verify=False, trust_env=False, timeout=60, headers=soak.admin) as http:
                for campaign in campaigns.values():
                    place = f"http://127.0.0.1:{server.port}/v1/campaigns"
                    http.post(place, content=campaign.to_json()).raise_for_status()
            asyncio.run(soak.run(60 * chosen.restart))
            seconds = time.monotonic() - began
            stored = stored_reports(soak)
            server.stop()
            store = {"sqlite": "SQLite", "postgres": "PostgreSQL"}[chosen.store]
            text = report(soak, store, seconds, stored, recount(url))
        finally:
            server.process.kill()
            server.process.wait()
            if database:
                database.remove()
    print(text)
    if chosen.write:
        write(chosen.write, store, text)
    unexplained = sum(count for (_, _, why), count in soak.score.errors.items() if not why)
    if unexplained or Counter(stored) != soak.score.reports:
        print(f"{unexplained} unexplained errors; acknowledged {dict(soak.score.reports)}, stored {stored}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
