"""Maintenance of a store by its address: the first token, backups, and counting all reports again."""

from __future__ import annotations

import itertools
import secrets
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from priorveil.atomic_files import atomic_write
from priorveil.curator.store import Damaged, open_store
from priorveil.curator.tokens import SECRET_BYTES, Token

_TOKEN_OF_FILE = "token-file"


async def ensure_admin(url: str, secret: str | None, another: bool, migrate: bool = False) -> str | None:
    """Make sure that the store has a valid admin token; return the secret of one that is made here.

    With a secret, that of a file, its token replaces the one that an earlier secret of a file had. With `another` a
    new token is made although there are some.
    """
    async with open_store(url, migrate=migrate) as store:
        if secret is not None:
            await store.replace_token(Token.of(secret, _TOKEN_OF_FILE, "admin"))
            return None
        admins = [token for token in await store.tokens() if token.role == "admin" and token.is_valid()]
        if admins and not another:
            return None
        new_secret = secrets.token_urlsafe(SECRET_BYTES)
        names = (f"admin-{number}" for number in itertools.count(1))
        while not await store.add_token(Token.of(new_secret, next(names), "admin")):
            pass
        return new_secret


async def back_up_store(url: str, file: Path, replace: bool = False) -> None:
    """Write a backup of a store that a curator has made into a file that only its owner can read."""
    store = open_store(url, create=False)
    with atomic_write(file, replace, private=True, argument="file") as draft:
        await store.back_up(draft)


async def restore_store(file: Path, url: str, replace: bool = False) -> None:
    """Fill a store from a backup; with `replace`, instead of what it holds."""
    await open_store(url).restore(file, replace)


class DifferingTally(NamedTuple):
    """A tally that is wrong: how many reports it counts, how many are stored, and whether it was corrected."""

    campaign: str
    form: str
    counted: int
    stored: int
    repaired: bool


@dataclass
class Recount:
    """What was found when all stored reports were counted again.

    `damaged` has a message for each campaign that cannot be read. `deleted` is the number of campaigns whose reports
    were deleted, so that their tallies cannot be checked.
    """

    campaigns: int = 0
    deleted: int = 0
    reports: int = 0
    damaged: list[str] = field(default_factory=list)
    differing: list[DifferingTally] = field(default_factory=list)


async def recount_store(url: str, repair: bool) -> Recount:
    """Count the reports of every campaign again; with `repair`, replace the tallies that are wrong.

    Those of a published campaign stay: its results were made from them, and never change.
    """
    recount = Recount()
    async with open_store(url, create=False) as store, store.sole_writer() if repair else nullcontext():
        for campaign_id, *_ in await store.campaign_ids():
            try:
                stored = await store.campaign(campaign_id)
            except Damaged as error:
                recount.damaged.append(str(error))
                continue
            if stored is None:
                continue
            if stored.deleted is not None:
                recount.deleted += 1
                continue
            counts, tallies = await store.recount(stored.campaign), await store.tallies(stored.campaign)
            corrections = {form: tally for form, tally in counts.items() if tally != tallies[form]}
            repaired = repair and stored.published is None
            if corrections and repaired:
                await store.replace_tallies(stored.campaign, corrections)
            recount.campaigns += 1
            recount.reports += sum(tally.reports for tally in counts.values())
            recount.differing += [
                DifferingTally(campaign_id, form, tallies[form].reports, tally.reports, repaired)
                for form, tally in corrections.items()
            ]
    return recount
