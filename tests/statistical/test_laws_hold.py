"""Every mechanism samples the law that is certified: the law is accepted, one that is 1 % off in one entry is not.

For every value four million reports are counted. Seeds are fixed, so a test passes or fails for good; beforehand, a
right sampler fails with probability `FALSE_ALARM` at most (shared out over its rows), and a law of which the
largest entry is 1 % off is accepted with a probability below 1 %: an entry of 0.12, the least there is here, moves by
`0.01 sqrt(4e6 * 0.12 / 0.88)`, 7.4 standard deviations, and 4.6 are enough to be suspected.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import priorveil as pv
from priorveil.certify import TOTAL
from priorveil.mechanisms import MECHANISMS, Arc, Grouped, Mechanism, Orders, PooledHash, Subset, Table, Unary
from priorveil.mechanisms.arc.certificate import fit_line
from priorveil.mechanisms.bit_reports import BitReports
from priorveil.mechanisms.randomness import GeneratorSource, as_source
from priorveil.reading.families import reader_of
from references import count_cells

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-4
REPORTS = 4_000_000
KINDS = [*MECHANISMS]


def small(kind: str) -> Mechanism:
    """A mechanism of that kind with few reports, so that each is common enough to be measured to 1 %."""
    bounds = Fraction(37, 100), Fraction(271, 100)
    if kind == "table":
        mechanism = pv.design([0.5, 0.3, 0.2], 1.0, pv.Sum([0.0, 1.0, 4.0]), method="columns").mechanism
    elif kind == "grouped":
        pair = pv.design([0.55, 0.45], 1.5, pv.Histogram()).mechanism
        assert isinstance(pair, Table)
        mechanism = Grouped(np.array([0, 1, 1]), pair)
    elif kind == "arc":
        mechanism = Arc(fit_line([5, 2, 2, 1], [0, 1, 2, 3], 1, *bounds))
    elif kind == "orders":
        mechanism = Orders.fit([5, 2, 2, 1], [0], 2, *bounds)
    elif kind == "unary":
        mechanism = Unary(np.array([1, 2, 3]), noise=3, noise_bits=3, drop=TOTAL // 3)
    elif kind == "subset":
        mechanism = Subset(np.array([1, 2, 3, 4]), subset_size=2, keep=2 * TOTAL // 3)
    else:
        mechanism = PooledHash((1, 1, 1, 1), np.array([11, 8]), np.array([[0, 1], [0, 1]]), TOTAL // 2)
    assert mechanism.kind == kind
    return mechanism


def counted(mechanism: Mechanism, code: int, rng: np.random.Generator | None) -> np.ndarray:
    """How often each report of the written-out channel came; arcs are counted by cells."""
    reports = mechanism.sample(np.full(REPORTS, code), as_source(rng))
    if isinstance(mechanism, BitReports):
        counts = np.bincount(reports[:, 0].astype(np.int64), minlength=1 << mechanism.size)
        return counts[counts > 0] if isinstance(mechanism, Subset) else counts
    if isinstance(mechanism, Orders):
        return count_cells(mechanism, reports)
    counts = reader_of(mechanism).count(reports)
    return counts[0] if isinstance(mechanism, Arc) else counts


def suspicion(counts: np.ndarray, law: np.ndarray) -> float:
    """The p-value of the counts: the smaller of chi-square's and of the worst single entry's, doubled."""
    N, live = counts.sum(), law > 0
    assert not counts[~live].any()
    off = (counts - N * law)[live] ** 2 / (N * law[live])
    together = chi2.sf(off.sum(), live.sum() - 1)
    alone = live.sum() * chi2.sf((off / (1 - law[live])).max(), 1)
    return float(min(1.0, 2 * min(together, alone)))


def one_percent_off(law: np.ndarray, entry: int) -> np.ndarray:
    off = law.copy()
    off[entry] *= 1.01
    rest = np.arange(len(law)) != entry
    off[rest] *= (1 - off[entry]) / off[rest].sum()
    return off


@pytest.mark.parametrize("kind", KINDS)
def test_the_law_is_accepted_and_one_percent_off_in_one_entry_is_not(kind: str) -> None:
    mechanism, rng = small(kind), np.random.default_rng(3)
    for code, law in enumerate(mechanism.matrix):
        counts = counted(mechanism, code, rng)
        assert suspicion(counts, law) > FALSE_ALARM / mechanism.size
        entry = int(np.argmax(law))
        assert law[entry] >= 0.12
        assert suspicion(counts, one_percent_off(law, entry)) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_so_is_the_law_of_the_operating_systems_draws(kind: str) -> None:
    """No seed to fix here: a right sampler is suspected once in a billion runs."""
    mechanism = small(kind)
    counts = counted(mechanism, 0, None)
    assert suspicion(counts, mechanism.matrix[0]) > 1e-9
    assert suspicion(counts, one_percent_off(mechanism.matrix[0], int(np.argmax(mechanism.matrix[0])))) < 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_single_reports_follow_the_same_law(kind: str) -> None:
    """Reports one by one, 2,000 of them: as in bulk, word for word."""
    mechanism, codes = small(kind), np.arange(2000) % 3
    bulk = mechanism.sample(codes, GeneratorSource(np.random.default_rng(5)))
    source = GeneratorSource(np.random.default_rng(5))
    single = np.array([mechanism.sample_one(int(x), source) for x in codes])
    assert np.array_equal(bulk, single)
