"""Stored answers: an unreadable or inconsistent file raises an error; it is never treated as missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from priorveil.device.client import AnswerStore, Client, NotSent, NotStored, RetryPolicy
from priorveil.errors import InvalidInput
from priorveil.questions.campaign import Campaign
from refusals import raises

NO_WAIT = RetryPolicy(attempts=1)


def remembered(campaign: Campaign, folder: Path) -> Path:
    """The file of an answer that was drawn but not sent."""

    def offline(request: httpx.Request) -> httpx.Response:
        answer = httpx.Response(200, json=json.loads(campaign.to_json()))
        return answer if request.method == "GET" else httpx.Response(503)

    url = f"http://x/{campaign.id}"
    with (
        Client(url, httpx.MockTransport(offline), state=folder, retry=NO_WAIT) as client,
        pytest.raises(NotSent),
    ):
        client.answer("Private")
    return folder / f"{campaign.id}.json"


@pytest.mark.parametrize(
    "field",
    [
        {"form": "x"},
        {"form": None},
        {"campaign": "0" * 64},
        {"cohort": 5},
        {"draws": None},
        {"draws": {}},
        {"draws": {"0" * 64: [0]}},
        {"ldp": "much"},
        {"ldp": "-1"},
        {"ldp": "nan"},
        {"url": 5},
        {"url": "http://[::1"},
        {"url": "http://a\nb"},
        {"url": "file:///etc/passwd"},
        {"url": f"http://x/{'0' * 64}"},
        {"report": "x"},
        {"report": {"report_id": {}, "campaign": "c", "form": "f", "report": 1}},
        {"report": {"report_id": "0" * 32, "campaign": "1" * 64, "form": "2" * 64, "report": "0" * 16}},
        {"sent": "no"},
        {"refused": 5},
        {"more": 1},
    ],
    ids=str,
)
def test_a_file_that_says_something_else_is_no_answer(
    campaign: Campaign, tmp_path: Path, field: dict[str, Any]
) -> None:
    path = remembered(campaign, tmp_path)
    assert len(list(AnswerStore(tmp_path))) == 1
    path.write_text(json.dumps(json.loads(path.read_text()) | field))
    with raises(InvalidInput, argument="state"):
        AnswerStore(tmp_path)


def test_a_draw_has_the_numbers_of_parts(campaign: Campaign, tmp_path: Path) -> None:
    path = remembered(campaign, tmp_path)
    answer = json.loads(path.read_text())
    for draw in (["0"], [0.5], [True], 0):
        path.write_text(json.dumps(answer | {"draws": {answer["form"]: draw}}))
        with raises(InvalidInput, argument="state"):
            AnswerStore(tmp_path)


def test_a_file_that_cannot_be_one_is_no_answer(campaign: Campaign, tmp_path: Path) -> None:
    path = remembered(campaign, tmp_path)
    for text in (b"", b"null", b"[1]", b"[" * 100_000, b"\xff\xfe{}", b'{"form": ' * 900 + b"1" + b"}" * 900):
        path.write_bytes(text)
        with raises(InvalidInput, argument="state"):
            AnswerStore(tmp_path)
    path.unlink()
    path.mkdir()
    with raises(InvalidInput, argument="state", cause=OSError):
        AnswerStore(tmp_path)


def test_a_folder_that_went_away_is_said(campaign: Campaign, tmp_path: Path) -> None:
    store = AnswerStore(tmp_path / "state")
    (tmp_path / "state").rmdir()
    with raises(InvalidInput, argument="state", cause=OSError):
        list(store)
    served = httpx.MockTransport(lambda request: httpx.Response(200, json=json.loads(campaign.to_json())))
    with Client(f"http://x/{campaign.id}", served, store) as client, pytest.raises(NotStored):
        client.answer("Private")
