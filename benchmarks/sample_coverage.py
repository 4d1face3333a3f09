"""How often 95 % intervals of estimates from samples contain the truth.

People have one of three values; everything else is public. Every survey draws its people and their reports again. The
table has the share of surveys whose interval holds the share of the first value (or the number of people who have it),
and the mean of the stated variance over the true one.

    python benchmarks/sample_coverage.py                  4,000 surveys of each kind: about two minutes
    python benchmarks/sample_coverage.py --surveys 200    a first look
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import priorveil as pv

PRIOR = pv.Prior({"a": 0.2, "b": 0.3, "c": 0.5})
STRATA = (0.1, 0.2, 0.45)  # the share of the first value in each
FEWEST, MOST = 0.935, 0.965  # what is accepted
Survey = Callable[[np.random.Generator], tuple[np.ndarray, dict[str, Any]]]  # values, and how they were drawn


@dataclass(frozen=True)
class Kind:
    """A kind of survey: what it is called, how people are drawn, and the true number."""

    name: str
    draw: Survey
    truth: float
    student: bool = False


def values_of(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A value for each person, by the probability of the first one; the others are as in the prior."""
    rest = np.where(rng.random(len(shares)) < 0.375, 1, 2)
    return np.where(rng.random(len(shares)) < shares, 0, rest)


def clustered(drawn: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The share of each person, in so many clusters of three strata, with the strata and clusters."""
    strata = np.repeat(np.arange(3), drawn)
    shares = rng.beta(20 * np.take(STRATA, strata), 20 * (1 - np.take(STRATA, strata)))
    sizes = rng.integers(5, 16, len(strata))
    clusters = np.repeat(np.arange(len(strata)), sizes)
    return shares[clusters], strata[clusters], clusters


def stratified_clusters(**settings: Any) -> Survey:
    """30 clusters in each stratum of an infinite population, with weights for strata and for people."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        shares, strata, clusters = clustered(30, rng)
        weights = np.take([5.0, 2.0, 1.0], strata) * rng.uniform(0.5, 1.5, len(strata))
        return values_of(shares, rng), {
            "weights": weights,
            "strata": strata,
            "clusters": clusters,
            **settings,
        }

    return draw


def half_of_the_clusters(values: np.ndarray, strata: np.ndarray, clusters: np.ndarray) -> Survey:
    """Half of the clusters of each stratum of a finite population, with everybody in them."""
    each = [np.unique(clusters[strata == stratum]) for stratum in range(3)]
    sizes = {stratum: len(own) for stratum, own in enumerate(each)}

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        drawn = np.concatenate([rng.choice(own, len(own) // 2, replace=False) for own in each])
        inside = np.isin(clusters, drawn)
        design = {"strata": strata[inside], "clusters": clusters[inside], "population": sizes}
        return values[inside], design

    return draw


def people_of(values: np.ndarray, drawn: int, **settings: Any) -> Survey:
    """So many people of a finite population."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        own = rng.choice(values, drawn, replace=False)
        return own, {"population": len(values), **settings}

    return draw


def calibrated(values: np.ndarray, columns: dict[str, np.ndarray], **settings: Any) -> Survey:
    """600 people of a large population, drawn with unequal chances, raked to its margins."""
    sizes = {name: dict(enumerate(np.bincount(column).tolist())) for name, column in columns.items()}
    chances = 1.0 + columns["age"]
    chances = chances / chances.sum()

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        own = rng.choice(len(values), 600, p=chances)
        margins = {name: (column[own], sizes[name]) for name, column in columns.items()}
        return values[own], {"weights": 1 / (600 * chances[own]), "margins": margins, **settings}

    return draw


def kinds() -> list[Kind]:
    """The kinds of surveys."""
    rng = np.random.default_rng(1)
    shares, strata, clusters = clustered(270, rng)
    town = values_of(shares, rng)
    few = town[rng.choice(len(town), 400, replace=False)]
    age, sex = rng.integers(0, 3, 40_000), rng.integers(0, 2, 40_000)
    country = values_of(0.05 + 0.15 * age + 0.1 * sex, rng)
    columns = {"age": age, "sex": sex}
    infinite = float(np.dot([5, 2, 1], STRATA) / 8)
    carriers, share = float((country == 0).sum()), float((country == 0).mean())
    return [
        Kind("weighted mean, stratified clusters, Taylor", stratified_clusters(), infinite, student=True),
        Kind(
            "weighted mean, stratified clusters, jackknife",
            stratified_clusters(variance="jackknife"),
            infinite,
            student=True,
        ),
        Kind(
            "half of the clusters, finite population",
            half_of_the_clusters(town, strata, clusters),
            float((town == 0).mean()),
        ),
        Kind("half of 400 people", people_of(few, 200), float((few == 0).mean())),
        Kind("a census of 400 people", people_of(few, 400), float((few == 0).mean())),
        Kind("raked total", calibrated(country, columns, method="horvitz-thompson"), carriers),
        Kind("raked mean, jackknife of 60 groups", with_groups(calibrated(country, columns)), share, student=True),
        Kind("post-stratified mean", calibrated(country, {"age": age}), share),
    ]  # fmt: skip


def with_groups(survey: Survey) -> Survey:
    """The same people in random groups, of which the jackknife leaves out one at a time."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        values, design = survey(rng)
        return values, {**design, "clusters": np.arange(len(values)) % 60, "variance": "jackknife"}

    return draw


def coverage(plan: pv.Plan, kind: Kind, surveys: int) -> tuple[float, float]:
    """The share of surveys whose interval contains the truth, and the stated variance over the true one."""
    rng, held, found, stated = np.random.default_rng(0), 0, [], []
    for _ in range(surveys):
        values, design = kind.draw(rng)
        estimate = plan.estimate_sample(plan.privatize(values, rng, codes=True), **design)
        low, high = estimate.interval(0.95, student=kind.student)
        held += bool(low[0] <= kind.truth <= high[0])
        found.append(float(estimate.values[0]))
        stated.append(float(estimate.std_error[0]) ** 2)
    return held / surveys, float(np.mean(stated) / np.mean((np.array(found) - kind.truth) ** 2))


def main() -> None:
    """Print a row for each kind of survey; exit with 1 if a coverage is not accepted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--surveys", type=int, default=4_000)
    given = parser.parse_args()
    plan = pv.design(PRIOR, 1.0, pv.Distribution())
    print("| survey | coverage | stated / true variance |")
    print("|---|---|---|")
    failed = False
    for kind in kinds():
        held, ratio = coverage(plan, kind, given.surveys)
        failed |= given.surveys >= 4_000 and not FEWEST <= held <= MOST
        print(f"| {kind.name} | {100 * held:.1f} % | {ratio:.2f} |", flush=True)
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
