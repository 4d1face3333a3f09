"""A PostgreSQL server of our own, in a folder that goes away with it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _binary(name: str) -> str:
    found = shutil.which(name) or next((str(p / name) for p in _PLACES if (p / name).is_file()), None)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed here ({name} not found)")
    return found


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class PostgresServer:
    """Started at once; `url(database)` makes a fresh database; `restart()` pulls the carpet away."""

    def __init__(self, **settings: str) -> None:
        self._settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "''", **settings}
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="priorveil-postgres-")), free_port()
        self.data = self.folder / "data"
        self._as = self._user()
        self._run(
            [
                _binary("initdb"),
                "-D",
                str(self.data),
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
            ]
        )
        self.start()

    def _user(self) -> list[str]:
        """PostgreSQL refuses to run as root: then it runs as its own user."""
        if os.geteuid() != 0:
            return []
        if (
            shutil.which("runuser") is None
            or subprocess.run(["id", "postgres"], capture_output=True).returncode
        ):
            pytest.skip("running as root, and there is no user postgres to run PostgreSQL as")
        shutil.chown(self.folder, "postgres")
        return ["runuser", "-u", "postgres", "--"]

    def _run(self, command: list[str]) -> None:
        subprocess.run([*self._as, *command], check=True, capture_output=True, cwd="/", timeout=60)

    def start(self) -> None:
        chosen = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        options = f"-p {self.port} {chosen}"
        command = [
            _binary("pg_ctl"),
            "-D",
            str(self.data),
            "-w",
            "-o",
            options,
            "-l",
            f"{self.data}/log",
            "start",
        ]
        with open(os.devnull, "w") as nowhere:  # the server must not hold our pipes
            subprocess.run(
                [*self._as, *command], check=True, stdout=nowhere, stderr=nowhere, cwd="/", timeout=60
            )

    def stop(self, mode: str = "immediate") -> None:
        self._run([_binary("pg_ctl"), "-D", str(self.data), "-w", "-m", mode, "stop"])

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self) -> None:
        self.stop("immediate")
        self.start()

    def url(self, database: str) -> str:
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        self._run([_binary("createdb"), *place, database])
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
