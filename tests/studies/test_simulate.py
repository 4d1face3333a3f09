"""Experiments: theory and simulation agree, certified methods keep their budget, and bounds are bounds."""

from __future__ import annotations

import csv
import io
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import CertificateError
from priorveil.studies import published
from priorveil.studies.compare import COMPARED_METHODS, SurveyScenario, certified_mixture, from_channel
from priorveil.studies.simulate import Study, csv_text, simulate, simulated_error

PRIORS = {"uniform": pv.Prior.uniform(5), "skewed": pv.Prior([0.025] * 4 + [0.9])}
CHANNELS = ("rr", "published-rr", "published-hashing", "ldp-rr", "ldp-hashing", "none")
CERTIFIED = ("best", "rr", "arc", "unary", "hashing")


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    return {
        name: simulate(P, [1.0, 2.0], pv.Histogram(), tuple(COMPARED_METHODS), people=2_000, runs=120, seed=3)
        for name, P in PRIORS.items()
    }


@pytest.mark.statistical
@pytest.mark.parametrize("name", PRIORS)
def test_simulations_agree_with_theory(name: str, studies: dict[str, Study]) -> None:
    """Some 28 intervals of 99 %: more than three outside would happen once in five thousand times.

    A theory that is wrong by a factor 1.7 would be found out.
    """
    rows = [row for row in studies[name].rows if not math.isnan(row.measured)]
    outside = [row for row in rows if not row.low <= row.expected <= row.high]
    assert len(rows) >= 24
    assert len(outside) <= 3, outside
    assert sum(row.low <= 1.7 * row.expected <= row.high for row in rows) <= 1


@pytest.mark.parametrize("name", PRIORS)
def test_certified_methods_keep_the_budget_and_stay_above_the_bound(
    name: str, studies: dict[str, Study]
) -> None:
    study = studies[name]
    for row in study.rows:
        if row.method in CERTIFIED and not row.note:
            bound = next(r.bound for r in study.of("best") if r.epsilon == row.epsilon)
            assert row.lip <= row.epsilon
            assert row.expected >= bound - 1e-12
        best = next(r for r in study.of("best") if r.epsilon == row.epsilon)
        if row.method == "ldp-same-lip":
            assert best.lip - 2e-3 <= row.lip <= best.lip
        elif row.method == "ldp-same-ldp":
            assert row.ldp <= best.ldp and row.lip >= best.lip - 1e-6
        elif row.kind == "ldp":
            assert row.ldp <= row.epsilon + 1e-9


@pytest.mark.parametrize("name", PRIORS)
def test_published_leakage_is_what_the_channel_has(name: str, studies: dict[str, Study]) -> None:
    P = PRIORS[name]
    for row in studies[name].of("published-rr"):
        lo, least = math.exp(-row.epsilon), float(P.probabilities.min())
        assert row.lip == pytest.approx(max(row.epsilon, math.log(lo + (1 - lo) / least)), abs=2e-3)


def test_errors_fall_as_the_budget_grows() -> None:
    methods = [method for method in COMPARED_METHODS if method not in ("none", "hashing")]
    study = simulate([0.1, 0.2, 0.3, 0.4], [0.5, 1.0, 2.0, 3.0], pv.Histogram(), methods, runs=0)
    for method in methods:
        errors = [row.expected for row in study.of(method)]
        assert (np.diff(errors) <= 1e-9).all(), method


def test_the_same_seed_gives_the_same_study() -> None:
    first, second, third = (
        simulate([0.3, 0.7], [1.0], pv.Histogram(), ["best", "ldp-rr"], runs=5, seed=s) for s in (1, 1, 2)
    )
    assert first.csv() == second.csv()
    assert first.of("best")[0].measured != third.of("best")[0].measured


def test_sums_and_guesses_are_simulated_too() -> None:
    P = [0.1, 0.2, 0.3, 0.2, 0.2]
    for query in (pv.Sum([1, 3, 5, 7, 9]), pv.Guess()):
        rows = simulate(
            P, [1.0], query, ["best", "rr", "ldp-rr", "none"], people=1_000, runs=300, seed=5
        ).rows
        for row in rows:
            assert row.low * 0.8 <= row.expected <= row.high * 1.25, row


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("query", "methods"),
    [
        (pv.Distribution(), tuple(name for name in COMPARED_METHODS if name != "hashing")),  # for histograms
        (pv.Sum([0, 1, 4], unbiased=True), CHANNELS),
        (pv.Linear(np.tri(3)[:2], unbiased=True), CHANNELS),
    ],
)
def test_unbiased_queries_are_simulated_too(query: pv.Linear, methods: tuple[str, ...]) -> None:
    """Errors are for the population: the people of each survey are a sample of it.

    At most 13 intervals of 99 %: more than two outside would happen once in four thousand times. Errors that are
    a third smaller, as without the sampling of people, would be found out.
    """
    rows = simulate([0.2, 0.3, 0.5], [2.0], query, methods, people=1_000, runs=250, seed=6).rows
    known = [row for row in rows if not math.isnan(row.measured)]
    outside = [row for row in known if not row.low <= row.expected <= row.high]
    assert len(known) == len(methods) - 1 and len(outside) <= 2, outside
    assert [row.method for row in rows if math.isinf(row.expected)] == ["none"]
    assert sum(row.low <= 0.67 * row.expected <= row.high for row in known) <= 2


