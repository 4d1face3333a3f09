"""A curator on this machine and devices that answer it over HTTP: the second half of `priorveil demo`."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import fresh_id, report_to_json
from priorveil.curator.app import create_app
from priorveil.curator.server import find_address, serving
from priorveil.curator.store import open_store, token_digest

_AT_ONCE = 16


@dataclass(frozen=True)
class RunningCurator:
    """A curator that runs in a thread of this process, and the token that opens its dashboard."""

    url: str
    token: str
    campaign: Campaign

    @property
    def dashboard(self) -> str:
        """Where its reports can be watched."""
        return f"{self.url}/dashboard#{self.campaign.id}"

    @property
    def answer_page(self) -> str:
        """Where a person can answer."""
        return f"{self.url}/answer/{self.campaign.id}"

    def estimates(self) -> dict[str, Any]:
        """What it estimates now."""
        with self.client() as http:
            return dict(http.get("estimates").raise_for_status().json())

    def client(self) -> httpx.Client:
        """A client for its campaign: straight to this machine, without a proxy or certificates."""
        url = f"{self.url}/v1/campaigns/{self.campaign.id}/"
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=url, headers=headers, timeout=30, verify=False, trust_env=False)


@contextmanager
def run_curator(campaign: Campaign) -> Iterator[RunningCurator]:
    """A curator with this campaign, on SQLite in a folder that is removed with it."""
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="priorveil-demo-") as folder, start_blocking_portal() as portal:
        server = _serve(campaign, token, Path(folder) / "demo.db")
        with portal.wrap_async_context_manager(server) as url:
            yield RunningCurator(url, token, campaign)


@asynccontextmanager
async def _serve(campaign: Campaign, token: str, path: Path) -> AsyncIterator[str]:
    address = find_address("127.0.0.1", 0)
    async with open_store(str(path)) as store:
        await store.add_token(token_digest(token))
        await store.add_campaign(campaign)
    app = create_app(open_store(str(path)))
    async with app.lifespan(), serving(app, address):
        yield f"http://127.0.0.1:{address[1]}"


def send_answers(curator: RunningCurator, codes: Sequence[int], done: Callable[[], object]) -> None:
    """Every device perturbs its value and sends its report; `done` is called for each."""
    plan = curator.campaign.plan_for(None)

    def answer(code: int) -> None:
        report = report_to_json(plan.mechanism, plan.privatize(code))
        http.post("reports", json={"id": fresh_id(), "plan": plan.id, "report": report}).raise_for_status()

    with (
        curator.client() as http,
        ThreadPoolExecutor(_AT_ONCE) as pool,
        closing(pool.map(answer, codes)) as answers,  # type: ignore[type-var] # a generator
    ):
        for _ in answers:
            done()
