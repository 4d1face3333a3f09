"""Ways of asking people: mechanisms with estimators, by name, each with what it costs and what it leaks.

Published forms appear as printed, with the leakage they really have. Certified ones keep the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certificate
from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.designs.rounding import certified_table
from priorveil.errors import Infeasible
from priorveil.mechanisms import Table
from priorveil.mechanisms.randomness import as_source
from priorveil.notions import LDP, LIP, leakage
from priorveil.plans import Plan
from priorveil.priors import Array, Budget, Prior, Secret
from priorveil.queries import Histogram, Query
from priorveil.studies import published
from priorveil.studies.published import Published
from priorveil.studies.published.sets import Support, Unary

Counts = npt.NDArray[np.int64]
Kind = Literal["published", "certified", "best", "ldp", "baseline"]
Trial = Callable[[Counts, np.random.Generator], float]

_HASHES = 20  # public hash functions that people draw from, where a form does not say how many
_ROOM = 1e-9  # kept from the budget when a channel is mended, for rounding


@dataclass(frozen=True)
class Question:
    """What is asked, about whom, and within which budget."""

    prior: Prior
    epsilon: float
    query: Query = field(default_factory=Histogram)
    secret: Secret | None = None
    time_limit: float = 20.0


@dataclass(frozen=True, eq=False)
class Way:
    """One way to ask: its `expected` error per person, a proven `bound`, the levels it has, and a `trial`.

    `trial(counts, rng)` is one simulated survey: it takes how many people have each value and returns the
    error of the answer, squared, per person.
    """

    name: str
    kind: Kind
    expected: float
    lip: float
    ldp: float
    trial: Trial
    bound: float = math.nan


def from_plan(name: str, kind: Kind, plan: Plan, question: Question) -> Way:
    """A plan: its own sampler, its own estimator."""
    proof, guess = plan.certificate, question.query.kind == "guess"
    if guess and plan.mechanism.kind == "arc":
        trial: Trial = _untried  # its tally forgets where in a cell a report was: a guess may not
    else:
        trial = _guessing(plan.channel, question) if guess else _survey(plan, question.query)
    return Way(name, kind, plan.expected_mse, proof.lip, proof.ldp, trial, plan.lower_bound)


def from_channel(name: str, kind: Kind, channel: Channel, question: Question) -> Way:
    """A channel in floats, read with the posterior; its levels are measured."""
    levels = leakage(channel, question.prior, question.secret)
    error = question.query.error(channel, question.prior)
    guess = question.query.kind == "guess"
    trial = _guessing(channel, question) if guess else _posterior(channel, question)
    return Way(name, kind, error, levels.lip, levels.ldp, trial)


def mended(
    channel: Channel, prior: Prior, budget: Budget, secret: Secret | None = None
) -> tuple[Channel, Certificate]:
    """The channel mixed with its own output law, `(1 - t) Q + t 1 lam'`, as little as LIP needs; certified.

    This is what remains of a published form when its guarantee is kept: same reports, less truth.

    >>> form = published.rr_lip([0.1, 0.2, 0.7], 1.0)
    >>> fixed, proof = mended(form.channel, Prior([0.1, 0.2, 0.7]), Budget(1.0))
    >>> form.leakage.lip > 1.8, proof.lip <= 1.0
    (True, True)
    """
    Q, law = channel.drop_unused().matrix, channel.drop_unused().output_law(prior)
    means = Q if secret is None else secret.rows @ Q
    lift = means / law
    up, down = float(lift.max()) - 1, 1 - float(lift.min())
    keep = min(
        1.0,
        (budget.hi - 1) / up * (1 - _ROOM) if up > 0 else 1.0,
        (1 - budget.lo) / down * (1 - _ROOM) if down > 0 else 1.0,
    )
    weights, proof = certified_table(keep * Q + (1 - keep) * law, prior, budget, secret, LIP())
    return Channel(Table(weights).matrix, prior.labels), proof


def hashed(
    form: Callable[..., Published], question: Question, bins: int | None = None, seed: int = 0
) -> Channel:
    """A hashing form with public hash functions: each person draws one, and the report names it."""
    made = [form(question.prior, question.epsilon, bins=bins, seed=seed + h).channel for h in range(_HASHES)]
    return Channel(np.hstack([channel.matrix for channel in made]) / _HASHES, question.prior.labels)


def _best(question: Question) -> Way:
    plan = design(
        question.prior, question.epsilon, question.query, question.secret, time_limit=question.time_limit
    )
    return from_plan("best", "best", plan, question)


def _designed(method: Literal["arc", "unary", "hashing"]) -> Callable[[Question], Way]:
    def way(question: Question) -> Way:
        plan = design(question.prior, question.epsilon, question.query, question.secret, method=method)
        return from_plan(method, "certified", plan, question)

    return way


def _rr(question: Question) -> Way:
    form = published.rr_lip(question.prior, question.epsilon)
    channel, proof = mended(form.channel, question.prior, Budget(question.epsilon), question.secret)
    made = from_channel("rr", "certified", channel, question)
    return Way("rr", "certified", made.expected, proof.lip, proof.ldp, made.trial)


def _published_rr(question: Question) -> Way:
    form = published.rr_lip(question.prior, question.epsilon)
    return from_channel("published-rr", "published", form.channel, question)


def _published_hashing(question: Question) -> Way:
    return from_channel("published-hashing", "published", hashed(published.lh_lip, question), question)


def _bits(name: str, kind: Kind, form: Published, question: Question) -> Way:
    """Unary encoding read bit by bit, as printed."""
    if question.query.kind != "histogram" or question.secret is not None:
        raise Infeasible(f"{name} is printed for a histogram of the value itself")
    assert isinstance(form.mechanism, Unary)
    levels = form.leakage
    return Way(name, kind, form.mse, levels.lip, levels.ldp, _bitwise(form.mechanism, question.prior))


def _published_unary(question: Question) -> Way:
    return _bits("published-unary", "published", published.ue_lip(question.prior, question.epsilon), question)


def _ldp_unary(question: Question) -> Way:
    return _bits("ldp-unary", "ldp", published.oue(question.prior, question.epsilon), question)


def _ldp_rr(question: Question) -> Way:
    form = published.k_rr(question.prior, question.epsilon)
    return from_channel("ldp-rr", "ldp", form.channel, question)


def _ldp_hashing(question: Question) -> Way:
    return from_channel("ldp-hashing", "ldp", hashed(published.olh, question), question)


def _ldp_best(question: Question) -> Way:
    plan = design(
        question.prior, question.epsilon, question.query, notion=LDP(), time_limit=question.time_limit
    )
    return from_plan("ldp-best", "ldp", plan, question)


def _context_free(question: Question) -> Way:
    """k-RR with the unbiased estimator that knows no prior."""
    if question.query.kind != "histogram":
        raise Infeasible("the context-free estimator is for a histogram")
    form = published.k_rr(question.prior, question.epsilon)
    assert form.support is not None
    expected = sum(form.support.variance(1, float(p)) for p in question.prior.probabilities)
    trial = _supported(form.channel, form.support)
    return Way("context-free", "ldp", expected, form.leakage.lip, form.leakage.ldp, trial)


def _none(question: Question) -> Way:
    blank = Channel(np.ones((len(question.prior), 1)), question.prior.labels)
    made = from_channel("none", "baseline", blank, question)
    return Way("none", "baseline", made.expected, 0.0, 0.0, made.trial)


WAYS: dict[str, Callable[[Question], Way]] = {
    "best": _best,
    "rr": _rr,
    "arc": _designed("arc"),
    "unary": _designed("unary"),
    "hashing": _designed("hashing"),
    "published-rr": _published_rr,
    "published-unary": _published_unary,
    "published-hashing": _published_hashing,
    "ldp-best": _ldp_best,
    "ldp-rr": _ldp_rr,
    "ldp-unary": _ldp_unary,
    "ldp-hashing": _ldp_hashing,
    "context-free": _context_free,
    "none": _none,
}


# -- trials ------------------------------------------------------------------------------------------------


def _survey(plan: Plan, query: Query) -> Trial:
    """People run the plan, the curator tallies and estimates: the code that would run in earnest."""

    def trial(truth: Counts, rng: np.random.Generator) -> float:
        codes = np.repeat(np.arange(len(truth)), truth)
        reports = plan.mechanism.sample(codes, as_source(rng))
        return _squared(plan.estimate(plan.tally(reports)).values, truth, query)

    return trial


def _posterior(channel: Channel, question: Question) -> Trial:
    """Reports drawn value by value, read with the posterior."""
    live = channel.drop_unused()
    posterior = live.posterior(question.prior)

    def trial(truth: Counts, rng: np.random.Generator) -> float:
        estimate = posterior @ rng.multinomial(truth, live.matrix).sum(axis=0)
        return _squared(_answer(question.query, estimate, truth), truth, question.query)

    return trial


def _guessing(channel: Channel, question: Question) -> Trial:
    """How often the most likely value is not the true one."""
    live = channel.drop_unused()
    guess = live.posterior(question.prior).argmax(axis=0)

    def trial(truth: Counts, rng: np.random.Generator) -> float:
        seen = rng.multinomial(truth, live.matrix)
        return 1 - float(seen[guess, np.arange(len(guess))].sum() / truth.sum())

    return trial


def _bitwise(bits: Unary, prior: Prior) -> Trial:
    """Unary encoding, each bit read on its own."""
    P, q01, q10 = prior.probabilities, bits.zero_to_one, bits.one_to_zero
    one = P * (1 - q10) + (1 - P) * q01
    if_one, if_zero = P * (1 - q10) / one, P * q10 / (1 - one)

    def trial(truth: Counts, rng: np.random.Generator) -> float:
        ones = rng.binomial(truth, 1 - q10) + rng.binomial(truth.sum() - truth, q01)
        return _squared(ones * if_one + (truth.sum() - ones) * if_zero, truth, Histogram())

    return trial


def _supported(channel: Channel, support: Support) -> Trial:
    def trial(truth: Counts, rng: np.random.Generator) -> float:
        reports = rng.multinomial(truth, channel.matrix).sum(axis=0)
        return _squared(support.counts(reports, int(truth.sum())), truth, Histogram())

    return trial


def _untried(truth: Counts, rng: np.random.Generator) -> float:
    return math.nan


def _answer(query: Query, histogram: Array, truth: Counts) -> Array:
    """What a query makes of a histogram: itself, or a sum of scores."""
    rows = query.rows(Prior.uniform(len(truth)))
    return histogram if rows is None else np.asarray(rows @ histogram + query.offset * truth.sum())


def _squared(answer: Array, truth: Counts, query: Query) -> float:
    """The squared error of an answer, per person."""
    gap = answer - _answer(query, truth.astype(np.float64), truth)
    return float(gap @ gap) / float(truth.sum())
