"""Reports of arcs: how they are counted, and what their tally says about the values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorveil.designs.arc_design import arc_layout, histogram_error
from priorveil.errors import ForeignReport, TooLarge
from priorveil.mechanisms.arc import Arc
from priorveil.mechanisms.arc.cells import ArcCells
from priorveil.mechanisms.arc.certificate import fit_line
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.randomness import GeneratorSource
from priorveil.reading import arc_reader
from priorveil.reading.arc_reader import LIMB, ArcReader
from priorveil.reading.families import reader_of
from priorveil.reading.moments import Moments
from references import likelihood, posterior_sums_under
from refusals import raises
from sample_mechanisms import big_example, bounds_at, draw_with, exact_prior, plain_channel, sample_line, zipf
from strategies import lift_tenths, line_weights

# -- counting ----------------------------------------------------------------------------------------------


def count_one_by_one(cells: ArcCells, reports: np.ndarray) -> np.ndarray:
    """The tally by its definition."""
    tally = np.zeros((3, len(cells.base)), dtype=np.int64)
    column = np.searchsorted(cells.base, reports, side="right") - 1
    for row, amounts in enumerate((np.ones_like(reports), reports % 2**LIMB, reports >> LIMB)):
        np.add.at(tally[row], column, amounts)
    return tally


@settings(max_examples=40, deadline=None)
@given(line_weights, lift_tenths, st.integers(4, 48), st.integers(0, 2**32 - 1))
def test_reports_are_counted_by_the_definition(weights, tenths, bits, seed):
    """Around the ends of columns and anywhere, in blocks that end anywhere, with weights and without."""
    cells, rng = ArcCells(sample_line(weights, tenths, bits)), np.random.default_rng(seed)
    around = np.concatenate([cells.base - 1, cells.base, cells.base + 1])
    places = np.concatenate([around, rng.integers(0, cells.line.outputs, 1000)]) % cells.line.places
    reports = places[places < cells.line.outputs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arc_reader, "_BLOCK_REPORTS", int(rng.integers(1, 2000)))
        patch.setattr(arc_reader, "_BUCKETS_PER_COLUMN", int(rng.integers(1, 100)))
        reader, times = ArcReader(Arc(cells.line)), rng.integers(0, 5, len(reports))
        assert (reader.count(reports) == count_one_by_one(cells, reports)).all()
        repeated = count_one_by_one(cells, np.repeat(reports, times))
        assert (reader.count(reports, times.astype(float)) == repeated).all()


@pytest.mark.parametrize("place", [0, 0.3, 1])
def test_many_equal_reports_add_up(place):
    """More than one block, all in one column."""
    cells = ArcCells(big_example(N=1)[0])
    y = int(place * (cells.line.outputs - 1)) | ((1 << LIMB) - 1 if 0 < place < 1 else 0)
    reports = np.full((1 << 18) + 7, y)
    tally = reader_of(Arc(cells.line)).count(reports)
    assert (tally == count_one_by_one(cells, reports)).all()
    assert tally.sum(axis=1).tolist() == [len(reports) * part for part in (1, y % 2**LIMB, y >> LIMB)]


def test_foreign_reports_are_refused():
    m, _, _ = big_example(N=1)
    with raises(ForeignReport, argument="reports[0]"):
        reader_of(Arc(m)).count([m.outputs])


# -- what a tally says -------------------------------------------------------------------------------------


def posterior_sums(
    reader: ArcReader, tally: np.ndarray, P: np.ndarray, rows: np.ndarray | None = None
) -> Moments:
    return reader.answer("mmse", tally, P, rows, False)


@settings(max_examples=60, deadline=None)
@given(line_weights, lift_tenths, st.integers(4, 6), st.randoms(use_true_random=False))
def test_the_tally_gives_exactly_what_the_reports_give(weights, tenths, bits, random):
    order = list(range(len(weights)))
    random.shuffle(order)
    m = sample_line(weights, tenths, bits, order=order)
    Q, cells, reader, P = plain_channel(m), ArcCells(m), ArcReader(Arc(m)), m.lengths / m.places
    assert Q.sum(axis=1) == pytest.approx(np.ones(len(P)))
    reports = np.array([random.randrange(m.outputs) for _ in range(40)])
    posterior = P[:, None] * Q / (P @ Q)
    tally = reader.count(reports[:15]) + reader.count(reports[15:])
    assert (tally == reader.count(reports)).all()
    assert posterior_sums(reader, tally, P).mean == pytest.approx(posterior[:, reports].sum(axis=1))

    each = [likelihood(Arc(m), y) for y in range(m.outputs)]
    assert np.stack(each, axis=1) == pytest.approx(Q)
    merged = np.add.reduceat(Q, cells.base, axis=1)
    assert cells.matrix == pytest.approx(merged)
    assert cells.law(P) == pytest.approx(P @ merged)

    once = reader.count(np.arange(m.outputs))
    assert posterior_sums(reader, once, P).mean == pytest.approx(posterior.sum(axis=1))
    a = np.sin(np.outer([1, 2], np.arange(len(P))))
    spread = (posterior * (1 - posterior)).sum(axis=1)
    assert posterior_sums(reader, once, P).variance == pytest.approx(spread)
    spread = a**2 @ posterior - (a @ posterior) ** 2
    assert posterior_sums(reader, once, P, a).variance == pytest.approx(spread.sum(axis=1))


def test_another_prior_is_read_by_columns_and_never_mistaken_for_the_plans_own():
    m = sample_line([3, 3, 3, 3, 4, 5], (3, 35), bits=6)
    arc, other = Arc(m), np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    tally = reader_of(arc).count(np.arange(m.outputs))
    joint = other[:, None] * arc.matrix
    posterior = joint / joint.sum(axis=0)
    answer = reader_of(arc).answer("mmse", tally, other, None, False)
    assert posterior_sums_under(arc.cells, tally, other) == pytest.approx(posterior @ tally[0])
    assert answer.mean == pytest.approx(posterior @ tally[0])
    assert answer.variance == pytest.approx((posterior * (1 - posterior)) @ tally[0])
    total = reader_of(arc).answer("mmse", tally, other, np.arange(6.0)[None], False)
    spread = np.arange(6.0) ** 2 @ posterior - (np.arange(6.0) @ posterior) ** 2
    assert total.variance == pytest.approx([spread @ tally[0]])


def test_measured_error_is_the_expected_one():
    """Mean of 300 runs of 400 users each, a fixed seed; the tolerance is four standard errors."""
    rng = np.random.default_rng(11)
    P, (lo, hi) = zipf(20), bounds_at(2.0)
    layout = arc_layout(P, math.exp(-2), math.exp(2))
    m = fit_line(exact_prior(P), layout.order, layout.heavy, lo, hi)
    arc, errors = Arc(m), []
    for _ in range(300):
        codes = rng.choice(20, 400, p=P)
        words = rng.integers(0, 2**64, size=(400, 3), dtype=np.uint64)
        tally = reader_of(arc).count(draw_with(arc, codes, words))
        miss = reader_of(arc).answer("mmse", tally, P, None, False).mean - np.bincount(codes, minlength=20)
        errors.append(float(miss @ miss) / 400)
    spread = 4 * np.std(errors) / math.sqrt(len(errors))
    assert abs(np.mean(errors) - histogram_error(layout)) < spread
    assert spread < 0.1 * histogram_error(layout)


def test_expectation_maximisation_learns_another_prior_from_the_tally_alone():
    """60,000 reports of values that do not follow the plan's prior: EM moves from it to the truth."""
    rng = np.random.default_rng(3)
    P, truth, (lo, hi) = np.full(12, 1 / 12), zipf(12), bounds_at(4.0)
    layout = arc_layout(P, math.exp(-4), math.exp(4))
    arc = Arc(fit_line([1] * 12, layout.order, layout.heavy, lo, hi))
    tally = reader_of(arc).count(arc.sample(rng.choice(12, 60_000, p=truth), GeneratorSource(rng)))
    p = P
    for _ in range(300):
        p = posterior_sums_under(arc.cells, tally, p) / tally[0].sum()
    assert p.sum() == pytest.approx(1)
    assert np.abs(p - truth).max() < 0.02 < np.abs(P - truth).max()


def test_tallies_whose_sums_may_have_overflowed_are_refused():
    wide = ArcLine([1 << 51, 1 << 51], [0, 1], 0, 0, 1 << 50, 2**63, 52)
    reader, P = ArcReader(Arc(wide)), np.full(2, 0.5)
    assert reader.most_reports >= 1 << 31
    tally = reader.count([wide.outputs - 1])
    large = tally * reader.most_reports
    assert int(large[2, -1]) == reader.most_reports * ((wide.outputs - 1) >> LIMB) > 0
    one, many = (posterior_sums(reader, counts, P).mean for counts in (tally, large))
    assert many == pytest.approx(reader.most_reports * one)
    with pytest.raises(TooLarge):
        posterior_sums(reader, large + tally, P)
