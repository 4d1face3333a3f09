"""Surveys that are designed for the dashboard: what comes back, what is refused, and what becomes of the processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from local_server import HEADER, PATIENT_SURVEYS, TOKEN, Server, running, served
from patience import PATIENCE, until
from priorveil.curator.app import Curator, create_app
from priorveil.curator.messages import XLSX
from priorveil.curator.operations import PROBLEM
from priorveil.curator.server import find_address, serving
from priorveil.curator.settings import DEFAULTS, Settings, SurveyLimits
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.survey_process import REFUSED_STATUS, design_or_refuse
from priorveil.curator.tokens import Token
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port
from sample_survey_files import SURVEY, TOML, changed, write_form

JSON = "application/json"
DOCUMENT: dict[str, Any] = tomllib.loads(TOML)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "reports.db")


def on(
    store: SqliteStore, limits: SurveyLimits = PATIENT_SURVEYS
) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return running(store, settings=replace(DEFAULTS, surveys=limits))


def check(http: httpx.AsyncClient, content: bytes | str, kind: str, **more: Any) -> Awaitable[httpx.Response]:
    return http.post("/v1/surveys", content=content, headers={"content-type": kind}, timeout=PATIENCE, **more)


def check_document(http: httpx.AsyncClient, **changes: Any) -> Awaitable[httpx.Response]:
    return check(http, json.dumps({**DOCUMENT, **changes}), JSON)


def with_question(number: int, **changes: Any) -> list[dict[str, Any]]:
    """The questions, with other values in one of them."""
    questions = [dict(question) for question in DOCUMENT["question"]]
    questions[number].update(changes)
    return questions


async def test_a_survey_is_designed_and_can_be_created(store: SqliteStore, tmp_path: Path) -> None:
    async with on(store) as http:
        sent = {"application/toml": TOML.encode(), JSON: json.dumps(DOCUMENT).encode()}
        found = [(await check(http, *each[::-1], params={"people": "2000"})).json() for each in sent.items()]
        assert found[0]["check"] == found[1]["check"]
        made = found[0]["check"]
        assert made["people"] == [2000, 20000] and made["lip"] <= 1 and found[0]["remarks"] == []
        assert found[0]["words"]["promise"]["sentences"][0].startswith(
            "If answers are as common as the survey says"
        )
        assert "protected by LDP" in found[0]["words"]["promise"]["sentences"][-1], "the age is unknown"
        assert [row[0] for row in found[0]["words"]["table"]["rows"]] == ["smokes", "quit", "age"]
        campaign = Campaign.from_json(found[0]["campaign"])
        assert [question.name for question in campaign.questions] == ["smokes", "quit", "age"]
        assert campaign.expected_people == 2000, "the results promise what the check said"
        assert (await http.get("/v1/campaigns")).json() == {"campaigns": []}, "nothing is stored by a check"
        made = await http.post("/v1/campaigns", content=found[0]["campaign"])
        assert (made.status_code, made.json()["id"]) == (201, campaign.id)
        (record, *_) = (await http.get("/v1/records")).json()["records"]
        assert (record["action"], record["campaign"]) == ("created", campaign.id)


async def test_an_xlsform_is_designed(store: SqliteStore, tmp_path: Path) -> None:
    form = write_form(tmp_path / "a.xlsx", survey=[*SURVEY, ["text", "remarks", "Anything?", "Noch etwas?"]])
    async with on(store) as http:
        found = (await check(http, form.read_bytes(), XLSX)).json()
        assert "sheet survey, cell A9: remarks of type text" in found["check"]["left_out"][0]
        assert Campaign.from_json(found["campaign"]).languages == ("en", "de")


def outcome(**changes: Any) -> tuple[int, dict[str, Any]]:
    """What the process that designs surveys answers to the document with these changes; any plan will do."""
    return design_or_refuse("survey.json", json.dumps({**DOCUMENT, **changes}).encode(), 300, deadline=0)


def refusal(**changes: Any) -> dict[str, Any]:
    """What it says of a wrong one."""
    status, problem = outcome(**changes)
    assert status == REFUSED_STATUS
    return problem


async def test_a_mistake_has_its_place(store: SqliteStore, tmp_path: Path) -> None:
    form = write_form(tmp_path / "a.xlsx", survey=changed(SURVEY, "A2", "select_one age"))
    wrong = TOML.replace("no = 0.8", "no = 0.7")
    async with on(store) as http:
        response = await check(http, wrong, "application/toml")
        assert response.status_code == 422 and response.headers["content-type"] == PROBLEM
        problem = response.json()
        assert problem["line"] == 12
        assert problem["detail"] == "survey.toml: line 12: prior: they add up to 0.9, not to 1: correct them"
        assert problem["advice"] == "prior: they add up to 0.9, not to 1: correct them"
    _, problem = design_or_refuse("survey.xlsx", form.read_bytes(), 300)
    assert problem["cell"] == "survey!A2"


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"question": with_question(1, prior={"yes": 0.5, "no": 0.5})}, ("question", 1, "prior")),
        ({"question": with_question(0, text={"de": "Rauchen Sie?"})}, ("question", 0, "text", "en")),
        ({"question": with_question(2, range=[1])}, ("question", 2, "range")),
        ({"question": with_question(1, asked_if={"smoking": ["yes"]})}, ("question", 1, "asked_if")),
        ({"question": with_question(0, name="quit")}, ("question", 1, "name")),
        ({"question": {}}, ("question",)),
        ({"epsilon": 0}, ("epsilon",)),
    ],
)
def test_a_mistake_in_json_has_its_keys(changes: dict[str, Any], keys: tuple[Any, ...]) -> None:
    assert refusal(**changes)["keys"] == keys


def test_keys_are_named_in_words() -> None:
    assert refusal(epsilon=0)["detail"].startswith("survey.json: epsilon: 0: ")
    assert "question 2: prior: " in refusal(question=with_question(1, prior=1))["detail"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"title": 1%s}' % (b"0" * 9000)]
)
@pytest.mark.parametrize("ending", ["json", "toml", "xlsx"])
def test_what_is_no_survey_is_refused(content: bytes, ending: str) -> None:
    status, problem = design_or_refuse(f"survey.{ending}", content, 300)
    assert status == REFUSED_STATUS and problem["detail"].startswith(f"survey.{ending}: ")


def test_a_survey_that_is_sent_reads_no_files(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("smokes,share\nyes,0.5\nno,0.5\n", encoding="utf-8")
    content = TOML.replace("prior = {yes = 0.2, no = 0.8}", f'prior = {{file = "{table}"}}')
    status, in_toml = design_or_refuse("survey.toml", content.encode(), 300)
    assert status == REFUSED_STATUS and in_toml["line"] == 12
    assert "reads no files here: choose the table in the form" in in_toml["detail"]
    in_json = refusal(question=with_question(0, prior={"file": "/etc/passwd"}))
    assert "reads no files here" in in_json["detail"] and in_json["keys"] == ("question", 0, "prior")


def test_tables_travel_with_the_survey() -> None:
    questions = with_question(0, prior={"sheet": "census", "column": "answer"})

    def table(yes: int) -> dict[str, Any]:
        return {"census": [{"answer": "yes", "count": yes}, {"answer": "no", "count": "80"}]}

    (_, counted), (_, typed) = outcome(question=questions, tables=table(20)), outcome()
    assert counted["check"].parts == typed["check"].parts, "the same shares"
    rare = refusal(question=questions, tables=table(9))
    assert rare["keys"] == ("question", 0, "prior") and "fewer than" in rare["detail"]
    public = with_question(0, prior={"sheet": "census", "column": "answer", "public": True})
    assert outcome(question=public, tables=table(9))[0] == 0
    both = {"census": [{"answer": "yes", "share": 1, "count": 3}]}
    assert "remove one" in refusal(question=questions, tables=both)["detail"]
    uneven = {"census": [{"answer": "yes"}, {"count": 3}]}
    assert refusal(question=questions, tables=uneven)["keys"] == ("tables", "census")


async def test_only_admins_check_surveys(store: SqliteStore) -> None:
    async with on(store) as http:
        await store.add_token(Token.of("reader", "reader", "analyst"))
        await http.app.service.load_tokens()  # type: ignore[attr-defined]
        for token, status in (("reader", 403), ("wrong", 401)):
            header = {"authorization": f"Bearer {token}", "content-type": JSON}
            response = await http.post("/v1/surveys", content="{}", headers=header)
            assert response.status_code == status


async def test_requests_are_bounded(store: SqliteStore) -> None:
    async with on(store, replace(PATIENT_SURVEYS, body=100)) as http:
        assert (await check(http, "x" * 101, JSON)).status_code == 413
        assert (await check(http, "x", "text/plain")).status_code == 415
        for people in ("0", "-1", "many", "1" * 10, "٣"):
            assert (await check(http, "x", JSON, params={"people": people})).status_code == 400


async def test_a_survey_that_needs_too_much_memory_is_refused(store: SqliteStore) -> None:
    async with on(store, replace(PATIENT_SURVEYS, memory=400 << 20)) as http:
        codes = {f"o{i}": f"Option {i}" for i in range(400)}
        question = {"name": "a", "text": "A?", "options": codes, "prior": "unknown"}
        many = [{**question, "name": f"a{i}"} for i in range(2)]
        groups = [{"questions": ["a0", "a1"], "prior": "unknown"}]
        response = await check_document(http, question=many, together=groups)
        assert response.status_code == 422, response.text


# -- processes ---------------------------------------------------------------------------------------------------


def children(of: int | None = None) -> list[int]:
    """The processes that design surveys for another one, or for this one."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if (
                parent == (of or os.getpid())
                and b"priorveil.curator.survey_process" in (folder / "cmdline").read_bytes()
            ):
                found.append(int(folder.name))
        except (OSError, ValueError, IndexError):
            pass
    return found


