"""Secrets: a variable behind the value that is to be protected in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, InvalidPrior, InvalidSecret, plural
from priorveil.priors.labels import (
    Array,
    Label,
    as_label,
    as_labels,
    distribution,
    dyadic,
    frozen,
    numbers_first,
)
from priorveil.priors.prior import Prior

_SUM = 1e4  # how much more it matters that a mixture adds up to one than that it fits


class Secret:
    """A latent variable `G` that the value `X` gives away: `T[g][x] = Pr(X = x | G = g)`.

    Only the set of rows matters, never the law of `G`: a continuous secret enters as its rows on a grid,
    or as the extreme ones.

    >>> Secret([[0.9, 0.1], [0.3, 0.7]], labels=["ill", "well"])
    Secret(2 secrets, 2 values)
    """

    def __init__(self, rows: npt.ArrayLike, labels: Iterable[Hashable] | None = None) -> None:
        try:
            T = frozen(rows)
        except (TypeError, ValueError) as error:
            raise InvalidSecret("rows", rows, "give a matrix of numbers, a row for each secret") from error
        if T.ndim != 2 or 0 in T.shape:
            raise InvalidSecret(
                "rows", rows, "give a matrix, a row for each secret and a column for each value"
            )
        for g, row in enumerate(T):
            try:
                distribution(f"rows[{g}]", row, zero=True)
            except InvalidPrior as error:
                raise InvalidSecret(
                    error.argument, error.value, "every row is a distribution over the values"
                ) from error
        self._rows = T
        self._labels = as_labels(labels, len(T))

    @classmethod
    def from_joint(cls, table: npt.ArrayLike, labels: Iterable[Hashable] | None = None) -> Self:
        """From a joint table (counts or probabilities) with a row for each secret.

        >>> Secret.from_joint([[3, 1], [0, 4]]).rows.tolist()
        [[0.75, 0.25], [0.0, 1.0]]
        """
        joint = np.asarray(table, dtype=np.float64)
        if joint.ndim != 2 or not np.isfinite(joint).all() or (joint < 0).any():
            raise InvalidSecret("table", table, "give a matrix of numbers, zero or more")
        mass = joint.sum(axis=1)
        if (mass == 0).any():
            g = int(np.flatnonzero(mass == 0)[0])
            raise InvalidSecret(f"table[{g}]", table, "this secret never happens: leave its row out")
        return cls(joint / mass[:, None], labels)

    @classmethod
    def from_columns(
        cls, secrets: Iterable[Hashable], values: Iterable[Hashable], domain: Iterable[Label] | None = None
    ) -> Self:
        """From two columns of data, a row for each person; `domain` gives the order of the values.

        >>> Secret.from_columns(["hi", "lo", "lo"], ["a", "a", "b"]).rows.tolist()
        [[1.0, 0.0], [0.5, 0.5]]
        """
        known, told = list(secrets), list(values)
        if len(known) != len(told):
            raise InvalidInput(
                "values", plural(len(told), "value"), f"there are {len(known)} secrets: give as many"
            )
        pairs = [(as_label(g), as_label(v)) for g, v in zip(known, told, strict=True)]
        names = list(domain) if domain is not None else sorted({v for _, v in pairs}, key=numbers_first)
        foreign = sorted({v for _, v in pairs} - set(names), key=str)
        if foreign:
            raise InvalidInput(
                "values", foreign, "these are not in the domain: add them to it or leave them out"
            )
        rows = sorted({g for g, _ in pairs}, key=numbers_first)
        seen = Counter(pairs)
        return cls.from_joint([[seen[g, v] for v in names] for g in rows], rows)

    @property
    def rows(self) -> Array:
        """`T`, read-only."""
        return self._rows

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the secrets, in order."""
        return self._labels

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Each row as integers in exactly the same proportions."""
        return tuple(_sparse_dyadic(row) for row in self._rows)

    def require_fits(self, prior: Prior, tolerance: float = 1e-6) -> None:
        """Refuse a secret whose rows cannot mix to the prior: then no law of `G` gives both."""
        from scipy.optimize import nnls  # imported when used: it is slow to load

        if len(prior) != self._rows.shape[1]:
            advice = f"its rows need {len(prior)} numbers, one for each value of the prior"
            raise InvalidSecret("secret", self._rows.shape, advice)
        P = prior.probabilities
        _, distance = nnls(self._rows.T, P, maxiter=100 * max(self._rows.shape))
        if distance > tolerance * float(np.linalg.norm(P)):
            wrong = "the prior is no mixture of these rows: Pr(X) and Pr(X | G) contradict each other"
            advice = f"{wrong}; if figures are rounded, take secret.nearest(prior) as the prior"
            raise InvalidSecret("secret", f"distance {distance:.3g}", advice)

    def nearest(self, prior: Prior) -> Prior:
        """The mixture of these rows that is nearest to a prior (least squares): for figures that were rounded.

        >>> Secret([[0.6, 0.4], [0.5, 0.5]]).nearest(Prior([0.55, 0.45])).probabilities.round(9).tolist()
        [0.55, 0.45]
        """
        from scipy.optimize import nnls  # imported when used: it is slow to load

        system = np.vstack([self._rows.T, np.full(len(self._rows), _SUM)])
        weights, _ = nnls(system, np.append(prior.probabilities, _SUM), maxiter=100 * max(self._rows.shape))
        return Prior((weights / weights.sum()) @ self._rows, prior.labels)

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._labels == other._labels and np.array_equal(self._rows, other._rows)

    def __hash__(self) -> int:
        return hash((self._labels, self.weights))

    def __repr__(self) -> str:
        return f"Secret({self._rows.shape[0]} secrets, {self._rows.shape[1]} values)"


def _sparse_dyadic(row: Array) -> tuple[int, ...]:
    positive = row > 0
    whole = iter(dyadic(row[positive]))
    return tuple(next(whole) if p else 0 for p in positive)
