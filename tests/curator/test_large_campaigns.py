"""A large campaign goes from partitions of PostgreSQL to files and Spark, with the commands of the deployment page."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import asyncpg
import numpy as np
import pytest

import priorveil as pv
from postgres_server import PostgresServer
from priorveil.collect.campaign import Campaign, ask_with
from priorveil.curator.store import Group, open_store

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
    prior = pv.Prior([0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    plan = pv.design(prior, 1.0, pv.Histogram(), method="hashing")
    campaign, other = (ask_with(question, plan) for question in ("Which one?", "Another?"))
    rng = np.random.default_rng(26)

    def some(each: Campaign, count: int) -> Group:
        words = plan.privatize(rng.integers(0, 6, count), rng, codes=True).astype("<i8")
        assert words.max() > 255, "numbers of more than one byte"
        return Group(each.id, each.form_for(None), os.urandom(16 * count), words.tobytes())

    if shutil.which("psql") is None:
        pytest.skip("psql is not installed here")
    url = postgres.url("large")

    async def fill() -> np.ndarray:
        async with open_store(url) as store:
            for each, count in ((campaign, 2_000), (other, 100)):
                await store.add_campaign(each)
                await store.commit([some(each, count)])
        database = await asyncpg.connect(url)
        await database.execute(block(PAGE, "sql"))
        parts = await database.fetch("SELECT count(*) FROM submissions GROUP BY tableoid")
        assert len(parts) == 4
        number = SECTION[SECTION.index("get_byte(words, 0)") : SECTION.index(" AS report\n")]
        for word in (0, 0x0102030405060708, (1 << 63) - 1):
            packed = word.to_bytes(8, "little")
            assert word == await database.fetchval(
                f"SELECT {number} FROM (SELECT $1::bytea AS words) AS row", packed
            )
        await database.close()
        async with open_store(url) as store:
            (tally,) = (await store.tallies(campaign)).values()
            return plan.estimate(tally.parts[0]).values

    curator = asyncio.run(fill())
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
    estimate = names["estimate"]
    assert estimate.reports == 2_000 and np.array_equal(estimate.values, curator)
