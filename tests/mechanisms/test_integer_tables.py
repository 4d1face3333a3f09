"""Random words, tables, and the promise that the sampled law is the certified one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from kernels_here import needs_numba
from priorveil.certify import TOTAL
from priorveil.errors import InvalidChannel, InvalidInput, OutsideDomain
from priorveil.mechanisms import kernels
from priorveil.mechanisms.integer_tables import Table
from priorveil.mechanisms.randomness import (
    BytesSource,
    GeneratorSource,
    SystemSource,
    as_source,
    word_blocks,
)


def random_table(rng: np.random.Generator, size: int, outputs: int) -> Table:
    """A table with entries of very different sizes, zeros among them."""
    parts = rng.dirichlet(np.full(outputs, 0.3), size=size)
    weights = np.floor(parts * float(TOTAL) * (1 - 1e-12)).astype(np.int64)
    weights[:, 0] += TOTAL - weights.sum(axis=1)
    weights[0] += np.where(weights.any(axis=0), 0, 1)
    weights[0, 0] -= weights[0].sum() - TOTAL
    return Table(weights)


def response(size: int, other: int) -> Table:
    """k-RR: `other` off the diagonal, the rest on it."""
    return Table(other + np.eye(size, dtype=np.int64) * (TOTAL - size * other))


def words_at(draws: list[int]) -> bytes:
    """Words whose upper 62 bits are these draws."""
    return b"".join((draw << 2).to_bytes(8, "little") for draw in draws)


TABLES = {
    "general": random_table(np.random.default_rng(1), 7, 5),
    "wide": random_table(np.random.default_rng(2), 3, 300),
    "one output": Table(np.full((4, 1), TOTAL)),
    "k-RR": response(6, TOTAL // 17),
    "k-RR, nearly the truth": response(40, 3),
    "k-RR, nothing left for the diagonal": response(4, TOTAL // 4),
    "k-RR of two": response(2, TOTAL // 3),
    "truth": Table(np.eye(5, dtype=np.int64) * TOTAL),
}


@pytest.mark.parametrize("name", TABLES)
def test_at_every_threshold_the_report_changes(name: str) -> None:
    """The law exactly: around every partial sum, the draw just below and the draw at it."""
    table = TABLES[name]
    for code, row in enumerate(table.weights.tolist()):
        sums = np.cumsum([0, *row]).tolist()
        edges = sorted({e for s in sums for e in (s - 1, s) if 0 <= e < TOTAL})
        expected = [sum(1 for s in sums[1:] if s <= e) for e in edges]
        codes = np.full(len(edges), code)
        assert table.sample(codes, BytesSource(words_at(edges))).tolist() == expected
        source = BytesSource(words_at(edges))
        assert [table.sample_one(code, source) for _ in edges] == expected


@needs_numba
@pytest.mark.parametrize("name", TABLES)
def test_compiled_and_numpy_agree_bit_for_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, rng = TABLES[name], np.random.default_rng(3)
    codes, data = rng.integers(0, table.size, 30_000), rng.bytes(8 * 30_000)
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1)
    compiled = table.sample(codes, BytesSource(data))
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1 << 60)
    np.testing.assert_array_equal(compiled, table.sample(codes, BytesSource(data)))


def test_bulk_and_scalar_use_the_same_words() -> None:
    table, rng = TABLES["general"], np.random.default_rng(4)
    codes, data = rng.integers(0, table.size, 200), rng.bytes(8 * 200)
    source = BytesSource(data)
    assert table.sample(codes, BytesSource(data)).tolist() == [
        table.sample_one(int(x), source) for x in codes
    ]
    assert source.used == len(data)


@given(st.lists(st.integers(0, TOTAL - 1), min_size=1, max_size=50), st.integers(0, 6))
def test_a_report_is_the_number_of_sums_at_most_the_draw(draws: list[int], code: int) -> None:
    table = TABLES["general"]
    sums = np.cumsum(table.weights[code])
    expected = np.searchsorted(sums, draws, side="right")
    np.testing.assert_array_equal(
        table.sample(np.full(len(draws), code), BytesSource(words_at(draws))), expected
    )


FALSE_ALARM = 1e-4  # of each statistical test here; seeds are fixed, so they pass or fail for good
REPORTS = 4_000_000
ROUNDS = 4


@pytest.mark.statistical
@pytest.mark.parametrize("rng", [np.random.default_rng(5), None], ids=["numpy", "system"])
def test_the_law_is_accepted_and_one_percent_off_in_one_entry_is_not(rng: np.random.Generator | None) -> None:
    """With 16 million reports, an entry of 0.1 that is 1 % off is missed with probability below 1e-12.

    So the system's randomness, which has no seed, fails this once in a billion runs: the other decision's rate.
    """
    law = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    weights = np.floor(law * float(TOTAL)).astype(np.int64)
    weights[0] += TOTAL - weights.sum()
    table = Table(np.stack([weights, weights[::-1]]))
    source, codes = as_source(rng), np.zeros(REPORTS, dtype=np.int64)
    counts = sum(np.bincount(table.sample(codes, source), minlength=5) for _ in range(ROUNDS))
    assert chisquare(counts, ROUNDS * REPORTS * table.matrix[0]).pvalue > (
        FALSE_ALARM if rng is not None else 1e-9
    )
    off = table.matrix[0].copy()
    off[0] *= 1.01
    off[1:] *= (1 - off[0]) / off[1:].sum()
    assert chisquare(counts, ROUNDS * REPORTS * off).pvalue < FALSE_ALARM


def test_no_values_give_no_reports() -> None:
    table = TABLES["general"]
    assert table.sample([], SystemSource()).size == 0


def test_what_is_refused() -> None:
    table = TABLES["general"]
    with pytest.raises(OutsideDomain) as error:
        table.sample([0, 1, 7], SystemSource())
    assert error.value.row == 2 and "7" not in str(error.value).split("codes")[0]
    with pytest.raises(OutsideDomain):
        table.sample_one(-1, SystemSource())
    with pytest.raises(InvalidInput):
        table.sample([0.5], SystemSource())
    with pytest.raises(InvalidChannel):
        Table(np.array([[TOTAL // 2, TOTAL // 2 - 1]]))
    with pytest.raises(InvalidChannel):
        Table(np.array([[TOTAL + 1, -1]]))
    with pytest.raises(InvalidChannel):
        Table(np.array([[TOTAL, 0]]))
    with pytest.raises(ValueError):
        table.weights[0, 0] = 1


def test_words_are_little_endian_and_run_out() -> None:
    source = BytesSource(bytes(range(16)))
    assert source.words(1).tolist() == [0x0706050403020100]
    assert source.stream()(1).tolist() == [0x0F0E0D0C0B0A0908]
    with pytest.raises(InvalidInput):
        source.words(1)


def test_system_words_never_repeat_between_streams() -> None:
    first, second = SystemSource().stream(), SystemSource().stream()
    a, b = first(5000).copy(), second(5000).copy()
    assert np.unique(np.concatenate([a, b, first(5000)])).size == 15_000


@pytest.mark.statistical
def test_every_bit_of_the_bulk_stream_is_fair() -> None:
    """Each of 64 bits set in half of a million words, within 6 deviations (false alarm below 2e-7)."""
    words = np.concatenate([words.ravel().copy() for _, words in word_blocks(SystemSource(), 1_000_000, 1)])
    ones = [(words >> np.uint64(bit) & np.uint64(1)).sum() for bit in range(64)]
    assert np.abs(np.array(ones, dtype=float) - 500_000).max() < 6 * 500


@settings(max_examples=30)
@given(st.integers(0, 40_000), st.integers(1, 20_000))
def test_blocks_hand_out_the_stream_in_order(reports: int, draws: int) -> None:
    reports = min(reports, 200_000 // draws)
    whole = GeneratorSource(np.random.default_rng(7)).words(reports * draws).reshape(reports, draws)
    seen = 0
    for rows, words in word_blocks(GeneratorSource(np.random.default_rng(7)), reports, draws):
        assert rows.start == seen
        np.testing.assert_array_equal(words, whole[rows])
        seen = rows.stop
    assert seen == reports


def test_sources_by_argument() -> None:
    rng = np.random.default_rng(8)
    assert as_source(None) == SystemSource()
    assert as_source(rng) == GeneratorSource(rng)
    given_source = BytesSource(b"")
    assert as_source(given_source) is given_source
    with pytest.raises(InvalidInput):
        as_source(42)  # type: ignore[arg-type]


def test_without_the_cipher_package_words_come_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.ciphers", None)
    assert np.unique(SystemSource().stream()(1000)).size == 1000


def test_without_numba_numpy_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    kernels.compile_loop.cache_clear()
    try:
        assert kernels.compile_loop(kernels.scan_table.loop) is None
    finally:
        kernels.compile_loop.cache_clear()
