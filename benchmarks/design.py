"""Design: how near to the best the designs are, what is proven of it, and how long it takes.

Every line says what came out, what was aimed at and whether that was met ("stated": whatever efficiency is
proven). Seconds are processor time of one process with one thread, imports excluded; the engine's own limit
of 45 seconds is by the clock on the wall, so on a busy machine long designs stop earlier than on a quiet one.
Efficiency is the proven share of the achievable gain, `(no report - error) / (no report - bound)`; for a
distribution it is `bound / variance`.

    python benchmarks/design.py                  everything, about half an hour
    python benchmarks/design.py --quick          fewer and smaller instances, for a first look
    python benchmarks/design.py --only sum       one part
    python benchmarks/design.py --write          put the tables that were made into docs/design-figures.md
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import itertools
import math
import operator
import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.stats import binom

import priorveil as pv
from priorveil.designs import closed_forms, design_margins
from priorveil.information import variance
from priorveil.priors.number_domains import Grid
from priorveil.reading.linear_answers import unbiased_scores
from priorveil.reading.tally import Tally
from priorveil.studies.datasets import _adult_rows, find

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [
    str(ROOT / "tests"),
    str(ROOT / "tests" / "designs"),
]  # the enumeration and the reference solver of the tests

PAGE = ROOT / "docs" / "design-figures.md"


class Line(NamedTuple):
    """One measurement: the case, its figures, and what they aim at (nothing: information)."""

    case: str
    figures: str
    seconds: float
    aim: str = ""
    met: bool | None = None

    def cells(self) -> list[str]:
        verdict = "" if self.met is None else "yes" if self.met else "**no**"
        return [self.case, self.figures, f"{self.seconds:.1f}", self.aim, verdict]


def timed(*asked: Any, **options: Any) -> tuple[pv.Plan, float]:
    """A design, and the seconds it took."""
    begin = time.process_time()
    plan = pv.design(*asked, **({"time_limit": 45.0} | options))  # a time limit: not only the default gap
    return plan, time.process_time() - begin


def efficient(case: str, least: float, most: float, *asked: Any, **options: Any) -> Line:
    """A design that has to prove an efficiency of at least `least` in `most` seconds."""
    plan, seconds = timed(*asked, **options)
    wanted = f"{least:.1%}" if least > 0 else "stated"
    figures = f"error {plan.expected_mse:.6g}, bound {plan.lower_bound:.6g}, **{shown(plan.efficiency)}**"
    met = plan.efficiency >= least and seconds <= most
    return Line(case, f"{figures}, {plan.method}", seconds, f"{wanted}, {most:.0f} s", met)


def shown(share: float) -> str:
    """A share in percent, never rounded up to a claim."""
    return f"{math.floor(share * 1e6) / 1e4:.4f} %"


def dirichlet(d: int) -> pv.Prior:
    return pv.Prior(np.random.default_rng(0).dirichlet(np.ones(d)))


SHAPES = {"Zipf": pv.Prior.zipf, "uniform": pv.Prior.uniform, "Dirichlet": dirichlet}


# -- the parts -----------------------------------------------------------------------------------------------


def exact(quick: bool) -> Iterator[Line]:
    """Exact on small domains: error against full enumeration"""
    import test_design as enumeration

    kinds = {"value itself": 200, "latent secret": 100, "pairwise notions": 60}
    for kind, count in kinds.items():
        begin, off, held, tried = time.process_time(), [0.0], 0, count // 10 if quick else count
        for seed in range(tried):
            plan, best = instance(enumeration, kind, seed)
            # where almost nothing is left of the error, rounding decides: then relative to a little of it
            off.append((plan.expected_mse - best) / max(best, 1e-3 * plan.no_report))
            held += plan.certificate.level <= max(plan.budget.lower, plan.budget.upper)
        figures = (
            f"{tried} instances: {min(off):.0e} to {max(off):+.0e} of the best, {held} certificates hold"
        )
        met = min(off) >= -1e-9 and max(off) <= 1e-6 and held == tried
        yield Line(kind, figures, time.process_time() - begin, "0 to 1e-6, all hold", met)


def instance(tests: ModuleType, kind: str, seed: int) -> tuple[pv.Plan, float]:
    """A random problem with at most eight values, its design, and the least error by enumeration."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, {"value itself": 9, "latent secret": 7}.get(kind, 5)))
    prior, budget, query = tests.random_prior(rng, d), tests.random_budget(rng), tests.random_query(rng, d)
    P = prior.probabilities
    if kind == "value itself":
        plan = pv.design(prior, budget, query)
        ends = budget.lo + (1 - budget.lo) * np.diag(1 / P)
        return plan, tests.best_error(
            plan, ends if math.isinf(budget.hi) else tests.corners(P, budget.lo, budget.hi)
        )
    if kind == "latent secret":
        secret = tests.random_secret(rng, prior)
        plan = pv.design(prior, budget, query, secret=secret)
        return plan, tests.best_error(plan, tests.rays(pv.LIP().inequalities(budget, prior, secret), P))
    notion = [pv.LDP(), pv.Pufferfish()][seed % 2]
    secret = tests.random_secret(rng, prior) if seed % 2 else None
    plan = pv.design(prior, 1.0, query, secret=secret, notion=notion)
    return plan, tests.best_error(plan, tests.rays(notion.inequalities(pv.Budget(1.0), prior, secret), P))


