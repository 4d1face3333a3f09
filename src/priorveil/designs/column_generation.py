"""The engine: the best mixture of allowed columns, by column generation around one linear programme.

A channel is a mixture of columns. Write column `y` as `lam_y r_y` with `P . r_y = 1`; then the best channel
for a convex utility `phi` solves the *master*

    max  sum_y lam_y phi(r_y)    subject to    sum_y lam_y r_y = 1,   lam >= 0,

over all allowed `r`. `solve` keeps a few columns and mixes them in the best way (`mix`); a `Pricing` finds better ones:
with row duals `mu`, those with `phi(r) > mu . r`. For *any* `mu`

    best utility  <=  sum(mu) + max_r [phi(r) - mu . r],

which is the proven bound. Where the columns that matter can be listed, `best_mixture` starts from all of them and one
round is enough. With several utilities (one for each prior of a set) the least one counts: their shares are then
duals too, and the bound holds for `sum_k share_k phi_k`.

Plain duals oscillate, so each round prices at a point between the best duals so far and the newest ones (smoothing,
after Wentges). If a round finds no column there, the next one prices at the newest duals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import highspy
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from priorveil.arrays import Array
from priorveil.designs.stopping import FINEST_GAP, UNLIMITED, Limits, relative_gap
from priorveil.designs.tolerances import ROUNDING, SLACK, TOLERANCE
from priorveil.designs.value_groups import Indices, first_places
from priorveil.errors import Infeasible

# How far smoothed duals lean towards the best ones so far: more is steadier, and may find nothing new.
_LEAN = 0.8
_POOL = 3  # columns kept per row before the pool is pruned
_SETTLED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)


Utility = Callable[[Array], Array]


class PricedColumns(NamedTuple):
    """Columns (K, d), their utilities (K,) or (K, k), and a proven `bound` on `max phi(r) - mu . r`."""

    columns: Array
    utilities: Array
    bound: float


class Pricing(Protocol):
    """Finds columns for the master; one object for each utility and cone.

    Every column it returns is allowed and has `P . r = 1`. `bound` must hold for *every* allowed column,
    rounding included; `math.inf` is a valid answer when `exact` is false. With `exact` true it should be as
    tight as can be had. With several utilities the duals are followed by the share of each (see `split_duals`).
    """

    @property
    def utility(self) -> Utility:
        """`phi` of each row of columns (K, d)."""
        ...

    def price(self, duals: Array, exact: bool) -> PricedColumns:
        """Columns with `phi(r) - duals . r` as large as can be found, and a bound on it."""
        ...


@dataclass(frozen=True, eq=False)
class Solution:
    """The best mixture found: `columns` (K, d) with `weights` (K,).

    `value` is its utility (or its variance, for an unbiased query), `bound` a proven bound on what any channel
    reaches, and `gap` the share of the achievable gain that is not proven. `duals` prove the bound. `interrupted` says
    whether ctrl-C ended the search. `pool` are the columns that a search for other utilities may start from.
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
    pool: Array = field(default_factory=lambda: np.empty(0))

    @property
    def channel(self) -> Array:
        """The channel matrix (d, K)."""
        return np.asarray((self.columns * self.weights[:, None]).T)


class Mixture(NamedTuple):
    """Weights of columns (n,), duals (d,) of the equations, shares (k,) of the utilities that bind, and the basis."""

    weights: Array
    duals: Array
    shares: Array
    basis: highspy.HighsBasis


