"""The commands `serve` and `recount`: the curator on this machine."""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import click

from priorveil.errors import InvalidInput, plural

_STORE = click.option(
    "--store",
    default="priorveil.db",
    show_default=True,
    envvar="PRIORVEIL_STORE",
    help="An SQLite file, or postgresql://user@host/database.",
)

_TOKEN = re.compile(rb"[!-~]{16,}")  # what a header can carry, and nobody guesses

_SERVE_EXAMPLES = """\b
Examples
  priorveil serve
      an SQLite file in this folder; prints the curator's token the first time
  priorveil serve --store postgresql://curator@localhost/surveys --port 8001
      PostgreSQL; start as many as there are cores, each on its own port
  priorveil serve --new-token
      one more token, printed once; only its hash is stored
"""


@click.command(epilog=_SERVE_EXAMPLES)
@_STORE
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="The port to listen on."
)
@click.option("--new-token", is_flag=True, help="Make and print another curator token.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="PRIORVEIL_TOKEN_FILE",
    help="A file with the curator's token, instead of a printed one.",
)
def serve(store: str, host: str, port: int, new_token: bool, token_file: Path | None) -> None:
    """Collect reports and estimate while they come in.

    Put a reverse proxy with TLS in front of it. Nothing about a person is stored or logged but the report.
    Ctrl-C ends it, after what was accepted is stored.
    """
    from priorveil.curator import create_app, open_store
    from priorveil.curator.server import listening, run
    from priorveil.curator.store import hide_password

    told = _told(token_file) if token_file else None
    with listening(host, port) as sockets:  # before anything is made: the port may be taken
        made = asyncio.run(_prepared(store, told, new_token))
        if made is not None:
            click.echo(f"curator token (shown once): {made}")
        port = sockets[0].getsockname()[1]
        place = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        click.echo(
            f"listening on {place}/dashboard  (the dashboard; reports go to {hide_password(store)})", err=True
        )
        run(create_app(open_store(store)), host, port, sockets)


def _told(file: Path) -> str:
    """The token in a file; an empty or unfinished one would open the curator to everybody."""
    token = file.read_bytes().strip()
    if not _TOKEN.fullmatch(token):
        advice = (
            "it should hold one token, 16 ASCII characters or more without spaces: openssl rand -base64 32"
        )
        raise InvalidInput("token-file", str(file), advice)
    return token.decode("ascii")


async def _prepared(url: str, told: str | None, another: bool) -> str | None:
    """Open the store once, and see to it that there is a token; the token if it was made here."""
    from priorveil.curator.store import open_store, token_digest

    store = open_store(url)
    await store.open()
    try:
        if told is not None:
            await store.add_token(token_digest(told))
            return None
        if await store.token_digests() and not another:
            return None
        made = secrets.token_urlsafe(32)
        await store.add_token(token_digest(made))
        return made
    finally:
        await store.close()


@click.command()
@_STORE
@click.option("--repair", is_flag=True, help="Put the recounted tallies in place of the stored ones.")
def recount(store: str, repair: bool) -> int:
    """Count all stored reports again and compare with the tallies. Stop the service first.

    Exit status 1 if they differ, or if a stored campaign is damaged; 2 if nothing could be counted, also where
    no curator has stored anything yet.
    """
    found = asyncio.run(_recount(store, repair))
    for line in found.differing + found.damaged:
        click.echo(line)
    if not found.differing:
        which = "all other tallies" if found.damaged else "all tallies"
        size = f"{plural(found.campaigns, 'campaign')}, {plural(found.reports, 'report')}"
        click.echo(f"{which} agree with the reports: {size}")
    return 1 if found.damaged or (found.differing and not repair) else 0


@dataclass
class _Recount:
    """How much was counted; a line for each plan whose tally differs, and for each campaign that does not load."""

    campaigns: int = 0
    reports: int = 0
    differing: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


async def _recount(url: str, repair: bool) -> _Recount:
    """Count all campaigns of a store again."""
    from priorveil.curator.store import Damaged, open_store

    store = open_store(url, create=False)
    await store.open()
    try:
        result = _Recount()
        for campaign_id, _ in await store.campaign_ids():
            try:
                stored = await store.campaign(campaign_id)
            except Damaged as error:
                result.damaged.append(str(error))
                continue
            if stored is None:
                continue
            found, kept = await store.recount(stored.campaign), await store.tallies(stored.campaign)
            result.campaigns += 1
            result.reports += sum(tally.reports for tally in found.values())
            wrong = {plan: tally for plan, tally in found.items() if tally != kept[plan]}
            if wrong and repair:
                await store.replace_tallies(stored.campaign, wrong)
            done = " (repaired)" if repair else ""
            result.differing += [
                f"{campaign_id[:12]} plan {p[:12]}: {kept[p].reports:,} counted, {t.reports:,} stored{done}"
                for p, t in wrong.items()
            ]
        return result
    finally:
        await store.close()
