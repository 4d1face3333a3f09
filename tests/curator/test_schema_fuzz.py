"""Requests made from the OpenAPI document, against a real server: every answer is one that the document allows.

With the token and without, with a campaign that is there and with any id at all. Schemathesis adds cases at the
edges of every schema ("coverage") to those drawn at random; all of it is the same in every run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openapi_spec_validator import validate
from starlette.routing import Route

from curator.test_api import reports
from local_server import Server, served
from patience import PATIENCE
from priorveil.curator import create_app
from priorveil.curator.app import Curator, openapi
from priorveil.curator.messages import LARGEST_BATCH
from priorveil.curator.sqlite import SqliteStore
from priorveil.device.wire import ID_BYTES, JSON, PACKED, WORD_BYTES
from priorveil.questions.campaign import Campaign
from priorveil.questions.texts import LONGEST_TEXT
from priorveil.reading.estimate import ESTIMATE_METHODS

TOKEN = {"Authorization": "Bearer a-secret-of-the-tests"}  # of `Server`
TOLD = ["--header", "Authorization: Bearer a-secret-of-the-tests"]
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance"
CHECKS += ",response_schema_conformance,unsupported_method,allow_header_conformance"

# A plan takes a second to draw, and a certificate cannot be drawn: campaigns of the right form are refused as well. So
# are surveys, each of which takes a process.
CREATE = """
[[operations]]
include-operation-id = "create"
generation.max-examples = 2
phases.coverage.enabled = false
checks.positive_data_acceptance.expected-statuses = [422]

