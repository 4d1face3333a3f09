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
from typing import Any

import numpy as np
import scipy.optimize

from priorveil.designs import cone_pricing
from priorveil.designs.engine import UNLIMITED, Limits, Mixture, Stop, mix, polish
from priorveil.errors import PriorveilError, TooLarge
from priorveil.priors import Array

Oracle = Callable[[Array], Array]
Task = Any  # SquaredErrorTask or GuessTask

_NODES = 1000  # splits of one exact pricing: several priors make many terms, and each split is cheap


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
class SquaredErrorTask:
    """Mean squared error of the posterior mean of `V[:, x]`: rows of `V` (J, d) are the statistics.

    `V = values[None]` is the sum, the identity the histogram;
    `phi_p(q) = sum_j (sum_x V_jx p_x q_x)^2 / (p @ q)`. Columns are rows of an array (n, d).
    """

    V: Array

    def idle(self, p: Array) -> float:
        """The error with utility zero."""
        return float((self.V**2).sum(axis=0) @ p)

    def gains(self, p: Array, columns: Array) -> Array:
        """`phi_p` of each column."""
        return np.asarray(((columns @ (self.V * p).T) ** 2).sum(axis=1) / (columns @ p))

    def risk(self, p: Array, columns: Array) -> Array:
        """Error at each value of the decoder made for `p`: the gradient of `MSE_p` in `p`."""
        mean = (columns @ (self.V * p).T) / (columns @ p)[:, None]
        off = (self.V.T[None, :, :] - mean[:, None, :]) ** 2
        return np.asarray((columns * off.sum(axis=2)).sum(axis=0))

    def worst(self, columns: Array, oracle: Oracle, start: Array, tolerance: float) -> Worst:
        """Pairwise Frank-Wolfe: move weight from the best-served vertex in use to the worst-served one."""
        atoms, share, bound, p = {start.tobytes(): start}, {start.tobytes(): 1.0}, math.inf, start
        for _ in range(2000):
            risk = self.risk(p, columns)
            corner = oracle(risk)
            bound = min(bound, float(risk @ corner))
            if bound - float(risk @ p) <= tolerance:
                break
            away, to = min(share, key=lambda name: float(atoms[name] @ risk)), corner.tobytes()
            direction = corner - atoms[away]
            step = self._step(p, direction, share[away], columns)
            p, atoms[to] = p + step * direction, corner
            share[to] = share.get(to, 0.0) + step
            share[away] -= step
            if share[away] <= 0:
                del share[away]
        return Worst(p, float(self.risk(p, columns) @ p), bound)

    def _step(self, p: Array, direction: Array, longest: float, columns: Array) -> float:
        """How far the error rises from `p` along `direction`."""

        def rise(step: float) -> float:
            return float(self.risk(p + step * direction, columns) @ direction)

        if rise(longest) >= 0:
            return longest
        return float(scipy.optimize.brentq(rise, 0.0, longest, xtol=1e-15)) if rise(0.0) > 0 else 0.0

    def pricing(self, A: Array, P: Array, priors: Array, stop: Stop) -> cone_pricing.ConeSquaresPricing:
        """Pricing of `sum_k phi_k` over the cone."""
        C = np.concatenate([self.V * p for p in priors])
        return cone_pricing.ConeSquaresPricing(A, P, C, np.repeat(priors, len(self.V), axis=0), _NODES, stop)


@dataclass(frozen=True)
class GuessTask:
    """Probability of a wrong guess: `phi_p(q) = max_x p_x q_x`."""

    def idle(self, p: Array) -> float:
        """The error with utility zero."""
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

    def pricing(self, A: Array, P: Array, priors: Array, stop: Stop) -> cone_pricing.ConeGuessPricing:
        """Pricing of `sum_k phi_k` over the cone."""
        return cone_pricing.ConeGuessPricing(A, P, priors, _NODES, stop)


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


