"""How often 95 % intervals of regressions on reports contain the truth, and how fast large regressions are.

People have a constant, a normal and a yes/no covariate, which stay the same in all simulations. Values follow a logit,
for two and for four values, and reports are drawn by a table, by arcs and by unary encoding. For each plan: the
coverage of each coefficient (the least and the largest), of the shares predicted for three people, and of the average
marginal effects; then that of the coefficients with the other standard errors, or of corrected scores.

    python benchmarks/regression_coverage.py                      4,000 simulations each, on two processes
    python benchmarks/regression_coverage.py --simulations 200    a first look
    python benchmarks/regression_coverage.py --speed              a million reports; a plan with 1,000 values
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import priorveil as pv
from priorveil.statistics.regression_estimates import average_effects
from priorveil.statistics.regression_fit import RegressionFit

Array = npt.NDArray[np.float64]

PEOPLE = 4_000
PRIORS = {2: pv.Prior([0.3, 0.7]), 4: pv.Prior([0.4, 0.3, 0.2, 0.1])}
TRUE = {
    2: np.array([[-1.0], [0.6], [0.4]]),
    4: np.array([[1.0, 0.8, 0.2], [0.5, -0.4, 0.3], [-0.5, 0.2, 0.6]]),
}
QUESTIONED = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, -1.0, 0.0]])  # whose shares are predicted
METHODS = ("columns", "arc", "unary")
KINDS = ("expected", "outer", "robust")
SCORES = "scores"


class Hits(NamedTuple):
    """Of one simulation: which intervals contain the truth."""

    coefficients: Array
    shares: Array
    effects: Array
    others: Array  # by the other errors, or corrected scores, and coefficient


@cache
def people() -> Array:
    rng = np.random.default_rng(1)
    return np.column_stack([np.ones(PEOPLE), rng.normal(size=PEOPLE), rng.integers(0, 2, PEOPLE)])


@cache
def plan(values: int, method: str) -> pv.Plan:
    return pv.design(PRIORS[values], 2.0, pv.Distribution(), method=method, rounds=20)  # type: ignore[arg-type]


@cache
def true_effects(values: int) -> Array:
    return average_effects(TRUE[values].T.copy(), people().T.copy())[0][1:]


def true_shares(X: Array, coefficients: Array) -> Array:
    eta = np.column_stack([X @ coefficients, np.zeros(len(X))])
    odds = np.exp(eta - eta.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def draw_values(shares: Array, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """A value for each row of shares."""
    below = shares.cumsum(axis=1)[:, :-1] < rng.uniform(size=(len(shares), 1))
    return np.asarray(below.sum(axis=1))


def hits(ends: tuple[Array, Array], truth: Array) -> Array:
    return ((ends[0] <= truth) & (truth <= ends[1])).astype(float)


def simulate(values: int, method: str, seed: int) -> Hits | None:
    """One simulation; None if there is no finite maximum."""
    rng, truth = np.random.default_rng([seed, values, METHODS.index(method)]), TRUE[values]
    codes = draw_values(true_shares(people(), truth), rng)
    made_by, shape = plan(values, method), truth.squeeze().shape
    reports = made_by.privatize(codes, rng, codes=True)
    try:
        fit = pv.regress(reports, people(), made_by)
        others = list(other_fits(fit, reports, made_by, method))
    except pv.errors.NotIdentifiable:
        return None
    return Hits(
        hits(fit.interval(), truth.reshape(shape)),
        hits(fit.predict(QUESTIONED).interval(), true_shares(QUESTIONED, truth)),
        hits(fit.marginal_effects().interval(), true_effects(values)),
        np.array([hits(other.interval(), truth.reshape(shape)) for other in others]),
    )


def other_fits(fit: RegressionFit, reports: Array, made_by: pv.Plan, method: str) -> Iterator[RegressionFit]:
    """The fit with the other standard errors that it can have, and by corrected scores."""
    for kind in other_errors(method):
        yield (
            pv.regress(reports, people(), made_by, method="scores")
            if kind == SCORES
            else fit.with_errors(kind)
        )


def other_errors(method: str) -> tuple[str, ...]:
    return (*(KINDS if method == "columns" else KINDS[1:]), SCORES)


def coverage(values: int, method: str, simulations: int, pool: Callable) -> str:  # type: ignore[type-arg]
    """A row of the table."""
    found = list(pool(simulate, repeat(values), repeat(method), range(simulations), chunksize=50))
    kept = [each for each in found if each is not None]
    cells = [range_text(np.mean([each[k] for each in kept], axis=0)) for k in range(3)]
    others = np.mean([each.others for each in kept], axis=0)
    named = ", ".join(
        f"{kind} {range_text(row)}" for kind, row in zip(other_errors(method), others, strict=True)
    )
    return f"| {values} | {method} | {' | '.join(cells)} | {named} | {len(found) - len(kept)} |"


def range_text(shares: Array) -> str:
    return f"{100 * shares.min():.1f} to {100 * shares.max():.1f} %"


def speed(reports: int, values: int) -> None:
    """Seconds of a regression with four values and five covariates, and of a linear model of a statistic; memory."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(reports), rng.normal(size=(reports, 5))])
    truth = rng.normal(scale=0.3, size=(6, 3))
    made_by = pv.design(PRIORS[4], 1.0, pv.Distribution())
    sent = made_by.privatize(draw_values(true_shares(X, truth), rng), rng)
    print(
        f"four values, {reports:,} reports, five covariates: {seconds(lambda: pv.regress(sent, X, made_by)):.1f} s"
    )
    large = pv.design(pv.Prior.zipf(values), 1.0, pv.Distribution(), method="arc")
    few = reports // 10
    sent = large.privatize(rng.integers(0, values, few), rng)
    taken = seconds(lambda: pv.regress(sent, X[:few], large, model="linear", statistic=0))
    print(f"linear model of a statistic, arcs of {values:,} values, {few:,} reports: {taken:.1f} s")
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def seconds(work: Callable[[], object]) -> float:
    """Processor time: other work on the machine hardly counts."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print a row for each plan, or the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=4_000)
    parser.add_argument("--values", type=int, choices=PRIORS, nargs="+", default=list(PRIORS))
    parser.add_argument("--plans", choices=METHODS, nargs="+", default=METHODS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--speed", action="store_true", help="measure times instead")
    parser.add_argument("--reports", type=int, default=1_000_000, help="for --speed")
    parser.add_argument("--large", type=int, default=1_000, help="values of the large plan for --speed")
    given = parser.parse_args()
    if given.speed:
        return speed(given.reports, given.large)
    heads = (
        "values",
        "plan",
        "coefficients",
        "predicted shares",
        "marginal effects",
        "other errors",
        "no maximum",
    )
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for values in given.values:
            for method in given.plans:
                print(coverage(values, method, given.simulations, pool.map), flush=True)


if __name__ == "__main__":
    main()
