"""The repository itself: its public names, how light it is to import, and what must not be in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import priorveil as pv

ROOT = Path(__file__).resolve().parent.parent

# Promised to users; removing one of these breaks somebody.
PROMISED = {
    "Budget", "Channel", "Distribution", "Guess", "Histogram", "LDP", "LIP", "Ledger", "Plan", "Prior", "PriorSet",
    "Secret", "Sum", "design", "leakage", "published",
}  # fmt: skip
HEAVY = [
    "click", "rich", "highspy", "scipy.optimize", "scipy.stats", "matplotlib", "pandas", "polars", "pyarrow",
    "numba", "cryptography", "flint", "hypothesis",
]  # fmt: skip
MACHINE_PATH = re.compile(r"(?<![\w.~$}-])/(?:" + "|".join(["home", "root", "work", "Users"]) + r")/\w")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|npmjs|docker|ghcr|quay)" + r"\.(?:org|com|io)\b")
SCRIPT = re.compile(r"(?<![\w/.%-])(?:[\w-]+/)*[\w-]+\.(?:py|js)\b")
NO_SCRIPTS = {"mine.py", "benchmarks/NAME.py"}  # those of a reader, and of any name
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def tracked() -> list[Path]:
    """The files of the repository: what git knows, or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def texts() -> list[tuple[str, str]]:
    found = []
    for path in tracked():
        try:
            found.append((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def test_public_names_are_one_sorted_list() -> None:
    # Abbreviations, classes, functions and modules: the order that ruff checks (RUF022).
    ordered = sorted(set(pv.__all__), key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert pv.__all__ == ordered
    assert not [name for name in pv.__all__ if name.startswith("_")]
    assert set(pv.__all__) >= PROMISED
    assert sorted([*pv.__all__, "__version__"]) == dir(pv)


@pytest.mark.parametrize("name", pv.__all__)
def test_public_names_are_there(name: str) -> None:
    value = getattr(pv, name)
    home = value.__name__ if isinstance(value, ModuleType) else value.__module__
    assert home.split(".")[0] == "priorveil"


def test_nothing_public_is_left_off_the_list() -> None:
    public = {
        name
        for name, value in vars(pv).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("priorveil")
    }
    assert public <= set(pv.__all__)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = pv.no_such_name


def test_import_is_light() -> None:
    code = "import sys, json, priorveil; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = json.loads(run.stdout)
    assert [name for name in HEAVY if name in loaded] == []


def test_help_does_not_load_the_solvers() -> None:
    code = "import sys, json, priorveil.cli; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    heavy = {"highspy", "scipy.optimize", "matplotlib", "pandas", "pyarrow", "numba", "flint", "rich"}
    assert heavy & set(json.loads(run.stdout)) == set()


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    found = [(name, m.group()) for name, text in texts() for m in MACHINE_PATH.finditer(text)]
    assert found == []


def test_no_registry_is_named() -> None:
    """Where packages come from is a choice of the machine."""
    assert [(name, m.group()) for name, text in texts() for m in REGISTRY.finditer(text)] == []


def test_every_module_that_is_named_exists() -> None:
    """Pages, docstrings and comments that name one which is gone lead nowhere."""
    paths = [f"/{path.relative_to(ROOT).as_posix()}" for path in tracked()]
    found = {
        (name, script)
        for name, text in texts()
        if name.startswith(("src/", "clients/js/src/", "docs/")) or name.endswith("md")
        for script in SCRIPT.findall(text)
        if script not in NO_SCRIPTS and not any(path.endswith(f"/{script}") for path in paths)
    }
    assert found == set()


def test_nothing_is_left_unfinished() -> None:
    found = [
        (name, m.group()) for name, text in texts() if name.endswith(".py") for m in UNFINISHED.finditer(text)
    ]
    assert found == []


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert project["version"] == pv.__version__
    assert f"\nversion: {pv.__version__}\n" in citation
    assert f"## {pv.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(pv.__file__).parent / "py.typed").exists()


def test_continuous_integration_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "\nmake test\n" in script.read_text(encoding="utf-8")
