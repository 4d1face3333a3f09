"""The domain: what a value may be, and the one rule by which a value becomes the code of a label.

A value is a label; a position is never a value. Every entry of a column has a *key* (`entry_key`), and it is the label
with the same key. A text that reads as a number is that number, any other text is itself, and blanks around it do not
count. The table in `docs/values.md` has the whole rule; the tests run it in Python, on files and in JavaScript.

`LabelDomain` is a domain of words and numbers. `priors.number_domains` has grids and cells of numbers, `priors.joint`
several attributes at once.

No message here ever shows a value: it is private until it is perturbed.
"""

from __future__ import annotations

import datetime
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, singledispatch
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, OutsideDomain, plural
from priorveil.formatting import decimal_point
from priorveil.frames import Column, as_column, distinct, integers, is_column, look_up
from priorveil.notes import Note
from priorveil.priors.label_texts import Label, first_labels, label_text
from priorveil.priors.read_only import ReadOnly

Codes = Ints
DrawWords = Callable[[int], npt.NDArray[np.uint64]]  # from a number of random words to that many
Missing = Literal["refuse", "pass"]

MISSING, OUTSIDE = -1, -2  # instead of the code of a value that is missing, or outside the domain

# Why a value has no code.
MISSING_ENTRY = "missing"
NOT_IN_DOMAIN = "outside the domain"
OTHER_SPELLING = "another spelling of a value"
NOT_A_NUMBER = "not a number"
AMBIGUOUS_NUMBER = "an ambiguous number: write 1234.5 or 1234,5, without separators of thousands"
LEFT_OUT = "a combination that the plan leaves out"

NAME_ATTRIBUTES = Hint("Prior.joint", purpose="for several attributes")
BLANKS = " \t\r\n"  # around a text they do not count
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
# Ignored in a spelling: hyphens between letters, and all marks but the signs of ranges and numbers.
_PUNCTUATION = re.compile(r"[^\w<>=≤≥+±-]|_|(?<=[^\W\d_])-(?=[^\W\d_])")


# -- keys ----------------------------------------------------------------------------------------------------


class _SpecialKey(Enum):
    """Keys that no text and no number has."""

    TRUE = "true"
    FALSE = "false"
    NO_LABEL = "an object that cannot be a label"


_MISSING_TYPES = ("NAType", "NaTType")  # by name, because pandas is not loaded here


@singledispatch
def entry_key(entry: Any) -> Any:
    """What decides which label an entry is: a number, a text, or a truth value; None if the entry is missing.

    >>> entry_key(" 08 ") == entry_key(8.0) == 8, entry_key(" yes"), entry_key(float("nan"))
    (True, 'yes', None)
    """
    return None if entry is None or type(entry).__name__ in _MISSING_TYPES else _SpecialKey.NO_LABEL


@entry_key.register
def _(entry: str) -> Any:
    text = entry.strip(BLANKS)
    return Decimal(text) if _NUMBER.fullmatch(text) else text or None


@entry_key.register
def _(entry: bool) -> Any:
    return _SpecialKey.TRUE if entry else _SpecialKey.FALSE


@entry_key.register(int)
@entry_key.register(Fraction)
def _(entry: Any) -> Any:
    return entry


@entry_key.register
def _(entry: Decimal) -> Any:
    return None if entry.is_nan() else entry


@entry_key.register
def _(entry: float) -> Any:
    return Decimal(repr(float(entry))) if entry == entry else None  # 0.1 is the number that is written so


@entry_key.register
def _(entry: np.generic) -> Any:
    if isinstance(entry, np.floating):
        return entry_key(float(entry))
    return entry_key(
        entry.astype("datetime64[us]").item() if isinstance(entry, np.datetime64) else entry.item()
    )


@entry_key.register(datetime.date)
@entry_key.register(datetime.time)
def _(entry: Any) -> Any:
    return str(entry) if entry == entry else None


@entry_key.register(tuple)
@entry_key.register(list)
def _(entry: Sequence[Any]) -> Any:
    keys = tuple(map(entry_key, entry))
    return None if None in keys else keys


def with_decimal_points(entry: Any) -> Any:
    """An entry with a point for a decimal comma, where a number is expected; a text such as a list of codes has none.

    >>> with_decimal_points(" 12,5"), with_decimal_points(["12,5", "a,5"]), with_decimal_points(8)
    ('12.5', ['12.5', 'a,5'], 8)
    """
    if isinstance(entry, list | tuple):
        return [with_decimal_points(part) for part in entry]
    return decimal_point(entry.strip(BLANKS)) if isinstance(entry, str) else entry


def is_number_key(key: Any) -> bool:
    """Whether an entry with this key is a number."""
    return isinstance(key, int | Decimal | Fraction)


