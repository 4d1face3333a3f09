"""`priorveil serve`: the curator on this machine.

Examples
  priorveil serve
      an SQLite file in this folder; prints the curator's token the first time
  priorveil serve --store postgresql://curator@localhost/surveys --port 8001
      PostgreSQL; start as many as there are cores, each on its own port
  priorveil serve --new-token
      one more token, printed once; only its hash is stored
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import click

from priorveil.cli import options

STORE = click.option(
    "--store",
    default="priorveil.db",
    envvar="PRIORVEIL_STORE",
    help="An SQLite file, or postgresql://user@host/database.",
)

_TOKEN = re.compile(rb"[!-~]{16,}")  # what a header can hold, and long enough not to be guessed


@click.command(epilog=options.epilog(__doc__))
@STORE
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=8000, type=click.IntRange(0, 65535), help="The port to listen on.")
@click.option("--new-token", is_flag=True, help="Make and print another curator token, then serve.")
@click.option(
    "--migrate",
    is_flag=True,
    help="Bring a PostgreSQL database of an older priorveil forward; take a backup first.",
)
@click.option(
    "--token-file",
    type=options.INPUT_FILE,
    envvar="PRIORVEIL_TOKEN_FILE",
    help="A file with the curator's token.",
)
def serve(store: str, host: str, port: int, new_token: bool, migrate: bool, token_file: Path | None) -> None:
    """Collect reports and estimate while they come in.

    Put a reverse proxy with TLS in front of it. It stores only the report of each person and keeps no access log.
    Ctrl-C stops it, after all accepted reports are stored.
    """
    from priorveil.curator import create_app, open_store
    from priorveil.curator.server import find_address, run
    from priorveil.curator.store import ensure_token, hide_password

    token = _read_token(token_file) if token_file else None
    address = find_address(host, port)  # before the store is made: the port may be taken
    new = asyncio.run(ensure_token(store, token, new_token, migrate))
    if new is not None:
        click.echo(f"curator token (shown once): {new}")
    url = f"http://{f'[{host}]' if ':' in host else host}:{address[1]}"
    ready = f"listening on {url}/dashboard  (the dashboard; reports go to {hide_password(store)})"
    run(create_app(open_store(store)), address, lambda: click.echo(ready, err=True))


def _read_token(file: Path) -> str:
    """Read the token in a file; an empty or unfinished one would open the curator to everybody."""
    token = file.read_bytes().strip()
    if not _TOKEN.fullmatch(token):
        advice = "it must hold one token, 16 or more ASCII characters without spaces: openssl rand -base64 32"
        raise click.UsageError(f"--token-file {file}: {advice}")
    return token.decode("ascii")