def mix(columns: Array, gains: Array, basis: highspy.HighsBasis | None = None) -> Mixture:
    """The master: `max t` subject to `t <= sum_y lam_y gains[y, k]` for every `k`, and `sum_y lam_y r_y = 1`.

    Its equations read `sum_y lam_y (r_y - low) / (1 - low) = 1`, with `low` the least entry of a row. So they are
    sparse where many entries are the least, and keep their digits for small budgets, where columns are nearly constant.
    The `basis` of a mixture of the first columns is a start.
    """
    (n, k), infinity, nothing = gains.shape, highspy.kHighsInf, np.empty(0, np.int32)
    low, base = columns.min(axis=0), gains.mean(axis=0)
    unit = np.where(1.0 - low > TOLERANCE, 1.0 - low, infinity)  # a row of ones is no equation
    scale = max(float(np.abs(gains - base).max()), ROUNDING * float(np.ptp(base)), 1e-300)
    above = np.minimum((base - base.min()) / scale, 2.0)  # a utility that is further above never binds
    side = np.concatenate([[1.0], (1.0 - low) / unit, above])
    entries = np.zeros((1 + n, len(side)))  # a row for each variable: t, then the weights
    entries[0, -k:] = 1.0
    entries[1:] = np.hstack([np.ones((n, 1)), (columns - low) / unit, (base - gains) / scale])
    entries[np.abs(entries) < TOLERANCE] = 0.0
    table = scipy.sparse.csr_array(entries)
    is_t = np.arange(1 + n) == 0
    model = new_model(TOLERANCE, simplex_strategy=4)  # primal: new columns keep the basis primal feasible
    lower = np.append(side[:-k], np.full(k, -infinity))
    model.addRows(len(side), lower, side, 0, nothing, nothing, np.empty(0))
    starts, index = table.indptr[:-1].astype(np.int32), table.indices.astype(np.int32)
    least, most = np.where(is_t, -infinity, 0.0), np.full(1 + n, infinity)
    model.addCols(1 + n, is_t.astype(float), least, most, table.nnz, starts, index, table.data)
    if basis is not None:
        fresh = [highspy.HighsBasisStatus.kLower] * (1 + n - len(basis.col_status))
        basis.col_status = [*basis.col_status, *fresh]
        model.setBasis(basis)
    if (status := run_model(model)) != highspy.HighsModelStatus.kOptimal:
        raise Infeasible(f"these columns do not mix to a channel: {status}")
    solution = model.getSolution()
    _, duals, shares = np.split(np.asarray(solution.row_dual), [1, -k])
    shares = np.where(shares > ROUNDING, shares, 0.0)
    weights = np.maximum(np.asarray(solution.col_value)[1:], 0.0)
    return Mixture(weights, scale * duals / unit, shares / shares.sum(), model.getBasis())


def polish(columns: Array, weights: Array) -> tuple[Indices, Array]:
    """The columns in use, and their weights, moved so that the rows add up to one in full precision."""
    used = np.flatnonzero(weights > ROUNDING)
    columns, weights = columns[used], weights[used]
    missing = 1.0 - weights @ columns
    exact = np.maximum(weights + np.linalg.lstsq(columns.T, missing, rcond=None)[0], 0.0)
    if np.abs(exact @ columns - 1.0).max() < np.abs(missing).max():
        weights = exact
    return used[weights > 0.0], weights[weights > 0.0]


def new_model(tolerance: float, **options: int | str) -> highspy.Highs:
    """An empty HiGHS model that maximises, in one thread and without output."""
    model = highspy.Highs()
    model.silent()
    tolerances = {f"{side}_feasibility_tolerance": tolerance for side in ("primal", "dual")}
    for option, value in {"threads": 1, **tolerances, **options}.items():
        model.setOptionValue(option, value)
    model.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return model


def run_model(model: highspy.Highs) -> highspy.HighsModelStatus:
    """Solve a model, once more from a fresh basis if the solver gave up, and return its status."""
    model.run()
    if model.getModelStatus() not in _SETTLED:
        model.clearSolver()
        model.run()
    return model.getModelStatus()


@dataclass(frozen=True)
class Listing:
    """Pricing over columns that are all listed."""

    rays: Array
    utility: Utility

    @cached_property
    def _utilities(self) -> Array:
        return self.utility(self.rays)

    def price(self, duals: Array, exact: bool) -> PricedColumns:
        """The best column of the list."""
        worth = reduced_costs(self.rays, self._utilities, duals)
        best = int(np.argmax(worth))
        slopes, shares = split_duals(duals, self.rays.shape[1])
        added = np.abs(self._utilities).reshape(-1, len(shares)) @ shares + self.rays @ np.abs(slopes)
        bound = float(worth[best] + SLACK * added.max())
        return PricedColumns(self.rays[[best]], self._utilities[[best]], bound)


def best_mixture(rays: Array, utility: Utility) -> Solution:
    """The best channel of these columns; with all extreme rays of a cone, the best channel of the cone.

    >>> rays = np.array([[0.5, 1.5], [1.5, 0.5]])
    >>> round(best_mixture(rays, lambda r: (0.5 * r[:, 1]) ** 2).value, 12)
    0.3125
    """
    return solve(Listing(rays, utility), rays)


