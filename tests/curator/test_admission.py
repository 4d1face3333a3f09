"""Who may send a report: invitations, the largest number of reports, and reports that are withdrawn."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import asyncpg
import httpx
import numpy as np
import pytest

from conftest import PRIOR
from local_server import running
from priorveil.curator.admission import (
    FULL,
    ID_IN_USE,
    NO_INVITATION,
    Claim,
    code_digest,
    fresh_codes,
    withdraw,
)
from priorveil.curator.admission import admit as admit_claims
from priorveil.curator.store import FormTally, Statements, Store, Unavailable, open_store
from priorveil.device.wire import fresh_id, hex_bytes
from priorveil.questions.campaign import Campaign, ask
from submissions import number_words, submission

T = TypeVar("T")


@pytest.fixture(scope="module")
def invited() -> Campaign:
    """A campaign that needs invitations."""
    return ask("Who invited you?", PRIOR, smallest_count=1, admission="invitation")


@pytest.fixture(scope="module")
def limited() -> Campaign:
    """A campaign for everybody that takes seven reports."""
    return ask("First come?", PRIOR, smallest_count=1, most_reports=7)


def claim(
    campaign: Campaign, code: str | None = None, report: int = 0, report_id: str | None = None
) -> Claim:
    id = hex_bytes(report_id or fresh_id(), 16)
    assert id is not None
    return Claim(campaign, campaign.form_for(None).id, id, report.to_bytes(8, "little"), code)


class Outcome(NamedTuple):
    reasons: list[str | None]
    new: int


async def admit(store: Store, claims: Sequence[Claim]) -> Outcome:
    """What the store says of claims, with the total of the new reports."""
    reasons, new = await admit_claims(store, claims)
    return Outcome(reasons, new.total())


async def invite(store: Store, campaign: Campaign, count: int) -> list[str]:
    codes = fresh_codes(count)
    await store.add_invitations(campaign.id, filter(None, map(code_digest, codes)))
    return codes


async def check_counts(store: Store, campaign: Campaign, reports: int) -> None:
    tallies = await store.tallies(campaign)
    assert sum(tally.reports for tally in tallies.values()) == reports
    assert await store.recount(campaign) == tallies


# -- the stores ----------------------------------------------------------------------------------------------


async def test_a_code_is_good_for_one_report(store_url: str, invited: Campaign) -> None:
    async with open_store(store_url) as store:
        await store.add_campaign(invited)
        first, second = await invite(store, invited, 2)
        sent = claim(invited, first)
        assert await admit(store, [sent]) == ([None], 1)
        assert await admit(store, [sent]) == (
            [None],
            0,
        )  # sent again: acknowledged, although the code is used
        assert await admit(store, [sent._replace(code=None)]) == ([None], 0)
        other = sent._replace(words=(1).to_bytes(8, "little"), code=second)
        assert await admit(store, [other]) == ([ID_IN_USE], 0)
        again = [claim(invited, code) for code in (first, None, "", "x" * 32, "0" * 32, second[:-1])]
        assert await admit(store, again) == ([NO_INVITATION] * 6, 0)
        assert await store.free_invitations(invited.id) == 1
        assert await admit(store, [claim(invited, second.upper())]) == ([None], 1)
        assert await store.free_invitations(invited.id) == 0
        await check_counts(store, invited, 2)


async def test_one_transaction_uses_a_code_and_an_id_once(store_url: str, invited: Campaign) -> None:
    async with open_store(store_url) as store:
        await store.add_campaign(invited)
        one, two = await invite(store, invited, 2)
        first = claim(invited, one)
        sent = [
            first,
            claim(invited, one),
            first._replace(code=two),
            first._replace(words=bytes([1, *bytes(7)])),
        ]
        assert await admit(store, sent) == ([None, NO_INVITATION, None, ID_IN_USE], 1)
        assert await store.free_invitations(invited.id) == 1
        await check_counts(store, invited, 1)


async def test_a_code_belongs_to_its_campaign(store_url: str, invited: Campaign) -> None:
    other = ask("Who else?", PRIOR, admission="invitation")
    async with open_store(store_url) as store:
        await store.add_campaign(invited)
        await store.add_campaign(other)
        [code] = await invite(store, other, 1)
        digest = code_digest(code)
        assert digest is not None
        assert not await store.has_invitation(invited.id, digest)
        assert await store.has_invitation(other.id, digest)
        assert await admit(store, [claim(invited, code), claim(other, code)]) == ([NO_INVITATION, None], 1)


async def test_a_campaign_is_full_when_it_has_its_reports(store_url: str, limited: Campaign) -> None:
    async with open_store(store_url) as store:
        await store.add_campaign(limited)
        sent = [claim(limited) for _ in range(10)]
        assert await admit(store, sent[:5]) == ([None] * 5, 5)
        assert await admit(store, [*sent[3:9]]) == ([None] * 4 + [FULL] * 2, 2)
        assert await admit(store, [sent[9], sent[0]]) == ([FULL, None], 0)
        await check_counts(store, limited, 7)
        assert await withdraw(store, limited, [sent[0].report_id]) == 1  # that makes room
        assert await admit(store, [sent[9], sent[8]]) == ([None, FULL], 1)
        await check_counts(store, limited, 7)


async def test_a_full_campaign_does_not_use_up_codes(store_url: str) -> None:
    campaign = ask("Both?", PRIOR, admission="invitation", most_reports=1)
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        codes = await invite(store, campaign, 3)
        assert await admit(store, [claim(campaign, code) for code in codes]) == ([None, FULL, FULL], 1)
        assert await store.free_invitations(campaign.id) == 2


async def test_a_batch_is_admitted_as_its_claims_would_be_one_by_one(store_url: str) -> None:
    """Whatever ids and codes come again within it, in any order."""
    limits: list[dict[str, Any]] = [
        {"admission": "invitation"},
        {"most_reports": 9},
        {"admission": "invitation", "most_reports": 9},
    ]
    pairs = [[ask(f"{kind} {i}?", PRIOR, **each) for kind in "ab"] for i, each in enumerate(limits)]
    draw = random.Random(16)
    async with open_store(store_url) as store:
        batches: tuple[list[Claim], list[Claim]] = ([], [])
        for alone, together in pairs:
            await store.add_campaign(alone)
            await store.add_campaign(together)
            codes = fresh_codes(15)
            for each in (alone, together):
                await store.add_invitations(each.id, filter(None, map(code_digest, codes[:12])))
            ids = [fresh_id() for _ in range(20)]
            for _ in range(60):
                code, report, id = draw.choice([None, *codes]), draw.randrange(2), draw.choice(ids)
                for batch, each in zip(batches, (alone, together), strict=True):
                    batch.append(claim(each, code, report, id))
        places = draw.sample(range(180), 180)  # campaigns alternate
        alone_claims, together_claims = ([batch[place] for place in places] for batch in batches)
        one_by_one = [await admit(store, [each]) for each in alone_claims]
        halves = [await admit(store, together_claims[:90]), await admit(store, together_claims[90:])]
        assert [each.reasons[0] for each in one_by_one] == halves[0].reasons + halves[1].reasons
        assert sum(each.new for each in one_by_one) == sum(each.new for each in halves) > 20
        assert len({each.reasons[0] for each in one_by_one}) == 4
        for alone, together in pairs:
            form, other = alone.form_for(None), together.form_for(None)
            tallies = [(await store.tallies(alone))[form.id], (await store.tallies(together))[other.id]]
            assert tallies[0].reports == tallies[1].reports
            assert np.array_equal(tallies[0].cells(), tallies[1].cells())
            assert await store.free_invitations(alone.id) == await store.free_invitations(together.id)
            await check_counts(store, together, tallies[1].reports)


def count_statements(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The list that the statements of all later transactions are added to."""
    transact, seen = store.transact, list[str]()

    def watch(steps: Statements[T]) -> Statements[T]:
        rows: Any = None
        while True:
            try:
                statement = steps.send(rows)
            except StopIteration as end:
                result: T = end.value
                return result
            seen.append(statement[0])
            rows = yield statement

    async def watched(statements: Callable[[], Statements[T]]) -> T:
        return await transact(lambda: watch(statements()))

    monkeypatch.setattr(store, "transact", watched)
    return seen


