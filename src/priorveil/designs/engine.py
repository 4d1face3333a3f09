"""The engine: the best mixture of allowed columns, by linear programmes and column generation.

A channel is a mixture of columns. Write column `y` as `lam_y r_y` with `P . r_y = 1`; then the best channel
for a convex utility `phi` solves the *master*

    max  sum_y lam_y phi(r_y)    subject to    sum_y lam_y r_y = 1,   lam >= 0,

over all allowed `r`. Where the columns that matter can be listed, `best_mixture` solves it in one linear programme.
Otherwise `solve` keeps a few columns in a live HiGHS model and a `Pricing` finds better ones: with row duals `mu`,
those with `phi(r) > mu . r`. For *any* `mu`

    best utility  <=  sum(mu) + max_r [phi(r) - mu . r],

which is the proven bound. Plain duals jump about, so each round prices at a point between the best duals so far and
the newest ones (smoothing, after Wentges); a round that finds nothing there moves closer to the newest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import highspy
import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.sparse

from priorveil.errors import Infeasible
from priorveil.priors import Array
from priorveil.queries import gain_share

Labels = npt.NDArray[np.intp]
Utility = Callable[[Array], Array]

_IMPROVES = 1e-10  # reduced costs below this, relative to the gain so far, are rounding noise
_POOL = 3  # columns kept per row before the pool is pruned
_UNUSED = 1e-13  # weights below this are rounding noise


Progress = Callable[[int, float, float], None]
Stop = Callable[[], bool]


def never() -> bool:
    """No reason to stop."""
    return False


@dataclass(frozen=True)
class Limits:
    """Stopping rules: a target gap, a deadline, or the caller's request; and a callback for progress.

    The `target` is the share of the achievable gain that may stay unproven; the `deadline` is a time of
    `time.monotonic`; `progress` is called with the round, the value and the bound.
    """

    target: float = 1e-9
    deadline: float = math.inf
    progress: Progress | None = None
    should_stop: Stop = never

    def over(self) -> bool:
        """Whether it is time to stop.

        >>> Limits().over(), Limits(deadline=time.monotonic()).over(), Limits(should_stop=lambda: True).over()
        (False, True, True)
        """
        return time.monotonic() >= self.deadline or self.should_stop()

    def report(self, count: int, value: float, bound: float) -> None:
        """Report the progress."""
        if self.progress is not None:
            self.progress(count, value, bound)

    def within(self, share: float) -> Limits:
        """The same limits with a share of the time that is left."""
        now = time.monotonic()
        return replace(self, deadline=now + share * (self.deadline - now))

    def without_time(self) -> Limits:
        """The same limits with no time left: for the work that remains after ctrl-C."""
        return replace(self, deadline=-math.inf)

    def in_units(self, scale: float, offset: float = 0.0) -> Limits:
        """The same limits for a solver that speaks of `(error - offset) / scale`: progress is in errors."""
        if self.progress is None:
            return self
        return replace(
            self, progress=lambda n, *pair: self.report(n, *(offset + scale * number for number in pair))
        )


UNLIMITED = Limits()


class Priced(NamedTuple):
    """Columns (K, d), their utilities (K,), and a proven `bound` on `max phi(r) - mu . r`."""

    columns: Array
    utilities: Array
    bound: float


class Pricing(Protocol):
    """Finds columns for the master; one object for each utility and cone.

    Every column it returns is allowed and has `P . r = 1`. `bound` must hold for *every* allowed column,
    rounding included; `math.inf` is a valid answer when `exact` is false. With `exact` true it should be as
    tight as can be had.
    """

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns` (K, d)."""
        ...

    def price(self, duals: Array, exact: bool) -> Priced:
        """Columns with `phi(r) - duals . r` as large as can be found, and a bound on it."""
        ...


