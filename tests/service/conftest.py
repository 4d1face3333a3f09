"""A curator on each store, for real: SQLite in a file, PostgreSQL in a server of our own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from postgres_server import PostgresServer

from priorveil import Histogram, Prior, design
from priorveil.collect.campaign import Campaign, ask
from priorveil.curator import create_app
from priorveil.curator.app import Curator, RequestLimits
from priorveil.curator.store import Store, token_digest

TOKEN = "a curator's token"
PRIOR = Prior({"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07})


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(fsync="off")  # faster; a restart of the server still loses nothing
    yield server
    server.remove()


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    """One cohort, table plan, estimates from the first report on."""
    return ask("What kind of work do you do?", PRIOR, smallest_count=1)


@pytest.fixture(scope="session")
def cohorts() -> Campaign:
    """Every kind of mechanism at once."""
    plans = {
        method: design(PRIOR, 1.0, Histogram(), method=method)
        for method in ("columns", "arc", "unary", "hashing")
    }
    return Campaign("What kind of work do you do?", plans, smallest_count=1)


_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "reports.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url(f"test{next(_numbers)}")


@asynccontextmanager
async def running(
    store: Store, *campaigns: Campaign, limits: RequestLimits | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """The app on a store with these campaigns, and a client that has the token."""
    app = create_app(store, limits)
    assert isinstance(app, Curator)
    async with app.lifespan():
        await store.add_token(token_digest(TOKEN))
        for campaign in campaigns:
            await store.add_campaign(campaign)
        await app.service.refresh()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        header = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://curator", headers=header) as http:
            http.app = app  # type: ignore[attr-defined]
            yield http
