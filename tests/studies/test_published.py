"""The paper's closed forms and the LDP baselines: what they claim, and what they really do."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from checks import at_most, close, finite
from priorveil.channels import Channel
from priorveil.errors import Infeasible, InvalidInput, NotIdentifiable, TooLarge
from priorveil.notions import LIP, leakage
from priorveil.priors import Budget, Prior, PriorSet, Secret
from priorveil.queries import Distribution, Guess, Histogram, Sum
from priorveil.studies import published
from priorveil.studies.published import UnaryEncoding
from priorveil.words.levels import leakage_rows
from refusals import raises
from strategies import levels, prior_sets, priors, secrets, sizes

GENEROUS = 1e-9


def upper_side(lightest: float, eps: float) -> float:
    """What Theorem 3 leaks upwards."""
    return math.log(math.exp(-eps) + (1 - math.exp(-eps)) / lightest)


# Theorem 3 and Corollary 1


@pytest.mark.parametrize(
    ("prior", "eps", "leaks"),
    [([0.1, 0.2, 0.7], 1.0, 1.900), ([0.025] * 4 + [0.9], 1.0, 3.245), ([0.2, 0.8], 0.6, 1.031)],
)
def test_theorem_3_on_the_papers_own_priors(prior, eps, leaks):
    form = published.rr_lip(prior, eps)
    assert form.claimed == eps
    assert form.notion == "LIP"
    assert form.leakage.lip == pytest.approx(leaks, abs=5e-4)
    assert form.leakage.lip_lower == pytest.approx(eps)
    assert form.excess == pytest.approx(form.leakage.lip - eps)


def test_theorem_3_is_as_printed():
    Q = published.rr_lip([0.1, 0.2, 0.7], 1.0).channel.matrix
    e = math.e
    printed = [
        [1 - 0.9 / e, 0.2 / e, 0.7 / e],
        [0.1 / e, 1 - 0.8 / e, 0.7 / e],
        [0.1 / e, 0.2 / e, 1 - 0.3 / e],
    ]
    assert pytest.approx(np.array(printed)) == Q


@given(priors(), levels)
def test_theorem_3_holds_if_and_only_if_every_value_has_mass_tau(prior, eps):
    form, lightest = published.rr_lip(prior, eps), prior.probabilities.min()
    tau = 1 / (1 + math.exp(eps))
    assume(abs(lightest - tau) > 1e-6 * tau)
    assert (form.excess < GENEROUS) == (lightest > tau)
    assert close(form.leakage.lip_lower, eps)
    assert close(form.leakage.lip_upper, upper_side(lightest, eps))


@given(priors(), levels)
def test_theorem_3_meets_the_free_bounds_of_a_one_sided_budget(prior, eps):
    channel, budget = published.rr_lip(prior, eps).channel, Budget(eps, math.inf)
    assert LIP().sides(channel, prior)[0] <= eps + GENEROUS
    for query in (Histogram(), Sum(range(len(prior)))):
        assert query.error(channel, prior) == pytest.approx(query.closed_form_bound(prior, budget), abs=1e-9)


@given(st.data(), levels)
def test_theorem_3_is_optimal_for_every_utility_where_it_holds(data, eps):
    tau = 1 / (1 + math.exp(eps))
    d = data.draw(st.integers(2, max(2, min(6, int(1 / tau)))))
    assume(d * tau < 1)
    extra = np.array(data.draw(st.lists(st.integers(1, 9), min_size=d, max_size=d)))
    prior = Prior(tau + (1 - d * tau) * extra / extra.sum())
    channel = published.rr_lip(prior, eps).channel
    histogram = Histogram()
    assert histogram.error(channel, prior) == pytest.approx(
        histogram.closed_form_bound(prior, Budget(eps)), abs=1e-9
    )
    other = published.k_rr(prior, eps).channel
    for query in (histogram, Sum(range(d)), Guess(), Distribution()):
        assert at_most(query.error(channel, prior), query.error(other, prior))


@given(priors(), levels)
def test_corollary_1_is_theorem_3_on_the_pushed_forward_prior(prior, eps):
    form = published.rr_lip(prior.push(lambda x: x % 2), eps)
    raw = Channel(form.channel.matrix[[x % 2 for x in prior.labels]])
    assert close(LIP().epsilon(raw, prior), form.leakage.lip)


# Theorem 2


def best_binary(p: float, given_one: np.ndarray, eps: float) -> float:
    """The smallest error of any channel: two reports at the ends of the allowed posteriors of 1."""
    least, most = 0.0, 1.0
    for t in given_one:
        start, slope = (1 - t) / (1 - p), t / p - (1 - t) / (1 - p)
        if slope != 0:
            ends = sorted([(math.exp(-eps) - start) / slope, (math.exp(eps) - start) / slope])
            least, most = max(least, ends[0]), min(most, ends[1])
    return p * (1 - p) - (p - least) * (most - p)


def test_theorem_2_is_private_but_suboptimal_in_a_quarter_of_random_cases():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(800):
        given_one, weight, eps = rng.random(2), rng.random(), rng.uniform(0.1, 3)
        p = float(weight * given_one[0] + (1 - weight) * given_one[1])
        prior, secret = Prior([1 - p, p]), Secret(np.column_stack([1 - given_one, given_one]))
        form = published.binary_latent(prior, secret, eps)
        assert form.excess < GENEROUS
        error, best = Sum([0, 1]).error(form.channel, prior), best_binary(p, given_one, eps)
        assert error >= best - GENEROUS
        ratios.append(error / best if best > GENEROUS else 1.0)
    assert 0.2 < np.mean(np.array(ratios) > 1 + 1e-6) < 0.3
    assert max(ratios) > 5


def test_theorem_2_can_err_many_times_more_than_it_needs_to():
    """In large random samples the worst ratio lies anywhere from 10 to 50; here is one of the latter."""
    given_one, p, eps = np.array([0.981, 0.9994]), 0.99535, 1.937
    prior, secret = Prior([1 - p, p]), Secret(np.column_stack([1 - given_one, given_one]))
    form = published.binary_latent(prior, secret, eps)
    assert form.excess < GENEROUS
    assert Sum([0, 1]).error(form.channel, prior) > 11 * best_binary(p, given_one, eps)


def test_the_best_binary_channel_is_private_and_as_good_as_said():
    """The yardstick itself: two reports at the ends of the allowed posteriors."""
    p, given_one, eps = 0.3, np.array([0.1, 0.6]), 0.5
    prior, secret = Prior([1 - p, p]), Secret(np.column_stack([1 - given_one, given_one]))
    q0, q1 = np.meshgrid(np.linspace(0, 1, 61), np.linspace(0, 1, 61))
    errors = [
        Sum([0, 1]).error(channel, prior)
        for channel in (
            Channel([[1 - a, a], [b, 1 - b]]) for a, b in zip(q0.ravel(), q1.ravel(), strict=True)
        )
        if LIP().holds(channel, prior, eps, secret)
    ]
    best = best_binary(p, given_one, eps)
    assert best - GENEROUS <= min(errors) <= 1.05 * best


@given(st.data(), levels)
def test_theorem_2_is_always_private(data, eps):
    prior = data.draw(priors(2))
    secret = data.draw(secrets(prior))
    assert published.binary_latent(prior, secret, eps).excess < 1e-6


def test_theorem_2_without_a_latent_secret_contradicts_theorem_3():
    prior, eps = Prior([0.4, 0.6]), 1.0
    latent, direct = published.binary_latent(prior, None, eps), published.rr_lip(prior, eps)
    assert latent.channel.matrix == pytest.approx(published.k_rr(2, eps).channel.matrix)
    assert direct.excess < GENEROUS
    assert direct.mse < 0.95 * latent.mse


def test_theorem_2_releases_what_is_almost_independent_of_the_secret():
    form = published.binary_latent([0.5, 0.5], Secret([[0.55, 0.45], [0.45, 0.55]]), 1.0)
    assert np.array_equal(form.channel.matrix, np.eye(2))
    assert form.leakage.ldp == math.inf


# Proposition 1


def test_proposition_1_breaks_privacy_for_the_other_reports():
    form = published.release_symbol([0.6, 0.4], Secret([[0.95, 0.05], [0.25, 0.75]]), 1.0, 0)
    given_secret = form.secret.rows @ form.channel.matrix
    lifts = given_secret / form.channel.output_law(form.prior)
    assert math.exp(-1) < lifts[:, 0].min() < lifts[:, 0].max() < math.e
    assert lifts[0, 1] == pytest.approx(0.125)
    assert form.leakage.lip == pytest.approx(math.log(8))


@given(st.data(), levels)
def test_whatever_is_done_with_the_other_symbols_leaks_at_least_as_much(data, eps):
    prior = data.draw(priors())
    secret = data.draw(secrets(prior))
    d = len(prior)
    try:
        form = published.release_symbol(prior, secret, eps, 0)
    except Infeasible:
        reject()
    rest = np.random.default_rng(d).dirichlet(np.ones(3), d)
    rest[0] = 0
    finer = Channel(np.column_stack([np.arange(d) == 0, rest]))
    assert at_most(form.leakage.lip, finite(LIP().epsilon(finer, prior, secret)))


@given(st.data())
def test_if_all_symbols_meet_the_condition_the_value_may_be_released(data):
    prior = data.draw(priors())
    rng = np.random.default_rng(0)
    tilt = prior.probabilities * rng.uniform(0.7, 1.4, len(prior))
    one = tilt / tilt.sum()
    other = 1.25 * prior.probabilities - 0.25 * one
    secret = Secret(np.array([one, other / other.sum()]))
    eps = float(np.abs(np.log(secret.rows / prior.probabilities)).max())
    assert LIP().epsilon(Channel.identity(len(prior)), prior, secret) <= eps + GENEROUS
    for symbol in prior.labels:
        published.release_symbol(prior, secret, eps + GENEROUS, symbol)


# Proposition 2


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), levels)
def test_proposition_2_holds_if_and_only_if_the_bounds_are_balanced(one, other, eps):
    a, b = sorted((one, other))
    balance = math.log(a / (1 - b))
    assume(abs(abs(balance) - eps) > 1e-6)
    assert (published.binary_bounded(a, b, eps).excess < GENEROUS) == (abs(balance) < eps)


@given(levels)
def test_proposition_2_for_all_priors_is_randomised_response(eps):
    form = published.binary_bounded(0.0, 1.0, eps)
    assert form.channel.matrix == pytest.approx(published.k_rr(2, eps).channel.matrix)
    assert form.excess < GENEROUS


@given(st.floats(0.01, 0.99), levels)
def test_proposition_2_for_one_prior_is_theorem_3(p, eps):
    form, single = published.binary_bounded(p, p, eps), published.rr_lip([1 - p, p], eps)
    assert form.channel.matrix == pytest.approx(single.channel.matrix)
    assert form.leakage.lip == pytest.approx(single.leakage.lip, abs=1e-9)


# Proposition 3


@given(priors(), levels, st.integers(1, 5), st.integers(0, 99))
def test_proposition_3_holds_if_and_only_if_every_bin_has_mass_tau(prior, eps, bins, seed):
    hashed_to = np.random.default_rng(seed).integers(bins, size=len(prior))
    form = published.lh_lip(prior, eps, hashed_to)
    hashed = [int(np.flatnonzero(row == row.max())[0]) for row in form.channel.matrix]
    masses = np.bincount(hashed, weights=prior.probabilities, minlength=form.channel.shape[1])
    tau = 1 / (1 + math.exp(eps))
    assume(abs(masses.min() - tau) > 1e-6 * tau)
    assert (form.excess < GENEROUS) == (masses.min() > tau)


@pytest.mark.parametrize("bins", [4, 12, 13, 14, 15, 16])
def test_the_bin_counts_of_the_paper_break_lip(bins):
    """At eps = 1 no hash that uses four bins or more is valid, for the paper's prior or a uniform one."""
    rising = np.arange(1, 21) / 210
    for prior, seed in product((Prior.uniform(20), Prior(rising)), range(20)):
        form = published.lh_lip(prior, 1.0, np.random.default_rng(seed).integers(bins, size=20))
        used = form.channel.shape[1]
        assert used <= 3 or form.excess > 0.05


