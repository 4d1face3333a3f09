"""A PostgreSQL server of our own, in a temporary folder that is removed with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import asyncpg
import pytest

from patience import PATIENCE, run_apart, wait_until
from reserved_ports import free_port

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _binary(name: str) -> str:
    found = shutil.which(name) or next((str(p / name) for p in _PLACES if (p / name).is_file()), None)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed here ({name} not found)")
    return found


class PostgresServer:
    """Started at once; `url` makes a fresh database; `restart` ends the server without warning and starts it again.

    As a context manager it is removed in the end. Its files are in a new folder, `within` another one if that is given.
    """

    def __init__(self, within: Path | None = None, **settings: str) -> None:
        self._settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "''", **settings}
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="priorveil-postgres-", dir=within)), free_port()
        self.data = self.folder / "data"
        self._as = self._user()
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        self._run([_binary("initdb"), "-D", str(self.data), *options])
        self.start()

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

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
        subprocess.run([*self._as, *command], check=True, capture_output=True, cwd="/", timeout=PATIENCE)

    def start(self) -> None:
        chosen = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        options = ["-w", "-o", f"-p {self.port} {chosen}", "-l", f"{self.data}/log"]
        command = [*self._as, _binary("pg_ctl"), "-D", str(self.data), *options, "start"]
        nothing = subprocess.DEVNULL  # the server must not hold our pipes
        subprocess.run(command, check=True, stdout=nothing, stderr=nothing, cwd="/", timeout=PATIENCE)
        self._pid = int((self.data / "postmaster.pid").read_text().split()[0])

    def stop(self, mode: str = "immediate") -> None:
        self._run([_binary("pg_ctl"), "-D", str(self.data), "-w", "-m", mode, "stop"])

    def halt(self) -> None:
        """Stop all its processes as they are."""
        os.kill(self._pid, signal.SIGSTOP)  # from now on it makes no others
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        self._halted = [self._pid, *map(int, children)]
        for process in self._halted:
            os.kill(process, signal.SIGSTOP)

    def kill(self) -> None:
        """End all processes that were halted."""
        for process in self._halted:
            os.kill(process, signal.SIGKILL)
        # Until it is gone, the file with its number keeps another server from starting.
        wait_until(lambda: not Path(f"/proc/{self._pid}").exists(), "PostgreSQL has ended")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self) -> None:
        self.stop("immediate")
        self.start()

    def url(self, database: str) -> str:
        """The address of a fresh database."""

        async def create() -> None:
            db = await asyncpg.connect(f"{server}/postgres")
            await db.execute(f'CREATE DATABASE "{database}"')
            await db.close()

        server = f"postgresql://postgres@127.0.0.1:{self.port}"
        run_apart(create())
        return f"{server}/{database}"
