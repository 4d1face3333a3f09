"""Hostile input: whatever is sent, the answer is not a 5xx, and comes."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from local_server import TOKEN, running
from priorveil.curator.app import openapi
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import count_cells
from priorveil.curator.uploads import read_json, read_packed
from priorveil.device.wire import PACKED, packed_body, words_to_hex
from priorveil.questions.campaign import Campaign
from sample_surveys import people

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ids = st.binary(min_size=16, max_size=16).map(bytes.hex)

OPERATIONS = [
    (method, path, operation["operationId"])
    for path, methods in openapi()["paths"].items()
    for method, operation in methods.items()
]


words = st.integers(1, 9).flatmap(lambda n: st.binary(min_size=8 * n, max_size=8 * n)).map(bytes.hex)


def almost(forms: list[str]) -> st.SearchStrategy[Any]:
    """Reports that are nearly right."""
    field = st.one_of(
        anything,
        ids,
        st.sampled_from(forms),
        words,
        st.integers(-5, 20),
        st.sampled_from([2**53, 2**63, 2**64]),
    )
    return (
        st.fixed_dictionaries(
            {"report_id": ids | field, "form": st.sampled_from(forms) | field, "report": field}
        )
        | anything
    )


class Worlds:
    """One app for all examples, in an event loop of its own."""

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self.loop = asyncio.new_event_loop()
        self.campaign = campaign
        self._context = running(SqliteStore(folder / "fuzz.db"), campaign)
        self.http = self.loop.run_until_complete(self._context.__aenter__())

    def ask(self, method: str, where: str, **more: Any) -> httpx.Response:
        return self.loop.run_until_complete(asyncio.wait_for(self.http.request(method, where, **more), 20))

    def close(self) -> None:
        self.loop.run_until_complete(self._context.__aexit__(None, None, None))
        self.loop.close()


@pytest.fixture(scope="module", params=["cohorts", "survey"])
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    made = Worlds(tmp_path_factory.mktemp("fuzz"), request.getfixturevalue(request.param))
    yield made
    made.close()


def fine(answer: httpx.Response) -> None:
    assert answer.status_code < 500, (answer.status_code, answer.text)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


@settings(max_examples=150)
@given(st.data())
def test_uploads_of_nearly_right_json(world: Worlds, data: st.DataObject) -> None:
    body = data.draw(
        st.fixed_dictionaries({"reports": st.lists(almost([*world.campaign.forms]), max_size=6)})
        | almost([*world.campaign.forms])
    )
    answer = world.ask("POST", f"/v1/campaigns/{world.campaign.id}/reports", json=body)
    fine(answer)
    if answer.status_code == 200:
        found = answer.json()
        total = len(body["reports"]) if "reports" in body else 1
        assert found["accepted"] + len(found["refused"]) == total


@settings(max_examples=150)
@given(st.binary(max_size=300), st.sampled_from(["application/json", PACKED, "text/html", ""]), st.booleans())
def test_uploads_of_any_bytes(world: Worlds, body: bytes, kind: str, begun: bool) -> None:
    form = next(iter(world.campaign.forms))
    content = packed_body(form, b"", b"")[: 36 + len(body) % 5] + body if begun else body
    where = f"/v1/campaigns/{world.campaign.id}/reports"
    fine(world.ask("POST", where, content=content, headers={"content-type": kind}))


@settings(max_examples=150)
@given(
    st.sampled_from(OPERATIONS),
    st.text(max_size=70) | st.just("") | st.binary(max_size=10).map(lambda b: b.decode("latin-1")),
    st.dictionaries(st.sampled_from(["method", "confidence", "x"]), st.text(max_size=10), max_size=3),
    anything,
    st.booleans(),
)
def test_every_route_with_anything(
    world: Worlds, operation: tuple[str, str, str], told: str, asked: dict[str, str], body: Any, known: bool
) -> None:
    from urllib.parse import quote

    method, path, name = operation
    place = path.replace("{id}", world.campaign.id if known and name != "close" else quote(told, safe=""))
    if method == "post":
        fine(world.ask("POST", place, params=asked, content=json.dumps(body).encode()))
    else:
        fine(world.ask(method.upper(), place, params=asked))


@settings(max_examples=100)
@given(st.data())
def test_campaigns_that_are_nearly_right(world: Worlds, data: st.DataObject) -> None:
    """Every field of a good campaign, changed or taken away, at any depth: refused, never believed."""
    made = json.loads(world.campaign.to_json())
    at: Any = made
    while True:
        key = (
            data.draw(st.sampled_from(sorted(at)))
            if isinstance(at, dict)
            else data.draw(st.integers(0, len(at) - 1))
        )
        deeper = isinstance(at[key], dict | list) and len(at[key]) and data.draw(st.booleans())
        if not deeper:
            break
        at = at[key]
    before = json.dumps(made, sort_keys=True)
    if data.draw(st.booleans()):
        del at[key]
    else:
        at[key] = data.draw(anything)
    answer = world.ask("POST", "/v1/campaigns", content=json.dumps(made).encode())
    fine(answer)
    if answer.status_code == 200:
        assert json.dumps(made | {"id": world.campaign.id}, sort_keys=True) == before


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as what holds it and its key there; of a list, the first entry only."""
    for key in [*document] if isinstance(document, dict) else range(min(len(document), 1)):
        yield document, key
        if isinstance(document[key], dict | list):
            yield from places(document[key])


