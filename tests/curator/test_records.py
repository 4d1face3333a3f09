"""Who did what: the names of tokens, times and counts, and nothing about a person."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from conftest import PRIOR
from curator.test_api import on, path, reports
from curator.test_tokens import new_token
from priorveil.curator.service import Service
from priorveil.questions.campaign import Campaign, ask, stamp

Entry = tuple[str, str, str | None, int | None]


async def records(http: httpx.AsyncClient) -> list[Entry]:
    """All records, oldest first, without their times."""
    found = (await http.get("/v1/records")).json()["records"]
    return [(r["who"], r["action"], r["campaign"], r["count"]) for r in reversed(found)]


async def test_what_admins_do_is_recorded_once(store_url: str, campaign: Campaign) -> None:
    async with on(store_url) as http:
        anna = await new_token(http, "anna", "admin")
        for _ in range(2):
            await http.post("/v1/campaigns", content=campaign.to_json())
        sent = reports(campaign, 5)
        await http.post(path(campaign, "/reports"), json={"reports": sent})
        ids = [report["report_id"] for report in sent]
        await http.post(path(campaign, "/withdrawals"), json={"report_ids": ids[:2]}, headers=anna)
        for action in ("close", "close", "reopen", "reopen"):
            await http.post(path(campaign, f"/{action}"), headers=anna)
        await http.get(path(campaign, "/reports"))
        await http.delete(path(campaign))
        await http.delete("/v1/tokens/anna")
        assert await records(http) == [
            ("tests", "made the admin token anna", None, None),
            ("tests", "created", campaign.id, None),
            ("anna", "removed", campaign.id, 2),
            ("anna", "closed", campaign.id, None),
            ("anna", "reopened", campaign.id, None),
            ("tests", "exported", campaign.id, 3),
            ("tests", "deleted", campaign.id, 3),
            ("tests", "revoked the token anna", None, None),
        ]
        text = (await http.get("/v1/records")).text
        assert not any(id in text for id in ids)


async def test_what_is_refused_or_only_read_is_not_recorded(store_url: str, campaign: Campaign) -> None:
    async with on(store_url, campaign) as http:
        analyst = await new_token(http, "anna", "analyst")
        before = await records(http)
        for method, where in (
            ("GET", "/v1/campaigns"),
            ("GET", path(campaign, "/estimates")),
            ("GET", path(campaign, "/counters")),
            ("GET", path(campaign, "/reports")),
            ("POST", path(campaign, "/close")),
            ("DELETE", path(campaign)),
            ("DELETE", "/v1/tokens/tests"),
        ):
            await http.request(method, where, headers=analyst)
        await http.delete(f"/v1/campaigns/{'0' * 64}")
        await http.get(path(campaign, "/reports"), params={"format": "xlsx"})
        await http.post(path(campaign, "/invitations"), json={"count": 3})
        assert await records(http) == before


async def test_people_leave_no_record(store_url: str, campaign: Campaign) -> None:
    """Not when they answer, and not when they withdraw."""
    async with on(store_url, campaign) as http:
        sent = reports(campaign, 1)[0]
        del http.headers["authorization"]
        assert (await http.post(path(campaign, "/reports"), json=sent)).json()["accepted"] == 1
        gone = await http.post(path(campaign, "/withdrawals"), json={"report_ids": [sent["report_id"]]})
        assert gone.status_code == 200
        assert await http.app.service.store.records(10) == []  # type: ignore[attr-defined]


async def test_invitations_are_counted(store_url: str) -> None:
    invited = ask("Whom?", PRIOR, admission="invitation")
    async with on(store_url, invited) as http:
        codes = (await http.post(path(invited, "/invitations"), json={"count": 3})).json()["codes"]
        assert await records(http) == [("tests", "invited", invited.id, 3)]
        text = (await http.get("/v1/records")).text
        assert not any(code in text for code in codes)


async def test_the_newest_records_come_first(
    store_url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("priorveil.curator.app._RECORDS", 3)
    async with on(store_url, campaign) as http:
        service: Service = http.app.service  # type: ignore[attr-defined]
        for number in range(5):
            await service.record("tests", "exported", campaign.id, number)
        found: list[dict[str, Any]] = (await http.get("/v1/records")).json()["records"]
        assert [record["count"] for record in found] == [4, 3, 2]
        assert all(record["at"] <= (stamp(service.life.clock()) or "") for record in found)
