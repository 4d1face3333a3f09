"""Notions of privacy: each measures a channel against what is known.

Every notion has the same two verbs: `epsilon`, the smallest level at which the channel satisfies it
(infinite where there is none), and `holds`. Those that are *cones* also give the linear inequalities
`A @ column >= 0` that a column of a channel has to meet, which is all that a design needs of them.

The secret is the value itself (`G = X`) unless a `Secret` is given. Reports of probability zero never
count. Levels are natural logarithms, measured in floating point. Those of a plan's channel are proven from its integers
where that can be done, and rounded up, so that a certified plan holds at its level on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.frames import Library, to_frame
from priorveil.named_classes import class_named, enter_class
from priorveil.priors import Budget, Label, Prior, PriorSet, Secret
from priorveil.priors.budget import window_mass

_LARGE_LEVEL = 30.0  # solvers refuse coefficients above about 1e15

PriorOrSet = Prior | PriorSet
Secrets = Secret | Sequence[Secret] | None


@dataclass(frozen=True)
class Breach:
    """Where a channel leaks most: the secret (or value), the report, and the level there.

    `side` is "lower" or "upper" for LIP, and `against` is the other secret of a pairwise notion. A notion that averages
    over secrets or reports has a level only.
    """

    side: str | None
    secret: Label | None
    report: Label | None
    level: float
    against: Label | None = None


Breaches = tuple[Breach, ...]
ExactOrFloat = npt.NDArray[Any]  # integers or fractions to certify, floats to measure and design
LabelledMeans = list[tuple[ExactOrFloat, Sequence[Label]]]  # arrays, each with the labels of its rows


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Rows (n, K) that are compared with each other, and their labels.

    Within a column no row is more than `e**(eps * distance)` times another one. If it is `one_way`, only the first row
    is compared with the others. The distance is positive.
    """

    rows: ExactOrFloat
    labels: Sequence[Label]
    distance: float = 1.0
    one_way: bool = False

    def __post_init__(self) -> None:
        if not self.distance > 0:  # also what is not a number
            raise InvalidInput("distance", self.distance, "give a number above zero")

    def ordered_pairs(self) -> list[tuple[int, int]]:
        """Pairs of positions of rows: the first row is at most the factor times the second."""
        pairs = permutations(range(len(self.rows)), 2)
        return [pair for pair in pairs if pair[0] == 0 or not self.one_way]

    def tops_and_bottoms(self) -> tuple[ExactOrFloat, ExactOrFloat]:
        """The first and the second rows of these pairs."""
        return (self.rows[:1], self.rows[1:]) if self.one_way else (self.rows, self.rows)


class Notion:
    """A notion of privacy."""

    bounds_lifts = False  # whether it bounds lifts on two sides, as LIP does, instead of ratios
    implies_lip = False  # whether it implies LIP of the value itself at the same level, under any prior

    @property
    def name(self) -> str:
        """The name of the notion."""
        return type(self).__name__

    def epsilon(self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None) -> float:
        """The smallest level at which the channel satisfies the notion."""
        return max(self.levels(channel, prior, secret).values())

    def holds(
        self, channel: Channel, prior: PriorOrSet | None, epsilon: float | Budget, secret: Secrets = None
    ) -> bool:
        """Whether the channel satisfies the notion at this level: LIP on both sides, others at the smaller one."""
        budget = Budget.of(epsilon)
        limits = {"lower": budget.lower, "upper": budget.upper, None: budget.smaller}
        levels = self.levels(channel, prior, secret)
        return all(level <= limits[side] for side, level in levels.items())

    def levels(
        self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None
    ) -> dict[str | None, float]:
        """The level of each side; one without a side where the notion has none."""
        return {breach.side: breach.level for breach in self.worst(channel, prior, secret)}

    def worst(self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None) -> Breaches:
        """The level; pairwise notions also name the two secrets and the report that have it."""
        return (Breach(None, None, None, self.epsilon(channel, prior, secret)),)


_CONDITIONS = ("compared_rows", "inequalities", "worst")  # the methods that say what a cone demands