def split_duals(duals: Array, dimension: int) -> tuple[Array, Array]:
    """The duals of the values, and the shares of the utilities; a single utility has the share one.

    >>> split_duals(np.array([3.0, 0.5, 0.5]), 1), split_duals(np.array([3.0]), 1)
    ((array([3.]), array([0.5, 0.5])), (array([3.]), array([1.])))
    """
    slopes, shares = np.split(duals, [dimension])
    return slopes, shares if len(shares) else np.ones(1)


def reduced_costs(columns: Array, utilities: Array, duals: Array) -> Array:
    """`phi(r) - duals . r` of each column."""
    slopes, shares = split_duals(duals, columns.shape[1])
    return np.asarray(utilities.reshape(-1, len(shares)) @ shares - columns @ slopes)


def _linear_part(columns: Array, utilities: Array) -> Array:
    """Slopes (d, k) of the linear functions that are nearest to the utilities (n, k)."""
    reach = np.maximum(np.abs(columns - 1.0).max(axis=0), 1e-6)
    table = np.column_stack([np.ones(len(columns)), (columns - 1.0) / reach])
    fit = np.linalg.lstsq(table, utilities, rcond=1e-9)[0]  # P @ (r - 1) = 0: one direction is free
    return np.asarray(fit[1:] / reach[:, None])


def solve(
    pricing: Pricing,
    seeds: Array,
    limits: Limits = UNLIMITED,
    *,
    duals: Array | None = None,
    classes: Indices | None = None,
    bound: float = math.inf,
) -> Solution:
    """The best mixture of allowed columns, and a proof of how good it is.

    `seeds` (K, d) are columns to start from, which mix to a channel; `duals` a first guess that already gives a good
    bound. `classes` labels values 0, 1, ... that are interchangeable: the master then has one row for each class
    and the solution is spread by rotations. `bound` is already proven: no mixture is better. Stops at the `limits`,
    on ctrl-C (with the best solution so far, never an exception), or when the pricing has nothing left.
    """
    run = _Run(pricing, seeds, limits, duals, classes)
    run.bound = bound
    try:
        run.generate(duals)
    except KeyboardInterrupt:
        run.interrupted = True
    return run.solution()


