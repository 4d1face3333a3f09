"""Estimates: what each method returns, proves and refuses; how well it holds is measured in `statistical`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.mechanisms.integer_tables import TOTAL, Table
from priorveil.notes import Note
from priorveil.plans.plan import RARE_CHANGES
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate
from priorveil.reading.linear_answers import channel_inversion, channel_posteriors, channel_scores
from priorveil.reading.prior_check import PriorCheck, cells_test, split_prior
from priorveil.reading.shares_search import most_likely
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally_reading import ASSUMES, WEIGHTED
from references import likelihood as likelihood_of
from refusals import raises
from sample_plans import NAMES, PAIRS, PRIOR, VALUES, named_plan, pair_plan
from strategies import channels, generators, priors

PLANS = {name: named_plan(name) for name in NAMES}


def channel_check(counts: np.ndarray, channel: np.ndarray, prior: np.ndarray) -> PriorCheck | None:
    """The check of counts of reports, whose channel from values to reports is written out."""
    parts = split_prior(prior, len(counts))
    test = cells_test(parts @ channel, parts, float(counts.sum()))
    return test and test.check(counts)


def answer(values: list[float], labels: tuple[str, ...] | None = None) -> Estimate:
    names = tuple(range(len(values))) if labels is None else labels
    return Estimate(np.array(values), np.ones(len(values)), "unbiased", "", 10, names)


@given(priors(4), channels(4, positive=True), generators)
def test_mmse_adds_up_posteriors(prior: pv.Prior, channel: pv.Channel, rng) -> None:
    counts = rng.integers(0, 50, channel.shape[1]).astype(float)
    P, posterior = prior.probabilities, channel.posterior(prior)
    found = channel_posteriors(counts, channel.matrix, P).moments(None)
    assert found.mean == pytest.approx(posterior @ counts)
    assert found.mean.sum() == pytest.approx(counts.sum())
    scores = rng.normal(size=4)
    summed = channel_posteriors(counts, channel.matrix, P).moments(scores[None])
    assert summed.mean[0] == pytest.approx(scores @ found.mean, abs=1e-9)
    assert (summed.variance >= 0).all() and (found.variance >= -1e-12).all()


@given(generators)
def test_unbiased_inverts_the_channel(rng) -> None:
    """Fed with the mean of the counts it returns the people, whatever the prior it was told."""
    Q = 0.5 * np.eye(4) + 0.5 * rng.dirichlet(np.ones(4), 4)
    people, P = 1e9 * rng.integers(1, 1000, 4), rng.dirichlet(np.full(4, 5.0))
    found = channel_inversion(people @ Q, Q, P, None, False).moments(None)
    assert found.mean == pytest.approx(people, abs=1e-6 * people.sum())
    noise = sum(n * (np.diag(q) - np.outer(q, q)) for n, q in zip(people, Q, strict=True))
    inverse = np.linalg.inv(Q)
    assert found.variance == pytest.approx(np.diag(inverse.T @ noise @ inverse), rel=1e-6)


@given(generators)
def test_a_wrong_prior_makes_no_standard_error_smaller_than_that_of_the_scores(rng) -> None:
    """Counts shrunk towards the prior had smaller variances where a prior was wrong and reports were of many kinds."""
    Q, P = rng.dirichlet(np.full(60, 0.2), 4), np.array([0.7, 0.2, 0.07, 0.03])
    people = rng.choice(4, 200, p=P[::-1])
    reports = np.array([rng.choice(60, p=Q[x]) for x in people])
    answer = channel_inversion(np.bincount(reports, minlength=60).astype(float), Q, P, None, True)
    scores, variance = channel_scores(Q, P, None)[reports], answer.moments(None).variance
    assert (variance >= 200 * scores.var(axis=0) * (1 - 1e-9)).all()


@pytest.mark.statistical
def test_a_rare_report_that_tells_much_is_not_forgotten_where_it_is_missing() -> None:
    """One of 20,000 reports decides between two values; most collections of 5,000 people do not have it.

    The true variance is then mostly that of a count of 0.25. Going by the counts that came, intervals would be
    far too narrow in three of four collections.
    """
    rng, P = np.random.default_rng(5), np.array([0.5, 0.25, 0.25])
    Q = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.2, 0.7998, 0.0002]])
    people = rng.multinomial(5000, P, size=1500)
    inside, missing = [], 0
    for truth in people:
        counts = sum(rng.multinomial(n, row) for n, row in zip(truth, Q, strict=True))
        found = channel_inversion(counts.astype(float), Q, P, None, False).moments(None)
        inside.append(np.abs(found.mean - truth) <= 1.96 * np.sqrt(found.variance))
        missing += counts[2] == 0
    assert missing > 0.7 * len(people)
    assert (np.mean(inside, axis=0) > 0.93).all()


@given(priors(4), channels(4, positive=True), generators)
def test_mle_stops_with_a_proof(prior: pv.Prior, channel: pv.Channel, rng) -> None:
    """No other distribution is more likely by more than the shortfall."""
    counts = rng.integers(0, 500, channel.shape[1]).astype(float) + 1
    found = most_likely(counts, channel.matrix, prior.probabilities)
    p, lacking = found.shares, found.gap
    assert found.converged and found.rounds >= 1 and lacking <= 1e-9
    assert p.sum() == pytest.approx(1) and (p >= 0).all()
    n = counts / counts.sum()
    others = np.vstack([np.eye(4), rng.dirichlet(np.ones(4), 200), prior.probabilities])
    likelihood = np.log(np.vstack([others, p]) @ channel.matrix) @ n
    assert (likelihood[:-1] <= likelihood[-1] + lacking + 1e-12).all()


def test_the_gap_is_large_away_from_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, Q = np.array([30.0, 10.0]), np.array([[0.8, 0.2], [0.2, 0.8]])
    p = np.array([0.1, 0.9])
    best = most_likely(counts, Q, p).shares
    truly = counts / 40 @ np.log(best @ Q) - counts / 40 @ np.log(p @ Q)
    monkeypatch.setattr("priorveil.reading.shares_search._ROUNDS", 1)
    stopped = most_likely(counts, Q, p)
    assert stopped.shares == pytest.approx(p) and not stopped.converged
    assert 0.1 < truly <= stopped.gap


@pytest.mark.parametrize("name", ["columns", "arc", "unary", "distribution", "sum"])
def test_mle_says_how_it_went(name: str) -> None:
    chosen, rng = PLANS[name], np.random.default_rng(2)
    tally = chosen.tally(chosen.privatize(rng.choice(5, 5000, p=PRIOR.probabilities), rng, codes=True))
    found = chosen.estimate(tally, method="mle")
    assert found.converged and found.rounds is not None and found.rounds < 1000
    assert found.shortfall is not None and 0 <= found.shortfall <= 1e-9
    assert chosen.estimate(tally).rounds is None and chosen.estimate(tally).shortfall is None


@pytest.mark.parametrize("people", [300, 20_000])
def test_a_flat_likelihood_takes_few_rounds(people: int) -> None:
    """Arcs tell neighbours apart badly, and some values are best left out."""
    chosen, rng = pv.design(pv.Prior.zipf(80), 2.0, pv.Histogram(), method="arc"), np.random.default_rng(7)
    reports = chosen.privatize(rng.choice(80, people, p=chosen.reference.probabilities), rng)
    found = chosen.estimate(chosen.tally(reports), "mle")
    assert found.converged and found.rounds is not None and found.rounds < 100
    assert found.shortfall is not None and found.shortfall <= 1e-9
    assert found.values.min() >= 0 and found.values.sum() == pytest.approx(people)


def test_a_search_that_is_cut_short_admits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priorveil.reading.shares_search._ROUNDS", 1)
    Q = np.array([[0.6, 0.4], [0.4, 0.6]])
    minimum = most_likely(np.array([55.0, 45.0]), Q, np.array([0.1, 0.9]))
    assert not minimum.converged and minimum.rounds == 1 and minimum.gap > 1e-9
    chosen = PLANS["distribution"]
    read = chosen.estimate(chosen.tally(chosen.privatize([0] * 90 + [4] * 10, codes=True)), "mle")
    assert not read.converged and "stopped early" in str(read)
    assert "stopped early" not in str(chosen.estimate(chosen.tally([0, 1])))


@pytest.mark.parametrize("name", ["hashing", "grouped"])
@pytest.mark.parametrize("method", ["unbiased", "mle"])
def test_what_reports_cannot_tell_is_refused_with_advice(name: str, method) -> None:
    chosen = PLANS[name]
    assert not chosen.identifiable
    with pytest.raises(NotIdentifiable):
        chosen.estimate(chosen.tally(chosen.privatize([0, 1, 2], codes=True)), method=method)


@pytest.mark.parametrize("grouped", [True, False])
def test_an_unbiased_answer_that_is_refused_names_what_is_not_determined(grouped: bool) -> None:
    """The first two values are reported alike; if in groups, the others too."""
    plan = pair_plan("grouped", "Histogram")
    if not grouped:
        rows = np.array([[2, 1, 1], [2, 1, 1], [1, 2, 1], [1, 1, 2]]) * (TOTAL // 4)
        plan = replace(plan, mechanism=Table(rows), prior=pv.Prior.uniform(["a", "b", "c", "d"]))
    for query, named in (
        (pv.Histogram(), "counts of a, b, c, d, e;" if grouped else "counts of a, b;"),
        (pv.Sum(range(len(plan.labels))), "statistic sum;"),
        (
            pv.Linear.cumulative(plan.prior),
            "statistics up to a, up to c, up to d;" if grouped else "statistic up to a;",
        ),
    ):
        asked = replace(plan, query=query)
        for method in ("unbiased", "mle"):
            with pytest.raises(NotIdentifiable, match=f"do not determine the {named}"):
                asked.estimate(asked.tally([0, 1]), method=method)


def test_long_names_of_statistics_stay_apart() -> None:
    """In the table of an estimate; and the repr of a query with many of them is short."""
    cells = [("a quite long level", f"another long level, number {n}") for n in range(30)]
    prior = pv.Prior.joint(dict.fromkeys(cells, 1 / 30), names=("the first", "the second"))
    query = pv.Linear.margins(prior, ["the second"])
    labels = query.statistic_labels(prior.labels)
    lines = str(Estimate(np.ones(30), np.ones(30), "mmse", "", 30, labels)).splitlines()
    assert len({line.partition("  ")[0] for line in lines[1:31]}) == 30
    assert len(repr(query)) < 220 and repr(query).startswith("Linear(Margins(")


def small_priors() -> dict[str, tuple[pv.Prior, list]]:
    """Priors of one or two values, with the values of some people."""
    joint = {size: dict.fromkeys([("a", n) for n in range(size)], 1 / size) for size in (1, 2)}
    return {
        "one label": (pv.Prior({"only": 1.0}), ["only"] * 3),
        "one number": (pv.Prior([1.0], [7]), [7] * 3),
        "one combination": (pv.Prior.joint(joint[1], names=("x", "y")), [("a", 0)] * 3),
        "one cell": (pv.Prior.cells([0, 10], [1.0]), [0.0, 5.0, 10.0]),
        "two numbers": (pv.Prior([0.3, 0.7], [7, 9]), [7, 9, 9]),
        "two combinations": (pv.Prior.joint(joint[2], names=("x", "y")), [("a", 0), ("a", 1)]),
        "two cells": (pv.Prior.cells([0, 10, 30], [0.5, 0.5]), [0.0, 25.0]),
        "two points": (pv.Prior.grid([0, 10], [0.5, 0.5]), [0.0, 2.5]),
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("domain", list(small_priors()))
@pytest.mark.parametrize("notion", [pv.LIP(), pv.LDP()])
def test_domains_of_one_or_two_values(domain: str, notion: pv.LIP | pv.LDP) -> None:
    """Everything works or is refused, without a warning of numpy; a single value is known exactly."""
    prior, people = small_priors()[domain]
    numbers = np.arange(len(prior)) + 1.0
    queries = [pv.Histogram(), pv.Distribution(), pv.Sum(numbers), pv.Sum(numbers, unbiased=True)]
    if prior.points is None:
        kinds = (pv.Linear.cumulative, pv.Linear.ranges)
        queries += [kind(prior, unbiased) for kind in kinds for unbiased in (True, False)]
    if prior.names:
        queries += [pv.Linear.margins(prior, ["x", ("x", "y")], unbiased) for unbiased in (True, False)]
    asked = [
        *((query, "auto") for query in queries),
        (pv.Distribution(), "columns"),
        (pv.Distribution(), "arc"),
    ]
    for query, method in asked[:-1] if notion == pv.LDP() else asked:
        plan = pv.design(prior, 1.0, query, notion=notion, method=method)
        assert pv.Plan.from_json(plan.to_json()) == plan and str(plan.precision) in str(plan)
        nobody = plan.estimate(plan.tally(plan.privatize(people[:0])))
        assert not nobody.values.any() and str(nobody)
        tally = plan.tally(plan.privatize(people, np.random.default_rng(0)))
        for found in (plan.estimate(tally, reading) for reading in ("mmse", "unbiased", "mle")):
            assert np.isfinite(np.concatenate([found.values, *found.interval()])).all() and str(found)
            mean = found.mean(numbers)
            assert mean.interval()[0] <= mean.value <= mean.interval()[1]
            assert found.variance(numbers).std_error >= 0 and np.isfinite(found.covariance).all()
            if prior.points is None:
                assert found.quantile(0.5, numbers).value in numbers
            if prior.names:
                assert found.margin("x").values == pytest.approx(len(people))
            if len(prior) == 1:
                assert (mean.value, mean.std_error) == pytest.approx((1, 0), abs=1e-7)


def test_methods_agree_when_reports_say_it_all() -> None:
    Q, P = np.eye(3), np.array([0.5, 0.3, 0.2])
    counts = np.array([5.0, 3.0, 2.0])
    for answer in (channel_posteriors(counts, Q, P), channel_inversion(counts, Q, P, None, False)):
        moments = answer.moments(None)
        assert moments.mean == pytest.approx([5, 3, 2]) and moments.variance == pytest.approx(
            [0, 0, 0], abs=1e-6
        )


def test_the_curator_may_know_more_than_the_plan() -> None:
    """A plan for a set of priors, read with the exact one: the answer moves from the middle to the truth."""
    near, far = pv.Prior([0.6, 0.3, 0.1]), pv.Prior([0.2, 0.3, 0.5])
    chosen = pv.design(pv.PriorSet([near, far]), 1.0, pv.Histogram())
    rng = np.random.default_rng(4)
    people = rng.choice(3, 20_000, p=far.probabilities)
    tally = chosen.tally(chosen.privatize(people, rng))
    truth = np.bincount(people, minlength=3)
    middle, exact, wrong = (chosen.estimate(tally, prior=p) for p in (None, far, near))
    off = [float(np.abs(e.values - truth).max()) for e in (exact, middle, wrong)]
    assert off[0] < 0.2 * off[1] < off[2]
    assert exact.prior_check is not None and exact.prior_check > 0.001
    assert wrong.prior_check is not None and wrong.prior_check < 1e-6
    assert chosen.estimate(tally, prior=[0.2, 0.3, 0.5]).values.tolist() == exact.values.tolist()
    with raises(InvalidInput, argument="prior"):
        chosen.estimate(tally, prior=[0.5, 0.5])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_projection_is_the_nearest_histogram(values: list[float]) -> None:
    given = answer(values)
    found = given.project()
    total = given.reports
    assert (found.values >= 0).all()
    assert found.values.sum() == pytest.approx(total, abs=1e-6)
    assert found.method == "unbiased, projected"
    distance = np.linalg.norm(found.values - given.values)
    rng = np.random.default_rng(0)
    for other in np.vstack([rng.dirichlet(np.ones(len(values)), 50), np.eye(len(values))]) * total:
        assert distance <= np.linalg.norm(other - given.values) + 1e-6
    assert found.proportions.sum() == pytest.approx(1)
    assert found.project().values == pytest.approx(found.values, abs=1e-6)


def test_unbiased_may_be_negative_and_projection_mends_it() -> None:
    chosen, rng = PLANS["distribution"], np.random.default_rng(3)
    found = chosen.estimate(chosen.tally(chosen.privatize([0] * 60, rng, codes=True)), method="unbiased")
    assert found.values.min() < 0 <= found.project().values.min()
    assert found.values.sum() == pytest.approx(60) == found.project().values.sum()


@pytest.mark.parametrize(("centre", "ends"), [(-5.0, (0.0, 1.96)), (-1.0, (0.0, 1.96)), (1.0, (0.0, 2.96))])
def test_an_answer_below_zero_does_not_leave_an_interval_without_length(centre: float, ends) -> None:
    found = answer([centre, 10 - centre]).project()
    assert [float(end[0]) for end in found.interval()] == pytest.approx(ends, abs=0.01)
    assert found.interval()[1][1] == pytest.approx(10)
    single = Statistic(max(centre, 0.0), 1.0, centre=centre, limits=(0.0, 10.0))
    assert single.interval() == pytest.approx(ends, abs=0.01)


def test_projected_counts_are_those_of_everybody_who_reported() -> None:
    """The counts of single bits do not add up to the people; those after the projection do, also with weights."""
    plan = pv.design(pv.Prior.uniform(30), 1.0, pv.Distribution(), method="unary")
    reports = plan.privatize(np.arange(300) % 30, np.random.default_rng(0))
    for weights, total in ((None, 300), (np.arange(300) / 100, 448.5)):
        found = plan.estimate(plan.tally(reports, weights=weights))
        assert abs(found.values.sum() - total) > 5
        assert found.project().values.sum() == pytest.approx(total)


def test_intervals_widen_with_their_level() -> None:
    found = answer([5.0, 7.0])
    low, high = found.interval(0.95)
    assert high - low == pytest.approx([3.92, 3.92], abs=1e-3)
    assert (found.interval(0.99)[0] < low).all()
    assert found.proportions.tolist() == [0.5, 0.7]
    for level in (0.0, 1.0, 95):
        with raises(InvalidInput, argument="confidence"):
            found.interval(level)


@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
def test_every_estimate_says_what_it_assumes(method) -> None:
    chosen = PLANS["distribution"]
    found = chosen.estimate(chosen.tally(chosen.privatize([0, 1, 2, 3, 4] * 20, codes=True)), method=method)
    assert found.method == method and found.assumes == (ASSUMES[method],)


def test_counts_below_zero_are_explained_until_they_are_projected() -> None:
    plan = pv.design(pv.Prior.uniform(8), 1.0, pv.Distribution())
    few, rare = (
        plan.estimate(plan.tally(plan.privatize([0] * n, np.random.default_rng(1)))) for n in (40, 40_000)
    )
    assert (few.values < 0).any() and (few.interval()[1] >= 0).all() and (rare.values < 0).any()
    extreme = replace(rare, values=rare.values - 10 * rare.std_error)
    for found, whole in ((few, False), (extreme, True)):
        assert Note("negativeInterval" if whole else "negativeCount") in found.notes
        assert Note("mleOrProject") in found.notes
    quiet = (
        few.project(),
        plan.estimate(plan.tally([0] * 40), "mle"),
        plan.estimate(plan.tally([]), "unbiased"),
    )
    assert not any(note.code.startswith("negative") for found in quiet for note in found.notes)


def test_margins_explain_counts_below_zero_and_say_what_mle_gains() -> None:
    """The gain is within 30 % of what 40 collections measure; statistics that are no whole tables have none."""
    cells = {(a, b): (1 + a) * (1 + b**2) for a in range(3) for b in range(6)}
    prior, rng, people, errors = (
        pv.Prior.from_counts(cells, names=("a", "b")),
        np.random.default_rng(4),
        300,
        np.zeros(2),
    )
    query = pv.Linear.margins(prior, ["a", "b"], unbiased=True)
    plan = pv.design(prior, 0.5, query, rounds=30, progress=False)
    shares = query.rows(prior) @ prior.probabilities
    for _ in range(40):
        tally = plan.tally(plan.privatize(rng.choice(18, people, p=prior.probabilities), rng, codes=True))
        found = [plan.estimate(tally, method) for method in ("unbiased", "mle")]
        errors += [((each.proportions - shares) ** 2).sum() for each in found]
        negative = Note("mleIsNotNegative") in found[0].notes
        assert negative == (found[0].values < 0).any() and Note("mleOrProject") not in found[0].notes
    assert found[0].mle_gain > 1.2 and found[0].mle_gain == pytest.approx(errors[0] / errors[1], rel=0.3)
    assert Note("gainOfMle", {"times": found[0].mle_gain}) in found[0].notes
    for query in (pv.Linear.cumulative(prior, unbiased=True), pv.Sum(range(18), unbiased=True)):
        plan = pv.design(prior, 0.5, query)
        assert plan.estimate(plan.tally(plan.privatize(rng.choice(18, 99), rng, codes=True))).mle_gain is None


def test_numbers_at_the_ends_and_flat_priors_are_in_the_notes() -> None:
    """Of every estimate from the plan, of all cohorts together, and of a margin or projection of it."""
    labels = pv.Prior.cells([0, 10, 20, 1_000], outside="ends")
    plan = pv.design(labels, 1.0, pv.Distribution())
    found = plan.estimate(plan.tally(plan.privatize([-3.0, 15.0, 5_000.0])))
    both = combine_estimates([found, found])
    for one in (found, both, found.project()):
        assert one.notes[-2:] == found.remarks and len(found.remarks) == 2
    assert str(found.remarks[0]) == "Numbers below 0 were counted as 0, numbers above 1,000 as 1,000."
    assert f"LDP at {plan.certificate.ldp:.6g} holds for everybody" in str(found.remarks[1])
    given = pv.design(pv.Prior.cells([0, 10, 20, 1_000], [0.2, 0.3, 0.5]), 1.0, pv.Distribution())
    assert not given.estimate(given.tally([0])).remarks


def test_weights_and_offsets_move_a_sum_as_they_should() -> None:
    chosen = PLANS["sum"]
    plain = chosen.estimate(chosen.tally([0, 1, 1]))
    doubled = chosen.estimate(chosen.tally([0, 1, 1], weights=2.0, offsets=[1.0, 2.0, 3.0]))
    assert doubled.values == pytest.approx(2 * plain.values + 6)
    assert doubled.std_error == pytest.approx(2 * plain.std_error)
    moved = pv.design(PRIOR, 1.5, pv.Sum([3.0 * value + 10.0 for value in VALUES]))
    assert moved.estimate(moved.tally([0, 1, 1])).values == pytest.approx(3 * plain.values + 30, rel=1e-3)


READINGS = [
    (name, method)
    for name in NAMES
    for method in ("mmse", "unbiased", "mle")
    if method == "mmse" or PLANS[name].identifiable
]


def weighed(name: str, weights: object, method: str, people: int = 400) -> Estimate:
    chosen, rng = PLANS[name], np.random.default_rng(11)
    reports = chosen.privatize(rng.integers(0, len(chosen.labels), people), rng, codes=True)
    return chosen.estimate(chosen.tally(reports, weights=weights), method)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "method"), READINGS)
def test_equal_weights_only_change_the_unit(name: str, method: str) -> None:
    plain, ones, many = (weighed(name, weights, method) for weights in (None, 1.0, 250.0))
    near = {"rel": 1e-6, "abs": 1e-3} if method == "mle" else {"rel": 1e-9, "abs": 1e-7}
    assert ones.values == pytest.approx(plain.values, **near)
    assert many.values == pytest.approx(250 * plain.values, **{**near, "abs": 250 * near["abs"]})
    assert many.std_error == pytest.approx(250 * ones.std_error)
    assert (ones.total, many.total, plain.total) == (400, 100_000, None)
    assert ones.assumes == many.assumes == plain.assumes, "no word about weights"
    assert method != "mmse" or weighed(name, np.linspace(1, 2, 400), method).assumes != plain.assumes
    assert (
        many.proportions == pytest.approx(plain.values / (1 if name == "sum" else 400), **near)
        or name == "sum"
    )
    if method != "mle":  # there the spread is measured, and without weights it is the expected one
        assert ones.std_error == pytest.approx(plain.std_error)
    else:
        inside = plain.values > 20
        assert ones.std_error[inside] == pytest.approx(plain.std_error[inside], rel=0.25)


@pytest.mark.parametrize("name", NAMES)
def test_weights_multiply_posteriors(name: str) -> None:
    """Against the posterior of each report, one by one."""
    chosen, rng = PLANS[name], np.random.default_rng(12)
    people, c = rng.integers(0, len(chosen.labels), 60), rng.normal(size=60)
    reports = chosen.privatize(people, rng, codes=True)
    P = chosen.reference.probabilities
    if name == "grouped":
        likelihood = chosen.mechanism.matrix[:, reports]
    else:
        likelihood = np.stack([likelihood_of(chosen.mechanism, r) for r in reports], axis=1)
    posterior = P[:, None] * likelihood / (P @ likelihood)
    right = np.array([VALUES @ posterior @ c]) if name == "sum" else posterior @ c
    found = chosen.estimate(chosen.tally(reports, weights=c), "mmse")
    assert found.values == pytest.approx(right, rel=1e-6, abs=1e-6)
    assert found.assumes == (WEIGHTED["mmse"],)


@pytest.mark.parametrize(("name", "method"), [r for r in READINGS if r[1] != "mle"])
@given(generators)
def test_weighted_answers_add_up(name: str, method: str, rng) -> None:
    """Values add up over weights, and variances over people."""
    chosen = PLANS[name]
    reports = chosen.privatize(rng.integers(0, len(chosen.labels), 40), rng, codes=True)
    a, b = rng.normal(size=40), rng.normal(size=40)
    one, two, both = (chosen.estimate(chosen.tally(reports, weights=c), method) for c in (a, b, a + b))
    scale = np.abs(one.values).max() + np.abs(two.values).max()
    assert both.values == pytest.approx(one.values + two.values, abs=1e-9 * scale + 1e-9)
    if method == "mmse":
        first, rest = (
            chosen.estimate(chosen.tally(reports[h], weights=a[h]), method).std_error
            for h in (slice(0, 15), slice(15, None))
        )
        assert one.std_error == pytest.approx(np.hypot(first, rest), rel=1e-6)


@pytest.mark.parametrize("name", ["columns", "arc", "unary", "sum", "distribution", "arc_pool"])
def test_weights_without_a_likelihood_are_refused_by_mle(name: str) -> None:
    for weights in ([1.0, -1.0] * 200, 0.0):
        with raises(InvalidInput, argument="method"):
            weighed(name, weights, "mle")
        assert np.isfinite(weighed(name, weights, "unbiased").std_error).all()
    zero = weighed(name, 0.0, "mmse")
    assert zero.std_error.tolist() == [0.0] * len(zero.values) and zero.values == pytest.approx(
        0 * zero.values
    )
    with raises(InvalidInput, argument="weights"):
        _ = zero.proportions


@pytest.mark.parametrize("name", ["columns", "arc", "unary", "distribution", "arc_pool"])
def test_mle_with_weights_is_that_of_people_who_come_several_times(name: str) -> None:
    """The likelihood of a report of weight three is that of three such reports."""
    chosen, rng = PLANS[name], np.random.default_rng(13)
    reports = chosen.privatize(rng.choice(5, 4000, p=PRIOR.probabilities), rng, codes=True)
    c = rng.integers(1, 4, 4000)
    weighted = chosen.estimate(chosen.tally(reports, weights=c), "mle")
    repeated = chosen.estimate(chosen.tally(np.repeat(reports, c, axis=0)), "mle")
    assert weighted.values == pytest.approx(repeated.values, abs=0.5)
    assert (weighted.std_error > repeated.std_error).all()  # for there are fewer people than reports now
    others = {"arc_pool": "assumesNearestDistribution", "unary": "assumesCompositeLikelihood"}
    assert weighted.assumes == (Note(others[name]) if name in others else WEIGHTED["mle"],)


def test_unary_reports_under_another_prior_say_how_they_are_read() -> None:
    chosen = PLANS["unary"]
    tally = chosen.tally(chosen.privatize([0, 1, 2, 3, 4] * 20, codes=True))
    own_bits = (Note("assumesOwnBits"),)
    assert chosen.estimate(tally, prior=[0.2] * 5).assumes == own_bits
    assert chosen.estimate(tally).assumes != own_bits
    weighted = chosen.tally(chosen.privatize([0, 1, 2, 3, 4] * 20, codes=True), weights=2.0)
    assert chosen.estimate(weighted, prior=[0.2] * 5).assumes == own_bits


def test_the_prior_check_merges_rare_reports_and_stays_silent_on_few() -> None:
    assert channel_check(np.array([3.0, 1.0]), np.eye(2), np.array([0.5, 0.5])) is None
    assert channel_check(np.zeros(2), np.eye(2), np.array([0.5, 0.5])) is None
    law = np.array([0.5, 0.49, 0.005, 0.005])
    assert channel_check(1000 * law, np.eye(4), law).p_value == pytest.approx(1.0)
    assert channel_check(np.array([500.0, 400.0, 50.0, 50.0]), np.eye(4), law).p_value < 1e-6


@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
@pytest.mark.parametrize(("kind", "query"), PAIRS)
def test_of_nobody_nothing_is_known_for_certain(kind: str, query: str, method) -> None:
    chosen = pair_plan(kind, query)
    tally = chosen.tally(chosen.privatize([]))
    if method == "mmse" or chosen.identifiable:
        found = chosen.estimate(tally, method)
        assert not found.values.any() and not found.std_error.any()
        assert found.prior_check is None and found.reports == 0


@pytest.mark.parametrize(
    "numbers", [pv.Prior.cells([0, 1, 2, 8], [0.5, 0.3, 0.2]), pv.Prior.grid([0, 1, 8], [0.5, 0.3, 0.2])]
)
@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
def test_of_nobody_no_share_is_known(numbers: pv.Prior, method) -> None:
    plan = pv.design(numbers, 1.0, pv.Distribution())
    found = plan.estimate(plan.tally([]), method)
    asks = [lambda: found.proportions, lambda: found.mean([1, 2, 3]), lambda: found.variance([1, 2, 3])]
    for ask in (*asks, *([lambda: found.quantile(0.5)] if numbers.edges is not None else [])):
        with raises(InvalidInput, argument="reports"):
            ask()


def test_estimates_of_cohorts_combine() -> None:
    chosen = PLANS["columns"]
    parts = [chosen.estimate(chosen.tally(chosen.privatize([0, 1, 2] * n, codes=True))) for n in (20, 30)]
    both = combine_estimates(parts)
    assert both.values == pytest.approx(parts[0].values + parts[1].values) and both.reports == 150
    assert both.std_error == pytest.approx(np.hypot(parts[0].std_error, parts[1].std_error))
    checked = [replace(parts[0], prior_check=p_value) for p_value in (0.02, None, 0.3)]
    assert combine_estimates(checked).prior_check == 0.04, "of two checks one is small twice as often"
    with raises(InvalidInput, argument="estimates"):
        combine_estimates([parts[0], answer([1.0])])
    with raises(InvalidInput, argument="estimates"):
        combine_estimates([])


def test_estimates_are_added_up_label_by_label() -> None:
    a, b = answer([10.0, 20.0, 30.0], ("x", "y", "z")), answer([1.0, 2.0, 3.0], ("z", "x", "y"))
    b = replace(b, std_error=np.array([1.0, 2.0, 3.0]))
    both = combine_estimates([a, b])
    assert both.labels == ("x", "y", "z") and both.values.tolist() == [12.0, 23.0, 31.0]
    assert (both.std_error**2 - a.std_error**2).tolist() == pytest.approx([4.0, 9.0, 1.0])
    with raises(InvalidInput, argument="estimates"):
        combine_estimates([a, answer([1.0, 2.0, 3.0], ("x", "y", "w"))])


def test_mle_of_bits_says_that_it_is_a_composite_likelihood() -> None:
    bits = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram(), method="unary")
    table = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Distribution())
    found, other = (
        plan.estimate(plan.tally(plan.privatize([0, 1, 2] * 50)), method="mle") for plan in (bits, table)
    )
    assert (found.assumes, other.assumes) == ((Note("assumesCompositeLikelihood"),), (ASSUMES["mle"],))
    assert combine_estimates([found, other, found]).assumes == found.assumes + other.assumes


def test_estimates_compare_and_hash_without_an_error() -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram())
    one, two = (plan.estimate(plan.tally([0, 1, 2])) for _ in range(2))
    assert one == one and one != two and len({one, two}) == 2


@pytest.mark.parametrize("name", NAMES)
def test_auto_reads_a_plan_as_it_was_designed(name: str) -> None:
    chosen = PLANS[name]
    tally = chosen.tally(chosen.privatize([0, 1, 2, 3, 4] * 20, codes=True))
    found = chosen.estimate(tally)
    assert found.method == ("unbiased" if chosen.query.unbiased else "mmse") == chosen.query.default_method
    assert found.values.tolist() == chosen.estimate(tally, found.method).values.tolist()
    assert found.labels == chosen.query.statistic_labels(chosen.labels)
    assert found.notes[0] == Note("methodAssumes", {"method": found.method, "assumes": found.assumes})
    other = replace(found, method="mle")
    assert combine_estimates([found, found]).method == found.method
    assert combine_estimates([found, other]).method == "mixed"


def test_several_statistics_are_estimated_at_once() -> None:
    rows, prior = [[0, 1, 2, 3, 4], [1, 1, 0, 0, 0]], pv.Prior([0.2] * 5)
    chosen = replace(PLANS["columns"], query=pv.Linear(rows, names=("sum", "first two")))
    histogram = PLANS["columns"]
    reports = histogram.privatize([0, 1, 2, 3, 4] * 20, np.random.default_rng(0), codes=True)
    found, counts = (p.estimate(p.tally(reports), "mmse", prior=prior) for p in (chosen, histogram))
    assert found.labels == ("sum", "first two") and not found.histogram
    assert found.values == pytest.approx(np.array(rows) @ counts.values)
    with raises(InvalidInput, argument="estimate"):
        found.project()


@pytest.mark.parametrize("kind", ["table", "grouped", "arc", "unary", "subset", "hashing"])
@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
def test_statistics_of_many_rows_are_those_of_each(kind: str, method: str) -> None:
    """For all rows at once the mean is linear in the histogram, and variances are those of the rows one by one."""
    chosen = pair_plan(kind, "Histogram")
    P, rng = chosen.prior.probabilities, np.random.default_rng(8)
    counts = chosen.reader.count(chosen.privatize(rng.choice(5, 3000, p=P), rng, codes=True))
    rows = rng.normal(size=(3, 5))
    if method != "mmse" and not chosen.reader.identifies():
        with pytest.raises(NotIdentifiable):
            chosen.reader.answer(method, counts, P, rows, True)
        return
    for population in (True, False):
        whole = chosen.reader.answer(method, counts, P, None, population)
        found = chosen.reader.answer(method, counts, P, rows, population)
        each = [chosen.reader.answer(method, counts, P, row[None], population) for row in rows]
        units = chosen.reader.answer(method, counts, P, np.eye(5), population)
        assert found.mean == pytest.approx(rows @ whole.mean)
        assert found.variance == pytest.approx(np.concatenate([one.variance for one in each]))
        assert units.variance == pytest.approx(whole.variance, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(values=[0, 1, 2, 3, 4])])
def test_a_reading_that_leans_on_a_contradicted_prior_says_so_first(query: pv.Query) -> None:
    plan, rng = pv.design(PRIOR, 1.0, query), np.random.default_rng(21)
    found = plan.estimate(
        plan.tally(plan.privatize(rng.choice(5, 20_000, p=PRIOR.probabilities[::-1]), rng, codes=True))
    )
    lines = str(found).splitlines()
    assert found.method == "mmse" and found.prior_check < 0.01
    assert lines[:1] == [f"Warning: {found.warning}"]
    assert ("method unbiased" in lines[0]) == plan.identifiable
    assert (found.unbiased_difference is not None) == plan.identifiable


@pytest.mark.parametrize("query", [pv.Distribution(), pv.Histogram()])
def test_a_warning_on_many_values_advises_the_method_that_the_plan_allows(query: pv.Query) -> None:
    prior, rng = pv.Prior.zipf(600), np.random.default_rng(23)
    plan = pv.design(prior, 1.0, query)
    found = plan.estimate(plan.tally(plan.privatize(rng.choice(600, 20_000), rng)), "mmse")
    assert found.unbiased_difference is None and found.warning is not None
    assert (found.warning.code == "contradictedPrior") == plan.identifiable
    assert combine_estimates([found, found]).warning.code == found.warning.code
    if query.unbiased:
        assert plan.identifiable and plan.estimate(found.readings[0].tally).warning is None


def test_a_difference_from_the_unbiased_reading_is_in_its_standard_errors() -> None:
    plan, rng = PLANS["distribution"], np.random.default_rng(22)
    tally = plan.tally(plan.privatize(rng.choice(5, 20_000, p=PRIOR.probabilities[::-1]), rng, codes=True))
    mmse, unbiased = plan.estimate(tally, "mmse"), plan.estimate(tally, "unbiased")
    expected = (np.abs(mmse.values - unbiased.values) / unbiased.std_error).max()
    assert mmse.unbiased_difference == pytest.approx(expected) and expected > 4
    assert f"method unbiased, which does not use the prior, is up to {expected:.1f} of its own" in str(mmse)
    assert "standard errors away from this one." in str(mmse)
    assert unbiased.unbiased_difference is None and unbiased.warning is None
    assert "This method does not rest on the prior" in str(unbiased)


WORK = pv.Prior({"Private": 0.736, "Self-employed": 0.121, "Government": 0.142, "No pay": 0.001})


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Guess(), pv.Sum(values=[1, 2, 3, 0])])
def test_the_prior_check_says_first_which_changes_it_never_notices(query: pv.Query) -> None:
    plan = pv.design(WORK, 1.0, query)
    people = np.array([14_720, 220, 5_040, 20])  # 11 % have moved, and on average reports do not show it
    counts = np.rint(people @ plan.channel.matrix).astype(int)
    found = plan.estimate(plan.tally(np.repeat(np.arange(len(counts)), counts)))
    assert not plan.identifiable and found.prior_check > 0.9 and found.warning is None
    assert found.unseen_changes == Note(
        "unseenChangesAmong", {"first": "Government", "second": "Self-employed"}
    )
    checks = [found.notes.index(note) for note in found.notes if note.code.startswith("check")]
    assert found.notes[checks[0] - 1] == found.unseen_changes and str(found.unseen_changes) in str(found)
    assert combine_estimates([found, found]).unseen_changes == found.unseen_changes


def test_a_plan_that_tells_all_values_apart_has_no_unseen_changes_if_reports_are_many() -> None:
    plan, rng = PLANS["distribution"], np.random.default_rng(18)
    many, few = (
        plan.estimate(
            plan.tally(plan.privatize(rng.choice(5, people, p=PRIOR.probabilities), rng, codes=True))
        )
        for people in (20_000, 20)
    )
    assert many.unseen_changes is None and many.noticeable_change is not None
    assert few.unseen_changes == RARE_CHANGES and str(RARE_CHANGES) in str(few)


def test_unseen_changes_need_no_pair_of_equal_values() -> None:
    table = Table(TOTAL // 8 * np.array([[5, 3], [4, 4], [3, 5]]))  # the second row is the mean of the others
    plan = replace(pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram()), mechanism=table)
    found = plan.estimate(plan.tally(np.repeat([0, 1], 500)))
    assert found.unseen_changes == Note("unseenSomeChanges")


@pytest.mark.parametrize("people", [3, 10, 20_000])
def test_the_prior_check_never_says_that_the_prior_fits(people: int) -> None:
    plan, rng = PLANS["distribution"], np.random.default_rng(23)
    found = plan.estimate(
        plan.tally(plan.privatize(rng.choice(5, people, p=PRIOR.probabilities), rng, codes=True))
    )
    text = str(found)
    assert "Prior check: " in text and "fits" not in text and found.warning is None
    assert (found.prior_check is None) == (people == 3)
    assert (found.noticeable_change is None) == (people < 20_000)
    assert people < 20_000 or 0.01 < found.noticeable_change < 0.2


def test_a_check_of_cohorts_together_is_as_weak_as_the_weakest() -> None:
    plan, rng = PLANS["distribution"], np.random.default_rng(24)
    parts = [
        plan.estimate(
            plan.tally(plan.privatize(rng.choice(5, n, p=PRIOR.probabilities), rng, codes=True)), "mmse"
        )
        for n in (5_000, 20_000)
    ]
    both = combine_estimates(parts)
    assert both.noticeable_change == parts[0].noticeable_change > parts[1].noticeable_change
    assert both.unbiased_difference == max(part.unbiased_difference for part in parts)
    unknown = replace(parts[1], unbiased_difference=None, noticeable_change=None)
    assert combine_estimates([parts[0], unknown]).unbiased_difference is None
    assert combine_estimates([parts[0], unknown]).noticeable_change is None


def test_statistics_are_read_where_the_distribution_is_not_identified() -> None:
    """A plan for the last of five shares has two reports: they determine that share and no other."""
    prior, query = pv.Prior([0.3, 0.2, 0.2, 0.2, 0.1]), pv.Sum([0, 0, 0, 0, 1], unbiased=True)
    plan, people = pv.design(prior, 1.0, query, notion=pv.LDP()), np.repeat(np.arange(5), 4_000)
    assert not plan.identifiable and plan.channel.matrix.shape == (5, 2)
    tally = plan.tally(plan.privatize(people, rng=np.random.default_rng(0)))
    found = plan.estimate(tally)
    assert abs(found.values[0] - 4_000) < 4 * found.std_error[0]
    assert found.std_error[0] == pytest.approx(np.sqrt(plan.expected_mse * 20_000), rel=0.1)
    both = replace(
        plan, query=pv.Linear([[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]], names=("rare", "common"), unbiased=True)
    )
    with pytest.raises(NotIdentifiable) as refused:
        both.estimate(replace(tally, plan=both.id))
    assert refused.value.statistics == ("common",)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("method", "prior", "shares"),
    [
        ("columns", [0.0005, 0.4995, 0.5], [0.3, 0.35, 0.35]),  # far more people have the first value
        ("unary", [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]),  # nobody has it, and hardly any bit is set
        ("subset", [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]),
    ],
)
def test_intervals_of_a_few_people_hold_where_the_prior_is_far_off(method, prior, shares):
    """At least 90 % of 300: with a coverage of 95 % fewer hold about once in 10,000 times."""
    plan = pv.design(pv.Prior(prior), 7.0, pv.Distribution(), method=method)
    rng, people = np.random.default_rng(0), 100 if method == "columns" else 30
    truth, covered = people * shares[0], 0
    for _ in range(300):
        reports = plan.privatize(rng.choice(3, people, p=shares), rng=rng)
        low, high = plan.estimate(plan.tally(reports)).interval()
        covered += low[0] <= truth <= high[0]
    assert covered >= 270


@pytest.mark.parametrize("method", ["columns", "unary", "subset"])
def test_no_count_is_certain_after_one_report(method):
    plan = pv.design(pv.Prior([0.2, 0.3, 0.5]), 1.0, pv.Distribution(), method=method)
    tally = plan.tally(plan.privatize([0], rng=np.random.default_rng(0)))
    for read in ("unbiased", "mle"):
        assert plan.estimate(tally, method=read).std_error.min() > 0.1