async def halted(of: int | None = None) -> int:
    """The process that designs a survey, once there is one; it goes no further."""
    await until(lambda: children(of), "a process designs the survey")
    (child,) = children(of)
    os.kill(child, signal.SIGSTOP)
    return child


@contextmanager
def no_children_left() -> Iterator[None]:
    assert children() == []
    yield
    assert children() == []


@asynccontextmanager
async def leaving_no_children(
    store: SqliteStore, limits: SurveyLimits = PATIENT_SURVEYS
) -> AsyncIterator[httpx.AsyncClient]:
    with no_children_left():
        async with on(store, limits) as http:
            yield http


async def test_a_design_is_told_no_secret_of_the_curator(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPASSWORD", "PRIORVEIL_STORE", "PRIORVEIL_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a secret of the curator")

    async with leaving_no_children(store) as http:
        design = asyncio.ensure_future(check_document(http))
        child = await halted()
        environment = Path(f"/proc/{child}/environ").read_bytes()
        os.kill(child, signal.SIGCONT)
        assert b"OMP_NUM_THREADS=1" in environment and b"secret" not in environment.lower()
        assert (await design).status_code == 200


async def test_surveys_are_designed_one_after_the_other(store: SqliteStore) -> None:
    async with leaving_no_children(store, replace(PATIENT_SURVEYS, waiting=1)) as http:
        first = asyncio.ensure_future(check_document(http))
        child = await halted()
        second = asyncio.ensure_future(check_document(http))
        designer = http.app.service.surveys  # type: ignore[attr-defined]
        await until(lambda: len(designer._tasks) == 2, "the second survey waits")
        third = await check_document(http)
        assert (third.status_code, third.headers["retry-after"]) == (429, "1")
        assert (await http.get("/healthz")).status_code == 200 and children() == [child]
        os.kill(child, signal.SIGCONT)
        assert [(await each).status_code for each in (first, second)] == [200, 200]


async def test_a_design_that_takes_too_long_is_ended(store: SqliteStore) -> None:
    async with leaving_no_children(store, SurveyLimits(seconds=1)) as http:
        design = asyncio.ensure_future(check_document(http))
        await halted()
        response = await design
        assert response.status_code == 422 and "took more than 1 seconds" in response.json()["detail"]


async def test_a_design_that_the_kernel_ends_is_refused(store: SqliteStore) -> None:
    async with leaving_no_children(store) as http:
        design = asyncio.ensure_future(check_document(http))
        os.kill(await halted(), signal.SIGKILL)
        response = await design
        assert response.status_code == 422 and "too much memory" in response.json()["detail"]


def serve(store: SqliteStore, work: Callable[[Curator, int], Awaitable[None]]) -> None:
    """Work with a curator on a socket."""

    async def run() -> None:
        app = create_app(store, Settings(surveys=PATIENT_SURVEYS))
        address = find_address("127.0.0.1", free_port())
        async with app.lifespan():
            await store.add_token(Token.of(TOKEN, "tests", "admin"))
            await app.service.load_tokens()
            async with serving(app, address):
                await work(app, address[1])

    asyncio.run(run())


async def ask_for_design(port: int) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(DOCUMENT).encode()
    head = (
        f"POST /v1/surveys HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: {JSON}\r\n"
    )
    writer.write(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    return writer


def test_a_design_ends_when_its_client_goes_away(store: SqliteStore) -> None:
    async def work(app: Curator, port: int) -> None:
        writer = await ask_for_design(port)
        await halted()
        writer.transport.abort()
        await until(lambda: not children(), "the process has ended")
        await until(lambda: not app.service.surveys._tasks, "its place in the queue is free")

    with no_children_left():
        serve(store, work)


def test_a_design_ends_with_the_curator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop does not wait for it, and the client is told."""
    monkeypatch.setenv("PRIORVEIL_CONNECTIONS_STOP_SECONDS", str(10 * PATIENCE))

    async def work(server: Server) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", headers=HEADER) as http:
            design = asyncio.ensure_future(check_document(http))
            child = await halted(server.process.pid)
            server.process.send_signal(signal.SIGTERM)
            assert (await design).status_code == 503
        await until(lambda: server.process.poll() is not None, "the curator has stopped")
        assert not Path(f"/proc/{child}").exists()

    with served(str(tmp_path / "a.db"), tmp_path) as [server]:
        asyncio.run(work(server))
