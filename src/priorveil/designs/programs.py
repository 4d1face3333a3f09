"""Linear programmes over a cone of allowed columns, with bounds that are proven.

Every bound comes from multipliers `y >= 0` on the rows of `A`: with `w = P r` on the simplex,
`g @ w <= (g + B' y) @ w <= max(g + B' y)` where `B = A / P`. That holds for any `y`, so no bound trusts
the solver's tolerance.
"""

from __future__ import annotations

import highspy
import numpy as np
import numpy.typing as npt

from priorveil.designs.cones import EMPTY
from priorveil.errors import Infeasible, PriorveilError

Array = npt.NDArray[np.float64]

_SETTLED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)


class Program:
    """`max g @ r` over `{r >= 0, A r >= 0, P @ r = 1}` in a live HiGHS model; only the cost changes.

    The variables are `w = P r`, which lie on the simplex, so everything is scaled alike.
    """

    def __init__(self, A: Array, P: Array) -> None:
        self.P = P
        self._rows = self._scaled(A)
        d = len(P)
        self._model = highspy.Highs()
        self._model.silent()
        for option, value in (("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            self._model.setOptionValue(option, value)
        self._model.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._model.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self._model.changeObjectiveSense(highspy.ObjSense.kMaximize)
        nothing = np.empty(0, np.int32)
        self._model.addCols(d, np.zeros(d), np.zeros(d), np.ones(d), 0, nothing, nothing, np.empty(0))
        self._add(np.ones((1, d)), 1.0, 1.0)
        self._add(self._rows, 0.0, highspy.kHighsInf)

    def _scaled(self, A: Array) -> Array:
        B = A / self.P
        size = np.abs(B).max(axis=1, initial=0.0)
        return np.asarray(B[size > 0] / size[size > 0, None])

    def _add(self, rows: Array, lower: float, upper: float) -> None:
        n, d = rows.shape
        starts = (d * np.arange(n)).astype(np.int32)
        index = np.tile(np.arange(d, dtype=np.int32), n)
        self._model.addRows(n, np.full(n, lower), np.full(n, upper), n * d, starts, index, rows.ravel())

    def top(self, g: Array) -> float:
        """A proven upper bound on `g @ r`."""
        answer = self.maximise(g)
        if answer is None:
            raise Infeasible(EMPTY)
        return answer[1]

    def maximise(self, g: Array, more: Array | None = None) -> tuple[Array, float] | None:
        """The best `r` and a proven upper bound on `g @ r`; `more` rows hold for this call only.

        Nothing if those rows leave no column.
        """
        cost = g / self.P
        scale = max(float(np.ptp(cost)), 1e-300)  # the simplex makes a common shift a constant
        shifted = (cost - cost.min()) / scale
        self._model.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), shifted)
        rows = self._rows if more is None else np.vstack([self._rows, self._scaled(more)])
        fresh = len(rows) - len(self._rows)
        if fresh:
            self._add(rows[-fresh:], 0.0, highspy.kHighsInf)
        self._model.run()
        if self._model.getModelStatus() not in _SETTLED:  # once more, without the last basis
            self._model.clearSolver()
            self._model.run()
        status, solution = self._model.getModelStatus(), self._model.getSolution()
        if fresh:
            first = 1 + len(self._rows)
            self._model.deleteRows(fresh, np.arange(first, first + fresh, dtype=np.int32))
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise PriorveilError(f"the linear programme of the pricing did not finish: {status}")
        w = np.maximum(np.asarray(solution.col_value), 0.0)
        y = scale * np.maximum(-np.asarray(solution.row_dual)[1:], 0.0)
        return w / w.sum() / self.P, float(np.max(cost + y @ rows))
