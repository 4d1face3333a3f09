"""Experiments: what each way of asking people would do, in theory and in a simulation.

This (with `ways` and `figures`) is the only code that holds the truth and the reports at once. `simulate`
compares ways of asking, by their names in `priorveil.studies.compare`, over several epsilons, and returns a `Study`, a
tidy table.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.plans.values import codes_of
from priorveil.priors import Budget, Prior, Secret
from priorveil.queries import Histogram, Query
from priorveil.studies.compare import WAYS, Counts, Question, Trial

_LEVEL = 0.99  # of the intervals of a simulation


@dataclass(frozen=True)
class Measured:
    """The mean error of simulated surveys, with the ends of its 99 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """A line of a study. Errors are squared and per person; `note` says why a way could not be taken."""

    epsilon: float
    way: str
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
    """What a simulation found: the rows, and what was asked."""

    query: Query
    rows: tuple[Row, ...]

    def ways(self) -> tuple[str, ...]:
        """The names of the ways, in the order they were given."""
        return tuple(dict.fromkeys(row.way for row in self.rows))

    def of(self, way: str) -> tuple[Row, ...]:
        """The rows of one way."""
        return tuple(row for row in self.rows if row.way == way)

    def csv(self) -> str:
        """The rows as CSV, with a header; what is not known is left empty."""
        names = [f.name for f in fields(Row)]
        return as_csv([{name: getattr(row, name) for name in names} for row in self.rows])


def simulate(
    prior: Prior | Sequence[float],
    epsilons: Sequence[float],
    query: Query | None = None,
    ways: Sequence[str] = ("best", "published-rr", "rr", "ldp-rr", "none"),
    *,
    secret: Secret | None = None,
    values: npt.ArrayLike | None = None,
    people: int = 5_000,
    runs: int = 100,
    seed: int = 0,
    time_limit: float = 20.0,
    progress: Callable[[Row], None] | None = None,
) -> Study:
    """Compare ways of asking: theory, and `runs` simulated surveys of each at every epsilon.

    Arguments: the `prior`; `epsilons`; the `query`, a histogram by default; `ways`, names from `WAYS`; a
    latent `secret`; the people's true `values` (the same in every run), or else how many `people` to draw
    from the prior; `runs` (zero: theory only); the `seed`; the time a design may take. `progress(row)` is
    told of every row.

    >>> study = simulate([0.5, 0.3, 0.2], [1.0, 2.0], runs=0)
    >>> study.ways()[0], study.of("best")[0].lip <= 1.0
    ('best', True)
    """
    known, asked = Prior.of(prior), Histogram() if query is None else query
    for way in ways:
        if way not in WAYS:
            raise InvalidInput("ways", way, f"choose from {', '.join(WAYS)}")
    if people < 1 or runs < 0:
        raise InvalidInput(
            "people" if people < 1 else "runs", min(people, runs), "give a larger whole number"
        )
    truth = None if values is None else counted(values, known)
    rows = []
    for i, epsilon in enumerate(epsilons):
        question = Question(known, Budget(epsilon).lower, asked, secret, time_limit)
        for j, way in enumerate(ways):
            rng = np.random.default_rng([seed, i, j])
            rows.append(_row(way, question, truth, people, runs, rng))
            if progress is not None:
                progress(rows[-1])
    return Study(asked, tuple(rows))


def _row(
    name: str, question: Question, truth: Counts | None, people: int, runs: int, rng: np.random.Generator
) -> Row:
    """One way at one epsilon; a way that cannot be taken leaves a note."""
    count = people if truth is None else int(truth.sum())
    try:
        way = WAYS[name](question)
    except (Infeasible, TooLarge) as error:
        return Row(question.epsilon, name, "", people=count, note=str(error))
    found = measured(way.trial, question.prior, count, runs, rng, truth)
    return Row(
        question.epsilon, name, way.kind, way.expected, way.bound, found.mean, found.low, found.high,
        way.lip, way.ldp, count, runs,
    )  # fmt: skip


def counted(values: npt.ArrayLike, prior: Prior) -> Counts:
    """How many people have each value; `values` are labels or codes, as for `Plan.privatize`."""
    codes, _ = codes_of(np.asarray(values), prior.labels, "refuse")
    return np.bincount(codes, minlength=len(prior)).astype(np.int64)


def measured(
    trial: Trial, prior: Prior, people: int, runs: int, rng: np.random.Generator, truth: Counts | None = None
) -> Measured:
    """The mean error over simulated surveys; nan where there are fewer than two.

    Squared errors are skewed: the interval is normal on the scale of logarithms.
    """
    if runs < 2:
        return Measured(math.nan, math.nan, math.nan)
    P = prior.probabilities
    errors = np.array(
        [trial(rng.multinomial(people, P) if truth is None else truth, rng) for _ in range(runs)]
    )
    mean, spread = float(errors.mean()), float(errors.std(ddof=1)) / math.sqrt(runs)
    ratio = math.exp(NormalDist().inv_cdf((1 + _LEVEL) / 2) * spread / mean) if mean > 0 else 1.0
    return Measured(mean, mean / ratio, mean * ratio)


def as_csv(rows: Sequence[dict[str, object]]) -> str:
    """Rows as CSV with the columns of all of them; nan and None are left empty.

    >>> as_csv([{"a": 1, "b": math.nan}, {"a": 0.5, "c": "x"}]).splitlines()
    ['a,b,c', '1,,', '0.5,,x']
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _cell(v) for k, v in row.items()} for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.10g}" if isinstance(value, float) else value