@pytest.mark.parametrize("odd", ["\ud800", float("nan"), float("inf"), 10**400], ids=ascii)
def test_campaigns_with_what_only_python_takes_for_json(world: Worlds, campaign: Campaign, odd: Any) -> None:
    made = json.loads(campaign.to_json())
    for holder, key in [*places(made)]:
        kept, holder[key] = holder[key], odd
        answer = world.ask("POST", "/v1/campaigns", content=json.dumps(made).encode())
        assert answer.status_code == 422, (key, answer.text)
        holder[key] = kept


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_bad_tokens(world: Worlds, token: str) -> None:
    value = (
        f"Bearer {token}".encode("utf-8", "surrogatepass")
        .replace(b"\n", b"")
        .replace(b"\r", b"")
        .replace(b"\0", b"")
    )
    elsewhere = hashlib.sha256(value).hexdigest()  # each has attempts of its own
    headers = {"authorization": value, "x-real-ip": elsewhere}
    answer = world.ask("GET", "/v1/campaigns", headers=headers)
    assert answer.status_code == (200 if token == TOKEN else 401)


@given(st.data())
def test_reports_survive_the_wire(cohorts: Campaign, survey: Campaign, data: st.DataObject) -> None:
    """JSON and packed bodies say the same of every mechanism's reports, and of those of several questions."""
    campaign = data.draw(st.sampled_from([cohorts, survey]))
    form = data.draw(st.sampled_from([*campaign.cohorts.values()]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    if campaign is survey:
        rows = [form.privatize(survey.attribute_values(answers), rng=rng)[0] for answers in people(3, rng)]
    else:
        rows = list(form.privatize({"answer": rng.choice(form.parts[0].plan.labels, 3)}, rng=rng))
    told = data.draw(st.lists(ids, min_size=3, max_size=3, unique=True))
    wire = [words_to_hex(row) for row in rows]
    sent = [{"report_id": i, "form": form.id, "report": w} for i, w in zip(told, wire, strict=True)]
    [one] = read_json(json.dumps({"reports": sent}).encode(), campaign.id, campaign.forms).groups
    packed = packed_body(form.id, bytes.fromhex("".join(told)), bytes.fromhex("".join(wire)))
    [two] = read_packed(packed, campaign.id, campaign.forms).groups
    assert one == two
    assert (count_cells(form, one.words) == [3, *form.count(np.array(rows))]).all()


def test_the_document_is_one_that_a_generator_can_follow() -> None:
    """Every reference in the OpenAPI document leads somewhere, and every operation has a name of its own."""
    told = openapi()
    text = json.dumps(told)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in told["components"]["schemas"]
    for kind in ("responses", "parameters"):
        for name in {part.split('"')[0] for part in text.split(f"#/components/{kind}/")[1:]}:
            assert name in told["components"][kind]
    assert len({name for _, _, name in OPERATIONS}) == len(OPERATIONS)


def test_a_body_of_reports_is_bounded(cohorts: Campaign) -> None:
    with pytest.raises(HTTPException, match="at most"):
        read_packed(b"PVR1" + bytes(32) + b"\xff\xff\xff\xff", cohorts.id, cohorts.forms)