def test_a_hash_whose_bins_are_heavy_is_valid():
    form = published.lh_lip(Prior.uniform(9), 1.0, assignment=[0, 1, 2] * 3)
    assert form.excess < GENEROUS
    assert form.channel.shape == (9, 3)


# Theorem 4 and Corollary 2


@given(priors(), levels)
def test_theorem_4_is_private_and_tight(prior, eps):
    form = published.ue_lip(prior, eps)
    assert close(form.leakage.lip, eps)
    assert at_most(form.leakage.ldp, 2 * eps)
    light = prior.probabilities.min()
    assert form.mechanism.ratio == pytest.approx((math.exp(eps) - light) / (1 - light))


@given(st.data(), levels)
def test_corollary_2_is_private_for_every_prior_of_the_set(data, eps):
    known = data.draw(prior_sets(data.draw(sizes)))
    form = published.ue_lip(known, eps)
    assert close(form.leakage.lip, eps)
    assert close(LIP().epsilon(form.channel, known), eps)


@given(st.data(), levels, st.floats(0.1, 0.9))
def test_closed_form_leakage_of_unary_encoding_is_that_of_all_its_reports(data, eps, one_to_zero):
    prior = data.draw(priors())
    known = data.draw(st.just(prior) | prior_sets(len(prior)))
    odds = (1 - one_to_zero) / one_to_zero / math.exp(eps)
    bit = UnaryEncoding(odds / (1 + odds), one_to_zero)
    listed = leakage(bit.channel(known.labels), known)
    assert bit.leakage(known) == listed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "_MOST_BITS", 0)
        closed = bit.leakage(known)
    for (name, one, _), (_, other, _) in zip(leakage_rows(listed), leakage_rows(closed), strict=True):
        if name in closed.bounds:
            assert one == other or at_most(one, other), name
        else:
            assert one == pytest.approx(other, abs=1e-7), name


