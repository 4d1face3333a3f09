"""Simulated experiments: the error of each method, in theory and in simulated surveys.

`simulate` compares methods, by their names in `priorveil.studies.compare`, over several epsilons. It returns
a `Study`, a tidy table.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Ints
from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.mechanisms.randomness import as_source
from priorveil.priors import Budget, Prior, Secret
from priorveil.queries import Criterion, Distribution, Query, StatisticName
from priorveil.reading.moments import normal_width
from priorveil.studies.compare import COMPARED_METHODS, SimulatedSurvey, SurveyScenario
from priorveil.words.plots.curves import METHOD_STYLES

_CONFIDENCE = 0.99  # intervals of a simulation have this confidence
_ERRORS = ("expected", "bound", "measured", "low", "high")  # the columns of a study that hold errors
# By the name of a statistic: the factor of its typical error, and what that error then is.
_UNITS: dict[StatisticName, tuple[int, str]] = {
    "share": (100, "typical error of a share, in points"),
    "average per person": (1, "typical error of the average per person"),
    "average of a group": (1, "typical error of the average of a group"),
    "statistic": (100, "typical error of a statistic, per 100 people"),
}


@dataclass(frozen=True)
class StudyRow:
    """A line of a study. Errors are squared and per person; `note` says why a method does not apply."""

    epsilon: float
    method: str
    kind: str
    expected: float = math.nan
    bound: float = math.nan
    measured: float = math.nan
    low: float = math.nan
    high: float = math.nan
    lip: float = math.nan
    ldp: float = math.nan
    people: int = 0
    runs: int = 0
    note: str = ""


@dataclass(frozen=True)
class Study:
    """The result of a simulation: the query, the number of its statistics, and the rows."""

    query: Query
    statistics: int
    rows: tuple[StudyRow, ...]

    @property
    def runs(self) -> int:
        """How many surveys were simulated; a method that does not apply has none."""
        return max(row.runs for row in self.rows)

    def methods(self) -> tuple[str, ...]:
        """The names of the methods, in the order in which they were given."""
        return tuple(dict.fromkeys(row.method for row in self.rows))

    def of(self, method: str) -> tuple[StudyRow, ...]:
        """The rows of one method."""
        return tuple(row for row in self.rows if row.method == method)

    def table(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [asdict(row) for row in self.rows]

    @property
    def unit(self) -> str:
        """What the errors of `readable_table` are, in words."""
        if self.query.criterion is Criterion.WRONG_GUESSES:
            return "wrong guesses, in percent"
        return _UNITS[self.query.statistic_name][1]

    def readable_table(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, with root mean square errors of a whole survey in the `unit`.

        The error of several statistics is their quadratic mean.
        """
        return [
            row | {name: self._readable(row[name], row["people"]) for name in _ERRORS} for row in self.table()
        ]

    def _readable(self, error: float, people: int) -> float:
        if self.query.criterion is Criterion.WRONG_GUESSES:
            return 100 * error
        return _UNITS[self.query.statistic_name][0] * math.sqrt(error / (people * self.statistics))

    def csv(self) -> str:
        """The rows as CSV, with a header; unknown numbers are left empty."""
        return csv_text(self.table())


