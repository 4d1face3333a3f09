"""The engine: column generation for the best channel a cone of columns allows.

A channel is a mixture of columns. Write column `y` as `lam_y r_y` with `P . r_y = 1`; then the best channel
for a convex utility `phi` solves the *master*

    max  sum_y lam_y phi(r_y)    subject to    sum_y lam_y r_y = 1,   lam >= 0,

over all allowed `r`. There are endless columns, so the master holds a few of them in a live HiGHS model and a
`Pricing` finds better ones: with row duals `mu`, those with `phi(r) > mu . r`. For *any* `mu`

    best utility  <=  sum(mu) + max_r [phi(r) - mu . r],

which is the proven bound this module reports. Plain duals jump about, so each round prices at a point
between the best duals so far and the newest ones (smoothing, after Wentges); a round that finds nothing
there moves closer to the newest.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Protocol

import highspy
import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.optimize

from priorveil.designs.limits import UNLIMITED, Limits

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

_IMPROVES = 1e-10  # reduced costs below this, relative to the gain so far, are rounding noise
_POOL = 3  # columns kept per row before the pool is pruned


@dataclass(frozen=True)
class Priced:
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


@dataclass(frozen=True)
class Solution:
    """The best mixture found: `columns` (K, d) with `weights` (K,), at most `d` of them.

    `value` is its utility, `bound` a proven upper bound on any channel's utility and `gap` the share of the
    achievable gain that is not proven, `(bound - value) / (bound - phi(1))`. `duals` prove the bound.
    `interrupted` tells of a ctrl-C.
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
    def efficiency(self) -> float:
        """The proven share of the achievable gain, `1 - gap`."""
        return 1.0 - self.gap


def relative_gap(value: float, bound: float, idle: float) -> float:
    """The share of the achievable gain that is missing; `idle` is the utility of no report.

    >>> relative_gap(value=3.0, bound=5.0, idle=1.0)
    0.5
    """
    room = bound - idle
    if room <= 1e-13 * max(1.0, abs(bound)):
        return 0.0
    return min(1.0, max(0.0, (bound - value) / room))