async def test_a_transaction_takes_as_many_statements_for_many_reports_as_for_one(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a round trip to PostgreSQL, and other reports wait for them."""
    campaign = ask("Many?", PRIOR, admission="invitation", most_reports=1000)
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        codes = await invite(store, campaign, 501)
        seen, counts = count_statements(store, monkeypatch), []
        for some in (codes[:1], codes[1:]):
            sent = [claim(campaign, code) for code in some]
            assert await admit(store, sent) == ([None] * len(sent), len(sent))
            assert await withdraw(store, campaign, [each.report_id for each in sent]) == len(sent)
            counts.append(len(seen))
            seen.clear()
        assert counts[0] == counts[1]


async def test_two_processes_fill_a_campaign_and_use_codes_once(postgres: Any) -> None:
    url, most = postgres.url("two_admit"), 50
    limited = ask("Race?", PRIOR, most_reports=most)
    invited = ask("Race with codes?", PRIOR, admission="invitation")
    async with open_store(url) as one, open_store(url) as two:
        for campaign in (limited, invited):
            await one.add_campaign(campaign)
        codes = await invite(one, invited, 40)

        async def send(store: Store) -> list[str | None]:
            reasons: list[str | None] = []
            for code in codes:
                reasons += (await admit(store, [claim(limited), claim(invited, code)])).reasons
            return reasons

        both = await asyncio.gather(send(one), send(two))
        counts = Counter(reason for reasons in both for reason in reasons)
        assert counts == {None: most + 40, FULL: 2 * 40 - most, NO_INVITATION: 40}
        await check_counts(one, limited, most)
        await check_counts(two, invited, 40)
        assert await one.free_invitations(invited.id) == 0


async def test_under_open_admission_the_first_report_with_an_id_counts(
    store_url: str, campaign: Campaign
) -> None:
    """Others are acknowledged and left out, whatever they say."""
    form, report_id = campaign.form_for(None), fresh_id()
    async with running(open_store(store_url), campaign) as http:
        for value in (1, 0, 2, 1):
            body = submission(campaign, value, report_id=report_id)
            answer = await http.post(f"/v1/campaigns/{campaign.id}/reports", json=body)
            assert answer.json() == {"accepted": 1, "refused": []}
        tallies = await http.app.service.store.tallies(campaign)  # type: ignore[attr-defined]
        words = np.array([[1]], dtype=np.uint64)
        assert tallies == {form.id: FormTally(1, form.tallies(form.count(words)))}


async def test_lost_connections_use_no_code_without_a_report(postgres: Any, invited: Campaign) -> None:
    """Whether a connection ends before or after its transaction is committed, the sender is told the truth."""
    url = postgres.url("admit_lost")
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"
    async with open_store(url) as store:
        await store.add_campaign(invited)
        codes = await invite(store, invited, 40)
        db = await asyncpg.connect(url)
        cut, reasons = 0, list[str | None]()

        async def send() -> None:
            for code in codes:
                mine = claim(invited, code)
                while True:  # each of the store's own attempts may have been cut
                    with suppress(Unavailable):
                        reasons.extend((await admit(store, [mine])).reasons)
                        break

        sending = asyncio.create_task(send())
        while not sending.done() and cut < 20:
            cut += len(await db.fetch(others, "admit_lost"))
            await asyncio.sleep(0.03)
        await sending
        await db.close()
        assert cut > 0 and reasons == [None] * 40
        assert await store.free_invitations(invited.id) == 0
        await check_counts(store, invited, 40)


async def test_no_row_of_postgres_tells_which_code_a_report_came_with(
    postgres: Any, invited: Campaign
) -> None:
    """Of all live rows, only the tallies share the transaction of a report."""
    url = postgres.url("xmin")
    async with open_store(url) as store:
        await store.add_campaign(invited)
        codes = await invite(store, invited, 9)
        for code in codes[:3]:
            assert await admit(store, [claim(invited, code), claim(invited, code)]) == (
                [None, NO_INVITATION],
                1,
            )
        db = await asyncpg.connect(url)
        tables = await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        reports = {row[0] for row in await db.fetch("SELECT xmin::text FROM submissions")}
        assert len(reports) == 3
        sharing = {
            table
            for (table,) in tables
            for row in await db.fetch(f"SELECT xmin::text, xmax::text FROM {table}")
            if reports & set(row)
        }
        assert sharing == {"submissions", "tallies"}
        assert await db.fetchval("SELECT count(*) FROM invitations") == 6
        await db.close()


async def test_the_order_of_codes_is_not_stored(store_url: str, invited: Campaign) -> None:
    async with open_store(store_url) as store:
        await store.add_campaign(invited)
        codes = await invite(store, invited, 30)
        digests = [bytes(row[0]) for row in await store._fetch("SELECT digest FROM invitations")]
        assert digests == sorted(filter(None, map(code_digest, codes)))


async def test_no_row_of_sqlite_tells_which_code_a_report_came_with(
    tmp_path: Path, invited: Campaign
) -> None:
    """Rows have no numbers that could be compared, and those of used codes are gone, also from the file."""
    file, used = tmp_path / "reports.db", list[bytes]()
    async with open_store(str(file)) as store:
        await store.add_campaign(invited)
        codes = await invite(store, invited, 200)
        used.extend(filter(None, map(code_digest, codes[:50])))
        assert await admit(store, [claim(invited, code) for code in codes[:50]]) == ([None] * 50, 50)
    with closing(sqlite3.connect(file)) as db:
        for table in ("submissions", "invitations"):
            with pytest.raises(sqlite3.OperationalError, match="rowid"):
                db.execute(f"SELECT rowid FROM {table}")
        free = {digest for (digest,) in db.execute("SELECT digest FROM invitations")}
        assert len(free) == 150 and not free & set(used)
    content = file.read_bytes()
    assert all(digest in content for digest in free) and not any(digest in content for digest in used)


async def test_withdrawn_reports_leave_the_tallies(store_url: str, cohorts: Campaign) -> None:
    """Of every kind of mechanism."""
    from curator.test_stores import group  # reports of random people

    parts = [group(cohorts, 30, name) for name in cohorts.cohorts]
    ids = [part.ids[i : i + 16] for part in parts for i in range(0, 16 * 10, 16)]
    async with open_store(store_url) as store:
        await store.add_campaign(cohorts)
        await store.commit(parts)
        assert await withdraw(store, cohorts, [*ids, ids[0], bytes(16)]) == 40
        await check_counts(store, cohorts, 80)
        assert await withdraw(store, cohorts, ids) == 0
        everything = [part.ids[i : i + 16] for part in parts for i in range(0, 16 * 30, 16)]
        assert await withdraw(store, cohorts, everything) == 80
        await check_counts(store, cohorts, 0)
        assert (await store.commit(parts)).total() == 120  # their ids are forgotten


async def test_reports_for_a_campaign_that_is_gone_are_kept_by_their_senders(
    store_url: str, invited: Campaign
) -> None:
    async with open_store(store_url) as store:
        with pytest.raises(Unavailable):
            await admit(store, [claim(invited)])
        await store.add_campaign(invited)
        foreign = claim(invited)._replace(form="0" * 64)
        with pytest.raises(Unavailable):
            await admit(store, [claim(invited), foreign])


# -- the API -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def on(url: str, *campaigns: Campaign) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """A client that has a token, and one that has none."""
    async with running(open_store(url), *campaigns) as http:
        yield http, httpx.AsyncClient(transport=http._transport, base_url="http://curator")


def path(campaign: Campaign, rest: str) -> str:
    return f"/v1/campaigns/{campaign.id}/{rest}"


def body(campaign: Campaign, **more: Any) -> dict[str, Any]:
    return submission(campaign, **more)


async def test_people_answer_with_an_invitation(store_url: str, invited: Campaign) -> None:
    async with on(store_url, invited) as (http, public):
        made = await http.post(path(invited, "invitations"), json={"count": 3})
        assert made.status_code == 201
        codes = made.json()["codes"]
        assert len({*codes}) == 3 and all(len(bytes.fromhex(code)) == 16 for code in codes)
        assert (await http.get(path(invited, "invitations"))).json() == {"free": 3}
        asked = [
            await public.post(path(invited, "invitation"), json={"code": c})
            for c in (codes[0], "0" * 32, "?")
        ]
        assert [answer.json() for answer in asked] == [{"free": True}, {"free": False}, {"free": False}]
        first = body(invited, code=codes[0])
        for _ in range(2):  # the second time it was lost on its way back
            answer = await public.post(path(invited, "reports"), json=first)
            assert answer.json() == {"accepted": 1, "refused": []}
        assert (await public.post(path(invited, "invitation"), json={"code": codes[0]})).json() == {
            "free": False
        }
        for wrong, reason in (
            (body(invited, code=codes[0]), NO_INVITATION),
            (body(invited), NO_INVITATION),
            ({**first, "report": number_words(1)}, ID_IN_USE),
        ):
            [refusal] = (await public.post(path(invited, "reports"), json=wrong)).json()["refused"]
            assert refusal == {"index": 0, "report_id": wrong["report_id"], "reason": reason}
        batch = [
            body(invited, code=codes[0]),
            body(invited, code=codes[1]),
            body(invited, report=99, code=codes[2]),
        ]
        receipt = (await http.post(path(invited, "reports"), json={"reports": batch})).json()
        assert receipt["accepted"] == 1
        assert [(r["index"], r["reason"]) for r in receipt["refused"]] == [
            (0, NO_INVITATION),
            (2, "out of range"),
        ]
        counters = (await http.get(path(invited, "counters"))).json()
        assert counters["reports"] == {"everyone": 2}
        assert counters["refused"] == {NO_INVITATION: 3, ID_IN_USE: 1, "out of range": 1}
        assert (await http.get(path(invited, "invitations"))).json() == {"free": 1}


async def test_only_curators_invite_and_only_where_invitations_are_used(
    store_url: str, invited: Campaign, campaign: Campaign
) -> None:
    async with on(store_url, invited, campaign) as (http, public):
        assert (await public.post(path(invited, "invitations"), json={"count": 1})).status_code == 401
        assert (await public.get(path(invited, "invitations"))).status_code == 401
        assert (await http.post(path(campaign, "invitations"), json={"count": 1})).status_code == 409
        for wrong in ({"count": 0}, {"count": 10_001}, {"count": "3"}, {}, {"count": 1, "more": 1}):
            assert (await http.post(path(invited, "invitations"), json=wrong)).status_code == 400
        assert (await http.get(path(invited, "invitations"))).json() == {"free": 0}


async def test_a_full_campaign_refuses(store_url: str, limited: Campaign) -> None:
    async def states(http: httpx.AsyncClient) -> set[str]:
        status = (await http.get(path(limited, "status"))).json()["state"]
        estimates = (await http.get(path(limited, "estimates"))).json()["state"]
        [entry] = (await http.get("/v1/campaigns")).json()["campaigns"]
        return {status, estimates, entry["state"]}

    async with on(store_url, limited) as (http, public):
        assert await states(http) == {"open"}
        answers = [await public.post(path(limited, "reports"), json=body(limited)) for _ in range(9)]
        assert await states(http) == {"full"}
        assert [answer.json()["accepted"] for answer in answers] == [1] * 7 + [0] * 2
        assert [answer.json()["refused"][0]["reason"] for answer in answers[7:]] == [FULL] * 2


async def test_a_person_withdraws_with_the_id_and_a_curator_removes_many(
    store_url: str, campaign: Campaign
) -> None:
    async with on(store_url, campaign) as (http, public):
        sent = [body(campaign) for _ in range(12)]
        await http.post(path(campaign, "reports"), json={"reports": sent})
        ids = [report["report_id"] for report in sent]

        async def remove(who: httpx.AsyncClient, given: Any) -> httpx.Response:
            return await who.post(path(campaign, "withdrawals"), json={"report_ids": given})

        assert (await remove(public, ids[:1])).json() == {"removed": 1}
        assert (await remove(public, ids[:1])).json() == {"removed": 0}
        assert (await remove(public, ids[:2])).status_code == 401
        for wrong in ([], ["x"], ids[0], None, [ids[0][:-1]], [fresh_id()] * 1001):
            assert (await remove(http, wrong)).status_code == 400
        assert (await remove(http, ids[:5])).json() == {"removed": 4}
        counters = (await http.get(path(campaign, "counters"))).json()
        assert counters["reports"] == {"everyone": 7}
        assert (await http.get(path(campaign, "estimates"))).json()["result"]["reports"] == 7
        assert (await http.post(path(campaign, "close"))).status_code == 200
        assert (await remove(public, ids[5:6])).json() == {"removed": 1}  # also after the end