@pytest.mark.parametrize(("size", "eps"), [(6, 1.0), (10, 2.0), (83, 4.0)])
def test_a_half_is_not_the_best_flip_on_the_tight_curve(size, eps):
    prior = Prior.uniform(size)
    form = published.ue_lip(prior, eps)
    odds = 0.55 / 0.45 / form.mechanism.ratio
    better = UnaryEncoding(odds / (1 + odds), 0.45)
    assert better.leakage(prior).lip == pytest.approx(eps)
    assert better.mse(prior) < form.mse - 1e-4


@pytest.mark.parametrize("prior", [Prior.uniform(6), Prior.zipf(10)])
def test_the_posterior_of_the_whole_vector_beats_the_one_of_each_bit(prior):
    form = published.ue_lip(prior, 1.0)
    assert Histogram().error(form.channel, prior) < form.mse - 1e-3


@given(priors(), levels)
def test_error_of_unary_encoding_bit_by_bit(prior, eps):
    form = published.ue_lip(prior, eps)
    bits = [Channel([[1 - q, q] for q in row]) for row in _bit_rows(form.mechanism)]
    P = prior.probabilities
    each = [Sum([0, 1]).error(bits[0], Prior([1 - p, p])) for p in P if p < 1 - 1e-12]
    assert form.mse == pytest.approx(sum(each), abs=1e-9)
    assert at_most(Histogram().error(form.channel, prior), form.mse)


