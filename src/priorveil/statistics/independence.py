"""Tests of independence of a private answer and a public column, or of two private answers.

Each is a chi-square test of scores, the unbiased shares that single reports stand for, with the covariance that they
have if the null hypothesis is true. Without noise that of scores is Pearson's test of a contingency
table, digit by digit, and the others are near it: variances of estimates are above zero also where nobody has a value.

- **groups**: are the shares the same in each group of a public column? `sum_g (s_g - s)' V_g^-1 (s_g - s)`, where `s_g`
  are the shares of a group and `V_g` their covariance, from the reports of all groups together, plan by plan.
- **table**: for two attributes in one report, is `p_ij - p_i p_j` zero? Its covariance is that of people whose
  attributes are independent, with the margins that were estimated.
- **scores**: for two reports of each person, are their scores correlated? `n` times the sum of the squared canonical
  correlations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, TooLarge, plural
from priorveil.priors import Label
from priorveil.priors.domain import label_positions
from priorveil.priors.label_texts import label_parts
from priorveil.reading.combination import require_same_numbers
from priorveil.reading.estimate import Estimate
from priorveil.reading.tally import Tally
from priorveil.reading.tally_reading import QUICK, Reading
from priorveil.statistics.calibration import codes_of
from priorveil.statistics.significance import chi_square_tail

FEWEST = 5.0  # people expected in a cell, or 1 - share of them: Cochran's rule for Pearson's test
_MOST_ENTRIES = 20_000_000  # of the covariances of all groups
_ZERO = 1e-9  # of the largest eigenvalue of a correlation matrix: a direction that nothing varies in


@dataclass(frozen=True)
class Independence:
    """A test of independence: `chi_square` with its `degrees` of freedom and its `p_value`.

    `people` reported, and `few_people` says that fewer than five of them are expected in some cell: the p-value is
    then only rough.
    """

    chi_square: float
    degrees: int
    p_value: float
    people: float
    few_people: bool = False

    def __str__(self) -> str:
        return showing.text(self)

    def _repr_html_(self) -> str:
        return showing.html(self)


def independence(
    *,
    groups: Mapping[Any, Estimate] | None = None,
    table: Estimate | None = None,
    attributes: Sequence[str] | None = None,
    scores: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Independence:
    """Test whether two things are independent; give one of `groups`, `table` and `scores`.

    - `groups`: the estimates of the groups of a public column, such as `estimate_table(..., by="town").groups`. The
      rows without a group, under None, are left out.
    - `table`: the estimate of a plan for several attributes; `attributes` names the two, where there are more.
    - `scores`: for the same people in the same order, `plan.scores(reports)` of two plans, or of one plan and a public
      column, whose values are groups.

    The tests use the reports alone, by method unbiased, also where the estimates lean on a prior. They are for people
    who are drawn independently; estimates of a query that is not a histogram are tested for the statistics that it has.

    >>> answers = np.repeat([[1.0, 0.0], [0.0, 1.0]], [50, 50], axis=0)
    >>> towns = ["A"] * 30 + ["B"] * 20 + ["A"] * 20 + ["B"] * 30
    >>> found = independence(scores=(answers, towns))
    >>> round(found.chi_square, 6), found.degrees, round(found.p_value, 4)
    (4.0, 1, 0.0455)
    """
    if [groups, table, scores].count(None) != 2:
        raise InvalidInput("groups", NOT_SHOWN, "give one of groups, table and scores")
    if attributes is not None and table is None:
        raise InvalidInput("attributes", attributes, "they are those of a table: leave them out")
    if groups is not None:
        if not isinstance(groups, Mapping):
            advice = "give a mapping from each group to its estimate, such as {'north': estimate, ...}"
            raise InvalidInput("groups", NOT_SHOWN, advice)
        return group_test([estimate for name, estimate in groups.items() if name is not None])
    if table is not None:
        return _table_test(table, attributes)
    assert scores is not None
    return _score_test(*scores)


# -- groups of a public column ---------------------------------------------------------------------------


def group_test(estimates: Sequence[Estimate]) -> Independence:
    """Whether the shares are the same in all groups; those without people are left out."""
    own = [estimate for estimate in estimates if estimate.people > 0]
    if len(own) < 2:
        advice = f"{plural(len(own), 'group')} with reports; give the estimates of two or more"
        raise InvalidInput("groups", NOT_SHOWN, advice)
    require_same_numbers(own)
    tallies = [id(reading.tally) for estimate in own for reading in estimate.own_readings]
    if len(set(tallies)) < len(tallies):
        raise InvalidInput("groups", NOT_SHOWN, "two of them were read from the same reports")
    labels = own[0].labels
    _require_few_statistics(len(labels))
    readings = [[_adding_up(reading) for reading in estimate.own_readings] for estimate in own]
    people = np.array([estimate.people for estimate in own])
    sums = np.array([sum(_counts(reading, labels) for reading in each) for each in readings])
    plans: dict[str, list[Reading]] = {}
    for reading in chain.from_iterable(readings):
        plans.setdefault(reading.tally.plan, []).append(reading)
    matrices = len(plans) + (len(own) if len(plans) > 1 else 0)
    if matrices * len(labels) ** 2 > _MOST_ENTRIES:
        raise TooLarge("so many groups of so many values would take long to test")
    covariances = np.array([_covariance_per_person(each, labels) for each in plans.values()])
    squares = np.array(
        [
            [sum(_squares(r.tally) for r in each if r.tally.plan == plan) for plan in plans]
            for each in readings
        ]
    )
    chi_square, degrees = _between_groups(sums / people[:, None], covariances, squares / people[:, None] ** 2)
    few = _few_people(own[0], sums.sum(axis=0) / people.sum(), people)
    return _result(chi_square, (len(own) - 1) * degrees, float(people.sum()), few)


def _between_groups(shares: Array, covariances: Array, factors: Array) -> tuple[float, int]:
    """The chi-square of equal shares, and the degrees of freedom of one group.

    The covariance of the shares of a group is the sum of the covariances per person, with these factors.
    """
    basis = _whitening(np.tensordot(factors.mean(axis=0), covariances, 1))
    within = basis.T @ covariances @ basis
    points = shares @ basis
    if len(covariances) == 1:  # the basis makes the mean covariance the identity
        weights = factors[:, 0].mean() / factors[:, 0]
        centred = points - weights @ points / weights.sum()
        return float(weights @ (centred**2).sum(axis=1)), basis.shape[1]
    precisions = np.linalg.inv(np.tensordot(factors, within, 1))
    mean = np.linalg.solve(precisions.sum(axis=0), np.einsum("gij,gj->i", precisions, points))
    centred = points - mean
    return float(np.einsum("gi,gij,gj->", centred, precisions, centred)), basis.shape[1]


# -- two attributes of one report ------------------------------------------------------------------------


def _table_test(estimate: Estimate, attributes: Sequence[str] | None) -> Independence:
    names = estimate.attributes if attributes is None else tuple(attributes)
    if len(names) != 2 or len(set(names)) < 2:
        known = ", ".join(estimate.attributes) or "one that has no name"
        raise InvalidInput("attributes", list(names), f"name two of the attributes of the estimate: {known}")
    margin = estimate if names == estimate.attributes and estimate.histogram else estimate.margin(*names)
    cells = list(map(label_parts, margin.labels))
    levels = [list(dict.fromkeys(cell[axis] for cell in cells)) for axis in (0, 1)]
    shape = len(levels[0]), len(levels[1])
    if len(margin.labels) < shape[0] * shape[1]:
        advice = "some combinations of their levels cannot occur, so they are not independent"
        raise InvalidInput("attributes", list(names), advice)
    _require_few_statistics(len(margin.labels))
    if len({reading.tally.plan for reading in margin.own_readings}) > 1:
        advice = "it combines reports of several plans: test the estimate of each plan"
        raise InvalidInput("table", NOT_SHOWN, advice)
    labels = tuple((first, second) for first in levels[0] for second in levels[1])
    pooled = _pool([_adding_up(reading) for reading in margin.own_readings])
    shares = (_counts(pooled, labels) / pooled.people).reshape(shape)
    law = np.outer(*(_possible(shares.sum(axis=axis)) for axis in (1, 0)))
    V = _covariance_under(pooled, labels, law.ravel()) * _squares(pooled.tally) / pooled.people**2
    G = _gradient(law)
    basis = _whitening(G @ V @ G.T, (shape[0] - 1) * (shape[1] - 1))
    excess = shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))
    few = bool(pooled.people * law.min() < FEWEST)
    return _result(float(((excess.ravel() @ basis) ** 2).sum()), basis.shape[1], pooled.people, few)


def _gradient(law: Array) -> Array:
    """The derivative of `p_ij - p_i p_j` by the shares of the cells, a row for each of the former."""
    p, q = law.sum(axis=1), law.sum(axis=0)
    rows, columns = np.eye(len(p)), np.eye(len(q))
    slope = (
        np.einsum("ik,jl->ijkl", rows, columns)
        - np.einsum("ik,j->ijk", rows, q)[..., None]
        - np.einsum("i,jl->ijl", p, columns)[:, :, None]
    )
    return np.asarray(slope.reshape(law.size, law.size))


def _possible(shares: Array) -> Array:
    """The shares without negative ones, which noise may make."""
    positive = np.maximum(shares, 0.0)
    return np.asarray(positive / positive.sum())


def _covariance_under(reading: Reading, labels: Sequence[Label], law: Array) -> Array:
    """The covariance of the shares of the cells per person, of people whose cells follow this law.

    Within a cell people are as the prior expects.
    """
    P, people = reading.prior.probabilities, 1_000_000
    rows = np.eye(len(P)) if reading.rows is None else reading.rows
    cells = rows[label_positions(reading.labels, labels)]
    weights = law / (cells @ P) @ cells
    counts: Any = reading.reader.expected_counts(P * weights, people)
    expected = replace(reading, tally=Tally(reading.tally.plan, counts, people))
    return _covariance(expected, labels) / people


# -- two reports, or a report and a public column --------------------------------------------------------


def _score_test(first: npt.ArrayLike, second: npt.ArrayLike) -> Independence:
    columns = [_scores(argument, each) for argument, each in (("scores[0]", first), ("scores[1]", second))]
    people = len(columns[0])
    if people != len(columns[1]) or people < 2:
        advice = f"{people:,} and {len(columns[1]):,} rows: give two scores for each of the same people"
        raise InvalidInput("scores", NOT_SHOWN, advice)
    centred = [each - each.mean(axis=0) for each in columns]
    white = [each @ _whitening(each.T @ each / people) for each in centred]
    correlations = white[0].T @ white[1] / people
    shares = [each.mean(axis=0) for each in columns]
    least = [float(np.minimum(each, 1 - each).min()) for each in shares]
    few = people * max(least[0], 0.0) * max(least[1], 0.0) < FEWEST
    return _result(people * float((correlations**2).sum()), correlations.size, float(people), few)


def _scores(argument: str, given: npt.ArrayLike) -> Array:
    """The scores as a matrix; a column of groups has a one for the group of each person."""
    values = np.asarray(given)
    if values.ndim == 1:
        names, groups = codes_of(argument, given, len(values))
        return np.eye(len(names))[groups]
    if values.ndim != 2 or not np.issubdtype(values.dtype, np.number):
        advice = "give plan.scores(reports), or a column of groups"
        raise InvalidInput(argument, NOT_SHOWN, advice, Hint("plan.scores(reports)"))
    if not np.isfinite(values).all():
        raise InvalidInput(argument, NOT_SHOWN, "some scores are not finite")
    _require_few_statistics(values.shape[1])
    return values.astype(float)


# -- what they share -------------------------------------------------------------------------------------


def _adding_up(reading: Reading) -> Reading:
    """The reading by method unbiased, for the population; a histogram adds up to the number of people."""
    unbiased = reading.unbiased()
    return (
        unbiased
        if unbiased.knows_total
        else replace(unbiased, rows=np.eye(len(reading.prior)), knows_total=True)
    )


def _pool(readings: Sequence[Reading]) -> Reading:
    """One reading of the reports of several, all of the same plan."""
    tallies = [reading.tally for reading in readings]
    return replace(readings[0], tally=sum(tallies[1:], tallies[0]))


def _squares(tally: Tally) -> float:
    """The sum of the squared weights of people."""
    return float(tally.reports if tally.weighted is None else tally.weighted.power)


def _counts(reading: Reading, labels: Sequence[Label]) -> Array:
    return reading.answer().mean[label_positions(reading.labels, labels)]


def _covariance(reading: Reading, labels: Sequence[Label]) -> Array:
    order = label_positions(reading.labels, labels)
    return reading.covariance()[np.ix_(order, order)]


def _covariance_per_person(readings: Sequence[Reading], labels: Sequence[Label]) -> Array:
    """The covariance of what one person of weight one adds, from the reports of all groups together."""
    pooled = _pool(readings)
    return _covariance(pooled, labels) / max(_squares(pooled.tally), 1e-300)


def _whitening(covariance: Array, most: int | None = None) -> Array:
    """Columns that make a covariance the identity, without the directions that nothing varies in.

    `most` is the largest number of columns that there can be.
    """
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = errors > 0
    scales = np.where(varies, errors, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scales, scales))
    kept = values > _ZERO * max(float(values.max(initial=0.0)), _ZERO)
    if most is not None:
        kept[: max(len(kept) - most, 0)] = False
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / scales[:, None])


def _few_people(estimate: Estimate, shares: Array, people: Array) -> bool:
    """Whether fewer than five people are expected to have, or not to have, something in the smallest group."""
    least = float(people.min())
    if not estimate.counts_people:
        return least < FEWEST**2
    return bool((least * np.minimum(shares, 1 - shares) < FEWEST).any())


def _require_few_statistics(count: int) -> None:
    if count > QUICK:
        raise TooLarge(f"{count:,} values are too many to test; the most are {QUICK}")


def _result(chi_square: float, degrees: int, people: float, few: bool) -> Independence:
    return Independence(chi_square, degrees, chi_square_tail(chi_square, degrees), float(people), few)
