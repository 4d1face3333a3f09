"""Exact verification: compares the integers that a device samples from with a budget, without rounding.

A *table* is a matrix of integers whose rows add up to the same total, so that `W[x][y] / total` is the
exact probability of a report. Its law under an integer prior is a fraction; comparing a
lift with `e**eps` is then a comparison of integers with a rigorous enclosure of `e**eps` (ball
arithmetic of FLINT). Levels are reported as floats, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from priorveil import showing
from priorveil.arrays import exact_product
from priorveil.channels import Channel
from priorveil.errors import CertificateError, InvalidChannel
from priorveil.frames import Library, to_frame
from priorveil.notions import (
    LIP,
    Breach,
    ComparedRows,
    Cone,
    ExactOrFloat,
    LipSides,
    PriorOrSet,
    Secrets,
    as_prior_or_set,
    secret_means,
)
from priorveil.priors import Budget, PriorSet

TOTAL = 2**62  # what every row of a table adds up to: fits a signed 64-bit integer, and a draw of 62 bits

IntegerTable = npt.NDArray[np.int64]

# A channel is mixed with these shares of its own output law until it passes. Finer steps lose less utility and take
# longer.
_MIXING_SHARES: tuple[float, ...] = (0.0, *(10.0**-k for k in np.arange(15.0, 1.25, -0.25)))
_ROW_TOLERANCE = 1e-6  # how far from one the sum of a row of a solver's channel may be
_NEGLIGIBLE = 1e-13  # a report less likely than this is dropped before rounding
_BITS = 256  # working precision of the enclosures
_LARGEST_LEVEL = 700.0  # a level per unit of distance beyond this is infinite for every purpose
_SCALE = 2**200  # the denominator of a rational enclosure


@dataclass(frozen=True)
class Lifts:
    """The extremes of a channel as exact fractions; a ratio is None where it is infinite.

    `lowest` and `highest` bound the lift of the secret, `ldp` is the largest ratio within a column for
    the value itself, `ratio` the one that the certified notion compares.
    """

    lowest: Fraction
    highest: Fraction
    ldp: Fraction | None
    ratio: Fraction | None = None

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if not isinstance(number, (int, Fraction)) and not (number is None and name in ("ldp", "ratio")):
                problem = f"{name} of Lifts should be an integer or a fraction, not {type(number).__name__}"
                raise CertificateError(f"rounded numbers prove nothing: {problem}")


@dataclass(frozen=True)
class Certificate(LipSides):
    """What was proven about a channel: levels in natural logarithms, each rounded up.

    `lip` holds for the secret (the value itself unless one was given) under the prior; `ldp` holds for
    the value itself under any prior. `level` is that of the notion the channel was certified for.
    """

    notion: str
    lip_lower: float
    lip_upper: float
    ldp: float
    level: float

    def _repr_html_(self) -> str:
        return showing.html(self)

    def to_frame(self, library: Library | None = None) -> Any:
        """The notion and the levels in one row, as a data frame of pandas, polars or pyarrow."""
        return to_frame({name: [level] for name, level in {**vars(self), "lip": self.lip}.items()}, library)

    def document(self) -> dict[str, str]:
        """The certificate as JSON."""
        return {name: v if isinstance(v, str) else repr(float(v)) for name, v in vars(self).items()}

    @classmethod
    def read(cls, document: Mapping[str, str]) -> Certificate:
        """Read a certificate from its JSON document."""
        levels = (float(document[name]) for name in ("lip_lower", "lip_upper", "ldp", "level"))
        return cls(str(document["notion"]), *levels)


def exp_below(level: float) -> Fraction:
    """A fraction proven to be at most `e**level`, and very near to it.

    >>> float(exp_below(1.0)) == math.e and exp_below(0.0) == 1
    True
    """
    return _enclosure(level)[0]


def exp_above(level: float) -> Fraction:
    """A fraction proven to be at least `e**level`, and very near to it.

    >>> exp_above(1.0) > exp_below(1.0)
    True
    """
    return _enclosure(level)[1]


@lru_cache(maxsize=64)  # a search asks for the same few levels again and again
def _enclosure(level: float) -> tuple[Fraction, Fraction]:
    with ctx.workprec(_BITS):
        ball = arb(level).exp() * arb(_SCALE)
        low, high = _exact_end(ball.lower().floor()), _exact_end(ball.upper().ceil())
    one = Fraction(1)  # known to lie on one side of e**level, however small the level
    return (max(low, one), high) if level > 0 else (low, min(high, one))


def _exact_end(end: arb) -> Fraction:
    """An exact integer ball over the scale."""
    number = end.unique_fmpz()
    assert number is not None  # an end of a ball has no radius
    return Fraction(int(number), _SCALE)


def log_above(ratio: Fraction | None) -> float:
    """The smallest float proven to be at least `log(ratio)`; None is an infinite ratio.

    >>> log_above(Fraction(1)), log_above(Fraction(3)) >= math.log(3)
    (0.0, True)
    """
    if ratio is None:
        return math.inf
    if ratio <= 1:
        return 0.0
    with ctx.workprec(_BITS + ratio.numerator.bit_length()):  # a ratio may be next to one
        ball = arb(fmpq(ratio.numerator, ratio.denominator)).log()
        guess = float(ball.mid())
        while not arb(guess) >= ball:
            guess = math.nextafter(guess, math.inf)
        return guess


def certificate(lifts: Lifts, notion: Cone | None = None) -> Certificate:
    """The certificate of exact extremes.

    >>> certificate(Lifts(Fraction(1, 2), Fraction(2), Fraction(4))).lip.__round__(6)
    0.693147
    """
    notion = notion or LIP()
    lower = log_above(None if lifts.lowest == 0 else 1 / lifts.lowest)
    upper, ldp = log_above(lifts.highest), log_above(lifts.ldp)
    level = max(lower, upper) if notion.bounds_lifts else log_above(lifts.ratio)
    return Certificate(notion.name, lower, upper, ldp, level)


def keeps_budget(lifts: Lifts, budget: Budget, notion: Cone | None = None) -> bool:
    """Whether exact extremes keep a budget, decided in exact arithmetic."""
    if notion is None or notion.bounds_lifts:
        keeps_lower = math.isinf(budget.lower) or lifts.lowest >= exp_above(-budget.lower)
        return keeps_lower and (math.isinf(budget.upper) or lifts.highest <= exp_below(budget.upper))
    bound = budget.smaller
    return math.isinf(bound) or (lifts.ratio is not None and lifts.ratio <= exp_below(bound))


def lifts(
    table: IntegerTable, prior: PriorOrSet, secret: Secrets = None, notion: Cone | None = None
) -> Lifts:
    """The exact extremes of an integer table.

    >>> from priorveil.priors import Prior
    >>> lifts(np.array([[3, 1], [1, 3]]), Prior([0.5, 0.5]))
    Lifts(lowest=Fraction(1, 2), highest=Fraction(3, 2), ldp=Fraction(3, 1), ratio=None)
    """
    prior = as_prior_or_set(prior)
    W = _valid_table(table, prior)
    least, most = _mean_extremes(W, prior)
    if 0 in least:
        problem = "under one prior of the set, a possible report has probability zero"
        raise CertificateError(f"the table cannot be certified: {problem}; remove that prior")
    # The probability of each report, given each secret.
    means: ExactOrFloat = np.vstack([rows for rows, _ in secret_means(secret, W, prior.labels)])
    bottoms, tops = means.min(axis=0).tolist(), means.max(axis=0).tolist()
    lowest = min(Fraction(b) / m for b, m in zip(bottoms, most, strict=True))
    highest = max(Fraction(t) / m for t, m in zip(tops, least, strict=True))
    ratio = None
    if notion is not None and not notion.bounds_lifts:
        # Python's integers do not overflow in sums of rows. The notions of this package add no int64.
        packaged = type(notion).compared_rows.__module__ == Cone.__module__
        columns: ExactOrFloat = W if packaged else W.astype(object)
        groups = notion.checked_rows(columns, prior.labels, prior, secret)
        ratio = _largest([_ratio_per_distance(group) for group in groups])
    return Lifts(lowest, highest, _ratio(W, W), ratio)


def certify_table(
    table: IntegerTable,
    prior: PriorOrSet,
    epsilon: float | Budget,
    secret: Secrets = None,
    notion: Cone | None = None,
) -> Certificate:
    """The certificate of an integer table, or a `CertificateError` that says where it breaks the budget.

    Arguments: `table`, integers whose rows all add up to the same number; the `prior` or set of priors;
    `epsilon`, a number or a `Budget`; the `secret`, the value itself by default; the `notion`, LIP by
    default.

    >>> from priorveil.priors import Prior
    >>> certify_table(np.array([[3, 1], [1, 3]]), Prior([0.5, 0.5]), 0.7).lip.__round__(6)
    0.693147
    >>> certify_table(np.array([[3, 1], [1, 3]]), Prior([0.5, 0.5]), 0.69)
    Traceback (most recent call last):
    priorveil.errors.CertificateError: the lower side is broken: secret 0, report 1, level 0.6931 above 0.69
    """
    budget, extremes = Budget.of(epsilon), lifts(table, prior, secret, notion)
    levels = certificate(extremes, notion)
    if keeps_budget(extremes, budget, notion):
        return levels
    where, breach = _broken_at(table, levels, prior, budget, secret, notion)
    raise CertificateError(where, breach=breach)


def _broken_at(
    table: IntegerTable,
    levels: Certificate,
    prior: PriorOrSet,
    budget: Budget,
    secret: Secrets,
    notion: Cone | None,
) -> tuple[str, Breach | None]:
    """How a table breaks its budget. Floats only locate the breach; the decision was exact."""
    if notion is not None and not notion.bounds_lifts:
        return f"{levels.notion} level {levels.level:.6g} is above {budget.smaller:.6g}", None
    down, up = LIP().worst(Channel.from_weights(table), as_prior_or_set(prior), secret)
    breach, level, bound = down, levels.lip_lower, budget.lower
    if levels.lip_upper > budget.upper:
        breach, level, bound = up, levels.lip_upper, budget.upper
    place = f"secret {breach.secret}, report {breach.report}, level {level:.4f} above {bound:.6g}"
    return f"the {breach.side} side is broken: {place}", breach


def _valid_table(table: IntegerTable, prior: PriorOrSet) -> IntegerTable:
    """The table without reports that never happen; an error if it is not a table for this prior."""
    W = np.asarray(table)
    if W.ndim != 2 or W.dtype.kind not in "iu" or (W < 0).any():
        raise InvalidChannel("table", W.shape, "give a matrix of whole numbers, zero or more")
    totals = {sum(row) for row in W.tolist()}
    if len(totals) != 1 or 0 in totals or max(totals) >= 2**63:
        raise InvalidChannel("table", sorted(totals), "every row must add up to the same number, below 2**63")
    if len(W) != len(prior):
        raise InvalidChannel("table", W.shape, f"it needs {len(prior)} rows, one for each value of the prior")
    return W[:, W.any(axis=0)].astype(np.int64)


def _mean_extremes(W: IntegerTable, prior: PriorOrSet) -> tuple[list[Fraction], list[Fraction]]:
    """The smallest and largest mean of each column over the priors, exactly."""
    if isinstance(prior, PriorSet) and not prior.members:
        pairs = [prior.exact_extremes(column) for column in W.T.tolist()]
        return [low for low, _ in pairs], [high for _, high in pairs]
    products = exact_product([p.weights for p in prior.members], W)  # far quicker than sums of fractions
    means = [[Fraction(v, p.total) for v in row] for p, row in zip(prior.members, products, strict=True)]
    return list(map(min, zip(*means, strict=True))), list(map(max, zip(*means, strict=True)))


def _ratio_per_distance(group: ComparedRows) -> Fraction | None:
    """The largest ratio of compared rows; for a distance other than one, `e**level` with the level per unit of it.

    Both steps of the level are rounded up, so it is proven. A level above any budget counts as infinite: its power has
    too many digits.
    """
    ratio = _ratio(*group.tops_and_bottoms())
    if ratio is None or group.distance == 1 or ratio <= 1:
        return ratio
    level = math.nextafter(log_above(ratio) / group.distance, math.inf)
    return None if level > _LARGEST_LEVEL else exp_above(level)


def _ratio(rows: ExactOrFloat, others: ExactOrFloat) -> Fraction | None:
    """The largest ratio within a column of an entry of the rows to one of the others, or None where it is infinite."""
    _require_exact(rows)
    _require_exact(others)
    largest = Fraction(1)
    for top, bottom in zip(rows.max(axis=0).tolist(), others.min(axis=0).tolist(), strict=True):
        if top > 0 and bottom == 0:
            return None
        largest = max(largest, Fraction(top) / bottom) if top > 0 else largest
    return largest


def _require_exact(rows: ExactOrFloat) -> None:
    """Refuse compared rows that prove nothing: rounded floats, and negative numbers, which may have overflowed."""
    integers = rows.dtype.kind in "iu"
    if not integers and not all(isinstance(entry, (int, Fraction, np.integer)) for entry in rows.flat):
        raise CertificateError("compared_rows should give integers or fractions for columns of integers")
    if (rows < 0).any():
        raise CertificateError("compared_rows should give numbers of zero or more")


def _largest(ratios: Sequence[Fraction | None]) -> Fraction | None:
    """The largest ratio, where None stands for an infinite one; one if there are no ratios."""
    finite = [ratio for ratio in ratios if ratio is not None]
    return max(finite, default=Fraction(1)) if len(finite) == len(ratios) else None


def certified_table(
    Q: npt.NDArray[np.float64],
    prior: PriorOrSet,
    budget: Budget,
    secret: Secrets = None,
    notion: Cone | None = None,
) -> tuple[IntegerTable, Certificate]:
    """An integer table as near to `Q` as the budget allows, and its certificate.

    A solver's channel overshoots its budget by about 1e-13. Mixing it with its own output law,
    `Q <- (1 - t) Q + t 1 lam'`, keeps the law and pulls every lift towards one, in every notion here. The result has
    the smallest `t` of a fixed list (up to 0.03, which only budgets below 0.001 need) at which the rounded integers
    pass the exact check.

    >>> Q = np.array([[0.731, 0.269], [0.269, 0.731]])
    >>> from priorveil.priors import Prior
    >>> table, proof = certified_table(Q, Prior([0.5, 0.5]), Budget(1.0))
    >>> proof.lip <= 1.0, int(table[0].sum()) == TOTAL
    (True, True)
    """
    P = prior.centre.probabilities
    _require_channel(Q, len(P))
    positive = np.maximum(Q, 0.0)  # a solver may leave negative entries, and reports that hardly ever happen
    likely = positive[:, P @ positive > _NEGLIGIBLE]
    channel = likely / likely.sum(axis=1, keepdims=True)
    law = P @ channel
    for t in _MIXING_SHARES:
        table = round_rows((1 - t) * channel + t * law)
        extremes = lifts(table, prior, secret, notion)
        if keeps_budget(extremes, budget, notion):
            return table, certificate(extremes, notion)
    where, breach = _broken_at(table, certificate(extremes, notion), prior, budget, secret, notion)
    message = "the designed channel breaks its budget, even mixed with its output law"
    raise CertificateError(f"{message}: {where}", breach=breach)


def round_rows(Q: npt.NDArray[np.float64]) -> IntegerTable:
    """Integers whose rows add up to `2**62`; what rounding leaves over goes to the largest entry of the row.

    >>> round_rows(np.array([[0.5, 0.5]])).tolist() == [[2**61, 2**61]]
    True
    """
    W = np.floor(Q * float(TOTAL)).astype(np.int64)
    W[np.arange(len(W)), W.argmax(axis=1)] += TOTAL - W.sum(axis=1)
    return W


def _require_channel(Q: npt.NDArray[np.float64], size: int) -> None:
    """Refuse what a failed solver may return: an array that is not even nearly a channel."""
    if Q.ndim != 2 or len(Q) != size or not np.isfinite(Q).all():
        problem = f"the solver did not return a channel, but an array {Q.shape} for {size} values"
        raise CertificateError(problem)
    off = float(np.abs(np.maximum(Q, 0.0).sum(axis=1) - 1).max())
    if off > _ROW_TOLERANCE:
        raise CertificateError(
            f"the solver did not return a channel: the sum of a row is {off:.2g} away from one"
        )
