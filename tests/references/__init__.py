"""Reference implementations: simple versions of what the library computes, straight from the formulas."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.designs.arc_design import ArcLayout
from priorveil.designs.closed_forms import binary
from priorveil.mechanisms import Arc, Mechanism, Orders
from priorveil.mechanisms.arc.cells import ArcCells
from priorveil.mechanisms.bit_reports import BitReports
from priorveil.reading.families import reader_of

Array = npt.NDArray[np.float64]


def lip_rows(P: Array, lo: float, hi: float, T: Array | None = None) -> Array:
    """Rows of the cone `lo <= T r <= hi`; the value itself is the secret where no `T` is given."""
    T = np.eye(len(P)) if T is None else T
    return np.vstack([T - lo * P, hi * P - T])


# -- closed forms -------------------------------------------------------------------------------------------


def subset_selection_matrix(d: int, epsilon: float, size: int) -> Array:
    """Subset selection, written out: sets of `size` values, `e^eps` times likelier if they hold the value."""
    held = np.array([[x in members for members in combinations(range(d), size)] for x in range(d)])
    Q = np.where(held, np.exp(epsilon), 1.0)
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))


def binary_lip(p: float, lo: float, hi: float) -> Array:
    """The best channel for two inputs: `s = max(p lo, 1 - (1-p) hi)`, `t = min(p hi, 1 - (1-p) lo)`."""
    s, t = max(p * lo, 1 - (1 - p) * hi), min(p * hi, 1 - (1 - p) * lo)
    high = (p - s) / (t - s)
    zero, one = high * (1 - t) / (1 - p), high * t / p
    return np.array([[1 - zero, zero], [1 - one, one]])


def binary_prior_set(a: float, b: float, lo: float, hi: float) -> Array:
    """The best binary channel where `a <= Pr(x = 1) <= b`: the rows of the two ends imply all others."""
    return binary(np.vstack([lip_rows(np.array([1 - p, p]), lo, hi) for p in (a, b)]))


def clearing(q01: float, R: float) -> float:
    """The `q10` that belongs to `q01` on the curve of odds `R`."""
    return (1 - q01) / (1 + (R - 1) * q01)


def bitwise_gain(P: Array, q01: float, R: float) -> float:
    """The gain of the paper's estimator: the posterior of each value given its own bit alone."""
    q10 = clearing(q01, R)
    shown = P * (1 - q10) + (1 - P) * q01
    return float(np.sum((P * (1 - q10)) ** 2 / shown + (P * q10) ** 2 / (1 - shown)))


# -- arcs ---------------------------------------------------------------------------------------------------


def circumference(layout: ArcLayout) -> float:
    """The mass of the light values, or one window if that is more and there are any."""
    light = layout.prior[layout.order[layout.heavy :]]
    return max(float(light.sum()), layout.tau) if len(light) else 0.0


def circle_lifts(layout: ArcLayout, points: Array) -> Array:
    """The columns `r` of the outputs at these points of the circle, one column each (`d` rows)."""
    lent = circumference(layout) - float(layout.prior[layout.order[layout.heavy :]].sum())
    members = layout.order[layout.heavy - (lent > 0) :]
    rim = np.concatenate([[0.0], np.cumsum(layout.prior[members])])
    rim[1:] -= rim[-1] - circumference(layout)
    inside = np.zeros((len(members), len(points)))
    for turn in (0.0, float(rim[-1])):
        low, high = rim[:-1, None] + turn, rim[1:, None] + turn
        inside += np.maximum(np.minimum(high, points + layout.tau) - np.maximum(low, points), 0.0)
    r = np.full((len(layout.prior), len(points)), layout.lo)
    r[members] += (1 - layout.lo) / layout.tau * inside / layout.prior[members][:, None]
    return r


def own_lifts(layout: ArcLayout) -> tuple[Array, Array]:
    """The columns of the heavy outputs (`d` by `heavy`), and their weights in the law of the reports."""
    mine = layout.order[: layout.heavy]
    r = np.full((len(layout.prior), layout.heavy), layout.lo)
    r[mine, np.arange(layout.heavy)] += (1 - layout.lo) / layout.prior[mine]
    weight = layout.prior[mine].copy()
    if layout.heavy:
        weight[-1] -= circumference(layout) - float(layout.prior[layout.order[layout.heavy :]].sum())
    return r, weight


def posterior_sums_under(cells: ArcCells, tally: npt.NDArray[np.int64], prior: Array) -> Array:
    """`sum over reports of Pr(x | column of the report)` under any prior; also one step of EM from it."""
    counts = tally[0].astype(np.float64)
    return np.asarray(prior * (cells.matrix @ (counts / cells.law(prior))))


# -- reports ------------------------------------------------------------------------------------------------


def report_bits(mechanism: BitReports, reports: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Reports as a 0/1 matrix, a row for each report and a column for each value."""
    as_bytes = mechanism.check_reports(reports).view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, count=mechanism.size, bitorder="little")


def likelihood(mechanism: Mechanism, report: Any) -> Array:
    """`Pr(report | x)` for every value, from the definition; for reports of bits, up to a factor."""
    if isinstance(mechanism, BitReports):
        bits = report_bits(mechanism, np.reshape(report, (1, -1)))[0]
        return np.where(bits, float(mechanism.odds), 1.0)
    if not isinstance(mechanism, Arc | Orders):
        return np.asarray(mechanism.matrix[:, report])
    order, y = divmod(int(report), mechanism.line.places)
    m, orders = mechanism.line, 1
    if isinstance(mechanism, Orders):
        orders = mechanism.count
        m = replace(m, order=np.append(m.owners, mechanism.circles(np.array([order]))[0]))
    begins, ends = m.starts, m.starts + m.lengths
    if y < m.heavy:
        size = min(int(m.edges[y + 1]), m.start) - int(m.edges[y])
        used = np.where(np.arange(m.size) == m.order[y], size / m.lengths, 0.0)
    else:
        size, used = 1, np.zeros(m.size)
        for first in (m.start + y - m.heavy, m.start + y - m.heavy - m.circumference):
            low, high = np.maximum(begins, max(first, m.start)), np.minimum(ends, first + m.window)
            used += np.maximum(high - low, 0) / (m.lengths * float(m.window))
    k = m.keep / 2.0**m.word
    return np.asarray(((1 - k) * size / m.places + k * used) / orders)


def count_cells(mechanism: Orders, reports: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many reports fell into each column of the written-out channel."""
    line = mechanism.line
    parts = [reports[reports >> line.bits == i] & (line.places - 1) for i in range(mechanism.count)]
    readers = [reader_of(Arc(cells.line)) for cells in mechanism.cells]
    counts = [reader.count(part)[0] for reader, part in zip(readers, parts, strict=True)]
    return np.concatenate(counts)
