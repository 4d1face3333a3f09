"""`priorveil doctor`: what is installed, what is missing and how to get it, and how fast this machine is.

Examples
  priorveil doctor
      for people
  priorveil doctor --json
      for a program, or to attach to a question
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from importlib import import_module
from pathlib import Path

import click
import numpy as np

import priorveil as pv
from priorveil.cli import options, screen
from priorveil.errors import install_command

# The packages that an extra brings, and what it is for.
EXTRAS = {
    "fast": (("numba",), "compiled loops for large plans"),
    "plot": (("matplotlib",), "pictures"),
    "tables": (("pyarrow",), "Parquet, Arrow and data frames"),
    "spark": (("pyspark", "pandas", "pyarrow"), "tables on Spark"),
    "client": (("httpx",), "answering campaigns from Python"),
    "serve": (("httpx", "anyio", "granian", "msgspec", "pyarrow", "starlette", "uvloop"), "the curator"),
    "postgres": (("asyncpg",), "the curator's store in PostgreSQL"),
}
_REPORTS = 200_000  # that are made and counted to measure the speed


@click.command(epilog=options.epilog(__doc__))
@options.JSON
def doctor(as_json: bool) -> int:
    """Say what is installed, what is missing, and how fast this machine is.

    Exit status 1 if a folder that is needed cannot be written to. A missing extra is no fault.
    """
    extras = {name: _missing(packages) for name, (packages, _) in EXTRAS.items()}
    folders = {"this folder": Path.cwd(), "temporary files": Path(tempfile.gettempdir())}
    writable = {name: os.access(folder, os.W_OK) for name, folder in folders.items()}
    speed = _reports_per_second()
    if as_json:
        record = {
            "priorveil": pv.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "extras": {
                name: {"installed": not missing, "missing": missing, "install": install_command(name)}
                for name, missing in extras.items()
            },
            "writable": {name: {"path": str(folders[name]), "ok": ok} for name, ok in writable.items()},
            "reports_per_second": speed,
        }
        screen.print_json(record)
    else:
        _print(extras, folders, writable, speed)
    return 0 if all(writable.values()) else 1


def _print(
    extras: dict[str, list[str]], folders: dict[str, Path], writable: dict[str, bool], speed: float
) -> None:
    console = screen.open_console()
    console.print(f"priorveil {pv.__version__}, Python {platform.python_version()}, {platform.platform()}")
    console.print(f"{os.cpu_count()} processors; {speed:,.0f} reports a second are made and counted by one")
    rows = [
        (name, EXTRAS[name][1], "installed" if not missing else f"missing {', '.join(missing)}")
        for name, missing in extras.items()
    ]
    screen.print_table(console, ("extra", "for", "state"), rows)
    for name, missing in extras.items():
        if missing:
            console.print(f"to get {name}: {install_command(name)}")
    for name, ok in writable.items():
        state = "can be written to" if ok else "cannot be written to: choose another one"
        console.print(f"{name}: {folders[name]} {state}")


def _missing(packages: tuple[str, ...]) -> list[str]:
    """Return the packages that cannot be imported."""
    missing = []
    for package in packages:
        try:
            import_module(package)
        except ImportError:
            missing.append(package)
    return missing


def _reports_per_second() -> float:
    """Make and count reports of a small plan, as one device or one worker would, one after another."""
    plan = pv.design(pv.Prior.zipf(16), 1.0, pv.Histogram(), method="arc")
    values = np.arange(_REPORTS) % 16
    begin = time.perf_counter()
    plan.tally(plan.privatize(values))
    return _REPORTS / (time.perf_counter() - begin)
