"""The workflows and the check before a release: valid, pinned, with few permissions, and in the right order."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import priorveil as pv
from test_dependencies import PROJECT

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, dict[Any, Any]] = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
faults = runpy.run_path(str(ROOT / "scripts" / "release_check.py"))["faults"]


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for workflow, document in WORKFLOWS.items():
        for name, job in document["jobs"].items():
            yield workflow, name, job


def commands() -> list[str]:
    return [step["run"] for _, _, job in jobs() for step in job.get("steps", ()) if "run" in step]


def test_the_workflows_fit_the_schema() -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    checked = subprocess.run([*command, *map(str, FILES)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_actionlint_finds_nothing() -> None:
    actionlint = shutil.which("actionlint")
    if actionlint is None:
        pytest.skip("actionlint is not installed here")
    linted = subprocess.run([actionlint, *map(str, FILES)], cwd=ROOT, capture_output=True, text=True)
    assert linted.returncode == 0, linted.stdout


def test_every_action_is_pinned_to_a_commit() -> None:
    uses = [line.partition("uses: ")[2] for path in FILES for line in path.read_text().splitlines()]
    from_elsewhere = [each for each in uses if each and not each.startswith("./")]
    assert from_elsewhere and [each for each in from_elsewhere if not PINNED.fullmatch(each)] == []


def test_one_action_has_one_commit() -> None:
    uses = {each for path in FILES for each in re.findall(r"uses: ([\w-]+/[\w-]+)@(\w+)", path.read_text())}
    assert len(uses) == len({action for action, _ in uses})


def test_a_job_may_write_only_what_it_publishes() -> None:
    assert [document.get("permissions") for document in WORKFLOWS.values()] == [{}] * len(WORKFLOWS)
    writes = {
        (workflow, name): {scope for scope, access in job["permissions"].items() if access == "write"}
        for workflow, name, job in jobs()
    }
    assert {place: scopes for place, scopes in writes.items() if scopes} == {
        ("release", "attest"): {"attestations", "id-token"},
        ("release", "publish"): {"id-token"},
        ("release", "image"): {"attestations", "id-token", "packages"},
    }


def test_no_command_holds_text_from_outside() -> None:
    """A branch may be called `$(...)`: such text reaches a command by its environment only."""
    assert [command for command in commands() if "${{" in command] == []


def test_no_checkout_keeps_its_token() -> None:
    steps = [step for _, _, job in jobs() for step in job.get("steps", ())]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts and all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_nothing_is_published_before_everything_passed() -> None:
    release = WORKFLOWS["release"]["jobs"]

    def before(name: str) -> set[str]:
        needs = release[name].get("needs", [])
        earlier = {needs} if isinstance(needs, str) else set(needs)
        return earlier.union(*map(before, earlier))

    for name in ("attest", "publish", "image"):
        assert {"version", "check"} <= before(name)
    assert all(release[name]["environment"] for name in ("publish", "image"))


def test_the_matrix_is_what_the_package_promises() -> None:
    promised = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if ":: Python :: 3." in text]
    for name in ("test", "install"):
        assert WORKFLOWS["check"]["jobs"][name]["strategy"]["matrix"]["python"] == promised


def test_the_workflows_run_what_there_is() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    words = [word for command in commands() if command.startswith("make ") for word in command.split()[1:]]
    assert words and set(words) <= targets
    scripts = [name for command in commands() for name in re.findall(r"scripts/\w+\.py", command)]
    assert scripts and all((ROOT / name).exists() for name in scripts)


def checkout(folder: Path) -> Path:
    """The files that state the version, as they would be on the day of a release."""
    for name in ("pyproject.toml", "src/priorveil/__init__.py", "clients/js/package.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## {pv.__version__} (2026-01-31)\n")
    (folder / "CITATION.cff").write_text(f"version: {pv.__version__}\ndate-released: 2026-01-31\n")
    return folder


def test_a_checkout_that_is_ready(tmp_path: Path) -> None:
    assert faults(f"v{pv.__version__}", checkout(tmp_path)) == []


@pytest.mark.parametrize("tag", [pv.__version__, "v0.1", "v0.1.0rc1", "latest"])
def test_a_tag_that_is_not_a_version(tag: str, tmp_path: Path) -> None:
    assert faults(tag, checkout(tmp_path)) == [f"tag: {tag!r} is not like v0.1.0"]


def test_a_file_with_another_version_or_without_a_day_is_named(tmp_path: Path) -> None:
    named = {line.partition(":")[0] for line in faults("v99.0.0", checkout(tmp_path))}
    assert named == {
        "pyproject.toml", "src/priorveil/__init__.py", "clients/js/package.json", "CITATION.cff", "CHANGELOG.md",
    }  # fmt: skip
    (tmp_path / "CHANGELOG.md").write_text(f"## {pv.__version__} (not released yet)\n")
    assert faults(f"v{pv.__version__}", tmp_path) == ["CHANGELOG.md: the day of the release is missing"]
