"""Every benchmark starts, in a dry run of seconds: its figures mean nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
BRIEFLY = {
    "covariate_coverage": "--simulations 2",
    "crashes": "--kills 1",
    "curator": "--seconds 0.1 --connections 4 --stores bare,sqlite",
    "design": "--quick --only latent",
    "interval_coverage": "--surveys 1",
    "planning": "--surveys 100",
    "regression_coverage": "--simulations 2",
    "run": """--job ["priorveil","GRR",16,2000]""",
    "sample_coverage": "--surveys 1",
    "scale": "--rows 1000 --mechanisms table --no-peers",
    "servers": "--seconds 0.1 --rates",
    "sizing": "--seconds 0.1 --only sqlite postgres" + " nginx" * bool(shutil.which("nginx")),
    "soak": "--minutes 0.02",
}


@pytest.mark.parametrize(
    "script", sorted(path for path in FOLDER.glob("*.py") if path.name[0] != "_"), ids=lambda path: path.stem
)
def test_it_starts(script: Path, request: pytest.FixtureRequest) -> None:
    if script.stem == "sizing":
        request.getfixturevalue("postgres")  # skips where it is not installed
    command = [sys.executable, str(script), *BRIEFLY[script.stem].split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
