"""A curator on this machine and devices that answer it over HTTP: the second half of `priorveil demo`."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event
from typing import Any

import httpx

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import fresh_id, report_to_json
from priorveil.curator.store import Unavailable
from priorveil.mechanisms.randomness import as_source

_AT_ONCE = 16
_ATTEMPTS = 3  # a free port may be taken by somebody else before the curator has it
_SECONDS = 30.0  # for the curator to start

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
        while self.process.poll() is None:
            time.sleep(0.2)


@contextmanager
def run_curator(campaign: Campaign) -> Iterator[RunningCurator]:
    """A curator with this campaign, on SQLite in a folder that is removed with it."""
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="priorveil-demo-") as folder:
        process, url = _start(Path(folder), token)
        try:
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
        except (OSError, HTTPException) as error:
            raise Unavailable(f"the curator stopped answering: {type(error).__name__}") from error
        finally:
            stop.set()


def _devices(curator: RunningCurator, codes: Sequence[int], done: Callable[[], object], stop: Event) -> None:
    """Devices one after the other, through one connection."""
    plan, source = curator.campaign.plan_for(None), as_source(None)
    path, headers = f"/v1/campaigns/{curator.campaign.id}/reports", {"content-type": "application/json"}
    with closing(HTTPConnection(curator.url.removeprefix("http://"), timeout=30)) as http:
        for code in codes:
            if stop.is_set():
                return
            report = report_to_json(plan.mechanism, plan.mechanism.sample_one(code, source))
            sent = {"id": fresh_id(), "plan": plan.id, "report": report}
            http.request("POST", path, json.dumps(sent), headers)
            response = http.getresponse()
            receipt = json.loads(response.read())
            if response.status != 200 or receipt["refused"]:
                raise Unavailable(f"the curator did not take a report: {response.status}")
            done()


def _start(folder: Path, token: str) -> tuple[subprocess.Popen[bytes], str]:
    """A curator that is ready, and its address."""
    (folder / "token").write_text(token, encoding="utf-8")
    options = ["--store", str(folder / "demo.db"), "--token-file", str(folder / "token"), "--port"]
    for _ in range(_ATTEMPTS):
        port = _free_port()
        with (folder / "stderr.txt").open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, "serve", *options, str(port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,  # ctrl-C is for the demo, which then ends the curator
            )
        url = f"http://127.0.0.1:{port}"
        with ExitStack() as unless_ready:
            unless_ready.callback(_end, process)
            if _ready(process, url, token):
                unless_ready.pop_all()
                return process, url
    last = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
    raise Unavailable(f"the curator did not start: {last or 'it printed nothing'}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _ready(process: subprocess.Popen[bytes], url: str, token: str) -> bool:
    """Whether it came up; only the curator of this demo knows the token, not another one on its port."""
    end = time.monotonic() + _SECONDS
    with _client(url, token) as http:
        while process.poll() is None and time.monotonic() < end:
            try:
                if http.get("/v1/campaigns").status_code == 200:
                    return True
            except httpx.TransportError:
                pass
            time.sleep(0.05)
    return False


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
