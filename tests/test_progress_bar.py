"""Long designs show a bar on a terminal, and nothing in a pipe."""

from __future__ import annotations

import io
import sys

import pytest

import priorveil as pv
from priorveil import progress_bar


class TerminalStream(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def design_output(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, **options: bool) -> str:
    """What a design writes on standard error, if none is too short for a bar."""
    monkeypatch.setattr(progress_bar, "_DELAY", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    pv.design(pv.Prior.zipf(16), 1.0, pv.Distribution(), method="columns", rounds=3, **options)
    return stream.getvalue()


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "designing" in design_output(TerminalStream(), monkeypatch)


def test_no_bar_in_a_pipe_nor_where_it_is_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert design_output(io.StringIO(), monkeypatch) == ""
    assert design_output(TerminalStream(), monkeypatch, progress=False) == ""
    with progress_bar.without_bars():
        assert design_output(TerminalStream(), monkeypatch) == ""


def test_a_design_that_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = TerminalStream()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress_bar, "_DELAY", 1e9)
    pv.design(pv.Prior.zipf(16), 1.0, pv.Distribution(), method="columns", rounds=3)
    assert stream.getvalue() == ""