class Cone(Notion):
    """A notion whose condition on a channel is linear in each of its columns. Plans can be designed for it.

    It bounds the ratios within the columns of `compared_rows`; LIP, which bounds lifts, has its own inequalities. A
    subclass is known to plan files by its name as soon as it is defined; its `document` has the arguments that make it.
    A subclass that changes what is compared does not inherit `bounds_lifts` and `implies_lip`: they are false unless it
    states them. A subclass that bounds ratios and does not say what it compares is refused when it is defined.
    """

    by_name: ClassVar[dict[str, type[Cone]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for flag in ("bounds_lifts", "implies_lip"):
            owner = next(base for base in cls.__mro__ if flag in vars(base))
            if any(getattr(cls, method) is not getattr(owner, method, None) for method in _CONDITIONS):
                setattr(cls, flag, False)  # the base stated it for another condition
        if not cls.bounds_lifts and cls.compared_rows is Cone.compared_rows:
            advice = "define the method compared_rows, which says what is compared"
            raise InvalidInput("notion", cls.__name__, advice)
        enter_class(Cone.by_name, cls.__name__, cls, "notion")

    def compared_rows(
        self, columns: ExactOrFloat, labels: Sequence[Label], prior: PriorOrSet | None, secret: Secrets
    ) -> list[ComparedRows]:
        """Arrays whose rows are compared with each other, made from the columns of a channel, and their labels.

        Columns of integers have to give integers or fractions, zero or more: they are certified.
        """
        raise TypeError(f"{self.name} bounds lifts and compares no rows")

    def checked_rows(
        self, columns: ExactOrFloat, labels: Sequence[Label], prior: PriorOrSet | None, secret: Secrets
    ) -> list[ComparedRows]:
        """`compared_rows`, or an error if a subclass gives anything else than a list of `ComparedRows`."""
        groups = self.compared_rows(columns, labels, prior, secret)
        if not isinstance(groups, list) or not all(isinstance(group, ComparedRows) for group in groups):
            raise InvalidInput("compared_rows", type(groups).__name__, "return a list of ComparedRows")
        return groups

    def levels(
        self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None
    ) -> dict[str | None, float]:
        """The level of each side. Those of a plan's channel are proven, if they can be, and rounded up."""
        channel = Channel.of(channel)
        measured = super().levels(channel, prior, secret)  # refuses what does not fit together
        known = channel.levels and channel.levels(prior, secret, self)
        return {side: known[side] for side in measured} if known else measured

    def worst(self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None) -> Breaches:
        """The two secrets and the report with the largest ratio."""
        channel = Channel.of(channel).drop_unused()
        groups = self.checked_rows(channel.matrix, channel.inputs, prior, secret)
        pairs = [_worst_pair(group, channel.outputs) for group in groups]
        return (max(pairs, key=lambda pair: pair.level, default=Breach(None, None, None, 0.0)),)

    def inequalities(
        self, budget: Budget, prior: PriorOrSet, secret: Secrets = None, exact: bool = False
    ) -> ExactOrFloat:
        """The rows `A` of `A @ column >= 0`; a column is allowed if it meets all and is not negative.

        They are `e**(eps * distance) row' - row` for all ordered pairs of compared rows, up to a factor. With `exact`
        they are fractions: only the factor is rounded to a float.
        """
        level = budget.smaller
        groups = self.checked_rows(_single_columns(len(prior), exact), prior.labels, prior, secret)
        rows = [
            _inequality(group.rows[first], group.rows[second], level * group.distance)
            for group in groups
            for first, second in group.ordered_pairs()
        ]
        return np.array(rows).reshape(-1, len(prior))

    def require_feasible(self, budget: Budget, prior: PriorOrSet) -> None:
        """Raise an error if no channel can have this budget."""
        if math.isinf(budget.smaller):
            raise InvalidInput("epsilon", budget, f"{self.name} has one level: give one finite number")

    def document(self) -> dict[str, Any]:
        """The notion as JSON."""
        return {"name": self.name}


@dataclass(frozen=True)
class LIP(Cone):
    """Local information privacy: no report moves the belief in any secret by more than a factor.

    `e**-lower <= Pr(g | y) / Pr(g) <= e**upper` for all secrets and reports (Definition 6 of the paper).
    With a `PriorSet` it has to hold for every prior of the set (bounded prior), with `PriorSet.all` for
    every prior there is (worst case), where it equals LDP.

    >>> LIP().epsilon(Channel([[0.75, 0.25], [0.25, 0.75]]), Prior([0.5, 0.5])) == math.log(2)
    True
    """

    bounds_lifts = implies_lip = True

    def sides(
        self, channel: Channel, prior: PriorOrSet | None, secret: Secrets = None
    ) -> tuple[float, float]:
        """The levels downwards and upwards: `-log` of the smallest lift and `log` of the largest."""
        levels = self.levels(channel, prior, secret)
        return levels["lower"], levels["upper"]

    def worst(self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None) -> Breaches:
        """The secrets and reports at which the lift is smallest and largest."""
        channel, prior = _channel_and_prior(channel, prior, "LIP")
        groups = secret_means(secret, channel.matrix, channel.inputs)
        means = np.vstack([rows for rows, _ in groups])
        secrets = [label for _, labels in groups for label in labels]
        lowest, highest = prior.extremes(channel.matrix)
        with np.errstate(divide="ignore", invalid="ignore"):
            down = np.log(highest / means)
            up = np.where(means > 0, np.log(means / lowest), -np.inf)
        return (
            _largest_level("lower", down, secrets, channel.outputs),
            _largest_level("upper", up, secrets, channel.outputs),
        )

    def require_feasible(self, budget: Budget, prior: PriorOrSet) -> None:
        """Every budget is feasible: the constant column has lift one."""

    def inequalities(
        self, budget: Budget, prior: PriorOrSet, secret: Secrets = None, exact: bool = False
    ) -> ExactOrFloat:
        """`T r >= lo (p r)` and `T r <= hi (p r)`, for every secret and every corner of the prior set."""
        groups = secret_means(secret, _single_columns(len(prior), exact), prior.labels)
        corners = np.array(prior.corners(), dtype=object) if exact else prior.vertices()
        number = Fraction if exact else float
        pairs = [(row, p) for p in corners for rows, _ in groups for row in rows]
        down = [row - number(budget.lo) * p for row, p in pairs if math.isfinite(budget.lower)]
        up = [number(budget.hi) * p - row for row, p in pairs if math.isfinite(budget.hi)]
        return np.array(down + up).reshape(-1, len(prior))


@dataclass(frozen=True)
class LDP(Cone):
    """Local differential privacy: any two values give any report with similar probability.

    `Q[x, y] <= e**eps Q[x', y]` (Definition 1). It needs no prior, and holds no matter what is known.

    >>> LDP().epsilon(Channel([[0.75, 0.25], [0.25, 0.75]])) == math.log(3)
    True
    """

    implies_lip = True

    def compared_rows(
        self, columns: ExactOrFloat, labels: Sequence[Label], prior: PriorOrSet | None, secret: Secrets
    ) -> list[ComparedRows]:
        """The columns themselves: all values are compared."""
        return [ComparedRows(columns, labels)]


@dataclass(frozen=True)
class Pufferfish(Cone):
    """Local Pufferfish privacy: any two secrets give any report with similar probability.

    `(T r)[g] <= e**eps (T r)[g']` for the given pairs of secrets (all pairs by default), in every
    scenario: one `Secret`, or a sequence of them where the correlation is only known to lie in a set
    (Definition 5). Without a secret it protects the value itself and equals LDP.

    >>> secret = Secret([[0.6, 0.4], [0.4, 0.6]])
    >>> round(Pufferfish(pairs=[(0, 1)]).epsilon(Channel.identity(2), None, secret), 6)
    0.405465
    """

    pairs: tuple[tuple[int, int], ...] | None = None

    def __init__(self, pairs: Iterable[tuple[int, int]] | None = None) -> None:
        integers = None if pairs is None else tuple((int(g), int(h)) for g, h in pairs)
        object.__setattr__(self, "pairs", integers)

    def compared_rows(
        self, columns: ExactOrFloat, labels: Sequence[Label], prior: PriorOrSet | None, secret: Secrets
    ) -> list[ComparedRows]:
        """The means of the columns given the secrets of each pair, in every scenario."""
        return [
            ComparedRows(means[group], [secrets[g] for g in group])
            for means, secrets in secret_means(secret, columns, labels)
            for group in self._groups(len(means))
        ]

    def document(self) -> dict[str, Any]:
        """The notion as JSON."""
        pairs = {} if self.pairs is None else {"pairs": [list(pair) for pair in self.pairs]}
        return {**super().document(), **pairs}

    def _groups(self, size: int) -> list[list[int]]:
        """The secrets to compare with each other: each pair, or all at once where no pairs are given."""
        for pair in self.pairs or ():
            if not all(0 <= g < size for g in pair):
                advice = f"give two secrets by their positions, from 0 to {size - 1}"
                raise InvalidInput("pairs", pair, advice)
        return [list(range(size))] if self.pairs is None else [list(pair) for pair in self.pairs]


@dataclass(frozen=True)
class PairwiseLDP(Cone):
    """Local differential privacy with a budget of its own for each pair of values.

    `Q[x, y] <= e**(eps * distances[x, x']) Q[x', y]` for all reports. The level `eps` multiplies the distances, a
    matrix with a row for each value; its diagonal does not count. An infinite distance leaves the pair free. Special
    cases: LDP, where all distances are one; geo-indistinguishability, where they are distances on a map, and `eps` is
    per unit of length; and unprotected values, whose rows are infinite: their reports may reveal them.

    >>> far = PairwiseLDP([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> round(far.epsilon(Channel([[0.8, 0.2], [0.4, 0.6], [0.2, 0.8]])), 6)  # log(3), of the first two values
    1.098612
    """

    distances: tuple[tuple[float, ...], ...]

    def __init__(self, distances: Any) -> None:
        try:
            rows = tuple(tuple(float(entry) for entry in row) for row in distances)
        except (TypeError, ValueError):
            rows = ()
        if not rows or any(len(row) != len(rows) for row in rows):
            advice = "give a square matrix of numbers, a row for each value"
            raise InvalidInput("distances", distances, advice)
        apart = [(x, z) for x in range(len(rows)) for z in range(len(rows)) if x != z]
        for x, z in apart:
            if not rows[x][z] > 0:
                advice = "give positive numbers; merge values that nobody may tell apart"
                raise InvalidInput(f"distances[{x}][{z}]", rows[x][z], advice)
        if apart and all(math.isinf(rows[x][z]) for x, z in apart):
            advice = "all are infinite, which protects nobody: give at least one finite distance"
            raise InvalidInput("distances", math.inf, advice)
        object.__setattr__(self, "distances", rows)

    @property
    def free_pairs(self) -> int:
        """How many ordered pairs of different values have no bound: their distance is infinite."""
        pairs = permutations(range(len(self.distances)), 2)
        return sum(math.isinf(self.distances[x][z]) for x, z in pairs)

    def compared_rows(
        self, columns: ExactOrFloat, labels: Sequence[Label], prior: PriorOrSet | None, secret: Secrets
    ) -> list[ComparedRows]:
        """Each pair of values: in both directions at once if the distance is the same, otherwise one by one."""
        if len(columns) != len(self.distances):
            advice = f"it is for {len(self.distances)} values: give a row for each of {len(columns)}"
            raise InvalidInput("distances", len(self.distances), advice)
        compared = []
        for x, z in permutations(range(len(columns)), 2):
            there, back = self.distances[x][z], self.distances[z][x]
            if math.isinf(there) or (there == back and x > z):
                continue
            pair = [x, z]
            names = [labels[x], labels[z]]
            compared.append(ComparedRows(columns[pair], names, there, one_way=there != back))
        return compared

    def inequalities(
        self, budget: Budget, prior: PriorOrSet, secret: Secrets = None, exact: bool = False
    ) -> ExactOrFloat:
        """The inequalities of all pairs but those that follow from others: `x` to `z` from `x` to `w` and `w` to `z`.

        A detour over `w` may be longer by rounding: otherwise rounding would add corners to the exact inequalities.
        Both legs of a detour must come before the pair in the order of distances, so no two pairs imply each other.
        """
        apart = np.array(self.distances)
        np.fill_diagonal(apart, math.inf)
        place = np.argsort(np.argsort(apart, axis=None, kind="stable")).reshape(apart.shape)
        implied = np.zeros(apart.shape, dtype=bool)
        for w in range(len(apart)):
            before = np.maximum(place[:, [w]], place[w]) < place
            implied |= before & (apart[:, [w]] + apart[w] <= apart * (1 + 1e-12))
        needed = PairwiseLDP(np.where(implied, math.inf, apart))
        return super(PairwiseLDP, needed).inequalities(budget, prior, secret, exact)

    def document(self) -> dict[str, Any]:
        """The notion as JSON: real numbers are texts."""
        return {**super().document(), "distances": [[repr(entry) for entry in row] for row in self.distances]}


@dataclass(frozen=True)
class MIL(Notion):
    """Maximal information leakage: `log sum_y max_x Q[x, y]` (Definition 2). It needs no prior.

    >>> MIL().epsilon(Channel.identity(4)) == math.log(4)
    True
    """

    def epsilon(self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None) -> float:
        """The logarithm of how much more often the best guess is right, at worst."""
        return max(0.0, math.log(Channel.of(channel).drop_unused().matrix.max(axis=0).sum()))


@dataclass(frozen=True)
class MIP(Notion):
    """Mutual information privacy: `I(X; Y)`, in nats (Definition 3), at worst over a finite set of priors.

    >>> MIP().epsilon(Channel.identity(2), Prior([0.5, 0.5])) == math.log(2)
    True
    """

    def epsilon(self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None) -> float:
        """The mutual information of value and report."""
        channel, prior = _channel_and_prior(channel, prior, "MIP")
        if not prior.members:
            advice = "mutual information is measured under one prior, or a finite set of them"
            raise InvalidInput("prior", prior, advice)
        return max(_mutual_information(channel, p) for p in prior.members)


@dataclass(frozen=True)
class DI(Cone):
    """Differential identifiability: `Pr(x | y) <= e**eps Pr(x' | y)` for all pairs (Definition 4).

    Under a set of priors it is measured at the corners, and it is certified for one prior only.

    >>> DI().epsilon(Channel([[0.75, 0.25], [0.25, 0.75]]), Prior([0.5, 0.5])) == math.log(3)
    True
    """

    def worst(self, channel: Channel, prior: PriorOrSet | None = None, secret: Secrets = None) -> Breaches:
        """The two values and the report with the largest ratio."""
        return super().worst(*_channel_and_prior(channel, prior, "DI"))

    def require_feasible(self, budget: Budget, prior: PriorOrSet) -> None:
        """Raise an error if the prior alone breaks the level: posteriors are compared."""
        super().require_feasible(budget, prior)
        level = self.epsilon(Channel(np.ones((len(prior), 1))), prior)
        if level > budget.smaller:
            advice = "use a larger epsilon, or design for LIP" if math.isfinite(level) else "design for LIP"
            raise Infeasible(f"the prior alone has a DI level of {level:.4g}: {advice}")

    def compared_rows(
        self, columns: ExactOrFloat, labels: Sequence[Label], prior: PriorOrSet | None, secret: Secrets
    ) -> list[ComparedRows]:
        """The joint probabilities of values and reports, at every corner of a prior set."""
        assert prior is not None
        if columns.dtype.kind == "f":
            return [ComparedRows(p[:, None] * columns, labels) for p in prior.vertices()]
        if not isinstance(prior, Prior):
            advice = "differential identifiability is certified for one prior: give a Prior"
            raise InvalidInput("prior", prior, advice)
        return [ComparedRows(np.array(prior.weights, dtype=object)[:, None] * columns, labels)]


class LipSides:
    """The two sides of a level of LIP, and the level."""

    lip_lower: float
    lip_upper: float

    @property
    def lip(self) -> float:
        """The larger of the two sides."""
        return max(self.lip_lower, self.lip_upper)


@dataclass(frozen=True)
class Leakage(LipSides):
    """The levels of one channel under every notion; prints as a table.

    Under a set of priors that is not a finite list `mip` is None, and so is `di` if it has too many corners. `bounds`
    names the levels that are upper bounds: those of a channel too large to write out, or of one that leaks a little
    more than the reports. `assumed_prior` says that the prior is assumed, not known; the table then says which levels
    rest on it.
    """

    lip_lower: float
    lip_upper: float
    ldp: float
    mil: float
    mip: float | None
    di: float | None
    pufferfish: float
    bounds: tuple[str, ...] = ()
    assumed_prior: bool = False

    @property
    def levels(self) -> dict[str, float | None]:
        """The level of each notion, and of both sides of LIP, by name."""
        return {
            "LIP": self.lip,
            "downwards": self.lip_lower,
            "upwards": self.lip_upper,
            "LDP": self.ldp,
            "Pufferfish": self.pufferfish,
            "DI": self.di,
            "MIL": self.mil,
            "MIP": self.mip,
        }

    def _repr_html_(self) -> str:
        return showing.html(self)

    def to_frame(self, library: Library | None = None) -> Any:
        """The level of each notion, and whether it is an upper bound, as a data frame of pandas, polars or pyarrow."""
        levels = self.levels
        bounds = [name in self.bounds for name in levels]
        return to_frame({"notion": [*levels], "level": [*levels.values()], "is_bound": bounds}, library)

    def __str__(self) -> str:
        return showing.text(self)


def leakage(
    channel: Channel | npt.ArrayLike, prior: PriorOrSet | Sequence[float], secret: Secrets = None
) -> Leakage:
    """All levels of a channel in one object.

    >>> print(leakage([[0.75, 0.25], [0.25, 0.75]], Prior([0.5, 0.5])))
    notion           level  meaning
    LIP             0.6931  belief in a secret moves by at most e^level
      downwards     0.6931  a secret becomes less likely by at most this
      upwards       0.4055  a secret becomes more likely by at most this
    LDP             1.0986  for the value itself, under any prior
    Pufferfish      1.0986  any two secrets, likelihood ratio
    DI              1.0986  any two values, posterior ratio
    MIL             0.4055  best guess, averaged over reports, any prior
    MIP             0.1308  mutual information, in nats
    """
    channel, prior = _channel_and_prior(channel, prior, "leakage")
    lower, upper = LIP().sides(channel, prior, secret)
    di = None
    with suppress(TooLarge):
        di = DI().epsilon(channel, prior)
    return Leakage(
        lip_lower=lower,
        lip_upper=upper,
        ldp=LDP().epsilon(channel),
        mil=MIL().epsilon(channel),
        mip=MIP().epsilon(channel, prior) if prior.members else None,
        di=di,
        pufferfish=Pufferfish().epsilon(channel, prior, secret),
        assumed_prior=prior.assumed,
    )


def leakage_bounds(lip_lower: float, lip_upper: float, ldp: float, prior: PriorOrSet) -> Leakage:
    """The levels that follow from LIP and LDP of the value itself, for a channel that is not written out.

    Lifts lie in `[lo, hi]`. A column is at most `hi` times its probability, so MIL is at most the upper side of LIP.
    The lift of a value has the mean one, and `r log r` is convex, so mutual information is at most that of lifts which
    are `lo` or `hi`. Two posteriors differ by LDP and the ratio of their priors.

    >>> leakage_bounds(1.0, 1.0, 2.0, Prior([0.2, 0.8])).mip.__round__(4)
    0.4621
    """
    di = None
    with suppress(TooLarge), np.errstate(divide="ignore"):
        di = ldp + max(float(np.log(p.max() / p.min())) for p in prior.vertices())
    lo, hi = math.exp(-lip_lower), math.exp(lip_upper)
    share_high = float(window_mass(lo, hi))  # reports with lift `hi`, if all others have lift `lo`
    mip = share_high * hi * lip_upper - (1 - share_high) * lo * (lip_lower if lo > 0 else 0.0)
    return Leakage(
        lip_lower=lip_lower,
        lip_upper=lip_upper,
        ldp=ldp,
        mil=min(lip_upper, ldp),
        mip=max(mip, 0.0) if prior.members else None,
        di=di,
        pufferfish=ldp,
        bounds=("MIL", "MIP", "DI"),
        assumed_prior=prior.assumed,
    )


def read_notion(document: Mapping[str, Any]) -> Cone:
    """Read a notion from its JSON document.

    >>> read_notion(Pufferfish([(0, 1)]).document()).pairs
    ((0, 1),)
    """
    cone: Callable[..., Cone] = class_named(Cone.by_name, document["name"], "notion")
    return cone(**{key: part for key, part in document.items() if key != "name"})


# Plans can be designed for cones; the other notions can only be measured.
CONES: dict[str, Cone] = {cone.name: cone for cone in (LIP(), LDP(), Pufferfish(), DI())}
NOTIONS: dict[str, Notion] = {**CONES, **{notion.name: notion for notion in (MIL(), MIP())}}


def as_cone(notion: Any) -> Cone:
    """A notion that can be designed for and certified; LIP for None."""
    if notion is None:
        return LIP()
    if not isinstance(notion, Cone):
        only = "it is not a cone, and can only be measured; " if isinstance(notion, Notion) else ""
        advice = f"{only}design for one of {', '.join(CONES)}, such as LIP(), or an object of your own Cone"
        raise InvalidInput("notion", notion, advice)
    return notion


def as_prior_or_set(prior: PriorOrSet | Sequence[float]) -> PriorOrSet:
    """A prior or a set of priors as it is; a sequence or mapping becomes a prior."""
    return prior if isinstance(prior, (Prior, PriorSet)) else Prior.of(prior)


def scenarios(secret: Secret | Sequence[Secret]) -> tuple[Secret, ...]:
    """One secret or several, as a tuple."""
    secrets = (secret,) if isinstance(secret, Secret) else tuple(secret)
    if not secrets:
        raise InvalidInput("secret", secret, "give at least one, or None if the value itself is the secret")
    return secrets


def _channel_and_prior(
    channel: Channel | npt.ArrayLike, prior: PriorOrSet | Sequence[float] | None, measure: str
) -> tuple[Channel, PriorOrSet]:
    """The channel without unused reports, and the prior in its order; an error without a prior.

    A set of priors must have that order already.
    """
    if prior is None:
        raise InvalidInput(
            "prior", None, f"{measure} is measured against a prior: give a Prior or a PriorSet"
        )
    channel, prior = Channel.of(channel).drop_unused(), as_prior_or_set(prior)
    if isinstance(prior, Prior):
        return channel, channel.align(prior)
    if channel.align(prior.centre).labels != prior.labels:
        advice = "list the values of the set in the order of the channel's inputs"
        raise InvalidInput("prior", prior.labels[:5], advice)
    return channel, prior


def secret_means(secret: Secrets, columns: ExactOrFloat, labels: Sequence[Label]) -> LabelledMeans:
    """For each scenario, the means of the columns given each secret (`Pr(y | g)`), and the labels of the secrets.

    Without a secret the value itself is the secret, and the columns are the means. Those of integers are exact.
    """
    if secret is None:
        return [(columns, labels)]
    for s in scenarios(secret):
        if s.rows.shape[1] != len(columns):
            advice = f"its rows need {len(columns)} numbers, one for each value"
            raise InvalidInput("secret", s.rows.shape, advice)
    exact = columns.dtype.kind != "f"
    return [(s.exact_means(columns) if exact else s.rows @ columns, s.labels) for s in scenarios(secret)]


def _single_columns(size: int, exact: bool) -> ExactOrFloat:
    """The columns that are one for one value and zero for the others: integers or floats."""
    return np.eye(size, dtype=object if exact else float)


def _inequality(row: ExactOrFloat, other: ExactOrFloat, level: float) -> ExactOrFloat:
    """`e**level other - row`, divided by the factor where it is too large for a solver, or for a float."""
    number = float if row.dtype.kind == "f" else Fraction
    if level > _LARGE_LEVEL:
        return np.asarray(other - number(math.exp(-level)) * row)
    return np.asarray(number(math.exp(level)) * other - row)


def _largest_level(side: str, levels: Array, secrets: Sequence[Label], outputs: Sequence[Label]) -> Breach:
    g, y = divmod(int(np.argmax(levels)), len(outputs))
    return Breach(side, secrets[g], outputs[y], max(0.0, float(levels[g, y])))


def _worst_pair(group: ComparedRows, outputs: Sequence[Label]) -> Breach:
    """The largest ratio within a column, per unit of distance; columns that are all zero do not count."""
    tops, bottoms = group.tops_and_bottoms()
    largest, smallest = tops.max(axis=0), bottoms.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.where(largest > 0, np.log(largest / smallest), 0.0) / group.distance
    y = int(levels.argmax())
    top, bottom = int(tops[:, y].argmax()), int(bottoms[:, y].argmin()) + group.one_way
    level = max(0.0, float(levels[y]))
    return Breach(None, group.labels[top], outputs[y], level, group.labels[bottom])


def _mutual_information(channel: Channel, prior: Prior) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = prior.probabilities[:, None] * channel.matrix * np.log(channel.lift(prior))
    return max(0.0, float(np.nansum(nats)))  # what never happens is zero times infinity
