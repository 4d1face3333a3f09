"""Running a command as a terminal would, within the test's own process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from priorveil.__main__ import main


def run(*arguments: object) -> tuple[int, str, str]:
    """Status, output and errors of `priorveil arguments...`."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([str(a) for a in arguments])
    assert isinstance(left.value.code, int)
    return left.value.code, out.getvalue(), err.getvalue()


class Printed(NamedTuple):
    """What a command printed."""

    out: str
    err: str


def done(*arguments: object, status: int = 0) -> Printed:
    """What `priorveil arguments...` prints, which ends with this status."""
    found, out, err = run(*arguments)
    assert found == status, err
    return Printed(out, err)


def refused(*arguments: object) -> str:
    """The one line that a wrong call gets."""
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    return err
