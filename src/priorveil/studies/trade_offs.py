"""What privacy costs: one plan beside LDP in three fair comparisons, and queries over several budgets.

LIP at epsilon and LDP at epsilon are different promises, so one comparison is not enough. `compare_with_ldp` makes
three: the same epsilon, the same LIP level, and the same LDP level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.optimize

from priorveil.catalogue import say
from priorveil.certify import certificate
from priorveil.designs import design, design_mean
from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.formatting import readable_number, round_up
from priorveil.frames import Library, to_frame
from priorveil.notions import LDP, LIP, PriorOrSet
from priorveil.plans import Plan
from priorveil.priors import Budget
from priorveil.queries import Query
from priorveil.words import html
from priorveil.words.plots.curves import BUDGET, Figure, canvas, legend, line, log_scale
from priorveil.words.plots.house_style import house_style
from priorveil.words.text_tables import text_lines

# Values up to which the best LDP mechanism is searched: more values take more than the seconds that a comparison is
# worth, and the first design is taken.
_MOST_SEARCHED = 30
# Steps of the search for an LDP plan with a given LIP level: the budget is doubled until that level is passed (with a
# secret it may be many times the level), and then interpolated.
_DOUBLINGS, _INTERPOLATIONS = 5, 12
_REACHED = 0.9999  # the part of the level at which the search ends
_SAME_LEVEL = 0.99  # a plan that reaches less than this part of the level has another level
_NOTICEABLE = 0.95  # an error that is smaller by this factor is worth a note
_COLOURS = ("blue", "red", "green", "orange", "pink", "sky", "black")


def ldp_plan(plan: Plan, epsilon: float, seconds: float = 10.0) -> Plan | None:
    """The best LDP plan at this epsilon that `design` finds for the query of a plan; None if there is none.

    It protects the value itself under any prior. On small domains the search takes
    at most `seconds`; on large ones the first design is taken.
    """
    limit = seconds if len(plan.prior) <= _MOST_SEARCHED else 0.0
    try:
        return design(plan.prior, epsilon, plan.query, notion=LDP(), time_limit=limit)
    except (Infeasible, TooLarge):
        return None


def same_lip_plan(plan: Plan, seconds: float = 10.0) -> Plan | None:
    """The LDP plan whose LIP level is nearest to that of a plan, and not above it; each design takes at most `seconds`.

    None if the level is zero or infinite, or if no LDP plan comes within 1 % of it.
    """
    level = plan.certificate.lip
    if not 0 < level < math.inf:
        return None
    rivals: list[tuple[float, Plan | None]] = [(0.0, None)]

    @cache
    def excess(epsilon: float) -> float:
        """How far the LIP level of LDP at this epsilon is from just below that of the plan; zero if it is there."""
        rival = ldp_plan(plan, epsilon, seconds)
        lip = 2 * level if rival is None else _lip_level(rival, plan)
        if lip <= level:
            rivals.append((lip, rival))
        return 0.0 if _REACHED * level <= lip <= level else lip - (1 + _REACHED) / 2 * level

    # LDP at a level implies LIP at that level, so the search begins there.
    budgets = (level * 2.0**doublings for doublings in range(_DOUBLINGS + 1))
    high = next((epsilon for epsilon in budgets if excess(epsilon) >= 0), level)
    if high > level:
        tolerance = (1 - _REACHED) * level
        scipy.optimize.brentq(
            excess, high / 2, high, xtol=tolerance, maxiter=_INTERPOLATIONS, full_output=True, disp=False
        )
    lip, nearest = max(rivals, key=itemgetter(0))
    return nearest if lip >= _SAME_LEVEL * level else None


def same_ldp_plan(plan: Plan, seconds: float = 10.0) -> Plan | None:
    """The best LDP plan at the LDP level of a plan; None if that is infinite."""
    return ldp_plan(plan, plan.certificate.ldp, seconds) if math.isfinite(plan.certificate.ldp) else None


def _lip_level(rival: Plan, plan: Plan) -> float:
    """The LIP level of an LDP plan for the value or the secret that the other plan protects."""
    if plan.secret is None:
        return rival.certificate.lip
    return certificate(rival.mechanism.lifts(plan.prior, plan.secret, LIP())).lip


_EQUAL = {
    "this plan": "thisPlan",
    "the same epsilon": "sameEpsilon",
    "the same LIP level": "sameLip",
    "the same LDP level": "sameLdp",
}


@dataclass(frozen=True)
class ComparedPlan:
    """One row of a comparison: what is `equal` to the plan, the levels, the `error` per person, and the `people`.

    `people` is how many are needed for the precision of the plan, in multiples of the plan's own; nan for queries
    about each person, such as guesses, which more people do not improve.
    """

    equal: str
    lip: float
    ldp: float
    error: float
    people: float

    def promises_as(self, other: ComparedPlan) -> bool:
        """Whether both levels are the same, as nearly as a search finds them."""
        levels = ((self.lip, other.lip), (self.ldp, other.ldp))
        return all(math.isclose(*pair, rel_tol=1 - _SAME_LEVEL) for pair in levels)


@dataclass(frozen=True)
class LdpComparison:
    """A plan beside the best LDP plans: at the same epsilon, at the same LIP level and at the same LDP level.

    `same_epsilon` is the first of these plans; None if there is none.
    """

    rows: tuple[ComparedPlan, ...]
    same_epsilon: Plan | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What one buys with each of the LDP plans that make another promise, in one or two sentences."""
        plan, *others = self.rows
        row = {other.equal: other for other in others if not other.promises_as(plan)}
        if others and not row:
            return (say("onlyLdpItself"),)
        sentences = []
        if same := row.get("the same epsilon"):
            sentences.append(say("ldpAtSameEpsilon", price=_price(same)))
        if same := row.get("the same LIP level"):
            levels = {"other": f"{same.ldp:.3g}", "own": f"{plan.ldp:.3g}"}
            sentences.append(say("ldpAtSameLip", **levels, price=_price(same)))
        if same := row.get("the same LDP level"):
            key = "learnMoreAtSameLdp" if same.lip > plan.lip else "learnLessAtSameLdp"
            levels = {"other": f"{same.lip:.3g}", "own": f"{plan.lip:.3g}"}
            sentences.append(say(key, **levels, price=_price(same)))
        return tuple(sentences)

    def _cells(self) -> list[tuple[str, ...]]:
        numbers = [
            (f"{r.lip:.3g}", f"{r.ldp:.3g}", readable_number(r.error, 3), _times(r)) for r in self.rows
        ]
        return [(say(_EQUAL[row.equal]), *cells) for row, cells in zip(self.rows, numbers, strict=True)]

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The heads and the rows of the table, as texts."""
        heads = ("ldpWith", "lipLevel", "ldpLevel", "errorHead", "peopleNeeded")
        return tuple(map(say, heads)), self._cells()

    def record(self) -> list[dict[str, Any]]:
        """The rows for a program."""
        return [asdict(row) for row in self.rows]

    def to_frame(self, library: Library | None = None) -> Any:
        """The rows as a data frame of pandas, polars or pyarrow."""
        return _frame(self.rows, library)

    def __str__(self) -> str:
        heads, rows = self.table()
        return "\n".join([*text_lines(heads, rows), *self.sentences])

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        table, notes = html.table(heads, rows, range(1, 5)), html.notes(self.sentences)
        return html.sheet(say("besideLdp"), table, notes)


def compare_with_ldp(plan: Plan, seconds: float = 10.0) -> LdpComparison:
    r"""A plan beside LDP, in the three comparisons that are fair.

    Each design takes at most `seconds`; the same LIP level takes about six of them.

    >>> from priorveil import Distribution, Prior, design
    >>> plan = design(Prior([0.5, 0.3, 0.15, 0.05]), 1.0, Distribution())
    >>> print("\n".join(str(compare_with_ldp(plan)).splitlines()[:5]))
    LDP with            LIP level  LDP level  error  people needed
    this plan                   1          2   3.18              1
    the same epsilon        0.918          1   8.18           2.57
    the same LIP level          1       1.09   6.68            2.1
    the same LDP level       1.72          2   1.87          0.587
    """
    rivals = {
        "the same epsilon": ldp_plan(plan, plan.budget.smaller, seconds),
        "the same LIP level": same_lip_plan(plan, seconds),
        "the same LDP level": same_ldp_plan(plan, seconds),
    }
    improves = plan.query.linear  # with more people

    def row(equal: str, other: Plan) -> ComparedPlan:
        ratio = other.expected_mse / plan.expected_mse if plan.expected_mse else 1.0
        people = ratio if improves else math.nan
        return ComparedPlan(equal, _lip_level(other, plan), other.certificate.ldp, other.expected_mse, people)

    own = ComparedPlan("this plan", plan.certificate.lip, plan.certificate.ldp, plan.expected_mse, 1.0)
    rows = (row(equal, rival) for equal, rival in rivals.items() if rival is not None)
    return LdpComparison((own, *rows), rivals["the same epsilon"])


def flat_prior_remark(plan: Plan, seconds: float = 5.0) -> str | None:
    """A note that a flat prior would give a more precise average, and why; None if it would not.

    The promise is relative to the prior. Under a sharp prior rare numbers are protected more, and those far away decide
    an average.
    """
    points, rows = plan.domain.points, plan.query.rows(plan.reference)
    averages = points is not None and plan.query.unbiased and plan.query.is_sum
    if not averages or points is None or rows is None or not np.array_equal(rows[0], points):
        return None
    if plan.prior.assumed or plan.secret is not None or not plan.notion.bounds_lifts:
        return None
    flat = design_mean(points[0], points[-1], plan.budget, time_limit=seconds)
    if flat.expected_mse > _NOTICEABLE * plan.expected_mse:
        return None
    own, other = (precision.population for precision in (plan.precision, flat.precision))
    if own is None or other is None:
        return None
    widths = {"own": round_up(own), "other": round_up(other)}
    if plan.certificate.ldp >= flat.certificate.ldp:
        return say("flatPriorRemark", **widths)
    levels = {"ldp": f"{plan.certificate.ldp:.3g}", "flat": f"{flat.certificate.ldp:.3g}"}
    return say("flatPriorRemarkStronger", **widths, **levels)


def _times(row: ComparedPlan) -> str:
    return "-" if math.isnan(row.people) else readable_number(row.people, 3)


def _price(row: ComparedPlan) -> str:
    if math.isnan(row.people):
        return say("errorIs", error=readable_number(row.error, 3))
    return say("takesPeople", times=_times(row))


# -- queries over budgets ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TradeOff:
    """A query at one budget: the error of its best plan, what is proven about it, and the error of the best LDP plan.

    Errors are per person. `ldp_error` is that of LDP at the same epsilon, nan where no such plan was found.
    """

    query: str
    epsilon: float
    error: float
    lower_bound: float
    no_report: float
    efficiency: float
    lip: float
    ldp: float
    ldp_error: float


@dataclass(frozen=True)
class TradeOffs:
    """Queries over several budgets, a row for each pair; `plans` has the plans, in the same order."""

    rows: tuple[TradeOff, ...]
    plans: tuple[Plan, ...]

    def record(self) -> list[dict[str, Any]]:
        """The rows for a program."""
        return [asdict(row) for row in self.rows]

    def to_frame(self, library: Library | None = None) -> Any:
        """The rows as a data frame of pandas, polars or pyarrow."""
        return _frame(self.rows, library)

    def plot(self) -> Figure:
        """The trade-off curves, a panel for each query: error against epsilon, with the proven bound shaded."""
        return trade_off_figure(self)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The heads and the rows of the table, as texts."""
        keys = ("queryHead", "epsilonHead", "errorHead", "lowerBoundHead")
        heads = (*map(say, keys), "LIP", "LDP", say("ldpErrorHead"))
        numbers = ("epsilon", "error", "lower_bound", "lip", "ldp", "ldp_error")
        rows = [
            (row.query, *(readable_number(getattr(row, name), 4) for name in numbers)) for row in self.rows
        ]
        return heads, rows

    def __str__(self) -> str:
        return "\n".join(text_lines(*self.table()))

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        return html.sheet(say("tradeOffs"), html.table(heads, rows, range(1, len(heads))))


