"""Install built files into fresh environments, and use what they install (`make smoke`).

    python scripts/smoke.py dist/priorveil-0.1.0-py3-none-any.whl dist/priorveil-0.1.0.tar.gz

Every file is installed with the extra `client` and the versions of `constraints.txt`, for the Python that runs this
script. Then the installed command designs, runs and reads a plan outside the checkout, and the client is imported.
Status 0 means that every file passed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
PRIOR = "value,probability\nyes,0.3\nno,0.7\n"
PEOPLE = "answer\n" + "yes\nno\nno\n" * 100
COMMANDS = (
    "priorveil --version",
    "priorveil design prior.csv --epsilon 1 --query distribution -o plan.json",
    "priorveil inspect plan.json",
    "priorveil privatize plan.json people.csv --column answer -o reports.csv",
    "priorveil estimate plan.json reports.csv",
    "python -c 'import priorveil.device.client'",
)


def try_file(built: Path) -> bool:
    """Install one wheel or sdist and run the commands; print the output of a command that fails."""
    with tempfile.TemporaryDirectory(prefix="priorveil-smoke-") as place:
        folder = Path(place)
        (folder / "prior.csv").write_text(PRIOR)
        (folder / "people.csv").write_text(PEOPLE)
        venv.create(folder / "venv", with_pip=True)
        commands = [shlex.split(command) for command in COMMANDS]
        return _run(folder, _install(built)) and all(_run(folder, command) for command in commands)


def _install(built: Path) -> list[str]:
    command = "python -m pip install --quiet --no-compile --constraint"
    return [*command.split(), str(CONSTRAINTS), f"priorveil[client] @ {built.resolve().as_uri()}"]


def _run(folder: Path, command: list[str]) -> bool:
    program = str(folder / "venv" / "bin" / command[0])
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    ran = subprocess.run([program, *command[1:]], cwd=folder, env=clean, capture_output=True, text=True)
    if ran.returncode:
        print(shlex.join(command), ran.stdout, ran.stderr, sep="\n")
    return ran.returncode == 0


def main(files: list[str]) -> int:
    """Try every file."""
    if not files:
        print("name the wheel and the sdist to install; make dist builds them")
        return 2
    python = ".".join(map(str, sys.version_info[:3]))
    passed = {name: try_file(Path(name)) for name in files}
    for name, good in passed.items():
        print(f"Python {python}: {Path(name).name} {'works' if good else 'FAILS'}")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