[[operations]]
include-operation-id = "check_survey"
generation.max-examples = 5
phases.coverage.enabled = false
checks.positive_data_acceptance.expected-statuses = [422]
"""


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory, cohorts: Campaign) -> Iterator[Server]:
    """A server with a campaign of every mechanism and some reports."""
    folder = tmp_path_factory.mktemp("schema")
    with served(str(folder / "a.db"), folder, cohorts) as [server]:
        where = f"http://127.0.0.1:{server.port}/v1/campaigns/{cohorts.id}/reports"
        sent = [report for cohort in cohorts.cohorts for report in reports(cohorts, 5, cohort)]
        assert httpx.post(where, json={"reports": sent}, headers=TOKEN, timeout=PATIENCE).json() == {
            "accepted": 20,
            "refused": [],
        }
        yield server
        server.stop()
        assert "Traceback" not in server.log.read_text()


def run(
    server: Server, folder: Path, checks: str, *options: str, settings: str = "", examples: int = 20
) -> str:
    """What schemathesis says of the server after asking all that the document allows, and what it does not."""
    configuration = folder / "schemathesis.toml"
    configuration.write_text(f"{settings}\n{CREATE}")
    where = f"http://127.0.0.1:{server.port}/openapi.json"
    command = [
        "schemathesis.cli",
        "--config-file",
        str(configuration),
        "run",
        where,
        "--seed",
        "1",
        "--no-color",
    ]
    bounds = [
        "--phases",
        "coverage,fuzzing",
        "--request-timeout",
        str(PATIENCE),
        "--max-examples",
        str(examples),
        "--generation-database",
        "none",
        "--suppress-health-check=too_slow,data_too_large",  # plans in parts in slots in cohorts
    ]
    done = subprocess.run(
        [sys.executable, "-m", *command, *bounds, "--checks", checks, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


def test_the_document_is_openapi() -> None:
    validate(openapi())


def test_the_document_states_the_limits_of_the_code() -> None:
    schemas = openapi()["components"]["schemas"]
    fields = schemas["ReportBody"]["properties"]
    assert fields["report_id"]["pattern"] == f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$"
    assert fields["report"]["pattern"] == f"^([0-9a-fA-F]{{{2 * WORD_BYTES}}})+$"
    assert schemas["BatchBody"]["properties"]["reports"]["maxItems"] == LARGEST_BATCH
    assert schemas["CampaignDocument"]["properties"]["contact"]["maxLength"] == LONGEST_TEXT
    asked = openapi()["paths"]["/v1/campaigns/{id}/estimates"]["get"]["parameters"]
    assert [p["schema"]["enum"] for p in asked if p.get("name") == "method"] == [sorted(ESTIMATE_METHODS)]
    upload = openapi()["paths"]["/v1/campaigns/{id}/reports"]["post"]["requestBody"]["content"]
    assert set(upload) == {JSON, PACKED}


def test_the_document_describes_every_route_and_nothing_else(tmp_path: Path) -> None:
    app = create_app(SqliteStore(tmp_path / "a.db"))
    assert isinstance(app, Curator)
    routes = {(r.path, m.lower()) for r in app.routes if isinstance(r, Route) for m in r.methods or ()}
    heads = {(path, method) for path, method in routes if method == "head"}
    assert routes - heads == {(p, m) for p, methods in openapi()["paths"].items() for m in methods}


# Random requests would make tokens by the hundred, and revoke the one that they are sent with.
WITH_TESTS_OF_THEIR_OWN = (
    "create",
    "check_survey",
    "close",
    "delete",
    "upload",
    "create_token",
    "revoke_token",
)


def test_any_request(curator: Server, tmp_path: Path) -> None:
    """With the token; ids are drawn, or learnt from the list of campaigns."""
    checks = f"{CHECKS},negative_data_rejection,positive_data_acceptance,ignored_auth"
    others = [word for name in WITH_TESTS_OF_THEIR_OWN for word in ("--exclude-operation-id", name)]
    said = run(curator, tmp_path, checks, *others, *TOLD)
    preflight = 1  # a method that schemathesis only asks for where there should be none
    operations = sum(map(len, openapi()["paths"].values()))
    assert f"Tested: {operations - len(WITH_TESTS_OF_THEIR_OWN) - preflight}" in said


def test_any_campaign_and_the_end_of_what_is_not_there(curator: Server, tmp_path: Path) -> None:
    checks = f"{CHECKS},negative_data_rejection,positive_data_acceptance,ignored_auth"
    names = ("close", "delete", "create", "check_survey")
    only = [word for name in names for word in ("--include-operation-id", name)]
    assert "Tested: 4" in run(curator, tmp_path, checks, *only, *TOLD)


def test_any_request_about_a_campaign_that_is_there(
    curator: Server, tmp_path: Path, cohorts: Campaign
) -> None:
    """With the token. Wrong reports in a batch are not a wrong request: it is answered, and they are listed."""
    known = f'[parameters]\n"path.id" = "{cohorts.id}"'
    only = [
        "--include-path-regex",
        "{id}",
        "--exclude-operation-id",
        "close",
        "--exclude-operation-id",
        "delete",
        "--exclude-operation-id",
        "publication",  # nothing is published
    ]
    said = run(curator, tmp_path, f"{CHECKS},ignored_auth", *only, *TOLD, settings=known)
    assert "404" not in said, "the campaign was found"


def test_any_request_without_the_token(curator: Server, tmp_path: Path, cohorts: Campaign) -> None:
    """The curator's operations are refused: nothing is put up, closed or deleted."""
    known = f'[parameters]\n"path.id" = "{cohorts.id}"'
    # Campaigns take a minute to draw, and are refused before they are read: one is enough.
    run(curator, tmp_path, CHECKS, "--exclude-operation-id", "create", settings=known, examples=5)
    campaigns_url = f"http://127.0.0.1:{curator.port}/v1/campaigns"
    assert httpx.post(campaigns_url, content=cohorts.to_json(), timeout=PATIENCE).status_code == 401
    listed = httpx.get(campaigns_url, headers=TOKEN, timeout=PATIENCE).json()["campaigns"]
    assert [(c["id"], c["state"]) for c in listed] == [(cohorts.id, "open")]


@pytest.mark.parametrize("confidence", ["0.9999999999999999", "5e-324", "0.5"])
def test_confidences_at_the_edge(curator: Server, cohorts: Campaign, confidence: str) -> None:
    where = f"http://127.0.0.1:{curator.port}/v1/campaigns/{cohorts.id}/estimates"
    answer = httpx.get(
        where, params={"confidence": confidence, "method": "mmse"}, headers=TOKEN, timeout=PATIENCE
    )
    assert answer.status_code == 200 and answer.json()["result"]["confidence"] == float(confidence)
