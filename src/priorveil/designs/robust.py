"""Design for a set of priors: the constraints of all of them, and the least error under the worst one.

The cone `A` holds the inequalities of every prior. Under prior `p` a column `q` contributes
`phi_p(q)`, and the error is `MSE_p = idle_p - sum_y phi_p(q_y)`. Every `phi_p` is convex and
homogeneous, so the extreme rays of the cone serve all priors at once:

    min t   subject to   t >= idle_k - sum_y lam_y phi_k(r_y)  for every prior k,   sum_y lam_y r_y = 1.

For any weights `w` on the priors, `sum_k w_k MSE_k` is at most the worst error; its least value over all
channels is an ordinary design, whose dual bound is the proven lower bound here.

`MSE_p` is concave in `p`, so over a polytope of priors the worst one is *not* a vertex in general. It
is found by cutting planes: design for a few priors, look for the prior that is worst for that channel, add
it. The decoder made for one prior has a risk that is linear in the true prior and never below the MSE: its
maximum over the set is a proven upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

import numpy as np
import numpy.typing as npt
import scipy.optimize

from priorveil.designs.branching import Peaks, Squares, peaks, squares
from priorveil.designs.cones import LISTING, extreme_rays, nearby_columns, sharpened
from priorveil.designs.limits import UNLIMITED, Limits, Stop
from priorveil.errors import Infeasible, PriorveilError, TooLarge

Array = npt.NDArray[np.float64]
Oracle = Callable[[Array], Array]

_NODES = 1000  # splits of one exact pricing: several priors make many terms, and each split is cheap


class Task(Protocol):
    """What is estimated, for any prior `p`; columns are rows of an array (n, d)."""

    def idle(self, p: Array) -> float:
        """What the error would be with utility zero."""
        ...

    def gains(self, p: Array, columns: Array) -> Array:
        """`phi_p` of each column."""
        ...

    def worst(self, columns: Array, oracle: Oracle, start: Array, tolerance: float) -> Worst:
        """The prior of a set with the largest error for the channel with these (weighted) columns."""
        ...

    def pricing(self, A: Array, P: Array, priors: Array, stop: Stop) -> Squares | Peaks:
        """Pricing of `sum_k phi_k` over the cone."""
        ...

    def spread(self, weights: Array) -> Array:
        """Weights of the terms of that pricing from weights of the priors."""
        ...


@dataclass(frozen=True)
class Worst:
    """A prior with error `mse`, and a proven `bound` on the error of every prior of the set."""

    prior: Array
    mse: float
    bound: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Robust:
    """A channel `Q` (d, K), what it guarantees, and how much better any other could be.

    No prior of the set has an error above `worst_mse`; no channel of the cone has its worst error below
    `lower_bound`. `worst_prior` attains the worst error (up to the tolerance).
    """

    channel: Array
    worst_mse: float
    lower_bound: float
    worst_prior: Array
    converged: bool


@dataclass(frozen=True)
class Squared:
    """Mean squared error of the posterior mean of `V[:, x]`: rows of `V` (J, d) are the values estimated.

    `V = values[None]` is the sum, the identity the histogram;
    `phi_p(q) = sum_j (sum_x V_jx p_x q_x)^2 / (p @ q)`.
    """

    V: Array

    def idle(self, p: Array) -> float:
        """What the error would be with utility zero."""
        return float((self.V**2).sum(axis=0) @ p)

    def gains(self, p: Array, columns: Array) -> Array:
        """`phi_p` of each column."""
        return np.asarray(((columns @ (self.V * p).T) ** 2).sum(axis=1) / (columns @ p))

    def risk(self, p: Array, columns: Array) -> Array:
        """Error at each input of the decoder made for `p`: the gradient of `MSE_p` in `p`."""
        mean = (columns @ (self.V * p).T) / (columns @ p)[:, None]
        off = (self.V.T[None, :, :] - mean[:, None, :]) ** 2
        return np.asarray((columns * off.sum(axis=2)).sum(axis=0))

    def worst(self, columns: Array, oracle: Oracle, start: Array, tolerance: float) -> Worst:
        """Pairwise Frank-Wolfe: move weight from the best-served vertex in use to the worst-served one."""
        atoms, share, bound, p = [start], [1.0], math.inf, start
        for _ in range(2000):
            risk = self.risk(p, columns)
            corner = oracle(risk)
            bound = min(bound, float(risk @ corner))
            if bound - float(risk @ p) <= tolerance:
                break
            away = int(np.argmin(np.array(atoms) @ risk))
            direction = corner - atoms[away]
            step = self._step(p, direction, share[away], columns)
            p = p + step * direction
            _move(atoms, share, away, corner, step)
        return Worst(p, float(self.risk(p, columns) @ p), bound)

    def _step(self, p: Array, direction: Array, longest: float, columns: Array) -> float:
        """How far the error rises from `p` along `direction`."""

        def rise(step: float) -> float:
            return float(self.risk(p + step * direction, columns) @ direction)

        if rise(longest) >= 0:
            return longest
        return float(scipy.optimize.brentq(rise, 0.0, longest, xtol=1e-15)) if rise(0.0) > 0 else 0.0

    def pricing(self, A: Array, P: Array, priors: Array, stop: Stop) -> Squares:
        """Pricing of `sum_k phi_k` over the cone."""
        C = np.concatenate([self.V * p for p in priors])
        return squares(A, P, C, np.repeat(priors, len(self.V), axis=0), _NODES, stop)

    def spread(self, weights: Array) -> Array:
        """Weights of the terms of that pricing."""
        return np.repeat(weights, len(self.V))


@dataclass(frozen=True)
class Guessed:
    """Probability of a wrong guess: `phi_p(q) = max_x p_x q_x`."""

    def idle(self, p: Array) -> float:
        """What the error would be with utility zero."""
        return float(p.sum())

    def gains(self, p: Array, columns: Array) -> Array:
        """`phi_p` of each column."""
        return np.asarray((columns * p).max(axis=1))

    def worst(self, columns: Array, oracle: Oracle, start: Array, tolerance: float) -> Worst:
        """Exact: a linear programme over the vertices met so far; its dual is a randomised decoder."""
        atoms, p, bound = [start], start, math.inf
        for _ in range(500):
            p, risk = _hardest_guess(columns, np.array(atoms))
            corner = oracle(risk)
            bound = min(bound, float(risk @ corner))
            if bound - self._mse(p, columns) <= tolerance:
                break
            atoms.append(corner)
        return Worst(p, self._mse(p, columns), bound)

    def _mse(self, p: Array, columns: Array) -> float:
        return float(p.sum() - self.gains(p, columns).sum())

    def pricing(self, A: Array, P: Array, priors: Array, stop: Stop) -> Peaks:
        """Pricing of `sum_k phi_k` over the cone."""
        return peaks(A, P, priors, _NODES, stop)

    def spread(self, weights: Array) -> Array:
        """Weights of the terms of that pricing."""
        return weights


def _move(atoms: list[Array], share: list[float], away: int, corner: Array, step: float) -> None:
    """Move `step` of weight from atom `away` to `corner`, in place."""
    same = [i for i, atom in enumerate(atoms) if np.array_equal(atom, corner)]
    if same:
        share[same[0]] += step
    else:
        atoms.append(corner)
        share.append(step)
    share[away] -= step
    if share[away] <= 0:
        del atoms[away], share[away]


def _hardest_guess(columns: Array, atoms: Array) -> tuple[Array, Array]:
    """The mixture of atoms with most wrong guesses, and the risk of the randomised decoder that proves it.

    `min sum_y t_y` subject to `t_y >= q_yx p_x` and `p` a mixture of the atoms; the multipliers of each
    output's rows are its guessing probabilities. Any guessing probabilities give a valid risk.
    """
    K, d = columns.shape
    n = len(atoms)
    rows = np.zeros((K * d, n + K))
    rows[:, :n] = np.einsum("yx,nx->yxn", columns, atoms).reshape(K * d, n)
    rows[np.arange(K * d), n + np.repeat(np.arange(K), d)] = -1.0
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(n), np.ones(K)]),
        A_ub=rows,
        b_ub=np.zeros(K * d),
        A_eq=np.concatenate([np.ones(n), np.zeros(K)])[None],
        b_eq=[1.0],
        method="highs-ds",
    )
    if found.x is None:
        raise PriorveilError(f"the search for the worst prior did not finish: {found.message}")
    guess = np.maximum(-np.asarray(found.ineqlin.marginals).reshape(K, d), 0.0)
    total = guess.sum(axis=1, keepdims=True)
    guess = np.where(total > 0, guess / np.where(total > 0, total, 1.0), 1.0 / d)
    weights = np.maximum(found.x[:n], 0.0)
    return weights / weights.sum() @ atoms, np.asarray(columns.sum(axis=0) - (columns * guess).sum(axis=0))


@dataclass(frozen=True)
class _Master:
    """The epigraph programme's answer: weights of columns, of priors, and slopes `mu` of the equations."""

    mixture: Array
    weights: Array
    mu: Array
    upper: float


