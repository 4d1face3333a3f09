"""The API as its users see it, on both stores."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import io
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest
from starlette.exceptions import HTTPException

from conftest import PRIOR
from local_server import running
from patience import until
from priorveil import Channel, Histogram, Prior, Sum, frames
from priorveil.certify import certificate
from priorveil.curator.app import Curator, openapi
from priorveil.curator.messages import LARGEST_BATCH
from priorveil.curator.operations import PROBLEM
from priorveil.curator.settings import RequestLimits
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import Group, StoreFull, Unavailable, open_store
from priorveil.curator.tokens import Token
from priorveil.curator.uploads import read_json, read_packed
from priorveil.device.wire import PACKED, fresh_id, packed_body
from priorveil.errors import install_command
from priorveil.mechanisms import Table
from priorveil.questions.campaign import Campaign, ask, ask_with
from submissions import number_words, plan_of, submission, submissions

RNG = np.random.default_rng(3)


def reports(campaign: Campaign, count: int, cohort: str | None = None) -> list[dict[str, Any]]:
    """Submissions of people who are spread evenly over four answers."""
    labels = plan_of(campaign, cohort).labels
    values = [labels[code] for code in RNG.integers(0, 4, count)]
    return submissions(campaign, {"answer": values}, cohort, RNG)


def numbers(sent: list[dict[str, Any]]) -> list[int]:
    """The reports of submissions with one number each."""
    return [int.from_bytes(bytes.fromhex(one["report"]), "little") for one in sent]


def path(campaign: Campaign, rest: str = "") -> str:
    return f"/v1/campaigns/{campaign.id}{rest}"


def on(url: str, *campaigns: Campaign, **more: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return running(open_store(url), *campaigns, **more)


@pytest.fixture
def sqlite_url(tmp_path: Any) -> str:
    return str(tmp_path / "reports.db")


async def test_a_whole_campaign(store_url: str, campaign: Campaign) -> None:
    async with on(store_url) as http:
        made = await http.post("/v1/campaigns", content=campaign.to_json())
        assert (made.status_code, made.json()["id"]) == (201, campaign.id)
        assert (await http.post("/v1/campaigns", content=campaign.to_json())).status_code == 200
        public = httpx.AsyncClient(transport=http._transport, base_url="http://curator")
        got = await public.get(path(campaign))
        assert Campaign.from_json(got.content).id == campaign.id
        sent = reports(campaign, 300)
        for body in (
            sent[0],
            {"reports": sent[1:200]},
            {"reports": sent[150:]},
            {"reports": []},
            {"reports": sent},
        ):
            sender = http if "reports" in body else public
            answer = await sender.post(path(campaign, "/reports"), json=body)
            count = len(body["reports"]) if "reports" in body else 1
            assert (answer.status_code, answer.json()) == (200, {"accepted": count, "refused": []})
        plan = plan_of(campaign)
        expected = plan.estimate(plan.tally(numbers(sent)), "unbiased")
        found = (await http.get(path(campaign, "/estimates"))).json()
        assert found["result"]["reports"] == 300 and not found["leans_on_prior"]
        assert found["survey"]["title"] == campaign.title
        (only,) = found["result"]["findings"]
        assert (only["attributes"], only["margin_of"], only["cohort"]) == (["answer"], None, "")
        shown, rows = only["figures"], only["figures"]["tables"][0]["rows"]
        assert [row["value"] for row in rows] == pytest.approx(expected.values.tolist(), rel=1e-12)
        assert [row["low"] for row in rows] == pytest.approx(expected.interval()[0].tolist(), rel=1e-12)
        assert shown["prior_check"] == pytest.approx(expected.prior_check, rel=1e-9)
        assert shown["noticeable_change"] == pytest.approx(expected.noticeable_change, rel=1e-9)
        assert [note["code"] for note in shown["notes"]] == [note.code for note in expected.notes]
        assert shown["warning"] is expected.warning is None
        table = pq.read_table(io.BytesIO((await http.get(path(campaign, "/reports"))).content))
        stored = {row["report_id"].hex(): row["report"].hex() for row in table.to_pylist()}
        assert stored == {r["report_id"]: r["report"] for r in sent}
        assert (await http.post(path(campaign, "/close"))).json()["state"] == "closed"
        late = reports(campaign, 2)
        answer = await http.post(path(campaign, "/reports"), json={"reports": late})
        assert [(r["report_id"], r["reason"]) for r in answer.json()["refused"]] == [
            (r["report_id"], "closed") for r in late
        ]
        counters = (await http.get(path(campaign, "/counters"))).json()
        assert counters["reports"] == {"everyone": 300} and counters["refused"] == {"closed": 2}
        assert [c["state"] for c in (await http.get("/v1/campaigns")).json()["campaigns"]] == ["closed"]


async def test_a_sum_is_read_as_it_was_designed_and_warns_of_a_wrong_prior(sqlite_url: str) -> None:
    """The reports come from people who are spread evenly; that is not the prior."""
    campaign = ask("How many?", PRIOR, 1.0, query=Sum(values=[0, 1, 2, 3]))
    plan, sent = plan_of(campaign), reports(campaign, 4000)
    async with on(sqlite_url, campaign) as http:
        for start in range(0, 4000, 1000):
            await http.post(path(campaign, "/reports"), json={"reports": sent[start : start + 1000]})
        found = (await http.get(path(campaign, "/estimates"))).json()
        expected = plan.estimate(plan.tally(numbers(sent)), "mmse")
        (only,) = found["result"]["findings"]
        shown, total = only["figures"], only["figures"]["tables"][0]
        assert shown["method"] == "mmse" and shown["leaning"] and total["kind"] == "total"
        assert [row["value"] for row in total["rows"]] == pytest.approx(expected.values.tolist())
        assert expected.warning is not None and shown["warning"]["code"] == expected.warning.code
        assert [note["code"] for note in shown["notes"]] == [note.code for note in expected.notes]
        assert shown["unbiased_difference"] == pytest.approx(expected.unbiased_difference)


async def test_every_mechanism_in_both_bodies(store_url: str, cohorts: Campaign) -> None:
    async with on(store_url, cohorts) as http:
        for name, form in cohorts.cohorts.items():
            answer = await http.post(path(cohorts, "/reports"), json={"reports": reports(cohorts, 20, name)})
            assert answer.json() == {"accepted": 20, "refused": []}, name
            drawn = bytes.fromhex("".join(one["report"] for one in reports(cohorts, 30, name)))
            body = packed_body(form.id, os.urandom(480), drawn)
            answer = await http.post(
                path(cohorts, "/reports"), content=body, headers={"content-type": PACKED}
            )
            assert answer.json() == {"accepted": 30, "refused": []}, name
        found = (
            await http.get(path(cohorts, "/estimates"), params={"method": "mmse", "confidence": 0.5})
        ).json()
        *own, total = found["result"]["findings"]
        assert [each["reports"] for each in found["result"]["cohorts"]] == [each["reports"] for each in own]
        assert [each["reports"] for each in own] == [50] * 4
        assert total["reports"] == total["figures"]["people"] == 200
        table = pq.read_table(io.BytesIO((await http.get(path(cohorts, "/reports"))).content))
        assert table.num_rows == 200
        text = (await http.get(path(cohorts, "/reports"), params={"format": "csv"})).text
        rows = list(csv.DictReader(io.StringIO(text)))
        assert {row["report_id"] for row in rows} == {one.hex() for one in table["report_id"].to_pylist()}
        assert list(rows[0]) == table.column_names == ["report_id", "form", "report"]
        assert (await http.get(path(cohorts, "/reports"), params={"format": "json"})).json() == {
            "reports": rows
        }
        assert set(table["form"].to_pylist()) == set(cohorts.forms)
        mixed = [reports(cohorts, 1, name)[0] for name in cohorts.cohorts]
        assert (await http.post(path(cohorts, "/reports"), json={"reports": mixed})).json()["accepted"] == 4


async def test_only_the_bad_reports_of_a_batch_are_refused(store_url: str, campaign: Campaign) -> None:
    good = reports(campaign, 1)[0]
    bad = [
        ({**good, "report_id": fresh_id(), "report": number_words(10**6)}, "out of range"),
        ({**good, "report_id": fresh_id(), "report": "f" * 16}, "out of range"),
        ({**good, "report_id": fresh_id(), "report": number_words(2**60)}, "out of range"),
        ({**good, "report_id": fresh_id(), "report": 2 * good["report"]}, "malformed"),
        ({**good, "report_id": fresh_id(), "form": "0" * 64}, "unknown form"),
        ({**good, "report_id": "xyz"}, "malformed"),
        ({**good, "report_id": "zz" * 16}, "malformed"),
        ({**good, "report_id": fresh_id(), "report": "00"}, "malformed"),
        ({**good, "report_id": fresh_id(), "report": 0.5}, "malformed"),
        ({**good, "report_id": fresh_id(), "report": None}, "malformed"),
        ({**good, "report_id": fresh_id(), "more": 1}, "malformed"),
        ({"report_id": fresh_id()}, "malformed"),
        ([], "malformed"),
        (3, "malformed"),
    ]
    async with on(store_url, campaign) as http:
        for chosen in (bad, bad[:2], bad[:5]):
            batch = [good, *(b for b, _ in chosen), good]
            answer = (await http.post(path(campaign, "/reports"), json={"reports": batch})).json()
            assert answer["accepted"] == 2
            assert [(r["index"], r["reason"]) for r in answer["refused"]] == [
                (i, why) for i, (_, why) in enumerate(chosen, start=1)
            ]
        counters = (await http.get(path(campaign, "/counters"))).json()
        assert counters["reports"] == {"everyone": 1}
        packed = packed_body("0" * 64, os.urandom(32), bytes(16))
        answer = await http.post(path(campaign, "/reports"), content=packed, headers={"content-type": PACKED})
        assert [r["reason"] for r in answer.json()["refused"]] == ["unknown form"] * 2


async def test_times_of_opening_and_closing(sqlite_url: str) -> None:
    now = datetime.now(UTC)
    future = ask("Later?", PRIOR, opens=now + timedelta(days=1))
    past = ask("Earlier?", PRIOR, closes=now - timedelta(days=1))
    async with on(sqlite_url, future, past) as http:
        for campaign, state in ((future, "not yet open"), (past, "closed")):
            answer = (await http.post(path(campaign, "/reports"), json=reports(campaign, 1)[0])).json()
            assert answer["accepted"] == 0 and answer["refused"][0]["reason"] == state
            assert (await http.get(path(campaign, "/status"))).json()["state"] == state


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 0), (5.0, 1), (12.0, 2)])
async def test_what_is_wrong_with_a_new_campaign_is_said(sqlite_url: str, epsilon: float, count: int) -> None:
    made = ask("Tell all?", PRIOR, epsilon)
    async with on(sqlite_url) as http:
        created = await http.post("/v1/campaigns", content=made.to_json())
        status = await http.get(path(made, "/status"))
        assert created.json()["warnings"] == status.json()["warnings"] == list(map(str, made.warnings))
        assert len(made.warnings) == count


async def test_a_file_of_another_kind_is_no_campaign(sqlite_url: str, campaign: Campaign) -> None:
    advice = "this is not a campaign: give the file that `priorveil campaign` or `campaign.to_json()` wrote"
    async with on(sqlite_url, campaign) as http:
        for other in (b"work,income\nprivate,3\n", b"PAR1", plan_of(campaign).to_json().encode()):
            answer = await http.post("/v1/campaigns", content=other)
            assert answer.status_code == 422 and answer.json()["detail"].startswith(advice)


async def test_few_reports_are_not_shown_and_leaning_is_said(sqlite_url: str) -> None:
    shy = ask("Shy?", PRIOR, query=Histogram(), smallest_count=10)
    async with on(sqlite_url, shy) as http:
        await http.post(path(shy, "/reports"), json={"reports": reports(shy, 9)})
        found = (await http.get(path(shy, "/estimates"))).json()
        (only,) = found["result"]["findings"]
        assert (only["withheld"], only["figures"], only["reports"]) == ("few reports", None, 9)
        assert found["leans_on_prior"] is True and shy.leans_on_prior
        assert only["precision"] == pytest.approx(dataclasses.asdict(plan_of(shy).precision))
        await http.post(path(shy, "/reports"), json={"reports": reports(shy, 1)})
        (only,) = (await http.get(path(shy, "/estimates"))).json()["result"]["findings"]
        assert only["withheld"] is None and only["figures"]["leaning"]
        asked = await http.get(path(shy, "/estimates"), params={"method": "unbiased"})
        assert asked.status_code == (200 if plan_of(shy).identifiable else 409)


async def test_an_export_that_cannot_be_made_is_said_before_it_begins(
    sqlite_url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on(sqlite_url, campaign) as http:
        frames.pyarrow.cache_clear()
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        answer = await http.get(f"/v1/campaigns/{campaign.id}/reports")
        assert answer.status_code == 500 and answer.headers["content-type"] == PROBLEM
        assert answer.json()["detail"] == f"pyarrow is not installed: {install_command('tables')}"


async def test_no_token_is_never_a_token(sqlite_url: str, campaign: Campaign) -> None:
    """Not even where a store holds the hash of nothing."""
    async with on(sqlite_url, campaign) as http:
        service = http.app.service  # type: ignore[attr-defined]
        await service.store.add_token(Token.of("", "nobody", "admin"))
        await service.refresh()
        assert (await http.get("/v1/campaigns", headers={"authorization": "Bearer "})).status_code == 401
        assert (await http.get("/v1/campaigns")).status_code == 200


@pytest.mark.parametrize(
    "token", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "bearer \xff", "x" * 5000]
)
async def test_the_curators_routes_need_the_token(
    sqlite_url: str, campaign: Campaign, token: str | None
) -> None:
    async with on(sqlite_url, campaign) as http:
        del http.headers["authorization"]
        headers: dict[str, Any] = {} if token is None else {"authorization": token.encode("latin-1")}
        operations = [(m, p, o) for p, methods in openapi()["paths"].items() for m, o in methods.items()]
        for place, (method, path, operation) in enumerate(operations):
            headers["x-real-ip"] = f"192.0.2.{place}"  # each has attempts of its own
            if {} not in operation.get("security", [{}]):
                answer = await http.request(method, path.format(id=campaign.id, name="anna"), headers=headers)
                assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer")


async def test_problems_are_problem_documents(sqlite_url: str, campaign: Campaign) -> None:
    upload = path(campaign, "/reports")
    text = {"content-type": "application/json"}
    changed = json.loads(campaign.to_json()) | {"contact": "Somebody else"}
    cases: list[tuple[int, str, str, dict[str, Any]]] = [
        (404, "GET", "/nowhere", {}),
        (404, "GET", "/v1/campaigns/" + "0" * 64, {}),
        (404, "POST", "/v1/campaigns/nonsense/reports", {"json": {}}),
        (405, "PUT", path(campaign), {}),
        (400, "POST", upload, {"content": b"{", "headers": text}),
        (400, "POST", upload, {"content": b"[" * 100_000, "headers": text}),
        (400, "POST", upload, {"content": b'{"reports":' + b"[" * 100_000, "headers": text}),
        (400, "POST", upload, {"content": b"\xff\xfe", "headers": text}),
        (400, "POST", upload, {"content": b"PVR1", "headers": {"content-type": PACKED}}),
        (400, "POST", upload, {"content": b"XXXX" + bytes(36), "headers": {"content-type": PACKED}}),
        (413, "POST", upload, {"content": b" " * (1 << 20), "headers": text}),
        (413, "POST", upload, {"content": b'{"reports":[' + b"0," * LARGEST_BATCH + b"0]}", "headers": text}),
        (415, "POST", upload, {"content": b"{}"}),
        (415, "POST", upload, {"content": b"{}", "headers": {"content-type": "text/plain"}}),
        (422, "POST", "/v1/campaigns", {"content": b"not json"}),
        (422, "POST", "/v1/campaigns", {"content": b"[" * 100_000}),
        (422, "POST", "/v1/campaigns", {"json": changed}),
        (400, "GET", path(campaign, "/estimates?method=guess"), {}),
        (400, "GET", path(campaign, "/estimates?confidence=2"), {}),
        (400, "GET", path(campaign, "/estimates?confidence=nan"), {}),
    ]
    async with on(sqlite_url, campaign, limits=RequestLimits(body=1 << 19)) as http:
        for status, method, where, more in cases:
            answer = await http.request(method, where, **more)
            assert answer.status_code == status, (method, where, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == status and answer.json()["title"]


async def test_slow_and_unfinished_bodies_are_given_up(sqlite_url: str, campaign: Campaign) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    async with on(sqlite_url, campaign, limits=RequestLimits(seconds=0.1)) as http:
        app: Curator = http.app  # type: ignore[attr-defined]
        scope = {
            "type": "http",
            "method": "POST",
            "path": path(campaign, "/reports"),
            "headers": [(b"content-type", b"application/json")],
        }
        for last, status in ((None, 408), ({"type": "http.disconnect"}, 400)):
            messages = [{"type": "http.request", "body": b"{", "more_body": True}, last]
            sent: list[dict[str, Any]] = []

            async def receive(messages: list[Any] = messages) -> Any:
                message = messages.pop(0)
                if message is None:
                    await asyncio.Event().wait()  # for ever
                return message

            async def send(message: Any, sent: list[dict[str, Any]] = sent) -> None:
                sent.append(message)

            await app(scope, receive, send)
            assert sent[0]["status"] == status


class Stuck(SqliteStore):
    """A store whose next commits fail, or wait."""

    trouble: Exception | None = None
    gate: asyncio.Event | None = None

    async def commit(self, groups: Any) -> Counter[str]:
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        return await super().commit(groups)


async def test_a_full_queue_says_when_to_come_back(tmp_path: Any, campaign: Campaign) -> None:
    store = Stuck(tmp_path / "a.db")
    async with running(store, campaign, limits=RequestLimits(waiting=4000)) as http:
        store.gate = asyncio.Event()
        posts = [
            asyncio.create_task(http.post(path(campaign, "/reports"), json=r)) for r in reports(campaign, 12)
        ]
        await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)  # the first one that is refused
        store.gate.set()
        answers = await asyncio.gather(*posts)
        busy = [a for a in answers if a.status_code == 429]
        assert 0 < len(busy) < 12 and all(a.headers["retry-after"] == "1" for a in busy)
        counters = (await http.get(path(campaign, "/counters"))).json()
        assert counters["reports"]["everyone"] == 12 - len(busy)


async def test_trouble_with_the_store_is_said_and_passes(tmp_path: Any, campaign: Campaign) -> None:
    store = Stuck(tmp_path / "a.db")
    async with running(store, campaign) as http:
        report = reports(campaign, 1)[0]
        for trouble, status in ((StoreFull("full"), 507), (Unavailable("away"), 503), (None, 200)):
            store.trouble = trouble
            answer = await http.post(path(campaign, "/reports"), json=report)
            assert answer.status_code == status
            assert status == 200 or "retry-after" in answer.headers


async def test_what_was_accepted_is_finished_at_shutdown(tmp_path: Any, campaign: Campaign) -> None:
    store = Stuck(tmp_path / "a.db")
    async with running(store, campaign) as http:
        store.gate = asyncio.Event()
        posts = [
            asyncio.create_task(http.post(path(campaign, "/reports"), json=r)) for r in reports(campaign, 5)
        ]
        writer = http.app.service.writer  # type: ignore[attr-defined]
        one_upload = 512  # bytes, at least
        try:
            await until(lambda: writer.waiting >= 5 * one_upload, "five uploads are accepted")
        finally:
            asyncio.get_running_loop().call_later(0.2, store.gate.set)
    assert [(await p).status_code for p in posts] == [200] * 5


async def test_operations(store_url: str, campaign: Campaign) -> None:
    async with on(store_url, campaign) as http:
        await http.post(path(campaign, "/reports"), json={"reports": reports(campaign, 7)})
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        assert (await http.get("/readyz")).json() == {"status": "ready"}
        text = (await http.get("/metrics")).text
        assert "priorveil_reports_stored_total 7.0\n" in text


async def test_any_page_may_answer_and_nothing_else_is_allowed(sqlite_url: str, campaign: Campaign) -> None:
    async with on(sqlite_url, campaign) as http:
        before = await http.options(
            path(campaign, "/reports"), headers={"origin": "https://somewhere.example"}
        )
        assert before.status_code == 204 and before.headers["access-control-allow-headers"] == "content-type"
        for answer in (
            await http.get(path(campaign)),
            await http.post(path(campaign, "/reports"), json=reports(campaign, 1)[0]),
        ):
            assert answer.headers["access-control-allow-origin"] == "*"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in (await http.get(path(campaign, "/estimates"))).headers


async def test_each_report_lands_in_a_cell_of_its_own(store_url: str) -> None:
    """A plan with more outputs than reports; every output is sent once, in pieces, many times and at once."""
    outputs = 4096
    campaign = own_cells(outputs)
    sent = [submission(campaign, i) for i in range(outputs)]
    async with on(store_url, campaign) as http:
        pieces = [sent[i : i + 97] for i in range(0, outputs, 97)] + [
            sent[i : i + 501] for i in range(0, outputs, 501)
        ]
        pieces += [[r] for r in sent[::17]]
        RNG.shuffle(pieces)  # type: ignore[arg-type]
        answers = await asyncio.gather(
            *(http.post(path(campaign, "/reports"), json={"reports": p}) for p in pieces)
        )
        assert all(a.json()["refused"] == [] for a in answers)
        app: Curator = http.app  # type: ignore[attr-defined]
        (tally,) = (await app.service.store.tallies(campaign)).values()
        assert tally.reports == outputs and (tally.parts[0].counts == 1).all()


def own_cells(outputs: int) -> Campaign:
    """A campaign whose table has this many outputs, all equally likely whatever the answer: nothing leaks."""
    coin = Prior({"heads": 0.5, "tails": 0.5})
    base = plan_of(ask("Heads or tails?", coin, query=Histogram()))
    table = Table(np.full((2, outputs), 2**62 // outputs, dtype=np.int64))
    levels = certificate(table.lifts(coin, None, base.notion), base.notion)
    error = base.query.error(Channel(table.matrix, base.labels), coin)
    plan = dataclasses.replace(base, mechanism=table, certificate=levels, expected_mse=error)
    return ask_with("Heads or tails?", plan, smallest_count=1)


def test_groups_carry_no_more_than_reports() -> None:
    """What is stored of a person: the report, and what is counted of it. There is no field for anything else."""
    assert set(Group._fields) == {"campaign", "form", "ids", "words", "cells"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"reports": [{"report_id": "00"},]}', "trailing comma"),
        ('{"reports": [', "truncated"),
        ('{"reports": 5}', "Expected `array`"),
    ],
)
def test_what_is_wrong_with_a_batch_is_said_of_the_batch(text: str, said: str) -> None:
    with pytest.raises(HTTPException, match=said):
        read_json(text.encode(), "", {})


def test_few_bytes_make_few_refusals() -> None:
    """A packed body that promises more than it brings is one error, whether its form is known or not."""
    with pytest.raises(HTTPException, match="10000 reports"):
        read_packed(b"PVR1" + bytes(32) + (10_000).to_bytes(4, "little"), "", {})
    with pytest.raises(HTTPException) as caught:
        read_json(b'{"' + b"x" * 100_000 + b'": 1}', "", {})
    assert len(str(caught.value)) < 300


async def test_a_closed_campaign_does_not_grow(store_url: str, campaign: Campaign) -> None:
    """What was accepted before is counted when the closing is answered; all that comes later is refused."""
    async with on(store_url) as http:
        await http.post("/v1/campaigns", content=campaign.to_json())
        bodies = [{"reports": reports(campaign, 200)} for _ in range(30)]
        sent = [asyncio.create_task(http.post(path(campaign, "/reports"), json=body)) for body in bodies]
        await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        assert (await http.post(path(campaign, "/close"))).json()["state"] == "closed"
        counted = (await http.get(path(campaign, "/estimates"))).json()["result"]["reports"]
        accepted = sum([answer.json()["accepted"] for answer in await asyncio.gather(*sent)])
        assert (
            counted == accepted == (await http.get(path(campaign, "/estimates"))).json()["result"]["reports"]
        )
