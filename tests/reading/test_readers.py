"""Every reader against the channel of its mechanism: counts, likelihoods and scores of single reports."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import ForeignReport, InvalidInput, NotIdentifiable, TooLarge
from priorveil.mechanisms import MECHANISMS, Arc, Mechanism, Orders
from priorveil.mechanisms.arc.cells import ArcCells
from priorveil.mechanisms.bit_reports import BitReports
from priorveil.reading import order_information, reader
from priorveil.reading.families import READERS, reader_of
from priorveil.reading.orders_reader import OrdersReader
from references import likelihood as likelihood_of
from sample_plans import PAIRS, PRIOR, TRUTH, named_plan, pair_plan

Array = np.ndarray

each_pair = pytest.mark.parametrize(("kind", "query"), PAIRS)
each_kind = pytest.mark.parametrize(("kind", "query"), dict(PAIRS).items())


def test_every_mechanism_has_a_reader() -> None:
    readers = {type(reader_of(pair_plan(*pair).mechanism)) for pair in dict(PAIRS).items()}
    assert readers == set(READERS)
    assert {kind for kind, _ in PAIRS} == set(MECHANISMS)


# -- sums over all reports -----------------------------------------------------------------------------------


def places_with_weights(size: int) -> tuple[Array, Array]:
    """A few of the places `0 .. size - 1`, and weights that sum quadratic functions over all places exactly."""
    if size <= 3:
        return np.arange(size), np.ones(size)
    nodes = np.array([0, (size - 1) // 2, size - 1])
    t, exact = nodes / (size - 1), (2 * size - 1) / (6 * (size - 1))
    return nodes, size * np.linalg.solve(np.vander(t, increasing=True).T, [1.0, 0.5, exact])


def cell_reports(cells: ArcCells) -> tuple[Array, Array]:
    """Reports and weights: within a cell a likelihood is linear in the report, and an owned output is one report."""
    heavy = cells.line.heavy
    parts = [places_with_weights(int(size)) for size in cells.sizes[heavy:]]
    reports = [base + nodes for base, (nodes, _) in zip(cells.base[heavy:], parts, strict=True)]
    weights = [np.ones(heavy), *(weights for _, weights in parts)]
    return np.concatenate([np.arange(heavy), *reports]), np.concatenate(weights)


def all_reports(mechanism: Mechanism) -> tuple[Array, Array]:
    """All reports and their channel, a column each; of arcs some, whose columns stand for all by their weights."""
    if isinstance(mechanism, Arc):
        reports, weights = cell_reports(mechanism.cells)
    elif isinstance(mechanism, Orders):
        pairs = [cell_reports(cells) for cells in mechanism.cells]
        shifted = [own + (i << mechanism.line.bits) for i, (own, _) in enumerate(pairs)]
        reports, weights = np.concatenate(shifted), np.concatenate([weights for _, weights in pairs])
    elif isinstance(mechanism, BitReports):
        codes = np.arange(1 << mechanism.size, dtype=np.uint64)[:, None]
        return codes[mechanism.accepts(codes)], mechanism.matrix
    else:
        return np.arange(mechanism.outputs or 0), mechanism.matrix
    Q = np.stack([likelihood_of(mechanism, y) for y in reports], axis=1)
    return reports, Q * weights


@each_pair
def test_the_likelihood_is_that_of_the_channel(kind: str, query: str) -> None:
    """For arcs: of the reports themselves, not of the cells in which they are counted."""
    plan = pair_plan(kind, query)
    reports, Q = all_reports(plan.mechanism)
    assert Q.sum(axis=1) == pytest.approx(1.0, rel=1e-9)
    found = plan.likelihood(reports)
    assert found.shape == (len(reports), len(plan.labels))
    assert found / found.sum(axis=1, keepdims=True) == pytest.approx((Q / Q.sum(axis=0)).T, rel=1e-9)


@each_pair
def test_the_mean_score_of_a_value_is_its_statistics(kind: str, query: str) -> None:
    plan = pair_plan(kind, query)
    rows = plan.query.rows(plan.reference)
    W = np.eye(len(plan.labels)) if rows is None else rows
    reports, Q = all_reports(plan.mechanism)
    try:
        scores = plan.scores(reports)
    except NotIdentifiable:
        assert not plan.identifiable
        with pytest.raises(NotIdentifiable):
            plan.estimate(plan.tally(reports), "unbiased")
        return
    assert Q @ scores == pytest.approx(W.T, abs=1e-9 * np.abs(W).max())


@each_pair
def test_the_mean_square_of_scores_by_value_is_that_of_all_reports(kind: str, query: str) -> None:
    plan, P = pair_plan(kind, query), PRIOR.probabilities
    rows = np.array([[1.0, -2.0, 0.5, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
    reports, Q = all_reports(plan.mechanism)
    for statistics in (None, rows):
        try:
            scores = plan.reader.scores(reports, P, statistics)
        except NotIdentifiable:
            with pytest.raises(NotIdentifiable):
                plan.reader.score_squares(P, statistics)
            continue
        squares = plan.reader.score_squares(P, statistics)
        assert squares == pytest.approx((Q @ scores**2).T, rel=1e-6)


@each_pair
def test_the_mean_of_the_scores_is_the_unbiased_estimate(kind: str, query: str) -> None:
    """Subsets are counted with lifts that are rounded to 2**-30."""
    plan, rng = pair_plan(kind, query), np.random.default_rng(5)
    reports = plan.privatize(rng.choice(PRIOR.labels, 400, p=TRUTH), rng)
    try:
        estimate = plan.estimate(plan.tally(reports), "unbiased")
    except NotIdentifiable as error:
        with pytest.raises(NotIdentifiable) as other:
            plan.scores(reports)
        assert other.value.message == error.message
        return
    rounding = 1e-7 if kind == "subset" else 1e-9
    assert plan.scores(reports).mean(axis=0) == pytest.approx(estimate.proportions, abs=rounding)


def test_scores_of_some_statistics_need_no_more_than_these() -> None:
    """Values of a group are reported alike, but a sum that is the same for them is determined."""
    plan = named_plan("grouped")
    with pytest.raises(NotIdentifiable) as refused:
        plan.scores([0])
    assert refused.value.statistics == plan.labels
    alike = np.array([[2.0, 2.0, 5.0, 5.0, 5.0]])
    scores = plan.reader.scores([0, 1], PRIOR.probabilities, alike)
    assert plan.mechanism.matrix @ scores == pytest.approx(alike.T)


# -- counting ------------------------------------------------------------------------------------------------


@each_kind
def test_counts_with_weights_are_those_of_repeated_reports(kind: str, query: str) -> None:
    plan, rng = pair_plan(kind, query), np.random.default_rng(6)
    reports, weights = plan.privatize(rng.choice(PRIOR.labels, 300), rng), rng.integers(0, 4, 300)
    repeated = plan.reader.count(np.repeat(reports, weights, axis=0))
    assert plan.reader.count(reports, weights.astype(float)) == pytest.approx(repeated)
    assert plan.reader.people(repeated) == weights.sum()
    assert not plan.reader.count(reports[:0]).any()


# -- shapes and refusals -------------------------------------------------------------------------------------


@each_kind
def test_blocks_are_the_rows_of_the_likelihood(
    kind: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, rng = pair_plan(kind, query), np.random.default_rng(7)
    reports = plan.privatize(rng.choice(PRIOR.labels, 30), rng)
    whole = plan.likelihood(reports)
    monkeypatch.setattr(reader, "_BLOCK_ENTRIES", 40)
    monkeypatch.setattr(reader, "MOST_MATRIX_ENTRIES", 149)
    blocks = list(plan.likelihood_blocks(reports))
    assert len(blocks) == 4
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    with pytest.raises(TooLarge):
        plan.likelihood(reports)
    assert plan.likelihood(reports[:0]).shape == (0, 5) and not list(plan.likelihood_blocks(reports[:0]))


def test_scores_of_too_many_reports_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = named_plan("columns")
    monkeypatch.setattr(reader, "MOST_MATRIX_ENTRIES", 10)
    assert plan.scores([0, 1]).shape == (2, 5)
    with pytest.raises(TooLarge):
        plan.scores([0, 1, 0])


@each_kind
def test_foreign_and_missing_reports_have_no_likelihood(kind: str, query: str) -> None:
    plan = pair_plan(kind, query)
    reports = plan.privatize(["a", "b"], np.random.default_rng(8))
    foreign, missing = reports.copy(), plan.privatize(["a", None], missing="pass")
    foreign[1] = np.iinfo(reports.dtype).max
    for ask in (plan.likelihood, plan.likelihood_blocks, plan.scores):
        with pytest.raises(ForeignReport):
            ask(foreign)
        with pytest.raises(InvalidInput):
            ask(missing)


# -- arcs in many orders ---------------------------------------------------------------------------------------


def test_scores_of_many_values_are_those_of_the_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows are solved for together and a few one by one: the reports or the statistics, whichever are fewer."""
    plan, rng = pv.design(pv.Prior.zipf(30), 1.0, pv.Distribution(), method="arc"), np.random.default_rng(9)
    assert isinstance(plan.mechanism, Orders)
    reports, P = plan.privatize(rng.integers(0, 30, 50), rng), plan.reference.probabilities
    exact = plan.scores(reports)
    monkeypatch.setattr(order_information, "_WRITTEN_OUT", 1)
    large = OrdersReader(Orders(plan.mechanism.line, plan.mechanism.count))
    for part in (reports, reports[:7], reports[:0]):
        assert large.scores(part, P, None) == pytest.approx(exact[: len(part)], rel=1e-4, abs=1e-4)


