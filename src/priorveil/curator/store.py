"""What a store promises, and what both share. Reports go in once; tallies change with them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import ID_BYTES, WORD_BYTES, unpack_reports, words_per_report
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.mechanisms import Mechanism
from priorveil.plans.tally import Tally

Cells = npt.NDArray[np.int64]  # the number of reports, then what the plan's mechanism keeps, in one row
CHUNK = 500  # cells stored together; only chunks that change are written


class StoreFull(PriorveilError):
    """The disk is full: nothing of the transaction was kept, and the next one may succeed."""


class Unavailable(PriorveilError):
    """The database does not answer for now."""


class Damaged(PriorveilError):
    """A stored campaign that does not load, or is not the one that was stored. Says nothing of its content."""

    def __init__(self, campaign: str, why: str) -> None:
        super().__init__(f"the stored campaign {campaign[:12]} is damaged ({why}): restore it from a backup")
        self.campaign = campaign
        self.why = why


class SchemaTooNew(PriorveilError):
    """The database was made by a newer priorveil."""


class Group(NamedTuple):
    """Valid reports of one plan, for one transaction: `ids` 16 bytes each, `words` 8 bytes each."""

    campaign: str
    plan: str
    mechanism: Mechanism
    ids: bytes
    words: bytes

    def id_of(self, place: int) -> str:
        """The id of one report, as its sender wrote it."""
        return self.ids[ID_BYTES * place : ID_BYTES * (place + 1)].hex()


@dataclass(frozen=True, slots=True)
class Stored:
    """A campaign as the store holds it; `closed` is the time at which the curator closed it early."""

    campaign: Campaign
    closed: str | None


def read_stored(campaign: str, document: str, closed: str | None) -> Stored:
    """A campaign from its row, its certificates proven again; raises `Damaged`."""
    try:
        found = Campaign.from_json(document)
    except PriorveilError as error:
        raise Damaged(campaign, type(error).__name__) from error
    if found.id != campaign:
        raise Damaged(campaign, "its content has another id")
    return Stored(found, closed)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some stored reports of one plan, for export and recounting."""

    plan: str
    ids: bytes
    words: bytes


