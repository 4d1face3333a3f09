"""The arc mechanism: its closed forms, the law it samples, its certificate, and what its channel leaks."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from priorveil.certify import Lifts
from priorveil.channels import Channel
from priorveil.designs.arc_design import ArcLayout, arc_layout, histogram_error, sum_error
from priorveil.errors import InvalidInput, OutsideDomain, TooLarge
from priorveil.mechanisms import Orders
from priorveil.mechanisms.arc import Arc
from priorveil.mechanisms.arc.cells import ArcCells, squared_overlap
from priorveil.mechanisms.arc.certificate import arc_lifts, fit_line, line_edges
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.randomness import BytesSource, GeneratorSource
from priorveil.notions import leakage
from priorveil.priors import Prior, Secret
from references import circle_lifts, circumference, likelihood, own_lifts
from refusals import raises
from sample_mechanisms import big_example, bounds_at, draw_with, exact_prior, plain_channel, sample_line, zipf
from strategies import lift_tenths, line_weights


def on_a_grid(layout: ArcLayout, points: int) -> tuple[np.ndarray, np.ndarray]:
    """The channel with the circle cut into many points: lifts and weights of the outputs."""
    own, weight = own_lifts(layout)
    if circumference(layout) == 0:
        return own, weight
    u = (np.arange(points) + 0.5) / points * circumference(layout)
    each = np.full(points, circumference(layout) / points)
    return np.hstack([own, circle_lifts(layout, u)]), np.append(weight, each)


# The design ------------------------------------------------------------------------------------------------


@example(0.8, 0.43)  # both are longer than half of the circle
@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_squared_overlaps_are_those_of_a_window_that_goes_round(p, window):
    """The mean over 20,000 places; a jump of the slope costs it a few 1e-9."""
    place = (np.arange(20_000) + 0.5) / 20_000
    inside = sum(
        np.clip(np.minimum(p, place + window + turn) - np.maximum(0, place + turn), 0, None)
        for turn in (-1, 0)
    )
    assert squared_overlap(np.array([p]), window, 1.0) == pytest.approx(np.mean((inside / p) ** 2), abs=1e-5)


@settings(max_examples=60, deadline=None)
@example([1, 8, 10], 1.0, 1.0, False)  # lends
@example([3, 3, 4, 9], 1.0, 1.0, True)  # a tight circle
@given(line_weights, st.floats(0.1, 4), st.floats(0.1, 4), st.booleans())
def test_closed_forms_agree_with_the_channel_on_a_fine_grid(weights, lower, upper, is_sum):
    P = np.array(weights) / sum(weights)
    a = np.cos(np.arange(len(P)))
    layout = arc_layout(P, math.exp(-lower), math.exp(upper), a if is_sum else None)
    r, lam = on_a_grid(layout, 10_000)
    assert np.allclose(P @ r, 1)
    assert np.allclose(r @ lam, 1, atol=1e-3)
    assert r.min() >= layout.lo - 1e-9
    assert r.max() <= layout.hi + 1e-9
    told = P[:, None] * r
    assert histogram_error(layout) == pytest.approx(1 - lam @ (told**2).sum(axis=0), abs=1e-6)
    assert sum_error(layout, a) == pytest.approx(P @ a**2 - lam @ (a @ told) ** 2, abs=1e-6)


def test_figures_of_the_maths():
    uniform = arc_layout(np.full(83, 1 / 83), math.exp(-4), math.exp(4))
    assert histogram_error(uniform) == pytest.approx(0.498, abs=5e-4)
    assert histogram_error(arc_layout(zipf(83), math.exp(-2), math.exp(2))) == pytest.approx(0.704, abs=5e-4)


@pytest.mark.parametrize("hi", [math.exp(1.5), math.inf])
def test_with_every_input_heavy_it_is_theorem_3(hi):
    P, lo = np.array([0.5, 0.3, 0.2]), math.exp(-1.5)
    layout = arc_layout(P, lo, hi)
    r, lam = own_lifts(layout)
    assert r * lam == pytest.approx((1 - lo) * np.eye(3) + lo * P)
    assert circumference(layout) == 0
    variance = float(np.cov([1, 5, 2], aweights=P, ddof=0))
    assert sum_error(layout, [1, 5, 2]) == pytest.approx((1 - (1 - lo) ** 2) * variance)


def test_light_inputs_below_one_window_borrow_from_the_best_heavy_input():
    P, a = np.array([0.02, 0.4, 0.03, 0.55]), np.array([0.0, 1.0, 2.0, 9.0])
    lo, hi = math.exp(-1), math.exp(1)
    layout = arc_layout(P, lo, hi, values=a)
    assert layout.segments().rim[0, -1] == pytest.approx(circumference(layout)) == pytest.approx(layout.tau)
    other = np.concatenate([layout.order[:2][::-1], layout.order[2:]])
    swapped = ArcLayout(P, lo, hi, other, layout.heavy)
    assert sum_error(layout, a) < sum_error(swapped, a)
    assert histogram_error(layout) == pytest.approx(histogram_error(swapped))


# The integer law and its certificate -----------------------------------------------------------------------


def enumerated(m: ArcLine) -> np.ndarray:
    """The sampled law, by trying every possible draw: integer counts out of ``2**(3 word)``."""
    r = np.arange(1 << m.word, dtype=np.uint64)
    words = np.stack(np.meshgrid(r, r, r, indexing="ij"), axis=-1).reshape(-1, 3)
    rows = [draw_with(Arc(m), np.full(len(words), x), words) for x in range(len(m.lengths))]
    return np.stack([np.bincount(row, minlength=m.outputs) for row in rows])


def exact_law(m: ArcLine) -> np.ndarray:
    """The same counts from the definition, place by place, in Python integers."""
    words, d = 1 << m.word, len(m.lengths)

    def hits(n: int) -> list[int]:
        return [-(-(i + 1) * words // n) + (-i * words // n) for i in range(n)]

    law = np.zeros((d, m.outputs), dtype=object)
    for x in range(d):
        told = [(int(m.starts[x]) + i, m.keep * c) for i, c in enumerate(hits(int(m.lengths[x])))]
        fresh = [(t, (words - m.keep) * c) for t, c in enumerate(hits(m.places))]
        for t, count in told + fresh:
            if t < m.start:
                law[x, int(np.searchsorted(m.edges, t, "right")) - 1] += count * words
                continue
            for w, c in enumerate(hits(m.window)):
                law[x, m.heavy + (t - m.start - w) % m.circumference] += count * c
    return law


@settings(max_examples=40, deadline=None)
@example([1, 20, 20], (4, 25), 5)  # lends
@example([30, 12, 7, 1, 1], (5, 25), 5)
@given(line_weights, lift_tenths, st.integers(4, 5))
def test_the_sampled_law_is_the_stated_one_and_the_certificate_covers_it(weights, tenths, bits):
    m = sample_line(weights, tenths, bits, word=5)
    law = exact_law(m)
    assert (enumerated(m) == law).all()
    bounds = arc_lifts(m, weights)
    assert Fraction(tenths[0], 10) <= bounds.lowest
    assert bounds.highest <= Fraction(tenths[1], 10)
    # Another prior than the one it was made for: no promise, but the bounds must still be true.
    for prior in (weights, weights[::-1], [1] * (len(weights) - 1) + [50], [50] + [1] * (len(weights) - 1)):
        covers(arc_lifts(m, prior), law, prior)


def covers(bounds: Lifts, law: np.ndarray, prior: list[int]) -> None:
    lam = np.array(prior, dtype=object) @ law
    assert all(lam > 0)
    for y in range(law.shape[1]):
        most, least = int(law[:, y].max()), int(law[:, y].min())
        assert Fraction(most * sum(prior), int(lam[y])) <= bounds.highest
        assert Fraction(least * sum(prior), int(lam[y])) >= bounds.lowest
        assert most <= bounds.ldp * least


@pytest.mark.parametrize("eps", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("d", [2, 83, 20_000])
def test_rounding_costs_next_to_nothing(d, eps):
    lo, hi = bounds_at(eps)
    P = zipf(d)
    layout = arc_layout(P, math.exp(-eps), math.exp(eps))
    m = fit_line(exact_prior(P), layout.order, layout.heavy, lo, hi)
    bounds = arc_lifts(m, exact_prior(P))
    assert lo <= bounds.lowest
    assert bounds.highest <= hi
    assert bounds.ldp <= hi / lo
    assert m.keep / 2**64 > (1 - float(lo)) * (1 - 3e-7)


def test_one_more_unit_of_keep_would_break_the_certificate():
    n, (lo, hi) = exact_prior(zipf(30)), bounds_at(1.0)
    m = fit_line(n, np.arange(30), 0, lo, hi)
    more = ArcLine(m.lengths, m.order, m.heavy, m.start, m.window, m.keep + 2, m.bits)
    bounds = arc_lifts(more, n)
    assert bounds.highest > hi or bounds.lowest < lo


def test_the_certificate_sees_another_prior():
    n, (lo, hi) = exact_prior(zipf(30)), bounds_at(1.0)
    m = fit_line(n, np.arange(30), 0, lo, hi)
    assert arc_lifts(m, n[::-1]).highest > hi


def test_huge_and_tiny_weights():
    n = [10**40, 1, 10**39, 3, 7]
    lo, hi = bounds_at(1.0)
    layout = arc_layout(np.array(n, dtype=float) / sum(n), math.exp(-1), math.exp(1))
    m = fit_line(n, layout.order, layout.heavy, lo, hi)
    bounds = arc_lifts(m, n)
    assert lo <= bounds.lowest <= bounds.highest <= hi
    assert m.lengths.min() == 1


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40), st.integers(6, 40))
def test_segments_fill_the_line_and_keep_their_mass(weights, bits):
    edges = line_edges(np.array(weights, dtype=object), 1 << bits)
    assert edges[0] == 0
    assert edges[-1] == 1 << bits
    assert np.diff(edges).min() >= 1
    drift = np.cumsum(weights) / sum(weights) * (1 << bits) - edges[1:]
    assert np.abs(drift).max() <= len(weights) + 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("keep", 1 << 64),
        ("window", 0),
        ("window", 9),
        ("heavy", 4),
        ("start", 9),
        ("order", [0, 0, 2]),
        ("lengths", [8, 4, 5]),
        ("bits", 60),
    ],
)
def test_parameters_that_are_no_sampler_are_refused(field, value):
    good = {"lengths": [8, 4, 4], "order": [0, 1, 2], "heavy": 1, "start": 8, "window": 4, "keep": 5}
    good["bits"] = 4
    ArcLine(**good)
    with raises(InvalidInput, argument=field):
        ArcLine(**(good | {field: value}))


def test_weights_that_are_no_integers_are_refused():
    with pytest.raises(TypeError):
        fit_line([1.5, 2.5], np.arange(2), 0, *bounds_at(1.0))


def test_too_many_inputs_for_the_line():
    with raises(InvalidInput, argument="lengths"):
        fit_line([1] * 17, np.arange(17), 0, *bounds_at(1.0), bits=4)


# Fast paths ------------------------------------------------------------------------------------------------


def test_words_are_used_as_stated():
    m, codes, words = big_example(N=500)
    for x, (coin, place, shift), y in zip(
        codes, words.tolist(), draw_with(Arc(m), codes, words), strict=True
    ):
        t = int(m.starts[x]) + (place * int(m.lengths[x]) >> 64) if coin < m.keep else place >> (64 - m.bits)
        if t < m.start:
            assert m.edges[y] <= t < m.edges[y + 1]
        else:
            assert y == m.heavy + (t - m.start - (shift * m.window >> 64)) % m.circumference


def test_the_object_draws_three_words_a_report_and_cuts_no_corners():
    m, codes, words = big_example(N=20_000)
    arc = Arc(m)
    data = words.astype("<u8").tobytes()
    reports = arc.sample(codes, BytesSource(data))
    assert (reports == draw_with(arc, codes, words)).all()
    assert arc.draws_per_report * 8 * len(codes) == len(data)
    one_by_one = BytesSource(data)
    assert [arc.sample_one(int(x), one_by_one) for x in codes[:50]] == reports[:50].tolist()
    assert reports.max() < 2**53
    with pytest.raises(OutsideDomain):
        arc.sample([0, 300], GeneratorSource(np.random.default_rng(0)))


# What the channel leaks ------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(line_weights, lift_tenths, st.integers(4, 6), st.integers(0, 2**32 - 1))
def test_what_is_exposed_leaks_what_the_points_leak_and_never_less(weights, tenths, bits, seed):
    """Against every place of the circle, under another prior and for a secret, by brute force."""
    m, rng, d = sample_line(weights, tenths, bits), np.random.default_rng(seed), len(weights)
    matrix, reports = ArcCells(m).leakage_matrix
    measured, points = Channel(matrix), Channel(plain_channel(m))
    T = rng.dirichlet(np.ones(d), 3) + 1e-6
    T /= T.sum(axis=1, keepdims=True)
    secret, prior = Secret(T), Prior(T.mean(axis=0) / T.mean(axis=0).sum())
    found, truth = leakage(measured, prior, secret), leakage(points, prior, secret)
    for level in ("lip_lower", "lip_upper", "ldp", "di", "pufferfish"):
        assert getattr(found, level) == pytest.approx(getattr(truth, level), rel=1e-9, abs=1e-9)
    assert found.mil >= truth.mil - 1e-12 and found.mip >= truth.mip - 1e-12
    at = plain_channel(m)[:, reports]
    assert measured.matrix / measured.matrix[0] == pytest.approx(at / at[0])


def test_cells_alone_would_say_too_little():
    m = sample_line([3, 3, 3, 3, 4, 5], (3, 35), bits=6)
    prior = Prior([0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    secret = Secret([[0.5, 0.0, 0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.5, 0.0, 0.0]])
    said = leakage(Channel(ArcCells(m).matrix), prior, secret)
    truth = leakage(Channel(plain_channel(m)), prior, secret)
    assert said.pufferfish < truth.pufferfish - 0.3
    found = leakage(Channel(ArcCells(m).leakage_matrix[0]), prior, secret)
    assert found.pufferfish == pytest.approx(truth.pufferfish)


def test_a_pool_of_circles_is_measured_at_its_points_too():
    line = ArcLine([9, 10, 9, 9, 12, 15], [5, 0, 1, 2, 3, 4], 1, 15, window=14, keep=2**63, bits=6)
    pool = Orders(line, 2)
    lines = [replace(line, order=np.append(line.owners, pool.circles(np.array([i]))[0])) for i in range(2)]
    points = np.hstack([plain_channel(each) for each in lines]) / 2
    prior = Prior([0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    matrix, reports = pool.leakage_matrix
    found, truth = leakage(Channel(matrix), prior), leakage(Channel(points), prior)
    for level in ("lip_lower", "lip_upper", "ldp", "di"):
        assert getattr(found, level) == pytest.approx(getattr(truth, level))
    assert pool.accepts(np.array(reports)).all()
    assert matrix[:, -1] / matrix[0, -1] == pytest.approx(
        likelihood(pool, reports[-1]) / likelihood(pool, reports[-1])[0]
    )


def test_huge_matrices_are_refused():
    wide = fit_line([1] * 9000, np.arange(9000), 0, *bounds_at(1.0))
    for name in ("matrix", "leakage_matrix"):
        with pytest.raises(TooLarge):
            getattr(ArcCells(wide), name)
