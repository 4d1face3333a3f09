"""The public contract, line by line: what other programs may rely on, spelt as they spell it.

A change that breaks one of these breaks somebody. Whether the answers are right is asked elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil.queries import Query
from terminal import run

WORK = {"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07}
LEVELS = ("lip", "lip_lower", "lip_upper", "ldp")
QUERIES = [pv.Histogram(), pv.Sum(values=[0, 1, 2, 3]), pv.Guess(), pv.Distribution()]
BEHIND = [[0.8, 0.05, 0.1, 0.05], [0.58, 0.17, 0.16, 0.09]]  # Pr(value | secret)
METHODS = ["auto", "closed", "arc", "columns", "unary", "subset", "hashing"]
COMMANDS = [
    "design", "inspect", "audit", "privatize", "estimate", "serve", "simulate", "reproduce", "bench", "demo",
]  # fmt: skip


@pytest.fixture(scope="module")
def prior() -> pv.Prior:
    return pv.Prior(WORK)


@pytest.fixture(scope="module", params=QUERIES, ids=lambda query: type(query).__name__)
def plan(request: pytest.FixtureRequest, prior: pv.Prior) -> pv.Plan:
    return pv.design(prior, epsilon=1.0, query=request.param)


@pytest.fixture(scope="module")
def learner(prior: pv.Prior) -> pv.Plan:
    return pv.design(prior, epsilon=1.0, query=pv.Distribution())


# -- what is called, and with what ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (pv.design, ["prior", "epsilon", "query", "secret=None", "notion=None", "method='auto'"]),
        (pv.leakage, ["channel", "prior", "secret=None"]),
        (pv.LIP.epsilon, ["self", "channel", "prior", "secret=None"]),
        (pv.LIP.holds, ["self", "channel", "prior", "epsilon"]),
        (pv.Plan.privatize, ["self", "values", "rng=None"]),
        (pv.Plan.tally, ["self", "reports"]),
        (pv.Plan.estimate, ["self", "tally", "method='auto'", "prior=None"]),
        (
            pv.Plan.estimate_sample,
            ["self", "reports", "weights=None", "strata=None", "clusters=None", "population=None"],
        ),
        (pv.Plan.save, ["self", "path"]),
        (pv.Plan.load, ["path"]),
        (pv.Ledger, ["prior", "secret=None", "limit=None"]),
        (pv.published.rr_lip, ["prior", "epsilon"]),
        (pv.regress, ["reports", "X", "plan", "compliance=False"]),
    ],
    ids=lambda given: getattr(given, "__qualname__", ""),
)
def test_arguments_come_in_this_order(function: Callable[..., object], arguments: list[str]) -> None:
    """The promised ones first, by these names; where a default is promised it is this, and the rest has one."""
    taken = list(inspect.signature(function).parameters.values())
    for given, promised in zip(taken, arguments, strict=False):
        name, _, default = promised.partition("=")
        assert given.name == name
        assert not default or repr(given.default) == default
    assert len(taken) >= len(arguments)
    assert all(given.default is not given.empty for given in taken[len(arguments) :])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_is_there(command: str) -> None:
    assert run(command, "--help")[0] == 0


# -- know ----------------------------------------------------------------------------------------------------


def test_a_prior_is_written_two_ways(prior: pv.Prior) -> None:
    assert pv.Prior(list(WORK.values()), labels=list(WORK)) == prior


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_something_behind_the_value_is_protected(query: Query) -> None:
    secret = pv.Secret(BEHIND)
    behind = pv.Prior(np.mean(BEHIND, axis=0).tolist())
    plan = pv.design(behind, epsilon=0.1, query=query, secret=secret)
    assert pv.LIP().epsilon(plan.channel, behind, secret=secret) <= 0.1 + 1e-9


@pytest.mark.parametrize(
    "priors",
    [
        pv.PriorSet([pv.Prior([0.6, 0.2, 0.1, 0.1]), pv.Prior([0.5, 0.3, 0.1, 0.1])]),
        pv.PriorSet.interval([0.5, 0.1, 0.05, 0.05], [0.7, 0.3, 0.2, 0.2]),
        pv.PriorSet.ball(pv.Prior([0.6, 0.2, 0.1, 0.1]), 0.05),
    ],
    ids=["some", "interval", "ball"],
)
def test_a_prior_may_be_known_roughly(priors: pv.PriorSet) -> None:
    plan = pv.design(priors, epsilon=1.0, query=pv.Histogram())
    assert plan.certificate.lip <= 1.0
    assert pv.LIP().epsilon(plan.channel, priors) <= 1.0 + 1e-9


def test_the_two_sides_of_a_budget(prior: pv.Prior) -> None:
    plan = pv.design(prior, epsilon=pv.Budget(lower=1.0, upper=2.0), query=pv.Histogram())
    assert plan.certificate.lip_lower <= 1.0 and plan.certificate.lip_upper <= 2.0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_the_budget(method: str, prior: pv.Prior) -> None:
    """No closed form is optimal for this prior under LIP; for LDP there is one."""
    if method == "closed":
        with pytest.raises(pv.errors.Infeasible):
            pv.design(prior, epsilon=1.0, query=pv.Histogram(), method=method)
    else:
        found = pv.design(prior, epsilon=1.0, query=pv.Histogram(), method=method)
        assert found.certificate.lip <= 1.0
    if method not in ("arc", "hashing"):
        found = pv.design(prior, epsilon=1.0, query=pv.Histogram(), notion=pv.LDP(), method=method)
        assert found.certificate.ldp <= 1.0


# -- build ---------------------------------------------------------------------------------------------------


def test_what_a_plan_says_of_itself(plan: pv.Plan) -> None:
    matrix = plan.channel.matrix
    assert isinstance(matrix, np.ndarray) and matrix.shape[0] == 4
    assert np.allclose(matrix.sum(axis=1), 1)
    assert plan.lower_bound <= plan.expected_mse * (1 + 1e-12)
    assert 0 < plan.efficiency <= 1
    assert all(type(getattr(plan.certificate, level)) is float for level in LEVELS)
    assert plan.certificate.lip <= 1.0
    assert isinstance(plan.identifiable, bool)


def test_a_plan_is_saved_and_loaded(plan: pv.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan.save(path)
    loaded = pv.Plan.load(path)
    assert loaded.id == plan.id
    assert np.array_equal(loaded.channel.matrix, plan.channel.matrix)


def test_a_huge_matrix_is_not_written_out() -> None:
    plan = pv.design(pv.Prior.uniform(50_000), epsilon=1.0, query=pv.Histogram(), method="arc")
    with pytest.raises(pv.errors.TooLarge):
        _ = plan.channel.matrix


# -- measure -------------------------------------------------------------------------------------------------


def test_leakage_has_all_notions(plan: pv.Plan, prior: pv.Prior) -> None:
    levels = pv.leakage(plan.channel, prior, secret=None)
    assert all(getattr(levels, name) >= 0 for name in (*LEVELS, "mil", "mip", "di", "pufferfish"))
    level = pv.LIP().epsilon(plan.channel, prior, secret=None)
    assert level == pytest.approx(levels.lip)
    assert pv.LIP().holds(plan.channel, prior, level)
    assert not pv.LIP().holds(plan.channel, prior, epsilon=0.99 * level)


def test_what_was_published(prior: pv.Prior) -> None:
    form = pv.published.rr_lip(prior, 1.0)
    assert isinstance(form.channel, pv.Channel)
    assert float(form.claimed) == 1.0 < form.leakage.lip


# -- run and read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["columns", "closed"])
def test_a_table_plan_reports_its_columns(method: str) -> None:
    plan = pv.design(pv.Prior([0.4, 0.3, 0.3]), epsilon=1.0, query=pv.Histogram(), method=method)
    reports = np.asarray(plan.privatize([0, 1, 2] * 100, rng=None))
    assert reports.dtype.kind in "iu"
    assert set(reports.tolist()) <= set(range(plan.channel.matrix.shape[1]))


def test_codes_and_labels_are_the_same_values(learner: pv.Plan) -> None:
    codes, labels = [0, 3, 2], ["Private", "None", "Government"]
    by_code = learner.privatize(codes, rng=np.random.default_rng(5), codes=True)
    by_label = learner.privatize(labels, rng=np.random.default_rng(5))
    assert np.array_equal(by_code, by_label)


@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
def test_tallies_add_up_and_are_read(learner: pv.Plan, prior: pv.Prior, method: str) -> None:
    rng = np.random.default_rng(6)
    first, second = (
        learner.privatize([0, 1, 2, 3] * 50, rng=rng, codes=True),
        learner.privatize(["Private"] * 300, rng=rng),
    )
    tally = learner.tally(first) + learner.tally(second)
    estimate = learner.estimate(tally, method=method, prior=None)
    low, high = estimate.interval(0.95)
    assert estimate.values.shape == estimate.std_error.shape == low.shape == high.shape == (4,)
    assert (low <= estimate.values).all() and (estimate.values <= high).all()
    assert estimate.prior_check is not None and 0 <= estimate.prior_check <= 1
    known = learner.estimate(tally, method=method, prior=prior)  # what the plan believes already
    assert np.allclose(known.values, estimate.values)


# -- spend ---------------------------------------------------------------------------------------------------


def test_a_ledger_remembers_and_refuses(learner: pv.Plan, prior: pv.Prior) -> None:
    ledger = pv.Ledger(prior, secret=None, limit=1.5)
    assert ledger.would(learner).lip <= 1.0 + 1e-6
    assert ledger.level.lip == 0.0
    ledger.spend(learner)
    assert all(getattr(ledger.level, level) > 0 for level in LEVELS)
    with pytest.raises(pv.errors.BudgetExceeded):
        ledger.spend(learner)
    assert ledger.level.lip <= 1.0 + 1e-6
