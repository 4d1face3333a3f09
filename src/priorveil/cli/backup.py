"""`priorveil backup`: copy a store into a file, while the curator runs.

Examples
  priorveil backup /var/lib/priorveil/reports.db /var/backups/priorveil.db
  priorveil backup postgresql://curator@localhost/priorveil /var/backups/priorveil.dump
      with PostgreSQL's own pg_dump
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from priorveil.cli import options


@click.command(epilog=options.epilog(__doc__))
@click.argument("store")
@click.argument("file", type=options.OutputFile())
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def backup(store: str, file: Path, force: bool) -> None:
    """Copy a STORE into FILE, while the curator runs.

    STORE is an SQLite file, or postgresql://user@host/database. The copy holds all reports that were
    acknowledged before it began, even while others are being stored. Only its owner can read it.
    """
    from priorveil.curator.maintenance import back_up_store

    asyncio.run(back_up_store(store, file, replace=force))
