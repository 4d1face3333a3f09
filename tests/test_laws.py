"""Theorems, as tests: what the paper states of the notions, for any channel, and how tight it is."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from checks import (
    CONES,
    NOTIONS,
    QUERIES,
    as_cone,
    at_most,
    check_closed_form_bound,
    check_information,
    check_post_processing,
    check_relabelling,
    check_silent_channel,
    close,
    finite,
    make_query,
    set_is_worse,
    tight,
)
from priorveil.channels import Channel
from priorveil.notions import DI, LDP, LIP, MIL, MIP, Pufferfish
from priorveil.priors import Prior, PriorSet, Secret
from priorveil.queries import Histogram, Sum
from priorveil.studies.published import k_rr
from strategies import after, channels, half_truths, levels, prior_sets, priors, secrets, sizes

by_name = {"ids": lambda thing: getattr(thing, "__name__", type(thing).__name__)}


def boundary(n: int) -> tuple[Prior, Channel]:
    """Theorem 3 for `n` equal values at `eps = log(n - 1)`: every lift is `e**eps` or `e**-eps`."""
    prior, lo = Prior.uniform(n), 1 / (n - 1)
    return prior, Channel((1 - lo) * np.eye(n) + lo * prior.probabilities)


def spread(prior: Prior) -> float:
    """The paper's `D`: the logarithm of the largest ratio of two prior probabilities."""
    return math.log(prior.probabilities.max() / prior.probabilities.min())


# The comparisons that the laws use


@pytest.mark.parametrize(("level", "bound"), [(1.0, 0.9), (math.nan, 1.0), (math.inf, 1.0)])
def test_a_level_above_its_bound_is_noticed(level, bound):
    assert not at_most(level, bound)
    assert not close(level, bound)


@pytest.mark.parametrize("bound", [math.inf, -math.inf, math.nan])
def test_a_bound_must_be_finite(bound):
    with pytest.raises(ValueError, match="bound"):
        at_most(1.0, bound)


# Every notion


@pytest.mark.parametrize("notion", NOTIONS, **by_name)
@given(st.data())
def test_post_processing_never_raises_a_level(notion, data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=data.draw(st.booleans())))
    secret = data.draw(st.none() | secrets(prior))
    check_post_processing(notion, channel, data.draw(after(channel)), prior, secret)


@pytest.mark.parametrize("notion", NOTIONS, **by_name)
@given(st.data())
def test_post_processing_under_a_set_of_priors(notion, data):
    d = data.draw(sizes)
    channel = data.draw(channels(d, positive=data.draw(st.booleans())))
    known = data.draw(prior_sets(d))
    assume(known.members or not isinstance(notion, MIP))
    check_post_processing(notion, channel, data.draw(after(channel)), known, None)


@pytest.mark.parametrize("notion", NOTIONS, **by_name)
@given(st.data())
def test_a_channel_holds_at_its_epsilon_and_not_below(notion, data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=data.draw(st.booleans())))
    tight(notion, channel, prior, data.draw(st.none() | secrets(prior)))


@pytest.mark.parametrize("notion", NOTIONS, **by_name)
@given(st.data())
def test_names_of_reports_dead_reports_and_coins_do_not_matter(notion, data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=data.draw(st.booleans())))
    check_relabelling(notion, channel, prior, data.draw(st.none() | secrets(prior)))
    check_silent_channel(notion, prior, channel)


@pytest.mark.parametrize("notion", CONES, **by_name)
@given(st.data())
def test_inequalities_say_what_epsilon_says(notion, data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=data.draw(st.booleans())))
    as_cone(notion, channel, prior, data.draw(st.none() | secrets(prior)))


@pytest.mark.parametrize("notion", CONES, **by_name)
@given(st.data())
def test_inequalities_hold_at_the_corners_of_a_set(notion, data):
    d = data.draw(st.integers(2, 4))
    as_cone(notion, data.draw(channels(d, positive=True)), data.draw(prior_sets(d)), None)


@pytest.mark.parametrize("notion", NOTIONS, **by_name)
@given(st.data())
def test_a_set_of_priors_is_never_better_than_its_members(notion, data):
    d = data.draw(sizes)
    members = data.draw(st.lists(priors(d), min_size=1, max_size=3))
    channel = data.draw(channels(d, positive=data.draw(st.booleans())))
    set_is_worse(notion, channel, PriorSet(members), members[-1])


@pytest.mark.parametrize("notion", NOTIONS, **by_name)
@given(st.data())
def test_boxes_and_balls_are_never_better_than_a_prior_inside(notion, data):
    d = data.draw(sizes)
    known = data.draw(prior_sets(d))
    inside = known.members[0] if known.members else known.centre
    set_is_worse(notion, data.draw(channels(d, positive=data.draw(st.booleans()))), known, inside)


# Every query


@pytest.mark.parametrize("query", QUERIES, **by_name)
@given(st.data())
def test_knowing_less_never_helps(query, data):
    prior = data.draw(priors())
    asked = make_query(query, len(prior))
    drawn = half_truths if asked.unbiased else channels
    channel = data.draw(drawn(len(prior)))
    check_information(asked, channel, data.draw(drawn(channel.shape[1])), prior)


