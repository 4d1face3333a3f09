"""Write `deploy/requirements.txt`: what a curator installs, with hashes (`make hashes`, after `make constraints`).

The versions are those of `constraints.txt`. pip downloads the wheels for each Python and architecture below from the
index that it is set up with; the file holds their SHA-256 hashes and names no index, so any mirror with the same
files will do. hatchling is in it because the image builds priorveil's own wheel.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from constraints import ROOT, closure, extras

PYTHONS = ("3.11", "3.12", "3.13")
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = (17, 24, 26, 27, 28)  # 2.x, of Debian 12 or older: the names of manylinux wheels
PATH = ROOT / "deploy" / "requirements.txt"
HEADER = """\
# What a curator installs, with hashes: pip install --require-hashes --no-deps --requirement deploy/requirements.txt
# For Linux with glibc, Python 3.11 to 3.13, x86_64 and aarch64. Written by `make hashes` from constraints.txt.
"""


def pins() -> dict[str, str]:
    """The version of every library that a curator needs, with what builds its wheel."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    versions = dict(line.split("==") for line in constraints if "==" in line)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = {**extras(), "build": project["build-system"]["requires"]}
    return {name: versions[name] for name in sorted(closure(groups, ["", "postgres", "surveys", "build"]))}


def wheels(libraries: dict[str, str], folder: Path) -> None:
    """Download the wheels for every Python and architecture."""
    names = [f"{name}=={version}" for name, version in libraries.items()]
    for python in PYTHONS:
        for architecture in ARCHITECTURES:
            platforms = [f"--platform=manylinux_2_{minor}_{architecture}" for minor in GLIBC]
            options = [f"--python-version={python}", f"--platform=manylinux2014_{architecture}", *platforms]
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            subprocess.run([*command, *options, f"--dest={folder}", *names], check=True)


def main() -> int:
    """Write the file."""
    libraries = pins()
    hashes: dict[str, list[str]] = {name: [] for name in libraries}
    with tempfile.TemporaryDirectory() as folder:
        wheels(libraries, Path(folder))
        for wheel in sorted(Path(folder).glob("*.whl")):
            name = wheel.name.partition("-")[0].replace("_", "-").lower()
            hashes[name].append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    blocks = [
        f"{name}=={version}" + "".join(f" \\\n    --hash=sha256:{each}" for each in hashes[name]) + "\n"
        for name, version in libraries.items()
    ]
    PATH.write_text(HEADER + "".join(blocks), encoding="utf-8")
    print(f"{PATH.relative_to(ROOT)}: {len(libraries)} libraries, {sum(map(len, hashes.values()))} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
