"""Programs in JavaScript, run by Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE


def node() -> list[str]:
    """Node.js; 18, which Debian 12 has, shows Web Crypto only when told to."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed: JavaScript is not tested")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = int(told.lstrip("v").split(".")[0])
    if version < 18:
        pytest.skip(f"Node.js {told.strip()} is too old: the JavaScript client needs 18")
    return [found, "--experimental-global-webcrypto"] if version == 18 else [found]


def run_module(code: str, given: Any, folder: Path, *options: str) -> Any:
    """What a module prints as JSON; it reads JSON from its standard input."""
    ran = subprocess.run(
        [*node(), *options, "--input-type=module", "-e", code],
        cwd=folder, input=json.dumps(given), capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
