"""`priorveil demo`: the whole loop, told."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from priorveil.commands import demo
from terminal import refused, run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIORVEIL_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("priorveil.datasets.folders", lambda: ())


def test_it_tells_the_whole_story(tmp_path: Path) -> None:
    status, out, err = run("demo", "--plot", "picture.png")
    story = " ".join(out.split())
    assert (status, err) == (0, "")
    assert "claimed 1.000, real 6.845" in story
    assert "certified: 1.000 under the prior, 2.000 whatever anyone knows" in story
    assert "from its totals" in story
    assert "chance of what came is below 0.0001" in story
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_it_can_do_without_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, _ = run("demo")
    assert status == 0
    assert "pip install 'priorveil[plot]'" in out


def test_the_built_in_figures_are_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    from priorveil import datasets
    from priorveil.errors import DataNotFound

    try:
        census = datasets.acs()
    except DataNotFound:
        pytest.skip("the census is not on this machine")
    assert {work: census.work.count(work) for work in demo._ASKED} == demo._ASKED


def test_what_the_service_misses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "priorveil.curator.demo", None)
    assert "curator" in refused("demo", "--service")


def test_the_service_is_told_how_many_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    stand_in = SimpleNamespace(run=lambda *given: told.extend(given))
    monkeypatch.setitem(sys.modules, "priorveil.curator", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "priorveil.curator.demo", stand_in)
    assert run("demo", "--service", "--devices", 7, "--no-browser")[0] == 0
    assert told == [7, True]