class Store(Protocol):
    """Where campaigns, reports and tallies live. All methods may be called from one event loop at once."""

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...

    async def ready(self) -> None:
        """Return if a report could be stored now; raise `Unavailable` if not."""
        ...

    async def commit(self, groups: Sequence[Group]) -> int:
        """Store and count what is new, durably: how many. All or nothing; one group for each plan."""
        ...

    async def add_campaign(self, campaign: Campaign) -> bool:
        """Store a campaign; False if it was there."""
        ...

    async def close_campaign(self, campaign: str, when: str) -> None:
        """Take no more reports for this campaign."""
        ...

    async def campaign_ids(self) -> list[tuple[str, str | None]]:
        """All campaigns, oldest first, with the time at which each was closed early."""
        ...

    async def campaign(self, campaign: str) -> Stored | None:
        """A campaign by its id."""
        ...

    async def tallies(self, campaign: Campaign) -> dict[str, Tally]:
        """What has been counted, by plan: the sum of all shards."""
        ...

    def reports(self, campaign: Campaign) -> AsyncIterator[Chunk]:
        """All reports of a campaign, in pieces."""
        ...

    async def replace_tallies(self, campaign: Campaign, tallies: Mapping[str, Tally]) -> None:
        """Put recounted tallies in the place of the stored ones. Only while nobody writes."""
        ...

    async def refuse(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add to the refusals, by campaign and reason."""
        ...

    async def refusals(self, campaign: str) -> dict[str, int]:
        """How many reports were refused, by reason."""
        ...

    async def add_token(self, digest: bytes) -> None:
        """Remember the SHA-256 of a curator token."""
        ...

    async def token_digests(self) -> list[bytes]:
        """The SHA-256 of every curator token."""
        ...


def open_store(url: str, create: bool = True) -> Store:
    """The store at a URL: `postgresql://...`, or the path of an SQLite file (also as `sqlite:///path`).

    Without `create` nothing is made or brought up to date: opening a store that no curator has made is refused.
    """
    if url.startswith(("postgresql://", "postgres://")):
        from priorveil.curator.postgres import PostgresStore

        return PostgresStore(url, create=create)
    path = url.removeprefix("sqlite:///")
    if "://" in path or not path:
        advice = "give the path of an SQLite file or postgresql://user@host/database"
        raise InvalidInput("store", shown(url), advice)
    from priorveil.curator.sqlite import SqliteStore

    return SqliteStore(path, create=create)


def refuse_schema(store: str, version: int, known: int, create: bool) -> None:
    """Refuse a store whose schema we cannot use: a newer one; without `create` also an older one, or none (0)."""
    if version > known:
        raise SchemaTooNew(f"{store} has schema {version}, this priorveil knows {known}: use a newer one")
    if version < known and not create:
        none, old = "no curator has stored anything here", f"its schema is {version}, {known} is needed"
        advice = (
            "start `priorveil serve` on it once" if version else "give the one that `priorveil serve` uses"
        )
        raise InvalidInput("store", store, f"{old if version else none}: {advice}")


def shown(url: str) -> str:
    """A store's address as it may be shown or logged: without its password.

    >>> shown("postgresql://me:secret@host/db"), shown("postgresql:///db?password=secret&sslpassword=secret")
    ('postgresql://me:***@host/db', 'postgresql:///db?password=***&sslpassword=***')
    """
    before = re.sub(r"^(\w+://[^/:@]*):.*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])((?:ssl)?password=)[^&]*", r"\1***", before)


def token_digest(token: str) -> bytes:
    """What is stored of a curator token. Tokens are random and long, so one hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def only(group: Group, chosen: npt.NDArray[np.bool_ | np.int64]) -> Group:
    """Some of a group's reports, by a mask or by their places."""
    size = WORD_BYTES * words_per_report(group.mechanism)
    ids = np.frombuffer(group.ids, dtype=f"V{ID_BYTES}")[chosen].tobytes()
    words = np.frombuffer(group.words, dtype=f"V{size}")[chosen].tobytes()
    return Group(group.campaign, group.plan, group.mechanism, ids, words)


# -- tallies as rows of cells --------------------------------------------------------------------------------


def counted(mechanism: Mechanism, words: bytes) -> Cells:
    """The cells of some reports."""
    reports = unpack_reports(mechanism, words)
    return np.concatenate([[len(reports)], mechanism.accumulate(reports).ravel()])


def no_cells(mechanism: Mechanism) -> Cells:
    """The cells of no reports."""
    return counted(mechanism, b"")


def as_tally(plan: str, mechanism: Mechanism, cells: Cells) -> Tally:
    """The tally that the cells stand for."""
    shape = mechanism.accumulate(unpack_reports(mechanism, b"")).shape
    return Tally(plan, cells[1:].reshape(shape), int(cells[0]))


def as_cells(tally: Tally) -> Cells:
    """The cells of a tally."""
    return np.concatenate([[tally.reports], tally.counts.ravel()])


def changed_chunks(delta: Cells) -> list[int]:
    """The numbers of the chunks in which something changed.

    >>> changed_chunks(np.array([1] + [0] * 999 + [1]))
    [0, 2]
    """
    changed: list[int] = np.unique(np.flatnonzero(delta) // CHUNK).tolist()
    return changed


def chunk(cells: Cells, number: int) -> bytes:
    """One chunk as it is stored."""
    return cells[number * CHUNK : (number + 1) * CHUNK].astype("<i8").tobytes()


def add_chunk(cells: Cells, number: int, stored: bytes) -> None:
    """Add a stored chunk to the cells."""
    cells[number * CHUNK : (number + 1) * CHUNK] += np.frombuffer(stored, dtype="<i8")


async def recounted(store: Store, campaign: Campaign) -> dict[str, Tally]:
    """The tallies made again from the stored reports, in pieces."""
    mechanisms = {plan.id: plan.mechanism for plan in campaign.plans.values()}
    cells = {plan: no_cells(mechanism) for plan, mechanism in mechanisms.items()}
    async for part in store.reports(campaign):
        cells[part.plan] += counted(mechanisms[part.plan], part.words)
    return {plan: as_tally(plan, mechanisms[plan], found) for plan, found in cells.items()}