def _bit_rows(bit: UnaryEncoding) -> list[list[float]]:
    return [[bit.zero_to_one, 1 - bit.one_to_zero]]


def test_a_large_unary_encoding_is_measured_but_not_listed():
    form = published.ue_lip(Prior.zipf(1000), 1.0)
    assert form.leakage.lip == pytest.approx(1.0)
    assert form.leakage.bounds == ("MIL", "MIP", "DI")
    with pytest.raises(TooLarge):
        form.channel  # noqa: B018


def test_the_errors_in_the_notes():
    uniform, zipf = Prior.uniform(83), Prior.zipf(83)
    assert published.ue_lip(uniform, 4.0).mse == pytest.approx(0.869, abs=5e-4)
    assert published.ue_lip(zipf, 2.0).mse == pytest.approx(0.885, abs=6e-4)
    assert Distribution().error(published.k_rr(6, 1.0).channel, Prior.uniform(6)) == pytest.approx(
        16.8, abs=0.05
    )
    skewed = Prior([0.025] * 4 + [0.9])
    assert Distribution().error(published.k_rr(skewed, 1.0).channel, skewed) == pytest.approx(11.6, abs=0.05)


# LDP baselines


def baselines(values, eps):
    return [kind(values, eps) for kind in (published.k_rr, published.oue, published.olh)]


@given(priors(), levels)
def test_ldp_baselines_keep_their_claim_and_so_lip(prior, eps):
    for form in baselines(prior, eps):
        assert form.notion == "LDP"
        assert at_most(form.leakage.ldp, eps)
        assert at_most(form.leakage.lip, eps)


@given(sizes, levels)
def test_ldp_baselines_with_nothing_known(size, eps):
    for form in baselines(size, eps):
        assert close(form.leakage.lip, form.leakage.ldp)
        assert at_most(form.leakage.ldp, eps)
        with raises(InvalidInput, argument="prior"):
            form.mse  # noqa: B018


def test_unary_encoding_with_a_prior_needs_less_noise_than_without():
    for eps in (0.5, 1.0, 3.0):
        ours, theirs = published.ue_lip(Prior.zipf(20), eps), published.oue(20, eps)
        assert ours.mechanism.zero_to_one < theirs.mechanism.zero_to_one


# Context-free estimators


@given(st.data(), levels)
def test_context_free_counts_are_unbiased(data, eps):
    """Exactly: the mean number of supporting reports, from the channel, gives the true counts back."""
    d = data.draw(sizes)
    counts = np.array(data.draw(st.lists(st.integers(0, 50), min_size=d, max_size=d)))
    n = int(counts.sum())
    for form in (published.k_rr(d, eps), published.oue(d, eps)):
        supported = counts @ form.channel.matrix @ _supports(form, d)
        assert form.support.counts(supported, n) == pytest.approx(counts, abs=1e-6)


