"""Who may do what: the role of a token, its end, and how it is revoked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from curator.test_api import on, path, reports
from local_server import COLLECTOR, place, read_response
from patience import PATIENCE
from priorveil.curator.app import openapi
from priorveil.curator.maintenance import ensure_admin
from priorveil.curator.store import open_store
from priorveil.curator.tokens import Token
from priorveil.device.wire import PACKED, packed_body
from priorveil.questions.campaign import Campaign, stamp

# What each role may do, by the operations of the OpenAPI document; everything with a token is here.
COLLECT = {"own_token"}
ANALYST = {"campaigns", "estimates", "counters", *COLLECT}
ADMIN = {
    "create",
    "check_survey",
    "records",
    "close",
    "export",
    "invite",
    "free_invitations",
    "tokens",
    "create_token",
    "delete",
    "publish",
    "release",
    "reopen",
    "revoke_token",
    *ANALYST,
}
ALLOWED = {"admin": ADMIN, "analyst": ANALYST, "collect": COLLECT}


def operations() -> list[tuple[str, str, str]]:
    """The id, the method and the path of every operation that needs a token."""
    return [
        (operation["operationId"], method, path)
        for path, methods in openapi()["paths"].items()
        for method, operation in methods.items()
        if {} not in operation.get("security", [{}])
    ]


async def new_token(http: httpx.AsyncClient, name: str, role: str, **more: Any) -> dict[str, str]:
    """The header of a new token."""
    made = await http.post("/v1/tokens", json={"name": name, "role": role, **more})
    assert made.status_code == 201, made.text
    return {"authorization": f"Bearer {made.json()['secret']}"}


def test_the_table_of_roles_covers_every_operation() -> None:
    assert {id for id, _, _ in operations()} == ADMIN


@pytest.mark.parametrize("role", ALLOWED)
async def test_a_role_opens_its_operations_and_no_others(
    store_url: str, campaign: Campaign, role: str
) -> None:
    async with on(store_url, campaign) as http:
        header = await new_token(http, "anna", role)
        for id, method, where in operations():
            answer = await http.request(method, where.format(id=campaign.id, name="nobody"), headers=header)
            assert (answer.status_code != 403) == (id in ALLOWED[role]), (id, answer.text)
            assert answer.status_code != 401
            if answer.status_code == 403:
                assert "admin" in answer.json()["detail"] and role in answer.json()["detail"]


async def test_tokens_are_made_listed_and_revoked(store_url: str, campaign: Campaign) -> None:
    async with on(store_url, campaign) as http:
        made = await http.post("/v1/tokens", json={"name": "anna", "role": "analyst"})
        secret = made.json()["secret"]
        header = {"authorization": f"Bearer {secret}"}
        assert (await http.get("/v1/campaigns", headers=header)).status_code == 200
        again = await http.post("/v1/tokens", json={"name": "anna", "role": "admin"})
        assert again.status_code == 409 and "anna" in again.json()["detail"]
        listed = await http.get("/v1/tokens")
        assert listed.json()["tokens"] == [
            {"name": "anna", "role": "analyst", "expires": None},
            {"name": "tests", "role": "admin", "expires": None},
        ]
        assert secret not in listed.text
        assert (await http.delete("/v1/tokens/anna")).status_code == 204
        assert (await http.delete("/v1/tokens/anna")).status_code == 404
        assert (await http.get("/v1/campaigns", headers=header)).status_code == 401


async def test_a_holder_may_ask_what_a_token_opens(store_url: str, campaign: Campaign) -> None:
    async with on(store_url, campaign) as http:
        expires = "2999-01-01T00:00:00Z"
        for role in ("admin", "analyst", "collect"):
            headers = await new_token(http, f"a-{role}", role, expires=expires)
            own = await http.get("/v1/token", headers=headers)
            assert own.json() == {"name": f"a-{role}", "role": role, "expires": expires}
        for header in ("Bearer wrong", ""):
            assert (await http.get("/v1/token", headers={"authorization": header})).status_code == 401


async def test_a_token_ends(store_url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    async with on(store_url, campaign) as http:
        header = await new_token(http, "anna", "analyst", expires=stamp(end))
        assert (await http.get("/v1/tokens")).json()["tokens"][0]["expires"] == stamp(end)
        for now, status in ((end - timedelta(seconds=1), 200), (end, 401), (end + timedelta(days=1), 401)):
            clock = type("Clock", (), {"now": lambda zone, now=now: now})
            monkeypatch.setattr("priorveil.curator.tokens.datetime", clock)
            assert (await http.get("/v1/campaigns", headers=header)).status_code == status
        monkeypatch.undo()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 4000,
        b'{"name": "anna"}',
        b'{"name": "anna", "role": "king"}',
        b'{"name": "", "role": "admin"}',
        b'{"name": "a b", "role": "admin"}',
        b'{"name": "a\\n", "role": "admin"}',
        b'{"name": "' + b"a" * 65 + b'", "role": "admin"}',
        b'{"name": "anna", "role": "admin", "expires": "tomorrow"}',
        b'{"name": "anna", "role": "admin", "expires": "2027-01-01T00:00:00"}',
        b'{"name": "anna", "role": "admin", "secret": "x"}',
    ],
)
async def test_what_is_no_token_is_refused(tmp_path: Any, campaign: Campaign, body: bytes) -> None:
    async with on(str(tmp_path / "a.db"), campaign) as http:
        assert (await http.post("/v1/tokens", content=body)).status_code == 400
        assert [token["name"] for token in (await http.get("/v1/tokens")).json()["tokens"]] == ["tests"]


async def test_batches_need_a_collector(store_url: str, campaign: Campaign) -> None:
    """One report is open to everybody, whatever token it comes with; many at once could stuff the ballot."""
    packed = packed_body(campaign.form_for(None).id, bytes(16), bytes(8))
    statuses = {"nobody": 401, "a stranger": 401, "analyst": 403, "collect": 200, "admin": 200}
    async with on(store_url, campaign) as http:
        headers = {role: await new_token(http, role, role) for role in ALLOWED}
        headers |= {"nobody": {}, "a stranger": {"authorization": "Bearer wrong"}}
        del http.headers["authorization"]
        where, counts = path(campaign, "/reports"), []
        for who, status in statuses.items():
            one = await http.post(where, json=reports(campaign, 1)[0], headers=headers[who])
            assert one.status_code == 200
            for batch in ([], reports(campaign, 1), reports(campaign, 3), [0] * 5):
                answer = await http.post(where, json={"reports": batch}, headers=headers[who])
                assert answer.status_code == status
                assert status == 200 or "collect or admin" in answer.json()["detail"]
            answer = await http.post(where, content=packed, headers={"content-type": PACKED, **headers[who]})
            assert answer.status_code == status
            tallies = await http.app.service.store.tallies(campaign)  # type: ignore[attr-defined]
            counts.append(sum(tally.reports for tally in tallies.values()))
        assert counts == [1, 2, 3, 9, 14]


async def test_a_packed_batch_is_refused_before_its_body_is_read(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        head = there.request(b"", kind=PACKED).replace(b"content-length: 0", b"content-length: 100000")
        reader, writer = await there.connect()
        writer.write(head.replace(COLLECTOR.encode(), b"x: y"))
        status, _ = await asyncio.wait_for(read_response(reader), PATIENCE)
        writer.close()
        assert status == b"401"


async def _tokens(url: str) -> list[Token]:
    async with open_store(url) as store:
        return await store.tokens()


async def test_there_is_always_a_valid_admin(store_url: str) -> None:
    async with open_store(store_url) as store:
        for name, role, expires in (
            ("a", "analyst", None),
            ("b", "collect", None),
            ("c", "admin", "2001-01-01"),
        ):
            await store.add_token(Token.of(name, name, role, expires))
    first = await ensure_admin(store_url, None, another=False)
    assert first is not None and await ensure_admin(store_url, None, another=False) is None
    second = await ensure_admin(store_url, None, another=True)
    tokens = {token.name: token for token in await _tokens(store_url)}
    assert tokens["admin-1"] == Token.of(first, "admin-1", "admin")
    assert tokens["admin-2"] == Token.of(second or "", "admin-2", "admin")


async def test_a_changed_token_file_replaces_its_token(store_url: str) -> None:
    for secret in ("first secret", "second secret", "second secret"):
        assert await ensure_admin(store_url, secret, another=False) is None
        assert await _tokens(store_url) == [Token.of(secret, "token-file", "admin")]
