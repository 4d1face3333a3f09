"""The JavaScript client: its own tests, run by Node, and the copy that the curator's pages use."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil.campaigns import Campaign, ask, read_time, written
from priorveil.errors import Infeasible, TooLarge
from priorveil.mechanisms.randomness import BytesSource
from priorveil.plans import Plan

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "clients" / "js"
SERVED = ROOT / "src" / "priorveil" / "curator" / "static" / "priorveil.js"


def node() -> list[str]:
    """Node.js; 18, which Debian 12 has, shows Web Crypto only when told to."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed: the JavaScript client is not tested")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = int(told.lstrip("v").split(".")[0])
    if version < 18:
        pytest.skip(f"Node.js {told.strip()} is too old: the JavaScript client needs 18")
    return [found, "--experimental-global-webcrypto"] if version == 18 else [found]


def test_the_client_passes_its_tests() -> None:
    ran = subprocess.run(
        [*node(), "--test", "test/"], cwd=CLIENT, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "# pass 0" not in ran.stdout


def test_the_pages_serve_this_client() -> None:
    assert SERVED.read_bytes() == (CLIENT / "priorveil.js").read_bytes(), "run: python scripts/vectors.py"


def test_the_client_has_no_dependencies() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == pv.__version__
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package)
    assert "import " not in (CLIENT / "priorveil.js").read_text(encoding="utf-8")


def test_the_types_name_what_the_client_exports() -> None:
    named = re.compile(r"^export (?:async )?(?:class|function|const) (\w+)", re.MULTILINE)
    code, types = ((CLIENT / name).read_text(encoding="utf-8") for name in ("priorveil.js", "priorveil.d.ts"))
    assert len(named.findall(code)) > 5 and set(named.findall(code)) == set(named.findall(types))


def test_the_example_of_the_readme_runs() -> None:
    demo = pytest.importorskip("priorveil.curator.demo", reason="the example asks a real curator")
    prior = pv.Prior({"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07})
    [example] = re.findall(r"```js\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    with demo.running(ask("What kind of work do you do?", prior, smallest_count=1)) as curator:
        place = f"{curator.url}/v1/campaigns/{curator.campaign.id}"
        code, changed = re.subn(r'"https://curator[^"]+"', json.dumps(place), example)
        command = [*node(), "--input-type=module", "-e", code]
        ran = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, timeout=60)
        assert (changed, ran.returncode) == (1, 0), ran.stderr
        assert ran.stdout.startswith("What kind of work do you do?") and ran.stdout.endswith("true false\n")
        assert curator.estimates()["reports"] == 1


RUN = """
import { readCampaign, readPlan, wordsFrom } from "./priorveil.js";
import { readFileSync } from "node:fs";
const { plans, campaigns } = JSON.parse(readFileSync(0, "utf8"));
const bytes = (hex) => Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16));
const run = async ({ plan, cases }) => {
  const read = await readPlan(plan);
  const report = ([code, hex]) => read.privatize(plan.labels[code], wordsFrom(bytes(hex)));
  return { ...read.levels, reports: cases.map(report) };
};
const found = { plans: await Promise.all(plans.map(run)), campaigns: [] };
for (const text of campaigns) found.campaigns.push((await readCampaign(text)).id);
console.log(JSON.stringify(found));
"""


def in_javascript(plans: list[dict[str, object]], campaigns: list[str]) -> dict[str, list[object]]:
    given = json.dumps({"plans": plans, "campaigns": campaigns})
    command = [*node(), "--input-type=module", "-e", RUN]
    ran = subprocess.run(command, cwd=CLIENT, input=given, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, list[object]] = json.loads(ran.stdout)
    return found


def designed(rng: np.random.Generator, method: str) -> Plan | None:
    size = int(rng.integers(2, 90)) if method != "closed" else int(rng.integers(2, 6))
    masses = rng.dirichlet(np.full(size, rng.choice([0.5, 2.0, 20.0]))) + 1e-6
    prior = pv.Prior(masses / masses.sum())
    query = pv.Distribution() if method == "arc_pool" else pv.Histogram()
    name = "arc" if method == "arc_pool" else method
    try:
        return pv.design(prior, float(rng.uniform(0.2, 5.0)), query, method=name)  # type: ignore[arg-type]
    except (Infeasible, TooLarge):
        return None


def test_random_plans_run_alike_in_both_languages() -> None:
    rng = np.random.default_rng(20)
    wanted = {
        "closed": 12,
        "arc": 12,
        "unary": 8,
        "hashing": 2,
        "arc_pool": 6,
    }  # designing for hashing is slow
    made = [designed(rng, method) for method, count in wanted.items() for _ in range(count)]
    plans = [plan for plan in made if plan is not None]
    assert {plan.mechanism.kind for plan in plans} >= {"table", "arc", "unary", "hashing", "arc_pool"}
    given, expected = [], []
    for plan in plans:
        width = 8 * plan.mechanism.draws_per_report
        cases = [(int(rng.integers(plan.mechanism.size)), rng.bytes(width)) for _ in range(25)]
        given.append(
            {"plan": json.loads(plan.to_json()), "cases": [(code, drawn.hex()) for code, drawn in cases]}
        )
        sampled = [plan.mechanism.sample_one(code, BytesSource(drawn)) for code, drawn in cases]
        c = plan.certificate
        levels = {"lip": c.lip, "lipLower": c.lip_lower, "lipUpper": c.lip_upper, "ldp": c.ldp}
        expected.append({**levels, "reports": [written(plan.mechanism, report) for report in sampled]})
    assert in_javascript(given, [])["plans"] == expected


def test_campaigns_have_the_same_id_in_both_languages() -> None:
    prior = pv.Prior({"да": 0.2, "\U0001f300": 0.3, "\uffee": 0.1, 'a "b" \\ \x7f\u2028': 0.4})
    other = pv.Prior(dict(zip(prior.labels, (0.4, 0.2, 0.2, 0.2), strict=True)))
    cohorts = {
        name: pv.design(p, 1.0, pv.Histogram()) for name, p in (("\U0001f300", prior), ("\uffee", other))
    }
    times = {"opens": read_time("opens", "2026-01-01T12:00:00+02:00"), "closes": None}
    campaign = Campaign("Où?\n\tQuoi\x01", cohorts, **times, contact="a@example.org")
    assert in_javascript([], [campaign.to_json()])["campaigns"] == [campaign.id]
