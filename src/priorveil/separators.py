"""What parts the cells of a CSV file: one rule for all that read one."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTED = re.compile(r'"[^"]*"')
_HINT = re.compile(r"\ufeff?\"?sep=([,;\t])\"?\s*", re.IGNORECASE)


def separator(text: str) -> str:
    r"""The mark that is in most lines of a text, commas where none is in more than half of them.

    Where two are in as many, semicolons part cells before tabs and tabs before commas, which may be in numbers.
    What is quoted does not count.

    >>> separator("a;1\nb;2\n"), separator("a;b,1\nc,2\n"), separator("a;0,5\nb;0,5\n"), separator("a; b\nc\nd\n")
    (';', ',', ';', ',')
    """
    lines = [line for line in _QUOTED.sub('""', text).splitlines() if line.strip()]
    seen = {mark: sum(mark in line for line in lines) for mark in ";\t,"}
    most = max(seen, key=lambda mark: seen[mark])
    return most if 2 * seen[most] > len(lines) else ","


def hinted(line: str) -> str | None:
    r"""The separator that a first line for Excel names; None if it is no such line.

    >>> hinted("sep=;\n"), hinted("sep;other\n")
    (';', None)
    """
    found = _HINT.fullmatch(line)
    return found[1] if found else None


def mixed(heads: Sequence[str]) -> str:
    """A word for people whose columns are not found where names hold what could part them.

    >>> mixed(["a", "b"]), mixed(["a;b"])
    ('', " (a name holds ';': cells are parted by commas, semicolons or tabs, all by the same)")
    """
    mark = next((mark for head in heads for mark in ";\t," if mark in head), None)
    if mark is None:
        return ""
    return f" (a name holds {mark!r}: cells are parted by commas, semicolons or tabs, all by the same)"
