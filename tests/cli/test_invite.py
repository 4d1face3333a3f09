"""`priorveil invite`, as an admin runs it against a curator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import PRIOR
from local_server import Server, served
from priorveil.device.client import AnswerStore, Client
from priorveil.questions.campaign import Campaign, ask
from terminal import done, refused


@pytest.fixture(scope="module")
def invited() -> Campaign:
    return ask("Who invited you?", PRIOR, admission="invitation")


@pytest.fixture(scope="module")
def limited() -> Campaign:
    return ask("Who came first?", PRIOR, admission="invitation", most_reports=3)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, invited: Campaign, limited: Campaign
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("invite")
    with served(str(folder / "a.db"), folder, invited, limited) as [server]:
        yield server


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"http://127.0.0.1:{server.port}"
    monkeypatch.setenv("PRIORVEIL_SERVER", url)
    monkeypatch.setenv("PRIORVEIL_TOKEN_FILE", str(server.token))
    return url


def test_people_answer_with_the_links(url: str, invited: Campaign, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(invited.to_json(), encoding="utf-8")
    told = done("invite", str(tmp_path / "c.json"), "--count", "3")
    links = told.out.splitlines()
    assert len({*links}) == 3 and all(link.startswith(f"{url}/answer/{invited.id}#code=") for link in links)
    assert "3 invitations" in told.err and "shown once" in told.err
    for link in links:
        with Client(link, state=AnswerStore()) as client:
            client.answer("Private")


def test_more_codes_than_reports_that_fit(url: str, limited: Campaign) -> None:
    told = done("invite", limited.id, "--count", "2")
    assert "warning" not in told.err
    with Client(told.out.splitlines()[0], state=AnswerStore()) as client:
        client.answer("Private")
    warning = "3 codes are free, but the campaign accepts only 2 further reports (most_reports = 3)"
    assert warning in done("invite", limited.id, "--count", "2").err


def test_codes_alone_and_links_to_another_address(url: str, invited: Campaign) -> None:
    codes = done("invite", invited.id, "--count", "10002", "--codes").out.splitlines()  # in two requests
    assert len({*codes}) == 10_002 and all(len(bytes.fromhex(code)) == 16 for code in codes)
    link = done("invite", invited.id, "--count", "1", "--site", "https://survey.example/").out
    assert link.startswith(f"https://survey.example/answer/{invited.id}#code=")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--count", "0"], "--count"),
        ([], "--count"),
        (["--count", "1", "--token-file", "missing"], "missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    url: str, invited: Campaign, arguments: list[str], complaint: str
) -> None:
    assert complaint in refused("invite", invited.id, *arguments)


def test_a_campaign_that_is_not_there_is_refused(url: str) -> None:
    for campaign, complaint in (
        ("0" * 64, "no campaign has this id"),
        ("nobody.json", "64 hexadecimal digits"),
    ):
        assert complaint in refused("invite", campaign, "--count", "1")
