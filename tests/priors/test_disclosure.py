"""Priors made from people's own values: what they may publish, and the noise that protects them."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from priorveil import Prior, Secret
from priorveil.errors import InvalidInput
from priorveil.priors.disclosure import noisy_counts, round_weights
from refusals import raises

PEOPLE = ["a"] * 1237 + ["b"] * 411 + ["c"]


def test_a_prior_of_a_single_value_is_refused():
    people = ["Private"] * 25 + ["Government"] * 8 + ["No pay"] * 6
    with raises(InvalidInput, argument="values"):
        Prior.from_values(people, merge_rare="Private")
    with raises(InvalidInput, argument="values") as refused:
        Prior.from_values(["Private"] * 40)
    assert "Private" not in str(refused.value)
    assert Prior.from_values(people, merge_rare="other").labels == ("Private", "other")


def test_the_weights_of_a_prior_from_people_are_not_their_counts():
    prior = Prior.from_values(PEOPLE, smoothing=1, allow_rare=True)
    assert prior.weights == (1875, 625, 3)  # 0.75, 0.25 and 0.0012; the counts were 1238, 412 and 2
    assert prior.labels == ("a", "b", "c")
    assert Prior.from_values(PEOPLE, smoothing=1, public=True) == prior


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=20))
def test_shares_have_two_significant_digits(weights):
    rounded, total = round_weights(weights), sum(weights)
    unit = Fraction(rounded[0]) / Fraction(f"{weights[0] / total:.1e}")
    for weight, whole in zip(weights, rounded, strict=True):
        assert Fraction(whole) == unit * Fraction(f"{weight / total:.1e}")
        assert float(whole / unit) == pytest.approx(weight / total, rel=0.05 + 1e-9)


def test_one_more_person_seldom_changes_the_prior():
    assert Prior.from_values(["a"] * 600 + ["b"] * 401) == Prior.from_values(["a"] * 600 + ["b"] * 402)


def test_many_values_are_refused_unless_they_are_public():
    amounts = [amount for amount in range(101) for _ in range(10)]
    with raises(InvalidInput, argument="values", hint="public=True"):
        Prior.from_values(amounts)
    assert len(Prior.from_values(amounts, public=True)) == 101
    assert len(Prior.from_values(amounts, domain=range(101))) == 101
    assert len(Prior.from_values(amounts[10:])) == 100


def test_rare_values_are_merged_or_confirmed():
    with raises(InvalidInput, argument="values"):
        Prior.from_values(PEOPLE)
    with raises(InvalidInput, argument="values"):
        Prior.from_values(PEOPLE, domain=["a", "b", "c"])  # a list makes the names public, not the people
    with raises(InvalidInput, argument="values"):
        Prior.from_values(PEOPLE, merge_rare="rest")
    assert Prior.from_values(PEOPLE, merge_rare="b").labels == ("a", "b")
    merged = Prior.from_values([*PEOPLE, *["d"] * 9], merge_rare="rest")
    assert merged == Prior.from_values(["rest" if v in "cd" else v for v in [*PEOPLE, *["d"] * 9]])
    assert merged.labels == ("a", "b", "rest")
    assert Prior.from_values(["a"] * 10 + ["b"] * 10, merge_rare="rest").labels == ("a", "b")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Prior.from_values([3, 98765.25]),
        lambda: Prior.from_values(np.array([98765.25])),
        lambda: Prior.from_values(["x", None]),
        lambda: Prior.from_values(["x", "98765"], domain=["x"]),
        lambda: Prior.from_values(["98765", "x"]),
        lambda: Prior.from_values(map(str, range(98765, 98999))),
        lambda: Prior.from_values("98765"),
        lambda: Prior.from_values(98765),
        lambda: Prior.from_values({"98765": 20}),
        lambda: Secret.from_columns([98765.25], ["a"]),
        lambda: Secret.from_columns(["a"], ["98765"]),
    ],
)
def test_errors_name_the_row_and_never_show_a_value(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert "98765" not in str(caught.value)


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "arrow"])
def test_a_column_of_a_table_follows_the_same_rule(kind):
    columns = {"home": ["rent"] * 30 + ["own"] * 50, "spend": [i // 2 for i in range(80)]}
    if kind == "dict":
        table = columns
    else:
        library = pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
        table = library.table(columns) if kind == "arrow" else library.DataFrame(columns)
    assert (
        Prior.from_table(table, "home")
        == Prior.from_table(table, ["home"])
        == Prior.from_values(columns["home"])
    )
    with raises(InvalidInput, argument="values"):
        Prior.from_table(table, "spend")
    assert len(Prior.from_table(table, "spend", public=True)) == 40
    with raises(InvalidInput, argument="columns"):
        Prior.from_table(table, "age")
    with raises(InvalidInput, argument="probabilities"):
        Prior.from_table(table, ["home", "spend"])


def test_several_columns_of_a_table_follow_the_same_rules():
    columns = {"home": ["rent"] * 40 + ["own"] * 60, "car": ["yes", "no"] * 20 + ["yes"] * 50 + ["no"] * 10}
    prior = Prior.from_table(columns, ["home", "car"])
    assert prior.names == ("home", "car")
    assert dict(zip(prior.labels, prior.probabilities.round(9).tolist(), strict=True)) == {
        ("own", "no"): 0.1,
        ("own", "yes"): 0.5,
        ("rent", "no"): 0.2,
        ("rent", "yes"): 0.2,
    }
    columns["car"][-1] = "two"  # two cells of fewer than ten people, one of them of nobody
    for rules, says in [
        ({}, "1 of 6 cells"),
        ({"smoothing": 1}, "3 of 6 cells"),
        ({"impossible": "leave out"}, "2 of 5"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            Prior.from_table(columns, ["home", "car"], **rules)
    left = Prior.from_table(columns, ["home", "car"], impossible="leave out", merge_rare=("own", "yes"))
    assert left.labels == (("own", "yes"), ("rent", "no"), ("rent", "yes"))
    with raises(InvalidInput, argument="names"):
        Prior.from_table(columns, ["home", "car"], smoothing=1, merge_rare="other")


def test_the_advice_for_cells_of_nobody_works_at_once_and_shows_no_cell():
    columns = {"home": ["rent"] * 40 + ["own"] * 60, "car": ["yes", "no"] * 20 + ["yes"] * 60}
    for declared, advice in (({}, "smoothing=1 and allow_rare=True"), ({"public": True}, "smoothing=1;")):
        with pytest.raises(InvalidInput, match=rf"1 of 4 cells has .* use {advice}") as caught:
            Prior.from_table(columns, ["home", "car"], **declared)
        assert "own" not in str(caught.value)
    for rules in ({"allow_rare": True}, {"public": True}):
        assert len(Prior.from_table(columns, ["home", "car"], smoothing=1, **rules)) == 4


def test_many_cells_and_noise_on_cells_need_public_values():
    columns = {"a": [i % 11 for i in range(2000)], "b": [i % 10 for i in range(2000)]}
    with raises(InvalidInput, argument="values"):
        Prior.from_table(columns, ["a", "b"])
    with raises(InvalidInput, argument="prior_epsilon"):
        Prior.from_table(columns, ["a", "b"], prior_epsilon=1.0)
    assert len(Prior.from_table(columns, ["a", "b"], prior_epsilon=1.0, public=True)) == 110


# Noise


def test_a_noisy_prior_has_every_public_value():
    """Zero or negative noisy counts become one, or the smoothing alone; no rare value has to be confirmed."""
    domain = [f"town {i}" for i in range(300)]
    for smoothing in (None, 0.5):
        prior = Prior.from_values(["town 7"] * 1000, domain, smoothing, prior_epsilon=0.5)
        assert prior.labels == tuple(domain) and min(prior.weights) > 0
        assert prior.labels[int(prior.probabilities.argmax())] == "town 7"
    draws = {Prior.from_values(["a"] * 99 + ["b"] * 9, public=True, prior_epsilon=0.1) for _ in range(20)}
    assert len(draws) > 1


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_the_noise_has_the_stated_law(epsilon):
    """Chi-squared at a false-alarm rate of 1e-4 each; a level 20 % off is rejected."""
    draws, below = 20_000, random.Random(11).randrange
    seen = Counter(noisy_counts(dict.fromkeys(range(draws), 100), epsilon, below).values())
    edge = math.ceil(3 / epsilon)
    bins = [sum(n for k, n in seen.items() if k - 100 < -edge)]
    bins += [seen[100 + k] for k in range(-edge, edge + 1)]
    bins += [draws - sum(bins)]

    def p_value(level: float) -> float:
        ratio = math.exp(-level)
        tail = ratio ** (edge + 1) / (1 + ratio)
        law = [tail, *((1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-edge, edge + 1)), tail]
        return float(chisquare(bins, [draws * p for p in law]).pvalue)

    assert p_value(epsilon) > 1e-4
    assert p_value(1.2 * epsilon) < 1e-4 and p_value(epsilon / 1.2) < 1e-4


# Secrets


def test_the_rows_of_a_secret_are_rounded_too():
    secrets, values = ["low"] * 300 + ["high"] * 70, ["a"] * 111 + ["b"] * 189 + ["a"] * 47 + ["b"] * 23
    secret = Secret.from_columns(secrets, values)
    assert secret.rows.tolist() == [[0.67, 0.33], [0.37, 0.63]]
    prior = Prior.from_values(values)
    secret.require_fits(secret.nearest(prior))
    with raises(InvalidInput, argument="values"):
        Secret.from_columns([*secrets, "high"], [*values[:-23], *["a"] * 15, *["b"] * 9])
    with raises(InvalidInput, argument="values"):
        Secret.from_columns(list(range(101)) * 10, ["a"] * 1010)


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ([8, 8.0, "08", " 8 ", 7.0] * 20, (7, 8)),
        (np.array([7.0, 8.0] * 20), (7, 8)),
        (["a", " a ", "a\n", "b"] * 20, ("a", "b")),
        (["08", "8", "x"] * 20, ("08", "x")),
    ],
)
def test_spellings_of_one_value_are_counted_together(column, labels) -> None:
    prior = Prior.from_values(column)
    assert prior.labels == labels and prior == Prior.from_table({"column": column}, "column")
    texts = list(map(str, labels))
    assert Prior.from_values(column, domain=texts).labels == tuple(texts)
    assert (Prior.from_values(column, domain=texts).weights) == prior.weights


def test_missing_values_of_people_are_counted_in_the_error() -> None:
    for column in (["a", None, " "], ["a", math.nan, None]):
        with raises(InvalidInput, argument="values[1]") as caught:
            Prior.from_values(column * 20)
        assert "40 of 60" in caught.value.advice
