"""`priorveil invite`: make invitations to a campaign, each with a single-use code.

Examples
  priorveil invite campaign.json --count 300 --site https://survey.example > links.txt
      a link for each person; only hashes are stored, so keep the file
  priorveil invite campaign.json --count 300 --codes > codes.txt
      the codes alone, for paper; people type them in
"""

from __future__ import annotations

import click

from priorveil.cli import options
from priorveil.cli.curator_api import CuratorApi, campaign_id, with_curator
from priorveil.errors import plural

_MOST = 10_000  # invitations in one request


@click.command(epilog=options.epilog(__doc__))
@click.argument("campaign")
@click.option("--count", required=True, type=options.WholeNumber(min=1), help="How many invitations to make.")
@click.option("--codes", is_flag=True, help="Print the codes alone, without the address of the page.")
@click.option("--site", metavar="URL", help="The address that people use, if it is not that of --server.")
@with_curator
def invite(api: CuratorApi, campaign: str, count: int, codes: bool, site: str | None) -> None:
    """Make invitations to a CAMPAIGN, given by its file or its id, and print their links.

    Each is valid for one answer. The campaign must have the admission `invitation`. The links are shown only once.
    """
    id = campaign_id(campaign)
    page = "" if codes else f"{(site or api.server).rstrip('/')}/answer/{id}#code="
    for start in range(0, count, _MOST):
        document = {"count": min(_MOST, count - start)}
        made = api.request("POST", "v1", "campaigns", id, "invitations", document=document)
        click.echo("".join(f"{page}{code}\n" for code in made["codes"]), nl=False)
    click.echo(f"{plural(count, 'invitation')}, shown once: only hashes are stored", err=True)
    _warn_if_too_many(api, id)


def _warn_if_too_many(api: CuratorApi, id: str) -> None:
    """Warn if there are more free codes than the campaign accepts further reports."""
    most = api.request("GET", "v1", "campaigns", id)["most_reports"]
    if most is None:
        return
    free = api.request("GET", "v1", "campaigns", id, "invitations")["free"]
    reports = sum(api.request("GET", "v1", "campaigns", id, "counters")["reports"].values())
    room = max(0, most - reports)
    if free > room:
        click.echo(
            f"warning: {plural(free, 'code')} are free, but the campaign accepts only {plural(room, 'further report')} "
            f"(most_reports = {most:,}): the others will be refused",
            err=True,
        )
