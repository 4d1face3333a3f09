"""Methods of asking people, side by side: a mechanism with an estimator, its expected error and its leakage.

`COMPARED_METHODS` lists them by name. Published forms appear as printed, with the leakage that they really have;
certified ones keep the budget. `error_curve` compares one plan with other budgets, and with the best of local
differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.certify import Certificate, certified_table
from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.errors import Infeasible, NotIdentifiable
from priorveil.mechanisms import Table
from priorveil.mechanisms.randomness import as_source
from priorveil.notions import LDP, LIP, Leakage, leakage, leakage_bounds
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior, Secret
from priorveil.queries import Criterion, Query
from priorveil.reading.bit_covariances import single_bit_posteriors
from priorveil.reading.linear_answers import unbiased_scores
from priorveil.reading.moments import apply_rows
from priorveil.studies import published
from priorveil.studies.published import Published, UnaryEncoding
from priorveil.studies.trade_offs import ldp_plan, same_ldp_plan, same_lip_plan

SimulatedSurvey = Callable[[Ints, np.random.Generator], float]
PublishedForm = Callable[[Prior, float], Published]

_HASHES = 20  # public hash functions that people draw from, where a form does not give a number
_ROOM = 1e-9  # share of the budget that is left for rounding
# Values up to which LDP is computed at every budget of a curve: more take more than the seconds that a plot is worth.
_MOST_CURVED = 5_000
_STEPS = (0.25, 0.5, 1.0, 1.5, 2.0)  # budgets of a curve, in units of the plan's


@dataclass(frozen=True)
class SurveyScenario:
    """A query about a population, with a budget."""

    prior: Prior
    epsilon: float
    query: Query
    secret: Secret | None = None
    time_limit: float = 20.0


@dataclass(frozen=True, eq=False)
class ComparedMethod:
    """One method in a scenario: its `expected` error per person, its `levels`, a `survey`, and a proven `bound`.

    `survey(counts, rng)` simulates one survey. It takes how many people have each value, and returns the
    squared error of the answer per person (for a guess, the share of wrong ones).
    """

    expected: float
    levels: Leakage | Certificate
    survey: SimulatedSurvey
    bound: float = math.nan


def from_plan(plan: Plan, scenario: SurveyScenario) -> ComparedMethod:
    """A plan, with its own sampler and estimator: the same code as in a real collection."""

    def estimate(truth: Ints, rng: np.random.Generator) -> Array:
        codes = np.repeat(np.arange(len(truth)), truth)
        return plan.estimate(plan.tally(plan.mechanism.sample(codes, as_source(rng)))).values

    if scenario.query.criterion is not Criterion.WRONG_GUESSES:
        survey = _squared_error(estimate, scenario)
    elif not plan.mechanism.averages:
        survey = _wrong_share(plan.channel, scenario.prior)
    else:  # the tally of an arc keeps the cell of a report, a guess needs its exact place
        survey = _unknown_error
    return ComparedMethod(plan.expected_mse, plan.certificate, survey, plan.lower_bound)


def from_channel(channel: Channel, scenario: SurveyScenario) -> ComparedMethod:
    """A channel of floats, read with the posterior, or without the prior if the query is unbiased.

    Its levels are measured.
    """
    prior, query, channel = scenario.prior, scenario.query, channel.drop_unused()
    levels, error = leakage(channel, prior, scenario.secret), query.error(channel, prior)
    if query.criterion is Criterion.WRONG_GUESSES:
        return ComparedMethod(error, levels, _wrong_share(channel, prior))
    try:
        histograms = channel.posterior(prior)
        if query.unbiased:
            histograms = unbiased_scores(channel.matrix, prior.probabilities, query.rows(prior)).T
    except NotIdentifiable:
        return ComparedMethod(error, levels, _unknown_error)

    def estimate(truth: Ints, rng: np.random.Generator) -> Array:
        return apply_rows(query.rows(prior), histograms @ rng.multinomial(truth, channel.matrix).sum(axis=0))

    return ComparedMethod(error, levels, _squared_error(estimate, scenario))


def _unknown_error(truth: Ints, rng: np.random.Generator) -> float:
    return math.nan


def _squared_error(
    estimate: Callable[[Ints, np.random.Generator], Array], scenario: SurveyScenario
) -> SimulatedSurvey:
    """The squared error of an estimate of the statistics, per person; unknown for a query that is not linear.

    An unbiased query asks about the population, which the counts describe: the people are a sample of it.
    """
    if not scenario.query.linear:
        return _unknown_error
    rows = scenario.query.rows(scenario.prior)

    def survey(truth: Ints, rng: np.random.Generator) -> float:
        people = rng.multinomial(truth.sum(), truth / truth.sum()) if scenario.query.unbiased else truth
        gap = estimate(people, rng) - apply_rows(rows, truth.astype(np.float64))
        return float(gap @ gap) / float(truth.sum())

    return survey


def _wrong_share(channel: Channel, prior: Prior) -> SimulatedSurvey:
    """How often the most likely value is not the true one."""
    channel = channel.drop_unused()
    guess = channel.posterior(prior).argmax(axis=0)

    def survey(truth: Ints, rng: np.random.Generator) -> float:
        reports = rng.multinomial(truth, channel.matrix)
        return 1 - float(reports[guess, np.arange(len(guess))].sum() / truth.sum())

    return survey


def certified_mixture(
    channel: Channel, prior: Prior, budget: Budget, secret: Secret | None = None
) -> tuple[Channel, Certificate]:
    """The channel mixed with its own output law, `(1 - t) Q + t 1 lam'`, with the least `t` that LIP allows.

    It shows the error of a published form that keeps its budget: the same reports, with less truth in them. The
    channel that is returned is the certified integer table.

    >>> form = published.rr_lip([0.1, 0.2, 0.7], 1.0)
    >>> fixed, proof = certified_mixture(form.channel, Prior([0.1, 0.2, 0.7]), Budget(1.0))
    >>> form.leakage.lip > 1.8, proof.lip <= 1.0
    (True, True)
    """
    Q, law = channel.drop_unused().matrix, channel.drop_unused().output_law(prior)
    lift = (Q if secret is None else secret.rows @ Q) / law
    highest, lowest = float(lift.max()), float(lift.min())
    shares = [1.0]  # the most of the channel that the mixture may have, for each side of the budget
    if highest > 1:
        shares.append((budget.hi - 1) / (highest - 1) * (1 - _ROOM))
    if lowest < 1:
        shares.append((1 - budget.lo) / (1 - lowest) * (1 - _ROOM))
    share = min(shares)
    weights, proof = certified_table(share * Q + (1 - share) * law, prior, budget, secret, LIP())
    return Channel(Table(weights).matrix, prior.labels), proof


# -- the methods -------------------------------------------------------------------------------------------


def _design_method(
    method: Literal["auto", "arc", "unary", "hashing"], scenario: SurveyScenario, ldp: bool = False
) -> ComparedMethod:
    plan = design(
        scenario.prior,
        scenario.epsilon,
        scenario.query,
        secret=None if ldp else scenario.secret,
        notion=LDP() if ldp else LIP(),
        method=method,
        time_limit=scenario.time_limit,
    )
    return from_plan(plan, scenario)


def _rival_method(rival_of: Callable[[Plan, float], Plan | None], scenario: SurveyScenario) -> ComparedMethod:
    """The LDP plan with the LIP level, or with the LDP level, of the best plan; its LIP level is that of the value."""
    plan = design(
        scenario.prior,
        scenario.epsilon,
        scenario.query,
        secret=scenario.secret,
        time_limit=scenario.time_limit,
    )
    rival = rival_of(plan, scenario.time_limit)
    if rival is None:
        raise Infeasible("there is no LDP plan with the level of the best plan")
    return from_plan(rival, scenario)


def _certified_rr_method(scenario: SurveyScenario) -> ComparedMethod:
    form, budget = published.rr_lip(scenario.prior, scenario.epsilon), Budget(scenario.epsilon)
    channel, proof = certified_mixture(form.channel, scenario.prior, budget, scenario.secret)
    return replace(from_channel(channel, scenario), levels=proof)


def _channel_method(form: PublishedForm, scenario: SurveyScenario) -> ComparedMethod:
    return from_channel(form(scenario.prior, scenario.epsilon).channel, scenario)


def _hashing_method(form: Callable[..., Published], scenario: SurveyScenario) -> ComparedMethod:
    """A hashing form with public hash functions: each person draws one, and the report names it."""
    prior, epsilon = scenario.prior, scenario.epsilon
    hashes = [published.random_assignment(len(prior), epsilon, seed) for seed in range(_HASHES)]
    forms = [form(prior, epsilon, assignment).channel.matrix for assignment in hashes]
    return from_channel(Channel(np.hstack(forms) / _HASHES, prior.labels), scenario)


def _unary_method(form: PublishedForm, scenario: SurveyScenario) -> ComparedMethod:
    """Unary encoding, each bit read on its own, as printed."""
    if not scenario.query.asks_all_counts or scenario.secret is not None:
        raise Infeasible("the printed unary encoding is for a histogram of the value itself")
    printed_form = form(scenario.prior, scenario.epsilon)
    encoding = cast(UnaryEncoding, printed_form.mechanism)
    if_one, if_zero = single_bit_posteriors(encoding.law, scenario.prior.probabilities)
    support = published.Support(1 - encoding.one_to_zero, encoding.zero_to_one)

    def estimate(truth: Ints, rng: np.random.Generator) -> Array:
        people = int(truth.sum())
        ones = rng.binomial(truth, support.own) + rng.binomial(people - truth, support.other)
        if scenario.query.unbiased:
            return support.counts(ones, people)
        return np.asarray(ones * if_one + (people - ones) * if_zero)

    expected = _context_free_error(support, scenario) if scenario.query.unbiased else printed_form.mse
    return ComparedMethod(expected, printed_form.leakage, _squared_error(estimate, scenario))


def _context_free_method(scenario: SurveyScenario) -> ComparedMethod:
    """k-RR with the unbiased estimator that knows no prior."""
    if not scenario.query.asks_all_counts:
        raise Infeasible("the context-free estimator is for a histogram")
    form = published.k_rr(scenario.prior, scenario.epsilon)
    support, Q = cast(published.Support, form.support), form.channel.matrix

    def estimate(truth: Ints, rng: np.random.Generator) -> Array:
        return support.counts(rng.multinomial(truth, Q).sum(axis=0), int(truth.sum()))

    expected = _context_free_error(support, scenario)
    return ComparedMethod(expected, form.leakage, _squared_error(estimate, scenario))


def _context_free_error(support: published.Support, scenario: SurveyScenario) -> float:
    """The variance of unbiased counts, summed over the values. For a population it includes that of sampling people."""
    P = scenario.prior.probabilities
    noise = sum(support.variance(1, float(p)) for p in P)
    return noise + 1 - float(P @ P) if scenario.query.unbiased else noise


def _no_report_method(scenario: SurveyScenario) -> ComparedMethod:
    silent = Channel(np.ones((len(scenario.prior), 1)), scenario.prior.labels)
    return replace(from_channel(silent, scenario), levels=leakage_bounds(0.0, 0.0, 0.0, scenario.prior))


COMPARED_METHODS: dict[str, Callable[[SurveyScenario], ComparedMethod]] = {
    "best": partial(_design_method, "auto"),
    "rr": _certified_rr_method,
    "arc": partial(_design_method, "arc"),
    "unary": partial(_design_method, "unary"),
    "hashing": partial(_design_method, "hashing"),
    "published-rr": partial(_channel_method, published.rr_lip),
    "published-unary": partial(_unary_method, published.ue_lip),
    "published-hashing": partial(_hashing_method, published.lh_lip),
    "ldp-best": partial(_design_method, "auto", ldp=True),
    "ldp-same-lip": partial(_rival_method, same_lip_plan),
    "ldp-same-ldp": partial(_rival_method, same_ldp_plan),
    "ldp-rr": partial(_channel_method, published.k_rr),
    "ldp-unary": partial(_unary_method, published.oue),
    "ldp-hashing": partial(_hashing_method, published.olh),
    "context-free": _context_free_method,
    "none": _no_report_method,
}
SAME_LDP = "ldp-same-ldp"  # its budget is the LDP level of best, so its LIP level may be above epsilon


# -- one plan compared with others -------------------------------------------------------------------------


def error_curve(plan: Plan, seconds: float = 2.0) -> list[dict[str, float]]:
    """The query of a plan at budgets from a quarter to twice its own.

    Each row has `epsilon` (the smaller side), the expected `mse`, its proven `bound`, and the error of the best `ldp`
    mechanism, nan where that is not computed.
    """
    method: Literal["arc", "auto"] = "arc" if plan.method == "arc" else "auto"
    quick = len(plan.labels) <= _MOST_CURVED or (plan.query.unbiased and plan.query.asks_all_counts)
    rows = []
    for step in _STEPS:
        budget = Budget(plan.budget.lower * step, plan.budget.upper * step)
        arguments = plan.prior, budget, plan.query, plan.secret, plan.notion, method
        best = plan if step == 1 else design(*arguments, gap=1e-3, time_limit=seconds)
        rival = ldp_plan(plan, budget.smaller, seconds) if quick else None
        row = {"epsilon": budget.smaller, "mse": best.expected_mse}
        rows.append({**row, "bound": best.lower_bound, "ldp": rival.expected_mse if rival else math.nan})
    return rows