def notions(quick: bool) -> Iterator[Line]:
    """Random linear statistics under every notion: error against full enumeration, bounds against a search"""
    from enumeration import SETTINGS, best_of_all, certified, least_found

    count = 10 if quick else 100
    for (setting, make), unbiased in itertools.product(SETTINGS.items(), (False, True)):
        begin, off, unproven, beaten = time.process_time(), [], [], 0
        for seed in range(count):
            rng = np.random.default_rng(1_000 + seed)
            instance = make(rng)
            plan = instance.plan(unbiased)
            certified(plan)  # raises an error if the certificate does not hold
            best = best_of_all(instance, plan)
            # where almost nothing is left of the error, rounding decides: then relative to a little of it
            least = best if unbiased else max(best, 1e-3 * plan.no_report)
            off.append((plan.expected_mse - best) / least)
            unproven.append((best - plan.lower_bound) / least)
            beaten += least_found(instance, plan, rng) < plan.lower_bound - 1e-9 * least
        figures = (
            f"{count} matrices, certificates hold: {min(off):.0e} to {max(off):+.0e} of the best, "
            f"bounds {min(unproven):.0e} to {max(unproven):+.0e} below it, beaten {beaten} times"
        )
        met = min(off) >= -1e-7 and max(off) <= 1e-6 and min(unproven) >= -1e-7 and not beaten
        case = f"{setting}, {'unbiased' if unbiased else 'leaning'}"
        yield Line(case, figures, time.process_time() - begin, "0 to 1e-6, never beaten", met)


def histogram(quick: bool) -> Iterator[Line]:
    """Histograms: proven efficiency at size"""
    query = pv.Histogram()
    for name, make in SHAPES.items():
        for eps in (1.0, 2.0) if quick else (0.5, 1.0, 2.0, 3.0, 4.0):
            least, most = (0.999, 10.0) if eps <= 2 else (0.98, 60.0)
            yield efficient(f"d = 83, {name}, eps = {eps:g}", least, most, make(83), eps, query)
    for eps, name in itertools.product((1.0, 2.0), SHAPES):
        yield efficient(f"d = 1,296, {name}, eps = {eps:g}", 0.98, 120.0, SHAPES[name](1296), eps, query)
    many = pv.Prior.zipf(100_000)
    for eps, method in itertools.product((1.0, 2.0, 4.0), ("arc", "auto")):
        case = f"d = 100,000, Zipf, eps = {eps:g}, `{method}`"
        yield efficient(case, 0.0, 10.0, many, eps, query, method=method)
    yield efficient("d = 1,000,000, uniform, eps = 1", 0.0, 60.0, pv.Prior.uniform(10**6), 1.0, query)


def sums(quick: bool) -> Iterator[Line]:
    """Sums"""
    for eps, name in itertools.product((0.5, 1.0, 2.0, 3.0), SHAPES):
        case, query = f"d = 100, {name}, eps = {eps:g}", pv.Sum(np.arange(100))
        yield efficient(case, 0.995, 30.0, SHAPES[name](100), eps, query)
    for d in () if quick else (200, 1_000, 100_000):
        yield efficient(f"d = {d:,}, Zipf, eps = 1", 0.0, 60.0, pv.Prior.zipf(d), 1.0, pv.Sum(np.arange(d)))
        case = f"d = {d:,}, Zipf, eps = 1, LDP"
        yield efficient(case, 0.95, 60.0, pv.Prior.zipf(d), 1.0, pv.Sum(np.arange(d)), notion=pv.LDP())
    for d, notion in () if quick else itertools.product((200, 1_200), (pv.LIP(), pv.LDP())):
        case, query = (
            f"d = {d:,}, Zipf, eps = 1, unbiased, {notion.name}",
            pv.Sum(np.arange(d), unbiased=True),
        )
        yield efficient(case, 0.75, 60.0, pv.Prior.zipf(d), 1.0, query, notion=notion)


def learning(quick: bool) -> Iterator[Line]:
    """Learning a distribution: N times the variance"""
    import test_variances as reference

    from priorveil.designs.spaces import Box

    count, worst, above, begin = 20 if quick else 200, 0.0, -1.0, time.process_time()
    for seed in range(count):
        P, eps = reference.priors(seed), float(np.random.default_rng(seed).choice([0.5, 1.0, 2.0]))
        plan = pv.design(pv.Prior(P), eps, pv.Distribution())
        best = reference.reference(Box(P, math.exp(-eps), math.exp(eps)).vertices())
        worst = max(worst, plan.expected_mse / best - 1)
        above = max(above, plan.expected_mse / best_ldp_variance(P, eps) - 1)
    figures = f"{count} priors with d <= 6: at most {worst:.1e} above a reference optimum"
    yield Line("random priors", figures, time.process_time() - begin, "0.1 %", worst <= 1e-3)
    yield Line(
        "compared with the best LDP mechanism", f"at most {above:+.1%}", 0.0, "never above", above <= 0
    )
    for name, P, published in (
        ("six equal values", np.full(6, 1 / 6), (4.8, 16.8)),
        ("(.025 x 4, .9)", SKEWED, (5.8, 11.6)),
    ):
        plan, seconds = timed(pv.Prior(P), 1.0, pv.Distribution())
        response = variance(closed_forms.k_rr_matrix(len(P), 1.0), P)
        met = abs(plan.expected_mse - published[0]) < 0.05 and abs(response - published[1]) < 0.05
        figures = f"{plan.expected_mse:.3f}, randomised response {response:.3f}"
        yield Line(f"{name}, eps = 1", figures, seconds, f"{published[0]} and {published[1]}", met)
    for name, eps in itertools.product(SHAPES, (1.0,) if quick else (1.0, 2.0)):
        case = f"d = 83, {name}, eps = {eps:g}"
        yield efficient(case, 0.0, 60.0, SHAPES[name](83), eps, pv.Distribution())
    for d in () if quick else (400, 1_000, 10_000):
        yield efficient(f"d = {d:,}, Zipf, eps = 1", 0.95, 60.0, pv.Prior.zipf(d), 1.0, pv.Distribution())


