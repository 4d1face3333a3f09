"""Learning a distribution: the channel whose reports tell most about it, whatever the truth is.

At `p = P` one report carries the Fisher information `J = sum_y lam_y r_y r_y'` about `p`.
Probabilities add up to one, so only directions `V` of the simplex (vectors that sum to zero) are to be
learnt, and the best unbiased estimator has, per user and summed over the values, the variance

    tr (V' J V)^-1  =  tr J^-1 - P . P            (the second form because J P = 1).

Write `z = V' r`. To choose columns and weights is then an A-optimal experimental design,

    min  tr S^-1,  S = sum_y lam_y z_y z_y'    subject to    sum_y lam_y z_y = 0,  sum_y lam_y = 1,

convex in `lam`. Since `tr S^-1 >= 2 s tr N - s^2 tr N^2 S` for any symmetric `N` and any number
`s`, and `sum_y lam_y nu . z_y = 0` for any `nu`,

    every design's variance  >=  (tr N)^2 / max_r [ |N z|^2 - nu . z ],

which is the proven bound (equality at the optimum, where `N = S^-1`). The maximum runs over the vertices
of the allowed columns: exact when they can be listed; otherwise `priorveil.designs.information` has
its own bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.optimize

from priorveil.designs.columns import Array, Labels
from priorveil.designs.cyclic import cyclic_columns
from priorveil.designs.information import free_bound, information_bound
from priorveil.designs.limits import Limits, Stop, never
from priorveil.designs.pricing import Box
from priorveil.errors import Infeasible, NotIdentifiable
from priorveil.queries import lift_variance, tangent

_EXACT = 20_000  # vertices of the box that are still listed
_POOL = 20  # columns per input that column generation may hold
_FINE = Limits(1e-6)
_SECONDS = 45.0  # how long it may take where nothing is said


@dataclass(frozen=True, eq=False)
class DistributionDesign:
    """Columns `r` (K, d), weights (K,), the `variance` per user, a proven `bound` no design beats."""

    columns: Array
    weights: Array
    variance: float
    bound: float
    iterations: int
    converged: bool

    @property
    def gap(self) -> float:
        """The part of the variance that is not proven necessary, `1 - bound / variance`."""
        return max(0.0, 1.0 - self.bound / self.variance)

    @property
    def efficiency(self) -> float:
        """`bound / variance`."""
        return 1.0 - self.gap


def solve(
    prior: Array,
    columns: Array,
    limits: Limits = _FINE,
    *,
    sparse: bool = True,
) -> DistributionDesign:
    """The best weights for given columns (K, d) of any scale; the bound holds for all mixtures of them.

    With every extreme ray of a cone of allowed columns this is the best channel of that cone. `sparse` looks
    for as few outputs as `d (d + 1) / 2`. Past the `limits` it ends with the first weights that make a
    channel, and their bound.

    >>> design = solve(np.full(3, 1 / 3), np.array([[2.0, 1, 1], [1, 2, 1], [1, 1, 2], [1, 1, 1]]))
    >>> design.weights.round(3), round(design.variance, 3)      # the constant column tells nothing
    (array([0.333, 0.333, 0.333]), 10.667)
    """
    lifts = columns / (columns @ prior)[:, None]
    directions = (lifts - 1.0) @ tangent(len(prior))
    _check_rank(directions)
    target = limits.target
    state = _interior_point(directions, target, limits.over)
    late = state.value - state.bound > target * state.value
    again = state if late else _reduced(directions, state, target, sparse)
    spread = lift_variance(lifts[again.used], again.weights)
    bound = min(state.bound, spread)
    with suppress(KeyboardInterrupt):  # it is done anyway
        limits.tell(state.iterations, spread, bound)
    return DistributionDesign(
        lifts[again.used], again.weights, spread, bound, state.iterations, 1 - bound / spread <= 2 * target
    )


def _check_rank(directions: Array) -> None:
    if np.linalg.matrix_rank(directions) < directions.shape[1]:
        raise NotIdentifiable(
            "the allowed columns do not determine the distribution: allow more, or ask for a histogram"
        )


@dataclass(frozen=True, eq=False)
class _State:
    """Where the interior point ended: weights of the `used` columns, the variance `value`, its `bound`."""

    weights: Array
    used: Labels
    value: float
    bound: float
    iterations: int


def _interior_point(directions: Array, target: float, stop: Stop = never, limit: int = 200) -> _State:
    """Newton's method on the optimality conditions, primal and dual together.

    With `q_y = z_y' S^-2 z_y` they read `s_y = nu . z_y + t - q_y >= 0`, `lam_y s_y = 0` and the
    equations of the weights; each round asks for `lam_y s_y = mu` with a smaller `mu`. (`nu` holds
    `t` last.) Any round's bound is proven, but only its last weights make a channel: told to `stop`, it
    goes on until they do.
    """
    scale = math.sqrt(float((directions**2).sum(1).mean()))
    Z = directions / scale
    K, n = Z.shape
    C = np.hstack([Z, np.ones((K, 1))])
    side = np.eye(n + 1)[-1]
    lam = 1 / np.maximum((Z**2).sum(1), 1e-6)  # long columns end up with little weight
    lam, nu, slack, step = lam / lam.sum(), np.zeros(n + 1), np.empty(0), 0.0
    for iteration in range(limit):
        values, U = np.linalg.eigh(Z.T @ (Z * lam[:, None]))
        Y = Z @ U
        q = (Y**2) @ (1 / values**2)
        value = float((1 / values).sum())
        if iteration == 0:
            nu[-1] = 1.5 * q.max()
            slack = C @ nu - q
        bound = value**2 / float((q - Z @ nu[:-1]).max())
        missing = side - C.T @ lam
        if np.abs(missing).max() < 1e-10 and (value - bound <= target * value or stop()):
            lam = _feasible(C, lam, side)
            return _State(lam, np.arange(K), value / scale**2, bound / scale**2, iteration)
        mu = float(lam @ slack) / K * (0.1 if step > 0.5 else 0.5)
        try:
            inverse = _newton_inverse(Y, values, lam / slack)
        except np.linalg.LinAlgError:
            break
        AC, Ag = inverse(C), inverse((mu / lam - C @ nu + q)[:, None])[:, 0]
        d_nu = np.linalg.lstsq(C.T @ AC, C.T @ Ag - missing, rcond=None)[0]
        d_lam = Ag - AC @ d_nu
        d_slack = mu / lam - slack - d_lam * slack / lam
        step = min(1.0, 0.95 / max(float((-d_lam / lam).max()), float((-d_slack / slack).max()), 1e-300))
        lam, slack, nu = lam + step * d_lam, slack + step * d_slack, nu + step * d_nu
    raise Infeasible("no weights make these columns a channel, or the solver could not find them")


def _newton_inverse(Y: Array, values: Array, ratio: Array) -> Callable[[Array], Array]:
    """How to apply `(H + diag(1 / ratio))^-1`, where `H` is the Hessian of `tr S^-1` in the weights.

    In the eigenbasis of `S` the Hessian is diagonal on matrices, so it has rank at most `n (n + 1) / 2`.
    """
    K, n = Y.shape
    if n * (n + 1) // 2 >= K:
        hessian = 2 * ((Y / values) @ Y.T) * ((Y / values**2) @ Y.T)
        hessian[np.arange(K), np.arange(K)] += 1 / ratio
        dense = scipy.linalg.cho_factor(hessian, overwrite_a=True)
        return lambda right: np.asarray(scipy.linalg.cho_solve(dense, right))
    i, j = np.triu_indices(n)
    curvature = (values[i] + values[j]) * np.where(i == j, 1.0, 2.0) / (values[i] * values[j]) ** 2
    F = Y[:, i] * Y[:, j] * np.sqrt(curvature)
    RF = F * ratio[:, None]
    small = scipy.linalg.cho_factor(np.eye(len(i)) + F.T @ RF)
    return lambda right: ratio[:, None] * right - RF @ scipy.linalg.cho_solve(small, RF.T @ right)


def _feasible(C: Array, lam: Array, side: Array) -> Array:
    """Remove the rounding left in `C' lam = side`, in proportion to the weights."""
    for _ in range(2):
        lam = lam + lam * (C @ np.linalg.lstsq(C.T @ (C * lam[:, None]), side - C.T @ lam, rcond=None)[0])
    return np.asarray(np.maximum(lam, 0.0))


def _few(directions: Array, weights: Array, places: Labels) -> Labels:
    """Fewer columns with the same information: a basic solution of `sum lam zz' = S`, `sum lam z = 0`."""
    n = directions.shape[1]
    i, j = np.triu_indices(n)
    if len(places) <= len(i) + n + 1:
        return places
    Z = directions[places] / np.abs(directions).max()
    rows = np.hstack([Z[:, i] * Z[:, j], Z, np.ones((len(Z), 1))]).T
    cost = np.random.default_rng(0).random(len(places))
    found = scipy.optimize.linprog(cost, A_eq=rows, b_eq=rows @ weights[places], method="highs-ds")
    return places if found.x is None else np.asarray(places[found.x > 1e-9])


def _reduced(directions: Array, state: _State, target: float, sparse: bool) -> _State:
    """Solve again on the columns that matter; all of them where that would cost more than the target."""
    weights = state.weights
    for least, few in ((1e-3 / len(weights), sparse), (1e-7 / len(weights), sparse), (1e-9, False)):
        keep = np.flatnonzero(weights > least)
        keep = _few(directions, weights, keep) if few else keep
        try:
            again = _interior_point(directions[keep], target)
        except Infeasible:
            continue
        if again.value <= state.value * (1 + 2 * target):
            return replace(again, used=keep)
    return state


def distribution(
    prior: Array,
    lo: float,
    hi: float,
    limits: Limits | None = None,
) -> DistributionDesign:
    """The channel with lifts in `[lo, hi]` from which a distribution is learnt best.

    Exact for small domains (all vertices); rotations of a few blocks for equal inputs; column generation
    otherwise, until the `limits` (a gap of 1e-5 and 45 seconds) or ctrl-C (then the best so far).

    >>> P = np.array([0.025, 0.025, 0.025, 0.025, 0.9])
    >>> round(distribution(P, np.exp(-1.0), np.exp(1.0)).variance, 3)
    5.783
    """
    limits = limits or Limits(1e-5, time.monotonic() + _SECONDS)
    box = Box(prior, lo, hi)
    if box.caps.min() >= 1.0:
        return _own_outputs(box)
    if len(prior) <= 14:
        vertices = box_vertices(box)
        if len(vertices) <= _EXACT:
            return solve(prior, vertices, limits)
    if np.ptp(prior) <= 1e-15:
        return _rotations(box, limits.target)
    return _Generation(box, limits).run()


def _own_outputs(box: Box) -> DistributionDesign:
    """Every input is heavy: one output each, and no channel does better."""
    best = (1.0 - float(box.prior @ box.prior)) / (1 - box.lo) ** 2
    return DistributionDesign(box.columns(np.eye(len(box.prior))), box.prior, best, best, 0, True)


def _rotations(box: Box, target: float) -> DistributionDesign:
    """Equal inputs: all rotations of a few blocks, against the optimum in closed form."""
    d = len(box.prior)
    columns = cyclic_columns(d, box.lo, box.hi, blocks=min(max(1600 // d, 2), 16))
    weights = np.full(len(columns), 1 / len(columns))
    spread = lift_variance(columns, weights)
    bound = min(information_bound(box.prior, box.lo, box.hi), spread)
    return DistributionDesign(columns, weights, spread, bound, 0, 1 - bound / spread <= target)


def box_vertices(box: Box) -> Array:
    """All extreme columns (K, d) of the box: every input at `lo` or at its cap, but one.

    >>> box_vertices(Box(np.array([0.5, 0.25, 0.25]), lo=0.5, hi=2.0))
    array([[1.5 , 0.5 , 0.5 ],
           [0.75, 2.  , 0.5 ],
           [0.75, 0.5 , 2.  ],
           [0.5 , 1.  , 2.  ],
           [0.5 , 2.  , 1.  ]])
    """
    d = len(box.prior)
    bits = (np.arange(2 ** (d - 1))[:, None] >> np.arange(d - 1)) & 1
    found = []
    for loose in range(d):
        others = np.delete(np.arange(d), loose)
        rest = 1.0 - bits @ box.caps[others]
        fits = (rest >= -1e-13) & (rest <= box.caps[loose] + 1e-13)
        shares = np.empty((int(fits.sum()), d))
        shares[:, others] = bits[fits] * box.caps[others]
        shares[:, loose] = np.clip(rest[fits], 0.0, box.caps[loose])
        found.append(shares)
    shares = np.vstack(found)
    _, first = np.unique(np.round(shares, 11), axis=0, return_index=True)
    return box.columns(shares[np.sort(first)])


@dataclass
class _Generation:
    """Column generation for the box: solve the weights, look for columns that tell more, repeat."""

    box: Box
    limits: Limits

    def run(self) -> DistributionDesign:
        rng = np.random.default_rng(0)
        box, best = self.box, None
        pool, rounds, fine = self._seeds(rng), 0, 3e-3
        half = self.limits.within(1 / 2)
        try:
            best = self._weigh(pool, free_bound(box.prior, box.lo, box.hi), rounds, fine)[1]
            bound = information_bound(box.prior, box.lo, box.hi, should_stop=half.over)
            while True:
                begin = time.monotonic()
                state, best = self._weigh(pool, bound, rounds, fine)
                self.limits.tell(rounds, best.variance, bound)
                pause = 2.5 * (time.monotonic() - begin)
                if fine < 1e-3 or self.limits.should_stop():
                    break
                fresh = self._price(pool, state, rng)
                late = time.monotonic() + pause > self.limits.deadline
                if best.gap <= self.limits.target or not len(fresh) or late:
                    fine, fresh = 1e-5, fresh[:0]
                pool, rounds = np.vstack([self._kept(pool, state, len(fresh)), fresh]), rounds + 1
        except KeyboardInterrupt:
            if best is None:
                raise
        return best

    def _most(self) -> int:
        return min(_POOL * len(self.box.prior), 2500)

    def _seeds(self, rng: np.random.Generator) -> Array:
        """Random columns, each input's own, and randomised response (within the budget, as all of LDP is)."""
        d = len(self.box.prior)
        chance = rng.random((max(self._most() // 2, 2 * d), d))
        own = np.eye(d) + 1e-3 * rng.random((d, d))
        level = min(self.box.hi, 1 / self.box.lo)
        response = 1.0 + (level - 1.0) * np.eye(d)
        vertices = self.box.columns(self.box.fill(np.vstack([own, chance])))
        return np.vstack([vertices, response / (response @ self.box.prior)[:, None]])

    def _weigh(
        self, pool: Array, bound: float, rounds: int, fine: float
    ) -> tuple[_State, DistributionDesign]:
        """The best weights for the pool, solved as finely as asked."""
        state = _interior_point((pool - 1.0) @ tangent(pool.shape[1]), fine)
        used = state.weights > 0
        spread = lift_variance(pool[used], state.weights[used])
        proven = min(bound, spread)
        done = 1 - proven / spread <= self.limits.target
        return state, DistributionDesign(pool[used], state.weights[used], spread, proven, rounds, done)

    def _kept(self, pool: Array, state: _State, fresh: int) -> Array:
        """The columns that carry weight, the heaviest first where there are too many."""
        order = np.argsort(-state.weights, kind="stable")
        carrying = int((state.weights > 1e-2 / len(pool)).sum())
        return pool[np.sort(order[: min(carrying, max(self._most() - fresh, 4 * pool.shape[1]))])]

    def _price(self, pool: Array, state: _State, rng: np.random.Generator) -> Array:
        """Columns that tell more, the best first: `r' M r - m . r > t`, `M = V S^-2 V'`, `m = V nu`."""
        V = tangent(pool.shape[1])
        Z = (pool - 1.0) @ V
        values, U = np.linalg.eigh(Z.T @ (Z * state.weights[:, None]))
        M = V @ ((U / values**2) @ U.T) @ V.T
        q = ((pool @ M) * pool).sum(1)
        C = np.hstack([Z, np.ones((len(Z), 1))]) * np.sqrt(state.weights)[:, None]
        nu = np.linalg.lstsq(C, q * np.sqrt(state.weights), rcond=None)[0]
        m = V @ nu[:-1]
        chance = self.box.columns(self.box.fill(rng.random((600, len(m)))))
        found = self._climb(np.vstack([chance, pool[state.weights > 1e-2 / len(pool)]]), M, m)
        worth = ((found @ M - m) * found).sum(1) + m.sum() - nu[-1]
        order = np.argsort(-worth)
        _, first = np.unique(np.round(found[order], 9), axis=0, return_index=True)
        order = order[np.sort(first)]
        return np.asarray(found[order[worth[order] > 1e-4 * state.value][: 3 * len(m)]])

    def _climb(self, columns: Array, M: Array, m: Array) -> Array:
        """Local search for the largest `r' M r - m . r`, all columns at once.

        Linearise and fill by a sort; `blend = 1` replaces the squares by their chords between the two
        ends, which is exact for columns at the ends and sees exchanges that a tangent cannot.
        """
        slope = (1 - self.box.lo) / self.box.prior
        ends = 2 * self.box.lo + self.box.caps * slope
        own = np.diag(M)
        height = ((columns @ M - m) * columns).sum(1)
        for _ in range(30):
            pull = columns @ M
            before = height.sum()
            for blend in (0.0, 0.5, 1.0):
                scores = 2 * (pull - blend * own * columns) + blend * own * ends - m
                other = self.box.columns(self.box.fill(scores * slope))
                reach = ((other @ M - m) * other).sum(1)
                better = reach > height
                columns, height = np.where(better[:, None], other, columns), np.maximum(reach, height)
            if height.sum() <= before * (1 + 1e-9):
                break
        return np.asarray(columns)
