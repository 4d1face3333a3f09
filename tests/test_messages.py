"""The words of errors, all in `messages.txt`: an expression or a command that is refused, and below it the error.

To add a message, write its expression or its command alone. Then, and after a change of words, run `make messages` and
review the difference. An expression may use all names of this file, and the files that `lay_out` makes; a command those
of `command_files.py`. A command that is refused leaves every file as it was.
"""

# ruff: noqa: F401 (the expressions use the imports)
from __future__ import annotations

import os
import re
import shlex
import sqlite3
from contextlib import chdir, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from openpyxl import Workbook

import priorveil as pv
from command_files import lay_out_for_commands
from local_server import in_store
from priorveil import PriorveilError
from priorveil.atomic_files import atomic_write
from priorveil.curator.settings import read_settings
from priorveil.curator.store import Store, open_store
from priorveil.designs import design_margins, design_mean
from priorveil.designs.form_design import PartSpec, design_form
from priorveil.device.client import AnswerStore, Client, RetryPolicy
from priorveil.plans.form import Form, Part, Slot
from priorveil.queries.matrices import LogOdds
from priorveil.questions.campaign import Campaign, ask, ask_with
from priorveil.questions.choices import SingleChoice
from priorveil.questions.survey_reader import read_survey
from priorveil.reading.combination import combine_estimates
from priorveil.reading.tally import Tally
from priorveil.statistics.expected_information import coefficient_errors
from priorveil.statistics.planning import neyman_people, people_for_coefficient
from priorveil.studies.audit import audit_plan, sampled_leakage
from priorveil.studies.simulate import simulate
from priorveil.tables import estimate_table, privatize_table, tally_table
from sample_survey_files import SETTINGS, changed, write_form
from sample_surveys import HOURS as WORKED
from sample_surveys import ILLS, PACKS, QUESTIONS, SMOKES, health
from terminal import run

WORDS = Path(__file__).with_name("messages.txt")
IDS = re.compile(
    r"(?<![.\w])([0-9a-f]{64}|[0-9a-f]{12})(?!\w)"
)  # of designs, whose last digits the processor decides

# -- what the expressions use -------------------------------------------------------------------------------

