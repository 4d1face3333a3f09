"""`priorveil token`, as an admin runs it against a curator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local_server import Server, served
from patience import PATIENCE
from priorveil.cli import run
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, campaign: Campaign) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("token")
    with served(str(folder / "a.db"), folder, campaign) as [server]:
        yield server


def test_tokens_from_the_command_line(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{server.port}"
    monkeypatch.setenv("PRIORVEIL_SERVER", url)
    monkeypatch.setenv("PRIORVEIL_TOKEN_FILE", str(server.token))

    def answer(*arguments: str) -> tuple[int, str, str]:
        status = run(["token", *arguments])
        return status, *capsys.readouterr()

    status, secret, said = answer(
        "new", "anna", "--role", "analyst", "--expires", "2999-01-31T12:00:00+01:00"
    )
    assert status == 0 and secret.count("\n") == 1 and "shown once" in said
    header = {"authorization": f"Bearer {secret.strip()}"}
    assert httpx.get(f"{url}/v1/campaigns", headers=header, timeout=PATIENCE).status_code == 200
    listed = "anna  analyst, until 2999-01-31T11:00:00Z\ntoken-file  admin, never expires\n"
    assert answer("list") == (0, listed, "")

    status, secret_of_dead, said = answer(
        "new", "y", "--role", "analyst", "--expires", "2020-01-01T00:00:00Z"
    )
    assert (status, secret_of_dead) == (2, "") and "2020-01-01T00:00:00Z is in the past" in said
    for name in ("anna b", "-x", "", "x" * 65, "x\n"):
        status, _, said = answer("new", "--role", "analyst", "--", name)
        assert status == 2 and "use 1 to 64 letters a to z, digits, dots, _ and -" in said
    monkeypatch.delenv("PRIORVEIL_TOKEN_FILE")
    monkeypatch.setenv("PRIORVEIL_TOKEN", secret.strip())
    status, _, said = answer("list")
    assert status == 2 and "role admin; yours has the role analyst" in said

    assert answer("revoke", "anna", "--token-file", str(server.token)) == (0, "revoked anna\n", "")
    status, _, said = answer("revoke", "nobody", "--token-file", str(server.token))
    assert status == 2 and "no token has this name" in said
    status, _, said = answer("list")
    assert status == 2 and "401: the curator does not know this token" in said


def test_a_command_without_a_token_or_a_server_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PRIORVEIL_TOKEN", "PRIORVEIL_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert run(["token", "list"]) == 2
    assert "set PRIORVEIL_TOKEN, or give --token-file" in capsys.readouterr().err
    monkeypatch.setenv("PRIORVEIL_TOKEN", "a-secret-of-nobody")
    for server in (f"http://127.0.0.1:{free_port()}", "http://[", "ftp://127.0.0.1"):
        assert run(["token", "list", "--server", server]) == 2
        said = capsys.readouterr().err
        assert (
            said.startswith(f"error: the curator at {server} could not be reached") and said.count("\n") == 1
        )
    assert run(["token", "list", "--server", "127.0.0.1:8471"]) == 2
    assert "give it with http:// or https://, such as http://127.0.0.1:8471" in capsys.readouterr().err
    assert run(["campaign", "close", "nix.json"]) == 2
    assert "nix.json: there is no such file" in capsys.readouterr().err
