"""Analysts see stored results only, and two of these never differ by a few reports."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from conftest import PRIOR
from curator.test_api import reports
from curator.test_campaign_life import CLOSES, DAY, TIMES, Curator, on
from curator.test_tokens import new_token
from local_server import running
from priorveil.curator.store import open_store
from priorveil.questions.campaign import Campaign, ask
from sample_surveys import health, people
from submissions import submissions

LEAST = 20  # further reports, also where `smallest_count` is smaller
READS = ("?method=auto", "?method=unbiased&confidence=0.5", "?format=csv")


async def upload(curator: Curator, count: int) -> list[str]:
    ids = [os.urandom(16).hex() for _ in range(count)]
    for report_id in ids:
        assert (await curator.upload(report_id))["accepted"] == 1
    return ids


async def withdraw(curator: Curator, *report_ids: str) -> None:
    body = {"report_ids": report_ids}
    assert (await curator.http.post(f"{curator.place}/withdrawals", json=body)).status_code == 200


async def change(curator: Curator, what: str) -> int:
    """Close, reopen, release or publish: the status of the response."""
    return (await curator.http.post(f"{curator.place}/{what}")).status_code


class Analyst:
    """Reads everything that an analyst may read of a campaign."""

    def __init__(self, curator: Curator, header: Mapping[str, str]) -> None:
        self.http, self.place, self.header = curator.http, curator.place, header

    @classmethod
    async def of(cls, curator: Curator) -> Analyst:
        return cls(curator, await new_token(curator.http, "anna", "analyst"))

    async def get(self, path: str) -> httpx.Response:
        return await self.http.get(path, headers=self.header)

    async def results(self) -> tuple[Any, ...]:
        """The number of reports, then everything else; one None if there are no results."""
        answers = [await self.get(f"{self.place}/estimates{query}") for query in READS]
        answers.append(await self.get(f"{self.place}/counters"))
        [entry] = (await self.get("/v1/campaigns")).json()["campaigns"]
        if answers[0].status_code == 404:
            assert all("an admin releases them" in answer.json()["detail"] for answer in answers)
            assert entry["reports"] is entry["stored"] is None
            return (None,)
        contents = [json.loads(a.text) if "json" in a.headers["content-type"] else a.text for a in answers]
        first, counters = contents[0], contents[-1]
        assert first["stored"] == entry["stored"] and "kind" in first["stored"]
        assert first["result"]["reports"] == entry["reports"] == first["stored"]["reports"]
        assert sum(counters["reports"].values()) == entry["reports"]
        for content in contents[:2]:
            del content["state"]  # everybody may ask for it
        return entry["reports"], json.dumps([*contents, entry["stored"]])

    async def reports(self) -> int | None:
        count: int | None = (await self.results())[0]
        return count


@asynccontextmanager
async def on_with_analyst(url: str, **details: Any) -> AsyncIterator[tuple[Curator, Analyst]]:
    async with on(url, **details) as curator:
        yield curator, await Analyst.of(curator)


async def test_an_analyst_who_polls_sees_no_results_that_differ_by_few_reports(store_url: str) -> None:
    async with on_with_analyst(store_url) as (curator, analyst):
        polls, ids = [await analyst.results()], list[str]()
        for number in range(4 * LEAST):
            ids += await upload(curator, 1)
            polls.append(await analyst.results())
            if number % 3 == 2:
                await withdraw(curator, ids.pop(number % len(ids)))
                polls.append(await analyst.results())
            assert await change(curator, "release") in (201, 409)
            polls.append(await analyst.results())
        for what in ("close", "reopen", "close"):
            assert await change(curator, what) == 200
            polls.append(await analyst.results())
            await withdraw(curator, ids.pop())
            polls.append(await analyst.results())
        assert [count for count, *_ in dict.fromkeys(polls)] == [None, LEAST, 2 * LEAST]


async def test_a_release_needs_further_reports_whatever_is_withdrawn(store_url: str) -> None:
    """Reports that come and go count for nothing, and neither do those that come in place of old ones."""
    async with on_with_analyst(store_url, smallest_count=25) as (curator, analyst):
        least = 25
        old = await upload(curator, least - 1)
        refused = await curator.http.post(f"{curator.place}/release")
        assert (refused.status_code, f"24 of {least}" in refused.json()["detail"]) == (409, True)
        old += await upload(curator, 1)
        released = await curator.http.post(f"{curator.place}/release")
        assert (released.status_code, released.json()["stored"]["kind"]) == (201, "released")
        again = await curator.http.post(f"{curator.place}/release")
        assert (again.status_code, f"0 of {least}" in again.json()["detail"]) == (409, True)
        for _ in range(2):
            await withdraw(curator, *await upload(curator, least))
            await withdraw(curator, *old)
            old = await upload(curator, least)
            assert await change(curator, "release") == 409
            assert await analyst.reports() == least
        await upload(curator, least)
        assert await change(curator, "release") == 201
        assert await analyst.reports() == 2 * least
        done = [(r.action, r.count) for r in await curator.service.store.records(100) if r.who == "tests"]
        assert [count for action, count in done if action == "released"] == [2 * least, least]


async def test_results_are_made_when_a_campaign_closes_and_at_its_publication(store_url: str) -> None:
    async with on_with_analyst(store_url) as (curator, analyst):
        ids = await upload(curator, 3)
        assert await change(curator, "close") == 200
        await withdraw(curator, ids[0])
        assert await analyst.reports() == 3
        assert await change(curator, "release") == 409
        assert await change(curator, "reopen") == 200
        await upload(curator, 4)
        assert await change(curator, "close") == 200
        assert await analyst.reports() == 3, "a new result would tell about three reports"
        assert await change(curator, "publication") == 201
        assert await analyst.reports() == 6
        live, stored = [
            (await curator.http.get(f"{curator.place}/estimates", headers=header)).json()
            for header in ({}, analyst.header)
        ]
        assert live == stored and stored["stored"]["kind"] == "published"
        assert stored["published"]
        assert await change(curator, "release") == 409


async def test_what_was_withheld_for_few_reports_is_shown_as_soon_as_there_are_enough(store_url: str) -> None:
    async with on_with_analyst(store_url, smallest_count=30) as (curator, analyst):
        for count in (0, 29):
            await upload(curator, count)
            assert await change(curator, "close") == 200
            assert await analyst.reports() == count
            assert await change(curator, "reopen") == 200
        await upload(curator, 2)
        assert await change(curator, "close") == 200
        assert await analyst.reports() == 31


async def test_results_of_a_campaign_whose_end_has_passed_are_made_once(store_url: str) -> None:
    async with on_with_analyst(store_url, **TIMES) as (curator, analyst):
        ids = await upload(curator, 5)
        curator.set_clock(CLOSES)
        first, *others = await asyncio.gather(*[analyst.results() for _ in range(5)])
        assert first[0] == 5 and set(others) == {first}
        await withdraw(curator, *ids[:2])
        curator.set_clock(CLOSES + DAY)
        assert await analyst.results() == first
        await curator.service.life.delete(curator.campaign.id, keep_results=True)
        assert await analyst.results() == first


async def test_two_curators_at_once_make_one_result(postgres: Any) -> None:
    url = postgres.url("two_results")
    campaign = ask("Do you sing?", PRIOR, smallest_count=1, **TIMES)
    async with running(open_store(url), campaign) as one, running(open_store(url), campaign) as two:
        curators = [Curator(http, campaign) for http in (one, two)]
        ids = await upload(curators[0], 5)
        for curator in curators:
            curator.set_clock(CLOSES)
        analyst = await new_token(one, "anna", "analyst")
        await curators[1].service.load_tokens()

        async def counters(curator: Curator) -> str:
            return (await curator.http.get(f"{curator.place}/counters", headers=analyst)).text

        found = await asyncio.gather(*map(counters, 3 * curators), withdraw(curators[0], ids[0]))
        assert len(set(found[:-1])) == 1
        assert {await counters(curator) for curator in curators} == {found[0]}


async def test_each_question_needs_further_reports_of_its_own(tmp_path: Path) -> None:
    """Of a survey in which one of two questions is drawn for each person."""
    campaign, rng = health(smallest_count=1), np.random.default_rng(1)
    async with running(open_store(str(tmp_path / "a.db")), campaign) as http:
        curator, found = Curator(http, campaign), []
        analyst = await Analyst.of(curator)
        for _ in range(7):
            values = [campaign.attribute_values(answers) for answers in people(22, rng)]
            columns = {name: [value[name] for value in values] for name in values[0]}
            sent = submissions(campaign, columns, rng=rng)
            answer = await http.post(f"{curator.place}/reports", json={"reports": sent})
            assert answer.json()["accepted"] == 22
            assert await change(curator, "release") == 201
            estimates = (await analyst.get(f"{curator.place}/estimates")).json()
            findings = estimates["result"]["findings"]
            counts = {"+".join(each["attributes"]): each["reports"] for each in findings}
            found.append(counts)
        for before, after in itertools.pairwise(found):
            steps = {name: after[name] - before[name] for name in after}
            assert steps["ills/cough+ills/asthma"] == 22
            assert all(step == 0 or step >= LEAST for step in steps.values()), steps
        assert found[0]["hours"] > 0 and found[-1]["packs"] >= 4 * LEAST, "and it gets them"


async def test_a_release_that_would_change_no_cohort_is_refused(tmp_path: Path, cohorts: Campaign) -> None:
    async with running(open_store(str(tmp_path / "a.db")), cohorts) as http:
        place = f"/v1/campaigns/{cohorts.id}"
        for status, detail in ((201, ""), (409, "no cohort or drawn question has 20"), (201, "")):
            sent = [report for cohort in cohorts.cohorts for report in reports(cohorts, 10, cohort)]
            assert (await http.post(f"{place}/reports", json={"reports": sent})).status_code == 200
            answer = await http.post(f"{place}/release")
            assert answer.status_code == status and detail in answer.text