class _Master:
    """The live model. Rows are the inputs, or classes of inputs that stand for each other.

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
        self._seen: set[bytes] = set()
        self._model = highspy.Highs()
        self._model.silent()
        self._model.setOptionValue("threads", 1)
        self._model.setOptionValue("primal_feasibility_tolerance", 1e-9)
        self._model.setOptionValue("dual_feasibility_tolerance", 1e-9)
        self._model.setOptionValue(
            "simplex_strategy", 4
        )  # primal: new columns keep the basis primal feasible
        self._model.changeObjectiveSense(highspy.ObjSense.kMaximize)
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
        """Append columns not seen before; says how many."""
        entries = self._entries(columns)
        entries[np.abs(entries) < 1e-14] = 0.0
        fresh = []
        for place, key in enumerate(self._keys(entries, utilities)):
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(place)
        if fresh:
            self._append(entries[fresh], (utilities[fresh] - self._idle) / self._scale)
            self.columns = np.vstack([self.columns, columns[fresh]])
            self.utilities = np.concatenate([self.utilities, utilities[fresh]])
        return len(fresh)

    def _keys(self, entries: Array, utilities: Array) -> list[bytes]:
        """What tells columns apart here: their entries and their cost."""
        rows = np.column_stack([entries, (utilities - self._idle) / self._scale])
        return [row.tobytes() for row in np.round(rows, 10) + 0.0]

    def _append(self, entries: Array, costs: Array) -> None:
        where = entries != 0
        starts = np.concatenate([[0], np.cumsum(where.sum(1))[:-1]]).astype(np.int32)
        index = np.nonzero(where)[1].astype(np.int32)
        count = len(entries)
        ceiling = np.full(count, highspy.kHighsInf)
        self._model.addCols(count, costs, np.zeros(count), ceiling, len(index), starts, index, entries[where])

    def solve(self, seconds: float = math.inf) -> tuple[float, Array, Array] | None:
        """Value, row duals spread over the inputs, and weights; nothing when the solver did not finish."""
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
        """Forget the worst columns once there are many; the basis survives. The weights of the rest."""
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
        self._seen.difference_update(self._keys(self._entries(self.columns[out]), self.utilities[out]))
        self._model.deleteCols(len(out), out.astype(np.int32))
        keep = np.delete(np.arange(len(worth)), out)
        self.columns, self.utilities = self.columns[keep], self.utilities[keep]
        basis.col_status = [status[place] for place in keep]
        self._model.setBasis(basis)
        return weights[keep]


@dataclass
class _Search:
    """Where the loop stands: the best bound with its duals, and how strongly trial duals lean on them."""

    centre: Array | None
    bound: float = math.inf
    lean: float = 0.8

    def trial(self, duals: Array, retreat: int) -> Array:
        """Duals to price at; `retreat` counts the empty rounds since the last new column."""
        if self.centre is None:
            return duals
        share = max(0.0, 1.0 - (retreat + 1) * (1.0 - self.lean)) if retreat else self.lean
        return share * self.centre + (1.0 - share) * duals

    def learn(self, trial: Array, duals: Array, priced: Priced) -> None:
        """Take over a better bound; lean less while the dual function falls towards `duals`, else more."""
        if self.centre is not None and len(priced.columns):
            best = int(np.argmax(priced.utilities - priced.columns @ trial))
            slope = float((1.0 - priced.columns[best]) @ (duals - self.centre))
            self.lean = (
                min(0.95, self.lean + 0.1 * (1 - self.lean)) if slope > 0 else max(0.0, self.lean - 0.1)
            )
        self.take(trial, priced)

    def take(self, trial: Array, priced: Priced) -> None:
        """Keep the bound these duals prove, if it is the best; room for rounding is added."""
        bound = float(trial.sum() + 1e-15 * np.abs(trial).sum()) + priced.bound
        if bound < self.bound:
            self.bound, self.centre = bound, trial


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
    `classes` labels inputs 0, 1, ... that are interchangeable: the master then has one row for each class
    and the solution is spread by rotations. Stops at the `limits`, on ctrl-C (with the best solution so far,
    never an exception), or when the pricing has nothing left.
    """
    dimension = seeds.shape[1]
    start = np.vstack([np.ones((1, dimension)), seeds])
    utilities = pricing.utility(start)
    idle, scale = float(utilities[0]), float(np.ptp(utilities)) or 1.0
    master = _Master(dimension, floor, classes, idle, scale)
    master.add(start, utilities)
    loop = _Loop(pricing, master, _Search(None), idle, limits)
    try:
        loop.run(duals)
    except KeyboardInterrupt:
        loop.interrupted = True
    return _finish(loop, classes)


@dataclass
class _Loop:
    """One run of column generation, and what is left of it when it is interrupted."""

    pricing: Pricing
    master: _Master
    search: _Search
    idle: float
    limits: Limits
    value: float = -math.inf
    weights: Array | None = None
    iterations: int = 0
    interrupted: bool = False

    def gap(self) -> float:
        return relative_gap(self.value, self.search.bound, self.idle) if self.search.bound < math.inf else 1.0

    def run(self, first: Array | None) -> None:
        """Rounds of solve, price, add; the last ones exact."""
        if first is not None:
            priced = self.pricing.price(first, exact=False)
            self.search.take(first, priced)
            self.master.add(priced.columns, priced.utilities)
        retreat, exact = 0, False
        duals = self._resolve()
        while duals is not None and not self._done():
            self.iterations += 1
            trial = self.search.trial(duals, retreat)
            priced = self.pricing.price(trial, exact)
            at_newest = trial is duals or bool(np.allclose(trial, duals, rtol=1e-13, atol=1e-15))
            self.search.learn(trial, duals, priced)
            added = self._take(priced, duals)
            self.limits.tell(self.iterations, self.value, self.search.bound)
            if added:
                retreat, exact = 0, False
                duals = self._resolve()
            elif not at_newest:
                retreat += 1
            elif not exact:
                exact = True
            else:
                break

    def _take(self, priced: Priced, duals: Array) -> int:
        worth = self.master.worth(priced.columns, priced.utilities, duals)
        good = worth > _IMPROVES * (self.value - self.idle)
        return self.master.add(priced.columns[good], priced.utilities[good]) if good.any() else 0

    def _resolve(self) -> Array | None:
        answer = self.master.solve(self.limits.deadline - time.monotonic())
        if answer is None:
            return None
        self.value, duals, weights = answer
        self.weights = self.master.prune(duals, weights)
        return duals

    def _done(self) -> bool:
        return self.gap() <= self.limits.target or self.limits.over()


