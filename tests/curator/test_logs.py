"""What the curator logs: lines with times in UTC, as text or JSON, and nothing about a person, ever."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from local_server import Server, served
from patience import PATIENCE, wait_until
from priorveil.curator.logs import configure_logging, log_loop_error
from priorveil.curator.settings import LogSettings
from priorveil.questions.campaign import Campaign
from submissions import number_words

SECRET = "Croesus"  # stands for whatever nobody may read in a log


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before when the test is over."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def lines(root: logging.Logger, capsys: pytest.CaptureFixture[str], **settings: str) -> str:
    configure_logging(LogSettings(**settings))  # type: ignore[arg-type]
    log = logging.getLogger("priorveil.curator.service")
    log.info("a line of %d words", 5)
    log.warning("a failure")
    try:
        raise ValueError(f"quotes {SECRET}")
    except ValueError:
        log.exception("an error")
    return capsys.readouterr().err


def test_plain_lines_have_times_in_utc(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    before = datetime.now(UTC)
    first, second, third, *frames = lines(root, capsys).splitlines()
    moment, _, rest = first.partition(" ")
    assert moment.endswith("Z") and abs((datetime.fromisoformat(moment) - before).total_seconds()) < PATIENCE
    assert (rest, second.partition(" ")[2]) == ("info a line of 5 words", "warning a failure")
    assert third.endswith("error an error") and frames[0] == "ValueError"
    assert "Traceback" in frames[1], "other tests look for it"


def test_json_lines_hold_the_same(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    records = [json.loads(line) for line in lines(root, capsys, format="json").splitlines()]
    assert [(r["level"], r["message"]) for r in records] == [
        ("info", "a line of 5 words"),
        ("warning", "a failure"),
        ("error", "an error"),
    ]
    assert all(r["time"].endswith("Z") and r["logger"] == "priorveil.curator.service" for r in records)
    assert records[-1]["error"].startswith("ValueError\n")


@pytest.mark.parametrize(("level", "count"), [("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_can_be_chosen(
    root: logging.Logger, capsys: pytest.CaptureFixture[str], level: str, count: int
) -> None:
    assert len(lines(root, capsys, format="json", level=level).splitlines()) == count


@pytest.mark.parametrize("format", ["plain", "json"])
async def test_the_message_of_an_unexpected_error_is_left_out(
    root: logging.Logger, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    assert SECRET not in lines(root, capsys, format=format)

    async def fail() -> None:
        raise ValueError(f"quotes {SECRET}")

    asyncio.get_running_loop().set_exception_handler(log_loop_error)
    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    del task
    logged = capsys.readouterr().err
    assert "event loop" in logged and SECRET not in logged


# -- a hostile session --------------------------------------------------------------------------------------


def hostile(server: Server, campaign: Campaign, folder: Path) -> list[str]:
    """Send what breaks rules, damage the store, and return everything that was sent and that must not be logged."""
    base, form = f"http://127.0.0.1:{server.port}", campaign.form_for(None).id
    here = f"{base}/v1/campaigns/{campaign.id}"
    ids = [os.urandom(16).hex() for _ in range(40)]
    secrets = [*ids, SECRET, "Mozilla", "203.0.113.7", "a-secret-of-the-tests", "an-invitation-code"]
    headers = {"user-agent": "Mozilla", "x-forwarded-for": "203.0.113.7", "forwarded": "for=203.0.113.7"}
    bodies: list[object] = [
        {"report_id": ids[0], "form": form, "report": number_words(0)},
        {"report_id": ids[1], "form": form, "report": number_words(10**9)},
        {"report_id": ids[2], "form": SECRET, "report": number_words(0)},
        {"report_id": ids[3], "form": form, "report": SECRET},
        {"report_id": ids[4], "form": form, "report": number_words(0), "code": "an-invitation-code"},
        {"report_id": SECRET},
        {"reports": [{"report_id": id, "form": form, "report": number_words(1)} for id in ids[5:]]},
        {"reports": SECRET},
        [SECRET],
    ]
    with httpx.Client(headers=headers, timeout=PATIENCE) as http:
        for body in bodies:
            http.post(f"{here}/reports", json=body)
            http.post(f"{here}/withdrawals", json={"report_ids": [ids[0]], "more": body})
            http.post(f"{here}/invitation", json={"code": "an-invitation-code"})
        for token in (SECRET, "a-secret-of-the-tests"):
            bearer = {"authorization": f"Bearer {token}"}
            for address in (f"{base}/v1/campaigns", f"{here}/estimates", f"{here}/reports?format={SECRET}"):
                http.get(address, headers=bearer)
            http.post(f"{base}/v1/campaigns", content=f'{{"title": "{SECRET}"', headers=bearer)
        for odd in (f"/v1/campaigns/{SECRET}", f"/static/{SECRET}", f"/{SECRET}?{SECRET}={ids[0]}"):
            http.get(base + odd)
        (folder / "reports.db-wal").write_bytes(b"")
        os.truncate(folder / "reports.db", 0)
        for body in bodies:
            with suppress(httpx.TransportError):
                http.post(f"{here}/reports", json=body)
        with suppress(httpx.TransportError):
            http.get(f"{base}/readyz")
    return secrets


@pytest.mark.parametrize("format", ["plain", "json"])
def test_a_hostile_session_leaves_nothing_of_anybody_in_the_log(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setenv("PRIORVEIL_LOG_FORMAT", format)
    with served(str(tmp_path / "reports.db"), tmp_path, campaign) as [server]:
        secrets = hostile(server, campaign, tmp_path)
        wait_until(lambda: "the store failed" in server.log.read_text(), "a failure is logged")
        log = server.log.read_text()
    assert not [secret for secret in secrets if secret in log]
    assert len(re.findall(r"127\.0\.0\.1", log)) == 1, "only where it listens"
    if format == "json":
        assert all({"time", "level", "message"} <= json.loads(line).keys() for line in log.splitlines())
