"""Limits on what people send without a token, by address and in total."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from local_server import TOKEN, running
from priorveil.curator.app import create_app
from priorveil.curator.rates import SubmissionRates
from priorveil.curator.settings import DEFAULTS, Listen, Settings, SubmissionLimits
from priorveil.curator.store import open_store
from priorveil.curator.tokens import Token
from priorveil.device.wire import fresh_id
from priorveil.errors import InvalidInput
from priorveil.questions.campaign import Campaign
from refusals import raises
from submissions import submission

FEW = SubmissionLimits(burst=3, rate=0.001, total_burst=20, total_rate=0.001)
Sender = Callable[..., Awaitable[httpx.Response]]


def test_an_address_recovers_with_time_and_does_not_harm_others() -> None:
    now = [0.0]
    rates = SubmissionRates(
        SubmissionLimits(burst=2, rate=0.5, total_burst=5, total_rate=1.0), lambda: now[0]
    )
    assert [rates.take("192.0.2.1") for _ in range(4)] == [0, 0, 2, 2]  # what is refused is not counted
    assert rates.take("192.0.2.2") == 0 and rates.take(None) == 0
    now[0] = 4.0
    assert rates.take("192.0.2.1") == 0
    assert [rates.take(None) for _ in range(5)] == [0, 0, 0, 0, 1]
    assert rates.take("192.0.2.9") == 1  # all together
    assert "192.0.2.1" not in repr(vars(rates))


def test_one_sender_has_all_addresses_of_its_network() -> None:
    rates = SubmissionRates(FEW)
    for i in range(3):
        assert rates.take(f"2001:db8::{i}") == 0
    assert rates.take("2001:db8::ffff") > 0 and rates.take("2001:db8:0:1::1") == 0


@asynccontextmanager
async def sending(
    folder: Path, campaign: Campaign, settings: Settings
) -> AsyncIterator[tuple[Sender, httpx.AsyncClient]]:
    """A function that sends one report from an address, and a client with an admin's token on this machine."""
    async with running(open_store(str(folder / "a.db")), campaign, settings=settings) as http:

        async def send(
            address: str, path: str = "reports", document: Any = None, **headers: str
        ) -> httpx.Response:
            body = submission(campaign)
            transport = httpx.ASGITransport(http.app, client=(address, 1))  # type: ignore[attr-defined]
            async with httpx.AsyncClient(transport=transport, base_url="http://curator") as client:
                names = {name.replace("_", "-"): value for name, value in headers.items()}
                url = f"/v1/campaigns/{campaign.id}/{path}"
                return await client.post(url, json=document or body, headers=names)

        yield send, http


async def test_an_address_sends_a_few_reports_and_others_go_on(tmp_path: Path, campaign: Campaign) -> None:
    async with sending(tmp_path, campaign, replace(DEFAULTS, submissions=FEW)) as (send, http):
        answers = [await send("192.0.2.1") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 2
        assert int(answers[-1].headers["retry-after"]) > 0
        assert answers[-1].headers["access-control-allow-origin"] == "*"
        assert "192.0.2.1" not in answers[-1].text
        assert (await send("192.0.2.2")).status_code == 200
        for path, document in (
            ("invitation", {"code": "0"}),
            ("withdrawals", {"report_ids": [fresh_id()]}),
        ):
            assert (await send("192.0.2.1", path, document)).status_code == 429
            assert (await send("192.0.2.2", path, document)).status_code == 200
        counters = (await http.get(f"/v1/campaigns/{campaign.id}/counters")).json()
        assert counters["reports"] == {"everyone": 4}


async def test_a_wrong_token_does_not_lift_the_limit_and_a_collectors_does(
    tmp_path: Path, campaign: Campaign
) -> None:
    async with sending(tmp_path, campaign, replace(DEFAULTS, submissions=FEW)) as (send, http):
        service = http.app.service  # type: ignore[attr-defined]
        for role in ("collect", "analyst"):
            await service.store.add_token(Token.of(f"secret-{role}", role, role))
        await service.load_tokens()

        async def count(token: str, address: str) -> int:
            header = {"authorization": f"Bearer {token}"}
            return [(await send(address, **header)).status_code for _ in range(5)].count(200)

        found = [
            await count(t, f"192.0.2.{i}")
            for i, t in enumerate((TOKEN, "secret-collect", "secret-analyst", "x"))
        ]
        assert found == [5, 5, 3, 3]


async def test_all_addresses_together_are_limited(tmp_path: Path, campaign: Campaign) -> None:
    async with sending(tmp_path, campaign, replace(DEFAULTS, submissions=FEW)) as (send, _):
        answers = [await send(f"192.0.2.{i}") for i in range(15)] + [
            await send("127.0.0.1") for _ in range(10)
        ]
        assert [answer.status_code for answer in answers] == [200] * 20 + [429] * 5


@pytest.mark.parametrize(
    ("trusted", "peer", "believed"),
    [
        ("127.0.0.1, ::1", "127.0.0.1", True),
        ("127.0.0.1, ::1", "198.51.100.1", False),
        ("", "127.0.0.1", False),
        ("198.51.100.0/24", "198.51.100.1", True),
    ],
)
async def test_only_a_trusted_proxy_says_where_a_request_comes_from(
    tmp_path: Path, campaign: Campaign, trusted: str, peer: str, believed: bool
) -> None:
    settings = replace(DEFAULTS, submissions=FEW, listen=Listen(trusted_proxies=trusted))
    async with sending(tmp_path, campaign, settings) as (send, _):
        one = [(await send(peer, x_real_ip="192.0.2.1")).status_code for _ in range(5)]
        several = [(await send(peer, x_real_ip=f"203.0.113.{i}")).status_code for i in range(5)]
        if believed:
            assert one == [200] * 3 + [429] * 2 and several == [200] * 5
        elif peer == "127.0.0.1":  # this machine itself
            assert one == several == [200] * 5
        else:
            assert one == [200] * 3 + [429] * 2 and several == [429] * 5


def test_a_proxy_that_is_no_address_is_refused(tmp_path: Path) -> None:
    with raises(InvalidInput, argument="trusted_proxies"):
        create_app(
            open_store(str(tmp_path / "a.db")), replace(DEFAULTS, listen=Listen(trusted_proxies="proxy"))
        )