class _Columns:
    """Where columns come from: all extreme rays if they can be listed, otherwise generated and kept.

    `lower` is the best bound so far on the worst error of any channel: what holds for some priors of a set
    holds for the set. After ctrl-C the `limits` leave no time.
    """

    def __init__(self, A: Array, P: Array, task: Task, most: int, limits: Limits) -> None:
        self.A, self.P, self.task, self.limits = A, P, task, limits
        self.pool, self.complete = np.ones((1, len(P))), False
        self.lower = -math.inf
        try:
            self.pool, self.complete = (
                cone_pricing.extreme_rays(A, P, most, limits.within(cone_pricing.LISTING).over),
                True,
            )
        except TooLarge:
            pass
        except KeyboardInterrupt:
            self.limits = limits.without_time()

    def errors(self, priors: Array, columns: Array) -> Array:
        """What each column adds to each prior's error (k, n), given that column weights add up to one."""
        return np.array([self.task.idle(p) - self.task.gains(p, columns) for p in priors])

    def solve(self, priors: Array, least: float) -> Mixture:
        """The best mixture for these priors; `lower` is then a proven bound on the worst error of any."""
        try:
            return self._list(priors) if self.complete else self._generate(priors, least)
        except KeyboardInterrupt:
            self.limits = self.limits.without_time()
            return self._mix_at_once(priors)

    def _list(self, priors: Array) -> Mixture:
        errors = self.errors(priors, self.pool)
        mixture = mix(self.pool, -errors)
        self.lower = max(self.lower, float(np.min(mixture.shares @ errors + (self.pool - 1) @ mixture.duals)))
        self._report(1, float((errors @ mixture.weights).max()))
        return mixture

    def _generate(self, priors: Array, least: float) -> Mixture:
        pricing = self.task.pricing(self.A, self.P, priors, self.limits.over)
        idle = np.array([self.task.idle(p) for p in priors])
        exact = False
        for rounds in count(1):
            errors = self.errors(priors, self.pool)
            mixture = mix(self.pool, -errors)
            upper, duals = float((errors @ mixture.weights).max()), mixture.duals
            shared = pricing.with_weights(mixture.shares)
            priced = shared.price(duals, exact)
            self.lower = max(self.lower, float(mixture.shares @ idle - duals.sum() - priced.bound))
            old = shared.utility(self.pool) - self.pool @ duals
            good = priced.utilities - priced.columns @ duals > np.max(old) + 1e-10
            self._report(rounds, upper)
            if self.is_within_gap(priors, upper, least) or (exact and not good.any()):
                return mixture
            exact = not good.any()
            self.pool = np.vstack([self.pool, priced.columns[good]])
            if self.limits.over():
                break
        return self._mix_at_once(priors)

    def _mix_at_once(self, priors: Array) -> Mixture:
        """The best mixture of the columns so far, and of some that need no solver."""
        if not self.complete:
            self.pool = np.vstack([self.pool, cone_pricing.nearby_columns(self.A, self.P)])
        return mix(self.pool, -self.errors(priors, self.pool))

    def _report(self, rounds: int, upper: float) -> None:
        self.limits.report(rounds, upper, min(self.lower, upper))

    def is_within_gap(self, priors: Array, upper: float, least: float) -> bool:
        """Whether no more is unproven than the share of the gain that the limits allow, or than `least`."""
        nothing = float(self.errors(priors, np.ones((1, len(self.P)))).max())
        allowed = max(least, self.limits.target * (nothing - self.lower))
        return math.isfinite(self.lower) and upper - self.lower <= allowed


def _worst_listed(task: Task, priors: Array, columns: Array) -> Worst:
    """The worst of finitely many priors for the channel with these (weighted) columns."""
    errors = np.array([task.idle(p) - task.gains(p, columns).sum() for p in priors])
    at = int(np.argmax(errors))
    return Worst(priors[at], float(errors[at]), float(errors[at]))


def robust_design(
    A: Array,
    priors: Array,
    task: Task,
    limits: Limits = UNLIMITED,
    *,
    oracle: Oracle | None = None,
    most: int = 8_000,
    least: float = 1e-9,
    rounds: int = 200,
) -> Robust:
    """The channel of the cone `A` with the least error under the worst prior of a set.

    Without an `oracle` the set is the finitely many `priors` (k, d). With one it is a polytope: `oracle(g)` returns a
    prior of it with the largest `g @ p`, and the `priors` are some of its members, their mean positive everywhere. `A`
    has the inequalities of the whole set (those of its vertices).

    Exact where the cone has at most `most` extreme rays; column generation, with weights on the priors, beyond. It
    stops when no more is unproven than the share of the gain that the `limits` allow (or `least`), at the limits, or on
    ctrl-C with the best so far.

    >>> A = np.array([[-1.0, 3.0], [3.0, -1.0]])
    >>> best = robust_design(A, np.array([[0.5, 0.5], [0.2, 0.8]]), GuessTask())
    >>> round(best.worst_mse, 9), round(best.lower_bound, 9)
    (0.25, 0.25)
    >>> interval = lambda g: np.where(np.arange(2) == np.argmax(g), 0.8, 0.2)
    >>> best = robust_design(A, np.array([[0.8, 0.2]]), SquaredErrorTask(np.eye(2)), oracle=interval)
    >>> np.round(best.worst_prior, 3), best.converged     # between the vertices, not at one
    (array([0.5, 0.5]), True)
    """
    quiet = limits if oracle is None else replace(limits, progress=None)
    source, start = _Columns(A, priors.mean(axis=0), task, most, quiet), priors.mean(axis=0)
    channel, upper, worst_prior = np.ones((priors.shape[1], 1)), math.inf, priors[0]
    try:
        for done in range(1, rounds + 1):
            found = source.solve(priors, least if oracle is None else least / 4)
            used, weights = polish(source.pool, found.weights)
            columns = source.pool[used] * weights[:, None]
            if oracle is None:
                worst = _worst_listed(task, priors, columns)
            else:
                worst = task.worst(columns, oracle, priors.T @ found.shares, least / 4)
                priors = np.vstack([priors, worst.prior])
            if worst.bound < upper:
                channel, upper, worst_prior = columns.T, worst.bound, worst.prior
            if oracle is not None:
                limits.report(done, upper, min(source.lower, upper))
            if oracle is None or source.is_within_gap(priors, upper, least) or source.limits.over():
                break
    except KeyboardInterrupt:
        if math.isinf(upper):  # no design yet: the channel that says nothing
            assert oracle is not None
            upper = task.worst(channel.T, oracle, start, least).bound
    return Robust(
        channel=channel,
        worst_mse=upper,
        lower_bound=min(source.lower, upper),
        worst_prior=worst_prior,
        converged=source.is_within_gap(priors, upper, least + 1e-12),
    )