def _truth_keys(key: Any) -> list[_SpecialKey]:
    """The truth value that a label takes besides its own key: 1 and the text true take True."""
    if isinstance(key, str):
        return [truth for truth in (_SpecialKey.TRUE, _SpecialKey.FALSE) if key.lower() == truth.value]
    return [truth for truth, number in ((_SpecialKey.TRUE, 1), (_SpecialKey.FALSE, 0)) if key == number]


# -- labels --------------------------------------------------------------------------------------------------


def as_label(label: Hashable) -> Label:
    """The label as a string, a finite number or a tuple of them; an error if it is none of these."""
    plain: Any = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, tuple) and plain and not any(isinstance(part, tuple) for part in plain):
        parts: tuple[Any, ...] = tuple(map(as_label, plain))
        return parts
    if isinstance(plain, str) or (isinstance(plain, int) and not isinstance(plain, bool)):
        return plain
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    raise InvalidInput("labels", label, "a label is a string, a finite number, or a tuple of them")


def as_labels(labels: Iterable[Hashable] | None, size: int) -> tuple[Label, ...]:
    """The labels as a tuple, one for each of `size` things and all different; None gives 0, 1, 2, ..."""
    if labels is None:
        return tuple(range(size))
    names = tuple(as_label(label) for label in labels)
    if len(names) != size:
        raise InvalidInput("labels", names, f"give one label for each of the {size} values")
    if len(set(names)) != size:
        repeated = [name for name, n in Counter(names).items() if n > 1]
        raise InvalidInput("labels", repeated, "every label may occur once only")
    return names


def label_to_json(label: Label) -> Any:
    """The label in a document, where a tuple is a list and a float is a text in an object.

    >>> label_to_json(("a", 1)), label_to_json(0.5)
    (['a', 1], {'number': '0.5'})
    """
    if isinstance(label, tuple):
        return [label_to_json(part) for part in label]
    return {"number": repr(label)} if isinstance(label, float) else label


def label_from_json(label: Any) -> Any:
    """The label from a document."""
    if isinstance(label, list):
        return tuple(map(label_from_json, label))
    return float(label["number"]) if isinstance(label, Mapping) else label


def label_positions(
    labels: Sequence[Label], target: Sequence[Label], name: Callable[[Label], Label] = lambda label: label
) -> Sequence[int]:
    """The position of each `target` label among as many `labels`; `KeyError` with a label that is missing.

    Labels match if their `name` is the same (`str`: if they are written the same way). They match by position only
    where the names differ and one side has the default labels 0, 1, 2, ...; the points of a grid are never positions.

    >>> label_positions(["a", "b"], ["b", "a"]), label_positions([1, 0], [0, 1])
    ([1, 0], [1, 0])
    >>> label_positions(["a", "b"], [0, 1])
    range(0, 2)
    """
    positions = range(len(labels))
    if tuple(labels) == tuple(target):
        return positions
    index = dict(zip(map(name, labels), positions, strict=True))
    names = [name(label) for label in target]
    # A float 0.0 is the point of a grid, not a position.
    sides = [tuple(side) for side in (labels, target) if isinstance(side[0], int)]
    if tuple(positions) in sides and index.keys() != set(names):
        return positions
    return [index[label] for label in names]


# -- domains -------------------------------------------------------------------------------------------------