def test_scores_of_many_values_add_up_to_the_answer_within_its_noise() -> None:
    plan, rng = pv.design(pv.Prior.zipf(150), 1.0, pv.Distribution(), method="arc"), np.random.default_rng(10)
    reports = plan.privatize(rng.integers(0, 150, 20), rng)
    answer = plan.estimate(plan.tally(reports), "unbiased")
    assert (np.abs(plan.scores(reports).sum(axis=0) - answer.values) < 0.01 * answer.std_error).all()


def test_threads_may_share_a_reader() -> None:
    """Of more tallies at a time than a reader keeps. A dictionary that evicts entries raised KeyError here."""
    plan = named_plan("arc_pool")
    shared = OrdersReader(Orders(plan.mechanism.line, plan.mechanism.count))
    tallies = [shared.count([report]) for report in plan.privatize(["a"] * 40, np.random.default_rng(1))]
    P = PRIOR.probabilities
    alone = [shared.mle_distribution(tally, P).shares for tally in tallies]
    order = list(range(40)) * 500
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: shared.mle_distribution(tallies[i], P).shares, order))
    finally:
        sys.setswitchinterval(interval)
    for i, answer in zip(order, answers, strict=True):
        np.testing.assert_array_equal(answer, alone[i])


@pytest.mark.parametrize("name", ["columns", "arc", "unary", "arc_pool"])
def test_what_several_readings_need_is_computed_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most likely distribution for all statistics of a tally; the test of a prior for each number of reports."""
    plan, rng, calls = named_plan(name), np.random.default_rng(2), []
    for step in ("mle_distribution", "prior_test"):
        compute = getattr(type(plan.reader), step)

        def count(*arguments: object, step: str = step, compute: Any = compute) -> object:
            calls.append(step)
            return compute(*arguments)

        monkeypatch.setattr(type(plan.reader), step, count)
    small, large = (
        plan.tally(plan.privatize(rng.choice(5, n, p=TRUTH), rng, codes=True)) for n in (901, 902)
    )
    first = plan.estimate(small, "mle")
    first.contrast([1, 0, 0, 0, -1])
    assert sorted(calls) == ["mle_distribution", "prior_test"]
    again = plan.estimate(small, "unbiased")
    assert len(calls) == 2 and again.prior_check == first.prior_check
    other = plan.estimate(large, "mle")
    uniform = plan.reader.prior_check(small.counts, np.full(5, 0.2))
    assert calls[2:] == ["prior_test", "mle_distribution", "prior_test"]
    assert other.noticeable_change < first.noticeable_change
    assert uniform is None or uniform.p_value != first.prior_check
