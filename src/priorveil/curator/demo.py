"""A curator on this machine and devices that answer it over HTTP: the second half of `priorveil demo`."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import fresh_id, report_to_json
from priorveil.curator.app import create_app
from priorveil.curator.server import Address, find_address, serving
from priorveil.curator.store import ensure_admin, open_store

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


def send_answers(curator: RunningCurator, codes: Sequence[int]) -> Iterator[int]:
    """Every device perturbs its value and sends its report; after each, yield how many have."""
    plan = curator.campaign.plan_for(None)

    def answer(code: int) -> None:
        report = report_to_json(plan.mechanism, plan.privatize(code, codes=True))
        body = {"report_id": fresh_id(), "plan": plan.id, "report": report}
        curator.http.post("reports", json=body).raise_for_status()

    with (
        ThreadPoolExecutor(_AT_ONCE) as pool,
        closing(pool.map(answer, codes)) as answers,  # type: ignore[type-var] # a generator
    ):
        for number, _ in enumerate(answers, 1):
            yield number