def _finish(loop: _Loop, classes: Labels | None) -> Solution:
    """Read the basic solution, spread it over the classes, and state what is proven."""
    master = loop.master
    weights = loop.weights
    if weights is None:
        answer = master.solve()
        weights = np.eye(1, len(master.columns))[0] if answer is None else answer[2]
    weights = np.pad(weights, (0, len(master.columns) - len(weights)))
    used = weights > 1e-13
    columns, weights, utilities = master.columns[used], weights[used], master.utilities[used]
    if classes is not None and master.rows < columns.shape[1]:
        columns, weights, utilities = _spread(columns, weights, utilities, classes)
    columns, weights, utilities = _polish(columns, weights, utilities)
    value = float(utilities @ weights)
    bound = max(loop.search.bound, value)
    gap = relative_gap(value, bound, loop.idle) if math.isfinite(bound) else 1.0
    centre = np.zeros(columns.shape[1]) if loop.search.centre is None else loop.search.centre
    converged = gap <= loop.limits.target and not loop.interrupted
    return Solution(columns, weights, value, bound, gap, loop.iterations, converged, centre, loop.interrupted)


def _polish(columns: Array, weights: Array, utilities: Array) -> tuple[Array, Array, Array]:
    """Solve the rows in full precision where the solver left them rough; keep its weights if that fails."""
    rough = float(np.abs(weights @ columns - 1.0).max())
    if rough > 1e-14:
        sharper = scipy.linalg.lstsq(columns.T, np.ones(columns.shape[1]), lapack_driver="gelsy")[0]
        sharper = np.maximum(sharper, 0.0)
        if np.abs(sharper @ columns - 1.0).max() < rough:
            weights = sharper
    keep = weights > 0.0
    return columns[keep], weights[keep], utilities[keep]


def _spread(columns: Array, weights: Array, utilities: Array, classes: Labels) -> tuple[Array, Array, Array]:
    """Rotate every column within the classes so that each input gets the mean of its class.

    All classes turn together, class `c` by `floor(u n_c)` places at time `u` in [0, 1): at most `sum n_c`
    different columns each, and at most `d` in all after a last linear programme.
    """
    members = [np.flatnonzero(classes == label) for label in range(int(classes.max()) + 1)]
    cuts = np.unique(np.concatenate([np.arange(len(m)) / len(m) for m in members]))
    lengths = np.diff(np.append(cuts, 1.0))
    spread = np.repeat(columns[:, None, :], len(cuts), axis=1)
    for place, cut in enumerate(cuts):
        for member in members:
            turn = math.floor(cut * len(member) + 1e-9)
            spread[:, place, member] = np.roll(columns[:, member], turn, axis=1)
    mixed = np.repeat(weights, len(cuts)) * np.tile(lengths, len(weights))
    return _basic(spread.reshape(-1, columns.shape[1]), mixed, np.repeat(utilities, len(cuts)))


def _basic(columns: Array, weights: Array, utilities: Array) -> tuple[Array, Array, Array]:
    """The best mixture of at most `d` of these columns; the one given where it is small already."""
    if len(columns) <= columns.shape[1]:
        return columns, weights, utilities
    found = scipy.optimize.linprog(
        -utilities, A_eq=columns.T, b_eq=np.ones(columns.shape[1]), method="highs-ds"
    )
    if found.status != 0 or found.x is None:
        return columns, weights, utilities
    keep = found.x > 1e-13
    return columns[keep], found.x[keep], utilities[keep]
