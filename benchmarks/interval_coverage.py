"""How often 95 % intervals contain the truth where few people have a value that the prior takes for rare.

Ten values; the prior gives the last two a small share each. Nobody to 100 of the people have the last one, half as many
as the prior expects have the one before it, and the others are as the prior says. The plan is a table for the query
distribution, read by method unbiased, or one of another method. People and reports are drawn again for every survey.

    python benchmarks/interval_coverage.py                the table of docs/running.md: about ten minutes
    python benchmarks/interval_coverage.py --method subset --carriers 1 2 3    subsets (or unary), and fewer people
    python benchmarks/interval_coverage.py --surveys 50   a first look
"""

from __future__ import annotations

import argparse

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


def main() -> None:
    """Print a row for each epsilon, share and number of people, with a column for each number of carriers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--surveys", type=int, default=1_000)
    parser.add_argument("--method", choices=("columns", "unary", "subset"), default="columns")
    parser.add_argument("--carriers", type=int, nargs="+", default=CARRIERS)
    given = parser.parse_args()
    print(f"| epsilon | share in the prior | people | {' | '.join(f'{n} have it' for n in given.carriers)} |")
    print("|---" * (3 + len(given.carriers)) + "|")
    for epsilon in (2.0, 4.0, 8.0):
        for share in (0.0001, 0.001):
            prior = pv.Prior(np.append(COMMON / COMMON.sum() * (1 - 2 * share), [share, share]))
            plan = pv.design(prior, epsilon, pv.Distribution(), method=given.method, rounds=20)
            for people in (1_000, 10_000):
                held = [f"{100 * coverage(plan, n, people, given.surveys):.1f} %" for n in given.carriers]
                print(f"| {epsilon:g} | {share:g} | {people:,} | {' | '.join(held)} |", flush=True)


if __name__ == "__main__":
    main()
