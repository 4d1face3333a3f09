"""Ctrl-C at any moment, also during work that catches KeyboardInterrupt itself."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from patience import PATIENCE
from priorveil import __version__
from priorveil.cli.screen import end_on_interrupt


def press() -> None:
    """Ctrl-C in work that takes it as the wish for a quick answer, as designs do."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_the_block_whatever_it_catches() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), end_on_interrupt():
        press()
        raise AssertionError("still running")
    assert signal.getsignal(signal.SIGINT) is before


def test_the_first_one_may_ask_for_a_quick_end() -> None:
    asked: list[int] = []
    with pytest.raises(KeyboardInterrupt), end_on_interrupt(lambda: asked.append(1)) as interrupted:
        assert not interrupted.is_set()
        press()
        assert interrupted.is_set() and asked == [1]
        press()
        raise AssertionError("still running")
    assert asked == [1]


# -- the program -------------------------------------------------------------------------------------------

# A ctrl-C that the process sends to itself in a callback while a module loads, as Python itself has some: what a
# callback raises is printed and ignored.
IN_A_CALLBACK = """
import os, sys, weakref
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            sys.meta_path.remove(self)
            lock = Press()
            reference = weakref.ref(lock, lambda _: os.kill(os.getpid(), 2))
            del lock
sys.meta_path.insert(0, Press())
from priorveil.__main__ import main
main()
"""
# A ctrl-C when the command is over and the interpreter ends.
AT_THE_END = """
import atexit, os
atexit.register(os.kill, os.getpid(), 2)
from priorveil.__main__ import main
main()
"""
# A ctrl-C in work that ends with an exception of its own at the first one.
WHILE_DESIGNING = """
import os, weakref
import priorveil.cli
from priorveil.cli.screen import end_on_interrupt
class Lock: pass
def run(arguments):
    with end_on_interrupt():
        lock = Lock()
        reference = weakref.ref(lock, lambda _: os.kill(os.getpid(), 2))
        del lock
priorveil.cli.run = run
from priorveil.__main__ import main
main()
"""
# A second ctrl-C while the first one ends the program.
TWICE = """
import atexit, os
import priorveil.cli
def run(arguments):
    raise KeyboardInterrupt
atexit.register(os.kill, os.getpid(), 2)
priorveil.cli.run = run
from priorveil.__main__ import main
main()
"""

not_on_windows = pytest.mark.skipif(
    sys.platform == "win32", reason="there is no such signal, and no terminal"
)


@not_on_windows
@pytest.mark.parametrize(
    ("code", "status", "output", "errors"),
    [
        (IN_A_CALLBACK, 130, "", "stopped\n"),
        (WHILE_DESIGNING, 130, "", "stopped\n"),
        (AT_THE_END, 130, f"priorveil {__version__}\n", "stopped\n"),
        (TWICE, -signal.SIGINT, "", "stopped\n"),  # in a shell this status is 130, too
    ],
)
def test_ctrl_c_is_no_traceback_at_any_moment(code: str, status: int, output: str, errors: str) -> None:
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, output, errors)


@not_on_windows
@pytest.mark.parametrize("more", [["check"], ["build", "-o", "campaign.json"]])
def test_ctrl_c_gives_up_the_design_of_a_survey(more: list[str], tmp_path: Path) -> None:
    """Each of its reports would take seconds more, if only for the best plan so far."""
    from pseudo_terminal import Terminal

    names = [f"o{i}" for i in range(200)]
    options = {
        "options": {name: name for name in names},
        "prior": dict(zip(names, zipf_shares(len(names)), strict=True)),
    }
    questions = [{"name": f"q{i}", "text": f"Question {i}?", **options} for i in range(12)]  # minutes of work
    survey = {"title": "Much", "asked_by": "A", "purpose": "B", "epsilon": 1.0, "question": questions}
    file = tmp_path / "survey.json"
    file.write_text(json.dumps(survey), encoding="utf-8")
    verb, *output = more
    output = [str(tmp_path / word) if word.endswith(".json") else word for word in output]
    terminal = Terminal("campaign", verb, str(file), *output)
    terminal.until("designing")
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("")
    assert terminal.process.wait(PATIENCE) == 130
    assert terminal.output.endswith("stopped\r\n") and "best plans" not in terminal.output
    assert "Traceback" not in terminal.output and list(tmp_path.iterdir()) == [file]


def zipf_shares(count: int) -> list[float]:
    """Shares in proportion to 1, 1/2, 1/3, ..."""
    total = sum(1 / (i + 1) for i in range(count))
    return [1 / (i + 1) / total for i in range(count)]
