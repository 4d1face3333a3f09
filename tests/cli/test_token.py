"""`priorveil token`, as an admin runs it against a curator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local_server import Server, served
from patience import PATIENCE
from priorveil.cli import run
from priorveil.collect.campaign import Campaign
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
    listed = "anna  analyst, until 2999-01-31T11:00:00Z\ntoken-file  admin, without end\n"
    assert answer("list") == (0, listed, "")

    monkeypatch.delenv("PRIORVEIL_TOKEN_FILE")
    monkeypatch.setenv("PRIORVEIL_TOKEN", secret.strip())
    status, _, said = answer("list")
    assert status == 2 and "role admin; yours has the role analyst" in said

    assert answer("revoke", "anna", "--token-file", str(server.token)) == (0, "revoked anna\n", "")
    status, _, said = answer("revoke", "nobody", "--token-file", str(server.token))
    assert status == 2 and "no token has this name" in said
    status, _, said = answer("list")
    assert status == 2 and "401" in said


def test_a_command_without_a_token_or_a_server_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PRIORVEIL_TOKEN", "PRIORVEIL_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert run(["token", "list"]) == 2
    assert "set PRIORVEIL_TOKEN, or give --token-file" in capsys.readouterr().err
    monkeypatch.setenv("PRIORVEIL_TOKEN", "a-secret-of-nobody")
    for server in (f"http://127.0.0.1:{free_port()}", "nonsense", "http://[", "ftp://127.0.0.1"):
        assert run(["token", "list", "--server", server]) == 2
        said = capsys.readouterr().err
        assert (
            said.startswith(f"error: the curator at {server} could not be reached") and said.count("\n") == 1
        )
