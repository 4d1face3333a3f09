"""Web servers for the curator: granian, as `priorveil serve` runs it, and uvicorn (pip install uvicorn httptools).

    python benchmarks/servers.py

Each serves the same app on loopback. `bare` answers every request at once, `curator` is the curator on SQLite; both
get single reports over 64 connections. The rest is what the server itself does, without the app or a proxy.
"""

from __future__ import annotations

import argparse
import importlib.util
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from curator import Load, cpu_seconds, free_port, loaded
from priorveil import Prior
from priorveil.questions.campaign import Campaign, ask

SERVE = """
import asyncio, sys, uvloop
from priorveil.questions.campaign import Campaign
from priorveil.curator import create_app, open_store
server, kind, port, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
async def bare(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/long":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
    if scope["path"] == "/slow":
        await asyncio.sleep(2)
    content = b'{"accepted":1,"refused":[]}'
    size = (b"content-length", b"%d" % len(content))
    await send({"type": "http.response.start", "status": 200, "headers": [size]})
    await send({"type": "http.response.body", "body": content})
async def prepare():
    store = open_store(folder + "/reports.db")
    await store.open()
    await store.add_campaign(Campaign.from_json(open(folder + "/campaign.json").read()))
    await store.close()
app = bare
if kind == "curator":
    asyncio.run(prepare())
    app = create_app(open_store(folder + "/reports.db"))
if server == "uvicorn":
    import uvicorn
    uvicorn.run(app, port=port, access_log=False, log_level="critical", timeout_keep_alive=10)
elif kind == "curator":
    from priorveil.curator.server import find_address, run
    run(app, find_address("127.0.0.1", port))
else:
    import signal
    from priorveil.curator.server import find_address, serving
    async def main():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        async with serving(app, find_address("127.0.0.1", port)):
            await stop.wait()
    uvloop.run(main())
"""
REQUEST = b"GET %s HTTP/1.1\r\nhost: x\r\n\r\n"


@contextmanager
def served(server: str, kind: str, campaign: Campaign) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="priorveil-servers-") as folder:
        (Path(folder) / "campaign.json").write_text(campaign.to_json())
        process = subprocess.Popen([sys.executable, "-c", SERVE, server, kind, str(port), folder])
        for _ in range(200):
            time.sleep(0.05)
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        try:
            yield port, process
        finally:
            process.kill()
            process.wait()


def rate(port: int, pid: int, campaign: Campaign, seconds: float) -> str:
    """Requests a second, and processor time for one of them."""

    async def run() -> tuple[Load, float]:
        load = Load(campaign, 1, False, seconds, None)
        return load, await loaded(port, load, 64)

    before = cpu_seconds(pid)
    load, took = uvloop.run(run())
    assert not load.failed
    return f"{len(load.times) / took:,.0f}/s, {(cpu_seconds(pid) - before) / len(load.times) * 1e6:.0f} us"


def connect(port: int, first: bytes, seconds: float = 12) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), timeout=seconds)
    line.sendall(first)
    return line


def until_closed(port: int, first: bytes) -> str:
    """How long the server waits for the rest of a request."""
    start = time.monotonic()
    with connect(port, first) as line:
        try:
            while line.recv(65536):
                pass
        except TimeoutError:
            return "waits for ever"
    return f"closes after {time.monotonic() - start:.0f} s"


def endless(port: int, first: bytes) -> str:
    """How much of endless headers or trailers it takes."""
    with connect(port, first) as line:
        for sent in range(64):
            try:
                line.sendall(b"x: %s\r\n" % (b"y" * 100_000) * 10)
            except OSError:
                return f"closes within {sent + 1} MB"
    return "takes all of 64 MB"


def stalled(port: int) -> str:
    """Whether a long response fills memory when nobody reads it."""
    pid = int(subprocess.run(["pgrep", "-fn", str(port)], capture_output=True, text=True).stdout or 0)
    with connect(port, REQUEST % b"/long"):
        time.sleep(2)
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) // 1024
    return f"stops sending ({peak} MiB at most)" if peak < 200 else "buffers all"


def nonsense(port: int) -> str:
    """What the sender of a good request hears that is followed by nonsense."""
    with connect(port, REQUEST % b"/slow" + b"XX\r\n\r\n", 5) as line:
        received = b""
        try:
            while part := line.recv(65536):
                received += part
        except (TimeoutError, ConnectionError):
            pass
    return ", ".join(part[:3].decode() for part in received.split(b"HTTP/1.1 ")[1:]) or "nothing"


def stop(port: int, process: subprocess.Popen[bytes]) -> str:
    """Whether a request that has begun is finished when the server is asked to stop."""
    with connect(port, REQUEST % b"/slow") as line:
        time.sleep(0.3)
        process.terminate()
        finished = line.recv(65536).startswith(b"HTTP/1.1 200")
    return "finishes the request" if finished else "drops the request"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rates", action="store_true", help="without the behaviour, which takes a minute")
    chosen = parser.parse_args()
    seconds = chosen.seconds
    campaign = ask("What kind of work do you do?", Prior([0.69, 0.11, 0.13, 0.07]))
    chunked = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    behaviours: dict[str, Callable[[int], str]] = {
        "nothing is sent": lambda port: until_closed(port, b""),
        "slow headers": lambda port: until_closed(port, b"GET / HTTP/1.1\r\n"),
        "endless headers": lambda port: endless(port, b"GET / HTTP/1.1\r\n"),
        "endless trailers": lambda port: endless(port, chunked),
        "nobody reads": stalled,
        "nonsense after a request": nonsense,
    }
    for server in ("granian", "uvicorn"):
        if importlib.util.find_spec(server) is None:
            print(f"{server} is not installed: pip install {server}")
            continue
        for kind in ("bare", "curator"):
            with served(server, kind, campaign) as (port, process):
                print(f"{server:<10}{kind:<26}{rate(port, process.pid, campaign, seconds)}", flush=True)
        if chosen.rates:
            continue
        with served(server, "bare", campaign) as (port, process):
            for name, behaviour in behaviours.items():
                print(f"{server:<10}{name:<26}{behaviour(port)}", flush=True)
            print(f"{server:<10}{'stop':<26}{stop(port, process)}", flush=True)


if __name__ == "__main__":
    main()
