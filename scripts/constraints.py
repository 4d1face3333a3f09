"""Write `constraints.txt`, the versions of the package's libraries in this environment (`make constraints`).

The file lists what `.[dev]` installs and what that requires, and nothing else. It names no package index and has no
hashes, so any index or mirror will do.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
OURS = "priorveil"
HEADER = """\
# The versions that the tests ran with, on Python 3.11: pip install --constraint constraints.txt .
# Written by `make constraints`.
"""


def extras() -> dict[str, list[str]]:
    """The requirements of every extra; those of the package itself are under the empty name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def closure(groups: Mapping[str, list[str]], wanted: Iterable[str]) -> set[str]:
    """The distributions that some extras install here, directly or not; one that is missing raises an error."""
    waiting = [Requirement(text) for group in wanted for text in groups[group]]
    visited: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in visited:
            continue
        visited.add((name, extras))
        if name == OURS:
            waiting += [Requirement(text) for extra in extras for text in groups[extra]]
        else:
            waiting += _required(name, extras)
    return {name for name, _ in visited} - {OURS}


def _required(name: str, extras: frozenset[str]) -> list[Requirement]:
    """What an installed distribution requires on this machine."""
    return [
        requirement
        for requirement in map(Requirement, requires(name) or ())
        if requirement.marker is None
        or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def main() -> int:
    """Write the file."""
    names = sorted(closure(extras(), ["", "dev"]) - {"pip"})  # pip is the installer here
    pins = "".join(f"{name}=={version(name)}\n" for name in names)
    (ROOT / "constraints.txt").write_text(HEADER + pins, encoding="utf-8")
    print(f"constraints.txt: {len(names)} libraries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
