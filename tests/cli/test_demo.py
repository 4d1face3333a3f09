"""`priorveil demo`: its output from prior to estimate, and a curator that starts and stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from patience import PATIENCE, wait_until
from priorveil.cli import demo
from priorveil.errors import install_command
from priorveil.priors import Prior
from priorveil.questions.campaign import ask
from pseudo_terminal import Terminal
from terminal import refused, run

FEW = ("--devices", 100)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_tells_the_whole_story_and_ends_where_nobody_watches(tmp_path: Path) -> None:
    pytest.importorskip("granian", reason="the second half is the curator")
    status, out, err = run("demo", "--plot", "picture.png", "--devices", 300)
    story = " ".join(out.split())
    assert (status, err) == (0, "Picture saved as picture.png.\n")
    assert "claimed 1.000, real 6.845" in story
    assert "LIP, certified 1 (down 1, up 1)" in story and "LDP, for any prior 2 " in story
    assert "from its totals" in story
    assert "About the prior-based column: " in story
    assert "Method mmse assumes" in story and "Method unbiased assumes" in story
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "answered 300" in story
    counted = out.partition("answered 300")[2]
    truth = [int(row.split()[-5]) for row in counted.splitlines()[2:6]]
    assert sum(truth) == 300 and max(truth) == truth[0]
    assert "leave its dashboard open: priorveil demo --browser" in story


def test_no_number_is_cut_on_a_narrow_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = run("demo", *FEW)
    assert "…" not in out and max(map(len, out.splitlines())) <= 40
    assert re.search(r"truth +182,242\n", out)


def test_it_can_do_without_pictures_and_without_a_curator(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("matplotlib", "starlette", "starlette.applications"):
        monkeypatch.setitem(sys.modules, library, None)
    for name in [name for name in sys.modules if name.startswith("priorveil.curator")]:
        monkeypatch.delitem(sys.modules, name)
    status, out, _ = run("demo", *FEW)
    assert status == 0
    assert install_command("plot") in refused("demo", "--plot", "picture.png")
    assert f"no curator: the curator is not installed: {install_command('serve')}" in " ".join(out.split())
    assert "priorveil design --help" in out


def test_the_built_in_figures_are_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    from priorveil.errors import DataNotFound
    from priorveil.studies import datasets

    try:
        census = datasets.acs()
    except DataNotFound:
        pytest.skip("the census is not on this machine")
    assert {work: census.work.count(work) for work in demo._ASKED} == demo._ASKED


def test_too_few_devices_tell_nothing() -> None:
    assert "--devices" in refused("demo", "--devices", 5)


def demo_terminal(*arguments: str, **settings: str) -> Terminal:
    """`priorveil demo` on a terminal."""
    return Terminal("demo", "--devices", "100", *arguments, **settings)


def address(terminal: Terminal) -> str:
    """Where the curator of the demo listens."""
    return str(re.findall(r"(http://127\.0\.0\.1:\d+)/dashboard#[0-9a-f]{64}", terminal.output)[0])


@pytest.fixture
def httpx() -> object:
    return pytest.importorskip("httpx", reason="the second half is the curator")


@pytest.fixture
def staying(httpx: object, tmp_path: Path) -> Iterator[Terminal]:
    terminal = demo_terminal("--browser", DISPLAY="", WAYLAND_DISPLAY="", BROWSER="", TMPDIR=str(tmp_path))
    try:
        terminal.until("ctrl-C ends it")
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.master)


def refuses_connections(url: str) -> bool:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.socket() as line:
        return line.connect_ex((host, int(port))) != 0


def test_the_dashboard_stays_until_interrupted(staying: Terminal, httpx: object, tmp_path: Path) -> None:
    url, token = address(staying), re.findall(r"its token:\S*\s+(\S{32})\s", staying.output)[0]
    headers = {"authorization": f"Bearer {token}"}
    found = httpx.get(f"{url}/v1/campaigns", headers=headers, trust_env=False, timeout=PATIENCE)  # type: ignore[attr-defined]
    assert [campaign["title"] for campaign in found.json()["campaigns"]] == ["For whom do you work?"]
    staying.process.send_signal(signal.SIGINT)
    staying.until("")
    assert staying.process.wait() == 0
    assert "Traceback" not in staying.output and staying.output.rstrip("\x1b[0m\r\n ").endswith(
        "has stopped."
    )
    wait_until(lambda: refuses_connections(url), "the server is gone")
    assert list(tmp_path.glob("priorveil-demo-*")) == []


def test_interrupted_while_devices_answer_it_ends_in_one_line(httpx: object, tmp_path: Path) -> None:
    terminal = demo_terminal("--devices", "20000", TMPDIR=str(tmp_path))
    terminal.until(" of 20,000")
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("")
    assert terminal.process.wait() == 130
    assert "stopped" in terminal.output and "Traceback" not in terminal.output
    assert list(tmp_path.glob("priorveil-demo-*")) == []
    os.close(terminal.master)


def test_the_curator_does_not_outlive_the_demo(staying: Terminal, httpx: object) -> None:
    staying.process.kill()
    wait_until(lambda: refuses_connections(address(staying)), "the server is gone")


def test_a_terminal_without_a_browser_is_not_kept_waiting(httpx: object) -> None:
    terminal = demo_terminal(DISPLAY="", WAYLAND_DISPLAY="", BROWSER="")
    terminal.until("")
    assert terminal.process.wait() == 0
    assert "answered 100" in terminal.output and "priorveil demo --browser" in terminal.output
    os.close(terminal.master)


def test_two_curators_run_at_once() -> None:
    service = pytest.importorskip("priorveil.curator.demo", reason="the second half is the curator")
    campaign = ask("Busy?", Prior({"yes": 0.4, "no": 0.6}))
    with service.run_curator(campaign) as first, service.run_curator(campaign) as second:
        assert second.url != first.url and second.token != first.token
        assert second.estimates()["result"]["reports"] == 0
