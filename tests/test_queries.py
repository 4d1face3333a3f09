"""Queries: the expected error of a channel, against its definition."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import QUERIES, at_most, close, make_query
from priorveil.certify import exp_above, exp_below
from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.errors import InvalidInput, InvalidPrior, TooLarge
from priorveil.information import identifiable, variance
from priorveil.notions import LIP
from priorveil.priors import Budget, Prior, PriorSet
from priorveil.queries import (
    MATRICES,
    Convex,
    Criterion,
    Cumulative,
    Distribution,
    Guess,
    Histogram,
    Linear,
    Margins,
    Query,
    Ranges,
    Sum,
    read_query,
)
from refusals import raises
from strategies import budgets, channels, generators, levels, priors, sizes

CONVEX = [query for query in QUERIES if not make_query(query, 2).unbiased]


@given(st.data(), st.floats(-3, 3), st.floats(-9, 9))
def test_errors_by_definition(data, weight, offset):
    weight, offset, prior = round(weight, 40), round(offset, 40), data.draw(priors())
    channel = data.draw(channels(len(prior))).drop_unused()
    joint = prior.probabilities[:, None] * channel.matrix
    posterior, d = joint / joint.sum(axis=0), len(prior)
    a = weight * np.arange(d) + offset
    histogram = sum(
        joint[x, y] * ((np.eye(d)[x] - posterior[:, y]) ** 2).sum() for x, y in np.ndindex(joint.shape)
    )
    total = sum(joint[x, y] * (a[x] - a @ posterior[:, y]) ** 2 for x, y in np.ndindex(joint.shape))
    wrong = 1 - sum(column.max() for column in joint.T)
    assert Histogram().error(channel, prior) == pytest.approx(histogram, abs=1e-9)
    assert Sum(a).error(channel, prior) == pytest.approx(total, abs=1e-7)
    assert Guess().error(channel, prior) == pytest.approx(wrong, abs=1e-9)


@given(st.data())
def test_any_convex_gain_covers_the_others(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior)))
    squares = Convex(lambda p: (p**2).sum(axis=1))
    best = Convex(lambda p: p.max(axis=1))
    for general, special in ((squares, Histogram()), (best, Guess())):
        assert general.error(channel, prior) == pytest.approx(special.error(channel, prior), abs=1e-9)
        assert general.no_report(prior) == pytest.approx(special.no_report(prior), abs=1e-9)


def test_no_channel_is_below_the_bound_of_any_convex_gain():
    rng = np.random.default_rng(3)
    for size in (2, 4, 6):
        prior, level, weights = Prior(rng.dirichlet(np.ones(size))), rng.uniform(0.2, 2.0), rng.random(size)
        for gain in (lambda p, w=weights: np.abs(p @ w - 0.4), lambda p, w=weights: (w * p**3).sum(axis=1)):
            plan, bound = (
                design(prior, level, Convex(gain)),
                Convex(gain).closed_form_bound(prior, Budget(level)),
            )
            assert 0 < bound <= plan.expected_mse * (1 + 1e-9)
    cubes, likely = Convex(lambda p: (p**3).sum(axis=1)), Prior([0.5, 0.3, 0.2])
    reached = design(likely, 2.0, cubes)  # every value is likely enough for Theorem 3
    assert cubes.closed_form_bound(likely, Budget(2.0)) == pytest.approx(reached.expected_mse, rel=1e-9)
    assert cubes.closed_form_bound(likely, Budget(math.inf, 1.0)) == 0


@pytest.mark.parametrize("query", CONVEX, ids=lambda q: q.__name__)
@given(st.data(), generators, st.floats(0, 1))
def test_utilities_are_convex(query, data, rng, share):
    prior = data.draw(priors())
    asked = make_query(query, len(prior))
    posteriors = rng.dirichlet(np.ones(len(prior)), 2)
    one, other = posteriors / prior.probabilities
    ends = asked.utility(np.array([one, other]), prior)
    middle = asked.utility((share * one + (1 - share) * other)[None], prior)[0]
    assert at_most(middle, float(share * ends[0] + (1 - share) * ends[1]))


def test_no_report_is_the_spread_of_the_prior():
    prior = Prior([0.2, 0.3, 0.5])
    assert Histogram().no_report(prior) == pytest.approx(1 - 0.04 - 0.09 - 0.25)
    assert Sum([0, 1, 2]).no_report(prior) == pytest.approx(0.3 + 2.0 - 1.3**2)
    assert Guess().no_report(prior) == pytest.approx(0.5)
    assert Distribution().no_report(prior) == math.inf


@pytest.mark.parametrize("rare", [[1e-11], [1e-11, 2e-11], [1e-15, 0.3]])
@pytest.mark.parametrize("level", [0.01, 1.0, 30.0])
def test_errors_are_exact_where_a_value_is_all_but_certain(rare, level):
    """One less what is known has no digits left here; and a bound from rounding would not be one."""
    prior = Prior([1 - sum(rare), *rare])
    P = [Fraction(w, prior.total) for w in prior.weights]
    Q = np.random.default_rng(1).dirichlet(np.ones(3), len(P)) * 0.5 + np.eye(3)[: len(P)] * 0.5
    channel = Channel.from_weights(Q)
    joint = [
        [p * Fraction(q) for p, q in zip(P, column, strict=True)] for column in channel.matrix.T.tolist()
    ]
    whole = sum(sum(column) for column in joint)
    guess = whole - sum(max(column) for column in joint)
    squares = whole - sum(sum(j * j for j in column) / sum(column) for column in joint)
    assert Guess().error(channel, prior) == pytest.approx(float(guess), rel=1e-12)
    assert Histogram().error(channel, prior) == pytest.approx(float(squares), rel=1e-12)
    left = 1 - max(P)
    assert Guess().no_report(prior) == pytest.approx(float(left), rel=1e-13)
    assert Histogram().no_report(prior) == pytest.approx(float(1 - sum(p * p for p in P)), rel=1e-13)
    lo, hi = exp_above(-level), exp_below(level)
    best = 1 - max(p * lo + min(p * (hi - lo), 1 - lo) for p in P)
    known = sum(
        p * p * (lo * lo + 2 * lo * (1 - lo) + min((hi - lo) * (1 - lo), (1 - lo) ** 2 / p)) for p in P
    )
    assert Guess().closed_form_bound(prior, Budget(level)) == pytest.approx(float(best), rel=1e-9)
    assert Histogram().closed_form_bound(prior, Budget(level)) == pytest.approx(float(1 - known), rel=1e-9)


@pytest.mark.parametrize("query", [Guess(), Histogram()], ids=["guess", "histogram"])
@pytest.mark.parametrize("level", [0.01, 1.0, 5.0, 24.0])
def test_a_proven_bound_is_not_above_the_error_that_is_sampled(query, level):
    """It was, by 8 in 10**8, while errors were what was left of one."""
    plan = design(Prior([1 - 1e-11, 1e-11]), level, query)
    exact = Fraction(1, 10**11) * (1 if isinstance(query, Guess) else 2)
    assert plan.lower_bound <= plan.expected_mse <= plan.no_report * (1 + 1e-15) <= exact * (1 + 1e-9)
    assert plan.efficiency >= 0


def test_a_huge_origin_does_not_cost_precision():
    prior, channel = Prior([0.25, 0.75]), Channel([[0.7, 0.3], [0.4, 0.6]])
    near, far = Sum([0, 1]).error(channel, prior), Sum([2.0**40, 2.0**40 + 1]).error(channel, prior)
    assert far == pytest.approx(near, rel=1e-3)
    assert Sum([1e12, 1e12 + 1]).error(channel, prior) == pytest.approx(near, rel=1e-3)


# The free bounds


@given(priors(), budgets())
def test_bounds_are_below_the_prior_alone_and_fall_with_the_budget(prior, budget):
    wider = Budget(budget.lower + 0.5, budget.upper + 0.5)
    for query in QUERIES:
        asked = make_query(query, len(prior))
        if not asked.unbiased:  # without a report an unbiased estimate does not exist
            assert at_most(asked.closed_form_bound(prior, budget), asked.no_report(prior))
        assert at_most(asked.closed_form_bound(prior, wider), asked.closed_form_bound(prior, budget))


@given(sizes, levels)
def test_the_histogram_bound_for_light_values(d, eps):
    prior = Prior.uniform(max(d, math.ceil(1 + math.exp(eps))))
    squares = float((prior.probabilities**2).sum())
    expected = 1 - (math.exp(eps) - 1 + math.exp(-eps)) * squares
    assert close(Histogram().closed_form_bound(prior, Budget(eps)), expected)


@given(priors(), levels)
def test_the_histogram_bound_as_written(prior, eps):
    P, lo, hi = prior.probabilities, math.exp(-eps), math.exp(2 * eps)
    tau = (1 - lo) / (hi - lo)
    inner = lo**2 + 2 * lo * (hi - lo) * tau + (hi - lo) ** 2 * tau * np.minimum(1, tau / P)
    assert Histogram().closed_form_bound(prior, Budget(eps, 2 * eps)) == pytest.approx(
        max(0, 1 - P**2 @ inner), abs=1e-9
    )


@pytest.mark.parametrize(("size", "eps"), [(83, 4.0)])
def test_the_bound_in_the_notes(size, eps):
    assert Histogram().closed_form_bound(Prior.uniform(size), Budget(eps)) == pytest.approx(0.354, abs=5e-4)
    assert Histogram().no_report(Prior.uniform(size)) == pytest.approx(0.988, abs=5e-4)
    assert Histogram().closed_form_bound(Prior.zipf(size), Budget(2.0)) == pytest.approx(0.675, abs=6e-4)


def test_the_bound_is_met_by_soft_subsets_of_mass_tau():
    """Six light values, tau = 1/3: the three pairs as reports, every lift two or a half."""
    prior, pairs = Prior.uniform(6), np.repeat(np.eye(3), 2, axis=0)
    channel = Channel((0.5 + 1.5 * pairs) / 3)
    eps = math.log(2)
    assert LIP().epsilon(channel, prior) == pytest.approx(eps)
    assert Histogram().error(channel, prior) == pytest.approx(
        Histogram().closed_form_bound(prior, Budget(eps))
    )


# Distribution


@given(st.data())
def test_the_variance_of_an_invertible_channel_is_that_of_its_inverse(data):
    d = data.draw(sizes)
    P = data.draw(st.just(Prior.uniform(d)) | st.just(Prior.zipf(d))).probabilities
    noise = data.draw(generators).dirichlet(np.ones(d), d)
    Q = 0.5 * np.eye(d) + 0.5 * noise
    law, inverse = P @ Q, np.linalg.inv(Q)
    spread = inverse.T @ (np.diag(law) - np.outer(law, law)) @ inverse
    assert Distribution().error(Channel(Q), Prior(P)) == pytest.approx(float(np.trace(spread)), rel=1e-6)


@given(st.data())
def test_splitting_a_report_teaches_nothing(data):
    prior = Prior.zipf(data.draw(sizes))
    Q = 0.5 * np.eye(len(prior)) + 0.5 * data.draw(channels(len(prior))).matrix[:, :1] @ np.ones(
        (1, len(prior))
    )
    Q /= Q.sum(axis=1, keepdims=True)
    doubled = np.column_stack([0.3 * Q, 0.7 * Q])
    one, two = (Distribution().error(Channel(M), prior) for M in (Q, doubled))
    assert one == pytest.approx(two, rel=1e-6)


def test_a_channel_that_does_not_identify_has_infinite_variance():
    merged = Channel([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert Distribution().error(merged, Prior.uniform(3)) == math.inf
    assert not identifiable(merged.matrix)
    assert not identifiable(np.array([[0.5, 0.5], [0.5, 0.5]]))
    assert identifiable(np.array([[0.6, 0.4], [0.5, 0.5]]))


@given(st.data())
def test_truth_is_the_floor_of_a_distribution(data):
    prior = data.draw(priors())
    truth = Distribution().error(Channel.identity(len(prior)), prior)
    assert truth == pytest.approx(Distribution().closed_form_bound(prior, Budget(math.inf, 500.0)), abs=1e-9)
    assert at_most(truth, Distribution().closed_form_bound(prior, Budget(1.0)))


# Linear


@given(st.data(), generators)
def test_the_errors_of_a_linear_query_are_those_of_its_rows(data, rng):
    prior = data.draw(priors())
    channel, W = data.draw(channels(len(prior))), rng.normal(size=(3, len(prior)))
    for unbiased in (False, True):
        one_by_one = [Sum(row, unbiased=unbiased).error(channel, prior) for row in W]
        together = Linear(W, unbiased=unbiased).error(channel, prior)
        assert together == pytest.approx(sum(one_by_one), rel=1e-6, abs=1e-9)
    rows = [Sum(row) for row in W]
    assert Linear(W).no_report(prior) == pytest.approx(sum(row.no_report(prior) for row in rows), abs=1e-9)
    assert Linear(W).closed_form_bound(prior, Budget(1.0)) == pytest.approx(
        sum(row.closed_form_bound(prior, Budget(1.0)) for row in rows), abs=1e-9
    )


@given(st.data())
def test_the_unbiased_sum_is_estimated_from_the_inverse_of_the_channel(data):
    d = data.draw(st.integers(2, 6))
    P, a = Prior.zipf(d), np.arange(d) ** 2.0
    Q = 0.5 * np.eye(d) + 0.5 * data.draw(generators).dirichlet(np.ones(d), d)
    law, score = P.probabilities @ Q, np.linalg.inv(Q) @ a
    expected = law @ score**2 - (law @ score) ** 2
    assert Sum(a, unbiased=True).error(Channel(Q), P) == pytest.approx(expected, rel=1e-6)


def test_an_unbiased_query_needs_only_its_own_statistics():
    merged, prior = Channel([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), Prior.uniform(3)
    assert Linear([[1, 0, 0], [0, 1, 1]], unbiased=True).error(merged, prior) == pytest.approx(4 / 9)
    assert Sum([0, 1, 2], unbiased=True).error(merged, prior) == math.inf


_ATTRIBUTES = Prior.joint({(a, b): 1 / 6 for a in "xy" for b in "uvw"}, names=("a", "b"))


_DOSES = Prior.joint({(age, dose): 1 / 6 for age in "xy" for dose in (0, 1, 5)}, names=("age", "dose"))
LINEAR = [
    Linear(np.eye(6)),
    Linear(np.tri(6)),
    Linear([[1.0, 5.0, 2.0, 0.0, 1.0, 1.0]]),
    Linear(-np.eye(6)),
    Linear.cumulative(Prior.uniform(6)),
    Linear.ranges(Prior.uniform(6)),
    Linear.margins(_ATTRIBUTES, ["a", ("b",)]),
    Linear.averages(_DOSES, "dose", by="age"),
    Linear.log_odds(Prior.zipf(6)),
]


@pytest.mark.parametrize("query", LINEAR, ids=lambda query: query.matrix.kind)
def test_a_document_holds_the_whole_query(query):
    channel = Channel(np.random.default_rng(0).dirichlet(np.ones(4), 6))
    again = read_query(json.loads(json.dumps(query.document())))
    assert again == query and hash(again) == hash(query)
    assert again.error(channel, Prior.zipf(6)) == query.error(channel, Prior.zipf(6))


def test_a_structured_matrix_is_written_out_only_by_its_users():
    query = Linear.cumulative(Prior.uniform(1000))
    assert len(json.dumps(query.document()["matrix"])) < 50
    assert query.title(Prior.uniform(1000)) == "cumulative shares" and query.statistic_name == "share"
    assert "rows" not in vars(query.matrix)
    for write in (
        lambda: Cumulative(10**6),
        lambda: Ranges(10**4),
        lambda: Margins((("x",),), ((10**9, 0),)),
    ):
        with pytest.raises(TooLarge):
            write()


_AVERAGES = {
    "kind": "averages", "number": "x", "by": ["y"], "groups": [0, 1],
    "numbers": ["0.0", "1.0"], "means": ["0.0", "1.0"], "shares": ["0.5", "0.5"],
}  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "cumulative", "size": 10**6},
        {"kind": "cumulative", "size": 0},
        {"kind": "ranges", "size": "3"},
        {"kind": "margins", "attributes": [["x"]], "cells": [[10**9, 0]]},
        {"kind": "margins", "attributes": [["x"]], "cells": [[0, -1]]},
        {"kind": "margins", "attributes": [["x"], ["y"]], "cells": [[0, 1]]},
        {"kind": "margins", "attributes": [["x"], ["y"]], "cells": [[0, 1], [0]]},
        {"kind": "margins", "attributes": [], "cells": []},
        {**_AVERAGES, "shares": ["0.5", "0.0"]},
        {**_AVERAGES, "groups": [0, 2]},
        {**_AVERAGES, "numbers": ["0.0"]},
        {**_AVERAGES, "means": ["inf", "0.0"]},
        {"kind": "log_odds", "shares": ["0.5", "0.0"], "baseline": 0},
        {"kind": "log_odds", "shares": ["0.5", "0.5"], "baseline": 2},
        {"kind": "log_odds", "shares": ["1.0"], "baseline": 0},
        {"kind": "dense", "rows": [["nan", "1.0"]]},
    ],
    ids=json.dumps,
)
def test_documents_of_impossible_matrices_are_refused(document):
    with pytest.raises((InvalidInput, TooLarge)):
        Linear.read({"name": "Linear", "matrix": document, "names": None, "unbiased": False})


@pytest.mark.parametrize("kind", MATRICES)
def test_every_matrix_is_written_out_as_its_shape_says(kind):
    matrix = next(query.matrix for query in LINEAR if query.matrix.kind == kind)
    assert matrix.read(json.loads(json.dumps(matrix.document()))) == matrix
    assert matrix.is_identity == (matrix.rows is None)
    assert matrix.is_identity or matrix.rows.shape == matrix.shape
    assert matrix.is_identity or matrix.counts_people == np.isin(matrix.rows, (0, 1)).all()
    assert matrix.title


@given(st.data())
def test_a_histogram_is_the_identity(data):
    """A permutation of the identity asks for the same, and its errors are those of any matrix."""
    prior = data.draw(priors(data.draw(st.integers(2, 6))))
    channel, turned = data.draw(channels(len(prior))), Linear(np.eye(len(prior))[::-1])
    assert not turned.asks_all_counts
    assert turned.error(channel, prior) == pytest.approx(Histogram().error(channel, prior), abs=1e-9)
    assert turned.no_report(prior) == pytest.approx(Histogram().no_report(prior), abs=1e-9)


def test_cumulative_counts_and_ranges_are_named_after_their_ends():
    prior, counts = Prior.uniform(["low", "middle", "high"]), np.array([1.0, 2.0, 4.0])
    cumulative, ranges = Linear.cumulative(prior), Linear.ranges(prior, unbiased=True)
    assert (cumulative.matrix.rows @ counts).tolist() == [1, 3, 7]
    assert cumulative.statistic_labels(prior.labels) == ("up to low", "up to middle", "up to high")
    assert (ranges.matrix.rows @ counts).tolist() == [1, 3, 7, 2, 6, 4]
    names = ("low", "low to middle", "low to high", "middle", "middle to high", "high")
    assert ranges.statistic_labels(prior.labels) == names
    assert not cumulative.unbiased and ranges.unbiased
    assert Linear.cumulative(Prior.cells([-1, 0.5, 10], [0.5, 0.5])).names == ("below 0.5", "up to 10")


def test_structured_queries_take_sets_of_priors_and_probabilities():
    cells, joint = (
        Prior.cells([0, 1, 2], [0.5, 0.5]),
        Prior.joint({("a", 1): 0.5, ("b", 1): 0.5}, names=("x", "y")),
    )
    for ask in (Linear.cumulative, Linear.ranges):
        for known in (PriorSet([cells]), PriorSet.ball(cells, 0.1)):
            assert ask(known) == ask(cells)
        assert ask([0.5, 0.5]) == ask(Prior([0.5, 0.5])) and ask({"a": 0.5, "b": 0.5}) == ask(
            Prior.uniform("ab")
        )
        for wrong in (3, None, ["a"]):
            with raises(InvalidInput, argument="probabilities"):
                ask(wrong)
    assert Linear.margins(PriorSet([joint]), ["x"]) == Linear.margins(joint, ["x"])
    with raises(InvalidInput, argument="prior", hint="Prior.joint"):
        Linear.margins([0.5, 0.5], ["x"])
    plan = design(PriorSet([cells]), 1.0, Linear.cumulative(PriorSet([cells]), unbiased=True))
    assert plan.query.names == ("below 1", "up to 2")


def test_margins_follow_the_labels_even_where_cells_are_left_out():
    cells = {
        ("young", "no", 1): 0.25,
        ("young", "yes", 2): 0.25,
        ("old", "no", 2): 0.25,
        ("old", "no", 1): 0.25,
    }
    prior = Prior.joint(cells, ("age", "smokes", "dose"), impossible="leave out")
    query = Linear.margins(prior, ["age", ("smokes", "age")])
    assert query.statistic_labels(prior.labels) == (
        "age=young",
        "age=old",
        "smokes=no, age=young",
        "smokes=yes, age=young",
        "smokes=no, age=old",
    )
    assert (query.matrix.rows @ [1, 2, 4, 8]).tolist() == [3, 12, 1, 2, 12]
    assert read_query(query.document()) == query
    assert Linear.margins(prior, "age") == Linear.margins(prior, [("age",)])


@pytest.mark.parametrize("unbiased", [False, True])
def test_a_written_identity_fits_priors_of_its_size_only(unbiased):
    for names in (None, ["x", "y", "z"]):
        query = Linear(np.eye(3), names=names, unbiased=unbiased)
        query.require_fits(Prior.uniform(3))
        for ask in (query.require_fits, query.ceiling, lambda prior, query=query: design(prior, 1.0, query)):
            with raises(InvalidInput, argument="matrix"):
                ask(Prior.uniform(4))
    with raises(InvalidInput, argument="matrix"):
        read_query(query.document()).require_fits(Prior.uniform(4))


@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
@pytest.mark.parametrize(
    ("row", "known"), [([1, 0, 0], False), ([1, -1, 0], True), ([1, 1, 1], True), ([3, 2, 2.5], True)]
)
def test_whether_a_statistic_is_estimable_does_not_depend_on_its_unit(row, known, scale):
    channel, P = np.array([[0.7, 0.3], [0.3, 0.7], [0.5, 0.5]]), np.array([0.2, 0.3, 0.5])
    for offset in (0.0, 0.7):
        found = variance(channel, P, scale * (np.array([row]) + offset))
        assert math.isfinite(found) == known
        if known:
            assert found == pytest.approx(
                scale**2 * variance(channel, P, np.array([row], float)), rel=1e-6, abs=1e-9 * scale**2
            )


def test_special_cases_are_linear_queries():
    assert Linear(np.eye(3)) == Histogram() != Distribution() == Histogram(unbiased=True)
    assert all(query.asks_all_counts for query in (Linear(np.eye(3)), Histogram(), Distribution()))
    assert Histogram().rows(Prior.uniform(9)) is None
    assert Linear([[1, 2]]) == Sum([1, 2]) != Sum([1, 2], unbiased=True)
    assert [q.default_method for q in (Sum([1]), Sum([1], unbiased=True), Distribution(), Guess())] == [
        "mmse",
        "unbiased",
        "unbiased",
        "mmse",
    ]
    assert Sum([1, 2]).statistic_labels("ab") == ("sum",)
    assert Linear([[1, 2], [2, 2]], names=("x", "y")).statistic_labels("ab") == ("x", "y")
    assert Linear([[1, 2], [2, 2]]).statistic_labels("ab") == ("row 1", "row 2")


def test_a_query_says_what_its_statistics_are():
    names = {
        query.statistic_name for query in (Histogram(), Linear(np.tri(3)), Guess(), Histogram(unbiased=True))
    }
    assert names == {"share"}
    assert (
        Sum([0, 1]).statistic_name == "average per person"
        and Linear([[1, 2], [0, 1]]).statistic_name == "statistic"
    )
    assert [query for query in (*LINEAR, Guess(), Sum([1, 2])) if query.takes_offsets] == [
        LINEAR[2],
        Sum([1, 2]),
    ]
    assert not Linear(-np.eye(6)).counts_people and Linear.ranges(Prior.uniform(6)).counts_people
    assert Guess().savable and not Convex(lambda p: p.max(axis=1)).savable


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.__name__)
def test_the_criterion_of_a_linear_query_says_whether_the_prior_is_used(query):
    asked = make_query(query, 3)
    linear = (Criterion.VARIANCE if asked.unbiased else Criterion.SQUARED_ERROR,)
    assert asked.criterion in (linear if asked.linear else (Criterion.WRONG_GUESSES, Criterion.LOST_GAIN))


def test_statistics_that_are_the_same_for_all_need_no_report():
    prior = Prior.uniform(3)
    assert Linear([[2, 2, 2], [1, 1, 1]]).same_for_all(prior) and not Sum([1, 1, 2]).same_for_all(prior)
    assert Histogram().same_for_all(Prior.uniform(1)) and not Guess().same_for_all(prior)


# Bad input


@pytest.mark.parametrize("query", [Histogram(), Guess(), Distribution(), Sum([1, 2, 4])])
def test_the_order_in_which_a_prior_is_written_changes_no_error(query) -> None:
    rows = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.3, 0.2, 0.5]]
    channel = Channel(rows, inputs=["a", "b", "c"])
    error = query.error(channel, Prior({"a": 0.5, "b": 0.3, "c": 0.2}))
    assert query.error(channel, Prior({"c": 0.2, "a": 0.5, "b": 0.3})) == pytest.approx(error, rel=1e-12)
    assert query.error(channel, Prior([0.5, 0.3, 0.2])) == pytest.approx(error, rel=1e-12)
    with pytest.raises(InvalidPrior):
        query.error(channel, Prior({"x": 0.5, "b": 0.3, "c": 0.2}))


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("size", [1e160, 1e-160, 10**400, math.inf, math.nan])
def test_numbers_whose_squares_do_not_fit_into_floats_are_refused(size, unbiased):
    with pytest.raises(InvalidInput):
        Sum([0, size], unbiased=unbiased)
    if isinstance(size, float):
        with pytest.raises(InvalidInput):
            Linear([[size, 0.0], [size, size]], unbiased=unbiased)
    assert Linear([[1e-160, 1.0]], unbiased=unbiased).matrix.rows is not None  # only the largest matters
    assert Linear([[0.0, 0.0]], unbiased=unbiased).no_report(Prior([0.5, 0.5])) == 0


# -- averages by group ---------------------------------------------------------------------------------------


def overtime_prior(seed: int = 0, groups: int = 3, points: tuple[float, ...] = (0, 10, 20, 60)) -> Prior:
    rng = np.random.default_rng(seed)
    cells = [(f"g{group}", x) for group in range(groups) for x in points]
    shares = dict(zip(cells, rng.dirichlet(np.full(len(cells), 2.0)).tolist(), strict=True))
    return Prior.joint(shares, ("age", "overtime"), grids=("overtime",))


def test_influence_rows_are_the_derivatives_of_averages() -> None:
    """One more person with value `x` moves the averages by the rows, which are zero on average."""
    prior = overtime_prior()
    query, P = Linear.averages(prior, "overtime", by="age"), prior.probabilities
    rows, numbers = query.rows(prior)[:3], prior.domain.numbers("overtime")
    members = prior.domain.margin(["age"])[1]

    def averages(shares):
        return members @ (shares * numbers) / (members @ shares)

    step = 1e-7
    for x in range(len(prior)):
        moved = (1 - step) * P + step * np.eye(len(P))[x]
        assert (averages(moved) - averages(P)) / step == pytest.approx(rows[:, x], rel=1e-4, abs=1e-3)
    assert rows @ P == pytest.approx(0, abs=1e-9)


def test_averages_read_back_from_their_document() -> None:
    prior = overtime_prior()
    query = Linear.averages(prior, "overtime", by=["age"])
    same = read_query(json.loads(json.dumps(query.document())))
    assert same == query and same.number_by_group == query.number_by_group == ("overtime", ("age",))
    assert np.array_equal(same.rows(prior), query.rows(prior))
    assert query.unbiased and not query.takes_offsets and not query.counts_people


@pytest.mark.parametrize("seed", [0, 1])
def test_a_plan_for_averages_beats_one_for_the_whole_table_and_tells_the_counts(seed: int) -> None:
    prior = overtime_prior(seed)
    query = Linear.averages(prior, "overtime", by="age")
    influence = Linear(query.rows(prior)[:3], unbiased=True)
    errors = {
        q: influence.error(design(prior, 1.0, q, rounds=200).channel, prior)
        for q in (query, influence, Distribution())
    }
    assert errors[query] < 1.0005 * errors[influence]  # the rows of counts cost next to nothing
    assert errors[query] < 0.85 * errors[Distribution()]


def test_averages_are_by_all_other_attributes_unless_some_are_named() -> None:
    cells = {(a, b, n): 0.125 for a in ("old", "young") for b in ("no", "yes") for n in (0, 40)}
    prior = Prior.joint(cells, ("age", "smokes", "overtime"), grids="overtime")
    assert Linear.averages(prior, "overtime") == Linear.averages(prior, "overtime", by=["age", "smokes"])
    for by in ("sex", [], ["age", "age"]):
        with raises(InvalidInput, argument="by"):
            Linear.averages(prior, "overtime", by=by)


def test_whether_a_query_is_unbiased_is_a_truth_value() -> None:
    with raises(InvalidInput, argument="unbiased", value="work"):
        Histogram("work")
    assert Histogram(np.bool_(True)) == Histogram(unbiased=True)


def _define(name: str, module: str = __name__) -> type[Query]:
    return type(name, (Guess,), {"__module__": module})


def test_a_query_is_known_by_its_name_as_written():
    first, second = _define("TopTwo"), _define("TopTwo")
    assert second().document() == {"name": "TopTwo"}
    assert type(read_query(second().document())) is second is not first


@pytest.mark.parametrize("name", ["Histogram", "Guess", "TopThree"])
def test_a_query_does_not_take_the_name_of_another_module(name):
    if name not in Query.by_name:
        _define(name, "elsewhere")
    with raises(InvalidInput, argument="class", value=name):
        _define(name)