def compare(
    prior: PriorOrSet,
    queries: Query | Sequence[Query] | Mapping[str, Query],
    epsilons: Iterable[float | Budget],
    *,
    ldp: bool = True,
    seconds: float = 10.0,
    progress: Callable[[float, str], None] | None = None,
    **options: Any,
) -> TradeOffs:
    """Design every query at every budget: trade-off curves of privacy and error.

    `queries` is one query, several, or a mapping from names. Each design takes at most `seconds`; `options` are further
    arguments of `design`, such as `notion` or `secret`. With `ldp` the best LDP plan at the same epsilon stands beside
    each; `compare_with_ldp(plan)` compares one plan in three ways. `progress` is called with the share that is done.

    >>> import priorveil as pv
    >>> curves = pv.compare(pv.Prior([0.5, 0.3, 0.2]), pv.Histogram(), [0.5, 1.0, 2.0])
    >>> [round(row.error, 3) for row in curves.rows]
    [0.557, 0.413, 0.156]
    """
    named = _named_queries(queries)
    budgets = [Budget.of(epsilon) for epsilon in epsilons] if np.iterable(epsilons) else []
    if not budgets:
        raise InvalidInput("epsilons", epsilons, "give a list of at least one budget")
    rows, plans = [], []
    pairs = [(name, query, budget) for name, query in named.items() for budget in budgets]
    for done, (name, query, budget) in enumerate(pairs):
        if progress is not None:
            progress(done / len(pairs), f"{name} at {budget}")
        plan = design(prior, budget, query, **{"time_limit": seconds, **options})
        rival = ldp_plan(plan, budget.smaller, seconds) if ldp else None
        plans.append(plan)
        rows.append(
            TradeOff(
                query=name,
                epsilon=budget.smaller,
                error=plan.expected_mse,
                lower_bound=plan.lower_bound,
                no_report=plan.no_report,
                efficiency=plan.efficiency,
                lip=plan.certificate.lip,
                ldp=plan.certificate.ldp,
                ldp_error=math.nan if rival is None else rival.expected_mse,
            )
        )
    return TradeOffs(tuple(rows), tuple(plans))


