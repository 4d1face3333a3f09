"""Every line of the table in docs/values.md, in Python, on files, and in JavaScript."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import priorveil as pv
from nodejs import run_module
from priorveil.errors import InvalidInput, OutsideDomain
from priorveil.tables import privatize_table

ROOT = Path(__file__).resolve().parent.parent.parent
LINE = re.compile(
    r"^\| (grid|cells)? ?`(\[.*?\])`(, outside: ends)? \| (.*?) \| (?:`(.*?)`|(refused|missing)) \|$", re.M
)
ENOUGH = 20  # reports of one value: none is that of another value, except with probability 1e-11


@dataclass(frozen=True)
class Row:
    """A value with the labels of a plan, and what it is: the position of a label, or a reason."""

    kind: str
    labels: str
    ends: bool
    value: str
    outcome: int | str

    @property
    def plan(self) -> pv.Plan:
        return plan_of(self.kind, self.labels, self.ends)


@cache
def plan_of(kind: str, labels: str, ends: bool) -> pv.Plan:
    """A plan that nearly always reports the position of the value."""
    listed: list[Any] = json.loads(labels)
    size = len(listed) - (kind == "cells")
    make: Any = {"grid": pv.Prior.grid, "cells": pv.Prior.cells}.get(kind)
    even = [1 / size] * size
    prior = (
        pv.Prior(even, listed) if make is None else make(listed, even, outside="ends" if ends else "refuse")
    )
    return pv.design(prior, 30.0, pv.Histogram(), method="columns")


def rows() -> list[Row]:
    listed = []
    for kind, labels, ends, values, label, reason in LINE.findall(
        (ROOT / "docs" / "values.md").read_text("utf-8")
    ):
        outcome = reason or plan_of(kind, labels, bool(ends)).labels.index(json.loads(label))
        listed += [Row(kind, labels, bool(ends), value, outcome) for value in re.findall("`(.*?)`", values)]
    return listed


ROWS = rows()
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}{row.labels}-{row.value}")


def reports_of(row: Row) -> set[int]:
    """What people with this value report."""
    return {row.plan.privatize(row.outcome, codes=True) for _ in range(ENOUGH)}


def test_the_table_is_read_whole() -> None:
    text = (ROOT / "docs" / "values.md").read_text("utf-8")
    assert len(LINE.findall(text)) == len([line for line in text.splitlines() if line.startswith("| ")]) - 1
    assert len(ROWS) > 80


@each_row
def test_in_python(row: Row) -> None:
    value = json.loads(row.value)
    for values in (value, [value], np.array([value], dtype=object), [value, value]):
        if isinstance(row.outcome, int):
            drawn = {
                report for _ in range(ENOUGH) for report in np.atleast_1d(row.plan.privatize(values)).tolist()
            }
            assert drawn == reports_of(row)
        else:
            with pytest.raises(InvalidInput) as caught:
                row.plan.privatize(values)
            assert isinstance(caught.value, OutsideDomain) == (row.outcome == "refused")


@each_row
def test_in_tables(row: Row) -> None:
    value = json.loads(row.value)
    column = pa.array([value] * ENOUGH, pa.string() if value is None else None)
    tables: list[Any] = [{"x": column}, {"x": column.dictionary_encode()}]
    if not isinstance(value, bool):  # a text file has no truth values
        text = io.StringIO()
        csv.writer(text).writerows([["x", "y"], *[["" if value is None else value, "1"]] * ENOUGH])
        tables.append(io.BytesIO(text.getvalue().encode()))
    for table in tables:
        done = privatize_table(table, row.plan, "x")
        if isinstance(row.outcome, int):
            assert set(done.table["report"].to_pylist()) == reports_of(row)
        else:
            assert done.reports == 0 and ("missing" in done.refused.counts) == (row.outcome == "missing")


SCRIPT = """
import { readPlan } from %s;
const { plans, cases } = JSON.parse(await new Response(process.stdin).text());
const read = await Promise.all(plans.map((plan) => readPlan(plan)));
const outcome = ([plan, value]) => {
  try {
    return [...new Set(Array.from({ length: %d }, () => read[plan].privatize(JSON.parse(value))))];
  } catch (error) {
    return error.field === "value" ? (error.message.includes("missing") ? "missing" : "refused") : String(error);
  }
};
console.log(JSON.stringify(cases.map(outcome)));
"""


def test_in_javascript() -> None:
    plans = list(dict.fromkeys(row.plan for row in ROWS))
    cases = [[plans.index(row.plan), row.value] for row in ROWS]
    client = (ROOT / "clients" / "js" / "priorveil.js").as_uri()
    given = {"plans": [json.loads(plan.to_json()) for plan in plans], "cases": cases}
    outcomes = run_module(SCRIPT % (json.dumps(client), ENOUGH), given, ROOT)
    for row, outcome in zip(ROWS, outcomes, strict=True):
        expected = row.outcome if isinstance(row.outcome, str) else reports_of(row)
        assert (set(outcome) if isinstance(outcome, list) else outcome) == expected, row


@pytest.mark.parametrize(
    ("value", "label"),
    [(np.int64(8), 8), (np.float32(8), 8), (Decimal("8.00"), 8), (datetime.date(2024, 5, 1), "2024-05-01")],
    ids=str,
)
def test_other_types_of_python(value: Any, label: Any) -> None:
    plan = pv.design(pv.Prior.uniform([8, "2024-05-01"]), 30.0, pv.Histogram())
    expected = {plan.privatize(label) for _ in range(ENOUGH)}
    assert (
        {plan.privatize(value) for _ in range(ENOUGH)}
        == set(plan.privatize([value] * 9).tolist())
        == expected
    )
