"""`priorveil restore`: fill a store from a backup.

Examples
  priorveil restore /var/backups/priorveil.db /var/lib/priorveil/reports.db
  priorveil restore --force /var/backups/priorveil.dump postgresql://curator@localhost/priorveil
      replaces what the database holds, with PostgreSQL's own pg_restore
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from priorveil.cli import options


@click.command(epilog=options.epilog(__doc__))
@click.argument("file", type=options.INPUT_FILE)
@click.argument("store")
@click.option("--force", is_flag=True, help="Replace what the store holds.")
def restore(file: Path, store: str, force: bool) -> None:
    """Fill a STORE from a FILE that `priorveil backup` made. Stop the curator first.

    It succeeds as a whole, or changes nothing. Then check the store with `priorveil recount`.
    """
    from priorveil.curator.maintenance import restore_store

    asyncio.run(restore_store(file, store, replace=force))
