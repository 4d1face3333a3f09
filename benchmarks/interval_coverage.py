"""How often 95 % intervals contain the truth where few people have a value that the prior takes for rare.

Ten values; the prior gives the last two a small share each. Nobody to 100 of the people have the last one, half as many
as the prior expects have the one before it, and the others are as the prior says. The plan is a table for the query
distribution, read by method unbiased, or one of another method. People and reports are drawn again for every survey.

    python benchmarks/interval_coverage.py                the table of docs/running.md: about ten minutes
    python benchmarks/interval_coverage.py --method subset --carriers 1 2 3    subsets (or unary), and fewer people
    python benchmarks/interval_coverage.py --surveys 50   a first look
    python benchmarks/interval_coverage.py --comparing    the table of docs/comparing.md: differences of groups, and how
                                                          often tests of independence reject where it holds: two minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import priorveil as pv

COMMON = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.006, 0.004])
CARRIERS = (0, 2, 5, 10, 30, 100)


def coverage(plan: pv.Plan, carriers: int, people: int, surveys: int) -> float:
    """The share of surveys in which the 95 % interval of the last count contains the true one."""
    rng, law = np.random.default_rng(0), plan.reference.probabilities.copy()
    law[-2:] = law[-2] / 2, 0.0
    law *= (1 - carriers / people) / law.sum()
    law[-1] = carriers / people
    values = (rng.choice(len(law), people, p=law) for _ in range(surveys))
    tallies = (plan.tally(plan.privatize(each, rng, codes=True)) for each in values)
    intervals = (plan.estimate(tally, "unbiased").interval() for tally in tallies)
    return float(np.mean([low[-1] <= carriers <= high[-1] for low, high in intervals]))


# -- comparing ---------------------------------------------------------------------------------------------

GROUPS = {"north": 800, "south": 1_500, "west": 700}  # people
TRUTH = {"north": (0.5, 0.3, 0.2), "south": (0.6, 0.3, 0.1), "west": (0.3, 0.3, 0.4)}
BOTH = pv.Prior.joint(  # independent
    {
        (a, b): p * q
        for a, p in (("young", 0.4), ("old", 0.6))
        for b, q in (("x", 0.5), ("y", 0.3), ("z", 0.2))
    },
    names=("age", "answer"),
)


def reports_of(plan: pv.Plan, law: Sequence[float], people: int, rng: np.random.Generator) -> Any:
    """The reports of people who are drawn from a law."""
    return plan.privatize(rng.choice(len(plan.labels), people, p=law), rng, codes=True)


def group_estimates(plan: pv.Plan, laws: dict[str, Any], rng: np.random.Generator) -> dict[str, pv.Estimate]:
    """The estimate of each group, whose people are drawn from its law."""
    drawn = {name: reports_of(plan, laws[name], people, rng) for name, people in GROUPS.items()}
    return {name: plan.estimate(plan.tally(own), "unbiased") for name, own in drawn.items()}


def difference_coverage(plan: pv.Plan, surveys: int) -> float:
    """The share of 95 % intervals of differences of two groups that hold the true one."""
    rng, truth = np.random.default_rng(1), np.subtract(TRUTH["north"], TRUTH["west"])
    held = []
    for _ in range(surveys):
        own = group_estimates(plan, TRUTH, rng)
        low, high = pv.difference(own["north"], own["west"]).interval()
        held.append((low <= truth) & (truth <= high))
    return float(np.mean(held))


def group_test_size(plan: pv.Plan, surveys: int) -> float:
    """How often the test of equal groups rejects at level 5 %, where they are equal."""
    rng, laws = np.random.default_rng(2), dict.fromkeys(GROUPS, TRUTH["south"])
    found = (pv.independence(groups=group_estimates(plan, laws, rng)) for _ in range(surveys))
    return float(np.mean([each.p_value < 0.05 for each in found]))


def table_test_size(plan: pv.Plan, surveys: int) -> float:
    """How often the test of two attributes of one report rejects at level 5 %, where they are independent."""
    rng, law = np.random.default_rng(3), plan.reference.probabilities
    tallies = (plan.tally(reports_of(plan, law, 3_000, rng)) for _ in range(surveys))
    found = (pv.independence(table=plan.estimate(tally, "unbiased")) for tally in tallies)
    return float(np.mean([each.p_value < 0.05 for each in found]))


def pair_test_size(plan: pv.Plan, surveys: int) -> float:
    """How often the test of two reports of each person rejects at level 5 %, where they are independent."""
    rng, law = np.random.default_rng(4), TRUTH["south"]
    pairs = ([plan.scores(reports_of(plan, law, 1_000, rng)) for _ in range(2)] for _ in range(surveys))
    return float(np.mean([pv.independence(scores=tuple(pair)).p_value < 0.05 for pair in pairs]))


def print_comparing(surveys: int) -> None:
    """Print a row for each method of design."""
    print("| plan | intervals of differences | size: groups | size: table | size: pairs of reports |")
    print("|---|---|---|---|---|")
    for method in ("columns", "unary", "subset"):
        single, joint = (
            pv.design(prior, 1.5, pv.Distribution(), method=method, rounds=20)
            for prior in (pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2}), BOTH)
        )
        shares = (
            difference_coverage(single, surveys),
            group_test_size(single, surveys),
            table_test_size(joint, surveys),
            pair_test_size(single, surveys),
        )
        print(f"| {method} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |", flush=True)


def main() -> None:
    """Print a row for each epsilon, share and number of people, with a column for each number of carriers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--surveys", type=int, help="1,000, or 4,000 with --comparing")
    parser.add_argument("--comparing", action="store_true")
    parser.add_argument("--method", choices=("columns", "unary", "subset"), default="columns")
    parser.add_argument("--carriers", type=int, nargs="+", default=CARRIERS)
    given = parser.parse_args()
    if given.comparing:
        print_comparing(given.surveys or 4_000)
        return
    print(f"| epsilon | share in the prior | people | {' | '.join(f'{n} have it' for n in given.carriers)} |")
    print("|---" * (3 + len(given.carriers)) + "|")
    for epsilon in (2.0, 4.0, 8.0):
        for share in (0.0001, 0.001):
            prior = pv.Prior(np.append(COMMON / COMMON.sum() * (1 - 2 * share), [share, share]))
            plan = pv.design(prior, epsilon, pv.Distribution(), method=given.method, rounds=20)
            for people in (1_000, 10_000):
                held = [
                    f"{100 * coverage(plan, n, people, given.surveys or 1_000):.1f} %" for n in given.carriers
                ]
                print(f"| {epsilon:g} | {share:g} | {people:,} | {' | '.join(held)} |", flush=True)


if __name__ == "__main__":
    main()
