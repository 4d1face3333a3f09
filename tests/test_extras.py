"""An extra brings what its feature needs: each feature runs with the libraries of its extra, and no others.

The other libraries of this environment are hidden. `scripts/smoke.py` installs into environments of its own.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import priorveil as pv
from patience import PATIENCE
from priorveil.questions.campaign import ask

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "constraints.py"))
closure, GROUPS = SCRIPT["closure"], SCRIPT["extras"]()

HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
DESIGN = """
import numpy as np
import priorveil as pv
plan = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), epsilon=1.0, query=pv.Histogram())
reports = plan.privatize(["yes", "no"] * 50, rng=np.random.default_rng(1))
estimate = plan.estimate(plan.tally(reports))
"""
ANSWER = """
import sys
from priorveil.device.client import Client
with Client(sys.argv[1], state=sys.argv[2]) as client:
    client.answer("yes")
"""
FEATURES = {
    "": DESIGN + "print(estimate)",
    "plot": DESIGN + "plan.plot()",
    "tables": DESIGN
    + """
import pyarrow, pyarrow.parquet
from priorveil.tables import privatize_table
pyarrow.parquet.write_table(pyarrow.table({"answer": ["yes", "no"]}), "people.parquet")
privatize_table("people.parquet", plan, "answer", out="reports.parquet")
""",
    "surveys": """
from openpyxl import Workbook
from priorveil.questions.survey_reader import read_survey
workbook = Workbook()
sheet = workbook.active
sheet.title = "survey"
for row in (["type", "name", "label", "pv::range"], ["integer", "age", "Age?", "0, 100"]):
    sheet.append(row)
settings = workbook.create_sheet("settings")
for row in (["form_title", "pv::epsilon"], ["Ages", 1]):
    settings.append(row)
workbook.save("form.xlsx")
assert read_survey("form.xlsx").questions[0].name == "age"
""",
    "statistics": DESIGN
    + """
people = {"age": list(range(20, 70)) * 2}
reports = reports.tolist()
import pandas
fit = pv.regress(reports, formula="~ age", data=pandas.DataFrame(people), plan=plan)
assert fit.names == ("Intercept", "age")
""",
    "serve": """
import priorveil as pv
from priorveil.questions.campaign import ask
from priorveil.curator.demo import run_curator, send_answers
with run_curator(ask("Once?", pv.Prior({"yes": 0.3, "no": 0.7}), smallest_count=1)) as curator:
    list(send_answers(curator, [{"answer": "yes"}, {"answer": "no"}]))
    assert curator.estimates()["result"]["reports"] == 2
""",
}


def run_alone(group: str, code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code that can import the libraries of one extra only."""
    try:
        installed = closure(GROUPS, ["", group])
    except PackageNotFoundError as missing:
        pytest.skip(f"{missing.name} is not installed here")
    hidden = {
        module
        for module, homes in packages_distributions().items()
        if module != "priorveil" and installed.isdisjoint(map(canonicalize_name, homes))
    }
    assert {"hypothesis", "pytest"} <= hidden
    return subprocess.run(
        [sys.executable, "-c", HIDE.format(modules=hidden) + code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("group", FEATURES)
def test_a_feature_needs_its_extra_alone(group: str, tmp_path: Path) -> None:
    ran = run_alone(group, FEATURES[group], tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_the_doctor_needs_no_extra_to_say_which_are_missing(tmp_path: Path) -> None:
    ran = run_alone("", "from priorveil.__main__ import main; main(['doctor'])", tmp_path)
    assert ran.returncode == 0 and "missing httpx" in ran.stdout, ran.stderr


def test_the_client_needs_an_http_library_and_nothing_else(tmp_path: Path) -> None:
    assert [Requirement(text).name for text in GROUPS["client"]] == ["httpx"]
    demo = pytest.importorskip("priorveil.curator.demo", reason="the client asks a real curator")
    with demo.run_curator(ask("Once?", pv.Prior({"yes": 0.3, "no": 0.7}), smallest_count=1)) as curator:
        place = f"{curator.url}/v1/campaigns/{curator.campaign.id}"
        ran = run_alone("client", ANSWER, tmp_path, place, str(tmp_path / "answers"))
        assert ran.returncode == 0, ran.stderr
        assert curator.estimates()["result"]["reports"] == 1


def test_without_an_http_library_the_client_names_its_extra(tmp_path: Path) -> None:
    ran = run_alone("", "import priorveil.device.client", tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("priorveil.errors.MissingExtra: httpx ")
    assert "[client]" in ran.stderr.splitlines()[-1]
