"""The Python client against a real server, and against a network that loses things."""

from __future__ import annotations

import dataclasses
import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_crashes import Server

from conftest import PRIOR
from priorveil import Prior
from priorveil.campaigns import Campaign, Report, ask
from priorveil.client import Client, NotSent, Patience, Refused
from priorveil.errors import BudgetExceeded, InvalidInput, OutsideDomain, PlanError

HEADER = {"authorization": "Bearer secret"}
NO_WAIT = Patience(attempts=4, sleep=lambda seconds: None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("client")
    running = Server(str(folder / "a.db"), folder)
    yield running
    running.stop()


def put_up(server: Server, campaign: Campaign) -> str:
    base = f"http://127.0.0.1:{server.port}"
    made = httpx.post(f"{base}/v1/campaigns", content=campaign.to_json(), headers=HEADER, verify=False)
    return base + str(made.json()["url"])


def counted(url: str) -> dict[str, int]:
    found = httpx.get(f"{url}/counters", headers=HEADER, verify=False).json()
    return dict(found["reports"])


class Lossy(httpx.BaseTransport):
    """A network that fails as told, request by request: before sending, after sending, or with a status."""

    def __init__(self, *faults: str | int) -> None:
        self.faults = list(faults)
        self.inner = httpx.HTTPTransport(verify=False)
        self.bodies: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.bodies.append(request.read())
            fault = self.faults.pop(0) if self.faults else None
            if fault == "before":
                raise httpx.ConnectError("gone")
            if isinstance(fault, int):
                return httpx.Response(fault, headers={"retry-after": "1"})
            answer = self.inner.handle_request(request)
            if fault == "after":
                answer.read()
                raise httpx.ReadError("the response was lost")
            return answer
        return self.inner.handle_request(request)


def test_answers_once_whatever_the_network_does(server: Server, tmp_path: Path) -> None:
    campaign = ask("Lossy?", PRIOR)
    url = put_up(server, campaign)
    network = Lossy("before", 503, "after", 429)
    with Client(
        url, network, state=tmp_path / "state", patience=dataclasses.replace(NO_WAIT, attempts=9)
    ) as client:
        report = client.answer("Private")
        assert client.answer("None") == report, "the first answer is replayed"
    assert len(set(network.bodies)) == 1 and len(network.bodies) == 5
    assert counted(url) == {"everyone": 1}
    with Client(url, state=tmp_path / "state") as again:
        assert again.answer("Government") == report, "also after a restart"
    assert counted(url) == {"everyone": 1}
    [kept] = (tmp_path / "state").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert set(json.loads(network.bodies[0])) == {"id", "plan", "report"}, "only the report leaves"


def test_unsent_reports_are_kept_and_sent_later(server: Server, tmp_path: Path) -> None:
    campaign = ask("Offline?", PRIOR)
    url = put_up(server, campaign)
    with Client(url, Lossy(*["before"] * 8), state=tmp_path, patience=NO_WAIT) as client:
        with pytest.raises(NotSent):
            client.answer("Private")
        assert client.flush() == 1
    assert counted(url) == {"everyone": 0}
    with Client(url, state=tmp_path, patience=NO_WAIT) as later:
        assert later.flush() == 0
        assert isinstance(later.answer("Private"), Report)
    assert counted(url) == {"everyone": 1}


def test_two_clients_of_one_person_agree(server: Server, tmp_path: Path) -> None:
    campaign = ask("Twice?", PRIOR)
    url = put_up(server, campaign)
    first, second = (Client(url, state=tmp_path) for _ in range(2))
    assert first.answer("Private") == second.answer("None")
    assert counted(url) == {"everyone": 1}


def test_cohorts_and_every_mechanism(server: Server, cohorts: Campaign) -> None:
    url = put_up(server, cohorts)
    for name in cohorts.cohorts:
        with Client(url) as client:
            client.answer("Private", cohort=name)
    assert counted(url) == dict.fromkeys(cohorts.cohorts, 1)
    with Client(url) as client, pytest.raises(InvalidInput, match="cohort"):
        client.answer("Private", cohort="nobody")


def test_what_cannot_be_trusted_is_not_answered(server: Server, campaign: Campaign) -> None:
    honest = json.loads(campaign.to_json())

    def serving(document: Any) -> httpx.MockTransport:
        return httpx.MockTransport(lambda request: httpx.Response(200, json=document))

    with (
        Client(f"http://x/v1/campaigns/{'0' * 64}", serving(honest)) as client,
        pytest.raises(InvalidInput, match="another"),
    ):
        client.answer("Private")
    tampered = json.loads(json.dumps(honest))
    weights = tampered["cohorts"]["everyone"]["mechanism"]["weights"]
    weights[0], weights[1] = weights[1], weights[0]
    with Client(f"http://x/{campaign.id}", serving(tampered)) as client, pytest.raises(PlanError):
        client.answer("Private")
    with (
        Client(f"http://127.0.0.1:{server.port}/v1/campaigns/{'0' * 64}") as client,
        pytest.raises(Refused, match="404"),
    ):
        client.answer("Private")
    with Client(f"http://x/{campaign.id}", serving(honest)) as client, pytest.raises(OutsideDomain):
        client.answer("Astronaut")


def test_closed_campaigns_cost_nothing(server: Server, tmp_path: Path) -> None:
    past = ask("Past?", PRIOR, closes=datetime.now(UTC) - timedelta(days=1))
    with Client(put_up(server, past), state=tmp_path) as client, pytest.raises(Refused, match="closed"):
        client.answer("Private")
    assert list(tmp_path.iterdir()) == []
    early = ask("Closed early?", PRIOR)
    url = put_up(server, early)
    httpx.post(f"{url}/close", headers=HEADER, verify=False)
    with Client(url, state=tmp_path) as client:
        for _ in range(2):
            with pytest.raises(Refused, match="closed"):
                client.answer("Private")


def test_the_limit_holds_over_all_campaigns_about_the_same_values(server: Server, tmp_path: Path) -> None:
    first, second = ask("Work?", PRIOR, 1.0), ask("Work, again?", PRIOR, 0.9)
    other = ask("Smoke?", Prior({"yes": 0.2, "no": 0.8}), 1.0)
    urls = [put_up(server, campaign) for campaign in (first, second, other)]
    with Client(urls[0], state=tmp_path, limit=1.5) as client:
        client.answer("Private")
    with Client(urls[1], state=tmp_path, limit=1.5) as client, pytest.raises(BudgetExceeded):
        client.answer("Private")
    with Client(urls[2], state=tmp_path, limit=1.5) as client:
        client.answer("no")
    with Client(urls[1], state=tmp_path, limit=0.5) as client, pytest.raises(BudgetExceeded):
        client.answer("Private")
    assert counted(urls[1]) == {"everyone": 0}


def test_a_broken_memory_is_said(tmp_path: Path) -> None:
    (tmp_path / f"{'0' * 64}.json").write_text("{")
    with pytest.raises(InvalidInput, match="remembered"):
        Client(f"http://x/{'0' * 64}", state=tmp_path)