def many_values(quick: bool) -> Iterator[Line]:
    """Learning a distribution by arcs in many orders: reading, and 95 % intervals (Zipf, eps = 1)"""
    rng = np.random.default_rng(5)
    size, people = (1_000, 100_000) if quick else (10_000, 1_000_000)
    for d, N, surveys in (
        (size, people, 1),
        (400, 1_000, 20 if quick else 200),
        (100, 1_000, 200 if quick else 4_000),
    ):
        plan, _ = timed(pv.Prior.zipf(d), 1.0, pv.Distribution(), method="arc")
        truth = rng.permutation(plan.reference.probabilities) / 4 + plan.reference.probabilities * 3 / 4
        inside, seconds = np.zeros(d), 0.0
        tracemalloc.start()
        for _ in range(surveys):
            reports = plan.privatize(rng.choice(d, N, p=truth), rng)
            begin = time.process_time()
            low, high = plan.estimate(plan.tally(reports)).interval(0.95)
            seconds += time.process_time() - begin
            inside += (low <= N * truth) & (N * truth <= high)
        memory = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        held = float(inside.mean()) / surveys
        figures, aim = f"intervals hold **{held:.2%}**, {memory:,.0f} MB", "94 to 96 %, 2 GB"
        met = 0.94 <= held <= 0.96 and memory < 2_048
        if surveys == 1:
            aim, met = f"{aim}, 120 s", met and seconds < 120
        yield Line(f"d = {d:,}, surveys of {N:,} people: {surveys:,}", figures, seconds, aim, met)


def leaning(quick: bool) -> Iterator[Line]:
    """Cumulative shares and margins that lean on the prior: proven efficiency"""
    for name, eps in itertools.product(SHAPES, (1.0,) if quick else (1.0, 2.0)):
        prior, case = SHAPES[name](32), f"d = 32, {name}, eps = {eps:g}"
        yield efficient(case, 0.75, 60.0, prior, eps, pv.Linear.cumulative(prior))
    for d in (400,) if quick else (400, 1_000, 5_000):
        prior = pv.Prior.zipf(d)
        yield efficient(f"d = {d:,}, Zipf, eps = 1", 0.75, 60.0, prior, 1.0, pv.Linear.cumulative(prior))
    for sizes in [(8, 6, 5)] if quick else [(8, 6, 5), (20, 15, 10)]:
        rng, names = np.random.default_rng(1), tuple("abc")
        prior = independent(names, [rng.dirichlet(np.full(n, 3.0)) for n in sizes])
        query = pv.Linear.margins(prior, [(name,) for name in names])
        case = f"margins of {' x '.join(map(str, sizes))}, Dirichlet, eps = 1"
        yield efficient(case, 0.75, 60.0, prior, 1.0, query)
    prior = pv.Prior.uniform(400)
    query = pv.Linear.cumulative(prior)
    yield efficient("d = 400, uniform, LDP, eps = 1", 0.75, 60.0, prior, 1.0, query, notion=pv.LDP())


def ldp(quick: bool) -> Iterator[Line]:
    """Learning a distribution under LDP: N times the variance"""
    for d, name in itertools.product((20, 83), SHAPES):
        least = 1 - 1e-9 if name == "uniform" else 0.0
        for eps in (1.0,) if quick else (1.0, 2.0):
            prior, case = SHAPES[name](d), f"d = {d}, {name}, eps = {eps:g}"
            yield efficient(case, least, 60.0, prior, eps, pv.Distribution(), notion=pv.LDP())


SKEWED = np.array([0.025, 0.025, 0.025, 0.025, 0.9])


def best_ldp_variance(P: np.ndarray, eps: float) -> float:
    """The best of subset selection of every size, randomised response among them."""
    from references import subset_selection_matrix

    subsets = (subset_selection_matrix(len(P), eps, k) for k in range(1, len(P)))
    return min(variance(Q, P) for Q in subsets)


