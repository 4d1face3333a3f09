"""Survey files for tests: an XLSForm with six questions in two languages, and one in TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from openpyxl import Workbook

Rows = Sequence[Sequence[Any]]

SURVEY: Rows = [
    [
        *("type", "name", "label::English (en)", "label::Deutsch (de)", "relevant", "required", "constraint"),
        *("pv::query", "pv::prior", "pv::together", "pv::unit::English (en)", "pv::unit::Deutsch (de)"),
    ],
    ["select_one ages", "age", "How old are you?", "Wie alt sind Sie?", None, "yes"],
    [
        *("select_one yn", "home", "Do you work from home?", "Arbeiten Sie zu Hause?", None, "yes", None),
        *("table", 'sheet = "last year"', "age"),
    ],
    ["select_one yn", "union", "Are you in a union?", "Sind Sie in einer Gewerkschaft?", None, "yes"],
    ["select_one often", "active", "How often do you go?", "Wie oft?", "${union} = 'yes'", "yes"],
    [
        *(
            "decimal",
            "sleep",
            "Hours of sleep?",
            "Stunden Schlaf?",
            None,
            "yes",
            ". >= 0 and . <= 12",
            "mean",
        ),
        *('"0 to 6" = 0.2, "6 to 8" = 0.5, "8 to 12" = 0.3', None, "hours", "Stunden"),
    ],
    ["select_multiple worries", "worries", "What worries you?", "Was macht Ihnen Sorgen?", None, "yes"],
    [
        *("integer", "overtime", "Hours of overtime?", "Überstunden?", None, "yes", ". >= 0 and . <= 20"),
        *("mean", "unknown", "age", "hours", "Stunden"),
    ],
]
CHOICES: Rows = [
    ["list_name", "name", "label::English (en)", "label::Deutsch (de)", "pv::prior"],
    ["ages", "young", "Under 40", "Unter 40"],
    ["ages", "old", "40 and over", "40 und darüber"],
    ["yn", "yes", "Yes", "Ja", 0.25],
    ["yn", "no", "No", "Nein", 0.75],
    ["often", "rarely", "Rarely", "Selten", 0.7],
    ["often", "weekly", "Every week", "Jede Woche", 0.3],
    ["worries", "pay", "Pay", "Lohn", 0.4],
    ["worries", "boss", "My boss", "Vorgesetzte", 0.2],
    ["worries", "health", "My health", "Gesundheit", 0.3],
]
SETTINGS: Rows = [
    [
        *("form_title", "pv::title::Deutsch (de)", "form_id", "default_language", "pv::epsilon"),
        *("pv::asked_by", "pv::asked_by::Deutsch (de)", "pv::purpose", "pv::purpose::Deutsch (de)"),
    ],
    ["Work", "Arbeit", "work", "English (en)", 2, "The council", "Der Rat", "To know", "Um zu wissen"],
]
LAST_YEAR: Rows = [
    ["age", "home", "share"],
    ["young", "yes", 0.15],
    ["young", "no", 0.35],
    ["old", "yes", 0.1],
    ["old", "no", 0.4],
]
SHEETS: Mapping[str, Rows] = {
    "survey": SURVEY,
    "choices": CHOICES,
    "settings": SETTINGS,
    "last year": LAST_YEAR,
}

PEOPLE = 2000
WORRIES = {"pay": 0.5, "boss": 0.15, "health": 0.3}


def one_person(rng: np.random.Generator) -> dict[str, Any]:
    """Answers that have to do with each other, and with other shares than the file says."""
    old = rng.random() < 0.5
    person: dict[str, Any] = {
        "age": "old" if old else "young",
        "home": "yes" if rng.random() < (0.2 if old else 0.4) else "no",
        "union": "yes" if rng.random() < 0.3 else "no",
        "sleep": float(rng.uniform(4, 10)),
        "worries": [code for code, share in WORRIES.items() if rng.random() < share],
        "overtime": int(rng.integers(0, 11 if old else 5)),
    }
    if person["union"] == "yes":
        person["active"] = "weekly" if rng.random() < 0.4 else "rarely"
    return person


TRUTH = {
    ("union", "yes"): 0.3, ("active", "weekly"): 0.12, ("active", "rarely"): 0.18, ("active", "not asked"): 0.7,
    ("worries/pay", "yes"): 0.5, ("worries/boss", "yes"): 0.15, ("worries/health", "yes"): 0.3,
}  # fmt: skip

TOML = """\
title = "Health"
languages = ["en"]
asked_by = "The clinic"
purpose = "To help"
epsilon = 1.0
smallest_count = 50

[[question]]
name = "smokes"
text = "Do you smoke?"
kind = "yes-no"
prior = {yes = 0.2, no = 0.8}

[[question]]
name = "quit"
text = "Do you want to stop?"
options = {yes = "Yes", no = "No", secret = "I prefer not to say"}
asked_if = {smokes = ["yes"]}
prior = {yes = 0.5, no = 0.4, secret = 0.1}

[[question]]
name = "age"
text = "How old are you?"
kind = "number"
range = [18, 98]
query = "quantiles"
prior = "unknown"
"""


def write_form(path: Path, **sheets: Rows) -> Path:
    """Write an XLSForm: the six questions, with some sheets replaced."""
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    for title, rows in {**SHEETS, **sheets}.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    workbook.save(path)
    return path


def changed(rows: Rows, cell: str, value: Any) -> list[list[Any]]:
    """The rows of a sheet with another value in one cell, such as C4."""
    column, row = ord(cell[0]) - ord("A"), int(cell[1:]) - 1
    copy = [list(each) + [None] * (column + 1 - len(each)) for each in rows]
    copy[row][column] = value
    return copy