@pytest.mark.parametrize("query", QUERIES, **by_name)
@given(st.data())
def test_no_channel_beats_the_free_bound(query, data):
    prior = data.draw(priors())
    asked = make_query(query, len(prior))
    blurred = channels(len(prior), positive=data.draw(st.booleans()))
    check_closed_form_bound(asked, data.draw(half_truths(len(prior)) if asked.unbiased else blurred), prior)


# LIP and LDP


@given(st.data())
def test_lip_implies_twice_ldp_and_ldp_implies_lip(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=True))
    lower, upper = LIP().sides(channel, prior)
    ldp = LDP().epsilon(channel)
    assert at_most(ldp, lower + upper)
    assert at_most(max(lower, upper), ldp)


@pytest.mark.parametrize("n", [3, 4, 10])
def test_the_factor_two_between_lip_and_ldp_is_met(n):
    prior, channel = boundary(n)
    assert close(LIP().epsilon(channel, prior), math.log(n - 1))
    assert close(LDP().epsilon(channel), 2 * math.log(n - 1))


@pytest.mark.parametrize("rare", [1e-2, 1e-4, 1e-8])
def test_ldp_implies_no_better_lip_where_one_value_is_almost_certain(rare):
    form = k_rr(Prior([1 - rare, rare]), 1.0)
    assert 1 - 3 * rare <= form.leakage.lip <= 1


@given(st.data())
def test_worst_case_lip_is_ldp(data):
    d = data.draw(sizes)
    channel = data.draw(channels(d))
    lower, upper = LIP().sides(channel, PriorSet.all(d))
    assert close(max(lower, upper), LDP().epsilon(channel))
    assert close(lower, upper)


@given(st.data())
def test_bounded_prior_lip_lies_between_lip_and_ldp(data):
    d = data.draw(sizes)
    known = data.draw(prior_sets(d))
    channel = data.draw(channels(d, positive=True))
    level = LIP().epsilon(channel, known)
    assert at_most(LIP().epsilon(channel, known.centre), level)
    assert at_most(level, LDP().epsilon(channel))


@given(st.data())
def test_a_latent_secret_leaks_no_more_than_the_value(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=data.draw(st.booleans())))
    sides_of_secret = LIP().sides(channel, prior, data.draw(secrets(prior)))
    sides_of_value = LIP().sides(channel, prior)
    assert at_most(sides_of_secret[1], sides_of_value[1])
    assert at_most(sides_of_secret[0], finite(sides_of_value[0]))


# Pufferfish


@given(st.data())
def test_pufferfish_implies_lip_and_lip_implies_twice_pufferfish(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=data.draw(st.booleans())))
    given_secrets = data.draw(st.lists(secrets(prior), min_size=1, max_size=3))
    lip, pufferfish = (notion.epsilon(channel, prior, given_secrets) for notion in (LIP(), Pufferfish()))
    each = [Pufferfish().epsilon(channel, prior, secret) for secret in given_secrets]
    assert pufferfish == max(each)
    assert math.isinf(lip) == math.isinf(pufferfish)
    assert at_most(lip, finite(pufferfish))
    assert at_most(pufferfish, 2 * lip)


def test_the_factor_two_between_lip_and_pufferfish_is_met():
    prior, channel = boundary(4)
    halves = Secret(np.repeat(np.eye(4), 2, axis=1) / 2)
    doubled = Channel(np.repeat(channel.matrix, 2, axis=0))
    assert close(LIP().epsilon(doubled, Prior.uniform(8), halves), math.log(3))
    assert close(Pufferfish().epsilon(doubled, prior, halves), 2 * math.log(3))


@given(st.data())
def test_pufferfish_of_the_value_itself_is_ldp(data):
    d = data.draw(sizes)
    channel = data.draw(channels(d))
    assert Pufferfish().epsilon(channel) == LDP().epsilon(channel)
    assert close(Pufferfish().epsilon(channel, None, Secret(np.eye(d))), LDP().epsilon(channel))


@given(st.data())
def test_fewer_pairs_are_easier(data):
    prior = data.draw(priors())
    secret = data.draw(secrets(prior))
    channel = data.draw(channels(len(prior), positive=data.draw(st.booleans())))
    some = Pufferfish(pairs=[(0, g) for g in range(len(secret))])
    assert at_most(some.epsilon(channel, prior, secret), finite(Pufferfish().epsilon(channel, prior, secret)))


# DI, MIP, MIL


@given(st.data())
def test_lip_and_di_imply_each_other_up_to_the_spread_of_the_prior(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior), positive=True))
    lip, di = LIP().epsilon(channel, prior), DI().epsilon(channel, prior)
    assert at_most(di, 2 * lip + spread(prior))
    assert at_most(lip, di + spread(prior))