class Domain(ReadOnly):
    """What a value may be. The code of a value is the position of its label in `labels`.

    `has_tuples` says whether some labels are tuples. `names` are those of the attributes, None if there is only one,
    and `attributes` has their domains. `points` and `edges` are those of a grid or of cells of numbers. `rounds` says
    whether numbers are rounded at random, `refuses_numbers` whether a number outside the range is refused, and
    `resolution` what numbers are rounded or sorted to: "points" or "cells".
    """

    labels: tuple[Label, ...]
    has_tuples: bool = False
    names: tuple[str, ...] | None = None
    attributes: Mapping[str, Domain] = MappingProxyType({})
    points: Array | None = None
    edges: Array | None = None
    rounds: bool = False
    refuses_numbers: bool = False
    resolution: str | None = None
    grids: tuple[str, ...] = ()

    @abstractmethod
    def encode(self, columns: Sequence[Column], words: DrawWords) -> Codes:
        """The codes of values in columns, one column for each attribute: `MISSING` or `OUTSIDE` where there is none.

        `words` gives random words for rounding: their number does not depend on the values.
        """

    @abstractmethod
    def reasons(self, columns: Sequence[Column]) -> npt.NDArray[Any]:
        """Why each value is outside the domain; None where it is inside, or missing."""

    def refusal_hints(self, columns: Sequence[Column]) -> tuple[Hint, ...]:
        """What to do, in Python, if a value in these columns is outside the domain."""
        return ()

    @abstractmethod
    def document(self) -> Any:
        """The domain as JSON."""

    @abstractmethod
    def describe(self) -> str:
        """What is allowed, in a few words. A domain is public."""

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The levels of each attribute by its name; empty if there is only one."""
        return {}

    def margin(
        self, attributes: Sequence[str], argument: str = "attributes"
    ) -> tuple[list[tuple[Any, ...]], Array]:
        """The combinations of the levels of some attributes, and a row for each: one where a value has it.

        Errors call the attributes by the name of the caller's `argument`.
        """
        raise InvalidInput(argument, attributes, "the prior has no names of attributes", NAME_ATTRIBUTES)

    def numbers(self, attribute: str) -> Array:
        """The number that each value has in this attribute."""
        raise InvalidInput("numbers", attribute, "the prior has no names of attributes", NAME_ATTRIBUTES)

    @property
    def neighbours(self) -> tuple[Ints, ...]:
        """Pairs of values that one number may be rounded to, for each grid.

        They are in two rows: the codes of the lower and of the upper value.
        """
        return ()

    @property
    def cell_edges(self) -> tuple[tuple[Array, Array], ...]:
        """The lower and the upper edge of the cell of each value, for each attribute that has cells of numbers."""
        return ()

    def cumulative_names(self) -> list[str]:
        """What the people with each value or one before it are called."""
        return [f"up to {label_text(label)}" for label in self.labels]

    def size_text(self) -> str:
        """How many values there are."""
        return plural(len(self), "value")

    def is_value(self, values: Any) -> bool:
        """Whether this is one value, also a missing one, rather than a column of them.

        Where labels are tuples, so is a value: a tuple of levels.

        >>> LabelDomain([("old", "yes"), ("old", "no")]).is_value(("old", "yes")), LabelDomain(["a"]).is_value(("a",))
        (True, False)
        """
        if self.has_tuples and isinstance(values, tuple):
            return not any(isinstance(entry, tuple | list) for entry in values)
        return not is_column(values)

    def columns(self, values: Any) -> list[Column]:
        """What the caller gave, as columns: one for each attribute."""
        return [as_column(values)]

    def in_order(self, order: Sequence[int]) -> Domain:
        """The domain of the same values in another order."""
        return LabelDomain([self.labels[at] for at in order])

    def flat_masses(self) -> Array:
        """The mass of every label if all values, or all numbers of the range, are equally common."""
        return np.full(len(self), 1 / len(self))

    def everything(self) -> str:
        """All values in a few words, for a sentence about an assumed prior."""
        return "values"

    def remarks(self) -> tuple[Note, ...]:
        """What a reader of estimates should know about the values."""
        return ()

    def encode_or_refuse(
        self, values: Any, words: DrawWords, missing: Missing = "refuse"
    ) -> tuple[Codes, Mask | None]:
        """The codes of a column of values, or of a table with a column for each attribute; and which are missing.

        A value outside the domain is an error that names its row. With `missing="refuse"` so is a missing value, and
        the mask is None; with "pass" its row gets code 0 and is marked in the mask.

        >>> LabelDomain(["yes", "no"]).encode_or_refuse(["no", None], np.empty, missing="pass")
        (array([1, 0]), array([False,  True]))
        """
        if missing not in ("refuse", "pass"):
            raise InvalidInput("missing", missing, "choose 'refuse' or 'pass'")
        columns = self.columns(values)
        codes = self.encode(columns, words)
        outside = np.flatnonzero(codes == OUTSIDE)
        if outside.size:
            raise OutsideDomain(int(outside[0]), self.describe(), *self.refusal_hints(columns))
        absent = codes == MISSING
        if missing == "pass":
            return np.where(absent, 0, codes), absent
        if absent.any():
            advice = "a value is missing: fill it in or leave it out"
            hint = Hint("missing", "pass", purpose="to keep it missing")
            raise InvalidInput(f"values[{int(np.argmax(absent))}]", None, advice, hint)
        return codes, None

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"


@final
class LabelDomain(Domain):
    """Words, numbers, or tuples of them. A value is the label that has the same key (`entry_key`).

    Two labels that the rule cannot tell apart are refused.

    >>> LabelDomain([7, 8]).encode([["7.00", " 08", "8.5", None]], np.empty).tolist()
    [0, 1, -2, -1]
    >>> LabelDomain(["yes", "no"]).encode([["no ", "1", "No"]], np.empty).tolist()
    [1, -2, -2]
    """

    def __init__(self, labels: Iterable[Hashable]) -> None:
        names = list(labels)
        self.labels = as_labels(names, max(1, len(names)))
        self._is_numbered = self.labels == tuple(range(len(self.labels)))
        self.has_tuples = any(isinstance(label, tuple) for label in self.labels)
        if not self._is_numbered:
            _ = self._code_of_key  # computed now, because it refuses labels that match the same value

    @cached_property
    def _code_of_key(self) -> dict[Any, int]:
        codes: dict[Any, int] = {}
        for code, label in enumerate(self.labels):
            key = entry_key(label)
            if key is None:
                raise InvalidInput(
                    "labels", label, "an empty text means a missing value: give this one a name"
                )
            for own in (key, *_truth_keys(key)):
                other = codes.setdefault(own, code)
                if other != code:
                    same = [self.labels[other], label]
                    advice = (
                        "a value can match both labels, as with 8 and '08', 'a' and ' a', or 1 and 'true'"
                    )
                    raise InvalidInput("labels", same, f"{advice}: rename one")
        return {None: MISSING, **codes}

    def encode(self, columns: Sequence[Column], words: DrawWords) -> Codes:
        """The codes of a column; no words are drawn."""
        (column,) = columns
        whole = integers(column) if self._is_numbered else None
        if whole is None:
            return look_up(column, self._code, MISSING)
        numbers, present = whole
        inside = numbers.view(np.uint64) < len(self)  # negative numbers become huge
        codes = numbers if inside.all() else np.where(inside, numbers, OUTSIDE)
        return codes if present is None else np.where(present, codes, MISSING)

    def _code(self, entry: Any) -> int:
        code = self._code_of_key.get(entry_key(entry), OUTSIDE)
        if code != OUTSIDE:
            return code
        return self._code_of_key.get(entry_key(with_decimal_points(entry)), OUTSIDE)

    def reasons(self, columns: Sequence[Column]) -> npt.NDArray[Any]:
        """Why each value is outside the domain: its label may have other capitals, spaces or punctuation.

        Numbers have one spelling: -5 is not +5.

        >>> LabelDomain(["yes", "<=50K"]).reasons([["YES!", ">50K", "yes"]]).tolist()
        ['another spelling of a value', 'outside the domain', None]
        """
        spellings = set(map(_spelling, self.labels))

        def reason(entry: Any) -> str | None:
            if self._code(entry) != OUTSIDE:
                return None
            return OTHER_SPELLING if _spelling(entry) in spellings else NOT_IN_DOMAIN

        (column,) = columns
        return look_up(column, reason, None, object)

    def refusal_hints(self, columns: Sequence[Column]) -> tuple[Hint, ...]:
        """If labels are words and all values are whole numbers, a hint that these may be positions."""
        (column,) = columns
        keys = {entry_key(entry) for entry in distinct(column)[0]} - {None}
        are_words = not any(is_number_key(entry_key(label)) for label in self.labels)
        if are_words and all(is_number_key(key) and key % 1 == 0 for key in keys):
            return (Hint("codes", True, purpose="if these are positions of labels"),)
        return ()

    def document(self) -> list[Any]:
        """The labels as JSON."""
        return [label_to_json(label) for label in self.labels]

    def describe(self) -> str:
        """The first few labels."""
        return f"0 to {len(self) - 1}" if self._is_numbered else first_labels(self.labels)

    def columns(self, values: Any) -> list[Column]:
        """The column of values; where labels are tuples, its rows may be those of a matrix."""
        is_matrix = self.has_tuples and isinstance(values, np.ndarray) and values.ndim == 2
        return [values.tolist() if is_matrix else as_column(values)]

    def _content(self) -> Hashable:
        return self.labels


def require_integers(positions: Any) -> None:
    """Refuse positions of labels that are no integers: truth values and texts have labels of their own.

    >>> require_integers([0, True])
    Traceback (most recent call last):
    priorveil.errors.InvalidInput: values[1]: type bool; with codes=True give integers, the positions of labels
    """
    column = as_column(positions)
    if integers(column) is not None:
        return
    for row, entry in enumerate(column if isinstance(column, list) else column.tolist()):
        is_integer = isinstance(entry, int | np.integer) and not isinstance(entry, bool)
        if not is_integer and entry_key(entry) is not None:
            advice = "with codes=True give integers, the positions of labels"
            raise InvalidInput(f"values[{row}]", NOT_SHOWN, f"type {type(entry).__name__}; {advice}")


def no_words(count: int) -> npt.NDArray[np.uint64]:
    """Words for domains of labels and for checks, which draw none."""
    return np.zeros(count, dtype=np.uint64)


def as_domain(labels: Domain | Iterable[Hashable] | None, size: int) -> Domain:
    """A domain of this size: the given one, or that of labels; None gives the labels 0, 1, 2, ..."""
    domain = labels if isinstance(labels, Domain) else LabelDomain(range(size) if labels is None else labels)
    if len(domain) != size:
        raise InvalidInput("labels", domain.labels, f"give one label for each of the {size} values")
    return domain


def _spelling(level: Any) -> str:
    """The letters, digits and signs of a level, without capitals; a text without letters as it is."""
    text = str(level)
    return _PUNCTUATION.sub("", text.casefold()) if any(map(str.isalpha, text)) else text
