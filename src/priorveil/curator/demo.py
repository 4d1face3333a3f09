"""A curator on this machine and devices that answer it over HTTP: the second half of `priorveil demo`."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import httpx

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import fresh_id, report_to_json
from priorveil.curator.store import Unavailable
from priorveil.mechanisms.randomness import as_source

_AT_ONCE = 16
_SECONDS = 30.0  # for the curator to start
_LISTENING = re.compile("listening on (http://[^/]+)/")

# The curator stops when its standard input closes, so it never outlives the demo.
_SERVE = """
import os, signal, sys, threading
from priorveil.__main__ import main

def follow():
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=follow, daemon=True).start()
main()
"""


@dataclass(frozen=True)
class RunningCurator:
    """A curator that runs in a process of its own, and the token that opens its dashboard."""

    url: str
    token: str
    campaign: Campaign
    process: subprocess.Popen[bytes]

    @property
    def dashboard(self) -> str:
        """Where its reports can be watched."""
        return f"{self.url}/dashboard#{self.campaign.id}"

    @property
    def answer_page(self) -> str:
        """Where a person can answer."""
        return f"{self.url}/answer/{self.campaign.id}"

    def estimates(self) -> dict[str, Any]:
        """What it estimates now."""
        with _client(self.url, self.token) as http:
            response = _check_status(http.get(f"/v1/campaigns/{self.campaign.id}/estimates"))
        return dict(response.json())

    def wait_until_stopped(self) -> None:
        """Return when it has ended."""
        self.process.wait()


@contextmanager
def run_curator(campaign: Campaign) -> Iterator[RunningCurator]:
    """A curator with this campaign, on SQLite in a folder that is removed with it."""
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="priorveil-demo-") as name:
        folder = Path(name)
        process = _start(folder, token)
        try:
            url = _wait_for_address(process, folder / "log")
            with _client(url, token) as http:
                _check_status(http.post("/v1/campaigns", content=campaign.to_json()))
            yield RunningCurator(url, token, campaign, process)
        finally:
            _end(process)


def send_answers(curator: RunningCurator, codes: Sequence[int], done: Callable[[], object]) -> None:
    """Every device perturbs its value and sends its report; `done` is called for each."""
    stop = Event()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            parts = [codes[i::_AT_ONCE] for i in range(_AT_ONCE)]
            for each in [pool.submit(_devices, curator, part, done, stop) for part in parts]:
                each.result()
        except httpx.HTTPError as error:
            raise Unavailable(f"the curator stopped answering: {type(error).__name__}") from error
        finally:
            stop.set()


def _devices(curator: RunningCurator, codes: Sequence[int], done: Callable[[], object], stop: Event) -> None:
    """Devices one after the other, through one connection."""
    plan, source = curator.campaign.plan_for(None), as_source(None)
    path = f"/v1/campaigns/{curator.campaign.id}/reports"
    with _client(curator.url, curator.token) as http:
        for code in codes:
            if stop.is_set():
                return
            report = report_to_json(plan.mechanism, plan.mechanism.sample_one(code, source))
            sent = {"id": fresh_id(), "plan": plan.id, "report": report}
            if _check_status(http.post(path, json=sent)).json()["refused"]:
                raise Unavailable("the curator refused a report")
            done()


def _start(folder: Path, token: str) -> subprocess.Popen[bytes]:
    """A curator on a free port, which it writes to its log."""
    (folder / "token").write_text(token, encoding="utf-8")
    options = ["--store", str(folder / "demo.db"), "--token-file", str(folder / "token"), "--port", "0"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _SERVE, "serve", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,  # ctrl-C is for the demo, which then ends the curator
        )


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address of a curator, as soon as it listens."""
    end = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < end:
        if found := _LISTENING.search(log.read_text(encoding="utf-8", errors="replace")):
            return found[1]
        time.sleep(0.05)
    last = log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
    raise Unavailable(f"the curator did not start: {last or 'its log is empty'}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _client(url: str, token: str) -> httpx.Client:
    """Straight to this machine: no proxy, no certificates."""
    headers = {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=30, verify=False, trust_env=False)


def _check_status(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    raise Unavailable(f"the curator answered {response.status_code}")
