"""`priorveil recount`: count the stored reports again and compare."""

from __future__ import annotations

import asyncio

import click

from priorveil.cli.serve import STORE
from priorveil.errors import plural


@click.command()
@STORE
@click.option("--repair", is_flag=True, help="Put the recounted tallies in place of the stored ones.")
def recount(store: str, repair: bool) -> int:
    """Count all stored reports again and compare with the tallies. Stop the service first.

    Exit status 1 if they differ, or if a stored campaign is damaged; 2 if nothing could be counted, also where
    no curator has stored anything yet.
    """
    from priorveil.curator.store import recount_store

    found = asyncio.run(recount_store(store, repair))
    for message in found.damaged:
        click.echo(message)
    for campaign, plan, counted, stored in found.differing:
        end = " (repaired)" if repair else ""
        click.echo(f"{campaign[:12]} plan {plan[:12]}: {counted:,} counted, {stored:,} stored{end}")
    if not found.differing:
        which = "all other tallies" if found.damaged else "all tallies"
        size = f"{plural(found.campaigns, 'campaign')}, {plural(found.reports, 'report')}"
        click.echo(f"{which} agree with the reports: {size}")
    return int(bool(found.damaged or (found.differing and not repair)))
