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
    return asyncio.run(_recount(store, repair))


async def _recount(url: str, repair: bool) -> int:
    """Recount every campaign of a store, print what is wrong, and return the exit status."""
    from priorveil.curator.store import Damaged, open_store

    campaigns = reports = differing = damaged = 0
    store = open_store(url, create=False)
    await store.open()
    try:
        for campaign_id, _ in await store.campaign_ids():
            try:
                stored = await store.campaign(campaign_id)
            except Damaged as error:
                click.echo(str(error))
                damaged += 1
                continue
            if stored is None:
                continue
            counts, tallies = await store.recount(stored.campaign), await store.tallies(stored.campaign)
            campaigns += 1
            reports += sum(tally.reports for tally in counts.values())
            wrong = {plan: tally for plan, tally in counts.items() if tally != tallies[plan]}
            if wrong and repair:
                await store.replace_tallies(stored.campaign, wrong)
            differing += len(wrong)
            for plan, tally in wrong.items():
                click.echo(
                    f"{campaign_id[:12]} plan {plan[:12]}: {tallies[plan].reports:,} counted, "
                    f"{tally.reports:,} stored{' (repaired)' if repair else ''}"
                )
    finally:
        await store.close()
    if not differing:
        which = "all other tallies" if damaged else "all tallies"
        size = f"{plural(campaigns, 'campaign')}, {plural(reports, 'report')}"
        click.echo(f"{which} agree with the reports: {size}")
    return 1 if damaged or (differing and not repair) else 0