def _supports(form: published.Published, d: int) -> np.ndarray:
    """Which values each report supports."""
    if isinstance(form.mechanism, UnaryEncoding):
        return np.array([[int(bit) for bit in name] for name in form.channel.outputs])
    Q = form.channel.matrix.T
    return (Q.min(axis=1, keepdims=True) * (1 + 1e-9) < Q).astype(int)


def test_olh_counts_are_unbiased_over_all_hashes():
    d, bins, eps = 3, 2, 1.0
    own = np.zeros(d)
    hashes = list(product(range(bins), repeat=d))
    for assignment in hashes:
        form = published.olh(d, eps, assignment, bins)
        held = np.array([[assignment[v] == y for v in range(d)] for y in range(bins)])
        own += form.channel.matrix[0] @ held / len(hashes)
    assert own == pytest.approx([form.support.own, form.support.other, form.support.other])


def printed_estimate(total, people, size, eps):
    """The context-free estimator as the paper prints it; `total` is the sum of the reports."""
    p = math.exp(eps) / (math.exp(eps) + size - 1)
    return (total - people * p) / (1 - 2 * p)


def printed_mse(people, size, eps):
    """The error that the paper prints with that estimator."""
    return people * (size - 2 + math.exp(eps)) / (math.exp(eps) - 1) ** 2


@given(sizes, levels, st.floats(0, 1))
def test_variance_of_a_k_rr_count(d, eps, share):
    support, n = published.k_rr(d, eps).support, 1000
    kept, stray = support.own * (1 - support.own), support.other * (1 - support.other)
    by_hand = n * (share * kept + (1 - share) * stray) / (support.own - support.other) ** 2
    assert support.variance(n, share) == pytest.approx(by_hand)
    assert printed_mse(n, d, eps) == pytest.approx(support.variance(n))


def test_the_printed_estimator_is_warners_with_the_bits_exchanged():
    n, ones, eps = 100, 30, 1.0
    truth = math.e / (math.e + 1)
    expected_total = ones * truth + (n - ones) * (1 - truth)
    assert printed_estimate(expected_total, n, 2, eps) == pytest.approx(n - ones)
    assert published.k_rr(2, eps).support.counts([n - expected_total, expected_total], n) == pytest.approx(
        [70, 30]
    )


def test_the_printed_estimator_is_wrong_for_more_than_two_values():
    d, eps, counts = 5, 1.0, np.array([10, 20, 30, 25, 15])
    reports = counts @ published.k_rr(d, eps).channel.matrix
    total = float(reports @ np.arange(d))
    truth = float(counts @ np.arange(d))
    assert abs(printed_estimate(total, 100, d, eps) - truth) > 50
    assert published.k_rr(d, eps).support.counts(reports, 100) == pytest.approx(counts)


# Bad input


@pytest.mark.parametrize("eps", [-1.0, math.nan, math.inf, "one", None, Budget(1.0)])
def test_a_bad_epsilon_is_refused_everywhere(eps):
    prior, secret = Prior([0.5, 0.5]), Secret([[0.6, 0.4], [0.4, 0.6]])
    calls = [
        lambda: published.rr_lip(prior, eps),
        lambda: published.lh_lip(prior, eps),
        lambda: published.binary_latent(prior, secret, eps),
        lambda: published.release_symbol(prior, secret, eps, 0),
        lambda: published.binary_bounded(0.1, 0.2, eps),
        lambda: published.ue_lip(prior, eps),
        lambda: published.ue_lip(PriorSet.all(2), eps),
        *(lambda kind=kind: kind(2, eps) for kind in (published.k_rr, published.oue, published.olh)),
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()


def test_at_epsilon_zero_nothing_is_said():
    prior = Prior([0.2, 0.3, 0.5])
    lip = (published.rr_lip(prior, 0.0), published.ue_lip(prior, 0.0), published.lh_lip(prior, 0.0))
    for form in (*lip, *baselines(prior, 0.0)):
        assert form.leakage.ldp == pytest.approx(0.0)
        assert form.mse == pytest.approx(Histogram().no_report(prior))
    with pytest.raises(NotIdentifiable):
        published.k_rr(3, 0.0).support.counts([1, 2, 3], 6)
    assert published.k_rr(3, 0.0).support.variance(6) == math.inf


def test_one_value_needs_no_protection():
    for form in (
        published.rr_lip([1.0], 1.0),
        published.ue_lip([1.0], 1.0),
        published.oue(Prior([1.0]), 1.0),
    ):
        assert form.leakage.lip == pytest.approx(0.0)
        assert form.leakage.ldp == pytest.approx(0.0)