def _errors(task: Task, priors: Array, columns: Array) -> Array:
    """What each column adds to each prior's error (k, n), given that column weights add up to one."""
    return np.array([task.idle(p) - task.gains(p, columns) for p in priors])


def _master(columns: Array, errors: Array) -> _Master:
    """`min max_k sum_y lam_y errors[k, y]`, after taking out linear parts, which add up to nothing."""
    k, n = errors.shape
    reach = max(float(np.abs(columns - 1).max()), 1e-6)
    table = np.column_stack([np.ones(n), (columns - 1) / reach])
    linear = np.linalg.lstsq(table, errors.T, rcond=1e-9)[0]
    rest = errors - (table @ linear).T
    base = linear[0]
    scale = max(float(np.abs(rest).max()), 1e-12)
    height = (base - base.max()) / scale
    found = scipy.optimize.linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([rest / scale, -np.ones(k)]),
        b_ub=-height,
        A_eq=np.column_stack([table.T, np.zeros(table.shape[1])]),
        b_eq=np.eye(1, table.shape[1])[0],
        bounds=[(0, None)] * n + [(None, None)],
        method="highs-ds",
    )
    if found.x is None or found.status != 0:
        raise Infeasible(f"these columns do not mix to a channel: {found.message}")
    weights = np.maximum(-np.asarray(found.ineqlin.marginals), 0.0)
    weights = np.where(weights > 1e-12, weights, 0.0) / weights[weights > 1e-12].sum()
    slope = (linear[1:] @ weights + scale * np.asarray(found.eqlin.marginals)[1:]) / reach
    mixture = np.maximum(found.x[:n], 0.0)
    return _Master(mixture, weights, slope, float((errors @ mixture).max()))


