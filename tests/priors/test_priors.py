"""Priors, sets of priors, secrets and budgets: exact inside, strict at the door."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from checks import close
from priorveil import DI, LIP, Channel, Histogram, Linear, Plan, Sum, design, leakage
from priorveil.arrays import integer_weights
from priorveil.errors import InvalidFile, InvalidInput, InvalidPrior, TooLarge
from priorveil.priors import Budget, Prior, PriorSet, Secret
from priorveil.priors.sets import PriorBall, PriorInterval
from refusals import raises
from strategies import budgets, generators, levels, prior_sets, priors, secrets, sizes

# Prior


@given(priors())
def test_weights_are_the_prior_exactly(prior):
    assert math.gcd(*prior.weights) == 1
    assert prior.total == sum(prior.weights)
    assert sum(prior.fractions) == 1
    assert [float(p) for p in prior.fractions] == pytest.approx(prior.probabilities, rel=1e-13)


@given(st.lists(st.floats(1e-300, 1.0), min_size=1, max_size=6))
def test_dyadic_integers_are_in_the_proportions_of_the_floats(numbers):
    whole = integer_weights(np.array(numbers))
    assert all(
        Fraction(w, whole[0]) == Fraction(x) / Fraction(numbers[0])
        for w, x in zip(whole, numbers, strict=True)
    )


def test_counts_are_kept_without_rounding():
    prior = Prior.from_counts({"a": 10**18 + 1, "b": 10**18})
    assert prior.weights == (10**18 + 1, 10**18)
    assert prior == Prior.from_counts([10**18 + 1, 10**18], labels=["a", "b"])
    assert prior != Prior.from_counts({"a": 1, "b": 1})


def test_many_ways_to_the_same_prior():
    by_map, by_list = Prior({"yes": 0.25, "no": 0.75}), Prior([0.25, 0.75], labels=["yes", "no"])
    counted, seen = (
        Prior.from_counts({"yes": 1, "no": 3}),
        Prior.from_values(["no", "yes", "no", "no"] * 10, ["yes", "no"]),
    )
    assert by_map == by_list == counted == seen
    assert len({by_map, by_list, counted, seen}) == 1
    assert Prior.of(by_map) is by_map


@given(priors())
def test_equal_priors_have_equal_hashes(prior):
    again = Prior.from_counts(prior.weights)
    assert again == prior
    assert hash(again) == hash(prior)


def test_smoothing_is_a_choice():
    with raises(InvalidPrior, argument="counts[1]", hint="smoothing"):
        Prior.from_counts([3, 0])
    assert Prior.from_counts([3, 0], smoothing=1).weights == (4, 1)
    assert Prior.from_counts([3, 0], smoothing=0.5).weights == (7, 1)
    with raises(InvalidInput, argument="smoothing"):
        Prior.from_counts([3, 0], smoothing=0)


def test_values_outside_the_domain_are_refused():
    with raises(InvalidInput, argument="values[1]"):
        Prior.from_values(["a", "z"], domain=["a", "b"], smoothing=1)
    assert Prior.from_values([10, 9, 10] * 10).labels == (9, 10)


def test_uniform_and_zipf():
    assert Prior.uniform(3).weights == (1, 1, 1)
    assert Prior.zipf(4, 2.0).probabilities * 4**2 == pytest.approx(
        Prior.zipf(4, 2.0).probabilities[0] * np.array([16, 4, 16 / 9, 1])
    )
    assert Prior.zipf(5, 0.0).probabilities == pytest.approx(0.2)


@given(priors())
def test_pushing_forward_adds_masses(prior):
    pushed = prior.push(lambda x: x // 2)
    assert (
        pushed.total * math.gcd(*(sum(prior.weights[2 * i : 2 * i + 2]) for i in range(len(pushed))))
        == prior.total
    )
    expected = [float(sum(prior.fractions[2 * i : 2 * i + 2])) for i in range(len(pushed))]
    assert pushed.probabilities == pytest.approx(expected)
    assert prior.push(lambda x: x) == prior
    assert len(prior.push(lambda x: "all")) == 1


def test_rounding_of_a_few_ulps_is_fine():
    assert len(Prior([0.1] * 10)) == 10
    assert len(Prior(np.full(1000, 1 / 1000))) == 1000


# Several attributes

CELLS = {("young", "yes"): 0.1, ("young", "no"): 0.3, ("old", "yes"): 0.2, ("old", "no"): 0.4}


def test_a_joint_prior_has_the_levels_of_its_attributes():
    prior = Prior.joint(CELLS, names=("age", "smokes"))
    assert prior.labels == tuple(CELLS) and prior.names == ("age", "smokes")
    assert prior.levels == {"age": ("young", "old"), "smokes": ("yes", "no")}
    assert Prior([0.5, 0.5]).levels == {} and Prior([0.5, 0.5]).names is None


def test_cells_of_a_joint_prior_are_all_combinations_of_levels():
    scattered = {("a", 1): 0.25, ("b", 2): 0.5, ("a", 2): 0.25}
    prior = Prior.joint(scattered, ("letter", "digit"), smoothing=0.25)
    assert prior.labels == (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    assert prior.fractions == (Fraction(1, 4), Fraction(1, 4), Fraction(1, 8), Fraction(3, 8))


@pytest.mark.parametrize("zero", [{}, {("b", 1): 0.0}])
def test_a_cell_of_probability_zero_needs_a_decision(zero):
    cells = {("a", 1): 0.25, ("b", 2): 0.5, ("a", 2): 0.25, **zero}
    with raises(InvalidPrior, argument="probabilities", hint="impossible='leave out'"):
        Prior.joint(cells, ("letter", "digit"))
    left = Prior.joint(cells, ("letter", "digit"), impossible="leave out")
    assert left.labels == (("a", 1), ("b", 2), ("a", 2))
    assert left.levels == {"letter": ("a", "b"), "digit": (1, 2)}
    with raises(InvalidInput, argument="smoothing"):
        Prior.joint(cells, ("letter", "digit"), smoothing=0.25, impossible="leave out")
    with raises(InvalidInput, argument="impossible"):
        Prior.joint(cells, ("letter", "digit"), impossible="drop")


@given(generators)
def test_what_holds_for_the_tuple_holds_for_every_attribute(rng):
    """Also where cells are left out, which makes the attributes dependent."""
    cells = [(a, b) for a in range(3) for b in range(4) if rng.random() < 0.7] or [(0, 0), (1, 1)]
    P = rng.dirichlet(np.ones(len(cells)))
    prior = Prior.joint(dict(zip(cells, P, strict=True)), ("a", "b"), impossible="leave out")
    channel = Channel(rng.dirichlet(np.full(4, 0.5), len(cells)))
    whole = leakage(channel, prior)
    for name in prior.names:
        rows = prior.domain.margin([name])[1] * P
        part = leakage(channel, prior, Secret(rows / rows.sum(axis=1, keepdims=True)))
        assert part.lip_lower <= whole.lip_lower * (1 + 1e-9) and part.lip_upper <= whole.lip_upper * (
            1 + 1e-9
        )
        assert part.pufferfish <= whole.ldp * (1 + 1e-9)


def test_too_many_combinations_are_refused_before_they_are_listed():
    cells = {(i, i, i, i): 1 / 64 for i in range(64)}
    with pytest.raises(TooLarge):
        Prior.joint(cells, ("a", "b", "c", "d"))
    assert len(Prior.joint(cells, ("a", "b", "c", "d"), impossible="leave out")) == 64


@pytest.mark.parametrize(
    "known", [Prior.joint(CELLS, ("age", "smokes")), Prior([0.5, 0.5], [0.5, ("a", 1e-7)])]
)
@pytest.mark.parametrize("kind", [lambda p: p, lambda p: PriorSet([p, p]), lambda p: PriorSet.ball(p, 0.02)])
def test_plans_keep_labels_and_names(known, kind):
    plan = design(kind(known), 1.0, Histogram())
    read = Plan.from_json(plan.to_json())
    assert read.labels == known.labels and read.reference.names == known.names
    assert read.id == plan.id


def test_probabilities_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Prior([0.5, 0.5]).probabilities[0] = 1


def test_long_priors_print_short():
    assert repr(Prior.uniform(1000, assumed=False)) == "Prior(1000 values, 0.001 to 0.001)"


# What was only assumed


def test_a_prior_is_assumed_where_nothing_was_said_about_shares() -> None:
    assert Prior.uniform(3).assumed and Prior.uniform(["a", "b"]).assumed
    assert Prior.grid([0, 20, 80]).assumed and Prior.cells([0, 20, 80]).assumed
    assert Prior.grid([0, 20, 80]).probabilities.tolist() == pytest.approx([0.125, 0.5, 0.375])
    assert Prior.cells([0, 20, 80]).probabilities.tolist() == pytest.approx([0.25, 0.75])
    stated = (
        Prior.uniform(3, assumed=False),
        Prior.grid([0, 20, 80], assumed=False),
        Prior.cells([0, 20, 80], lambda _: 1.0),
        Prior.grid([0, 80], sample=[10, 20]),
        Prior([0.5, 0.5]),
        Prior.from_counts([1, 1]),
    )
    assert not any(prior.assumed for prior in stated)
    assert Prior([0.2, 0.8], assumed=True).assumed  # a guess of one's own
    assert Prior.grid([0, 80], [0.2, 0.8], assumed=True).assumed
    with pytest.raises(AttributeError):
        Prior.uniform(2).assumed = False


def test_an_assumed_prior_stays_assumed() -> None:
    assumed = Prior({"a": 0.25, "b": 0.75}, assumed=True)
    known = Prior({"a": 0.25, "b": 0.75})
    derived = (
        assumed.align_to(["b", "a"]),
        assumed.push(str.upper),
        assumed.with_domain(["x", "y"]),
        assumed.centre,
        Prior.of(assumed),
        Prior.read(assumed.document(), ["a", "b"]),
        Prior.joint({("a", 0): 0.5, ("b", 0): 0.5}, ("one", "other"), assumed=True),
        Secret([[0.6, 0.4], [0.2, 0.8]]).nearest(assumed),
        PriorSet.ball(assumed, 0.1),
        PriorSet.ball(assumed, 0.1).centre,
        PriorSet.read(PriorSet.ball(assumed, 0.1).document(), ["a", "b"]),
        PriorSet([known, assumed]),
        PriorSet([known, assumed]).centre,
        PriorSet.read(PriorSet([known, assumed]).document(), ["a", "b"]),
    )
    assert all(prior.assumed for prior in derived)
    assert known == assumed and "assumed" not in known.document()
    assert not PriorSet.ball(known, 0.1).assumed and not PriorSet([known, known]).assumed


# PriorSet


def constraints(known: PriorSet) -> dict[str, object]:
    """The set as a linear programme: over `p`, and for a ball over the mass moved too."""
    d, kind = len(known), known.kind
    if kind == "interval":
        bounds = list(zip(map(float, known.lower), map(float, known.upper), strict=True))
        return {"A_eq": np.ones((1, d)), "b_eq": [1], "bounds": bounds}
    if kind == "ball":
        middle, eye = known.middle.probabilities, np.eye(d)
        A_ub = np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye]), [[0] * d + [0.5] * d]])
        b_ub = np.concatenate([middle, -middle, [float(known.radius)]])
        A_eq = [[1] * d + [0] * d]
        return {"A_eq": A_eq, "b_eq": [1], "A_ub": A_ub, "b_ub": b_ub, "bounds": [(0, None)] * 2 * d}
    raise AssertionError(kind)


def lowest_by_programme(known: PriorSet, column: np.ndarray) -> float:
    if known.members:
        return min(float(p.probabilities @ column) for p in known.members)
    given_set = constraints(known)
    cost = np.zeros(len(given_set["bounds"]))
    cost[: len(column)] = column
    return float(linprog(cost, **given_set).fun)


@given(st.data(), generators)
def test_extremes_are_those_of_a_linear_programme(data, rng):
    d = data.draw(sizes)
    known, columns = data.draw(prior_sets(d)), rng.choice([0.0, 0.2, 0.5, 1.0, 7.0], (d, 2))
    low, high = known.extremes(columns)
    assert low == pytest.approx([lowest_by_programme(known, c) for c in columns.T], abs=1e-6)
    assert high == pytest.approx([-lowest_by_programme(known, -c) for c in columns.T], abs=1e-6)


@given(st.data(), generators)
def test_exact_extremes_agree_with_floats_and_with_the_corners(data, rng):
    d = data.draw(st.integers(2, 5))
    known, columns = data.draw(prior_sets(d)), rng.integers(0, 1000, (d, 3))
    low, high = known.extremes(columns)
    means = known.vertices() @ columns
    assert means.min(axis=0) == pytest.approx(low, abs=1e-9)
    assert means.max(axis=0) == pytest.approx(high, abs=1e-9)
    for column, least, most in zip(columns.T.tolist(), low, high, strict=True):
        assert [float(v) for v in known.exact_extremes(column)] == pytest.approx([least, most], abs=1e-9)


def holds(known: PriorSet, P: np.ndarray) -> bool:
    """Whether a prior lies in the set, by its definition; for a list, whether it is one of the members."""
    if isinstance(known, PriorInterval):
        ends = [np.array(side, dtype=float) for side in (known.lower, known.upper)]
        return bool((ends[0] - 1e-9 <= P).all() and (ends[1] + 1e-9 >= P).all())
    if isinstance(known, PriorBall):
        return bool(np.abs(P - known.middle.probabilities).sum() / 2 <= float(known.radius) + 1e-9)
    return any(np.allclose(P, member.probabilities, rtol=0, atol=1e-9) for member in known.members)


@given(st.data())
def test_corners_and_centre_lie_in_the_set(data):
    known = data.draw(prior_sets(data.draw(st.integers(2, 5))))
    for corner in known.vertices():
        assert corner.sum() == pytest.approx(1)
        assert holds(known, corner)
    assert known.members or holds(known, known.centre.probabilities)
    assert all(holds(known, member.probabilities) for member in known.members)


@given(st.data(), generators)
def test_best_is_a_member_that_attains_the_maximum(data, rng):
    d = data.draw(sizes)
    known, direction = data.draw(prior_sets(d)), rng.normal(size=d)
    assert known.best(direction) @ direction == pytest.approx(float(known.extremes(direction[:, None])[1][0]))


def test_an_interval_of_one_prior_is_that_prior():
    for P in ([0.3, 0.7], [0.1, 0.2, 0.7], [0.1] * 10):
        low, high = PriorSet.interval(P, P).extremes(np.eye(len(P)))
        assert low == pytest.approx(P)
        assert high == pytest.approx(P)


def test_corners_of_a_wide_ball_are_found_without_trying_all_subsets():
    # All but one of the other values lose everything: 2**17 subsets are tried for each value if none is ruled out.
    corners = PriorSet.ball(Prior.uniform(18), 0.93).vertices()
    assert len(corners) == 18 * 17 and ((corners > 0).sum(axis=1) == 2).all()


def test_sets_and_secrets_are_what_they_hold():
    one, two = Prior([0.2, 0.8]), Prior([0.4, 0.6])
    makers = (
        lambda: PriorSet([one, two]),
        lambda: PriorSet([two, one]),
        lambda: PriorSet([Prior([0.2, 0.8], labels=["a", "b"])]),
        lambda: PriorSet.interval([0.2, 0.6], [0.4, 0.8]),
        lambda: PriorSet.ball(one, 0.1),
        lambda: PriorSet.ball(one, 0.2),
        lambda: PriorSet.all(2),
        lambda: Secret([[0.9, 0.1], [0.3, 0.7]]),
        lambda: Secret([[0.9, 0.1], [0.3, 0.7]], labels=["ill", "well"]),
        lambda: Secret([[0.9, 0.1], [-0.0, 1.0]]),
    )
    assert len({make() for make in makers for _ in range(2)}) == len(makers)
    assert all(make() == make() for make in makers)
    assert Secret([[0.0, 1.0]]) == Secret([[-0.0, 1.0]])
    assert hash(Secret([[0.0, 1.0]])) == hash(Secret([[-0.0, 1.0]]))
    assert PriorSet([one]) != one and Secret([[0.2, 0.8]]) != one


def test_mappings_may_come_in_any_order():
    known = PriorSet.interval({"a": 0.1, "b": 0.5}, {"b": 0.9, "a": 0.5})
    assert known.labels == ("a", "b")
    assert known.extremes(np.eye(2))[1] == pytest.approx([0.5, 0.9])


# Secret


@given(st.data())
def test_a_secret_made_from_the_prior_fits_it(data):
    prior = data.draw(priors())
    secret = data.draw(secrets(prior))
    secret.require_fits(prior)
    for row, whole in zip(secret.rows, secret.weights, strict=True):
        assert [w / sum(whole) for w in whole] == pytest.approx(row.tolist(), rel=1e-12)


def test_secrets_from_tables_and_columns():
    table = Secret.from_joint([[3, 1], [0, 4]], labels=["rich", "poor"])
    values = [0, 0, 0, 1, 1, 1, 1, 1]
    column = Secret.from_columns(["rich"] * 4 + ["poor"] * 4, values, domain=[0, 1], allow_rare=True)
    assert column.labels == ("poor", "rich")
    assert np.array_equal(table.rows, column.rows[::-1])


# Budget


@given(budgets())
def test_tau_is_the_mass_of_the_values_at_the_top(budget):
    assert 0 <= budget.lo <= 1 <= budget.hi
    if math.isfinite(budget.hi):
        assert budget.tau * budget.hi + (1 - budget.tau) * budget.lo == pytest.approx(1)


@given(levels)
def test_a_symmetric_budget(eps):
    assert Budget.of(eps) == Budget(eps) == Budget(eps, eps)
    assert Budget.of(Budget(eps, 9.0)) == Budget(eps, 9.0)
    assert Budget(eps).symmetric
    assert close(Budget(eps).tau, 1 / (1 + math.exp(eps)))


def test_one_side_may_be_infinite():
    assert Budget(1.0, math.inf).tau == 0
    assert Budget(math.inf, 1.0).lo == 0
    with raises(InvalidInput, argument="upper"):
        Budget(math.inf)
    with raises(InvalidInput, argument="epsilon"):
        Budget.of(math.inf)


def test_values_are_matched_by_name() -> None:
    """The same prior in another order gives the same answers; one about other values is refused."""
    prior = Prior({"rent": 0.2, "own": 0.5, "other": 0.3})
    other = Prior({"own": 0.5, "other": 0.3, "rent": 0.2})
    plan = design(Prior({"rent": 0.4, "own": 0.3, "other": 0.3}), 1.0, Histogram())
    tally = plan.tally(plan.privatize(["own", "rent", "own"] * 50, rng=np.random.default_rng(1)))
    assert (
        plan.estimate(tally, prior=prior).values.tolist() == plan.estimate(tally, prior=other).values.tolist()
    )
    assert leakage(plan.channel, prior) == leakage(plan.channel, other)
    assert np.array_equal(plan.channel.posterior(prior), plan.channel.posterior(other))
    assert leakage(plan.channel, [0.2, 0.5, 0.3]) == leakage(plan.channel, prior)
    strange = Prior({"rent": 0.2, "own": 0.5, "x": 0.3})
    for ask in (
        lambda: plan.estimate(tally, prior=strange),
        lambda: leakage(plan.channel, strange),
        lambda: LIP().epsilon(plan.channel, strange),
        lambda: DI().epsilon(plan.channel, strange),
        lambda: plan.channel.posterior(strange),
        lambda: leakage(plan.channel, PriorSet([other, other])),
    ):
        with pytest.raises(InvalidInput):
            ask()
    with raises(InvalidInput, argument="tally"):
        plan.estimate(np.array([0, 1]))  # type: ignore[arg-type]


def test_numbers_as_names_are_names() -> None:
    """0, 1, 2 in another order is another order, not positions; only foreign names fall back on positions."""
    prior = Prior({2: 0.7, 1: 0.2, 0: 0.1})
    assert prior.align_to([0, 1, 2]) == Prior([0.1, 0.2, 0.7])
    assert prior.align_to([2, 1, 0]) is prior
    assert Prior([0.1, 0.2, 0.7]).align_to(["a", "b", "c"]) == Prior([0.1, 0.2, 0.7])
    with raises(InvalidPrior, argument="prior"):
        prior.align_to(["a", "b", "c"])
    channel = Channel([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7]])
    assert leakage(channel, prior) == leakage(channel, Prior([0.1, 0.2, 0.7]))


def test_points_of_a_grid_are_not_positions() -> None:
    first, second = (Prior.grid([0, 1, last], [0.3, 0.4, 0.3]) for last in (2, 4))
    for labels in (first.labels, (0.0, 1.0, 2.0)):
        with raises(InvalidPrior, argument="prior"):
            second.align_to(labels)
    with raises(InvalidInput, argument="prior"):
        leakage(Channel(np.eye(3), first.labels), second)
    assert second.align_to(range(3)) is second


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (Prior([0.5, 0.5]), "probabilities"),
        (Prior.uniform(2), "domain"),
        (Secret([[0.5, 0.5]]), "rows"),
        (PriorSet([[0.5, 0.5]]), "members"),
    ],
)
def test_what_is_known_cannot_be_assigned_again(thing, name) -> None:
    with pytest.raises(AttributeError, match=f"{name} is read-only"):
        setattr(thing, name, None)
    assert copy.deepcopy(thing) == pickle.loads(pickle.dumps(thing)) == thing


def test_a_series_is_a_mapping() -> None:
    """Its index has the labels: dropped, the probabilities would go to other values."""
    import pandas as pd

    shares = pd.Series([0.1, 0.2, 0.7], index=["c", "a", "b"])
    assert Prior(shares) == Prior({"c": 0.1, "a": 0.2, "b": 0.7})
    answers = pd.Series(["b"] * 7 + ["a"] * 2 + ["c"])
    assert Prior.from_counts(answers.value_counts()) == Prior.from_counts({"b": 7, "a": 2, "c": 1})
    assert Prior(pd.Series([0.5, 0.5])).labels == (0, 1)
    plan = design(shares, 1.0, Histogram())
    assert plan.labels == ("c", "a", "b")
    assert PriorSet.interval(shares * 0.9, (shares * 1.2)[["a", "b", "c"]]).labels == ("c", "a", "b")
    pairs = pd.DataFrame({"x": list("aabb"), "y": list("uvuv")}).value_counts()
    assert Prior.from_counts(pairs, names=("x", "y")).names == ("x", "y")
    for wrong in (
        lambda: Prior(shares, labels="abc"),
        lambda: Prior(pd.Series([0.5, 0.5], index=["a", "a"])),
    ):
        with pytest.raises(InvalidInput):
            wrong()


def test_columns_without_labels_are_lists_and_anything_else_is_refused() -> None:
    import polars as pl
    import pyarrow as pa

    for column in (pl.Series([0.25, 0.75]), pa.array([0.25, 0.75]), (0.25, 0.75), np.array([0.25, 0.75])):
        assert Prior(column) == Prior([0.25, 0.75])

    class Labelled:
        """Like an array of xarray: it has labels, and numpy drops them."""

        coords = ("b", "a")

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.array([0.25, 0.75])

    masked = np.ma.MaskedArray([0.25, 0.75], [False, True])
    for wrong in (masked, Labelled(), {0.25, 0.75}, iter([0.25, 0.75]), 0.5, "ab"):
        with pytest.raises(InvalidPrior):
            Prior(wrong)


def test_labels_of_tables_are_never_dropped() -> None:
    import pandas as pd

    table = pd.DataFrame([[0.9, 0.1], [0.3, 0.7]], index=["ill", "well"], columns=["b", "a"])
    for make in (Secret, Channel, Secret.from_joint, Channel.from_weights, Linear):
        for rows in (table, [table.loc["ill"], table.loc["well"]]):
            with pytest.raises(InvalidInput):
                make(rows)
        make(table.to_numpy())
    for values in (table["a"], {"a": 1.0, "b": 2.0}, {0: 1.0, 1: 2.0}):
        with pytest.raises(InvalidInput):
            Sum(values)
    plan = design(Prior({"a": 0.5, "b": 0.5}), 1.0, Histogram())
    estimate = plan.estimate(plan.tally(plan.privatize(["a"] * 50)))
    assert estimate.contrast(pd.Series([1.0, 0.0], index=["b", "a"])) == estimate.contrast({"b": 1.0})


@pytest.mark.parametrize("column", [["hiv", "none"], np.array(["hiv", "none"]), [-7391.5, 1.0], [7391.5]])
def test_a_column_of_people_given_for_numbers_is_not_shown(column) -> None:
    pandas = pytest.importorskip("pandas")
    for values in (column, pandas.Series(column)):
        for make in (Prior, Prior.from_counts):
            with pytest.raises(InvalidPrior) as caught:
                make(values)
            assert not any(text in str(caught.value) for text in ("hiv", "7391"))


def test_a_file_with_one_person_is_not_shown(tmp_path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,phone\nJane Doe,0171234\n")
    for read in (Prior.from_file, Channel.from_file):
        with pytest.raises(InvalidFile) as caught:
            read(path)
        assert "171234" not in str(caught.value) and "Jane" not in str(caught.value)


def test_counts_may_have_attributes_that_are_numbers() -> None:
    counts = {("young", 0): 200, ("young", 40): 300, ("old", 0): 400, ("old", 40): 100}
    shares = {cell: n / 1000 for cell, n in counts.items()}
    names = ("age", "overtime")
    for numbers in ({"grids": "overtime"}, {"grids": ("overtime",)}, {"cells": {"overtime": [0, 20, 40]}}):
        prior, other = (
            Prior.from_counts(counts, names=names, **numbers),
            Prior.joint(shares, names, **numbers),
        )
        assert prior.domain == other.domain
        assert np.allclose(prior.probabilities, other.probabilities)
    with raises(InvalidInput, argument="names"):
        Prior.from_counts(counts, grids="overtime")


def test_a_cross_table_is_not_a_mapping_of_cells() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({0: [0.2, 0.4], 40: [0.3, 0.1]}, index=["young", "old"])
    with raises(InvalidPrior, argument="probabilities", hint="frame.stack()"):
        Prior.joint(table, ("age", "overtime"), grids="overtime")
    prior = Prior.joint(table.stack(), ("age", "overtime"), grids="overtime")
    assert prior.labels[0] == ("young", 0.0)
    for make, argument in ((Prior, "probabilities"), (Prior.from_counts, "counts")):
        with raises(InvalidPrior, argument=argument, hint="frame.stack()"):
            make(table)


def test_the_index_of_a_series_names_its_attributes() -> None:
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame({"age": ["young"] * 40 + ["old"] * 60, "smokes": ["yes", "no"] * 50})
    counts = pandas.crosstab(people.age, people.smokes).stack()
    for prior in (Prior.from_counts(counts), Prior(counts / 100), Prior.from_counts(people.value_counts())):
        assert prior.names == ("age", "smokes")
        assert dict(zip(prior.labels, prior.probabilities, strict=True))[("old", "no")] == 0.3
    assert Prior.from_counts(counts, names=("a", "b")).names == ("a", "b")
    assert Prior.from_counts(counts.rename_axis([None, None])).names is None
    for make in (Prior, Prior.from_counts):
        with raises(InvalidPrior, argument="probabilities", hint="impossible='leave out'"):
            make(counts.iloc[:3])
    with raises(InvalidInput, argument="labels"):
        Prior(counts / 100, labels=["a", "b", "c", "d"])
    for own_labels in (counts, people.age.value_counts(), {"a": 3, "b": 1}):
        with raises(InvalidInput, argument="labels"):
            Prior.from_counts(own_labels, labels=["x", "y", "z", "w"][: len(own_labels)])


def test_advice_on_empty_cells_is_advice_that_works() -> None:
    cells = {("young", 0): 0.2, ("young", 40): 0.3, ("old", 40): 0.5}
    names = ("age", "hours")
    people = {"age": ["young"] * 20 + ["old"] * 10, "hours": [0, 40] * 10 + [40] * 10}
    for refused in (
        lambda: Prior.joint(cells, names, grids="hours"),
        lambda: Prior.from_table(people, names, grids="hours", public=True),
    ):
        with pytest.raises(InvalidPrior) as error:
            refused()
        assert [hint.argument.partition("=")[0] for hint in error.value.hints] == ["smoothing"]
    with raises(InvalidPrior, hint="impossible='leave out'"):
        Prior.joint(cells, names, cells={"hours": [0, 20, 40]})
    with raises(InvalidPrior, hint="smoothing"):
        Prior.from_table(people, names, public=True)