def test_lip_to_di_is_met():
    prior = Prior([1 / 3, 1 / 3, 1 / 6, 1 / 6])
    lifts = np.array([[2, 0.5, 0.5], [0.5, 2, 0.5], [0.5, 0.5, 2], [0.5, 0.5, 2]])
    channel = Channel(lifts / 3)
    assert close(LIP().epsilon(channel, prior), math.log(2))
    assert close(DI().epsilon(channel, prior), 2 * math.log(2) + spread(prior))


@pytest.mark.parametrize("many", [10, 1000, 100_000])
def test_di_to_lip_is_approached(many):
    prior = Prior.from_counts([2] + [1] * many)
    seldom = np.full(many + 1, 0.01)
    seldom[0] /= 8  # the one heavy value: likelihood ratio 8, posterior ratio 4, prior ratio 2
    channel = Channel(np.column_stack([seldom, 1 - seldom]))
    assert close(DI().epsilon(channel, prior), math.log(4))
    bound = math.log(4) + spread(prior)
    assert bound - 3 / many <= LIP().epsilon(channel, prior) <= bound


@given(st.data())
def test_lip_implies_mip_and_mil(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior)))
    _, upper = LIP().sides(channel, prior)
    assert at_most(MIP().epsilon(channel, prior), upper)
    assert at_most(MIL().epsilon(channel), upper)
    assert at_most(MIP().epsilon(channel, prior), MIL().epsilon(channel))


@pytest.mark.parametrize("n", [3, 30, 1000])
def test_mil_meets_lip_and_mip_approaches_it(n):
    prior, channel = boundary(n)
    eps = math.log(n - 1)
    assert close(MIL().epsilon(channel), eps)
    assert close(MIP().epsilon(channel, prior), eps * (n - 2) / n)


@pytest.mark.parametrize("rare", [1e-2, 1e-6])
def test_neither_mip_nor_mil_implies_lip(rare):
    prior, channel = Prior.uniform(2), Channel([[1 - rare, rare], [1, 0]])
    assert MIP().epsilon(channel, prior) < 2 * rare
    assert MIL().epsilon(channel) < 2 * rare
    assert LIP().sides(channel, prior)[0] == math.inf


# Composition, and many people


@given(st.data())
def test_two_reports_on_the_value_leak_less_than_twice_the_sum_less_the_largest(data):
    prior = data.draw(priors())
    one, two = (data.draw(channels(len(prior), positive=True)) for _ in "12")
    first, second = LIP().epsilon(one, prior), LIP().epsilon(two, prior)
    joint = one.joint_with(two)
    assert at_most(LIP().epsilon(joint, prior), 2 * (first + second) - max(first, second))
    assert at_most(LDP().epsilon(joint), LDP().epsilon(one) + LDP().epsilon(two))


def test_two_reports_can_leak_more_than_the_sum_of_their_levels():
    prior, channel = boundary(4)
    lower, _ = LIP().sides(channel, prior)
    assert close(lower, math.log(3))
    assert close(
        LIP().sides(channel.joint_with(channel), prior)[0], math.log(21)
    )  # nine times 7/3, above 3 * 3


def test_two_harmless_reports_can_give_a_latent_secret_away():
    bits = list(product([0, 1], repeat=2))
    secret = Secret.from_joint([[a ^ b == g for a, b in bits] for g in (0, 1)])
    first, second = (Channel([[1.0 - pair[i], pair[i]] for pair in bits]) for i in (0, 1))
    prior = Prior.uniform(4)
    assert LIP().epsilon(first, prior, secret) == LIP().epsilon(second, prior, secret) == 0
    assert LIP().epsilon(first.joint_with(second), prior, secret) == math.inf


@given(st.data(), levels)
def test_errors_of_independent_people_add_up(data, weight):
    ones, twos = data.draw(priors()), data.draw(priors())
    q1, q2 = data.draw(channels(len(ones))), data.draw(channels(len(twos)))
    values, scaled = np.arange(len(ones)), weight * np.arange(len(twos))
    total = np.add.outer(values, scaled)
    error = 0.0
    for y1, y2 in product(range(q1.shape[1]), range(q2.shape[1])):
        joint = np.outer(ones.probabilities * q1.matrix[:, y1], twos.probabilities * q2.matrix[:, y2])
        if joint.sum() > 0:
            error += (joint * (total - (joint * total).sum() / joint.sum()) ** 2).sum()
    separate = Sum(values).error(q1, ones) + Sum(scaled + 3).error(q2, twos)
    assert error == pytest.approx(separate, abs=1e-9)


@given(st.data())
def test_at_most_d_reports_are_ever_needed(data):
    """Lemma 4, put right: some channel with at most `d` of the same lifts is at least as good."""
    prior = data.draw(priors(3))
    channel = data.draw(channels(3, positive=True)).drop_unused()
    lifts = channel.lift(prior)
    gains = Histogram().utility(lifts.T, prior)
    found = linprog(-gains, A_eq=lifts, b_eq=np.ones(3), bounds=(0, None), method="highs-ds")
    assert found.status == 0
    assert (found.x > 1e-9).sum() <= 3
    assert at_most(1 + found.fun, Histogram().error(channel, prior) + 1e-7)