def test_an_unbiased_query_learns_the_people_and_not_the_prior() -> None:
    methods, values = ["best", "rr", "ldp-rr", "context-free"], [0] * 900 + [1] * 100
    study = simulate([0.5, 0.5], [2.0], methods=methods, values=values, runs=100)
    assert study.query == pv.Distribution()
    assert all(row.measured < 1.3 * row.expected for row in study.rows)


def test_a_convex_query_has_no_measured_error() -> None:
    rows = simulate(
        [0.2, 0.3, 0.5], [1.0], pv.Convex(lambda p: (p**2).sum(axis=1)), ["best", "rr", "none"], runs=5
    ).rows
    assert all(math.isfinite(row.expected) and math.isnan(row.measured) for row in rows)


def test_errors_in_units_that_people_know() -> None:
    study = partial(simulate, epsilons=[1.0], methods=["none"], people=400, runs=0)
    histogram = study([0.5, 0.3, 0.2], query=pv.Histogram())
    (row,) = histogram.readable_table()
    assert "share, in points" in histogram.unit
    assert row["expected"] == pytest.approx(100 * math.sqrt((1 - 0.38) / 400 / 3))
    total = study([0.5, 0.5], query=pv.Sum([0, 30]))
    assert "average" in total.unit and total.readable_table()[0]["expected"] == pytest.approx(15 / 20)
    guess = study([0.5, 0.3, 0.2], query=pv.Guess())
    assert "percent" in guess.unit and guess.readable_table()[0]["expected"] == pytest.approx(50)


def test_own_data_are_the_same_in_every_run() -> None:
    P = pv.Prior({"a": 0.5, "b": 0.5})
    values = ["a"] * 900 + ["b"] * 100
    study = simulate(P, [1.0], pv.Histogram(), ["none"], values=values, runs=3)
    (row,) = study.rows
    assert row.people == 1_000
    assert row.measured == pytest.approx(2 * 400**2 / 1_000)  # the prior expects 500 of each, always


def test_what_cannot_be_done_leaves_a_note() -> None:
    rows = simulate(
        [0.025] * 4 + [0.9], [1.0], pv.Sum([0, 1, 2, 3, 4]), ["hashing", "published-unary"], runs=0
    ).rows
    assert all(row.note and math.isnan(row.expected) for row in rows)


@given(
    st.lists(st.floats(0.02, 1.0), min_size=2, max_size=6).map(lambda w: np.array(w) / np.sum(w)),
    st.floats(0.1, 4.0),
)
def test_the_mixture_keeps_the_budget_and_changes_no_more_than_it_must(P: np.ndarray, epsilon: float) -> None:
    prior = pv.Prior(P / P.sum())
    form = published.rr_lip(prior, epsilon)
    channel, proof = certified_mixture(form.channel, prior, pv.Budget(epsilon))
    assert proof.lip <= epsilon
    if form.leakage.lip <= epsilon + 1e-12:
        assert np.abs(channel.matrix - form.channel.matrix).max() < 1e-6
    else:
        assert proof.lip >= epsilon - 1e-3


def test_the_mixture_serves_latent_secrets() -> None:
    prior, secret = pv.Prior([0.6, 0.4]), pv.Secret([[0.95, 0.05], [0.25, 0.75]])
    form = published.release_symbol(prior, secret, 1.0, 0)
    channel, proof = certified_mixture(form.channel, prior, pv.Budget(1.0), secret)
    assert form.leakage.lip > 2 and proof.lip <= 1.0
    assert pv.leakage(channel, prior, secret).lip == pytest.approx(1.0, abs=1e-3)


def test_a_method_from_a_channel_measures_it() -> None:
    method = from_channel(
        pv.Channel([[0.75, 0.25], [0.25, 0.75]]), SurveyScenario(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
    )
    assert method.levels.lip == pytest.approx(math.log(2))
    _, low, high = simulated_error(method.survey, pv.Prior([0.5, 0.5]), 1_000, 400, np.random.default_rng(0))
    assert low <= method.expected <= high
    mean, _, _ = simulated_error(method.survey, pv.Prior([0.5, 0.5]), 10, 1, np.random.default_rng(0))
    assert math.isnan(mean)


def test_tables_are_tidy() -> None:
    study = simulate([0.5, 0.5], [1.0, 2.0], pv.Histogram(), ["best", "none"], runs=0)
    rows = list(csv.DictReader(io.StringIO(study.csv())))
    assert [(row["epsilon"], row["method"]) for row in rows] == [
        ("1", "best"),
        ("1", "none"),
        ("2", "best"),
        ("2", "none"),
    ]
    assert rows[0]["measured"] == ""
    assert csv_text([{"a": None}, {"b": 0.1}]) == "a,b\n,\n,0.1\n"


def test_certified_error_is_not_swallowed() -> None:
    """A budget that no mixing can keep (zero) ends in an error, not in a channel."""
    prior = pv.Prior([0.5, 0.5])
    try:
        channel, proof = certified_mixture(pv.Channel.identity(2), prior, pv.Budget(1e-12))
    except CertificateError:
        return
    assert proof.lip <= 1e-12 and channel.shape[0] == 2
