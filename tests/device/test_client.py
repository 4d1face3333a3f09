"""The Python client against a real server, and against a network that loses things."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import os
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import sample_surveys
from conftest import PRIOR
from local_server import Server, place
from patience import PATIENCE
from priorveil import Distribution, Prior, Secret, design
from priorveil.device.client import (
    DEFAULT_LIMIT,
    AnswerStore,
    Client,
    NotSent,
    NotStored,
    ReportRefused,
    RetryPolicy,
    default_folder,
)
from priorveil.device.transport import UnreadableResponse
from priorveil.device.wire import Report
from priorveil.errors import BudgetExceeded, InvalidInput, PlanError
from priorveil.plans.form import Form, Slot
from priorveil.questions.campaign import Campaign, ask, ask_with
from refusals import raises

HEADER = {"authorization": "Bearer a-secret-of-the-tests"}
NO_WAIT = RetryPolicy(attempts=4, sleep=lambda seconds: None)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORVEIL_STATE", str(tmp_path / "own"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("client")
    running = Server(str(folder / "a.db"), folder)
    yield running
    running.stop()


def put_up(server: Server, campaign: Campaign) -> str:
    base = f"http://127.0.0.1:{server.port}"
    made = httpx.post(
        f"{base}/v1/campaigns", content=campaign.to_json(), headers=HEADER, verify=False, timeout=PATIENCE
    )
    return base + str(made.json()["url"])


def counted(url: str) -> dict[str, int]:
    found = httpx.get(f"{url}/counters", headers=HEADER, verify=False, timeout=PATIENCE).json()
    return dict(found["reports"])


class Lossy(httpx.BaseTransport):
    """A network that fails as told, request by request: before sending, after sending, or with a status."""

    def __init__(self, *faults: str | int) -> None:
        self.faults = list(faults)
        self.inner = httpx.HTTPTransport(verify=False)
        self.bodies: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.bodies.append(request.read())
            fault = self.faults.pop(0) if self.faults else None
            if fault == "before":
                raise httpx.ConnectError("gone")
            if isinstance(fault, int):
                return httpx.Response(fault, headers={"retry-after": "1"})
            answer = self.inner.handle_request(request)
            if fault == "after":
                answer.read()
                raise httpx.ReadError("the response was lost")
            return answer
        return self.inner.handle_request(request)


def test_answers_once_whatever_the_network_does(server: Server, tmp_path: Path) -> None:
    campaign = ask("Lossy?", PRIOR)
    url = put_up(server, campaign)
    network = Lossy("before", 503, "after", 429)
    with Client(
        url, network, state=tmp_path / "state", retry=dataclasses.replace(NO_WAIT, attempts=9)
    ) as client:
        report = client.answer("Private")
        assert client.answer("None") == report, "the first answer is replayed"
    assert len(set(network.bodies)) == 1 and len(network.bodies) == 5
    assert counted(url) == {"everyone": 1}
    with Client(url, state=tmp_path / "state") as again:
        assert again.answer("Government") == report, "also after a restart"
    assert counted(url) == {"everyone": 1}
    [kept] = (tmp_path / "state").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert set(json.loads(network.bodies[0])) == {"report_id", "form", "report"}, "only the report leaves"


def test_unsent_reports_are_kept_and_sent_later(server: Server, tmp_path: Path) -> None:
    campaign = ask("Offline?", PRIOR)
    url = put_up(server, campaign)
    with Client(url, Lossy(*["before"] * 8), state=tmp_path, retry=NO_WAIT) as client:
        with pytest.raises(NotSent):
            client.answer("Private")
        assert client.flush() == 1
    assert counted(url) == {"everyone": 0}
    with Client(url, state=tmp_path, retry=NO_WAIT) as later:
        assert later.flush() == 0
        assert later.flush() == 0
        assert isinstance(later.answer("Private"), Report)
    assert counted(url) == {"everyone": 1}


def test_two_clients_of_one_person_agree(server: Server, tmp_path: Path) -> None:
    campaign = ask("Twice?", PRIOR)
    url = put_up(server, campaign)
    first, second = (Client(url, state=tmp_path) for _ in range(2))
    assert first.answer("Private") == second.answer("None")
    assert counted(url) == {"everyone": 1}


def test_numbers_are_answered_and_far_ones_count_at_the_ends(server: Server, tmp_path: Path) -> None:
    hours = Prior.grid([0, 20, 60], [0.3, 0.5, 0.2], outside="ends")
    url = put_up(server, ask("How many hours do you work?", hours))
    for value in (12.5, 7, -1e9, 1e300):
        with Client(url, state=AnswerStore()) as client:
            client.answer(value)
    with Client(url, state=tmp_path, limit=3) as client:
        for value in ("12.5 h", None, float("nan"), "", True):
            with pytest.raises(InvalidInput):
                client.answer(value)
        report = client.answer(33.3)
    with Client(url, state=tmp_path) as again:
        assert again.answer(1) == report
    assert counted(url) == {"everyone": 5}
    same = Prior.grid([0, 20, 60], [0.2, 0.5, 0.3], outside="ends")
    with (
        Client(put_up(server, ask("And last week?", same)), state=tmp_path, limit=3) as later,
        pytest.raises(BudgetExceeded),
    ):
        later.answer(33.3)
    with pytest.raises(InvalidInput) as caught:
        ask("How many?", Prior.grid([0, 20, 60], [0.3, 0.5, 0.2]))
    assert [hint.argument for hint in caught.value.hints] == ["outside='ends' in the prior"]


def test_several_attributes_are_answered_by_their_names(server: Server, tmp_path: Path) -> None:
    cells = {("young", "yes"): 0.2, ("young", "no"): 0.3, ("old", "yes"): 0.4, ("old", "no"): 0.1}
    url = put_up(server, ask("Your age, and do you smoke?", Prior.joint(cells, ("age", "smokes"))))
    with Client(url, state=tmp_path) as client:
        for smokes in ("maybe", None, ["yes"]):
            with pytest.raises(InvalidInput):
                client.answer({"age": "young", "smokes": smokes})
        with raises(InvalidInput, argument="answers"):
            client.answer("young")
        report = client.answer({"age": "old", "smokes": "yes"})
    with Client(url, state=tmp_path) as again:
        assert again.answer({"age": "young", "smokes": "no"}) == report
    assert counted(url) == {"everyone": 1}


def test_cohorts_and_every_mechanism(server: Server, cohorts: Campaign) -> None:
    url = put_up(server, cohorts)
    for name in cohorts.cohorts:
        with Client(url, state=AnswerStore()) as client:
            client.answer("Private", cohort=name)
    assert counted(url) == dict.fromkeys(cohorts.cohorts, 1)
    with Client(url) as client, raises(InvalidInput, argument="cohort"):
        client.answer("Private", cohort="nobody")


def test_what_cannot_be_trusted_is_not_answered(server: Server, campaign: Campaign) -> None:
    honest = json.loads(campaign.to_json())

    def serving(document: Any) -> httpx.MockTransport:
        return httpx.MockTransport(lambda request: httpx.Response(200, json=document))

    with (
        Client(f"http://x/v1/campaigns/{'0' * 64}", serving(honest)) as client,
        raises(InvalidInput, argument="campaign_url"),
    ):
        client.answer("Private")
    tampered = json.loads(json.dumps(honest))
    weights = tampered["cohorts"]["everyone"]["slots"][0][0]["plan"]["mechanism"]["weights"]
    weights[0], weights[1] = weights[1], weights[0]
    with Client(f"http://x/{campaign.id}", serving(tampered)) as client, pytest.raises(PlanError):
        client.answer("Private")
    with (
        Client(f"http://127.0.0.1:{server.port}/v1/campaigns/{'0' * 64}") as client,
        raises(ReportRefused, final=True),
    ):
        client.answer("Private")
    with Client(f"http://x/{campaign.id}", serving(honest)) as client, pytest.raises(InvalidInput):
        client.answer("Astronaut")


def test_closed_campaigns_cost_nothing(server: Server, tmp_path: Path) -> None:
    past = ask("Past?", PRIOR, closes=datetime.now(UTC) - timedelta(days=1))
    with (
        Client(put_up(server, past), state=tmp_path) as client,
        raises(ReportRefused, reason="closed", final=False),
    ):
        client.answer("Private")
    assert list(tmp_path.glob("*.json")) == []
    early = ask("Closed early?", PRIOR)
    url = put_up(server, early)
    httpx.post(f"{url}/close", headers=HEADER, verify=False, timeout=PATIENCE)
    with Client(url, state=tmp_path) as client:
        for _ in range(2):
            with raises(ReportRefused, reason="closed", final=False):
                client.answer("Private")


def told_by(campaign: Campaign) -> float:
    """The LDP level of a submission."""
    return campaign.form_for(None).levels().ldp


def test_the_limit_holds_over_all_campaigns_of_a_curator(server: Server, tmp_path: Path) -> None:
    """Whatever they ask: LDP levels add up over everything that the device remembers."""
    work, again = ask("Work?", PRIOR, 1.0), ask("Work, again?", PRIOR, 0.9)
    smoke = ask("Smoke?", Prior({"yes": 0.2, "no": 0.8}), 0.5)
    urls = [put_up(server, campaign) for campaign in (work, again, smoke)]
    with Client(urls[0], state=tmp_path, limit=0.99 * told_by(work)) as client, pytest.raises(BudgetExceeded):
        client.answer("Private")
    assert list(AnswerStore(tmp_path)) == []
    limit = told_by(work) + told_by(smoke)
    with Client(urls[0], state=tmp_path, limit=limit) as client:
        client.answer("Private")
    with Client(urls[1], state=tmp_path, limit=limit) as client, pytest.raises(BudgetExceeded):
        client.answer("Private")
    with Client(urls[2], state=tmp_path, limit=limit) as client:
        client.answer("no")
    assert counted(urls[1]) == {"everyone": 0}


def test_the_default_limit_is_stated_and_a_campaign_can_only_lower_it(server: Server, tmp_path: Path) -> None:
    strict, lax = ask("Strict?", PRIOR, limit=0.5), ask("Lax?", PRIOR, epsilon=9.0, limit=1e6)
    assert told_by(strict) > 0.5 and told_by(lax) > DEFAULT_LIMIT
    for campaign in (strict, lax):
        with Client(put_up(server, campaign), state=tmp_path) as client, pytest.raises(BudgetExceeded):
            client.answer("Private")
    with Client(put_up(server, lax), state=tmp_path, limit=math.inf) as client:
        client.answer("Private")


def test_campaigns_of_other_curators_have_a_limit_of_their_own(campaign: Campaign, tmp_path: Path) -> None:
    other = ask("Another question?", PRIOR)
    both = {each.id: each for each in (campaign, other)}

    def curator(request: httpx.Request) -> httpx.Response:
        id = request.url.path.split("/")[3]
        receipt = {"accepted": 1, "refused": []}
        content = json.loads(both[id].to_json()) if request.method == "GET" else receipt
        return httpx.Response(200, json=content)

    def answer(host: str, asked: Campaign) -> None:
        url = f"https://{host}/v1/campaigns/{asked.id}"
        with Client(url, httpx.MockTransport(curator), tmp_path, limit=told_by(campaign)) as client:
            client.answer("Private")

    answer("one.example", campaign)
    for spelling in ("one.example", "ONE.example", "one.example:443", "somebody@one.example"):
        with pytest.raises(BudgetExceeded):
            answer(spelling, other)
    answer("two.example", other)


def test_a_latent_secret_is_all_that_a_curator_is_told(server: Server, tmp_path: Path) -> None:
    secret = Secret([[0.9, 0.1], [0.2, 0.8]])
    value = Prior({"yes": 0.55, "no": 0.45})
    plan = design(value, 0.5, Distribution(), secret=secret)
    latent, other = (put_up(server, c) for c in (ask_with("Latent?", plan), ask("Other?", value)))
    with Client(latent, state=tmp_path / "first") as client:
        client.answer("yes")
    with Client(other, state=tmp_path / "first", limit=math.inf) as client, pytest.raises(BudgetExceeded):
        client.answer("yes")
    with Client(other, state=tmp_path / "second") as client:
        client.answer("yes")
    with Client(latent, state=tmp_path / "second", limit=math.inf) as client, pytest.raises(BudgetExceeded):
        client.answer("yes")


# -- several questions ---------------------------------------------------------------------------------------


def test_what_is_drawn_is_stored_before_it_is_shown(server: Server, tmp_path: Path, survey: Campaign) -> None:
    url = put_up(server, survey)
    with Client(url, state=tmp_path) as client:
        draw = client.begin()
        [begun] = AnswerStore(tmp_path)
        assert begun.report is None and begun.draw == draw and client.begin() == draw
        assert client.flush() == 0 and counted(url) == {"everyone": 0}
    questions = survey.questions_to_ask(None, draw)
    answers = {"smokes": "daily", "ills": ["asthma"], "hours": 38.5, "packs": 2}
    with Client(url, seen := Lossy(), state=tmp_path) as again:
        assert again.begin() == draw, "also after a restart"
        with raises(InvalidInput, argument="answers['ills']"):
            again.answer({"smokes": "daily"})
        for name in ("hours", "packs"):  # one of them is not drawn
            with raises(InvalidInput, argument=f"answers['{name}']") as refused:
                again.answer({**answers, name: "31337 or so"})
            assert "31337" not in str(refused.value)
        report = again.answer({name: answers[name] for name in questions})
        replay = again.answer({"smokes": "never"})
        assert replay == report and not report.replayed and replay.replayed, "the first answer is replayed"
    [stored] = AnswerStore(tmp_path)
    assert stored.report == report and stored.draw == draw and stored.ldp == told_by(survey)
    assert len(bytes.fromhex(report.report)) == 8 * survey.form_for(None).width
    [sent] = seen.bodies
    kept = (tmp_path / f"{survey.id}.json").read_text()
    assert not any(word in text for text in (kept, sent.decode()) for word in ("asthma", "38.5", "daily"))
    assert counted(url) == {"everyone": 1}


@pytest.fixture
def regions() -> Campaign:
    """Two cohorts that draw one of the same two questions; north asks about hours a little more often."""
    form = sample_surveys.form()
    north, south = (
        Form((form.slots[0], Slot.by_weights(form.slots[1].parts, weights)))
        for weights in ([1.01, 1], [1, 1])
    )
    return Campaign("Health", sample_surveys.QUESTIONS, {"north": north, "south": south})


def test_whoever_corrects_a_cohort_keeps_what_was_drawn(
    server: Server, tmp_path: Path, regions: Campaign
) -> None:
    with Client(url := put_up(server, regions), state=tmp_path) as client:
        draw = client.begin("south")
        [before] = AnswerStore(tmp_path)
        north = client.begin("north")
        [after] = AnswerStore(tmp_path)
        assert before.draws == after.draws and after.cohort == "north" and after.draw == north
        assert client.begin() == north, "the cohort that was given last"
    with Client(url, state=tmp_path) as again:
        assert again.begin("south") == draw, "also after a restart"
        report = again.answer({"smokes": "never", "hours": 8}, "south")
        assert again.answer({"smokes": "daily"}, "north") == report, "an answer stands"
        assert counted(url) == {"north": 0, "south": 1}
    (kept,) = AnswerStore(tmp_path)
    assert kept.draws == before.draws and kept.ldp == regions.promise["south"].ldp


def test_a_stored_draw_that_is_none_of_the_campaign_is_refused_and_stays(
    server: Server, tmp_path: Path, regions: Campaign
) -> None:
    with Client(put_up(server, regions), state=tmp_path) as client:
        client.begin("north")
        path = tmp_path / f"{regions.id}.json"
        answer = json.loads(path.read_text())
        north, south = regions.forms
        for draws in ({north: [0, 0]}, {north: [0, 0], south: [0, 9]}, {north: [0, 0], south: [0]}):
            path.write_text(text := json.dumps(answer | {"draws": draws}))
            with raises(InvalidInput, argument="state"):
                client.begin("south")
            with raises(InvalidInput, argument="state"):
                client.answer({"smokes": "never", "hours": 8, "kind": "pipe"}, "south")
            assert path.read_text() == text


def test_forms_share_one_draw(regions: Campaign) -> None:
    """Both parts are drawn about as often, and forms whose shares differ by a quarter of a point hardly disagree."""
    north, south = (form.id for form in regions.cohorts.values())
    draws = [regions.draw_forms() for _ in range(2000)]
    assert 880 < sum(draw[south][1] for draw in draws) < 1120
    assert sum(draw[north] != draw[south] for draw in draws) < 40


def test_every_path_through_a_survey_sends_as_much(server: Server, survey: Campaign) -> None:
    """Number, order and size of what is sent do not depend on the answers."""
    url, sizes = put_up(server, survey), set()
    paths = [
        {"smokes": "never"},
        {"smokes": "daily", "ills": [], "packs": 4},
        {"smokes": "daily", "ills": ["cough"], "packs": 0},
    ]
    for answers in paths:
        with Client(url, seen := Lossy(), state=AnswerStore()) as client:
            client.answer({"hours": 8, **answers})
        sizes.add(tuple(map(len, seen.bodies)))
    assert len(sizes) == 1


def test_a_broken_memory_is_said(tmp_path: Path) -> None:
    (tmp_path / f"{'0' * 64}.json").write_text("{")
    with raises(InvalidInput, argument="state"):
        Client(f"http://x/{'0' * 64}", state=tmp_path)


def test_answers_are_remembered_without_being_told_where(server: Server) -> None:
    url = put_up(server, ask("By default?", PRIOR))
    with Client(url) as client, Client(url) as again:
        report = client.answer("Private")
        assert again.answer("None") == report
    assert [path.name for path in sorted(default_folder().iterdir())] == [".lock", f"{report.campaign}.json"]
    assert counted(url) == {"everyone": 1}
    with Client(url, state=AnswerStore()) as forgetful:
        assert forgetful.answer("Private") != report
    assert counted(url) == {"everyone": 2}


def test_the_folder_may_be_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PRIORVEIL_STATE")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    Client(f"http://x/{'0' * 64}", state="~/answers")
    Client(f"http://x/{'0' * 64}")
    assert (tmp_path / "answers").is_dir()
    assert (tmp_path / ".local" / "state" / "priorveil" / "answers").is_dir()


def test_clients_made_before_each_other_answered_share_the_limit(server: Server) -> None:
    urls = [put_up(server, ask(f"Shared {i}?", PRIOR, 1.0)) for i in range(3)]
    clients = [Client(url, limit=3) for url in urls]
    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(client.answer, "Private") for client in clients]
    failed = [type(each.exception()) for each in done if each.exception() is not None]
    assert failed == [BudgetExceeded, BudgetExceeded]
    assert sum(counted(url)["everyone"] for url in urls) == 1


def test_what_was_not_sent_is_said_and_where_it_is(server: Server, tmp_path: Path) -> None:
    url = put_up(server, ask("Where?", PRIOR))
    with (
        Client(url, Lossy(*["before"] * 4), state=tmp_path / "a", retry=NO_WAIT) as client,
        pytest.raises(NotSent, match=f"kept in {tmp_path / 'a'}"),
    ):
        client.answer("Private")
    with (
        Client(url, Lossy(*["before"] * 4), state=AnswerStore(), retry=NO_WAIT) as client,
        pytest.raises(NotSent),
    ):
        client.answer("Private")


@pytest.mark.parametrize(
    "answer",
    [
        "<html>Welcome to our hotel</html>",
        "[]",
        "5",
        '{"refused": [{}]}',
        '{"refused": [null]}',
        '{"accepted": 1, "refused": null}',
        '{"accepted": 1, "refused": false}',
        '{"accepted": 0, "refused": []}',
        '{"refused": [{"reason": {}}]}',
        "[" * 50_000,
        " " * 100_000 + '{"accepted": 1, "refused": []}',
    ],
)
def test_a_stranger_that_answers_is_not_the_curator(server: Server, answer: str) -> None:
    class Hotel(Lossy):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return (
                httpx.Response(200, text=answer)
                if request.method == "POST"
                else super().handle_request(request)
            )

    url = put_up(server, ask(f"Hotel {answer.strip()[:99]}?", PRIOR))
    with Client(url, Hotel(), retry=NO_WAIT) as client:
        with raises(NotSent, cause=UnreadableResponse):
            client.answer("Private")
        assert client.flush() == 1
    with Client(url) as later:
        assert later.flush() == 0
    assert counted(url) == {"everyone": 1}


class Early(Lossy):
    """A curator whose clock is behind ours, for the first uploads."""

    def __init__(self, early: int) -> None:
        super().__init__()
        self.early = early

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "POST" or self.early == 0:
            return super().handle_request(request)
        self.early -= 1
        refusal = {"index": 0, "report_id": json.loads(request.read())["report_id"], "reason": "not yet open"}
        return httpx.Response(200, json={"accepted": 0, "refused": [refusal]})


def test_a_curator_whose_clock_is_behind_is_answered_later(server: Server) -> None:
    url = put_up(server, ask("Early?", PRIOR))
    with Client(url, Early(2), retry=NO_WAIT) as client:
        with raises(ReportRefused, reason="not yet open", final=False):
            client.answer("Private")
        assert client.flush() == 1
        assert client.answer("Private") == client.answer("Private")
    assert counted(url) == {"everyone": 1}


async def test_a_curator_whose_clock_jumps_is_asked_again(tmp_path: Path) -> None:
    now, day = datetime.now(UTC), timedelta(days=1)
    campaign = ask("Now?", PRIOR, opens=now - day, closes=now + day)

    def answer(port: int, refusal: str | None) -> int:
        url = f"http://127.0.0.1:{port}/v1/campaigns/{campaign.id}"
        with Client(
            url, httpx.HTTPTransport(verify=False), state=tmp_path / "state", retry=NO_WAIT
        ) as client:
            if refusal is None:
                client.answer("Private")
            else:
                with raises(ReportRefused, reason=refusal, final=False):
                    client.answer("Private")
            return client.flush()

    async with place(tmp_path, campaign) as there:
        for shift, refusal in ((2 * day, "closed"), (-2 * day, "not yet open"), (0 * day, None)):
            there.app.service.life.clock = lambda shift=shift: now + shift
            waiting = await asyncio.to_thread(answer, there.port, refusal)
            assert waiting == (refusal is not None)
        assert await there.stored() == 1


def test_a_refusal_that_may_pass_is_tried_again(server: Server) -> None:
    url = put_up(server, ask("Forbidden?", PRIOR))
    with Client(url, Lossy(403, 403), retry=NO_WAIT) as client:
        with raises(ReportRefused, final=False):
            client.answer("Private")
        assert client.flush() == 1
        assert client.flush() == 0
    assert counted(url) == {"everyone": 1}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "http://x/v1/campaigns",
        f"ftp://x/{'0' * 64}",
        f"http://x:port/{'0' * 64}",
        f"http:///{'0' * 64}",
        None,
    ],
)
def test_an_address_that_cannot_be_one_is_said_at_once(url: Any) -> None:
    with raises(InvalidInput, argument="campaign_url"):
        Client(url)


def test_wrong_settings_are_said_at_once(tmp_path: Path) -> None:
    with raises(InvalidInput, argument="limit"):
        Client(f"http://x/{'0' * 64}", limit=-1)
    (tmp_path / "file").write_text("")
    for state in ("file", "file/in"):
        with raises(InvalidInput, argument="state"):
            Client(f"http://x/{'0' * 64}", state=tmp_path / state)
    for state in ("x" * 300, "\0", "/proc/x"):
        with raises(InvalidInput, argument="state"):
            Client(f"http://x/{'0' * 64}", state=tmp_path / state)


def test_the_address_of_the_page_for_people_will_do(server: Server) -> None:
    url = put_up(server, ask("Page?", PRIOR)).replace("/v1/campaigns/", "/answer/")
    with Client(url) as client:
        client.answer("Private")
        assert client.flush() == 0


@pytest.mark.parametrize(
    "value",
    [
        "Astronaut",
        ["Astronaut"],
        ["Private"],
        ["Private", "None"],
        12345.5,
        b"Astronaut",
        {"Astronaut": 12345},
        None,
        float("nan"),
    ],
)
def test_no_error_tells_the_value(server: Server, value: Any) -> None:
    url = put_up(server, ask("Value?", PRIOR))
    with Client(url) as client, pytest.raises(InvalidInput) as told:
        client.answer(value)
    assert not any(word in str(told.value) for word in ("Astronaut", "12345", "['Private"))
    assert "missing=" not in str(told.value), "it has no such argument"
    assert list(default_folder().glob("*.json")) == []


def test_a_curator_that_moved_is_reached_at_its_new_address(server: Server, tmp_path: Path) -> None:
    campaign = ask("Moved?", PRIOR)
    new = put_up(server, campaign)

    def gone(request: httpx.Request) -> httpx.Response:
        answer = httpx.Response(200, json=json.loads(campaign.to_json()))
        return answer if request.method == "GET" else httpx.Response(503)

    old = f"http://old.invalid/v1/campaigns/{campaign.id}"
    with (
        Client(old, httpx.MockTransport(gone), state=tmp_path, retry=NO_WAIT) as client,
        pytest.raises(NotSent),
    ):
        client.answer("Private")
    with (
        Client(new, Lossy(*["before"] * 8), state=tmp_path, retry=NO_WAIT) as client,
        pytest.raises(NotSent),
    ):
        client.answer("Private")
    [kept] = AnswerStore(tmp_path)
    assert kept.url == new, "what others send later goes there too"
    with Client(f"http://other.invalid/{'0' * 64}", Lossy(), state=tmp_path, retry=NO_WAIT) as other:
        assert other.flush() == 0
    assert counted(new) == {"everyone": 1}


@contextmanager
def no_room() -> Iterator[None]:
    """No file may get any longer than 100 bytes, as if the disk were full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Filling(Lossy):
    """With an upload the disk fills up."""

    def __init__(self, disk: ExitStack) -> None:
        super().__init__()
        self.disk = disk

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.disk.enter_context(no_room())
        return super().handle_request(request)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on files there")
