"""`priorveil recount`: count the stored reports again and compare."""

from __future__ import annotations

import asyncio

import click

from priorveil.cli.serve import STORE
from priorveil.errors import plural

_NOT_REPAIRED = " (not repaired: its results are published and never change; restore a backup)"


@click.command()
@click.argument("store_given", metavar="[STORE]", required=False)
@STORE
@click.option("--repair", is_flag=True, help="Correct the tallies, except those of published campaigns.")
def recount(store_given: str | None, store: str, repair: bool) -> int:
    """Count all reports in a STORE again and compare with the tallies. Stop the service first.

    Exit status 1 if they differ and were not repaired, or if a stored campaign is damaged; 2 if the store cannot be
    read or was never used.
    """
    from priorveil.curator.maintenance import recount_store

    summary = asyncio.run(recount_store(store_given or store, repair))
    for message in summary.damaged:
        click.echo(message)
    for tally in summary.differing:
        counts = f"{tally.counted:,} counted, {tally.stored:,} stored"
        end = " (repaired)" if tally.repaired else _NOT_REPAIRED if repair else ""
        click.echo(f"{tally.campaign[:12]} form {tally.form[:12]}: {counts}{end}")
    if not summary.differing:
        which = "all other tallies" if summary.damaged else "all tallies"
        size = f"{plural(summary.campaigns, 'campaign')}, {plural(summary.reports, 'report')}"
        click.echo(f"{which} agree with the reports: {size}")
    if summary.deleted:
        which = plural(summary.deleted, "campaign")
        click.echo(f"{which} not counted: the reports are deleted, as keep_until says; the tallies stay")
    return int(bool(summary.damaged) or not all(tally.repaired for tally in summary.differing))
