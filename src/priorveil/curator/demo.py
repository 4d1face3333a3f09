"""A curator on this machine and devices that answer it over HTTP: the second half of `priorveil demo`."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal

from priorveil.curator.app import create_app
from priorveil.curator.maintenance import ensure_admin
from priorveil.curator.server import Address, find_address, serving
from priorveil.curator.store import open_store
from priorveil.device.wire import Report, fresh_id, words_to_hex
from priorveil.questions.campaign import Campaign

_AT_ONCE = 16


@dataclass(frozen=True)
class RunningCurator:
    """A curator in a thread of this process, the token that opens its dashboard, and a client for its campaign."""

    url: str
    token: str
    campaign: Campaign
    http: httpx.Client

    def estimates(self) -> dict[str, Any]:
        """What it estimates now."""
        return dict(self.http.get("estimates").raise_for_status().json())


@contextmanager
def run_curator(campaign: Campaign) -> Iterator[RunningCurator]:
    """A curator with this campaign, on SQLite in a folder that is removed with it."""
    token, address = secrets.token_urlsafe(24), find_address("127.0.0.1", 0)
    url = f"http://127.0.0.1:{address[1]}"
    base, headers = f"{url}/v1/campaigns/{campaign.id}/", {"authorization": f"Bearer {token}"}
    with (
        tempfile.TemporaryDirectory(prefix="priorveil-demo-") as folder,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_serve(f"{folder}/demo.db", campaign, token, address)),
        httpx.Client(base_url=base, headers=headers, timeout=30, trust_env=False) as http,  # without a proxy
    ):
        yield RunningCurator(url, token, campaign, http)


@asynccontextmanager
async def _serve(path: str, campaign: Campaign, token: str, address: Address) -> AsyncIterator[None]:
    await ensure_admin(path, token, another=False)
    app = create_app(open_store(path))
    async with app.lifespan(), serving(app, address):
        await app.service.store.add_campaign(campaign)
        yield


def send_answers(curator: RunningCurator, answers: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """Every device perturbs its answers and sends its report; after each, yield how many have."""
    campaign, form = curator.campaign, curator.campaign.form_for(None)

    def answer(its_answers: Mapping[str, Any]) -> None:
        (words,) = form.privatize(campaign.attribute_values(its_answers))
        report = Report(fresh_id(), campaign.id, form.id, words_to_hex(words))
        curator.http.post("reports", json=report.document()).raise_for_status()

    with (
        ThreadPoolExecutor(_AT_ONCE) as pool,
        closing(pool.map(answer, answers)) as sent,  # type: ignore[type-var] # a generator
    ):
        for number, _ in enumerate(sent, 1):
            yield number
