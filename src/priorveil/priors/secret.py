"""Secrets: a variable behind the value, which is protected instead of the value itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, as_matrix, exact_product, integer_weights
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, InvalidPrior, InvalidSecret, plural
from priorveil.priors.disclosure import require_few_values, require_no_rare, round_weights
from priorveil.priors.domain import LabelDomain, as_labels, label_from_json, label_to_json
from priorveil.priors.number_files import file_errors, label_order, read_matrix
from priorveil.priors.people_columns import complete_domain, people_labels
from priorveil.priors.prior import Prior, as_distribution
from priorveil.priors.read_only import ReadOnly

_SUM = 1e4  # the weight of the equation that a mixture adds up to one


class Secret(ReadOnly):
    """A latent variable `G` that the value `X` reveals: `T[g][x] = Pr(X = x | G = g)`.

    Only the set of rows matters, never the law of `G`: a continuous secret enters as its rows on a grid,
    or as the extreme ones. The attribute `rows` is a read-only array, `labels` a tuple.

    >>> Secret([[0.9, 0.1], [0.3, 0.7]], labels=["ill", "well"])
    Secret(2 secrets, 2 values)
    """

    def __init__(self, rows: npt.ArrayLike, labels: Iterable[Hashable] | None = None) -> None:
        self.rows = as_matrix("rows", rows, InvalidSecret, "secret and a column for each value")
        for g, row in enumerate(self.rows):
            try:
                as_distribution(f"rows[{g}]", row, zero=True)
            except InvalidPrior as error:
                advice = "every row is a distribution over the values"
                hint = Hint("Secret.from_joint", purpose="for counts or rounded figures")
                raise InvalidSecret(error.argument, error.value, f"{error.advice}; {advice}", hint) from error
        self.labels = as_labels(labels, len(self.rows))

    @classmethod
    def from_joint(cls, table: npt.ArrayLike, labels: Iterable[Hashable] | None = None) -> Self:
        """From a joint table (counts or probabilities) with a row for each secret.

        >>> Secret.from_joint([[3, 1], [0, 4]]).rows.tolist()
        [[0.75, 0.25], [0.0, 1.0]]
        """
        joint = as_matrix("table", table, InvalidSecret, "secret and a column for each value")
        if not np.isfinite(joint).all() or (joint < 0).any():
            raise InvalidSecret("table", table, "give finite numbers, zero or more")
        mass = joint.sum(axis=1)
        if (empty := np.flatnonzero(mass == 0)).size:
            raise InvalidSecret(f"table[{empty[0]}]", table, "this secret never happens: leave its row out")
        return cls(joint / mass[:, None], labels)

    @classmethod
    def from_columns(
        cls,
        secrets: Iterable[Hashable],
        values: Iterable[Hashable],
        domain: Iterable[Hashable] | None = None,
        *,
        public: bool = False,
        allow_rare: bool = False,
    ) -> Self:
        """From two columns of data, a row for each person; `domain` gives the order of the values.

        A plan publishes the rows. The rules of `Prior.from_values` hold for every pair of a secret and a value, and
        the rows are rounded to two significant digits. `nearest` makes a rounded prior fit them.

        >>> Secret.from_columns(["hi"] * 20 + ["lo"] * 40, ["a", "b"] * 10 + ["a"] * 30 + ["b"] * 10).rows.tolist()
        [[0.5, 0.5], [0.75, 0.25]]
        """
        domain = None if domain is None else LabelDomain(domain).labels
        behind, observed = people_labels("secrets", secrets), people_labels("values", values, domain or ())
        if len(behind) != len(observed):
            sizes = f"{plural(len(observed), 'value')}, but {plural(len(behind), 'secret')}"
            raise InvalidInput("values", NOT_SHOWN, f"{sizes}: give one value for each secret")
        rows, columns = complete_domain(behind, None), complete_domain(observed, domain)
        pairs = Counter(zip(behind, observed, strict=True))
        counts = [[pairs[g, v] for v in columns] for g in rows]
        if not public:
            require_few_values(max(len(rows), len(columns) if domain is None else 0))
        if not public and not allow_rare:
            require_no_rare([count for row in counts for count in row], what="secret-value pair")
        return cls.from_joint([round_weights(row) for row in counts], rows)

    @classmethod
    def from_file(cls, path: str | Path, prior: Prior, *, normalise: bool = False) -> Self:
        """The secret in a CSV or JSON file: a row for each secret, a column for each value of the prior.

        CSV: the first line has the values and the first column the secrets; or numbers alone, in the order of the
        prior. JSON: a list of rows, or `{"matrix": rows, "inputs": secrets, "outputs": values}`. `normalise` divides
        each row by its sum. A broken file raises `InvalidFile`, which has the line.
        """
        matrix = read_matrix(Path(path))
        columns = matrix.column_labels or range(len(matrix.rows[0]))
        with file_errors(path):
            rows = np.array((matrix.shares() if normalise else matrix).rows)
            return cls(rows[:, label_order(path, columns, prior.labels)], matrix.row_labels)

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Each row as integers in exactly the same proportions."""
        return tuple(integer_weights(row) for row in self.rows)

    def exact_means(self, table: Ints) -> npt.NDArray[Any]:
        """The mean of every column of a table of integers, given each secret, as exact fractions."""
        totals = np.array([[Fraction(1, sum(row))] for row in self.weights])
        return np.asarray(np.array(exact_product(self.weights, table), dtype=object) * totals)

    def document(self) -> dict[str, Any]:
        """The secret as JSON."""
        rows = [[repr(v) for v in row] for row in self.rows.tolist()]
        return {"labels": [label_to_json(label) for label in self.labels], "rows": rows}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a secret from its JSON document."""
        labels = map(label_from_json, document["labels"])
        return cls([[float(v) for v in row] for row in document["rows"]], labels)

    def require_fits(self, prior: Prior, tolerance: float = 1e-6) -> None:
        """Raise `InvalidSecret` if no law of `G` gives the prior: it has to be a mixture of the rows."""
        if len(prior) != self.rows.shape[1]:
            advice = f"its rows need {len(prior)} numbers, one for each value of the prior"
            raise InvalidSecret("secret", self.rows.shape, advice)
        P = prior.probabilities
        _, distance = self._least_squares(self.rows.T, P)
        if distance > tolerance * float(np.linalg.norm(P)):
            mismatch = f"the prior is not a mixture of these rows (distance {distance:.3g})"
            advice = f"{mismatch}: Pr(X) and Pr(X | G) contradict each other"
            hint = Hint("secret.nearest(prior)", purpose="if figures are rounded")
            raise InvalidSecret("secret", NOT_SHOWN, advice, hint)

    def nearest(self, prior: Prior) -> Prior:
        """The mixture of these rows nearest to a prior (least squares), for figures that were rounded.

        >>> Secret([[0.6, 0.4], [0.5, 0.5]]).nearest(Prior([0.55, 0.45])).probabilities.round(9).tolist()
        [0.55, 0.45]
        """
        system = np.vstack([self.rows.T, np.full(len(self.rows), _SUM)])
        weights, _ = self._least_squares(system, np.append(prior.probabilities, _SUM))
        return Prior((weights / weights.sum()) @ self.rows, prior.domain, assumed=prior.assumed)

    def _least_squares(self, system: Array, target: Array) -> tuple[Array, float]:
        from scipy.optimize import nnls  # imported when used: it is slow to load

        weights, distance = nnls(system, target, maxiter=100 * max(self.rows.shape))
        return weights, float(distance)

    def __len__(self) -> int:
        return len(self.rows)

    def _content(self) -> Hashable:
        return self.labels, self.weights

    def __repr__(self) -> str:
        return f"Secret({self.rows.shape[0]} secrets, {self.rows.shape[1]} values)"