PRIOR = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2})
SECRET = pv.Secret.from_joint([[0.25, 0.15, 0.1], [0.25, 0.15, 0.1]])
CHANNEL = pv.Channel([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
PLAN = pv.design(PRIOR, 1.0, pv.Histogram())
TWO = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Distribution())
SUM = pv.design(PRIOR, 1.0, pv.Sum([1, 2, 3]))
LARGE = pv.design(pv.Prior.zipf(3000), 1.0, pv.Histogram(), method="unary")
HASHING = pv.design(pv.Prior.zipf(30), 1.0, pv.Histogram(), method="hashing")
ESTIMATE = PLAN.estimate(PLAN.tally([0] * 10))
JOINT = pv.Prior.joint({(a, b): 0.25 for a in ("old", "young") for b in ("no", "yes")}, ("age", "smokes"))
HOURS = pv.Prior.joint(
    {(a, b): 0.25 for a in ("old", "young") for b in (0, 40)}, ("age", "hours"), grids=("hours",)
)
PAIRS = pv.design(JOINT, 1.0, pv.Histogram())
DRAWN = pv.design(JOINT, 1.0, pv.Distribution())
FORM = Form.of("work", PLAN)
GRID = pv.Prior.grid([0, 1, 2], [0.3, 0.4, 0.3])
CELLS = pv.Prior.cells([0, 1, 2], [0.5, 0.5])
PEOPLE = ["a"] * 1237 + ["b"] * 411 + ["c"]
CAMPAIGN = ask("Work?", PRIOR)
HEALTH = health()


def estimate(prior: pv.Prior, query: pv.Linear, method: str = "auto") -> Any:
    """An estimate from ten equal reports of a plan for this query."""
    plan = pv.design(prior, 1.0, query)
    return plan.estimate(plan.tally([0] * 10), method)  # type: ignore[arg-type]


def answer(receipt: httpx.Response, campaign: Campaign = CAMPAIGN) -> None:
    """Answer a campaign whose curator responds to the report with this receipt."""
    answer_at(
        f"http://curator/{campaign.id}",
        httpx.Response(200, json={"id": campaign.id, **campaign.document()}),
        receipt,
    )


def answer_at(url: str, page: httpx.Response, receipt: httpx.Response | None = None) -> None:
    """Answer the campaign that this address is said to show, in one attempt."""
    network = httpx.MockTransport(lambda request: receipt if request.method == "POST" else page)  # type: ignore[arg-type]
    Client(url, network, AnswerStore(), retry=RetryPolicy(attempts=1)).answer("a")


TEXT = {"en": "Do you smoke?", "de": "Rauchen Sie?"}
OPTIONS = {"never": {"en": "Never", "de": "Nie"}, "daily": {"en": "Every day", "de": "Jeden Tag"}}


def in_two_languages(
    text: Any = TEXT, options: Any = OPTIONS, hint: Any = "", languages: Any = ("en", "de"), purpose: Any = ""
) -> None:
    """A campaign whose title is in two languages."""
    question = SingleChoice("smokes", text, options=options, hint=hint)
    plan = pv.design(pv.Prior({"never": 0.7, "daily": 0.3}), 1.0, pv.Distribution())
    Campaign(TEXT, [question], {"all": Form.of("smokes", plan)}, languages=languages, purpose=purpose)


def write(path: str) -> None:
    """Write an empty file."""
    with atomic_write(Path(path)):
        pass


def settings_in(text: str) -> None:
    """Read the settings in a file."""
    Path("priorveil.toml").write_text(text)
    read_settings(Path("priorveil.toml"), {})


def survey_in(text: str) -> None:
    """Read the survey in a TOML file: a title, a budget, and this."""
    Path("survey.toml").write_text(f'title = "T"\nepsilon = 1\n{text}')
    read_survey("survey.toml")


def form_in(*rows: list[object]) -> None:
    """Read the survey in an XLSForm with these rows of questions, and a list of choices."""
    workbook = Workbook()
    sheets = {
        "survey": [["type", "name", "label", "relevant", "pv::prior"], *rows],
        "choices": [["list_name", "name", "label"], ["yn", "yes", "Yes"], ["yn", "no", "No"]],
        "settings": [["form_title", "pv::epsilon"], ["T", 1]],
    }
    for title, cells in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in cells:
            sheet.append(row)
    workbook.save("form.xlsx")
    read_survey("form.xlsx")


def lay_out(folder: Path) -> None:
    """The files that the expressions and the commands use."""
    (folder / "commands").mkdir()
    lay_out_for_commands(folder / "commands", PLAN, PAIRS)
    (folder / "folder").mkdir()
    (folder / "exists.csv").write_text("x\na\n")
    (folder / "no-names.csv").write_text("41,flu\n35,cold\n")
    (folder / "table.json").write_text('{"reports": []}')
    (folder / "open-quote.csv").write_text('x,y\na,"cut\n')
    (folder / "damaged.parquet").write_bytes(b"PAR1 and no more")
    (folder / "state").mkdir()
    (folder / "state" / f"{'0' * 64}.json").write_text("{")
    (folder / "newer.db").write_bytes(b"")
    with closing(sqlite3.connect(folder / "newer.db")) as db, db:
        db.execute("PRAGMA user_version = 99")


# -- the test -----------------------------------------------------------------------------------------------


def read() -> list[list[str]]:
    """The expressions, each with its error unless that is still to be written, and the headings (`# ...`)."""
    return [block.split("\n    ") for block in WORDS.read_text(encoding="utf-8").strip().split("\n\n")]


def message(expression: str) -> str:
    """The class and the words of the error that an expression raises, or what a command says; ids are left out."""
    if expression.startswith("priorveil "):
        words = words_of_command(expression)
    else:
        names = {name: value for name, value in globals().items() if not name.startswith("_")}
        with pytest.raises(PriorveilError) as raised:
            eval(expression, names)
        words = f"{raised.type.__name__}: {raised.value}".replace(str(Path.cwd()), "FOLDER")
    return IDS.sub("ID", words)


def words_of_command(command: str) -> str:
    """What a command prints that is refused, in its folder."""

    def contents() -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}

    with chdir("commands"):
        before = contents()
        status, out, err = run(*shlex.split(command)[1:])
        assert (status, out) == (2, "") and contents() == before, command
    return err.rstrip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("messages")
    lay_out(path)
    return path


@pytest.mark.parametrize("block", [b for b in read() if not b[0].startswith("#")], ids=lambda block: block[0])
def test_an_error_says_what_is_wrong_and_what_to_do(block: list[str], folder: Path) -> None:
    expression, *lines = block
    with chdir(folder):
        assert message(expression).splitlines() == lines


def test_every_expression_stands_once() -> None:
    expressions = [block[0] for block in read()]
    assert len(set(expressions)) == len(expressions)


def rewritten(block: list[str]) -> str:
    """A block with the message of today."""
    return (
        block[0] if block[0].startswith("#") else "\n    ".join([block[0], *message(block[0]).splitlines()])
    )


if __name__ == "__main__":
    with TemporaryDirectory() as scratch, chdir(scratch):
        lay_out(Path(scratch))
        WORDS.write_text("\n\n".join(map(rewritten, read())) + "\n", encoding="utf-8")
