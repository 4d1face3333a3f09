"""What is installed with the package: declared, bounded from below, and looked up for vulnerabilities."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GROUPS = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
DEVELOPMENT = {"dev", "docs"}
REQUIREMENT = re.compile(r"([\w.-]+)(\[[\w,-]+\])?(>=[\d.]+)?(;.*)?$")

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "audit.py"))
verdict, learnt = SCRIPT["verdict"], SCRIPT["learnt"]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(*groups: str) -> set[str]:
    """The distributions that some groups ask for."""
    found = [REQUIREMENT.match(requirement) for group in groups for requirement in GROUPS[group]]
    return {plain(match[1]) for match in found if match}


def imported() -> dict[str, str]:
    """Every module from elsewhere that the package imports, wherever it does, with a file that does."""
    found: dict[str, str] = {}
    for path in (ROOT / "src" / "priorveil").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [str(node.module)]
            else:
                continue
            found.update((module.partition(".")[0], path.name) for module in modules)
    return {m: p for m, p in found.items() if m not in sys.stdlib_module_names and m != "priorveil"}


@pytest.mark.parametrize("group", GROUPS)
def test_every_requirement_has_a_lower_bound_and_no_other(group: str) -> None:
    for requirement in GROUPS[group]:
        match = REQUIREMENT.match(requirement)
        assert match, requirement
        assert match[3] or match[1] == PROJECT["name"], f"{requirement}: from which version on?"


def test_every_import_is_declared() -> None:
    declared = names(*(set(GROUPS) - DEVELOPMENT))
    providers = packages_distributions()
    missing = {
        module: path
        for module, path in imported().items()
        if declared.isdisjoint(plain(name) for name in providers.get(module, [module]))
    }
    assert not missing


def test_every_basic_requirement_is_used() -> None:
    """Nobody installs what nothing imports; extras may hold what a library of theirs picks up by itself."""
    providers = packages_distributions()
    used = {plain(name) for module in imported() for name in providers.get(module, [module])}
    assert names("") <= used


FINE: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
FLAWED = {"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}
OURS = {"name": "priorveil", "skip_reason": "editable"}


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([FINE, OURS], 0, "1 packages looked up: nothing is known against them"),
        ([FINE, FLAWED], 1, "b 2: X-1, fixed in 3"),
        ([FLAWED, UNKNOWN], 1, "1 packages looked up, 1 not: c"),
        ([FINE, UNKNOWN], 2, "1 packages looked up, 1 not: c"),
        ([UNKNOWN, OURS], 2, "no vulnerability service could be asked: nothing was learnt about 1 packages"),
    ],
)
def test_an_audit_that_could_not_ask_does_not_pass(
    packages: list[dict[str, Any]], status: int, said: str
) -> None:
    found, lines = verdict(packages)
    assert found == status and said in lines


FLAW = {"id": "X-1", "fixed_in": ["3"], "withdrawn": None}
WITHDRAWN = {"id": "X-2", "fixed_in": [], "withdrawn": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("project", "status", "said"),
    [
        ({"info": {"version": "2"}, "vulnerabilities": [FLAW, WITHDRAWN]}, 1, "b 2: X-1, fixed in 3"),
        ({"info": {"version": "2"}, "vulnerabilities": [WITHDRAWN]}, 0, "2 packages looked up: nothing"),
        (
            {"info": {"version": "3"}, "vulnerabilities": []},
            2,
            "1 packages looked up, 1 not: b 2 (newest: 3)",
        ),
        ({"info": {"version": "2"}}, 2, "1 packages looked up, 1 not: b"),
        ({}, 2, "1 packages looked up, 1 not: b"),
    ],
)
def test_what_is_said_of_the_newest_release_counts_for_that_one_only(
    project: dict[str, Any], status: int, said: str
) -> None:
    found, lines = verdict([FINE, learnt("b", "2", project)])
    assert found == status and lines[0].startswith(said)
