"""kill -9 under load, on both stores; the database ended; power lost. Nothing acknowledged is lost or doubled.

A few crashes of each kind; `benchmarks/crashes.py` makes as many as it is told.
"""

from __future__ import annotations

import os
from pathlib import Path

from crash_runs import cut_power, end_database, kill_curators
from postgres_server import PostgresServer
from power_loss import unsafe_disk


def test_kill_9_under_load(store_url: str, tmp_path: Path) -> None:
    """On PostgreSQL two curators share the store, and each is killed."""
    curators = 2 if store_url.startswith("postgresql") else 1
    kill_curators(store_url, tmp_path, 3, curators)


def test_the_database_ended_under_load(postgres: PostgresServer, tmp_path: Path) -> None:
    end_database(postgres.url("ended"), tmp_path, 1, postgres)


def test_power_lost_under_load_on_sqlite(tmp_path: Path) -> None:
    with unsafe_disk() as disk:
        cut_power(str(disk.folder / "reports.db"), tmp_path, 2, disk)


def test_power_lost_under_load_on_postgres(tmp_path: Path) -> None:
    with unsafe_disk() as disk, PostgresServer(disk.folder) as database:
        cut_power(database.url("power"), tmp_path, 1, disk, database)


def test_a_power_loss_spares_only_what_was_synced() -> None:
    """The simulation itself."""
    with unsafe_disk(64) as disk:
        file, other = disk.folder / "synced", disk.folder / "unsynced"
        with file.open("wb") as synced:
            synced.write(b"first")
            synced.flush()
            os.fsync(synced.fileno())
            synced.write(b"second")
            synced.flush()
            other.write_bytes(b"third")
            disk.cut_power()
        disk.restart()
        assert file.read_bytes() == b"first" and not other.exists()
