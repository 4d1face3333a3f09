"""Crashes under load: kill -9, PostgreSQL ended, power lost. Nothing acknowledged may be lost or counted twice.

    python benchmarks/crashes.py --store sqlite --kills 50 --cuts 20
    python benchmarks/crashes.py --store postgres --kills 50 --ends 20 --cuts 20

Four threads send single reports, batches, reports with invitations, and withdrawals, and repeat what was not
acknowledged. After each crash the senders pause, and the store is read: every acknowledged report is there once, no
other is there, withdrawn reports are gone, no code was used twice or without its report, and tallies equal a recount.
The first difference makes the command fail. The table counts what was acknowledged: reports, and requests of each kind.

Each of --kills ends a curator with SIGKILL; on PostgreSQL two curators share the database, and are killed in turn. Each
of --ends stops PostgreSQL at once (`pg_ctl stop -m immediate`). Each of --cuts stops the file system below the store,
so that all that was not synced is lost, and ends what runs on that machine; this needs root. The runs are those of
tests/curator/test_crashes.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from crash_runs import KINDS, Known, cut_power, end_database, kill_curators
from postgres_server import PostgresServer
from power_loss import unsafe_disk


def kill(kills: int, folder: Path, store: str) -> Known:
    if store == "sqlite":
        return kill_curators(str(folder / "reports.db"), folder, kills)
    with PostgresServer() as database:
        return kill_curators(database.url("kills"), folder, kills, curators=2)


def end(ends: int, folder: Path, store: str) -> Known:
    with PostgresServer() as database:
        return end_database(database.url("ends"), folder, ends, database)


def cut(cuts: int, folder: Path, store: str) -> Known:
    with unsafe_disk(2048) as disk:
        if store == "sqlite":
            return cut_power(str(disk.folder / "reports.db"), folder, cuts, disk)
        with PostgresServer(disk.folder) as database:
            return cut_power(database.url("cuts"), folder, cuts, disk, database)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--ends", type=int, default=0, help="of PostgreSQL")
    parser.add_argument("--cuts", type=int, default=0, help="of power")
    chosen = parser.parse_args()
    if chosen.ends and chosen.store != "postgres":
        parser.error("--ends needs --store postgres")
    runs = (("kill -9", kill, chosen.kills), ("ends", end, chosen.ends), ("power losses", cut, chosen.cuts))
    print(f"| {chosen.store} | reports | {' | '.join(KINDS)} | failed requests | minutes |")
    print("|---|" + "---:|" * (len(KINDS) + 3))
    for name, run, crashes in runs:
        if crashes:
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="priorveil-crashes-") as folder:
                known = run(crashes, Path(folder), chosen.store)
            failed = sum(count for answer, count in known.answers.items() if answer not in (200, 201))
            counts = [len(known.acknowledged), *(known.done[kind] for kind in KINDS), failed]
            cells = " | ".join(f"{count:,}" for count in counts)
            print(f"| {crashes} {name} | {cells} | {(time.monotonic() - began) / 60:.0f} |", flush=True)


if __name__ == "__main__":
    main()
