"""The files that the commands in `messages.txt` read: priors, people, channels, plans, reports and surveys."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np

import priorveil as pv
from priorveil.designs import design_mean
from priorveil.tables import privatize_table
from sample_survey_files import SURVEY, TOML, changed, write_form
from sample_surveys import health

WORK = "Private,0.69\nSelf,0.11\nGov,0.13\nNone,0.07\n"
EVEN = "0.5,0.5\n0.5,0.5\n"
_OCCUPATIONS = ["a"] * 1237 + ["b"] * 411 + ["Pope"] * 4 + ["Queen"] * 7
_SPENT = [f"{7 * i % 150}.5,{work},{'low' if i % 3 else 'high'}" for i, work in enumerate(_OCCUPATIONS)]
_RANDOM = np.random.default_rng(1).integers(0, 4, (500, 4)).tolist()

TEXTS = {
    # priors
    "prior.csv": f"work,probability\n{WORK}",
    "counts.csv": "0,60\n1,30\n2,10\n",
    "prior.png": "0,60\n1,30\n2,10\n",
    "rounded.csv": "a,0.40\nb,0.35\nc,0.25\n",
    "separators.csv": 'a,"1,200"\nb,"3,400"\n',
    "three-columns.csv": "a,0.6,1\nb,0.4,2\n",
    "zero.csv": "a,1\nb,0\n",
    "two.csv": "a,0.6\nb,0.4\n",
    "three.csv": "a,0.6\nb,0.3\nc,0.1\n",
    "thirds.csv": "0.5\n0.25\n0.25\n",
    "too-much.csv": "0.5\n0.6\n",
    "typo.csv": "a,O.5\nb,0.3\nc,0.2\n",
    "percent.csv": "yes,69%\nno,31%\n",
    "letters.csv": "yes,A\nno,B\n",
    "wide.csv": "1,2,3\n4,5,6\n",
    "grades.csv": "A,0.1\nB,0.2\nC,0.4\nD,0.2\nE,0.1\n",
    "pets.csv": "pet,n,share\ncat,30,0.3\ndog,70,0.7\n",
    "cross.csv": "age,smokes,share\nyoung,yes,0.2\nyoung,no,0.3\nold,no,0.5\n",
    "cross-counts.csv": "age,smokes,people\nyoung,yes,20\nyoung,no,30\nold,no,50\n",
    "alike.csv": 'x,y,share\n"a, b",c,0.5\na,"b, c",0.5\n',
    "noise.csv": "no prior",
    "prior.json": '{"Private": 0.69, "Self": 0.11, "Gov": 0.13, "None": 0.07}',
    "form.json": '{"format": "priorveil-form"}',
    # channels, secrets and matrices
    "channel.csv": EVEN,
    "four.csv": EVEN * 2,
    "too-much-channel.csv": "0.5,0.6\n0.5,0.5\n",
    "letters-channel.csv": "0.5,x\n0.5,0.5\n",
    "empty.csv": "",
    "even.csv": "0.5\n0.5\n",
    "sure.csv": "0\n1\n",
    "secret.csv": "0.4,0.6\n0.6,0.4\n",
    "rounded-secret.csv": ",a,b,c\nx,0.60,0.30,0.10\ny,0.35,0.36,0.29\n",
    "typo-secret.csv": ";a;b\nlow;0,7x;0,25\nhigh;0,3;0,7\n",
    "long-secret.csv": "0.5,0.2,0.2,0.2\n",
    "short-secret.csv": ",a,b\nlow,0.75,0.25\nhigh,0.3,0.7\n",
    "matrix.csv": "1,0,1\n0,1,1\n",
    "alike-matrix.csv": 'rows,"a, b, c",other\nx,1,2\n',
    "three-channel.csv": "0.6,0.4\n0.5,0.5\n0.4,0.6\n",
    # people
    "people.csv": "town,work,income\n" + "x,a,low\n" * 30 + "x,a,high\n" * 10 + "y,b,low\n" * 30,
    "private.csv": "\n".join(["spend,work,income", *_SPENT, ""]),
    "few.csv": "work\n" + "a\n" * 20 + "Pope\n" * 4,
    "allowed.txt": "Queen\nb\na\nPope\nnobody\n",
    "cells.csv": "a,b\n" + "x,y\nx,z\nw,y\n" * 20 + "w,z\n" * 5,
    "smokers.csv": "age,smokes\n" + "young,yes\n" * 20 + "young,no\n" * 30 + "old,no\n" * 50,
    "many.csv": "\n".join(["a,b,c,d", *(",".join(map(str, row)) for row in _RANDOM), ""]),
    "ill.csv": "name,illness\nAnn,asthma\nBob,gout\n",
    "pipes.csv": "a;b,c\n1,2\n3,4\n",
    "ages.csv": "age\n10\n60\n60\n",
    "one-old.csv": "age\n10\n\n60\n190\n",
    "one-word.csv": "age\n10\nmuch\n",
    "hours.csv": "age,overtime\nyoung,5\n,5\nold,5\nold,99.5\n",
    "many-hours.csv": "age,overtime\n" + "".join(f"young,{n / 10}\nold,{n / 9}\n" for n in range(90)),
    "averages.csv": "age,overtime\n" + "".join(f"{a},{x}\n" * 20 for a in "yo" for x in (0, 10, 20, 30, 39)),
    "incomes.csv": "income,town\n2.5,A\n7,B\n",
    "workers.csv": "work\nGov\nzzz\n",
    "other-column.csv": "age\na\n",
    "short-row.csv": "a,work\nb\n",
    "no-rows.csv": "work\n",
    "answers.csv": "answer,town\na,A\nb,B\n",
    "not-allowed.csv": "answer,town\nA,A\nzzz,B\n",
    "one.png": "n\n0\n1\n",
    "survey.toml": "title = 'Work'",
    "cohorts.csv": "smokes,group\nnever,drawn\n",
    "no-gate.csv": "hours,ills,packs\n40,,\n",
    # surveys
    "health.toml": TOML,
    "health.txt": TOML,
    "wrong.toml": TOML.replace("no = 0.8", "no = 0.7"),
}


def lay_out_for_commands(folder: Path, table: pv.Plan, joint: pv.Plan) -> None:
    """Write all files; `table` is a plan for the values a, b and c, and `joint` one of age and smokes."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "packed.json").write_bytes(gzip.compress(b"[0.5, 0.5]"))
    with zipfile.ZipFile(folder / "prior.zip", "w") as archive:
        archive.writestr("inside.csv", TEXTS["two.csv"])
    (folder / "parquet.csv").write_bytes(b"PAR1 and no more")
    (folder / "latin.csv").write_bytes("answer\na\nmöglich\n".encode("latin-1"))
    (folder / "link.csv").symlink_to("counts.csv")
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.png")
    for name in ("out", "plans", "same"):
        (folder / name).mkdir()
    for name in ("plan.json", "plan.png", "plans/A.json", "same/C.json", "same/%43.json"):
        table.save(folder / name)
    forged = (folder / "plan.json").read_text().replace('"lower": "1.0"', '"lower": "0.9"')
    (folder / "forged.json").write_text(forged)
    joint.save(folder / "table.json")
    design_mean(0, 80, 1.0, lambda number: 1.0).save(folder / "numbers.json")
    reports = {
        "reports.csv": [f"{table.id},{y}" for y in (0, 1, 0, 1)],
        "none.csv": [],
        "nobody.csv": [],
        "foreign.csv": [f"{table.id},{y}" for y in (77, 88)],
        "other.csv": [f"{'0' * 64},0"],
        "metals.csv": ["gold,0", "silver,1"],
        "table-reports.csv": [f"{joint.id},0"] * 4,
    }
    for name, lines in reports.items():
        (folder / name).write_text("\n".join(["plan,report", *lines, ""]))
    (folder / "bare.csv").write_text("report\n0\n1\n")
    campaign = health()
    (folder / "campaign.json").write_text(campaign.to_json())
    people = {"smokes": ["never"] * 4, "ills": [""] * 4, "hours": [40] * 4, "packs": [""] * 4}
    privatize_table(people, campaign, out=folder / "submissions.csv", rng=np.random.default_rng(1))
    write_form(folder / "form.xlsx", survey=changed(SURVEY, "A2", "select_one age"))