def test_what_cannot_be_remembered_is_not_sent(server: Server, tmp_path: Path) -> None:
    url = put_up(server, ask("Full?", PRIOR))
    network = Lossy()
    with Client(url, network, state=tmp_path) as client:
        with no_room(), pytest.raises(NotStored, match=r"stored in .*too large"):
            client.answer("Private")
        assert network.bodies == [] and os.listdir(tmp_path) == [".lock"]
        client.answer("Private")
    assert counted(url) == {"everyone": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on files there")
def test_an_answer_that_was_taken_stands_even_if_that_cannot_be_noted(server: Server, tmp_path: Path) -> None:
    url = put_up(server, ask("Full later?", PRIOR))
    with ExitStack() as disk, Client(url, Filling(disk), state=tmp_path) as client:
        report = client.answer("Private")
    with Client(url, again := Lossy(), state=tmp_path) as client:
        assert client.answer("Private") == report
    assert len(again.bodies) == 1, "it is sent once more, and counted once"
    assert counted(url) == {"everyone": 1}


# -- invitations and withdrawals -----------------------------------------------------------------------------


def invited(server: Server, question: str, count: int, **details: Any) -> tuple[str, list[str]]:
    """The address of a new campaign with invitations, and their codes."""
    url = put_up(server, ask(question, PRIOR, smallest_count=1, admission="invitation", **details))
    made = httpx.post(f"{url}/invitations", json={"count": count}, headers=HEADER, timeout=PATIENCE)
    return url, list(made.json()["codes"])


def test_an_answer_needs_a_free_code_before_anything_is_drawn(server: Server, tmp_path: Path) -> None:
    url, [code] = invited(server, "Invited?", 1)
    state = tmp_path / "answers"
    with Client(url, state=state, retry=NO_WAIT) as client, raises(InvalidInput, argument="code"):
        client.answer("Private")
    for wrong in ("", "0" * 31, "no code", code[:-1] + "x"):
        with raises(InvalidInput, argument="code") as caught:
            Client(url, state=state, code=wrong)
        assert not wrong or wrong not in str(caught.value)
    unknown = Client(url, state=state, retry=NO_WAIT, code="0" * 32)
    with unknown as client, raises(ReportRefused, reason="no invitation", final=False):
        client.answer("Private")
    assert list(AnswerStore(state)) == []
    link = url.replace("/v1/campaigns/", "/answer/") + f"#code={code}"
    with Client(link, state=state, retry=NO_WAIT) as client:
        report = client.answer("Private")
        assert client.answer("Private") == report
    [kept] = AnswerStore(state)
    assert kept.sent and kept.code is None and code not in (state / f"{kept.campaign}.json").read_text()
    assert counted(url) == {"everyone": 1}
    used = Client(url, state=tmp_path / "somebody else", retry=NO_WAIT, code=code)
    with used as client, raises(ReportRefused, reason="no invitation"):
        client.answer("None")


def test_a_lost_receipt_is_asked_for_again_with_the_used_code(server: Server, tmp_path: Path) -> None:
    url, [code] = invited(server, "Lost receipt?", 1)
    state = tmp_path / "answers"
    lossy = Lossy("", *["after"] * 4)  # the code is checked, then every receipt is lost
    with Client(url, lossy, state, retry=NO_WAIT, code=code) as client, raises(NotSent):
        client.answer("Private")
    assert counted(url) == {"everyone": 1}
    [kept] = AnswerStore(state)
    assert not kept.sent and kept.code == code
    other = put_up(server, ask("Some other?", PRIOR))
    with Client(other, state=state, retry=NO_WAIT) as client:  # it has no code of its own
        assert client.flush() == 0
    assert counted(url) == {"everyone": 1}


def test_another_code_helps_where_the_first_was_used_meanwhile(server: Server, tmp_path: Path) -> None:
    url, [first, second] = invited(server, "Two codes?", 2)
    state = tmp_path / "answers"
    with (
        Client(url, Lossy("", *["before"] * 4), state, retry=NO_WAIT, code=first) as client,
        raises(NotSent),
    ):
        client.answer("Private")
    with Client(url, state=tmp_path / "thief", retry=NO_WAIT, code=first) as client:
        client.answer("None")
    with Client(url, state=state, retry=NO_WAIT) as client:
        with raises(ReportRefused, reason="no invitation", final=False):
            client.answer("Private")
        assert client.flush() == 1
    with Client(url, state=state, retry=NO_WAIT, code=second) as client:
        client.answer("Private")
    assert counted(url) == {"everyone": 2}


def test_a_withdrawn_answer_is_removed_and_never_sent_again(server: Server, tmp_path: Path) -> None:
    url = put_up(server, ask("Withdraw?", PRIOR, smallest_count=1))
    state = tmp_path / "answers"
    with Client(url, state=state, retry=NO_WAIT) as client:
        with raises(InvalidInput, argument="state"):
            client.withdraw()
        client.answer("Private")
        assert counted(url) == {"everyone": 1}
        assert client.withdraw() and counted(url) == {"everyone": 0}
        assert not client.withdraw()
        with raises(ReportRefused, reason="withdrawn"):
            client.answer("Private")
        assert client.flush() == 0 and counted(url) == {"everyone": 0}


def test_flush_does_not_send_what_was_withdrawn_meanwhile(server: Server, tmp_path: Path) -> None:
    urls = {(url := put_up(server, ask(f"Flush {i}?", PRIOR))).rpartition("/")[2]: url for i in range(2)}
    first, second = (urls[id] for id in sorted(urls))  # in the order in which they are sent
    for url in (first, second):
        with Client(url, Lossy(*["before"] * 4), tmp_path, retry=NO_WAIT) as client, raises(NotSent):
            client.answer("Private")

    class Slow(Lossy):
        """A network on which another process withdraws the second answer while the first one is sent."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            with Client(second, state=tmp_path, retry=NO_WAIT) as other:
                assert not other.withdraw()
            return super().handle_request(request)

    with Client(first, Slow(), tmp_path, retry=NO_WAIT) as client:
        assert client.flush() == 0
    assert [counted(url) for url in (first, second)] == [{"everyone": 1}, {"everyone": 0}]


@pytest.mark.parametrize("overtakes", [True, False])
def test_a_withdrawal_while_the_report_is_sent_is_not_lost(
    server: Server, tmp_path: Path, overtakes: bool
) -> None:
    """It comes to the curator before the report, which is stored then, or before the receipt comes back."""
    url = put_up(server, ask(f"Withdraw first, {overtakes}?", PRIOR, smallest_count=1))

    class Slow(Lossy):
        """A network on which another process withdraws the answer while its report is sent."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            receipt = None if overtakes else super().handle_request(request)
            if request.url.path.endswith("/reports"):
                with Client(url, state=tmp_path, retry=NO_WAIT) as other:
                    assert other.withdraw() is not overtakes
            return receipt or super().handle_request(request)

    with Client(url, Slow(), tmp_path, retry=NO_WAIT) as client:
        with raises(ReportRefused, reason="withdrawn"):
            client.answer("Private")
        assert counted(url) == {"everyone": 0}
        with raises(ReportRefused, reason="withdrawn"):
            client.answer("Private")


def test_a_withdrawal_that_does_not_arrive_can_be_repeated(server: Server, tmp_path: Path) -> None:
    url = put_up(server, ask("Withdraw again?", PRIOR, smallest_count=1))
    state = tmp_path / "answers"
    with Client(url, state=state, retry=NO_WAIT) as client:
        client.answer("Private")
    with Client(url, Lossy(*["before"] * 4), state, retry=NO_WAIT) as client, raises(NotSent):
        client.withdraw()
    with Client(url, state=state, retry=NO_WAIT) as client:
        assert client.withdraw() and counted(url) == {"everyone": 0}


def test_nothing_is_withdrawn_after_publication_and_nothing_changes(server: Server, tmp_path: Path) -> None:
    url = put_up(server, ask("Withdraw too late?", PRIOR, smallest_count=1))
    with Client(url, state=tmp_path / "answers", retry=NO_WAIT) as client:
        sent = client.answer("Private")
        for step in ("close", "publication"):
            assert httpx.post(f"{url}/{step}", headers=HEADER, verify=False, timeout=PATIENCE).is_success
        with raises(ReportRefused, final=False):
            client.withdraw()
        assert counted(url) == {"everyone": 1}
        assert client.answer("Private") == sent, "it is not remembered as withdrawn"


def test_an_open_campaign_is_not_told_a_code(server: Server, tmp_path: Path) -> None:
    url, seen = put_up(server, ask("Open?", PRIOR)), Lossy()
    with Client(url, seen, tmp_path / "answers", retry=NO_WAIT, code="0" * 32) as client:
        client.answer("Private")
    assert not [body for body in seen.bodies if b"0" * 32 in body]


def test_a_full_campaign_refuses_for_now(server: Server, tmp_path: Path) -> None:
    url = put_up(server, ask("Full?", PRIOR, most_reports=1))
    with Client(url, state=tmp_path / "first", retry=NO_WAIT) as first:
        first.answer("Private")
        with Client(url, state=tmp_path / "second", retry=NO_WAIT) as second:
            with raises(ReportRefused, reason="full", final=False):
                second.answer("Private")
            first.withdraw()
            assert second.flush() == 0
    assert counted(url) == {"everyone": 1}
