"""Channels: the law of the report, given the value. This module knows nothing of privacy."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array, Ints, as_matrix, not_one
from priorveil.atomic_files import atomic_write
from priorveil.errors import NOT_SHOWN, ForeignReport, Hint, InvalidChannel, TooLarge, plural
from priorveil.frames import Library, as_column, look_up, to_frame
from priorveil.priors import Label, Prior
from priorveil.priors.domain import as_labels, label_positions
from priorveil.priors.label_texts import first_labels, label_columns, label_text
from priorveil.priors.number_files import file_errors, is_json, read_matrix
from priorveil.priors.read_only import ReadOnly
from priorveil.showing import Figure

_ROW_TOLERANCE = 1e-9  # how far from one the sum of a row may be
_MOST_JOINT_ENTRIES = 50_000_000  # a larger joint channel is not written out: these are 400 MB of floats


class Channel(ReadOnly):
    """`Q[x, y] = Pr(Y = y | X = x)`: a row for each value, a column for each report.

    Arguments: `matrix`, rows that add up to one; `inputs` and `outputs`, the labels of values and reports. The
    attributes of the same names are a read-only array and tuples. The matrix of a plan's channel is rounded, and may
    average over reports: its `levels` are those of the reports themselves.

    >>> q = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> q.output_law(Prior([0.25, 0.75])).tolist()
    [0.375, 0.625]
    """

    def __init__(
        self,
        matrix: npt.ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
        levels: Callable[..., Any] | None = None,
    ) -> None:
        self.levels = levels
        Q = self.matrix = as_matrix("matrix", matrix, InvalidChannel, "value and a column for each report")
        _require_stochastic(Q)
        self.inputs, self.outputs = as_labels(inputs, Q.shape[0]), as_labels(outputs, Q.shape[1])

    @classmethod
    def of(cls, channel: Channel | npt.ArrayLike) -> Channel:
        """The channel itself, or one made from a matrix."""
        if isinstance(channel, Channel):
            return channel
        if isinstance(getattr(channel, "channel", None), Channel):
            kind = type(channel).__name__
            raise InvalidChannel(
                "channel", NOT_SHOWN, f"type {kind}; give its channel, {kind.lower()}.channel"
            )
        return cls(channel)

    @classmethod
    def from_weights(
        cls,
        weights: npt.ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> Self:
        """The channel with rows proportional to the weights (counts, integers, rounded figures).

        >>> Channel.from_weights([[3, 1], [2, 2]]).matrix.tolist()
        [[0.75, 0.25], [0.5, 0.5]]
        """
        W = as_matrix("weights", weights, InvalidChannel, "value and a column for each report")
        if not np.isfinite(W).all() or (W < 0).any() or not W.any(axis=1).all():
            raise InvalidChannel("weights", weights, "give finite numbers, zero or more, no row all zero")
        return cls(_rows_to_one(W), inputs, outputs)

    @classmethod
    def from_file(cls, path: str | Path, *, normalise: bool = False) -> Self:
        """The channel in a CSV or JSON file: a row for each value, a column for each report.

        CSV: numbers alone; or the first line has the reports and the first column the values. JSON: the text of
        `to_json`, or a list of rows. `normalise` divides each row by its sum. A broken file raises `InvalidFile`, which
        has the line.
        """
        matrix = read_matrix(Path(path))
        with file_errors(path):
            rows = matrix.shares().rows if normalise else matrix.rows
            return cls(rows, matrix.row_labels, matrix.column_labels)

    def save(self, path: str | Path) -> None:
        """Write the channel to a CSV or JSON file that `from_file` reads, replacing an older one.

        The CSV is a transition matrix as other programs read it: reports in the first line, values in the first column.
        """
        target = Path(path)
        text = self.to_json() + "\n" if is_json(target) else self._csv_text()
        with atomic_write(target, replace=True, argument="path") as file:
            file.write(text.encode())

    def _csv_text(self) -> str:
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["", *map(label_text, self.outputs)])
        rows = zip(map(label_text, self.inputs), self.matrix.tolist(), strict=True)
        lines.writerows([label, *row] for label, row in rows)
        return text.getvalue()

    @classmethod
    def identity(cls, inputs: int | Iterable[Label]) -> Self:
        """The channel that reports the value as it is."""
        prior = Prior.uniform(inputs)
        return cls(np.eye(len(prior)), prior.labels, prior.labels)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of values and the number of reports."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def report_codes(self, reports: Any) -> Ints:
        """The numbers of labelled reports, which are those of their columns: what a plan for this channel counts.

        `reports` is a column of any library; each entry is one of `outputs`.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]], outputs=["yes", "no"]).report_codes(["no", "yes"]).tolist()
        [1, 0]
        """
        places = {label: y for y, label in enumerate(self.outputs)}
        codes = look_up(as_column(reports, "reports"), lambda report: places.get(report, -1), -1)
        if (codes < 0).any():
            row, known = int((codes < 0).argmax()), first_labels(self.outputs)
            raise ForeignReport(f"reports[{row}]", NOT_SHOWN, f"the reports of this channel are {known}")
        return codes

    def output_law(self, prior: Prior) -> Array:
        """`lam = P Q`, the law of the report."""
        return np.asarray(self.align(prior).probabilities @ self.matrix)

    def posterior(self, prior: Prior) -> Array:
        """`Pr(X = x | Y = y)`, shaped as the channel; nan under a report that never happens."""
        return np.asarray(self.align(prior).probabilities[:, None] * self.lift(prior))

    def lift(self, prior: Prior) -> Array:
        """`Q[x, y] / lam[y] = Pr(x | y) / Pr(x)`; nan under a report that never happens.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).lift(Prior([0.5, 0.5])).tolist()
        [[1.5, 0.5], [0.5, 1.5]]
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.matrix / self.output_law(prior))

    def drop_unused(self) -> Channel:
        """The channel without the reports that no value ever sends."""
        is_possible = self.matrix.max(axis=0) > 0
        if is_possible.all():
            return self
        outputs = [self.outputs[y] for y in np.flatnonzero(is_possible)]
        return Channel(self.matrix[:, is_possible], self.inputs, outputs)

    def __matmul__(self, after: Channel | npt.ArrayLike) -> Channel:
        """Post-processing: the channel that passes its report through a second one.

        >>> (Channel.identity(2) @ [[0.5, 0.5], [0.0, 1.0]]).matrix.tolist()
        [[0.5, 0.5], [0.0, 1.0]]
        """
        second = Channel.of(after)
        rows = second._aligned_rows(self.outputs, "after", "one for each report")
        return Channel(_rows_to_one(self.matrix @ rows), self.inputs, second.outputs)

    def joint_with(self, other: Channel | npt.ArrayLike) -> Channel:
        """The joint channel of two reports about the same value, made with independent noise.

        Rows are matched by the labels of the values, if both channels have labels.

        >>> Channel.identity(2).joint_with(Channel.identity(2)).shape
        (2, 4)
        """
        second = Channel.of(other)
        rows = second._aligned_rows(self.inputs, "other", "one for each value")
        d, reports = self.shape[0], self.shape[1] * second.shape[1]
        if d * reports > _MOST_JOINT_ENTRIES:
            size = f"{d:,} x {reports:,} entries"
            raise TooLarge(f"the joint channel would have {size}; the limit is {_MOST_JOINT_ENTRIES:,}")
        joint = (self.matrix[:, :, None] * rows[:, None, :]).reshape(d, reports)
        return Channel(_rows_to_one(joint), self.inputs)

    def _aligned_rows(self, labels: tuple[Label, ...], argument: str, each: str) -> Array:
        """The rows in the order of `labels`; as they are if one side has no labels of its own."""
        if len(labels) != self.shape[0]:
            raise InvalidChannel(argument, self.shape, f"it needs {plural(len(labels), 'row')}, {each}")
        try:
            return self.matrix[label_positions(self.inputs, labels)]
        except KeyError as missing:
            advice = f"it has no row for {missing.args[0]!r}"
            raise InvalidChannel(argument, list(self.inputs)[:5], advice) from None

    def to_json(self) -> str:
        """The channel as JSON: `{"inputs": [...], "outputs": [...], "matrix": [[...], ...]}`."""
        return json.dumps({"inputs": self.inputs, "outputs": self.outputs, "matrix": self.matrix.tolist()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`, or a plain list of rows.

        >>> Channel.from_json("[[1, 0], [0, 1]]").shape
        (2, 2)
        """
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidChannel("text", text, f"not JSON: {error}") from error
        fields = {"matrix": document} if isinstance(document, list) else document
        if not isinstance(fields, dict) or "matrix" not in fields:
            raise InvalidChannel("text", text, 'give {"matrix": [[...], ...]} or a list of rows')
        return cls(fields["matrix"], fields.get("inputs"), fields.get("outputs"))

    def plot(self, prior: Prior | None = None) -> Figure:
        """A map of the lift of each value at each report under a prior, as a matplotlib figure.

        Without a prior it is a map of the probabilities of the reports.
        """
        return showing.figure(self, prior)

    def to_frame(self, library: Library | None = None) -> Any:
        """A row for each value and report with its probability, as a data frame of pandas, polars or pyarrow."""
        values, reports = (label_columns(labels, None)["value"] for labels in (self.inputs, self.outputs))
        columns = {
            "value": [value for value in values for _ in reports],
            "report": list(reports) * len(values),
            "probability": self.matrix.ravel(),
        }
        return to_frame(columns, library)

    def _repr_html_(self) -> str:
        return showing.html(self)

    def _content(self) -> Hashable:
        return self.inputs, self.outputs, (self.matrix + 0.0).tobytes()  # without negative zeros

    def __repr__(self) -> str:
        return f"Channel({plural(self.shape[0], 'value')}, {plural(self.shape[1], 'report')})"

    def align(self, prior: Prior) -> Prior:
        """The prior with its values in this channel's order; an error if it is about other values.

        >>> Channel.identity(["a", "b"]).align(Prior({"b": 0.75, "a": 0.25}))
        Prior({'a': 0.25, 'b': 0.75})
        """
        prior = Prior.of(prior)
        if len(prior) != self.shape[0]:
            advice = f"{plural(len(prior), 'value')}; give {self.shape[0]}, one for each row of the channel"
            raise InvalidChannel("prior", NOT_SHOWN, advice)
        return prior.align_to(self.inputs)


def _require_stochastic(Q: Array) -> None:
    for x, y in np.argwhere(~np.isfinite(Q) | (Q < 0)).tolist():
        raise InvalidChannel(f"matrix[{x}][{y}]", float(Q[x, y]), "probabilities are finite, zero or more")
    mass = Q.sum(axis=1)
    x = int(np.abs(mass - 1).argmax())
    if abs(mass[x] - 1) > _ROW_TOLERANCE:
        hint = Hint("Channel.from_weights", purpose="for weights or rounded figures")
        advice = f"its numbers {not_one(mass[x], Q.shape[1])}"
        raise InvalidChannel(f"matrix[{x}]", NOT_SHOWN, advice, hint)


def _rows_to_one(Q: Array) -> Array:
    """The rows scaled to add up to one."""
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))
