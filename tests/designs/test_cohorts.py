"""Everybody's own prior and budget, held against the mechanism for one prior and its exact certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.certify import certificate, keeps_budget
from priorveil.designs.arc_design import posterior_step_variances, posterior_steps
from priorveil.designs.cohorts import Cohorts
from priorveil.errors import CertificateError, InvalidInput
from priorveil.mechanisms.arc.arc_batch import posteriors
from priorveil.mechanisms.arc.certificate import arc_lifts
from priorveil.mechanisms.randomness import BytesSource
from priorveil.notes import Note
from priorveil.reading.combination import combine_estimates
from priorveil.reading.tally_reading import WEIGHTED
from references import likelihood as likelihood_of
from refusals import raises
from strategies import generators, levels, sizes

VALUES = (3.0, -1.0, 0.5, 7.0, 2.0, 2.5)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, pv.Histogram | pv.Sum]:
    """Priors from even to nearly certain, budgets from tight to wide."""
    rows, d, rng = draw(st.integers(1, 8)), draw(sizes), draw(generators)
    spread = draw(st.sampled_from([0.1, 1.0, 50.0]))
    P = rng.dirichlet(np.full(d, spread), rows) + draw(st.sampled_from([1e-12, 1e-3]))
    P /= P.sum(axis=1, keepdims=True)
    epsilon = draw(levels) * 10.0 ** rng.uniform(-2, 0, rows)
    query = draw(st.sampled_from([pv.Histogram(), pv.Sum(2.0 * np.array(VALUES[:d]))]))
    return P, epsilon, query


def exact(crowd: Cohorts, row: int):
    weights = np.array(pv.Prior(crowd.priors[row]).weights, dtype=object)
    return arc_lifts(crowd.lines.arc(row).line, weights)


@given(crowds())
def test_levels_lie_above_the_exact_ones_and_within_the_budget(crowd) -> None:
    P, epsilon, query = crowd
    made = Cohorts(P, epsilon, query)
    for row in range(len(P)):
        found = exact(made, row)
        proven = certificate(found)
        assert keeps_budget(found, pv.Budget(float(epsilon[row])))
        assert proven.lip_lower <= made.levels.lip_lower[row] <= proven.lip_lower + 1e-7
        assert proven.lip_upper <= made.levels.lip_upper[row] <= proven.lip_upper + 1e-7
        assert proven.ldp <= made.levels.ldp[row] <= proven.ldp + 1e-7
        assert made.levels.lip[row] <= epsilon[row]


@given(crowds())
def test_the_error_is_that_of_the_design_for_one_prior(crowd) -> None:
    P, epsilon, query = crowd
    made = Cohorts(P, epsilon, query)
    for row in range(len(P)):
        one = pv.design(pv.Prior(P[row]), float(epsilon[row]), query, method="arc")
        assert made.expected_mse[row] == pytest.approx(one.expected_mse, rel=1e-5, abs=1e-9)
        assert made.no_report[row] == pytest.approx(one.no_report, rel=1e-9, abs=1e-12)
        assert made.lower_bound[row] == pytest.approx(
            query.closed_form_bound(pv.Prior(P[row]), one.budget), abs=1e-9
        )


@given(crowds(), generators)
def test_a_row_samples_as_its_plan_does(crowd, rng) -> None:
    P, epsilon, query = crowd
    made = Cohorts(P, epsilon, query)
    words = rng.integers(0, 2**64, (len(P), 3), dtype=np.uint64)
    codes = rng.integers(0, P.shape[1], len(P))
    reports = made.privatize(codes, BytesSource(words.tobytes()))
    posterior = made.estimate(reports[:1], rows=[0])
    for row, report in enumerate(reports):
        plan = pv.Plan.from_json(made.plan(row).to_json())
        assert plan.privatize(int(codes[row]), BytesSource(words[row].tobytes())) == report
    first = made.plan(0)
    likelihood = likelihood_of(first.mechanism, int(reports[0]))
    joint = P[0] * likelihood / (P[0] @ likelihood)
    if isinstance(query, pv.Sum):
        joint = np.array([joint @ (2.0 * np.array(VALUES[: len(joint)]))])
    assert posterior.values == pytest.approx(joint, rel=1e-7, abs=1e-9)


def test_with_every_value_likely_it_is_theorem_3() -> None:
    P, eps = np.array([[0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]), np.array([2.0, 1.5])
    for row, made in enumerate(Cohorts(P, eps, pv.Histogram()).expected_mse):
        theorem = pv.published.rr_lip(pv.Prior(P[row]), float(eps[row]))
        assert made == pytest.approx(pv.Histogram().error(theorem.channel, pv.Prior(P[row])), rel=1e-6)


@pytest.mark.parametrize("budget", [pv.Budget(1.0, 0.5), pv.Budget(0.7, float("inf")), pv.Budget(0.0)])
def test_other_budgets(budget: pv.Budget) -> None:
    made = Cohorts([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3]], budget, pv.Histogram())
    assert all(keeps_budget(exact(made, row), budget) for row in range(2))
    assert (made.levels.lip_lower <= budget.lower).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_extremes_are_certified_too(d: int) -> None:
    """Priors down to the smallest float, budgets from nothing to twenty: none refused, none out of bounds."""
    rng = np.random.default_rng(d)
    P = np.maximum(rng.dirichlet(np.full(d, 0.1), 40), 10.0 ** -rng.integers(1, 320, (40, 1)).astype(float))
    P = np.maximum(P / P.sum(axis=1, keepdims=True), 5e-324)
    epsilon = np.append(0.0, 10 ** rng.uniform(-7, 1.3, 39))
    for query in (pv.Histogram(), pv.Sum(np.arange(d) ** 2.0)):
        made = Cohorts(P, epsilon, query)
        assert all(keeps_budget(exact(made, row), pv.Budget(float(epsilon[row]))) for row in range(40))
        assert (made.levels.lip <= epsilon).all()
        assert made.levels.lip[1:] == pytest.approx(epsilon[1:], rel=1e-4)  # the budget is used
        assert (made.lower_bound <= made.expected_mse + 1e-9).all()
        assert (made.expected_mse <= made.no_report + 1e-9).all()
        assert np.isfinite(made.estimate(made.privatize(rng.integers(0, d, 40), rng)).values).all()


@pytest.mark.statistical
def test_measured_error_and_intervals_are_what_is_said() -> None:
    """Four standard errors of 400 collections: fails by chance once in ten thousand."""
    rng = np.random.default_rng(5)
    N = 400
    P = rng.dirichlet(np.ones(5), N) + 1e-3
    P /= P.sum(axis=1, keepdims=True)
    eps = rng.uniform(0.5, 3.0, N)
    a, c, b = np.array(VALUES[:5]), rng.uniform(0.5, 2.0, N), rng.normal(size=N)
    crowds = Cohorts(P, eps, pv.Histogram()), Cohorts(P, eps, pv.Sum(a))
    errors, weighted, inside, quiet = [], [], [], []
    for _ in range(400):
        people = (rng.random((N, 1)) > np.cumsum(P, axis=1)).sum(axis=1).clip(0, 4)
        told = crowds[0].estimate(crowds[0].privatize(people, rng))
        errors.append(((told.values - np.bincount(people, minlength=5)) ** 2).sum() / N)
        quiet.append(told.prior_check)
        summed = crowds[1].estimate(crowds[1].privatize(people, rng), weights=c, offsets=b)
        truth = c @ a[people] + b.sum()
        weighted.append((summed.values[0] - truth) ** 2)
        low, high = summed.interval()
        inside.append(low[0] <= truth <= high[0])
    for measured, said in (
        (errors, crowds[0].expected_mse.mean()),
        (weighted, c**2 @ crowds[1].expected_mse),
    ):
        spread = float(np.std(measured)) / 20
        assert abs(np.mean(measured) - said) < 4 * spread < 0.35 * said
    assert 0.906 < np.mean(inside) < 0.994
    assert 0.005 < np.mean(np.array(quiet) < 0.05) < 0.095


def test_the_prior_check_fires_when_the_priors_are_wrong() -> None:
    rng = np.random.default_rng(6)
    P = rng.dirichlet(np.full(4, 5.0), 5000)
    made = Cohorts(P, 1.0, pv.Histogram())
    assert made.estimate(made.privatize(np.zeros(5000, dtype=int), rng)).prior_check < 1e-6
    assert made.estimate(made.privatize([0, 1], rng, rows=[0, 1]), rows=[0, 1]).prior_check > 0.1
    none = np.zeros(0, dtype=np.int64)
    assert made.estimate(none, rows=none).prior_check is None
    silent = Cohorts(P[:3], 0.0, pv.Histogram())
    assert silent.estimate(silent.privatize([0, 0, 0], rng)).prior_check is None


def test_the_prior_check_says_that_it_may_not_see_a_change() -> None:
    """The reports of these people do not tell the second value from the third."""
    for prior, sees_all in (([0.74, 0.12, 0.14], False), ([0.74, 0.26], True)):
        rows, rng = np.zeros(5000, dtype=np.int64), np.random.default_rng(7)
        made = Cohorts([prior], 1.0, pv.Histogram())
        found = made.estimate(made.privatize(rng.choice(len(prior), 5000, p=prior), rng, rows), rows)
        assert (found.unseen_changes is None) == sees_all
        assert (str(Note("unseenChangesByRow")) in str(found)) == (not sees_all)


ZIPF = (np.arange(1, 21) ** -1.5 / (np.arange(1, 21) ** -1.5).sum()).tolist()
RARE = [([0.001, 0.999], 6.0), ([0.97, 0.01, 0.01, 0.01], 5.0), (ZIPF, 4.0), ([0.5, 0.3, 0.2], 1.0)]


@pytest.mark.statistical
@pytest.mark.parametrize(("prior", "epsilon"), RARE)
def test_the_prior_check_is_quiet_about_rare_values(prior: list[float], epsilon: float) -> None:
    """At 1 % at most 12 of 300 collections are doubted: with the priors right, more are once in ten thousand.

    Measured against the spread of the reports that came, a report that did not come was taken for a miracle: in 77 %
    of the collections of the first prior, 37 % of the second and 60 % of the third. People whose law is the prior of
    the value after theirs are noticed.
    """
    rng, N, rows = np.random.default_rng(12), 200, np.zeros(200, dtype=np.int64)
    made, d = Cohorts([prior], epsilon, pv.Histogram()), len(prior)
    right = [made.estimate(made.privatize(rng.choice(d, N, p=prior), rng, rows), rows) for _ in range(300)]
    assert np.count_nonzero([e.prior_check < 0.01 for e in right]) <= 12
    wrong = np.append(prior[1:], prior[0])
    found = [made.estimate(made.privatize(rng.choice(d, N, p=wrong), rng, rows), rows) for _ in range(20)]
    assert np.count_nonzero([e.prior_check < 0.01 for e in found]) >= 17


def test_steps_of_posteriors_are_as_wide_and_as_long_as_is_said() -> None:
    """Four thousand reports of each row: their mean square within five standard errors, none beyond the ends."""
    rng = np.random.default_rng(13)
    P = np.array([[0.5, 0.3, 0.1, 0.06, 0.04], [0.2] * 5, [0.96, 0.01, 0.01, 0.01, 0.01]])
    for epsilon in (0.5, 1.5, 4.0):
        made = Cohorts(P, epsilon, pv.Histogram())
        variance, (rise, fall) = posterior_step_variances(made.lines, P), posterior_steps(made.lines, P)
        for row in range(3):
            rows = np.full(4000, row)
            reports = made.privatize(rng.choice(5, 4000, p=P[row]), rng, rows)
            step = posteriors(made.lines, P, rows, reports) - P[row]
            spread = 5 * (step**2).std(axis=0) / 4000**0.5
            assert (np.abs((step**2).mean(axis=0) - variance[row]) <= spread + 1e-12).all()
            assert (step <= rise[row] * (1 + 1e-6)).all()
            assert (-step <= fall[row] * (1 + 1e-6)).all()


def test_people_may_share_rows_and_parts_combine() -> None:
    rng = np.random.default_rng(7)
    made = Cohorts([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], [1.0, 2.0], pv.Histogram(), labels=["a", "b", "c"])
    rows = rng.integers(0, 2, 1000)
    reports = made.privatize(["abc"[v] for v in rng.integers(0, 3, 1000)], rng, rows)
    whole = made.estimate(reports, rows)
    halves = combine_estimates(
        [made.estimate(reports[h], rows[h]) for h in (slice(0, 300), slice(300, None))]
    )
    assert halves.values == pytest.approx(whole.values) and halves.reports == whole.reports == 1000
    assert halves.std_error == pytest.approx(whole.std_error)
    assert whole.values.sum() == pytest.approx(1000)
    plans = [made.plan(row) for row in range(2)]
    together = combine_estimates(
        [plan.estimate(plan.tally(reports[rows == row])) for row, plan in enumerate(plans)]
    )
    assert together.values == pytest.approx(whole.values)
    assert together.std_error == pytest.approx(whole.std_error, rel=1e-3)


def test_weights_and_offsets_are_read_as_a_plan_reads_them() -> None:
    """With all values likely both are Theorem 3, so reports mean the same."""
    P, query = [0.4, 0.35, 0.25], pv.Sum([12.0, 20.0, 14.0])
    made, alone = Cohorts([P], 2.0, query), pv.design(P, 2.0, query, method="closed")
    c, b, rows = np.array([1.0, 0.5, -2.0, 3.0]), np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4, dtype=int)
    rank = made.lines.order[0]  # an owned report is a place on the line
    reports = np.array([0, 1, 2, 1])
    ours = made.estimate(reports, rows, weights=c, offsets=b)
    plans = alone.estimate(alone.tally(rank[reports], weights=c, offsets=b))
    assert ours.values == pytest.approx(plans.values, rel=1e-6)
    assert ours.std_error == pytest.approx(plans.std_error, rel=1e-6)


def test_weighted_people_are_read_alike_by_rows_and_by_plans() -> None:
    """Two rows on circles: a crowd reads its reports as the rows' own plans do, weights and all."""
    rng = np.random.default_rng(4)
    made = Cohorts([[0.3, 0.2, 0.2, 0.2, 0.1], [0.1, 0.15, 0.2, 0.25, 0.3]], [0.5, 0.8], pv.Histogram())
    rows, c = rng.integers(0, 2, 600), rng.uniform(0.5, 2.0, 600)
    reports = made.privatize(rng.integers(0, 5, 600), rng, rows)
    whole = made.estimate(reports, rows, weights=c)
    plans = [made.plan(row) for row in range(2)]
    tallies = [plan.tally(reports[rows == row], weights=c[rows == row]) for row, plan in enumerate(plans)]
    together = combine_estimates([plan.estimate(tally) for plan, tally in zip(plans, tallies, strict=True)])
    assert together.values == pytest.approx(whole.values)
    assert together.std_error == pytest.approx(whole.std_error, rel=0.02)  # plans take cells as a whole
    assert whole.values.sum() == pytest.approx(c.sum()) == whole.total == pytest.approx(together.total)
    assert whole.proportions.sum() == pytest.approx(1)
    assert whole.assumes == together.assumes == (WEIGHTED["mmse"],)


