"""A whole campaign here: a curator, thousands of simulated devices over HTTP, estimate beside truth."""

from __future__ import annotations

import asyncio
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from priorveil.campaigns import Campaign, ask, fresh_id, written
from priorveil.curator.store import Unavailable
from priorveil.mechanisms.randomness import as_source
from priorveil.priors import Prior

_QUESTION = "What kind of work do you do?"
_BELIEVED: dict[str | int, float] = {"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07}
_TRUE = (0.60, 0.14, 0.16, 0.10)  # the prior is wrong, and the reports say so
_AT_ONCE = 32


def run(devices: int = 5000, no_browser: bool = False, console: Console | None = None) -> None:
    """Run the campaign; then, unless `no_browser`, leave the dashboard open until interrupted."""
    screen = console or Console()
    token = secrets.token_urlsafe(24)
    campaign = ask(_QUESTION, Prior(_BELIEVED), 1.0, smallest_count=min(100, devices))
    with (
        tempfile.TemporaryDirectory(prefix="priorveil-demo-") as folder,
        _curator(Path(folder), campaign, token) as http,
    ):
        url = str(http.base_url)
        answers = np.random.default_rng().choice(len(_TRUE), size=devices, p=_TRUE)
        with Progress(console=screen, transient=not screen.is_terminal) as progress:
            task = progress.add_task(f"{devices} devices answer", total=devices)
            asyncio.run(_answers(url, campaign, answers.tolist(), lambda: progress.advance(task)))
        screen.print(_comparison(http, campaign, np.bincount(answers, minlength=len(_TRUE)).tolist()))
        if not no_browser:
            _show(screen, url, campaign, token)


@contextmanager
def _curator(folder: Path, campaign: Campaign, token: str) -> Iterator[httpx.Client]:
    """A curator in a process of its own, with the campaign; a client for it."""
    (folder / "token").write_text(token, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--store", str(folder / "demo.db"), "--token-file", str(folder / "token"), "--port", str(port)]
    command = [sys.executable, "-c", "from priorveil.serve import serve; serve()", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, verify=False) as http:
            _await_ready(process, http)
            http.post("/v1/campaigns", content=campaign.to_json()).raise_for_status()
            yield http
    finally:
        process.terminate()
        process.wait()


def _await_ready(process: subprocess.Popen[bytes], http: httpx.Client) -> None:
    for _ in range(600):
        try:
            if http.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
        if process.poll() is not None:
            break
    raise Unavailable("the curator did not start")


async def _answers(url: str, campaign: Campaign, values: list[int], done: Callable[[], object]) -> None:
    """Every device perturbs its value and sends its report."""
    plan = campaign.plan_for(None)
    waiting = iter(values)
    source = as_source(None)

    async def devices() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=30, verify=False) as http:
            for value in waiting:
                report = written(plan.mechanism, plan.mechanism.sample_one(value, source))
                sent = {"id": fresh_id(), "plan": plan.id, "report": report}
                (await http.post(f"/v1/campaigns/{campaign.id}/reports", json=sent)).raise_for_status()
                done()

    await asyncio.gather(*(devices() for _ in range(_AT_ONCE)))


def _comparison(http: httpx.Client, campaign: Campaign, truth: list[int]) -> Table:
    """What the curator estimates beside what the devices hold (which only this demo knows)."""
    found = http.get(f"/v1/campaigns/{campaign.id}/estimates", timeout=30).json()
    cohort = found["cohorts"][0]
    total = sum(truth)
    privacy = cohort["privacy"]
    table = Table(
        title=campaign.question,
        caption=f"{total} reports, LIP {privacy['lip']:.3g}, LDP {privacy['ldp']:.3g}; "
        f"if the prior were right, counts like these would have p = {cohort['prior_check']:.2g}",
    )
    table.add_column("answer")
    for name in ("prior", "estimate", "95 % interval", "truth"):
        table.add_column(name, justify="right")
    rows = zip(
        campaign.labels,
        cohort["prior"],
        *(cohort[k] for k in ("values", "lower", "upper")),
        truth,
        strict=True,
    )
    for label, prior, value, low, high, true in rows:
        table.add_row(
            str(label), f"{prior * total:.0f}", f"{value:.0f}", f"{low:.0f} to {high:.0f}", str(true)
        )
    return table


def _show(screen: Console, url: str, campaign: Campaign, token: str) -> None:
    screen.print(f"dashboard: {url}/dashboard   token: {token}")
    screen.print(f"answer yourself: {url}/answer/{campaign.id}\nCtrl-C ends it")
    webbrowser.open(f"{url}/dashboard")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        screen.print("bye")
