"""Channels: what is reported, given the value. Nothing here has heard of privacy."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidChannel, TooLarge, counted
from priorveil.priors import Array, Label, Prior, as_labels, frozen
from priorveil.priors.labels import places

_ROWS_ADD_UP = 1e-9  # how far from one a row may be before it is refused
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")  # a label that was a number; 007 was not
_JOINT_CELLS = 50_000_000  # a joint channel larger than this is refused


class Channel:
    """`Q[x, y] = Pr(Y = y | X = x)`: a row for each value, a column for each report.

    Arguments: `matrix`, rows that add up to one; `inputs` and `outputs`, their labels.

    >>> q = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> q.output_law(Prior([0.25, 0.75])).tolist()
    [0.375, 0.625]
    """

    def __init__(
        self,
        matrix: npt.ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> None:
        try:
            Q = frozen(matrix)
        except (TypeError, ValueError) as error:
            raise InvalidChannel(
                "matrix", matrix, "give a matrix of numbers, a row for each value"
            ) from error
        if Q.ndim != 2 or 0 in Q.shape:
            raise InvalidChannel(
                "matrix", Q.shape, "give a matrix, a row for each value and a column for each report"
            )
        _require_stochastic(Q)
        self._matrix = Q
        self._inputs = as_labels(inputs, Q.shape[0])
        self._outputs = as_labels(outputs, Q.shape[1])

    @classmethod
    def of(cls, channel: Channel | npt.ArrayLike) -> Channel:
        """The channel itself, or one made from a matrix."""
        return channel if isinstance(channel, Channel) else cls(channel)

    @classmethod
    def from_weights(
        cls,
        weights: npt.ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> Self:
        """The channel whose rows are proportional to the weights (counts, integers, rounded figures).

        >>> Channel.from_weights([[3, 1], [2, 2]]).matrix.tolist()
        [[0.75, 0.25], [0.5, 0.5]]
        """
        try:
            W = frozen(weights)
        except (TypeError, ValueError) as error:
            raise InvalidChannel(
                "weights", weights, "give a matrix of numbers, a row for each value"
            ) from error
        mass = W.sum(axis=1, keepdims=True) if W.ndim == 2 else np.ones(1)
        if W.ndim != 2 or not np.isfinite(W).all() or (W < 0).any() or (mass <= 0).any():
            raise InvalidChannel(
                "weights", weights, "give a matrix of numbers, zero or more, no row all zero"
            )
        return cls(W / mass, inputs, outputs)

    @classmethod
    def identity(cls, inputs: int | Iterable[Label]) -> Self:
        """The channel that reports the value as it is."""
        prior = Prior.uniform(inputs)
        return cls(np.eye(len(prior)), prior.labels, prior.labels)

    @property
    def matrix(self) -> Array:
        """`Q`, read-only."""
        return self._matrix

    @property
    def inputs(self) -> tuple[Label, ...]:
        """The names of the values."""
        return self._inputs

    @property
    def outputs(self) -> tuple[Label, ...]:
        """The names of the reports."""
        return self._outputs

    @property
    def shape(self) -> tuple[int, int]:
        """How many values and how many reports there are."""
        return self._matrix.shape[0], self._matrix.shape[1]

    def output_law(self, prior: Prior) -> Array:
        """`lam = P Q`, the law of the report."""
        law: Array = self.matched(prior).probabilities @ self._matrix
        return law

    def posterior(self, prior: Prior) -> Array:
        """`Pr(X = x | Y = y)`, shaped as the channel; nan under a report that never happens."""
        posterior: Array = self.matched(prior).probabilities[:, None] * self.lift(prior)
        return posterior

    def lift(self, prior: Prior) -> Array:
        """`Q[x, y] / lam[y] = Pr(x | y) / Pr(x)`; nan under a report that never happens.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).lift(Prior([0.5, 0.5])).tolist()
        [[1.5, 0.5], [0.5, 1.5]]
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            lift: Array = self._matrix / self.output_law(prior)
        return lift

    def alive(self) -> Channel:
        """The channel without reports that never happen, whatever the value."""
        used = self._matrix.max(axis=0) > 0
        if used.all():
            return self
        outputs = [label for label, u in zip(self._outputs, used, strict=True) if u]
        return Channel(self._matrix[:, used], self._inputs, outputs)

    def __matmul__(self, after: Channel | npt.ArrayLike) -> Channel:
        """Post-processing: the report of this channel goes through another one, whose values are its reports.

        >>> (Channel.identity(2) @ [[0.5, 0.5], [0.0, 1.0]]).matrix.tolist()
        [[0.5, 0.5], [0.0, 1.0]]
        """
        second = Channel.of(after)
        if second.shape[0] != self.shape[1]:
            raise InvalidChannel(
                "after", second.shape, f"it needs {counted(self.shape[1], 'row')}, one for each report"
            )
        rows = second._rows_about(self._outputs, "after")
        return Channel(_rows_to_one(self._matrix @ rows), self._inputs, second.outputs)

    def beside(self, other: Channel | npt.ArrayLike) -> Channel:
        """Side by side: both reports of the same value, their noise independent; the joint channel.

        Where both channels name their values, it is names that say which rows belong together.

        >>> Channel.identity(2).beside(Channel.identity(2)).shape
        (2, 4)
        """
        second = Channel.of(other)
        if second.shape[0] != self.shape[0]:
            raise InvalidChannel(
                "other", second.shape, f"it needs {counted(self.shape[0], 'row')}, one for each value"
            )
        d, cells = self.shape[0], self.shape[1] * second.shape[1]
        if d * cells > _JOINT_CELLS:
            raise TooLarge(f"the joint channel would have {d} x {cells} entries; the limit is {_JOINT_CELLS}")
        rows = second._rows_about(self._inputs, "other")
        joint = (self._matrix[:, :, None] * rows[:, None, :]).reshape(d, cells)
        return Channel(_rows_to_one(joint), self._inputs)

    def _rows_about(self, labels: tuple[Label, ...], argument: str) -> Array:
        """The rows in the order of `labels`; as they are where one side has no names but positions."""
        try:
            return self._matrix[places(self._inputs, labels)]
        except KeyError as missing:
            raise InvalidChannel(
                argument, list(self._inputs)[:5], f"it says nothing about {missing.args[0]!r}"
            ) from None

    def to_json(self) -> str:
        """As a JSON text: `{"inputs": [...], "outputs": [...], "matrix": [[...], ...]}`."""
        fields = {"inputs": self._inputs, "outputs": self._outputs, "matrix": self._matrix.tolist()}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str, normalise: bool = False) -> Self:
        """Read what `to_json` wrote; a plain list of rows is fine too. `normalise` as in `from_csv`.

        >>> Channel.from_json("[[1, 0], [0, 1]]").shape
        (2, 2)
        """
        try:
            read = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidChannel("text", text, f"not JSON: {error}") from error
        made = cls.from_weights if normalise else cls
        if isinstance(read, list):
            return made(read)
        if not isinstance(read, dict) or "matrix" not in read:
            raise InvalidChannel("text", text, 'give {"matrix": [[...], ...]} or a list of rows')
        return made(read["matrix"], read.get("inputs"), read.get("outputs"))

    def to_csv(self) -> str:
        """As CSV: a first line with the reports, then a line for each value that begins with its label."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["", *self._outputs])
        writer.writerows(
            [x, *map(repr, row)] for x, row in zip(self._inputs, self._matrix.tolist(), strict=True)
        )
        return out.getvalue()

    @classmethod
    def from_csv(cls, text: str, normalise: bool = False) -> Self:
        r"""Read CSV: with labels as `to_csv` writes them, or numbers alone.

        With `normalise`, rows are scaled to add up to one (for figures that were rounded in print).

        >>> Channel.from_csv("0.9,0.1\n0.2,0.8\n").shape
        (2, 2)
        """
        lines = [row for row in csv.reader(io.StringIO(text)) if row]
        if not lines:
            raise InvalidChannel("text", text, "the file is empty")
        labelled = not _is_number(lines[0][0])
        outputs = [_plain(v) for v in lines[0][1:]] if labelled else None
        inputs = [_plain(row[0]) for row in lines[1:]] if labelled else None
        body = [row[1:] for row in lines[1:]] if labelled else lines
        if not body or len({len(row) for row in body}) != 1:
            raise InvalidChannel("text", text, "every line needs the same number of columns")
        try:
            numbers = [[float(v) for v in row] for row in body]
        except ValueError as error:
            raise InvalidChannel("text", text, f"not a number: {error}") from error
        return cls.from_weights(numbers, inputs, outputs) if normalise else cls(numbers, inputs, outputs)

    @classmethod
    def load(cls, path: str | Path, normalise: bool = False) -> Self:
        """Read a channel from a `.json` or `.csv` file."""
        text = Path(path).read_text(encoding="utf-8-sig")
        read = cls.from_json if Path(path).suffix.lower() == ".json" else cls.from_csv
        return read(text, normalise)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel):
            return NotImplemented
        same = self._inputs == other._inputs and self._outputs == other._outputs
        return same and np.array_equal(self._matrix, other._matrix)

    def __hash__(self) -> int:
        return hash((self._inputs, self._outputs, self._matrix.tobytes()))

    def __repr__(self) -> str:
        return f"Channel({counted(self.shape[0], 'value')}, {counted(self.shape[1], 'report')})"

    def matched(self, prior: Prior) -> Prior:
        """The prior with its values in the order of this channel's; an error if it is about others.

        >>> Channel.identity(["a", "b"]).matched(Prior({"b": 0.75, "a": 0.25}))
        Prior({'a': 0.25, 'b': 0.75})
        """
        known = Prior.of(prior)
        if len(known) != self.shape[0]:
            raise InvalidChannel(
                "prior", counted(len(known), "value"), f"the channel has {counted(self.shape[0], 'row')}"
            )
        return known.about(self._inputs)


def _require_stochastic(Q: Array) -> None:
    if not np.isfinite(Q).all() or (Q < 0).any():
        x, y = (int(i) for i in np.argwhere(~np.isfinite(Q) | (Q < 0))[0])
        raise InvalidChannel(f"matrix[{x}][{y}]", float(Q[x, y]), "probabilities are finite, zero or more")
    mass = Q.sum(axis=1)
    off = np.abs(mass - 1)
    if (off > _ROWS_ADD_UP).any():
        x = int(off.argmax())
        advice = "this row does not add up to one; for weights or rounded figures use Channel.from_weights"
        raise InvalidChannel(f"matrix[{x}]", float(mass[x]), advice)


def _rows_to_one(Q: Array) -> Array:
    """Undo the rounding of a product of stochastic matrices."""
    scaled: Array = Q / Q.sum(axis=1, keepdims=True)
    return scaled


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(text: str) -> Label:
    return int(text) if _WHOLE.fullmatch(text) else text
