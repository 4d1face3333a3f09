"""Plainer ways to what the library does, and what it is compared with: formulas as they are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.designs.arcs import ArcLayout, _own_mass, _pieces, arc_layouts
from priorveil.designs.closed import binary
from priorveil.mechanisms import Arc, Mechanism, Unary
from priorveil.mechanisms.arc.cells import ArcCells

Array = npt.NDArray[np.float64]


def lip_rows(P: Array, lo: float, hi: float, T: Array | None = None) -> Array:
    """Rows of the cone `lo <= T r <= hi`; the value itself is the secret where no `T` is given."""
    T = np.eye(len(P)) if T is None else T
    return np.vstack([T - lo * P, hi * P - T])


# -- closed forms -------------------------------------------------------------------------------------------


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
    """The `q10` that goes with `q01` on the curve of odds `R`."""
    return (1 - q01) / (1 + (R - 1) * q01)


def bitwise_gain(P: Array, q01: float, R: float) -> float:
    """What the paper's estimator gains, the posterior of each value given its own bit alone."""
    q10 = clearing(q01, R)
    shown = P * (1 - q10) + (1 - P) * q01
    return float(np.sum((P * (1 - q10)) ** 2 / shown + (P * q10) ** 2 / (1 - shown)))


# -- arcs ---------------------------------------------------------------------------------------------------


def circle_lifts(layout: ArcLayout, points: Array) -> Array:
    """The columns `r` of the outputs at these points of the circle, one column each (`d` rows)."""
    members = layout.order[layout.heavy - layout.lends :]
    rim = np.concatenate([[0.0], np.cumsum(layout.prior[members])])
    if layout.lends:
        rim[1:] -= rim[-1] - layout.circumference
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
    if layout.lends:
        weight[-1] -= layout.circumference - float(layout.prior[layout.order[layout.heavy :]].sum())
    return r, weight


def posterior_sums_under(cells: ArcCells, tally: npt.NDArray[np.int64], prior: Array) -> Array:
    """`sum over reports of Pr(x | column of the report)` under any prior; also one step of EM from it."""
    counts = tally[0].astype(np.float64)
    return np.asarray(prior * cells.mean(counts / cells.law(prior)))


def arc_layout(*where: Any, values: Any = None, **kind: Any) -> ArcLayout:
    """The layout of the arc mechanism with the least error, in floats."""
    found = arc_layouts(*where, values=values, **kind)
    return found[0] if len(found) == 1 else min(found, key=lambda one: sum_error(one, values))


def second_moment(layout: ArcLayout) -> Array:
    """`E[(b_x / tau)^2]` of every input, over the law of the outputs; its mean is one.

    Heavy: `1 / P_x`. Light, with `L` the circumference: `b_x(u)` rises over a length `P_x`, stays at
    one, and falls again, so `E[b_x^2] = tau - P_x / 3` while `L >= tau + P_x`. On a tighter circle the
    same holds for `1 - b_x`, the share of `x` in the gap of length `c = L - tau`:
    `E[b_x^2] = L - 2 c + (c / P_x)^2 (P_x - c / 3)`. A lender owns the mass `P_x - s` and lends `s`:
    `(P_x - s) / P_x^2 + s^2 / (tau P_x^2)`.
    """
    P, tau, L = layout.prior, layout.tau, layout.circumference
    moment = 1 / P
    light = layout.order[layout.heavy :]
    if len(light):
        p, c = P[light], max(L - tau, 0.0)
        tight = L - 2 * c + (c / p) ** 2 * (p - c / 3)
        moment[light] = np.where(tau + p <= L, tau - p / 3, tight) / tau**2
    if layout.lends:
        k, own = layout.order[layout.heavy - 1], _own_mass(layout)[-1]
        moment[k] = (own + (P[k] - own) ** 2 / tau) / P[k] ** 2
    return moment


def histogram_error(layout: ArcLayout) -> float:
    """Expected squared error per user, `1 - sum_x P_x^2 E[r_x^2]`, in closed form.

    With every input heavy this is the error of the paper's Theorem 3. It does not depend on the order.
    """
    lift = 1 + (1 - layout.lo) ** 2 * (second_moment(layout) - 1)
    return float(1 - np.dot(layout.prior**2, lift))


def sum_error(layout: ArcLayout, values: npt.ArrayLike | None) -> float:
    """Expected squared error per user of the sum of `values`: `Var - E[(sum_x a_x P_x r_x)^2]`.

    With `a` centred, the posterior mean on the circle is `(1 - lo) / tau` times the integral of `a`
    over the window. That is linear between the places where the window gains or loses an arc, so its square
    is integrated exactly, in O(d log d).
    """
    P, a = layout.prior, np.asarray(values, dtype=np.float64)
    a = a - np.dot(P, a)
    owned = float(np.dot(_own_mass(layout), a[layout.order[: layout.heavy]] ** 2))
    members, rim, cuts = _pieces(layout)
    shared = 0.0
    if len(members):
        L = rim[-1]
        total = np.concatenate([[0.0], np.cumsum(a[members] * np.diff(rim))])
        turns = np.concatenate([rim, L + rim[1:]])
        area = np.concatenate([total, total[-1] + total[1:]])
        g = np.interp(cuts + layout.tau, turns, area) - np.interp(cuts, turns, area)
        g0, g1 = g[:-1], g[1:]
        shared = float(np.dot(np.diff(cuts), g0 * g0 + g0 * g1 + g1 * g1) / 3 / layout.tau**2)
    return float(np.dot(P, a * a) - (1 - layout.lo) ** 2 * (owned + shared))


# -- reports ------------------------------------------------------------------------------------------------


def likelihood(mechanism: Mechanism, report: Any) -> Array:
    """`Pr(report | x)` for every value, from the definition; for unary reports, up to a factor."""
    if isinstance(mechanism, Unary):
        bits = mechanism.bits(np.reshape(report, (1, -1)))[0]
        return np.where(bits, float(mechanism.odds), 1.0)
    if not isinstance(mechanism, Arc):
        return np.asarray(mechanism.matrix[:, report])
    order, y = divmod(int(report), mechanism.line.places)
    m, orders = mechanism.lines[order], len(mechanism.lines)
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