def test_a_row_that_breaks_its_budget_makes_no_plan() -> None:
    made = Cohorts([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], 1.0, pv.Histogram())
    object.__setattr__(made, "lower", np.array([1.0, 0.99]))
    assert made.plan(0).certificate.lip <= 1
    with raises(CertificateError, breach=1):
        made.plan(1)


def test_a_crowd_says_what_it_is() -> None:
    assert repr(Cohorts([[0.5, 0.5]], 1.0, pv.Histogram())).startswith(
        "Cohorts(1 row of 2 values, LIP 1 to 1"
    )


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(VALUES[:3])], ids=["histogram", "sum"])
def test_cohorts_are_read_by_every_method(query: pv.Linear) -> None:
    """A named method keeps the covariance; unbiased and mle are right although both priors are wrong."""
    crowd, rng = Cohorts([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]], [2.0, 3.0], query), np.random.default_rng(8)
    codes, rows = rng.choice(3, 20_000, p=[0.1, 0.2, 0.7]), np.repeat([0, 1], 10_000)
    weights = rng.uniform(0.5, 2.0, codes.size)
    reports = crowd.privatize(codes, rng, rows)
    usual = crowd.estimate(reports, rows, weights)
    one_hot = np.eye(3)[codes] if query.asks_all_counts else np.array(VALUES[:3])[codes, None]
    for method in ("mmse", "unbiased", "mle"):
        found = crowd.estimate(reports, rows, weights, method=method)  # type: ignore[arg-type]
        assert found.method == method and found.total == pytest.approx(weights.sum())
        assert np.diag(found.covariance) == pytest.approx(found.std_error**2)
        if method == "mmse":
            assert found.values == pytest.approx(usual.values) and found.std_error == pytest.approx(
                usual.std_error
            )
        else:
            assert (np.abs(found.values - weights @ one_hot) < 4 * found.std_error).all()
    with raises(InvalidInput, argument="method"):
        crowd.estimate(reports, rows, method="exact")  # type: ignore[arg-type]
    assert crowd.estimate([], [], method="unbiased").values.tolist() == [0.0] * len(usual.values)
