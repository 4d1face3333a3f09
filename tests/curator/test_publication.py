"""Results are published once, after a campaign has closed; from then on no report comes or goes."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest

from curator.test_campaign_life import CLOSES, KEPT, TIMES, Curator, on
from local_server import report
from priorveil.curator import service
from priorveil.curator.admission import withdraw
from priorveil.curator.store import Ended, StillOpen, Store
from refusals import raises
from submissions import plan_of


async def publish(curator: Curator) -> httpx.Response:
    return await curator.http.post(f"{curator.place}/publication")


async def published(curator: Curator) -> bytes:
    response = await curator.http.get(f"{curator.place}/publication", headers={"authorization": ""})
    assert response.status_code == 200
    return response.content


async def close_and_publish(curator: Curator) -> bytes:
    await curator.http.post(f"{curator.place}/close")
    assert (await publish(curator)).status_code == 201
    return await published(curator)


async def is_final(curator: Curator) -> bool:
    """Whether the estimates say that they are published."""
    found: bool = (await curator.http.get(f"{curator.place}/estimates")).json()["published"]
    return found


async def test_results_are_published_once_after_the_campaign_has_closed(store_url: str) -> None:
    async with on(store_url) as curator:
        known = os.urandom(16).hex()
        for report_id in (known, None, None):
            await curator.upload(report_id)
        refused = await publish(curator)
        assert (refused.status_code, "close it" in refused.json()["detail"]) == (409, True)
        assert (await curator.http.get(f"{curator.place}/publication")).status_code == 404
        assert not await is_final(curator)
        await curator.http.post(f"{curator.place}/close")
        assert not await is_final(curator), "a report can still be withdrawn"
        first = await publish(curator)
        assert (first.status_code, first.json()["state"]) == (201, "closed")
        assert await is_final(curator)
        content = await published(curator)
        document = (await curator.http.get(f"{curator.place}/publication")).json()
        assert document["published"] == first.json()["published"]
        assert document["result"]["reports"] == 3
        again = await publish(curator)
        assert (again.status_code, again.json()) == (200, first.json())
        assert await published(curator) == content
        done = [record.action for record in await curator.service.store.records(10)]
        assert done.count("published") == 1


async def test_nothing_comes_or_goes_after_publication(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        known = os.urandom(16).hex()
        for report_id in (known, None):
            await curator.upload(report_id)
        content = await close_and_publish(curator)
        for ids in ([known], [known, os.urandom(16).hex()]):
            kept = await curator.http.post(f"{curator.place}/withdrawals", json={"report_ids": ids})
            assert (kept.status_code, "reveal that report" in kept.json()["detail"]) == (409, True)
        reopened = await curator.http.post(f"{curator.place}/reopen")
        assert (reopened.status_code, "reveal that report" in reopened.json()["detail"]) == (409, True)
        await curator.service.refresh()
        assert await curator.reason() == "closed"
        assert await curator.reports() == 2
        assert await published(curator) == content


@pytest.mark.parametrize("limits", [{}, {"most_reports": 5}])
async def test_a_process_that_has_not_noticed_stores_nothing_either(
    store_url: str, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_REFRESH", 600.0)  # it notices nothing meanwhile
    async with on(store_url, **limits) as curator:
        await curator.upload()
        store: Store = curator.service.store
        await store.close_campaign(curator.campaign.id, "2026-02-02T00:00:00Z")
        tallies = await store.tallies(curator.campaign)
        assert await store.publish(curator.campaign, tallies, "{}", "2026-02-03T00:00:00Z", ended=False)
        assert "detail" in await curator.upload(), "here it still seems open, but the store takes nothing"
        assert await curator.reports() == 1
        with raises(Ended):
            await store.reopen_campaign(curator.campaign.id)
        with raises(Ended):
            await withdraw(store, curator.campaign, [bytes(16)])
        assert await published(curator) == b"{}", "at once"
        await curator.service.refresh()
        assert await curator.reason() == "closed"
        assert await is_final(curator)


async def test_the_store_publishes_only_the_tallies_that_it_has(store_url: str) -> None:
    async with on(store_url) as curator:
        known = os.urandom(16)
        await curator.upload(known.hex())
        store, campaign = curator.service.store, curator.campaign
        tallies = await store.tallies(campaign)
        await curator.upload()  # reports that keep coming must not make an open campaign try for ever
        for some in (tallies, await store.tallies(campaign)):
            with raises(StillOpen):
                await store.publish(campaign, some, "{}", "2026-02-03T00:00:00Z", ended=False)
        await store.close_campaign(campaign.id, "2026-02-02T00:00:00Z")
        tallies = await store.tallies(campaign)
        assert await withdraw(store, campaign, [known]) == 1
        assert not await store.publish(campaign, tallies, "{}", "2026-02-03T00:00:00Z", ended=False)
        tallies = await store.tallies(campaign)
        assert await store.publish(campaign, tallies, "{}", "2026-02-03T00:00:00Z", ended=False)
        assert not await store.publish(campaign, tallies, "[]", "2026-02-04T00:00:00Z", ended=False)
        assert await store.publication(campaign.id) == b"{}"


async def test_a_report_withdrawn_while_results_are_made_is_not_in_them(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on(store_url) as curator:
        known = os.urandom(16)
        for report_id in (known.hex(), None):
            await curator.upload(report_id)
        store: Store = curator.service.store
        await curator.http.post(f"{curator.place}/close")
        publish_in_store = store.publish

        async def withdraw_first(*arguments: Any) -> bool:
            await withdraw(store, curator.campaign, [known])
            monkeypatch.setattr(store, "publish", publish_in_store)
            return await publish_in_store(*arguments)

        monkeypatch.setattr(store, "publish", withdraw_first)
        assert (await publish(curator)).status_code == 201
        document = (await curator.http.get(f"{curator.place}/publication")).json()
        assert document["result"]["reports"] == await curator.reports() == 1


async def test_a_campaign_past_its_end_is_published_and_stays_closed(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        await curator.upload()
        curator.set_clock(CLOSES)
        assert (await publish(curator)).status_code == 201
        curator.set_clock(TIMES["opens"])  # a clock that goes wrong opens nothing again
        assert await curator.reason() == "closed"


async def test_publication_stays_when_reports_are_deleted_at_keep_until(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        await curator.upload()
        content = await close_and_publish(curator)
        curator.set_clock(KEPT)
        curator.service.life.grace = 0.0
        await curator.service.life.delete_expired()
        assert (await curator.rows())["submissions"] == 0
        assert await published(curator) == content
        assert (await publish(curator)).status_code == 200


async def test_results_can_be_published_after_their_reports_are_deleted(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        await curator.upload()
        curator.set_clock(KEPT)
        await curator.service.life.delete(curator.campaign.id, keep_results=True)
        assert (await publish(curator)).status_code == 201
        document = (await curator.http.get(f"{curator.place}/publication")).json()
        assert document["result"]["reports"] == 1


async def test_deleting_the_whole_campaign_deletes_its_publication(store_url: str) -> None:
    async with on(store_url) as curator:
        await curator.upload()
        await close_and_publish(curator)
        await curator.http.delete(curator.place)
        assert (await curator.http.get(f"{curator.place}/publication")).status_code == 404
        assert (await curator.rows())["results"] == 0


@pytest.mark.parametrize("admission", ["invitation", "open"])
async def test_published_totals_are_explained_only_if_each_report_needed_an_invitation(
    store_url: str, admission: Any
) -> None:
    async with on(store_url, admission=admission) as curator:
        codes: list[str | None] = [None] * 60
        if admission == "invitation":
            invited = await curator.http.post(f"{curator.place}/invitations", json={"count": 60})
            codes = invited.json()["codes"]
        bodies = [
            {**json.loads(report(curator.campaign, place % 2)), "code": code}
            for place, code in enumerate(codes)
        ]
        sent = await curator.http.post(f"{curator.place}/reports", json={"reports": bodies})
        assert sent.json()["accepted"] == 60
        draft = (await curator.http.get(f"{curator.place}/estimates")).json()
        assert draft["result"]["cohorts"][0]["totals"] is None, "it may still change"
        (cohort,) = json.loads(await close_and_publish(curator))["result"]["cohorts"]
        csv = (await curator.http.get(f"{curator.place}/publication?format=csv")).text
        if admission == "open":
            assert cohort["totals"] is None and "totals" not in csv
            return
        totals, plan = cohort["totals"], plan_of(curator.campaign)
        assert (totals["people"], totals["delta"], totals["colluding"]) == (54, 1e-6, 0.1)
        assert totals["epsilon"] == plan.totals_level(54) < plan.certificate.ldp
        assert f"totals epsilon,,54,,{totals['epsilon']}," in csv
        (belief,) = totals["beliefs"]
        tally = (await curator.service.store.tallies(curator.campaign))[cohort["form"]].parts[0]
        shares = plan.estimate(tally, method="mmse").proportions
        assert belief["after"] == pytest.approx(shares[list(plan.labels).index(belief["label"][0])])


async def test_the_share_of_people_who_may_collude_is_a_setting(store_url: str) -> None:
    async with on(store_url, admission="invitation") as curator:
        curator.service.life.colluding = 0.5
        codes = (await curator.http.post(f"{curator.place}/invitations", json={"count": 40})).json()["codes"]
        bodies = [{**json.loads(report(curator.campaign)), "code": code} for code in codes]
        await curator.http.post(f"{curator.place}/reports", json={"reports": bodies})
        (cohort,) = json.loads(await close_and_publish(curator))["result"]["cohorts"]
        assert (cohort["totals"]["people"], cohort["totals"]["colluding"]) == (20, 0.5)
