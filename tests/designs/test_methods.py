"""The tables of methods: `auto` tries what the documentation says, and a method says itself whether it applies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil.designs.methods import ANY_PLAN, AUTO, METHODS, AutoRow, Try, auto_row
from priorveil.designs.problem import DesignProblem, Objective
from priorveil.designs.stopping import UNLIMITED
from priorveil.errors import Infeasible, TooLarge

CHOOSING = Path(__file__).parents[2] / "docs" / "choosing.md"
SUM = pv.Sum(range(40))


def described(attempt: Try) -> str:
    """A method to try, as the documentation shows it."""
    size = f"up to {attempt.most:,} values" if attempt.most < np.inf else ""
    enough = f"enough at {attempt.enough:.3g}" if attempt.enough < 0.999 else ""
    enough = "any plan is enough" if attempt.enough == ANY_PLAN else enough
    remarks = ", ".join(filter(None, [size, enough]))
    return f"`{attempt.method}`" + (f" ({remarks})" if remarks else "")


def test_the_documentation_shows_the_table_of_auto() -> None:
    text = CHOOSING.read_text(encoding="utf-8")
    rows = [
        f"| {row.case} | {', '.join(map(described, row.tries))} | {', '.join(map(described, row.otherwise))} |"
        for row in AUTO
    ]
    table = "\n".join(["| case | tries | otherwise |", "|---|---|---|", *rows])
    assert table in text, f"docs/choosing.md needs this table:\n{table}"


CONVEX = pv.Convex(lambda p: p.max(axis=1))
PAIR = pv.PriorSet([pv.Prior.uniform(4), pv.Prior.zipf(4)])


def problems() -> Iterator[DesignProblem]:
    """A problem of each row of the table, and for each of its methods one that the method is for."""
    for notion in (pv.LIP(), pv.LDP(), pv.Pufferfish()):
        for size in (2, 4, 40, 130, 400):
            sums = pv.Sum(range(size)), pv.Sum(range(size), unbiased=True), pv.Sum([1] * size)
            for query in (pv.Histogram(), pv.Distribution(), pv.Guess(), CONVEX, *sums):
                yield DesignProblem.of(pv.Prior.zipf(size), 1.0, query, notion=notion)
        for query in (pv.Histogram(), pv.Distribution(), pv.Guess()):
            yield DesignProblem.of(PAIR, 1.0, query, notion=notion)


@pytest.mark.parametrize("row", AUTO, ids=lambda row: row.case)
def test_every_method_of_a_row_applies_to_a_problem_of_the_row(row: AutoRow) -> None:
    of_row = [problem for problem in problems() if auto_row(problem) is row]
    assert of_row
    for attempt in (*row.tries, *row.otherwise):
        assert any(applies(attempt.method, problem) for problem in of_row), attempt.method


def applies(method: str, problem: DesignProblem) -> bool:
    try:
        METHODS[method].require(problem)
    except (Infeasible, TooLarge):
        return False
    return True


@pytest.mark.parametrize(
    ("prior", "query", "notion", "first"),
    [
        (pv.Prior.uniform(2), pv.Guess(), pv.Pufferfish(), "closed"),
        (pv.Prior.zipf(40), pv.Histogram(), None, "columns"),
        (pv.Prior.zipf(400), pv.Histogram(), None, "arc"),
        (pv.Prior.zipf(400), pv.Guess(), None, "columns"),
        (pv.Prior.zipf(40), pv.Distribution(), None, "columns"),
        (pv.Prior.zipf(200), pv.Distribution(), None, "arc"),
        (pv.Prior.uniform(200), pv.Distribution(), None, "columns"),
        (pv.Prior.zipf(20), pv.Histogram(), pv.LDP(), "columns"),
        (pv.Prior.zipf(40), pv.Histogram(), pv.LDP(), "subset"),
        (pv.Prior.zipf(40), SUM, pv.LDP(), "columns"),
        (pv.PriorSet([pv.Prior.zipf(40), pv.Prior.uniform(40)]), SUM, None, "columns"),
    ],
)
def test_what_auto_tries_first(
    prior: pv.Prior | pv.PriorSet, query: pv.Sum | pv.Guess, notion: pv.LDP | None, first: str
) -> None:
    assert auto_row(DesignProblem.of(prior, 1.0, query, notion=notion)).tries[0].method == first


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(range(4)), pv.Guess(), pv.Distribution()])
@pytest.mark.parametrize("notion", [pv.LIP(), pv.LDP(), pv.Pufferfish()])
def test_a_method_that_does_not_apply_refuses(name: str, query: pv.Histogram, notion: pv.LIP) -> None:
    """A method either refuses a problem at once, with a hint, or makes a plan that keeps the budget."""
    problem = DesignProblem.of(pv.Prior.zipf(4), 1.0, query, notion=notion)
    method = METHODS[name]
    try:
        method.require(problem)
    except (Infeasible, TooLarge) as refusal:
        assert refusal.hints
        with pytest.raises(type(refusal)):
            method.plan(problem, UNLIMITED)
    else:
        try:
            plan = method.plan(problem, UNLIMITED)
        except Infeasible:
            assert name in ("arc", "subset", "unary", "hashing")  # found out on the way
        else:
            assert plan.certificate.level <= 1.0 and plan.lower_bound <= plan.expected_mse


def test_objectives_cover_every_query() -> None:
    queries = [
        pv.Histogram(),
        pv.Sum([0, 1, 2]),
        pv.Linear(np.tri(3)),
        pv.Guess(),
        pv.Convex(lambda p: p.max(axis=1)),
        pv.Distribution(),
        pv.Sum([0, 1, 2], unbiased=True),
    ]
    assert [DesignProblem.of(pv.Prior.zipf(3), 1.0, query).objective for query in queries] == list(Objective)