def _named_queries(queries: Query | Sequence[Query] | Mapping[str, Query]) -> dict[str, Query]:
    """The queries by their names; equal names get a number."""
    if not isinstance(queries, Mapping):
        listed = list(queries) if isinstance(queries, Iterable) else [queries]
        kinds = [type(query).__name__ for query in listed]
        names = [kind if kinds.count(kind) == 1 else f"{kind} {i + 1}" for i, kind in enumerate(kinds)]
        queries = dict(zip(names, listed, strict=True))
    if not queries or not all(isinstance(query, Query) for query in queries.values()):
        advice = "give a query, a list of queries, or a mapping from names to queries"
        raise InvalidInput("queries", queries, advice)
    return dict(queries)


@house_style()
def trade_off_figure(trade_offs: TradeOffs) -> Figure:
    """Error against epsilon, a panel for each query: its best plan with the bound shaded, LDP, and no report."""
    names = list(dict.fromkeys(row.query for row in trade_offs.rows))
    figure, panels = canvas(1, len(names))
    for name, axes, colour in zip(names, panels[0], _COLOURS * len(names), strict=False):
        rows = sorted((row for row in trade_offs.rows if row.query == name), key=lambda row: row.epsilon)
        columns = {f.name: np.array([getattr(row, f.name) for row in rows]) for f in fields(TradeOff)}
        x = columns["epsilon"]
        line(
            axes,
            ("best", colour, say("boundShaded", curve=say("bestDesign"))),
            x,
            columns["error"],
            columns["lower_bound"],
            "o",
        )
        if not np.isnan(columns["ldp_error"]).all():
            line(axes, ("ldp", "black", say("ldpAtThisEpsilon")), x, columns["ldp_error"], marker="s")
        if np.isfinite(columns["no_report"]).all():
            line(axes, ("baseline", "grey", say("noReport")), x, columns["no_report"])
        else:
            log_scale(axes)
        axes.set(xlabel=BUDGET, ylabel=say("errorPerPerson"), title=name)
    legend(figure, panels[0, 0])
    return figure


def _frame(rows: Sequence[Any], library: Library | None) -> Any:
    """Rows of one dataclass as a data frame."""
    return to_frame({f.name: [getattr(row, f.name) for row in rows] for f in fields(rows[0])}, library)
