"""`priorveil serve`: the curator on this machine.

Examples
  priorveil serve
      an SQLite file in this folder; prints an admin token the first time
  priorveil serve --store postgresql://curator@localhost/surveys --port 8001
      PostgreSQL; start as many as there are cores, each on its own port
  priorveil serve --config priorveil.toml --check
      the settings in force, and where each comes from
  priorveil serve --new-token
      one more admin token, printed once; only its hash is stored
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import options

if TYPE_CHECKING:
    from priorveil.curator.settings import Settings

STORE = click.option(
    "--store",
    default="priorveil.db",
    envvar="PRIORVEIL_STORE",
    help="An SQLite file, or postgresql://user@host/database.",
)

_log = logging.getLogger(__name__)


@click.command(epilog=options.epilog(__doc__))
@click.option("--config", type=options.INPUT_FILE, help="A TOML file with settings.")
@click.option("--check", is_flag=True, help="Print the settings in force and their sources, then stop.")
@click.option(
    "--store", show_default="priorveil.db", help="An SQLite file, or postgresql://user@host/database."
)
@click.option("--host", show_default="127.0.0.1", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), show_default="8000", help="The port to listen on.")
@click.option("--new-token", is_flag=True, help="Make and print another admin token, then serve.")
@click.option(
    "--migrate",
    is_flag=True,
    help="Migrate a PostgreSQL database of an older priorveil; take a backup first.",
)
@click.option("--token-file", type=options.INPUT_FILE, help="A file with an admin token.")
def serve(
    config: Path | None,
    check: bool,
    store: str | None,
    host: str | None,
    port: int | None,
    new_token: bool,
    migrate: bool,
    token_file: Path | None,
) -> None:
    """Collect reports and estimate while they arrive.

    Put a reverse proxy with TLS in front of it. It stores only the report of each person and keeps no access log.
    Ctrl-C stops it after all accepted reports are stored. Options override environment variables (PRIORVEIL_STORE,
    PRIORVEIL_REQUESTS_BODY, ...), which override the file.
    """
    from priorveil.curator.settings import read_settings

    given = {"store": store, "listen.host": host, "listen.port": port}
    given["token_file"] = str(token_file) if token_file else None
    configuration = read_settings(config, os.environ, given)
    if check:
        click.echo(str(configuration), nl=False)
    else:
        _serve(configuration.settings, new_token, migrate)


def _serve(settings: Settings, new_token: bool, migrate: bool) -> None:
    """Make sure that there is a token, then serve until a signal ends it."""
    from priorveil.curator import create_app, open_store
    from priorveil.curator.logs import configure_logging
    from priorveil.curator.maintenance import ensure_admin
    from priorveil.curator.server import find_address, run
    from priorveil.curator.settings import hide_password

    configure_logging(settings.log)
    store, host = settings.store, settings.listen.host
    token = options.read_token(Path(settings.token_file)) if settings.token_file else None
    address = find_address(host, settings.listen.port)  # before the store is made: the port may be taken
    new = asyncio.run(ensure_admin(store, token, new_token, migrate))
    if new is not None:
        click.echo(f"admin token (shown once): {new}")
    url = f"http://{f'[{host}]' if ':' in host else host}:{address[1]}"
    ready = f"listening on {url}/dashboard  (the dashboard; reports go to {hide_password(store)})"
    app = create_app(open_store(store, limits=settings.database), settings)
    run(app, address, lambda: _log.info("%s", ready))
