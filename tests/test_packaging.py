"""What is built and what is installed: the same bytes from the same commit, with the versions that were tested."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "constraints.py"))
GROUPS = SCRIPT["extras"]()
PIN = re.compile(r"([a-z0-9-]+)==([\w.]+)")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    matches = [PIN.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(matches), "a line is not name==version"
    return {match[1]: match[2] for match in matches if match}


@pytest.mark.parametrize("group", GROUPS)
def test_every_requirement_is_pinned_to_a_version_that_it_allows(group: str) -> None:
    for requirement in map(Requirement, GROUPS[group]):
        if requirement.name != "priorveil":
            assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)]), requirement


def test_what_the_requirements_need_is_pinned_too() -> None:
    try:
        needed = SCRIPT["closure"](GROUPS, ["", "dev"]) - {"pip"}
    except PackageNotFoundError as missing:
        pytest.skip(f"{missing.name} is not installed here")
    assert needed <= set(pins()), "run: make constraints"


@pytest.mark.parametrize("installer", ["", "uv"])
@pytest.mark.parametrize("target", ["demo", "test"])
def test_both_commands_of_the_readme_install_the_tested_versions(installer: str, target: str) -> None:
    command = ["make", "--dry-run", "--always-make", target, f"UV={installer}"]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    [install] = [line for line in planned.splitlines() if "pip install" in line]
    assert "--constraint constraints.txt" in install
    assert install.startswith("uv pip install" if installer else ".venv/bin/python -m pip install")


def build(checkout: Path, out: Path, umask: int) -> dict[str, bytes]:
    """The wheel and the sdist of a checkout."""
    ran = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=checkout,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        umask=umask,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    """In different folders, with other permissions and times, and once from the sdist."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    first = build(ROOT, tmp_path / "first", 0o022)
    assert sorted(Path(name).suffix for name in first) == [".gz", ".whl"]

    [sdist] = (tmp_path / "first").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [checkout] = (tmp_path / "unpacked").iterdir()
    for path in checkout.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    assert build(checkout, tmp_path / "second", 0o077) == first


def test_the_wheel_holds_the_package_alone_and_the_sdist_all_that_the_tests_need(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    build(ROOT, tmp_path, 0o022)
    [wheel], [sdist] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as built:
        tops = {name.partition("/")[0] for name in built.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"priorveil"}

    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode or not shutil.which("git"):
        pytest.skip("not a git checkout")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in listed.stdout.split("\0") if name} - packed == set()