class _Run:
    """One run of column generation: the columns in use, and the best bound with its duals (the centre).

    The master has a row for each class of values. A linear part of the utilities changes nothing, so it is taken out:
    what is left keeps its digits for small budgets.
    """

    def __init__(
        self,
        pricing: Pricing,
        seeds: Array,
        limits: Limits,
        start_duals: Array | None,
        classes: Indices | None,
    ) -> None:
        d = seeds.shape[1]
        self.pricing, self.limits = pricing, limits
        self.classes = np.arange(d) if classes is None else classes
        sizes = np.bincount(self.classes)
        self.rows = len(sizes)
        self.means = scipy.sparse.csr_array((1.0 / sizes[self.classes], (np.arange(d), self.classes)))
        self.utility_without_report = float(np.min(pricing.utility(np.ones((1, d)))))
        self.columns, self.utilities = seeds, pricing.utility(seeds).reshape(len(seeds), -1)
        self._keep(first_places(np.hstack([self._entries(), self.utilities])))
        if start_duals is None:
            self.slopes = _linear_part(self._entries(), self.utilities)
        else:
            self.slopes = np.bincount(self.classes, start_duals).astype(float)[:, None]
        self.basis: highspy.HighsBasis | None = None
        self.weights, self.centre = np.empty(0), np.zeros(d)
        self.value, self.bound, self.expected = -math.inf, math.inf, math.inf
        self.iterations, self.interrupted = 0, False

    def generate(self, start_duals: Array | None) -> None:
        """Rounds of mix, price, add; the last ones exact."""
        if start_duals is not None:
            priced = self.pricing.price(start_duals, exact=False)
            self._prove(start_duals, priced)
            self._add(priced.columns, priced.utilities)
        smooth, exact = True, False
        duals = self._mix()
        while not self.limits.over() or (self.iterations == 0 and math.isinf(self.bound)):
            if self.limits.target_reached(self.value, self.bound, self.utility_without_report):
                break
            self.iterations += 1
            self.limits.count_round()
            trial = self._smoothed_duals(duals, smooth)
            priced = self.pricing.price(trial, exact)
            at_newest = bool(np.abs(trial - duals).max() <= 1e-13 * np.abs(duals).max())
            self._prove(trial, priced)
            worth = reduced_costs(priced.columns, priced.utilities, duals)
            highest = float(np.max(reduced_costs(self.columns, self.utilities, duals)))
            good = worth > highest + FINEST_GAP * (self.value - self.utility_without_report)
            added = self._add(priced.columns[good], priced.utilities[good])
            self.limits.report(self.iterations, self.value, self.bound)
            if added:
                smooth, exact = True, False
                try:
                    duals = self._mix()
                except Infeasible:  # lost to rounding: the columns before mix to a channel
                    self._keep(np.arange(len(self.weights)))
                    break
            elif not at_newest:
                smooth = False
            elif not exact:
                exact = True
            else:
                break

    def _smoothed_duals(self, duals: Array, smooth: bool) -> Array:
        """Duals to price at: the newest after a round without a new column.

        The duals of several utilities are not smoothed: then few of the utilities have a share, and pricing is easier.
        """
        if not smooth or not self.centre.any() or self.utilities.shape[1] > 1:
            return duals
        return _LEAN * self.centre + (1.0 - _LEAN) * duals

    def _prove(self, trial: Array, priced: PricedColumns) -> None:
        """Keep the bound that these duals prove, if it is the best so far; room for rounding is added."""
        slopes, _ = split_duals(trial, len(self.classes))
        total = float(slopes.sum() + 1e-15 * np.abs(slopes).sum())
        self.bound = min(self.bound, total + priced.bound)
        expected = total + float(reduced_costs(priced.columns, priced.utilities, trial).max())
        if expected < self.expected:
            self.expected, self.centre = expected, trial

    def _entries(self) -> Array:
        """The columns as the master sees them: the mean over each class."""
        return np.asarray(self.columns @ self.means)

    def _add(self, columns: Array, utilities: Array) -> bool:
        """Append the columns that are new. Return whether there are any."""
        before = len(self.columns)
        self.columns = np.vstack([self.columns, columns])
        self.utilities = np.vstack([self.utilities, utilities.reshape(-1, self.utilities.shape[1])])
        self._keep(first_places(np.hstack([self._entries(), self.utilities])))
        return len(self.columns) > before

    def _keep(self, kept: Indices) -> None:
        """Forget the other columns."""
        self.columns, self.utilities = self.columns[kept], self.utilities[kept]

    def _mix(self) -> Array:
        """Solve the master, forget the worst columns once there are many, and return the duals."""
        entries = self._entries()
        mixture = mix(entries, self.utilities - (entries - 1.0) @ self.slopes, self.basis)
        duals = np.asarray(self.means @ (self.slopes @ mixture.shares + mixture.duals))
        if len(mixture.shares) > 1:
            duals = np.append(duals, mixture.shares)
        self.weights, self.basis = mixture.weights, mixture.basis
        self.value = float(np.min(self.weights @ self.utilities))
        limit = _POOL * self.rows + 400
        if len(self.columns) > limit:
            worth = reduced_costs(self.columns, self.utilities, duals)
            best = np.argsort(-worth, kind="stable")[: limit // 2]
            kept = np.union1d(best, np.flatnonzero(self.weights))
            status = self.basis.col_status
            self.basis.col_status = [status[0], *(status[1 + column] for column in kept)]
            self.weights = self.weights[kept]
            self._keep(kept)
        return duals

    def solution(self) -> Solution:
        """The basic solution, spread over the classes, and what is proven."""
        if not len(self.weights):
            self._mix()
        used = np.flatnonzero(self.weights > ROUNDING)
        columns, weights, utilities = self.columns[used], self.weights[used], self.utilities[used]
        if self.rows < columns.shape[1]:
            columns, weights, utilities = _rotate_within_classes(columns, weights, utilities, self.classes)
        kept, weights = polish(columns, weights)
        columns, value = columns[kept], float(np.min(weights @ utilities[kept]))
        bound = max(self.bound, value)
        gap = relative_gap(value, bound, self.utility_without_report)
        converged = (
            self.limits.target_reached(value, bound, self.utility_without_report) and not self.interrupted
        )
        return Solution(
            columns=columns,
            weights=weights,
            value=value,
            bound=bound,
            gap=gap,
            iterations=self.iterations,
            converged=converged,
            duals=self.centre,
            interrupted=self.interrupted,
            pool=self.columns,
        )


def _rotate_within_classes(
    columns: Array, weights: Array, utilities: Array, classes: Indices
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
    utilities = np.repeat(utilities, len(cuts), axis=0)
    if len(spread) > spread.shape[1]:
        mixed = mix(spread, utilities).weights
    return spread, mixed, utilities
