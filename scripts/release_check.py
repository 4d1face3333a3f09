"""Say whether the checkout is ready to be released under a tag: `python scripts/release_check.py v0.1.0`.

Every file that states the version has to state that of the tag, and the changelog the day of the release. Needs the
standard library only. Status 0 means ready; otherwise each line names a file and what to change in it.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def stated_versions(root: Path) -> dict[str, str | None]:
    """The version that each file states; None where there is none."""

    def text(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    def first(pattern: str, name: str) -> str | None:
        match = re.search(pattern, text(name), re.MULTILINE)
        return match[1] if match else None

    return {
        "pyproject.toml": tomllib.loads(text("pyproject.toml"))["project"]["version"],
        "src/priorveil/__init__.py": first(r'^__version__ = "(.*)"$', "src/priorveil/__init__.py"),
        "clients/js/package.json": json.loads(text("clients/js/package.json"))["version"],
        "CITATION.cff": first(r"^version: (.*)$", "CITATION.cff"),
        "CHANGELOG.md": first(r"^## (\S+)", "CHANGELOG.md"),
    }


def faults(tag: str, root: Path) -> list[str]:
    """What keeps the checkout from being released under this tag."""
    version = tag.removeprefix("v")
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        return [f"tag: {tag!r} is not like v0.1.0"]
    wrong = [
        f"{name}: states {stated}, the tag {version}"
        for name, stated in stated_versions(root).items()
        if stated != version
    ]
    for name, dated in {
        "CHANGELOG.md": rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$",
        "CITATION.cff": r"^date-released: \d{4}-\d\d-\d\d$",
    }.items():
        if not re.search(dated, (root / name).read_text(encoding="utf-8"), re.MULTILINE):
            wrong.append(f"{name}: the day of the release is missing")
    return wrong


def main(arguments: list[str]) -> int:
    """Print the faults."""
    if len(arguments) != 1:
        print("name one tag, for example v0.1.0")
        return 2
    wrong = faults(arguments[0], ROOT)
    print("\n".join(wrong) or f"{arguments[0]}: ready")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
