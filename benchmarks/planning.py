"""Simulated surveys of as many people, and at the epsilon, that planning states: the power and the half width hold.

For the least number of people, and for a tenth less, the power of simulated tests is compared with what is stated.
Reports are counted, so an estimate moves in steps, and the power of a test goes up and down by a point or two from one
number of people to the next. It is averaged over some numbers around the planned one. For people within a half width,
and for the least epsilon, the spread of the estimates is compared, at the prior and at the worst truth.

    python benchmarks/planning.py                the table: under a minute
    python benchmarks/planning.py --surveys 200  a first look
"""

from __future__ import annotations

import argparse
import math
from statistics import NormalDist

import numpy as np

import priorveil as pv
from priorveil.statistics.planning import critical_value

PRIOR = pv.Prior({"yes": 0.2, "no": 0.8})
THREE = pv.Prior([0.5, 0.3, 0.2], ["a", "b", "c"])
AROUND = 20
FORCED = pv.Plan.of([[5 / 6, 1 / 6], [1 / 6, 5 / 6]], PRIOR, pv.Distribution())


def estimates(plan: pv.Plan, truth: np.ndarray, people: int, surveys: int, seed: int) -> np.ndarray:
    """The estimated shares of many surveys of people who follow the truth: a row for each."""
    rng, law = np.random.default_rng(seed), truth @ plan.channel.matrix
    counts = rng.multinomial(people, law / law.sum(), surveys)
    return counts @ plan.scores(np.arange(len(law))) / people


def measured_power(plan: pv.Plan, null: float, truth: float, people: int, surveys: int) -> float:
    """How often a two-sided test at level .05 rejects the null, on average over numbers of people around this one."""
    at_null = float(plan.score_moments.variances(np.array([null, 1 - null]))[0])
    rejected = []
    for number in range(people - AROUND, people + AROUND + 1):
        found = estimates(plan, np.array([truth, 1 - truth]), number, surveys // AROUND, seed=number)[:, 0]
        rejected.append(np.abs(found - null) > critical_value(0.05, 2) * math.sqrt(at_null / number))
    return float(np.mean(rejected))


def power_rows(surveys: int) -> list[tuple[str, int, float, float]]:
    """The power of tests with the least number of people, and with a tenth less."""
    rows = []
    best = pv.design(PRIOR, 1.0, pv.Distribution())
    for name, plan, null, truth in (("forced", FORCED, 0.1, 0.2), ("LIP 1", best, 0.15, 0.2)):
        least = plan.power("yes", null=null, truth=truth, power=0.8).people
        for people in (least, round(0.9 * least)):
            stated = plan.power("yes", null=null, truth=truth, people=people).power
            found = measured_power(plan, null, truth, people, surveys)
            rows.append((f"power, {name}", people, stated, found))
    return rows


def worst_truth(plan: pv.Plan) -> tuple[int, np.ndarray]:
    """The statistic whose variance is largest at its worst truth, and that truth, by a search among pairs of values."""
    row, size = int(plan.person_variances(worst=True).argmax()), len(plan.labels)
    shares = np.linspace(0, 1, 1_001)[:, None]
    pairs = [
        q * np.eye(size)[x] + (1 - q) * np.eye(size)[z]
        for x in range(size)
        for z in range(size)
        for q in shares
    ]
    return row, max(pairs, key=lambda truth: float(plan.score_moments.variances(truth)[row]))


def width_rows(surveys: int) -> list[tuple[str, int, float, float]]:
    """Half the width that holds the estimates of 95 % of the surveys, with the planned people, and epsilon."""
    rows, within, z = [], 0.02, NormalDist().inv_cdf(0.975)
    plan = pv.design(THREE, 1.0, pv.Distribution())
    epsilon = pv.budget_for(THREE, pv.Distribution(), people=6_000, within=within)
    row, truth = worst_truth(plan)
    at_prior = THREE.probabilities
    cases = (
        (
            "half width at the prior",
            plan,
            plan.people(within),
            int(plan.person_variances().argmax()),
            at_prior,
        ),
        ("half width at the worst truth", plan, plan.people(within, worst=True), row, truth),
        (
            f"half width at epsilon {epsilon:.3f}",
            pv.design(THREE, epsilon, pv.Distribution()),
            6_000,
            0,
            at_prior,
        ),
    )
    for name, used, people, statistic, law in cases:
        spread = float(estimates(used, law, people, surveys, seed=2)[:, statistic].std())
        rows.append((name, people, within, z * spread))
    return rows


def main() -> None:
    """Print a row for each plan: what is stated, and what the surveys give."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--surveys", type=int, default=200_000)
    surveys = parser.parse_args().surveys
    print("| what | people | stated | simulated |")
    print("|---|---|---|---|")
    for name, people, stated, found in power_rows(surveys) + width_rows(surveys):
        print(f"| {name} | {people:,} | {stated:.4f} | {found:.4f} |", flush=True)


if __name__ == "__main__":
    main()