class _Columns:
    """Where columns come from: all extreme rays if they can be listed, else generated and kept.

    `lower` is the best bound so far on the worst error of any channel: what holds for some priors of a set
    holds for the set. After a ctrl-C the `limits` are over for good.
    """

    def __init__(self, A: Array, P: Array, task: Task, most: int, limits: Limits) -> None:
        self.A, self.P, self.task, self.limits = A, P, task, limits
        self.pool, self.complete = np.ones((1, len(P))), False
        self.lower = -math.inf
        try:
            self.pool, self.complete = extreme_rays(A, P, most, limits.within(LISTING).over), True
        except TooLarge:
            pass
        except KeyboardInterrupt:
            self.limits = limits.ended()

    def solve(self, priors: Array, least: float) -> _Master:
        """The best mixture for these priors; `lower` is then a proven bound on the worst error of any."""
        try:
            return self._listed(priors) if self.complete else self._generated(priors, least)
        except KeyboardInterrupt:
            self.limits = self.limits.ended()
            return self._at_once(priors)

    def _listed(self, priors: Array) -> _Master:
        errors = _errors(self.task, priors, self.pool)
        master = _master(self.pool, errors)
        self.lower = max(self.lower, float(np.min(master.weights @ errors - (self.pool - 1) @ master.mu)))
        self._tell(1, master.upper)
        return master

    def _generated(self, priors: Array, least: float) -> _Master:
        pricing = self.task.pricing(self.A, self.P, priors, self.limits.over)
        idle = np.array([self.task.idle(p) for p in priors])
        exact = False
        for rounds in count(1):
            master = _master(self.pool, _errors(self.task, priors, self.pool))
            weighted = pricing.weighted(self.task.spread(master.weights))
            duals = -master.mu
            priced = weighted.price(duals, exact)
            self.lower = max(self.lower, float(master.weights @ idle - duals.sum() - priced.bound))
            old = weighted.utility(self.pool) - self.pool @ duals
            good = priced.utilities - priced.columns @ duals > np.max(old) + 1e-10
            self._tell(rounds, master.upper)
            if self.settled(priors, master.upper, least) or (exact and not good.any()):
                return master
            exact = not good.any()
            self.pool = np.vstack([self.pool, priced.columns[good]])
            if self.limits.over():
                break
        return self._at_once(priors)

    def _at_once(self, priors: Array) -> _Master:
        """The best mixture of the columns there are, and of some that cost nothing."""
        if not self.complete:
            self.pool = np.vstack([self.pool, nearby_columns(self.A, self.P)])
        return _master(self.pool, _errors(self.task, priors, self.pool))

    def _tell(self, rounds: int, upper: float) -> None:
        self.limits.tell(rounds, upper, min(self.lower, upper))

    def settled(self, priors: Array, upper: float, least: float) -> bool:
        """Whether no more is unproven than the share of the gain that the limits allow, or than `least`."""
        nothing = float(_errors(self.task, priors, np.ones((1, len(self.P)))).max())
        allowed = max(least, self.limits.target * (nothing - self.lower))
        return math.isfinite(self.lower) and upper - self.lower <= allowed


