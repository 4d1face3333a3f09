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
import shutil
import tempfile
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click
import numpy as np

import priorveil as pv
from priorveil.cli import options, screen
from priorveil.device.state_folder import default_folder
from priorveil.errors import install_command

# The packages that an extra brings, and what it is for.
EXTRAS = {
    "fast": (("numba",), "compiled loops for large plans"),
    "plot": (("matplotlib",), "plots"),
    "tables": (("pyarrow",), "Parquet, Arrow and data frames"),
    "spark": (("pyspark", "pandas", "pyarrow"), "tables on Spark"),
    "client": (("httpx",), "answering campaigns from Python"),
    "serve": (("httpx", "anyio", "granian", "pyarrow", "starlette", "uvloop"), "the curator"),
    "postgres": (("asyncpg",), "the curator's store in PostgreSQL"),
    "statistics": (("formulaic", "pandas"), "regression by formula"),
    "surveys": (("openpyxl",), "surveys from XLSForms (.xlsx)"),
}
_REPORTS = 200_000  # that are made and counted to measure the speed
_ADVICE = {
    "this folder": "work in another one",
    "temporary files": "name another one in TMPDIR",
    "remembered answers": "name another one in PRIORVEIL_STATE",
}
_LEAST_FREE = 10 << 20  # bytes; an answer is stored with its plan, which may have some megabytes


@dataclass(frozen=True)
class FolderState:
    """Whether a folder, which may be made later, can be written to, and how many bytes are free there."""

    path: Path
    writable: bool
    free: int

    @classmethod
    def of(cls, path: Path) -> FolderState:
        """Look at a folder, or at the nearest folder above it if it is not there yet."""
        nearest = next(place for place in (path, *path.parents) if place.exists())
        writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
        return cls(path, writable, shutil.disk_usage(nearest).free)

    @property
    def ok(self) -> bool:
        """Whether files can be stored there."""
        return self.writable and self.free >= _LEAST_FREE

    def text(self, advice: str) -> str:
        """The state in words, with the advice if it is bad."""
        free = f"{self.free / 1e9:,.1f} GB free"
        if not self.writable:
            return f"cannot be written to: {advice}"
        return f"can be written to, {free}" if self.ok else f"is nearly full, {free}: make room, or {advice}"


@click.command(epilog=options.epilog(__doc__))
@options.JSON
def doctor(as_json: bool) -> int:
    """Say what is installed, what is missing, and how fast this machine is.

    Exit status 1 if a folder cannot be written to or is full: this one, that of temporary files, or that in which
    clients remember answers (PRIORVEIL_STATE). A missing extra is no fault.
    """
    extras = {name: _missing(packages) for name, (packages, _) in EXTRAS.items()}
    paths = (Path.cwd(), Path(tempfile.gettempdir()), default_folder().expanduser().absolute())
    folders = {name: FolderState.of(path) for name, path in zip(_ADVICE, paths, strict=True)}
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
            "folders": {
                name: {"path": str(folder.path), "writable": folder.writable, "free_bytes": folder.free}
                for name, folder in folders.items()
            },
            "reports_per_second": speed,
        }
        screen.print_json(record)
    else:
        _print(extras, folders, speed)
    return 0 if all(folder.ok for folder in folders.values()) else 1


def _print(extras: dict[str, list[str]], folders: dict[str, FolderState], speed: float) -> None:
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
            console.print(f"to get {name}: {install_command(name)}", soft_wrap=True)
    for name, folder in folders.items():
        console.print(f"{name}: {folder.path} {folder.text(_ADVICE[name])}", soft_wrap=True)


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
    plan.tally(plan.privatize(values))  # the first call loads or compiles the loops
    begin = time.perf_counter()
    plan.tally(plan.privatize(values))
    return _REPORTS / (time.perf_counter() - begin)