def latent(quick: bool) -> Iterator[Line]:
    """A latent secret: income in eight brackets, four work classes reported"""
    import test_design as enumeration

    try:
        classes, counts = enumeration.work_and_income()
    except BaseException as absent:
        if type(absent).__name__ != "Skipped":
            raise
        yield Line("the survey is not on this machine", str(absent), 0.0)
        return
    joint = counts / counts.sum()
    prior, secret = pv.Prior(joint.sum(axis=0), labels=classes), pv.Secret.from_joint(joint)
    for query in (pv.Histogram(), pv.Sum([0, 1, 2, 3]), pv.Guess()):
        for eps in (0.05, 0.2):
            plan, seconds = timed(prior, eps, query, secret=secret)
            A = pv.LIP().inequalities(pv.Budget(eps), prior, secret)
            best = enumeration.best_error(plan, enumeration.rays(A, prior.probabilities))
            off = abs(plan.expected_mse - best) / best
            figures = (
                f"error {plan.expected_mse:.6g} of {plan.no_report:.6g} without reports, off by {off:.1e}"
            )
            yield Line(
                f"{type(query).__name__}, eps = {eps:g}",
                figures,
                seconds,
                "exact, 1 s",
                off < 1e-6 and seconds < 1,
            )


def compared(quick: bool) -> Iterator[Line]:
    """Compared with earlier mechanisms and bounds: error of a histogram, d = 83"""
    for name, prior, eps in (
        ("uniform", pv.Prior.uniform(83), 4.0),
        ("Zipf", pv.Prior.zipf(83), 2.0),
        ("Zipf", pv.Prior.zipf(83), 1.0),
    ):
        case, query = f"{name}, eps = {eps:g}", pv.Histogram()
        silent, bound = query.no_report(prior), query.closed_form_bound(prior, pv.Budget(eps))
        plan, seconds = timed(prior, eps, query)
        best = plan.lower_bound
        ldp = pv.design(prior, eps, query, notion=pv.LDP()).expected_mse
        subset = pv.design(prior, eps, query, notion=pv.LDP(), method="subset").expected_mse
        unary = pv.design(prior, eps, query, method="unary").expected_mse
        arc = pv.design(prior, eps, query, method="arc").expected_mse
        rows = [
            ("no report", silent), ("unary encoding (UE-LIP) at its best point", unary),
            ("LDP, subset selection", subset), ("LDP, designed for the prior", ldp), ("`arc`", arc),
            ("engine", plan.expected_mse), ("proven bound", best), ("closed-form bound", bound),
        ]  # fmt: skip
        for what, error in rows:
            gain = (silent - error) / (silent - best)
            yield Line(
                f"{case}: {what}",
                f"{error:.4f}, {gain:.2%} of the gain",
                seconds if what == "engine" else 0.0,
            )