def simulate(
    prior: Prior | Sequence[float],
    epsilons: Sequence[float],
    query: Query | None = None,
    methods: Sequence[str] = ("best", "published-rr", "rr", "ldp-rr", "none"),
    *,
    secret: Secret | None = None,
    values: npt.ArrayLike | None = None,
    people: int = 5_000,
    runs: int = 100,
    seed: int = 0,
    time_limit: float = 20.0,
    progress: Callable[[float, str], None] | None = None,
) -> Study:
    """Compare methods: theory, and `runs` simulated surveys of each at every epsilon.

    Arguments: the `prior`; the `epsilons`; the `query`, by default `Distribution`; `methods`, names from
    `COMPARED_METHODS`; a latent `secret`; the people's true `values` (the same in every run), or else how many
    `people` to draw from the prior; `runs` (zero: theory only); the `seed`; the time in seconds that a design
    may take. `progress(share, words)` is called before every row, with the share of rows that are done.
    An unbiased query is about the population: its people are drawn again in every run, from the `values` if given.

    >>> study = simulate([0.5, 0.3, 0.2], [1.0, 2.0], runs=0)
    >>> study.methods()[0], study.of("best")[0].lip <= 1.0
    ('best', True)
    """
    prior = Prior.of(prior)
    query = Distribution() if query is None else query
    for method in methods:
        if method not in COMPARED_METHODS:
            raise InvalidInput("methods", method, f"choose from {', '.join(COMPARED_METHODS)}")
    if people < 1:
        raise InvalidInput("people", people, "give a whole number, one or more")
    if runs < 0 or runs == 1:
        raise InvalidInput(
            "runs", runs, "give 0 for theory only, or 2 or more: an interval needs two surveys"
        )
    truth = None
    if values is not None:
        rounding = as_source(np.random.default_rng(seed))  # rounds numbers
        codes, _ = prior.domain.encode_or_refuse(values, rounding.words)
        truth = np.bincount(codes, minlength=len(prior))
    rows: list[StudyRow] = []
    for i, budget in enumerate([Budget.of(epsilon) for epsilon in epsilons]):
        scenario = SurveyScenario(prior, budget.lower, query, secret, time_limit)
        for j, method in enumerate(methods):
            rng = np.random.default_rng([seed, i, j])
            if progress is not None:
                progress(len(rows) / (len(epsilons) * len(methods)), f"{method}, epsilon {budget.lower:g}")
            rows.append(_row(method, scenario, truth, people, runs, rng))
    statistics = len(query.statistic_labels(prior.labels))
    if query.number_by_group is not None:
        statistics //= 2  # the other rows are the counts of the groups, with a small weight
    return Study(query, statistics, tuple(rows))


def _row(
    name: str, scenario: SurveyScenario, truth: Ints | None, people: int, runs: int, rng: np.random.Generator
) -> StudyRow:
    """One method at one epsilon, or a note why it does not apply."""
    count = people if truth is None else int(truth.sum())
    try:
        method = COMPARED_METHODS[name](scenario)
    except (Infeasible, TooLarge) as error:
        return StudyRow(scenario.epsilon, name, "", people=count, note=str(error))
    errors = simulated_error(method.survey, scenario.prior, count, runs, rng, truth)
    return StudyRow(
        scenario.epsilon, name, METHOD_STYLES[name][0], method.expected, method.bound, *errors,
        method.levels.lip, method.levels.ldp, count, runs,
    )  # fmt: skip


def simulated_error(
    survey: SimulatedSurvey,
    prior: Prior,
    people: int,
    runs: int,
    rng: np.random.Generator,
    truth: Ints | None = None,
) -> tuple[float, float, float]:
    """The mean error over simulated surveys, with the ends of its 99 % interval; nan for fewer than two surveys.

    Squared errors are skewed, so the interval is normal on the scale of logarithms.
    """
    if runs < 2:
        return math.nan, math.nan, math.nan
    truths = (rng.multinomial(people, prior.probabilities) if truth is None else truth for _ in range(runs))
    errors = np.array([survey(counts, rng) for counts in truths])
    mean, spread = float(errors.mean()), float(errors.std(ddof=1)) / math.sqrt(runs)
    ratio = math.exp(normal_width(_CONFIDENCE, "confidence") * spread / mean) if mean > 0 else 1.0
    return mean, mean / ratio, mean * ratio


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV with the columns of all of them; nan and None are left empty.

    >>> csv_text([{"a": 1, "b": math.nan}, {"a": 0.5, "c": "x"}]).splitlines()
    ['a,b,c', '1,,', '0.5,,x']
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None or value != value:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else value
