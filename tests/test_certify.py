"""Certificates: integers in, proofs out. Checked against fractions by hand and decimals of 120 digits."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import ctx
from hypothesis import given
from hypothesis import strategies as st

from checks import close
from priorveil.certify import (
    TOTAL,
    Lifts,
    certificate,
    certified_table,
    certify_table,
    exp_above,
    exp_below,
    keeps_budget,
    lifts,
    log_above,
)
from priorveil.channels import Channel
from priorveil.errors import CertificateError, InvalidInput
from priorveil.notions import DI, LDP, LIP, ComparedRows, Cone, Pufferfish, leakage
from priorveil.priors import Budget, Prior, PriorSet, Secret
from refusals import raises
from strategies import levels, prior_sets, priors, secrets, sizes, tables

EVEN = Prior([0.5, 0.5])
CLEAR = np.array([[3, 1], [1, 3]])
DIGITS = decimal.Context(prec=120)


def log(ratio: Fraction) -> Decimal:
    """The logarithm to 120 digits."""
    return DIGITS.ln(DIGITS.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def by_hand(table: np.ndarray, prior: Prior, secret: Secret | None) -> tuple[Fraction, Fraction]:
    """The smallest and largest lift, entry by entry, in fractions."""
    W, P = table.tolist(), prior.fractions
    weights = np.eye(len(W), dtype=int).tolist() if secret is None else secret.weights
    found = []
    for y in range(len(W[0])):
        law = sum(p * row[y] for p, row in zip(P, W, strict=True))
        if law:
            means = [Fraction(sum(t * row[y] for t, row in zip(T, W, strict=True)), sum(T)) for T in weights]
            found += [mean / law for mean in means]
    return min(found), max(found)


# Enclosures


@given(st.one_of(levels, st.floats(-40, 40), st.sampled_from([1e-300, -1e-300, 5e-324, 100.0, 700.0])))
def test_e_lies_between_its_enclosures(level):
    below, above = exp_below(level), exp_above(level)
    assert below <= above
    assert above - below <= Fraction(3, 2**200) * max(1, above)
    with decimal.localcontext(DIGITS):
        true = Decimal(level).exp()
        slack = Decimal(10) ** -110 * true
        assert Decimal(below.numerator) / Decimal(below.denominator) <= true + slack
        assert Decimal(above.numerator) / Decimal(above.denominator) >= true - slack
    assert (below >= 1) if level > 0 else (above <= 1)


@given(st.integers(1, 2**70), st.integers(1, 2**70))
def test_logarithms_are_the_smallest_float_above(numerator, denominator):
    ratio = Fraction(numerator, denominator)
    found = log_above(ratio)
    if ratio <= 1:
        assert found == 0
    else:
        assert Decimal(found) >= log(ratio)
        assert Decimal(math.nextafter(found, 0)) < log(ratio)


@pytest.mark.parametrize("bits", [60, 300, 1000, 2000])
def test_a_ratio_next_to_one_is_above_zero_and_found_at_once(bits):
    found = log_above(Fraction(2**bits + 1, 2**bits))
    assert 0 < found <= max(2.0**-bits, 5e-324) * (1 + 1e-12)


def test_the_precision_of_others_is_left_alone():
    before = ctx.prec
    certify_table(CLEAR, EVEN, 1.0)
    assert ctx.prec == before


# Exact levels


@given(st.data())
def test_lifts_are_exact(data):
    prior = data.draw(priors())
    table, secret = data.draw(tables(len(prior))), data.draw(st.none() | secrets(prior))
    found = lifts(table, prior, secret)
    assert (found.lowest, found.highest) == by_hand(table, prior, secret)
    columns = [c for c in table.T.tolist() if any(c)]
    assert found.ldp == (
        None if any(0 in c for c in columns) else max(Fraction(max(c), min(c)) for c in columns)
    )


@given(st.data())
def test_levels_never_lie_below_the_truth(data):
    prior = data.draw(priors())
    table, secret = data.draw(tables(len(prior))), data.draw(st.none() | secrets(prior))
    lowest, highest = by_hand(table, prior, secret)
    found = certificate(lifts(table, prior, secret))
    assert Decimal(found.lip_upper) >= log(highest)
    assert found.lip_lower == math.inf if lowest == 0 else Decimal(found.lip_lower) >= -log(lowest)
    assert found.lip == max(found.lip_lower, found.lip_upper) == found.level


@given(st.data())
def test_the_levels_of_floats_are_near(data):
    prior = data.draw(priors())
    table, secret = data.draw(tables(len(prior), positive=True)), data.draw(st.none() | secrets(prior))
    rough = leakage(Channel.from_weights(table), prior, secret)
    for notion, level in (
        (LIP(), rough.lip),
        (LDP(), rough.ldp),
        (DI(), rough.di),
        (Pufferfish(), rough.pufferfish),
    ):
        found = certificate(lifts(table, prior, secret, notion), notion)
        assert found.notion == type(notion).__name__
        assert found.level == pytest.approx(level, abs=1e-6)
        assert found.ldp == pytest.approx(rough.ldp, abs=1e-6)


@given(st.data())
def test_a_table_is_certified_at_its_level_and_not_one_float_below(data):
    prior = data.draw(priors())
    table = data.draw(tables(len(prior), positive=True))
    secret = data.draw(st.none() | secrets(prior))
    for notion in (LIP(), LDP(), DI(), Pufferfish()):
        level = certificate(lifts(table, prior, secret, notion), notion).level
        if math.isinf(level):
            continue
        assert certify_table(table, prior, level, secret, notion).level == level
        if level > 0:
            with pytest.raises(CertificateError):
                certify_table(table, prior, math.nextafter(level, 0), secret, notion)


def test_integers_that_floats_get_wrong():
    """One grain in 2**62: the floats see no difference at all."""
    half = TOTAL // 2
    table = np.array([[half + 1, half - 1], [half - 1, half + 1]])
    assert LIP().holds(Channel.from_weights(table), EVEN, 0.0)
    with pytest.raises(CertificateError):
        certify_table(table, EVEN, 0.0)
    assert 0 < certificate(lifts(table, EVEN)).lip <= 2.0**-60


def test_floats_err_on_the_unsafe_side_often_enough_to_matter():
    rng = np.random.default_rng(0)
    unsafe = 0
    for _ in range(200):
        cuts = np.sort(rng.integers(1, TOTAL, (3, 2)), axis=1)
        table = np.diff(np.hstack([np.zeros((3, 1), np.int64), cuts, np.full((3, 1), TOTAL)]), axis=1)
        prior = Prior.from_counts(rng.integers(1, 100, 3))
        rough = LIP().epsilon(Channel.from_weights(table), prior)
        unsafe += Decimal(rough) < max(
            log(h) for h in (1 / by_hand(table, prior, None)[0], by_hand(table, prior, None)[1])
        )
    assert unsafe > 20


# Budgets, secrets, sets


def test_asymmetric_and_one_sided_budgets():
    lower, upper = math.log(2), math.log(1.5)
    assert certify_table(CLEAR, EVEN, Budget(lower + 1e-12, upper + 1e-12)).lip_lower == pytest.approx(lower)
    assert certify_table(CLEAR, EVEN, Budget(math.inf, upper + 1e-12)).lip_upper == pytest.approx(upper)
    assert certify_table(CLEAR, EVEN, Budget(lower + 1e-12, math.inf))
    with pytest.raises(CertificateError) as refused:
        certify_table(CLEAR, EVEN, Budget(1.0, 0.4))
    assert refused.value.breach.side == "upper"
    with pytest.raises(CertificateError) as refused:
        certify_table(CLEAR, EVEN, Budget(0.69, 1.0))
    assert refused.value.breach.side == "lower"
    truth = np.array([[1, 0], [0, 1]])
    assert certify_table(truth, EVEN, Budget(math.inf, 0.7)).lip_lower == math.inf
    with pytest.raises(CertificateError):
        certify_table(truth, EVEN, 100.0)


def test_the_error_names_the_place():
    table = np.array([[1, 7, 0], [4, 4, 0], [4, 4, 0]])
    with pytest.raises(CertificateError) as refused:
        certify_table(table.tolist(), Prior.uniform(3), 1.0)
    assert (refused.value.breach.secret, refused.value.breach.report) == (0, 0)


@pytest.mark.parametrize(("notion", "where"), [(LIP(), "the upper side is broken"), (LDP(), "LDP level")])
def test_a_design_that_breaks_its_budget_is_refused_by_its_own_notion(notion, where):
    with pytest.raises(CertificateError, match=f"even mixed with its output law: {where}"):
        certified_table(np.eye(2), EVEN, Budget(0.001), notion=notion)


def test_a_latent_secret_is_certified_for_itself_alone():
    secret = Secret([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    prior = Prior([0.25, 0.5, 0.25])
    table = np.array([[1, 0], [0, 1], [1, 0]])
    found = certify_table(table, prior, 1e-9, secret)
    assert found.lip == 0
    assert found.ldp == math.inf


@given(st.data())
def test_a_set_of_priors_is_certified_at_its_worst_corner(data):
    d = data.draw(st.integers(2, 4))
    known, table = data.draw(prior_sets(d)), data.draw(tables(d, positive=True))
    found = lifts(table, known)
    if known.members:
        each = [by_hand(table, member, None) for member in known.members]
        assert (found.lowest, found.highest) == (min(low for low, _ in each), max(high for _, high in each))
    rough = LIP().sides(Channel.from_weights(table), known)
    exactly = certificate(found)
    assert (exactly.lip_lower, exactly.lip_upper) == pytest.approx(rough, abs=1e-6)


@given(st.data())
def test_worst_case_lip_is_ldp_to_the_last_digit(data):
    d = data.draw(sizes)
    found = lifts(data.draw(tables(d, positive=True)), PriorSet.all(d))
    assert found.highest == 1 / found.lowest == found.ldp


def test_scenarios_and_pairs():
    prior, table = Prior.uniform(3), np.array([[2, 1], [1, 2], [1, 2]])
    one, two = Secret([[1, 0, 0], [0, 0.5, 0.5]]), Secret(np.full((1, 3), 1 / 3))
    assert lifts(table, prior, [one, two]).highest == lifts(table, prior, one).highest == Fraction(3, 2)
    assert lifts(table, prior, None, Pufferfish()).ratio == 2
    assert lifts(table, prior, None, Pufferfish(pairs=[(1, 2)])).ratio == 1
    assert lifts(table, prior, [one, two], Pufferfish()).ratio == 2
    with raises(InvalidInput, argument="pairs"):
        lifts(table, prior, one, Pufferfish(pairs=[(0, 2)]))


def test_pairwise_notions_need_the_smaller_side():
    for notion in (LDP(), DI(), Pufferfish()):
        assert certify_table(CLEAR, EVEN, Budget(1.1, 9.0), notion=notion).level == pytest.approx(math.log(3))
        with pytest.raises(CertificateError, match=f"{type(notion).__name__} level 1.09861 is above 1"):
            certify_table(CLEAR, EVEN, Budget(9.0, 1.0), notion=notion)


def test_infinite_ratios():
    table = np.array([[2, 0], [1, 1]])
    for notion in (LDP(), DI(), Pufferfish()):
        assert certificate(lifts(table, EVEN, None, notion), notion).level == math.inf
        assert not keeps_budget(lifts(table, EVEN, None, notion), Budget(50.0), notion)
    assert not keeps_budget(Lifts(Fraction(0), Fraction(1), None), Budget(50.0))


def test_reports_that_never_happen_do_not_count():
    padded = np.column_stack([CLEAR, [0, 0]])
    assert lifts(padded, EVEN) == lifts(CLEAR, EVEN)


@given(st.integers(0, 3))
def test_tiny_masses_are_certified_too(seed):
    rng = np.random.default_rng(seed)
    prior = Prior([1.0, 1e-300])
    secret = Secret([[1.0, 1e-301], [1.0, 1e-299]])
    table = rng.permutation(np.array([[3, 1], [1, 3]]))
    found = certificate(lifts(table, prior, secret))
    assert 0 < found.lip < 1e-298
    assert close(certificate(lifts(table, prior)).lip, math.log(3))


# Bad input


def test_other_bad_arguments_are_refused():
    for notion in (LIP(), Pufferfish()):
        with raises(InvalidInput, argument="secret"):
            certify_table(CLEAR, EVEN, 1.0, Secret([[0.2, 0.3, 0.5]]), notion)
    with raises(InvalidInput, argument="prior"):
        certify_table(CLEAR, PriorSet([EVEN]), 1.0, notion=DI())
    with raises(InvalidInput, argument="epsilon"):
        certify_table(CLEAR, EVEN, -1.0)


def test_all_small_tables_agree_with_the_definition():
    """Every 2 x 2 table of total 4, under three priors: the verdict is that of fractions against e."""
    for a, b, p in product(range(5), range(5), ([0.5, 0.5], [0.25, 0.75], [0.9, 0.1])):
        table, prior = np.array([[a, 4 - a], [b, 4 - b]]), Prior(p)
        lowest, highest = by_hand(table, prior, None)
        within_e = Fraction(36787, 10**5) < lowest and highest < Fraction(271828, 10**5)
        assert keeps_budget(lifts(table, prior), Budget(1.0)) == within_e


# Notions of a user


class SumLDP(Cone):
    """The sums of the first five rows and of the last five are compared."""

    def compared_rows(self, columns, labels, prior, secret):
        return [ComparedRows(np.array([columns[:5].sum(axis=0), columns[5:].sum(axis=0)]), ["first", "last"])]


class AsGiven(Cone):
    """The rows of the argument are compared, whatever the table is."""

    def __init__(self, rows, **terms):
        self.rows, self.terms = np.array(rows, dtype=object), terms

    def compared_rows(self, columns, labels, prior, secret):
        return [ComparedRows(self.rows, range(len(self.rows)), **self.terms)]


def test_sums_of_rows_of_a_users_notion_do_not_overflow():
    quarter = TOTAL // 4
    table = np.array([[TOTAL - 1, 1]] * 5 + [[quarter, TOTAL - quarter]] * 5)
    assert lifts(table, Prior.uniform(10), notion=SumLDP()).ratio == TOTAL - quarter
    with raises(CertificateError):
        certify_table(table, Prior.uniform(10), 1.5, notion=SumLDP())


def test_a_users_notion_may_use_exact_means_given_a_secret():
    class OwnPufferfish(Pufferfish):
        def compared_rows(self, columns, labels, prior, secret):
            return super().compared_rows(columns, labels, prior, secret)

    secret, table = Secret([[0.75, 0.25], [0.25, 0.75]]), np.array([[TOTAL - 2, 2], [2, TOTAL - 2]])
    ratios = [lifts(table, EVEN, secret, notion).ratio for notion in (Pufferfish(), OwnPufferfish())]
    assert ratios[0] == ratios[1] > 2


@pytest.mark.parametrize(
    "rows", [[[1, -1], [1, 1]], [[0.5, 1], [1, 1]], [[math.nan, 1], [1, 1]], [["1"], ["1"]]]
)
def test_compared_rows_that_prove_nothing_are_refused(rows):
    with raises(CertificateError):
        lifts(CLEAR, EVEN, notion=AsGiven(rows))


@pytest.mark.parametrize("distance", [0.0, -1.0, math.nan])
def test_distances_that_bound_nothing_are_refused(distance):
    with raises(InvalidInput, argument="distance"):
        lifts(CLEAR, EVEN, notion=AsGiven([[3, 1], [1, 3]], distance=distance))


def test_one_way_the_first_row_is_compared_with_all_others():
    notion = AsGiven([[4, 1], [2, 3], [1, 9]], one_way=True)
    assert lifts(CLEAR, EVEN, notion=notion).ratio == 4
    notion.rows = notion.rows.astype(float)
    (worst,) = notion.worst(Channel(CLEAR / CLEAR.sum(axis=1, keepdims=True)))
    assert (worst.level, worst.secret, worst.against, worst.report) == (pytest.approx(math.log(4)), 0, 2, 0)
    rows = notion.inequalities(Budget(1.0), EVEN)
    assert len(rows) == 2
