"""The JavaScript client: its own tests, run by Node, and the copy that the curator's pages use."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import priorveil as pv
from forged_documents import forged_documents
from nodejs import node, run_module
from patience import PATIENCE
from priorveil.errors import Infeasible, PlanError, PriorveilError, TooLarge
from priorveil.mechanisms.randomness import BytesSource
from priorveil.plans import Plan
from priorveil.questions.campaign import Campaign, ask, ask_with, read_time
from vector_reports import report_to_json

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENT = ROOT / "clients" / "js"
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "bundle.py"))
DEFINITIONS = runpy.run_path(str(ROOT / "scripts" / "definitions.py"))
SERVED = """
import sys
sys.path.insert(0, "")
from starlette.applications import Starlette
from starlette.testclient import TestClient
from priorveil.curator import responses as pages
assert pages.__file__.startswith(sys.argv[1]), pages.__file__
sys.stdout.buffer.write(TestClient(Starlette(routes=pages.page_routes())).get("/static/priorveil.js").content)
"""


def test_the_client_passes_its_tests() -> None:
    ran = subprocess.run(
        [*node(), "--test", "test/"], cwd=CLIENT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "# pass 0" not in ran.stdout


def test_the_shipped_file_is_made_of_the_modules() -> None:
    shipped = (CLIENT / "priorveil.js").read_text(encoding="utf-8")
    assert shipped == SCRIPT["bundle"](CLIENT / "src"), "make it again: make bundle"


def test_documents_are_checked_by_the_structs_of_the_package() -> None:
    schemas = (CLIENT / "src" / "definitions.js").read_text(encoding="utf-8")
    assert schemas == DEFINITIONS["module"](), "make it again: make bundle"
    keywords = (CLIENT / "src" / "structure.js").read_text(encoding="utf-8")
    table = keywords.split("const KEYWORDS = {")[1].split("\n};")[0]
    assert set(re.findall(r"^  (\$?\w+): ", table, re.MULTILINE)) == DEFINITIONS["CHECKED"]
    with pytest.raises(ValueError, match="does not check multipleOf"):
        DEFINITIONS["checked"]({"type": "object", "properties": {"a": {"multipleOf": 2}}})


@pytest.mark.parametrize(
    "module",
    [
        'import * as all from "./exact.js";',
        'import { ceil as up } from "./exact.js";',
        'import fs from "node:fs";',
        "export default 1;",
        "const ceil = 1;",
    ],
)
def test_a_module_that_cannot_be_joined_is_refused(tmp_path: Path, module: str) -> None:
    (tmp_path / "exact.js").write_text("export const ceil = 1;\n", encoding="utf-8")
    (tmp_path / "part.js").write_text(f"{module}\nexport const part = 1;\n", encoding="utf-8")
    entry = 'export { ceil } from "./exact.js";\nexport { part } from "./part.js";\n'
    (tmp_path / "index.js").write_text(entry, encoding="utf-8")
    with pytest.raises(ValueError, match=r"plain|declared by two"):
        SCRIPT["bundle"](tmp_path)


def test_there_is_one_copy_and_the_wheel_serves_it(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    [client] = [*CLIENT.glob("*.js"), *ROOT.glob("src/**/priorveil.js")]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE)
    [wheel] = tmp_path.glob("*.whl")
    unpacked = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(unpacked)
    asked = subprocess.run(
        [sys.executable, "-c", SERVED, str(unpacked)], cwd=unpacked, capture_output=True, timeout=PATIENCE
    )
    assert asked.returncode == 0, asked.stderr.decode()
    assert asked.stdout == client.read_bytes()


def test_the_client_has_no_dependencies() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == pv.__version__
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package)
    text = (CLIENT / "priorveil.js").read_text(encoding="utf-8")
    assert "import " not in text and set(re.findall(r"import\((.*?)\)", text)) == {
        '"node:fs"',
        '"node:os"',
        '"node:path"',
    }
    assert {path.name for path in CLIENT.glob("*.?s")} == set(package["files"])


def test_the_types_are_those_of_the_shipped_file() -> None:
    node()
    if not (CLIENT / "node_modules" / ".bin" / "tsc").exists():
        pytest.skip("TypeScript is not installed: make types")
    shipped = (CLIENT / "priorveil.d.ts").read_text(encoding="utf-8")
    assert shipped == SCRIPT["types"](CLIENT), "make it again: make bundle"


USED = """
const held = new Map();
const storage = { keys: () => held.keys(), getItem: (key) => held.get(key), setItem: (...item) => held.set(...item) };
const client = new priorveil.Client("https://example.org/v1/campaigns/none", { storage });
client.campaign().catch((error) => console.log(error instanceof priorveil.PriorveilError, error.field));
"""


def test_the_package_works_in_a_default_npm_project(tmp_path: Path) -> None:
    """Packed, installed into what `npm init` makes, and used from a module and, where Node can, by `require`."""
    npm, run = shutil.which("npm"), node()
    if npm is None:
        pytest.skip("npm is not installed: the JavaScript package is not packed")

    def told(*command: str) -> str:
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    told(npm, "init", "-y")
    told(npm, "pack", "--pack-destination", str(tmp_path), str(CLIENT))
    (packed,) = tmp_path.glob("*.tgz")
    told(npm, "install", "--offline", "--no-audit", "--no-fund", str(packed))
    installed = {path.name for path in (tmp_path / "node_modules" / "priorveil").iterdir()}
    assert installed == {"README.md", "package.json", "priorveil.js", "priorveil.d.ts"}
    (tmp_path / "module.mjs").write_text(f'import * as priorveil from "priorveil";\n{USED}', encoding="utf-8")
    assert told(*run, "module.mjs") == "true url\n"
    if told(*run, "-p", "process.features.require_module === true") == "true\n":
        (tmp_path / "index.js").write_text(
            f'const priorveil = require("priorveil");\n{USED}', encoding="utf-8"
        )
        assert told(*run, "index.js") == "true url\n"


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    demo = pytest.importorskip("priorveil.curator.demo", reason="the example asks a real curator")
    prior = pv.Prior({"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07})
    [example] = re.findall(r"```js\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    for module in CLIENT.glob("*.js"):  # the example remembers in the folder where it runs
        shutil.copy(module, tmp_path)
    with demo.run_curator(ask("What kind of work do you do?", prior, smallest_count=1)) as curator:
        place = f"{curator.url}/v1/campaigns/{curator.campaign.id}"
        code, changed = re.subn(r'"https://curator[^"]+"', json.dumps(place), example)
        command = [*node(), "--input-type=module", "-e", code]
        for told in ("32 false\n", "32 true\n"):  # the second time it replays
            ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
            assert (changed, ran.returncode) == (1, 0), ran.stderr
            assert ran.stdout.startswith("What kind of work do you do?") and ran.stdout.endswith(told)
        assert curator.estimates()["result"]["reports"] == 1


ANSWER = """
import { Client, FileStorage } from "./priorveil.js";
const [url, folder] = process.argv.slice(1);
const client = new Client(url, folder ? { storage: await FileStorage.open(folder) } : {});
await client.campaign();
console.log(JSON.stringify((await client.answer("Private")).report));
"""


def answering(place: str, *folder: str) -> subprocess.Popen[str]:
    """A program that answers, and remembers in the folder if one is given."""
    command = [*node(), "--input-type=module", "-e", ANSWER, place, *folder]
    return subprocess.Popen(command, cwd=CLIENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_many_programs_with_one_folder_send_one_report_and_one_without_sends_none(tmp_path: Path) -> None:
    demo = pytest.importorskip("priorveil.curator.demo", reason="the programs ask a real curator")
    with demo.run_curator(ask("Once?", pv.Prior({"Private": 0.6, "None": 0.4}), smallest_count=1)) as curator:
        place = f"{curator.url}/v1/campaigns/{curator.campaign.id}"
        _, told = answering(place).communicate(timeout=PATIENCE)
        assert "PriorveilError: storage: there is nowhere to remember the report" in told
        started = [answering(place, str(tmp_path / "answers")) for _ in range(5)]
        ended = [program.communicate(timeout=PATIENCE) for program in started]
        assert [program.returncode for program in started] == [0] * 5, ended
        assert len({report for report, _ in ended}) == 1
        assert curator.estimates()["result"]["reports"] == 1


def test_python_and_javascript_refuse_the_same_addresses(tmp_path: Path) -> None:
    demo = pytest.importorskip("priorveil.curator.demo", reason="a real curator is asked")
    client = pytest.importorskip("priorveil.device.client", reason="the Python client is asked too")
    with demo.run_curator(ask("Where?", pv.Prior({"Private": 0.6, "None": 0.4}))) as curator:
        place = f"{curator.url}/v1/campaigns/{'0' * 64}"
        with client.Client(place, state=tmp_path) as asked, pytest.raises(client.ReportRefused) as refused:
            asked.answer("Private")
        _, told = answering(place, str(tmp_path)).communicate(timeout=PATIENCE)
        assert "Refused" in told and f"reason: '{refused.value.reason}'" in told


def test_the_address_of_the_page_that_people_answer_on(tmp_path: Path) -> None:
    demo = pytest.importorskip("priorveil.curator.demo", reason="a real curator is asked")
    client = pytest.importorskip("priorveil.device.client", reason="the Python client is asked too")
    with demo.run_curator(
        ask("Where?", pv.Prior({"Private": 0.6, "None": 0.4}), smallest_count=1)
    ) as curator:
        place = f"{curator.url}/answer/{curator.campaign.id}"
        with client.Client(place, state=tmp_path / "python") as asked:
            asked.answer("Private")
        program = answering(f"{place}?from=letter", str(tmp_path / "js"))
        assert program.communicate(timeout=PATIENCE)[1] == "" and program.returncode == 0
        assert curator.estimates()["result"]["reports"] == 2


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
    found: dict[str, list[object]] = run_module(RUN, {"plans": plans, "campaigns": campaigns}, CLIENT)
    return found


def designed(rng: np.random.Generator, method: str) -> Plan | None:
    size = int(rng.integers(2, 90)) if method != "closed" else int(rng.integers(2, 6))
    masses = rng.dirichlet(np.full(size, rng.choice([0.5, 2.0, 20.0]))) + 1e-6
    prior = pv.Prior(masses / masses.sum())
    query = pv.Distribution() if method == "orders" else pv.Histogram()
    name = "arc" if method == "orders" else method
    try:
        return pv.design(prior, float(rng.uniform(0.2, 5.0)), query, method=name)  # type: ignore[arg-type]
    except (Infeasible, TooLarge):
        return None


def test_a_plan_for_a_sample_is_read() -> None:
    """Its certificate is about a set of priors, which JavaScript cannot list: it proves the LDP level."""
    plan = pv.design(pv.PriorSet.from_sample({"yes": 120, "no": 880}), 1.0, pv.Distribution())
    (found,) = in_javascript([{"plan": json.loads(plan.to_json()), "cases": []}], [])["plans"]
    assert isinstance(found, dict) and found["ldp"] == pytest.approx(plan.certificate.ldp, rel=1e-9)


def test_random_plans_run_alike_in_both_languages() -> None:
    rng = np.random.default_rng(20)
    wanted = {
        "closed": 12,
        "arc": 12,
        "unary": 8,
        "subset": 8,
        "hashing": 2,
        "orders": 6,
    }  # designing for hashing is slow
    made = [designed(rng, method) for method, count in wanted.items() for _ in range(count)]
    plans = [plan for plan in made if plan is not None]
    assert {plan.mechanism.kind for plan in plans} >= {"table", "arc", "unary", "subset", "hashing"}
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
        expected.append({**levels, "reports": [report_to_json(plan.mechanism, report) for report in sampled]})
    assert in_javascript(given, [])["plans"] == expected


def test_campaigns_have_the_same_id_in_both_languages() -> None:
    prior = pv.Prior({"да": 0.2, "\U0001f300": 0.3, "\uffee": 0.1, 'a "b" \\ \x7f\u2028c': 0.4})
    other = pv.Prior(dict(zip(prior.labels, (0.4, 0.2, 0.2, 0.2), strict=True)))
    cohorts = {
        name: pv.design(p, 1.0, pv.Histogram()) for name, p in (("\U0001f300", prior), ("\uffee", other))
    }
    times = {"opens": read_time("opens", "2026-01-01T12:00:00+02:00"), "closes": None}
    campaign = ask_with(
        "Où?\n\tQuoi\x01",
        cohorts,
        **times,
        contact="a@example.org",
        asked_by="Nous",
        purpose="Pour \u2028 savoir",
    )
    assert in_javascript([], [campaign.to_json()])["campaigns"] == [campaign.id]


JUDGE = """
import { PriorveilError, readCampaign, readPlan } from "./priorveil.js";
import { readFileSync } from "node:fs";
const judged = async (text) => {
  const read = text.includes('"priorveil-campaign"') ? readCampaign : readPlan;
  try {
    return `taken: ${(await read(text)).proof ?? "campaign"}`;
  } catch (error) {
    return `${error instanceof PriorveilError ? "refused" : "failed"}: ${error.message}`;
  }
};
const verdicts = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) verdicts.push(await judged(text));
console.log(JSON.stringify(verdicts));
"""


def judged_in_javascript(texts: list[str]) -> list[str]:
    """What the client says of each text, all in one process."""
    verdicts: list[str] = run_module(JUDGE, texts, CLIENT)
    return verdicts


def refusal(text: str) -> PriorveilError | None:
    """Why Python refuses a text; None where it takes it."""
    try:
        _ = Campaign.from_json(text) if '"priorveil-campaign"' in text else Plan.from_json(text)
    except PriorveilError as error:
        return error
    return None


def documents() -> list[dict[str, Any]]:
    """A plan of every kind, with every kind of prior, secret, notion and query, and a campaign."""
    ill = pv.Secret([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    worse = pv.Secret([[0.8, 0.1, 0.1], [0.3, 0.3, 0.4]])
    three, two = pv.Prior([0.55, 0.2, 0.25]), pv.Prior({"yes": 0.5, "no": 0.5})
    pairs = pv.Pufferfish(pairs=[(0, 1)])
    plans = [
        pv.design(three, 1.0, pv.Guess(), secret=[ill, worse], notion=pairs),
        pv.design(three, 1.5, pv.Histogram(), notion=pv.DI()),
        pv.design(pv.PriorSet.ball([0.2, 0.3, 0.5], 0.1), 1.0, pv.Histogram()),
        pv.design(two, pv.Budget(1.0, np.inf), pv.Sum([-1.5, 3])),
        pv.design(three, 1.0, pv.Linear([[1, 0, 0], [1, 1, 0]], names=("first", "both"))),
    ]
    times = {
        "opens": read_time("opens", "2026-01-01T12:00:00Z"),
        "closes": read_time("", "2027-01-01T12:00:00Z"),
        "keep_until": read_time("", "2028-01-01T12:00:00Z"),
    }
    admission = {"admission": "invitation", "most_reports": 300}
    priors = {"north": two, "south": pv.Prior({"yes": 0.4, "no": 0.6})}
    campaign = ask("Which?", priors, **times, **admission)
    vectors = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CLIENT.glob("vectors/*.json"))]
    texts = [campaign.to_json(), *(plan.to_json() for plan in plans)]
    return [vector["plan"] for vector in vectors] + [json.loads(text) for text in texts] + surveys()


def surveys() -> list[dict[str, Any]]:
    """Campaigns with every kind of question and slot."""
    paths = sorted(CLIENT.glob("vectors/campaigns/*.json"))
    return [json.loads(path.read_text(encoding="utf-8"))["campaign"] for path in paths]


def sampled_part(document: Any, verdict: str) -> Any:
    """A document without what a device does not read; that is also the notion, where it is not proven."""
    if isinstance(document, list):
        return [sampled_part(part, verdict) for part in document]
    if not isinstance(document, dict):
        return document
    unread = {"id", "query", "method", "reading_prior", *(["notion"] if verdict == "taken: ldp" else [])}
    return {key: sampled_part(part, verdict) for key, part in document.items() if key not in unread}


def excused(error: PriorveilError, verdict: str, forged: dict[str, Any], original: dict[str, Any]) -> bool:
    """Whether JavaScript may take what Python refuses: it says so in docs/javascript.md.

    It does not work out errors again; where it proves LDP alone it makes no use of the rest of
    the certificate; and it does not read what a device does not need.
    """
    field = error.field if isinstance(error, PlanError) else ""
    return (
        field in ("expected_mse", "lower_bound", "no_report", "reading_prior")
        or (verdict == "taken: ldp" and field == "certificate")
        or sampled_part(forged, verdict) == sampled_part(original, verdict)
    )


def test_javascript_refuses_what_python_refuses() -> None:
    """Documents with one thing changed and an id that fits, some 45 of the thousands there are of each."""
    rng = np.random.default_rng(5)
    pairs = [(forged, document) for document in documents() for forged in forged_documents(document, rng, 45)]
    texts = [json.dumps(forged) for forged, _ in pairs]
    found = [(refusal(text), text) for text in texts]
    verdicts = judged_in_javascript(texts)
    assert [v for v in verdicts if v.startswith("failed")] == []
    taken = [
        (str(error), verdict, text)
        for (error, text), verdict, pair in zip(found, verdicts, pairs, strict=True)
        if error is not None and verdict.startswith("taken") and not excused(error, verdict, *pair)
    ]
    assert taken == []
    both = sum(e is None and v.startswith("taken") for (e, _), v in zip(found, verdicts, strict=True))
    neither = sum(
        e is not None and v.startswith("refused") for (e, _), v in zip(found, verdicts, strict=True)
    )
    assert both > 50 and neither > 1000  # there is something to take, and something to refuse


STRUCTURE = """
import { PriorveilError } from "./src/errors.js";
import { readDocument } from "./src/structure.js";
import { readFileSync } from "node:fs";
const fits = (document, name) => {
  try {
    readDocument(document, name);
    return true;
  } catch (error) {
    if (!(error instanceof PriorveilError)) throw error;
    return false;
  }
};
const { name, documents } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(documents.map((document) => fits(document, name))));
"""


@pytest.mark.parametrize(
    ("name", "format"), [("PlanDocument", "priorveil-plan"), ("CampaignDocument", "priorveil-campaign")]
)
def test_structure_is_that_of_json_schema(name: str, format: str) -> None:
    """The small validator and a full one say the same of documents with one thing changed."""
    rng = np.random.default_rng(11)
    originals = [document for document in documents() if document["format"] == format]
    forged = [each for document in originals for each in forged_documents(document, rng, 60)]
    # JSON Schema has no bound of whole numbers, and no word about half characters.
    judged = [each for each in forged if not re.search(r"\\ud800|\d{16}[,\]}]", json.dumps(each))]
    schemas = {key: DEFINITIONS["checked"](schema) for key, schema in DEFINITIONS["schemas"]().items()}
    validator = jsonschema.Draft202012Validator({"$defs": schemas, "$ref": f"#/$defs/{name}"})
    command = [*node(), "--input-type=module", "-e", STRUCTURE]
    given = json.dumps({"name": name, "documents": judged})
    ran = subprocess.run(
        command, cwd=CLIENT, input=given, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    verdicts = json.loads(ran.stdout)
    assert len(judged) > 0.9 * len(forged) and 0.1 < np.mean(verdicts) < 0.9
    expected = [validator.is_valid(each) for each in judged]
    assert [each for each, a, b in zip(judged, verdicts, expected, strict=True) if a != b] == []


def test_both_languages_read_the_same_texts() -> None:
    campaign = ask("Which?", pv.Prior({"yes": 0.4, "no": 0.6}), smallest_count=10)
    text = campaign.to_json()
    reversed_keys = json.dumps(dict(reversed(json.loads(text).items())))
    taken = [text, f" \n{text}\t ", reversed_keys, text.replace("{", '{"contact": "overwritten",', 1)]
    ten = '"smallest_count": 10'
    refused = [
        text.replace(ten, f'"smallest_count": {n}') for n in ("10.0", "1e1", "1E1", "010", "NaN", '"10"')
    ]
    refused += [f"\ufeff{text}", f"{text},", text[:-1], text.replace('"', "'"), "", "null", "[" * 100_000]
    assert ten in text and len({*taken, *refused}) == len(taken) + len(refused)
    for wanted, texts in ((True, taken), (False, refused)):
        assert [refusal(t) is None for t in texts] == [wanted] * len(texts)
        assert [v.startswith("taken") for v in judged_in_javascript(texts)] == [wanted] * len(texts)