@dataclass(frozen=True, eq=False)
class Solution:
    """The best mixture found: `columns` (K, d) with `weights` (K,).

    `value` is its utility (or its variance, for learning a distribution), `bound` a proven bound on what any channel
    reaches, and `gap` the share of the achievable gain that is not proven. `duals` prove the bound. `interrupted` says
    whether ctrl-C ended the search.
    """

    columns: Array
    weights: Array
    value: float
    bound: float
    gap: float
    iterations: int
    converged: bool
    duals: Array
    interrupted: bool = False

    @property
    def channel(self) -> Array:
        """The channel matrix (d, K)."""
        return np.asarray((self.columns * self.weights[:, None]).T)


def relative_gap(value: float, bound: float, idle: float) -> float:
    """The share of the achievable gain that is missing; `idle` is the utility of no report.

    >>> relative_gap(value=3.0, bound=5.0, idle=1.0)
    0.5
    """
    share = gain_share(-value, -bound, -idle, rounding=1e-13 * max(1.0, abs(bound)))
    return min(1.0, max(0.0, 1.0 - share))


class Mixture(NamedTuple):
    """Weights of columns (n,), shares of the utilities that bind (k,), and duals (d,) of the equations."""

    weights: Array
    shares: Array
    duals: Array


def mix(columns: Array, gains: Array) -> Mixture:
    """`max_lam min_k sum_y lam_y gains[k, y]` subject to `sum_y lam_y r_y = 1`, as one linear programme.

    A linear part of the gains changes nothing, so it is taken out first and the rest scaled: small budgets, where all
    columns are nearly constant, keep their digits. Each equation is scaled too: a column that speaks for a rare value
    alone goes far there.
    """
    k, n = gains.shape
    reach = np.maximum(np.abs(columns - 1.0).max(axis=0), 1e-6)
    table = np.column_stack([np.ones(n), (columns - 1.0) / reach])
    linear = np.linalg.lstsq(table, gains.T, rcond=1e-9)[0]  # P @ (r - 1) = 0: one direction is free
    rest, base = gains - (table @ linear).T, linear[0]
    scale = max(float(np.abs(rest).max()), 1e-12 * float(np.ptp(base)), 1e-300)
    found = scipy.optimize.linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([-rest / scale, np.ones(k)]),
        b_ub=(base - base.min()) / scale,
        A_eq=np.column_stack([table.T, np.zeros(table.shape[1])]),
        b_eq=np.eye(1, table.shape[1])[0],
        bounds=[(0, None)] * n + [(None, None)],
        method="highs-ds",
    )
    if found.status != 0:
        raise Infeasible(f"these columns do not mix to a channel: {found.message}")
    shares = np.maximum(-np.asarray(found.ineqlin.marginals), 0.0)
    shares = np.where(shares > 1e-12, shares, 0.0) / shares[shares > 1e-12].sum()
    slope = linear[1:] @ shares - scale * np.asarray(found.eqlin.marginals)[1:]
    return Mixture(np.maximum(np.asarray(found.x)[:n], 0.0), shares, np.asarray(slope / reach))


def best_mixture(rays: Array, utility: Utility) -> Solution:
    """The best channel of these columns; with all extreme rays of a cone, the best channel of the cone.

    `utility` takes columns as rows (n, d).

    >>> rays = np.array([[0.5, 1.5], [1.5, 0.5]])
    >>> round(best_mixture(rays, lambda r: (0.5 * r[:, 1]) ** 2).value, 12)
    0.3125
    """
    gains = utility(rays)
    weights, _, duals = mix(rays, gains[None])
    used, weights = polish(rays, weights)
    value = float(gains[used] @ weights)
    bound = max(value, float(duals.sum() + np.max(gains - rays @ duals)))
    gap = relative_gap(value, bound, float(utility(np.ones((1, rays.shape[1])))[0]))
    return Solution(rays[used], weights, value, bound, gap, 1, True, duals)


def polish(columns: Array, weights: Array) -> tuple[Labels, Array]:
    """The columns in use, and their weights, moved so that the rows add up to one in full precision."""
    used = np.flatnonzero(weights > _UNUSED)
    columns, weights = columns[used], weights[used]
    missing = 1.0 - weights @ columns
    exact = np.maximum(weights + np.linalg.lstsq(columns.T, missing, rcond=None)[0], 0.0)
    if np.abs(exact @ columns - 1.0).max() < np.abs(missing).max():
        weights = exact
    return used[weights > 0.0], weights[weights > 0.0]


