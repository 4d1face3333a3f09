"""What Prometheus sees: described, complete, and nothing that tells one group of people from another."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from curator.test_api import on, path, reports
from local_server import Server, running
from patience import PATIENCE
from priorveil.curator.settings import DatabaseLimits
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import Unavailable
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES, DASHBOARD = DEPLOY / "prometheus-rules.yml", DEPLOY / "grafana-dashboard.json"
LABELS = {"route", "status", "reason", "le"}


def samples(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def value(text: str, name: str, **labels: str) -> float:
    [found] = [s.value for s in samples(text) if s.name == name and s.labels == labels]
    return found


async def session(http: httpx.AsyncClient, campaign: Campaign) -> str:
    """Requests of every kind; the metrics after them."""
    name = next(iter(campaign.cohorts))
    await http.post(path(campaign, "/reports"), json={"reports": reports(campaign, 7, name)})
    twice = reports(campaign, 1, name)[0]
    for body in (twice, twice, {**twice, "form": "0" * 64}, {"report_id": 5}):
        await http.post(path(campaign, "/reports"), json={"reports": [body]})
    for place in (path(campaign), path(campaign, "/status"), path(campaign, "/estimates"), "/v1/campaigns"):
        await http.get(place)
    for place in (
        "/v1/campaigns/unheard",
        "/unheard",
        "/static/unheard",
        "/answer/unheard",
        "/v1/tokens/unheard",
    ):
        await http.get(place)
    return (await http.get("/metrics")).text


async def test_every_metric_is_described(sqlite_path: str, campaign: Campaign) -> None:
    async with on(sqlite_path, campaign) as http:
        text = await session(http, campaign)
        families = list(text_string_to_metric_families(text))
        assert all(family.documentation and family.type != "unknown" for family in families)
        described = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
        assert sorted(described) == sorted(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
        assert not [line for line in text.splitlines() if "_created" in line], "when something came first"


async def test_what_was_done_is_counted(sqlite_path: str, campaign: Campaign) -> None:
    async with on(sqlite_path, campaign) as http:
        text = await session(http, campaign)
        upload = "/v1/campaigns/{id}/reports"
        assert value(text, "priorveil_reports_stored_total") == 8
        assert value(text, "priorveil_reports_duplicate_total") == 1
        assert value(text, "priorveil_reports_refused_total", reason="unknown form") == 1
        assert value(text, "priorveil_reports_refused_total", reason="malformed") == 1
        assert value(text, "priorveil_transaction_seconds_count") == 3
        assert value(text, "priorveil_transaction_failures_total") == 0
        assert value(text, "priorveil_responses_total", route=upload, status="200") == 5
        assert value(text, "priorveil_response_seconds_count", route=upload) == 5
        assert value(text, "priorveil_responses_total", route="other", status="404") == 1
        assert value(text, "priorveil_responses_total", route="/v1/tokens/{name}", status="405") == 1
        assert value(text, "priorveil_queue_bytes") == 0 < value(text, "priorveil_queue_limit_bytes")
        assert value(text, "process_resident_memory_bytes") > 0


async def test_no_label_tells_groups_of_people_apart(sqlite_path: str, cohorts: Campaign) -> None:
    async with on(sqlite_path, cohorts) as http:
        text = await session(http, cohorts)
        assert {label for sample in samples(text) for label in sample.labels} == LABELS
        routes = {route.path for route in http.app.routes} | {"other"}  # type: ignore[attr-defined]
        assert {s.labels["route"] for s in samples(text) if "route" in s.labels} <= routes
        about_people = [cohorts.id, cohorts.text(cohorts.title), *cohorts.cohorts, *cohorts.forms]
        values = {label for sample in samples(text) for label in sample.labels.values()}
        assert values.isdisjoint(about_people) and "unheard" not in text


async def test_a_store_that_fails_is_shown(tmp_path: Path, campaign: Campaign) -> None:
    class Failing(SqliteStore):
        async def ready(self) -> None:
            raise Unavailable("gone")

    limits = DatabaseLimits(check_seconds=0.01)
    async with running(Failing(tmp_path / "a.db"), campaign, database=limits) as http:
        assert value((await http.get("/metrics")).text, "priorveil_store_ready") == 1
        await http.get("/readyz")
        assert value((await http.get("/metrics")).text, "priorveil_store_ready") == 0


def test_metrics_may_have_a_port_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("PRIORVEIL_METRICS_PORT", str(port))
    server = Server(str(tmp_path / "a.db"), tmp_path)
    try:
        beside = httpx.get(f"http://127.0.0.1:{server.port}/metrics", timeout=PATIENCE)
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text
        assert beside.status_code == 404 and value(text, "priorveil_store_ready") == 1
    finally:
        server.stop()


# -- the examples in deploy/ --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, campaign: Campaign) -> set[str]:
    """The names of all samples that the app exports."""

    async def names() -> set[str]:
        async with on(str(tmp_path_factory.mktemp("exported") / "a.db"), campaign) as http:
            return {sample.name for sample in samples(await session(http, campaign))}

    return asyncio.run(names())


def dashboard_expressions(node: Any) -> Iterator[str]:
    """Every query in the dashboard."""
    if isinstance(node, dict):
        if isinstance(node.get("expr"), str):
            yield node["expr"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from dashboard_expressions(child)


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_rules_and_dashboard_use_metrics_that_exist(exported: set[str]) -> None:
    queries = [rule["expr"] for rule in rules()]
    queries += dashboard_expressions(json.loads(DASHBOARD.read_text(encoding="utf-8")))
    names = {name for query in queries for name in re.findall(r"\b(?:priorveil|process)_\w+", query)}
    assert names and names <= exported
    labels = {label for query in queries for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", query)}
    assert labels <= LABELS | {"job"}


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        assert rule["alert"] and rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]


def test_prometheus_takes_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, of Debian's package prometheus, is not installed here")
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    tests = DEPLOY.parent / "tests" / "curator" / "prometheus-rules.test.yml"
    done = subprocess.run([promtool, "test", "rules", str(tests)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def sqlite_path(tmp_path: Path) -> str:
    return str(tmp_path / "reports.db")
