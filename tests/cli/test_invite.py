"""`priorveil invite`, as an admin runs it against a curator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import PRIOR
from local_server import Server, served
from priorveil.cli import run
from priorveil.device.client import AnswerStore, Client
from priorveil.questions.campaign import Campaign, ask


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


def test_people_answer_with_the_links(
    url: str, invited: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.json").write_text(invited.to_json(), encoding="utf-8")
    assert run(["invite", str(tmp_path / "c.json"), "--count", "3"]) == 0
    told = capsys.readouterr()
    links = told.out.splitlines()
    assert len({*links}) == 3 and all(link.startswith(f"{url}/answer/{invited.id}#code=") for link in links)
    assert "3 invitations" in told.err and "shown once" in told.err
    for link in links:
        with Client(link, state=AnswerStore()) as client:
            client.answer("Private")


def test_more_codes_than_reports_that_fit(
    url: str, limited: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["invite", limited.id, "--count", "2"]) == 0
    told = capsys.readouterr()
    assert "warning" not in told.err
    with Client(told.out.splitlines()[0], state=AnswerStore()) as client:
        client.answer("Private")
    assert run(["invite", limited.id, "--count", "2"]) == 0
    warning = "3 codes are free, but the campaign accepts only 2 further reports (most_reports = 3)"
    assert warning in capsys.readouterr().err


def test_codes_alone_and_links_to_another_address(
    url: str, invited: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["invite", invited.id, "--count", "10002", "--codes"]) == 0  # in two requests
    codes = capsys.readouterr().out.splitlines()
    assert len({*codes}) == 10_002 and all(len(bytes.fromhex(code)) == 16 for code in codes)
    assert run(["invite", invited.id, "--count", "1", "--site", "https://survey.example/"]) == 0
    assert capsys.readouterr().out.startswith(f"https://survey.example/answer/{invited.id}#code=")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--count", "0"], "--count"),
        ([], "--count"),
        (["--count", "1", "--token-file", "missing"], "missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    url: str, invited: Campaign, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert run(["invite", invited.id, *arguments]) == 2
    told = capsys.readouterr()
    assert complaint in told.err and told.err.count("\n") == 1 and told.out == ""


def test_a_campaign_that_is_not_there_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for campaign, complaint in (
        ("0" * 64, "no campaign has this id"),
        ("nobody.json", "64 hexadecimal digits"),
    ):
        assert run(["invite", campaign, "--count", "1"]) == 2
        assert complaint in capsys.readouterr().err