def basic_weights(rows: Array, weights: Array, cost: Array) -> Array:
    """Weights with the same `rows @ weights`, few of them positive, of the least cost; the same ones on failure."""
    found = scipy.optimize.linprog(cost, A_eq=rows, b_eq=rows @ weights, method="highs-ds")
    return weights if found.status != 0 or found.x is None else np.asarray(found.x)


def new_model(tolerance: float, **options: int | str) -> highspy.Highs:
    """An empty HiGHS model that maximises, in one thread and without output."""
    model = highspy.Highs()
    model.silent()
    tolerances = {f"{side}_feasibility_tolerance": tolerance for side in ("primal", "dual")}
    for option, value in {"threads": 1, **tolerances, **options}.items():
        model.setOptionValue(option, value)
    model.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return model


class Master:
    """The live model. Rows are the values, or classes of values that stand for each other.

    Rows read `sum_y lam_y (r_y - floor) = 1 - floor`: the same equations, because the weights add up to
    one, but sparse when most of a column sits at its floor. Costs are utilities less `idle`, in units of
    `scale`, so that the solver's absolute tolerances mean the same for every query.
    """

    def __init__(
        self, dimension: int, floor: float, classes: Labels | None, idle: float, scale: float
    ) -> None:
        self._floor, self._idle, self._scale = floor, idle, scale
        self._classes = np.arange(dimension) if classes is None else classes
        self._sizes = np.bincount(self._classes).astype(float)
        self.rows = len(self._sizes)
        self.columns = np.empty((0, dimension))
        self.utilities = np.empty(0)
        self._known_columns: set[bytes] = set()
        # the primal simplex (4), because new columns keep the basis primal feasible
        self._model = new_model(1e-9, simplex_strategy=4)
        side = np.full(self.rows, 1.0 - floor)
        nothing = np.empty(0, np.int32)
        self._model.addRows(self.rows, side, side, 0, nothing, nothing, np.empty(0))

    def _entries(self, columns: Array) -> Array:
        """Master entries of columns: the mean over each class, less the floor."""
        if self.rows == columns.shape[1]:
            return columns[:, np.argsort(self._classes)] - self._floor
        sums = np.zeros((self.rows, len(columns)))
        np.add.at(sums, self._classes, columns.T)
        return np.asarray(sums.T / self._sizes - self._floor)

    def add(self, columns: Array, utilities: Array) -> int:
        """Append the columns that are new, and return how many there are."""
        entries = self._entries(columns)
        entries[np.abs(entries) < 1e-14] = 0.0
        fresh = []
        for column, key in enumerate(self._column_hashes(entries, utilities)):
            if key not in self._known_columns:
                self._known_columns.add(key)
                fresh.append(column)
        if fresh:
            table, count = scipy.sparse.csr_array(entries[fresh]), len(fresh)
            starts, index = table.indptr[:-1].astype(np.int32), table.indices.astype(np.int32)
            costs, ceiling = (utilities[fresh] - self._idle) / self._scale, np.full(count, highspy.kHighsInf)
            self._model.addCols(count, costs, np.zeros(count), ceiling, table.nnz, starts, index, table.data)
            self.columns = np.vstack([self.columns, columns[fresh]])
            self.utilities = np.concatenate([self.utilities, utilities[fresh]])
        return len(fresh)

    def _column_hashes(self, entries: Array, utilities: Array) -> list[bytes]:
        """Keys that are equal for equal columns: entries and cost, rounded."""
        rows = np.column_stack([entries, (utilities - self._idle) / self._scale])
        return [row.tobytes() for row in np.round(rows, 10) + 0.0]

    def solve(self, seconds: float = math.inf) -> tuple[float, Array, Array] | None:
        """The objective, the duals of the values and the weights, or None if the solver did not finish."""
        self._model.setOptionValue("time_limit", self._model.getRunTime() + max(seconds, 0.1))
        self._model.run()
        if self._model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._model.getSolution()
        duals = self._scale * np.asarray(solution.row_dual) / self._sizes
        weights = np.maximum(np.asarray(solution.col_value), 0.0)
        return float(self.utilities @ weights), duals[self._classes], weights

    def worth(self, columns: Array, utilities: Array, duals: Array) -> Array:
        """Reduced costs of columns in this model: what a unit of weight on them would add."""
        return np.asarray(utilities - self._idle - (columns - self._floor) @ duals)

    def prune(self, duals: Array, weights: Array) -> Array:
        """Remove the worst columns once there are many, keep the basis, and return the weights of the rest."""
        limit = _POOL * self.rows + 400
        if len(self.columns) <= limit:
            return weights
        worth = self.worth(self.columns, self.utilities, duals)
        basis = self._model.getBasis()
        status = list(basis.col_status)
        basic = np.array([s == highspy.HighsBasisStatus.kBasic for s in status])
        worth[basic | (weights > 0)] = math.inf
        out = np.sort(np.argsort(worth, kind="stable")[: len(worth) - limit // 2])
        out = out[np.isfinite(worth[out])]
        self._known_columns.difference_update(
            self._column_hashes(self._entries(self.columns[out]), self.utilities[out])
        )
        self._model.deleteCols(len(out), out.astype(np.int32))
        keep = np.delete(np.arange(len(worth)), out)
        self.columns, self.utilities = self.columns[keep], self.utilities[keep]
        basis.col_status = [status[column] for column in keep]
        self._model.setBasis(basis)
        return weights[keep]


def solve(
    pricing: Pricing,
    seeds: Array,
    limits: Limits = UNLIMITED,
    *,
    duals: Array | None = None,
    floor: float = 0.0,
    classes: Labels | None = None,
) -> Solution:
    """The best mixture of allowed columns, and a proof of how good it is.

    `seeds` (K, d) are columns to start from (the constant column is always added); `duals` a first guess
    that already gives a good bound; `floor` a number no entry falls below (it makes the master sparse).
    `classes` labels values 0, 1, ... that are interchangeable: the master then has one row for each class
    and the solution is spread by rotations. Stops at the `limits`, on ctrl-C (with the best solution so far,
    never an exception), or when the pricing has nothing left.
    """
    dimension = seeds.shape[1]
    start = np.vstack([np.ones((1, dimension)), seeds])
    utilities = pricing.utility(start)
    idle, scale = float(utilities[0]), float(np.ptp(utilities)) or 1.0
    master = Master(dimension, floor, classes, idle, scale)
    master.add(start, utilities)
    run = _Run(pricing, master, idle, limits)
    try:
        run.generate(duals)
    except KeyboardInterrupt:
        run.interrupted = True
    return run.solution(classes)


@dataclass
class _Run:
    """One run of column generation: the best bound with its duals (the centre), and the best weights.

    Trial duals lean towards the centre by `lean`.
    """

    pricing: Pricing
    master: Master
    idle: float
    limits: Limits
    centre: Array | None = None
    bound: float = math.inf
    lean: float = 0.8
    value: float = -math.inf
    weights: Array | None = None
    iterations: int = 0
    interrupted: bool = False

    def generate(self, first: Array | None) -> None:
        """Rounds of solve, price, add; the last ones exact."""
        if first is not None:
            priced = self.pricing.price(first, exact=False)
            self._prove(first, priced)
            self.master.add(priced.columns, priced.utilities)
        empty_rounds, exact = 0, False
        duals = self._resolve()
        while duals is not None and not self.limits.over():
            if relative_gap(self.value, self.bound, self.idle) <= self.limits.target:
                break
            self.iterations += 1
            trial = self._trial(duals, empty_rounds)
            priced = self.pricing.price(trial, exact)
            at_newest = trial is duals or bool(np.allclose(trial, duals, rtol=1e-13, atol=1e-15))
            self._adapt(trial, duals, priced)
            self._prove(trial, priced)
            worth = self.master.worth(priced.columns, priced.utilities, duals)
            good = worth > _IMPROVES * (self.value - self.idle)
            added = self.master.add(priced.columns[good], priced.utilities[good]) if good.any() else 0
            self.limits.report(self.iterations, self.value, self.bound)
            if added:
                empty_rounds, exact = 0, False
                duals = self._resolve()
            elif not at_newest:
                empty_rounds += 1
            elif not exact:
                exact = True
            else:
                break

    def _trial(self, duals: Array, empty_rounds: int) -> Array:
        """Duals to price at, closer to the newest after rounds without a new column."""
        if self.centre is None:
            return duals
        share = max(0.0, 1.0 - (empty_rounds + 1) * (1.0 - self.lean)) if empty_rounds else self.lean
        return share * self.centre + (1.0 - share) * duals

    def _adapt(self, trial: Array, duals: Array, priced: Priced) -> None:
        """Lean less while the dual function falls towards `duals`, more otherwise."""
        if self.centre is not None and len(priced.columns):
            best = int(np.argmax(priced.utilities - priced.columns @ trial))
            rises = float((1.0 - priced.columns[best]) @ (duals - self.centre)) > 0
            self.lean = min(0.95, 0.1 + 0.9 * self.lean) if rises else max(0.0, self.lean - 0.1)

    def _prove(self, trial: Array, priced: Priced) -> None:
        """Keep the bound that these duals prove, if it is the best so far; room for rounding is added."""
        bound = float(trial.sum() + 1e-15 * np.abs(trial).sum()) + priced.bound
        if bound < self.bound:
            self.bound, self.centre = bound, trial

    def _resolve(self) -> Array | None:
        answer = self.master.solve(self.limits.deadline - time.monotonic())
        if answer is None:
            return None
        self.value, duals, weights = answer
        self.weights = self.master.prune(duals, weights)
        return duals

    def solution(self, classes: Labels | None) -> Solution:
        """The basic solution, spread over the classes, and what is proven."""
        master, weights = self.master, self.weights
        if weights is None:
            answer = master.solve()
            weights = np.eye(1, len(master.columns))[0] if answer is None else answer[2]
        weights = np.pad(weights, (0, len(master.columns) - len(weights)))
        used = weights > _UNUSED
        columns, weights, utilities = master.columns[used], weights[used], master.utilities[used]
        if classes is not None and master.rows < columns.shape[1]:
            columns, weights, utilities = _rotate_within_classes(columns, weights, utilities, classes)
        kept, weights = polish(columns, weights)
        columns, value = columns[kept], float(utilities[kept] @ weights)
        bound = max(self.bound, value)
        gap = relative_gap(value, bound, self.idle)
        duals = np.zeros(columns.shape[1]) if self.centre is None else self.centre
        converged = gap <= self.limits.target and not self.interrupted
        return Solution(
            columns, weights, value, bound, gap, self.iterations, converged, duals, self.interrupted
        )


def _rotate_within_classes(
    columns: Array, weights: Array, utilities: Array, classes: Labels
) -> tuple[Array, Array, Array]:
    """Rotate every column within the classes so that each value gets the mean of its class.

    All classes turn together, class `c` by `floor(u n_c)` places at time `u` in [0, 1): at most `sum n_c`
    different columns each, and at most `d` in all after a last linear programme.
    """
    members = [np.flatnonzero(classes == label) for label in range(int(classes.max()) + 1)]
    cuts = np.unique(np.concatenate([np.arange(len(m)) / len(m) for m in members]))
    lengths = np.diff(np.append(cuts, 1.0))
    spread = np.repeat(columns[:, None, :], len(cuts), axis=1)
    for i, cut in enumerate(cuts):
        for member in members:
            turn = math.floor(cut * len(member) + 1e-9)
            spread[:, i, member] = np.roll(columns[:, member], turn, axis=1)
    spread = spread.reshape(-1, columns.shape[1])
    mixed = np.repeat(weights, len(cuts)) * np.tile(lengths, len(weights))
    utilities = np.repeat(utilities, len(cuts))
    if len(spread) > spread.shape[1]:
        mixed = basic_weights(spread.T, mixed, -utilities)
    return spread, mixed, utilities