def robust_design(
    A: Array, priors: Array, task: Task, limits: Limits = UNLIMITED, *, most: int = 8_000, least: float = 1e-9
) -> Robust:
    """The channel of the cone `A` with the least error under the worst of finitely many `priors` (k, d).

    Exact where the cone has at most `most` extreme rays; column generation, with weights on the priors,
    beyond. Stops when what is unproven is the share of the gain that the `limits` allow (or `least`), at
    the limits, or on ctrl-C, with the best so far.

    >>> A = np.array([[-1.0, 3.0], [3.0, -1.0]])
    >>> best = robust_design(A, np.array([[0.5, 0.5], [0.2, 0.8]]), Guessed())
    >>> round(best.worst_mse, 9), round(best.lower_bound, 9)
    (0.25, 0.25)
    """
    source = _Columns(A, priors.mean(axis=0), task, most, limits)
    master = source.solve(priors, least)
    columns, mixture = sharpened(source.pool, master.mixture)
    errors = _errors(task, priors, columns) @ mixture
    worst = int(np.argmax(errors))
    upper = float(errors[worst])
    return Robust(
        channel=(columns * mixture[:, None]).T,
        worst_mse=upper,
        lower_bound=min(source.lower, upper),
        worst_prior=priors[worst],
        converged=source.settled(priors, upper, least + 1e-12),
    )


def robust_over(
    A: Array,
    oracle: Oracle,
    start: Array,
    task: Task,
    limits: Limits = UNLIMITED,
    *,
    most: int = 8_000,
    least: float = 1e-8,
    rounds: int = 200,
) -> Robust:
    """The channel with the least error under the worst prior of a polytope.

    `oracle(g)` returns a prior of the set with the largest `g @ p`; `start` (k, d) are some priors of
    it, their mean positive everywhere. `A` has the inequalities of the whole set (those of its vertices).
    Stops as `robust_design` does, and tells the limits of each round.

    >>> A = np.array([[-1.0, 3.0], [3.0, -1.0]])
    >>> interval = lambda g: np.where(np.arange(2) == np.argmax(g), 0.8, 0.2)
    >>> best = robust_over(A, interval, np.array([[0.8, 0.2]]), Squared(np.eye(2)))
    >>> np.round(best.worst_prior, 3), best.converged     # between the vertices, not at one
    (array([0.5, 0.5]), True)
    """
    source = _Columns(A, start.mean(axis=0), task, most, replace(limits, progress=None))
    upper, priors = math.inf, start
    best, worst_prior = np.ones((start.shape[1], 1)), start[0]
    try:
        for done in range(1, rounds + 1):
            master = source.solve(priors, least / 4)
            columns, mixture = sharpened(source.pool, master.mixture)
            inside = priors.T @ master.weights
            worst = task.worst(columns * mixture[:, None], oracle, inside, least / 4)
            if worst.bound < upper:
                upper, best, worst_prior = worst.bound, (columns * mixture[:, None]).T, worst.prior
            priors = np.vstack([priors, worst.prior])
            limits.tell(done, upper, min(source.lower, upper))
            if source.settled(priors, upper, least) or source.limits.over():
                break
    except KeyboardInterrupt:
        if math.isinf(upper):  # nothing is designed yet: say nothing
            upper = task.worst(best.T, oracle, start.mean(axis=0), least).bound
    return Robust(
        channel=best,
        worst_mse=upper,
        lower_bound=min(source.lower, upper),
        worst_prior=worst_prior,
        converged=source.settled(priors, upper, least),
    )
