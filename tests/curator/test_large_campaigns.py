"""A large campaign goes from partitions of PostgreSQL to files and Spark, with the commands of the deployment page."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import asyncpg
import numpy as np
import pytest

from postgres_server import PostgresServer
from priorveil.curator.store import Group, open_store
from priorveil.questions.campaign import Campaign
from priorveil.reading.tally import Tally
from priorveil.results.form_estimates import CohortForms, Estimates, estimate_forms
from sample_surveys import health, people

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'priorveil[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or newer, and there is none on this machine", allow_module_level=True)

from tables.test_spark import session as open_session

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### More than a billion reports")[2].partition("\n### ")[0]


def block(text: str, kind: str) -> str:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0]


def test_spark_estimates_what_the_curator_does(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every report of every partition is counted once, and those of another campaign are not."""
    campaign, other = health(smallest_count=1), health(smallest_count=1, description="Another")
    rng = np.random.default_rng(26)

    def some(each: Campaign, count: int) -> Group:
        values = [each.attribute_values(answers) for answers in people(count, rng)]
        columns = {name: [value[name] for value in values] for name in values[0]}
        words = each.form_for(None).privatize(columns, rng=rng)
        return Group(each.id, each.form_for(None), os.urandom(16 * count), words.tobytes())

    if shutil.which("psql") is None:
        pytest.skip("psql is not installed here")
    url = postgres.url("large")

    async def fill() -> tuple[list[Tally], Estimates]:
        async with open_store(url) as store:
            for each, count in ((campaign, 2_000), (other, 100)):
                await store.add_campaign(each)
                await store.commit([some(each, count)])
        database = await asyncpg.connect(url)
        await database.execute(block(PAGE, "sql"))
        parts = await database.fetch("SELECT count(*) FROM submissions GROUP BY tableoid")
        assert len(parts) == 4
        await database.close()
        async with open_store(url) as store:
            tallies = await store.tallies(campaign)
            by_cohort = {(name, None): tallies[form.id].parts for name, form in campaign.cohorts.items()}
            estimates = estimate_forms(CohortForms.of(campaign), by_cohort)
            return [tally for parts in by_cohort.values() for tally in parts], estimates

    counted, curator = asyncio.run(fill())
    script = block(SECTION, "bash").replace("postgresql://curator@localhost/priorveil", url)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "campaign": campaign.id},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    files = sorted(tmp_path.glob("reports/*.csv"))
    assert len(files) == 4 and sum(len(file.read_text().splitlines()) - 1 for file in files) == 2_000
    monkeypatch.chdir(tmp_path)
    session = open_session("local[2]")
    try:
        names = {"session": session, "Campaign": Campaign, "document": campaign.to_json()}
        code = block(SECTION, "py").replace('"reports"', repr(f"file://{tmp_path}/reports"))
        exec(code, names)
    finally:
        session.stop()
    found: Any = names["found"]
    tallies = [tally for parts in found.tallies.by.values() for tally in parts]
    assert [tally.counts.tolist() for tally in tallies] == [tally.counts.tolist() for tally in counted]
    assert found.tallies.reports == 2_000 and len(found.parts) == len(curator.parts) > 2
    for part, expected in zip(found.parts, curator.parts, strict=True):
        assert part.attributes == expected.attributes
        assert part.everybody.values == pytest.approx(expected.everybody.values, rel=1e-9)