def numbers(quick: bool) -> Iterator[Line]:
    """Numbers: mean and median of incomes (ACS 2018), from reports alone"""
    with gzip.open(find("acs"), "rt", encoding="utf-8") as lines:
        incomes = np.array([float(row["income_dollars"]) for row in csv.DictReader(lines)])
    rng = np.random.default_rng(1)
    rng.shuffle(incomes)
    public, population = incomes[:20_000], incomes[20_000:]
    runs, margin = (400, 0.03) if quick else (4_000, 0.01)
    wide = [-10_000, 0, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 1_000_000]
    for points, eps in itertools.product((wide, np.linspace(0, 150_000, 7)), (1.0, 2.0)):
        prior = pv.Prior.grid(points, sample=public, outside="ends")
        plan, seconds = timed(prior, eps, pv.Sum(points, unbiased=True))
        people = population.clip(points[0], points[-1])
        found = simulated(plan, people, lambda estimate: estimate.mean(), runs, rng)
        large = large_survey(plan, people, 1 if quick else 10, rng).mean()
        bias, noise = large.value - people.mean(), large.std_error
        share = coverage(found, float(people.mean()))
        spread, others = math.sqrt(plan.expected_mse), ldp_spreads(people, points[0], points[-1], eps)
        same = math.sqrt(pv.design(prior, eps, pv.Sum(points, unbiased=True), notion=pv.LDP()).expected_mse)
        figures = (
            f"spread per person **${spread:,.0f}** at LIP {eps:g}, which is LDP {plan.certificate.ldp:.2g}; "
            f"at LDP {eps:g} {same:,.0f} (Duchi {others[0]:,.0f}, piecewise {others[1]:,.0f})"
        )
        case = f"mean from {points[0]:,.0f} to {points[-1]:,.0f}, eps = {eps:g}"
        met = abs(share - 0.95) <= margin and abs(bias) < 4 * noise and max(spread, same) < min(others)
        yield Line(
            case, f"{figures}, bias {bias:,.0f} (standard error {noise:,.0f}), coverage {share:.1%}", seconds,
            f"unbiased, 95 ± {100 * margin:.0f} %, below both", met,
        )  # fmt: skip
    for eps in (1.0, 2.0):
        cells = pv.Prior.cells(np.linspace(0, 150_000, 16), sample=public, outside="ends")
        plan, seconds = timed(cells, eps, pv.Linear.cumulative(cells, unbiased=True))
        found = simulated(plan, population, lambda estimate: estimate.quantile(0.5), runs // 4, rng)
        share = coverage(found, float(np.median(population)))
        width = np.median([np.subtract(*f.interval()[::-1]) for f in found])
        figures = f"interval of ${width:,.0f} in the middle, coverage {share:.1%}"
        yield Line(
            f"median, 15 cells, eps = {eps:g}, 1,000 people", figures, seconds, "at least 94 %", share >= 0.94
        )


def averages(quick: bool) -> Iterator[Line]:
    """Averages by group: four groups, five points, eps = 1, from reports alone"""
    points, rng = np.linspace(0, 80, 5), np.random.default_rng(25)
    prior = overtime_prior(points, shares=(0.4, 0.3, 0.2, 0.1), scales=(15, 20, 25, 30))
    query, table = pv.Linear.averages(prior, "overtime", by="age"), pv.Distribution()
    plan, seconds = timed(prior, 1.0, query)
    errors = [query.error(each.channel, prior) for each in (plan, pv.design(prior, 1.0, table))]
    figures = f"N times the variances {errors[0]:,.0f}; with a plan for the whole table {errors[1]:,.0f}"
    yield Line(
        "plan for averages", f"{figures}, **{errors[1] / errors[0]:.2f} times**", seconds, "1.6 times",
        errors[1] / errors[0] >= 1.6,
    )  # fmt: skip
    # People differ from the prior: other groups, and other numbers in them.
    law = overtime_prior(points, shares=(0.2, 0.2, 0.3, 0.3), scales=(30, 12, 18, 25))
    numbers, members = law.domain.numbers("overtime"), law.domain.margin(["age"])[1]
    truth = members @ (law.probabilities * numbers) / (members @ law.probabilities)
    surveys, people = 1_000 if quick else 10_000, 20_000
    margin = 0.028 if quick else 0.01
    begin, held = time.process_time(), []
    for counts in rng.multinomial(people, law.probabilities @ plan.channel.matrix, surveys):
        estimate = plan.estimate(Tally(plan.id, counts, people))
        low, high = estimate.mean("overtime", by="age").interval(0.95)
        held.append((low <= truth) & (truth <= high))
    share = np.mean(held, axis=0)
    figures = f"95 % intervals hold {share.mean():.1%}, of each group {share.min():.1%} to {share.max():.1%}"
    case = f"a wrong prior, {surveys:,} surveys of {people:,} people"
    met = bool((np.abs(share - 0.95) <= margin).all())
    yield Line(case, figures, time.process_time() - begin, f"95 ± {100 * margin:.1g} %", met)


def overtime_prior(points: np.ndarray, shares: Sequence[float], scales: Sequence[float]) -> pv.Prior:
    """Groups of these shares, with exponential numbers of these means that are cut off at the last point.

    The probabilities of points are those after rounding at random.
    """
    quantiles, grid = -np.log1p(-(np.arange(10_000) + 0.5) / 10_000), Grid(points, "ends")
    cells = {}
    for group, (share, scale) in enumerate(zip(shares, scales, strict=True)):
        mass = grid.masses(np.minimum(scale * quantiles, points[-1]), np.full(len(quantiles), 1e-4))
        cells |= {
            (f"group {group}", x): share * m for x, m in zip(points.tolist(), mass.tolist(), strict=True)
        }
    total = math.fsum(cells.values())
    return pv.Prior.joint(
        {cell: p / total for cell, p in cells.items()}, ("age", "overtime"), grids=("overtime",)
    )


def cross_table(quick: bool) -> Iterator[Line]:
    """Several attributes: education and income (Adult), eps = 1, from reports alone"""
    rows = [row for _, row in _adult_rows(find("adult"))]
    people = {"education": [row[3] for row in rows], "income": [row[14].rstrip(".") for row in rows]}
    prior = pv.Prior.from_table(people, ["education", "income"], public=True)
    cells, names = pv.Distribution(), ["education", "income"]
    margins, both = (pv.Linear.margins(prior, kept, unbiased=True) for kept in (names, [*names, names]))
    queries = {"the whole table": cells, "both margins": margins, "the table and margins": both}
    for what, query in queries.items():
        plan, seconds = timed(prior, 1.0, query, time_limit=15.0)
        errors = [each.error(plan.channel, prior) for each in (cells, margins)]
        figures = f"variance of the cells {errors[0]:.3g}, of the margins {errors[1]:.3g}"
        met = plan.efficiency >= 0.9 and seconds < 60
        yield Line(f"plan for {what}", f"{figures}, **{shown(plan.efficiency)}**", seconds, "90 %, 60 s", met)
    yield from cross_table_surveys(plan, len(rows), 100 if quick else 1_000)


def cross_table_surveys(plan: pv.Plan, people: int, surveys: int) -> Iterator[Line]:
    """The errors of margins and of P(income | education) in simulated surveys of people drawn from the prior."""
    prior, rng, begin = plan.reference, np.random.default_rng(15), time.process_time()
    P, codes = prior.probabilities, np.arange(len(prior))
    samples = [np.repeat(codes, counts) for counts in rng.multinomial(people, P, surveys)]
    estimates = [plan.estimate(plan.tally(plan.privatize(sample, rng, codes=True))) for sample in samples]
    truth, promised = plan.query.rows(prior) @ P, plan.std_error(people)
    errors = np.array([estimate.proportions for estimate in estimates]) - truth
    ratio, seconds = (errors**2).mean(axis=0) / promised**2, time.process_time() - begin
    allowed, sizes = 4 * math.sqrt(2 / surveys), [len(levels) for levels in prior.levels.values()]
    for name, part in zip(prior.levels, np.split(ratio, np.cumsum(sizes))[:-1], strict=True):
        figures = f"squared error over expected: {part.min():.2f} to {part.max():.2f}, mean {part.mean():.2f}"
        met = float(np.abs(part - 1).max()) < allowed
        case, aim = f"margin of {name}, {surveys:,} surveys of {people:,} people", f"1 ± {allowed:.2f}"
        yield Line(case, figures, seconds, aim, met)
    yield income_shares(prior, estimates, promised[: sizes[0]] / truth[: sizes[0]])


def income_shares(prior: pv.Prior, estimates: list[pv.Estimate], relative: np.ndarray) -> Line:
    """P(income | education); `relative` is the expected standard error over the share, for each education.

    A mean square of n errors varies by `sqrt(2 / n)`. Four times that is allowed for chance, as for the margins, and
    another 0.07 because the standard error of a ratio is an approximation.
    """
    begin, held, ratio = time.process_time(), [], []
    P = dict(zip(prior.labels, prior.probabilities, strict=True))
    for level in prior.levels["education"]:
        rich, everybody = (level, ">50K"), [(level, "<=50K"), (level, ">50K")]
        truth = P[rich] / sum(P[cell] for cell in everybody)
        found = [estimate.ratio([rich], everybody) for estimate in estimates]
        held.append(coverage(found, truth))
        error = np.mean([(f.value - truth) ** 2 for f in found])
        ratio.append(error / np.mean([f.std_error**2 for f in found]))
    # Where an education may have nobody at all, a share of its people has no standard error, only an interval.
    sure = np.array(ratio)[relative < 0.25]
    allowed, spread = 4 * math.sqrt(0.95 * 0.05 / len(estimates)), 4 * math.sqrt(2 / len(estimates)) + 0.07
    figures = (
        f"95 % intervals hold {np.mean(held):.1%}, for each education {min(held):.1%} to {max(held):.1%}; "
        f"squared error over stated: {sure.min():.2f} to {sure.max():.2f} for the {len(sure)} common ones"
    )
    met = min(held) >= 0.95 - allowed and float(np.abs(sure - 1).max()) < spread
    aim = f"at least {0.95 - allowed:.1%}, 1 ± {spread:.2f}"
    case = f"P(income over 50K \\| education), {len(held)} shares"
    return Line(case, figures, time.process_time() - begin, aim, met)


def products(quick: bool) -> Iterator[Line]:
    """Margins, one plan for all or one margin drawn for each person: N times the summed variance, eps = 1"""
    cases = [((2,) * 5, 2, "equal"), ((2, 3, 5, 8), 2, "equal"), ((2,) * 12, 2, "equal")]
    cases += [] if quick else [((16, 7, 15, 2), 1, "Dirichlet"), ((9, 8, 7, 5), 2, "Dirichlet")]
    for sizes, kept, shape in cases:
        rng, names = np.random.default_rng(1), tuple("abcdefghijkl"[: len(sizes)])
        attributes = [
            np.full(n, 1 / n) if shape == "equal" else rng.dirichlet(np.full(n, 3.0)) for n in sizes
        ]
        whole = independent(names, attributes)
        priors = {
            some: independent(some, [attributes[names.index(name)] for name in some])
            for some in itertools.combinations(names, kept)
        }
        begin = time.process_time()
        form = design_margins(priors, 1.0)
        drawing, query = time.process_time() - begin, pv.Linear.margins(whole, priors, unbiased=True)
        one, seconds = timed(whole, 1.0, query)
        unary = pv.design(whole, 1.0, query, method="unary").expected_mse
        figures = f"**{one.expected_mse:,.1f}** ({one.method}), {shown(one.efficiency)} proven; "
        drawn = sum(math.sqrt(part.plan.expected_mse) for part in form.parts) ** 2  # with the best shares
        figures += f"drawn {drawn:,.1f} in {drawing:.1f} s; unary {unary:,.0f}"
        met = max(one.certificate.lip, form.levels().lip) <= 1 and seconds < 60
        met &= one.expected_mse <= min(unary, drawn * 1.01) and one.efficiency >= 0.75
        sides = " x ".join(map(str, sizes)) if len(set(sizes)) > 1 else f"{sizes[0]}^{len(sizes)}"
        case = f"{sides}, {shape}: {len(priors)} margins, {len(whole):,} cells"
        yield Line(case, figures, seconds, "75 %, not above drawn, 60 s", met)


def independent(names: tuple[str, ...], attributes: list[np.ndarray]) -> pv.Prior:
    """The prior of independent attributes."""
    levels = itertools.product(*(range(len(each)) for each in attributes))
    cells = {cell: math.prod(p[i] for p, i in zip(attributes, cell, strict=True)) for cell in levels}
    if len(names) > 1:
        return pv.Prior.joint(cells, names)
    return pv.Prior({cell[0]: p for cell, p in cells.items()})


def simulated(
    plan: pv.Plan, people: np.ndarray, read: Callable[[Any], Any], runs: int, rng: np.random.Generator
) -> list[Any]:
    """The numbers that `read` takes from each of `runs` surveys of 1,000 people."""
    reports = plan.privatize(rng.choice(people, (runs, 1_000)).ravel(), rng).reshape(runs, -1)
    return [read(plan.estimate(plan.tally(row))) for row in reports]


def large_survey(plan: pv.Plan, people: np.ndarray, batches: int, rng: np.random.Generator) -> pv.Estimate:
    """The estimate from batches of four million people: it shows a bias that small surveys cannot tell from chance."""
    tallies = (plan.tally(plan.privatize(rng.choice(people, 4_000_000), rng)) for _ in range(batches))
    return plan.estimate(functools.reduce(operator.add, tallies))


def coverage(found: list[Any], truth: float) -> float:
    """The share of 95 % intervals that hold the truth."""
    return float(np.mean([low <= truth <= high for low, high in (f.interval(0.95) for f in found)]))


def ldp_spreads(people: np.ndarray, low: float, high: float, eps: float) -> tuple[float, float]:
    """The standard deviation of one report of Duchi's and of the piecewise mechanism, both unbiased under LDP."""
    half, e, root = (high - low) / 2, math.exp(eps), math.exp(eps / 2)
    t = (people - low) / half - 1
    duchi = ((e + 1) / (e - 1)) ** 2 - t.mean() ** 2
    piecewise = (t**2).mean() / (root - 1) + (root + 3) / (3 * (root - 1) ** 2) + t.var()
    return half * math.sqrt(duchi), half * math.sqrt(piecewise)


def constrained(quick: bool) -> Iterator[Line]:
    """Shares that are not negative: N times the squared error of mle and of unbiased, 50,000 people, Zipf, eps = 1"""
    # The coverage of single values takes many surveys: only small domains have enough of them.
    N, rng, LDP = 50_000, np.random.default_rng(1), {"notion": pv.LDP()}
    settings: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
        ("columns", {}, (83,)), ("closed", LDP, (1_296,)), ("hashing", {}, (83, 400)),
        ("arc", {}, (83, 400, 1_000, 10_000)), ("unary", {}, (83, 400, 10_000)), ("subset", LDP, (83, 400, 1_000)),
    ]  # fmt: skip
    for method, options, sizes in settings:
        for d in sizes[:1] if quick else sizes:
            query = pv.Histogram() if method == "hashing" else pv.Distribution()
            plan = pv.design(pv.Prior.zipf(d), 1.0, query, method=method, **options)
            # nobody has every third value
            truth = np.where(np.arange(d) % 3 == 1, 0.0, plan.reference.probabilities)
            truth /= truth.sum()
            repeats = max(2, (83_000 if d < 1_000 else 4_000) // d // (10 if quick else 1))
            errors, seconds, inside = np.zeros(2), 0.0, []
            for _ in range(repeats):
                tally = plan.tally(plan.privatize(rng.choice(d, N, p=truth), rng))
                begin = time.process_time()
                likely = plan.estimate(tally, "mle")
                seconds = max(seconds, time.process_time() - begin)
                unbiased = plan.estimate(tally, "unbiased")
                errors += [N / repeats * ((e.proportions - truth) ** 2).sum() for e in (likely, unbiased)]
                low, high = likely.interval(0.95)
                inside.append((low <= N * truth) & (N * truth <= high))
            held, zeros = float(np.mean(inside)), float(np.mean(np.array(inside)[:, truth == 0]))
            figures = f"{errors[0]:.0f} and {errors[1]:.0f}; intervals hold {held:.1%}, of zeros {zeros:.1%}"
            limit = 10 if d <= 2_000 else 60
            met = errors[0] < errors[1] and min(held, zeros) >= 0.94 and seconds < limit
            aim = f"less, 94 %, {limit} s"
            if d < 1_000:
                least, allowed = float(np.mean(inside, axis=0).min()), least_coverage(0.94, d, repeats)
                figures += f", of the worst value {least:.1%} in {repeats} surveys"
                aim, met = f"{aim}, worst value {allowed:.1%}", met and least >= allowed
            yield Line(f"d = {d:,}, {method}", figures, seconds, aim, met)


def least_coverage(level: float, values: int, surveys: int) -> float:
    """What the least coverage of `values` intervals stays above with 99 % probability, if each holds at this level.

    Chance lowers the least of many measured shares: each of them is below this with probability `0.01 / values`.
    """
    return float(binom.ppf(0.01 / values, surveys, level)) / surveys


def linear(quick: bool) -> Iterator[Line]:
    """Unbiased statistics, equal values or Zipf: N times the summed variance (LDP: less that of sampling people)"""
    for name, rows, lip, ldp in CASES:
        prior, query = pv.Prior.uniform(rows.shape[1]), pv.Linear(rows, unbiased=True)
        sampling = query.ceiling(prior)
        # Known figures have three or four digits: 1.0005 allows for their rounding.
        for eps, aim, known in zip((1.0, 2.0), lip, ldp, strict=True):
            if aim:
                plan, seconds = timed(prior, eps, query)
                figures = f"{plan.expected_mse:.2f}, {shown(plan.efficiency)} proven"
                met = plan.expected_mse <= aim * 1.0005 and seconds <= 60
                yield Line(f"{name}, LIP, eps = {eps:g}", figures, seconds, f"{aim}, 60 s", met)
            if known and not (quick and rows.shape[1] > 32):
                plan, seconds = timed(prior, eps, query, notion=pv.LDP())
                figures = f"{plan.expected_mse - sampling:.2f}, {shown(plan.efficiency)} proven"
                met = plan.expected_mse - sampling <= known * 1.0005 and seconds <= 120
                yield Line(f"{name}, LDP, eps = {eps:g}", figures, seconds, f"{known}, 120 s", met)
    if not quick:
        yield largest_variance(128, 1.0, 1910.87)
        for d, least in ((200, 0.75), (400, 0.75), (1_000, 0.0)):
            prior = pv.Prior.zipf(d)
            query = pv.Linear.cumulative(prior, unbiased=True)
            yield efficient(f"cumulative, Zipf, d = {d:,}, LIP, eps = 1", least, 60.0, prior, 1.0, query)


def largest_variance(d: int, eps: float, known: float) -> Line:
    """Cumulative shares under LDP: the largest variance of one person's scores, given the value."""
    prior, W = pv.Prior.uniform(d), np.tri(d)
    query = pv.Linear.cumulative(prior, unbiased=True)
    plan, seconds = timed(prior, eps, query, notion=pv.LDP(), time_limit=120)
    Q, P = plan.channel.matrix, prior.probabilities
    scores = W @ unbiased_scores(Q, P, W).T
    largest = float((Q @ (scores**2).sum(axis=0) - (W**2).sum(axis=0)).max())
    case = f"cumulative, d = {d}, LDP, eps = {eps:g}, largest over the values"
    return Line(case, f"{largest:.1f}", seconds, f"{known}", largest < known)


def ranges(d: int) -> np.ndarray:
    """All ranges of neighbouring values, a row for each."""
    return np.array([[float(i <= x <= j) for x in range(d)] for i in range(d) for j in range(i, d)])


def margins(shape: tuple[int, ...], size: int) -> np.ndarray:
    """All margins of `size` attributes, a row for each cell of a margin."""
    cells = np.indices(shape).reshape(len(shape), -1)
    rows = []
    for kept in itertools.combinations(range(len(shape)), size):
        levels = itertools.product(*(range(shape[a]) for a in kept))
        rows += [(cells[list(kept)] == np.array(level)[:, None]).all(axis=0) for level in levels]
    return np.array(rows, dtype=float)


# The statistics; what a prototype reached under LIP; and, under LDP, what the public code of the workload
# factorization mechanism reaches (McKenna et al. 2020), or our own columns for single margins. At epsilon 1 and 2.
CASES: list[tuple[str, np.ndarray, tuple[float, float], tuple[float, float]]] = [
    ("cumulative, d = 32", np.tri(32), (58.3, 12.30), (254.7, 59.4)),
    ("ranges, d = 12", ranges(12), (114.3, 26.70), (0, 0)),
    ("two-way margins of 2^5", margins((2,) * 5, 2), (98.7, 22.21), (549.8, 117.6)),
    ("one-way margins of 6 x 4 x 3", margins((6, 4, 3), 1), (24.9, 7.15), (80.3, 30.2)),
    ("cumulative, d = 64", np.tri(64), (0, 0), (695.2, 153.6)),
    ("histogram, d = 16", np.eye(16), (0, 0), (58.31, 11.20)),
]


PARTS = {
    "exact": exact, "notions": notions,
    "histogram": histogram, "sum": sums, "distribution": learning, "orders": many_values, "ldp": ldp,
    "leaning": leaning,
    "linear": linear,
    "latent": latent,
    "compared": compared, "constrained": constrained,
    "numbers": numbers, "averages": averages,
    "cross-table": cross_table,
    "products": products,
}  # fmt: skip


def table(part: Callable[[bool], Iterator[Line]], quick: bool) -> tuple[str, bool]:
    """A part as a markdown table, printed line by line, and whether all aims were met."""
    head = ["case", "result", "seconds", "aim", "met"]
    text = [f"## {part.__doc__}", "", f"| {' | '.join(head)} |", "|---|---|---|---|---|"]
    print("\n".join(text), flush=True)
    fine = True
    for line in part(quick):
        text.append(f"| {' | '.join(line.cells())} |")
        fine &= line.met is not False
        print(text[-1], flush=True)
    print(flush=True)
    return "\n".join(text), fine


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller instances")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="these parts alone")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    made = {name: table(PARTS[name], given.quick) for name in given.only}
    if given.write:
        PAGE.write_text(page({PARTS[name].__doc__ or "": text for name, (text, _) in made.items()}), "utf-8")
    return 0 if all(fine for _, fine in made.values()) else 1


def page(tables: dict[str, str]) -> str:
    """The page with these tables, in the order of the parts; tables not made this time stay as they are."""
    old = PAGE.read_text(encoding="utf-8").split("\n\n## ")[1:] if PAGE.exists() else []
    kept = {text.partition("\n")[0]: f"## {text.rstrip()}" for text in old}
    made = {**kept, **tables}
    about = (__doc__ or "").split("\n\n")[1].replace("\n", " ")
    where = f"Measured with Python {platform.python_version()} and numpy {np.__version__}, one thread."
    head = "# Benchmarks of the designs\n\nMade by `python benchmarks/design.py --write`, not by hand."
    parts = [made[part.__doc__ or ""] for part in PARTS.values() if part.__doc__ in made]
    return "\n\n".join([head, about, where, *parts]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
