"""`priorveil token`: make, list and revoke the tokens of a curator.

Examples
  priorveil token new anna --role analyst --expires 2027-01-31T12:00:00Z
      prints the secret; only its hash is stored
  priorveil token new gateway --role collect > gateway.token
  priorveil token list --server https://survey.example
  priorveil token revoke anna
"""

from __future__ import annotations

import click

from priorveil.cli import options
from priorveil.cli.curator_api import CuratorApi, with_curator


@click.group(epilog=options.epilog(__doc__))
def token() -> None:
    """Make, list and revoke the tokens of a running curator.

    A token has one role. An admin may do everything; an analyst sees campaigns and their stored results;
    a collector (collect) sends batches of reports. `priorveil serve` makes the first admin token.
    """


@token.command()
@click.argument("name")
@click.option(
    "--role", required=True, type=click.Choice(["admin", "analyst", "collect"]), help="What it allows."
)
@click.option("--expires", metavar="TIME", help="When it expires, such as 2027-01-31T12:00:00Z.")
@with_curator
def new(api: CuratorApi, name: str, role: str, expires: str | None) -> None:
    """Make a token for NAME, and print its secret once."""
    created = api.request("POST", "v1", "tokens", document={"name": name, "role": role, "expires": expires})
    click.echo(created["secret"])
    click.echo("Keep this secret: it is shown once, and only its hash is stored.", err=True)


@token.command("list")
@with_curator
def list_tokens(api: CuratorApi) -> None:
    """List all tokens with their roles and expiry times, without their secrets."""
    for entry in api.request("GET", "v1", "tokens")["tokens"]:
        end = f"until {entry['expires']}" if entry["expires"] else "never expires"
        click.echo(f"{entry['name']}  {entry['role']}, {end}")


@token.command()
@click.argument("name")
@with_curator
def revoke(api: CuratorApi, name: str) -> None:
    """Revoke the token of NAME: it stops working at once."""
    api.request("DELETE", "v1", "tokens", name)
    click.echo(f"revoked {name}")
