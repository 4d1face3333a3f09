"""`priorveil campaign list`, `release`, `close`, `reopen`, `publish` and `delete`, as an admin runs them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from conftest import PRIOR
from local_server import Server
from patience import PATIENCE
from priorveil.catalogue import say
from priorveil.cli import run
from priorveil.questions.campaign import Campaign, ask
from submissions import submission


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("life")
    running = Server(str(folder / "a.db"), folder)
    yield running
    running.stop()


class Admin:
    """Runs commands with the token, and types answers to what they ask."""

    def __init__(self, curator: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url, self.monkeypatch = f"http://127.0.0.1:{curator.port}", monkeypatch
        self.secret = curator.token.read_text()
        monkeypatch.setenv("PRIORVEIL_TOKEN", self.secret)
        monkeypatch.setenv("PRIORVEIL_SERVER", self.url)
        monkeypatch.delenv("HTTP_PROXY", raising=False)

    def create(self, campaign: Campaign) -> None:
        header = {"authorization": f"Bearer {self.secret}"}
        where, text = f"{self.url}/v1/campaigns", campaign.to_json()
        assert httpx.post(where, content=text, headers=header, timeout=PATIENCE).status_code == 201

    def state(self, campaign: Campaign) -> str:
        status = httpx.get(f"{self.url}/v1/campaigns/{campaign.id}/status", timeout=PATIENCE)
        return str(status.json()["state"]) if status.status_code == 200 else str(status.status_code)

    def run(self, *arguments: str, typed: str = "") -> int:
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        return run(["campaign", *arguments])


@pytest.fixture
def admin(curator: Server, monkeypatch: pytest.MonkeyPatch) -> Admin:
    return Admin(curator, monkeypatch)


def test_a_campaign_is_closed_reopened_and_deleted(
    admin: Admin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = ask("Do you sing?", PRIOR)
    admin.create(campaign)
    file = tmp_path / "campaign.json"
    file.write_text(campaign.to_json(), encoding="utf-8")
    assert admin.run("list") == 0
    assert f"{campaign.id}  open  Do you sing?\n" in capsys.readouterr().out
    assert admin.run("close", str(file), typed="n\n") == 1
    assert capsys.readouterr().err.endswith("nothing was changed\n")
    assert admin.state(campaign) == "open"
    assert admin.run("close", str(file), typed="y\n") == 0
    assert admin.state(campaign) == "closed"
    assert admin.run("reopen", campaign.id, "--yes") == 0
    assert admin.state(campaign) == "open"
    assert admin.run("delete", campaign.id, typed="000000\n") == 2
    assert admin.state(campaign) == "open"
    capsys.readouterr()
    assert admin.run("delete", campaign.id, typed=f"{campaign.id[:6]}\n") == 0
    assert capsys.readouterr().out == f"deleted {campaign.id} with 0 reports\n"
    assert admin.state(campaign) == "404"


def test_results_are_published_after_the_end_and_only_when_confirmed(
    admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = ask("Do you swim?", PRIOR)
    admin.create(campaign)
    assert admin.run("publish", campaign.id, "--yes") == 2
    assert "close it" in capsys.readouterr().err
    assert admin.run("publish", campaign.id, typed="y\n") == 2
    said = capsys.readouterr()
    assert (
        "the campaign is open: close it first" in said.err and "cannot be undone" not in said.err + said.out
    )
    assert admin.run("close", campaign.id, "--yes") == 0
    place = f"{admin.url}/v1/campaigns/{campaign.id}/publication"
    assert admin.run("publish", campaign.id, typed="n\n") == 1
    assert httpx.get(place, timeout=PATIENCE).status_code == 404
    assert "The campaign has 0 reports. Results that would be withheld: 1 of 1." in capsys.readouterr().err
    assert admin.run("publish", campaign.id, typed="y\n") == 0
    assert capsys.readouterr().out == f"published {admin.url}/published/{campaign.id}\n"
    assert httpx.get(place, timeout=PATIENCE).status_code == 200
    assert admin.run("reopen", campaign.id, "--yes") == 2
    capsys.readouterr()
    assert admin.run("list") == 0
    assert f"{campaign.id}  published  Do you swim?\n" in capsys.readouterr().out


def test_results_are_released_to_analysts(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = ask("Do you row?", PRIOR, smallest_count=1)
    admin.create(campaign)
    assert admin.run("release", campaign.id, typed="n\n") == 1
    assert "The campaign has 0 reports. Results that would be withheld: 1 of 1." in capsys.readouterr().err
    assert admin.run("release", campaign.id, typed="y\n") == 2
    assert "409: too few further reports for new results: 0 of 20" in capsys.readouterr().err
    place = f"{admin.url}/v1/campaigns/{campaign.id}/reports"
    header = {"authorization": f"Bearer {admin.secret}"}
    sent = {"reports": [submission(campaign) for _ in range(20)]}
    assert httpx.post(place, json=sent, headers=header, timeout=PATIENCE).json()["accepted"] == 20
    assert admin.run("release", campaign.id, "--yes") == 0
    assert capsys.readouterr().out == f"released {campaign.id}: results from 20 reports\n"


def test_publishing_says_what_the_totals_tell(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = ask("Do you dive?", PRIOR, smallest_count=1, admission="invitation")
    admin.create(campaign)
    place, header = f"{admin.url}/v1/campaigns/{campaign.id}", {"authorization": f"Bearer {admin.secret}"}
    made = httpx.post(f"{place}/invitations", json={"count": 40}, headers=header, timeout=PATIENCE)
    sent = {"reports": [{**submission(campaign), "code": code} for code in made.json()["codes"]]}
    assert (
        httpx.post(f"{place}/reports", json=sent, headers=header, timeout=PATIENCE).json()["accepted"] == 40
    )
    assert admin.run("close", campaign.id, "--yes") == admin.run("publish", campaign.id, "--yes") == 0
    said = capsys.readouterr().err
    assert (
        say("totalsTitle") in said and "plus 1 in 1,000,000" in said and "at most 10 % of the people" in said
    )


def test_what_has_ended_does_not_reopen(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = ask("Was it?", PRIOR, closes=datetime(2026, 1, 1, tzinfo=UTC))
    admin.create(campaign)
    assert admin.run("reopen", campaign.id, "--yes") == 2
    assert "409" in capsys.readouterr().err
