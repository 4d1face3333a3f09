"""A survey file as plain data: the keys of TOML, and the place of each, which errors name.

The readers of TOML, XLSForms and JSON all make a `SurveyDocument`; a `Section` is one part of it, such as a question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from priorveil.errors import NOT_SHOWN, InvalidFile, InvalidInput, PriorveilError, short_repr

LISTS = ("question", "together", "cohort")  # the keys of lists of sections
_LARGEST = 1e15  # of a number; a larger one is a mistake, and may not fit into a float
_PLAIN = ("shares", "data")  # arguments of errors that say no more than the key

Keys = tuple[str | int, ...]  # that lead to a value, such as ("question", 1, "text", "de")


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value of a file is a plausible number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


@dataclass(frozen=True)
class Place:
    """A place in a file: the line of a text, the cell of a workbook, such as `survey!C4`, or the keys of JSON."""

    line: int | None = None
    cell: str | None = None
    keys: Keys = ()


Places = dict[Keys, Place]


def nearest(places: Places) -> Callable[[Keys], Place]:
    """A function that finds the place of a key, or the nearest one above it in the same section."""

    def place(keys: Keys) -> Place:
        least = 2 if keys[:1] and keys[0] in LISTS else 0
        paths = (keys[:length] for length in range(len(keys), least - 1, -1))
        return next((places[path] for path in paths if path in places), Place())

    return place


@dataclass(frozen=True)
class SurveyDocument:
    """The values of a survey file by the keys of TOML, the place of each, and the tables inside the file by name.

    `terms` are the names that the file itself has for keys, by list (`""` for the survey), where they differ. A table
    has rows of cells by column, as texts. Tables of other files are looked for in `folder`; without one, no file is
    read. `left_out` lists what the survey does not take from the file.
    """

    path: Path
    values: Mapping[str, Any]
    place: Callable[[Keys], Place]
    tables: Mapping[str, list[dict[str, str]]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    terms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def survey(self) -> Section:
        """The keys of the whole survey."""
        return Section(self, {key: value for key, value in self.values.items() if key not in LISTS}, ())

    def sections(self, name: str) -> tuple[Section, ...]:
        """The sections of a list: questions, questions that are designed together, or cohorts."""
        entries = self.values.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            advice = f"give a list of sections; in TOML write [[{name}]] above the keys of each"
            raise self.survey.error(advice, name)
        return tuple(Section(self, entry, (name, number)) for number, entry in enumerate(entries))


@dataclass(frozen=True)
class Section:
    """Named values of a survey: those of the whole survey, of one question, or of questions that belong together.

    `above` are the keys that lead to it.
    """

    file: SurveyDocument
    values: Mapping[str, Any]
    above: Keys

    def place(self, *keys: str | int) -> Place:
        """The place of a key."""
        return self.file.place((*self.above, *keys))

    def error(self, advice: str, *keys: str | int) -> InvalidFile:
        """The error that names a key and its place, and says what to do."""
        place = self.place(*keys)
        terms = self.file.terms.get(str(self.above[0]) if self.above else "", {})
        name = " ".join(map(str, (terms.get(str(keys[0]), keys[0]), *keys[1:]))) if keys else ""
        words = f"{name}: {advice}" if name else advice
        return InvalidFile(self.file.path, words, line=place.line, cell=place.cell, keys=place.keys)

    @contextmanager
    def at(self, *keys: str) -> Iterator[None]:
        """Raise errors about the value of a key again, with the place of the key and without hints for Python."""
        try:
            yield
        except FileNotFoundError as error:
            advice = f"there is no file {error.filename}: give its path from the folder of the survey"
            raise self.error(advice, *keys) from error
        except InvalidFile as error:
            if error.line is not None or error.cell is not None or error.keys:
                raise
            raise self.error(error.message, *keys) from error
        except InvalidInput as error:
            inner = error.keys or keys or ((error.argument,) if error.argument in self.values else ())
            repeated = bool(error.keys) or error.argument in inner or error.argument in _PLAIN
            value = "" if error.value is NOT_SHOWN else f"{short_repr(error.value)}: "
            raise self.error(f"{value}{error.advice}" if repeated else error.message, *inner) from error
        except PriorveilError as error:
            raise self.error(error.message, *keys) from error

    def require_known(self, keys: Collection[str]) -> None:
        """Refuse an unknown key: it is probably mistyped."""
        for key in self.values:
            if key not in keys:
                similar = get_close_matches(key, keys, 1)
                advice = f"did you mean {similar[0]}?" if similar else f"choose one of {', '.join(keys)}"
                raise self.error(f"there is no such key: {advice}", key)

    def text(self, key: str, default: str = "") -> str:
        """A text without translations."""
        text = self.values.get(key, default)
        if not isinstance(text, str):
            raise self.error(f"{short_repr(text)} is not a text: write it in quotation marks", key)
        return text.strip()

    def one_of(self, key: str, choices: Collection[str], default: str) -> str:
        """One of some words."""
        word = self.text(key, default)
        if word not in choices:
            raise self.error(f"{short_repr(word)}: choose one of {', '.join(choices)}", key)
        return word

    def positive(self, key: str, default: float | None = None) -> float | None:
        """A number above zero."""
        number = self.values.get(key, default)
        if number is None:
            return None
        if not is_number(number) or not number > 0:
            raise self.error(f"{short_repr(number)}: give a number above zero", key)
        return float(number)

    def whole(self, key: str, least: int) -> int | None:
        """A whole number."""
        number = self.values.get(key)
        if number is None:
            return None
        if not is_number(number) or number % 1 or number < least:
            raise self.error(f"{short_repr(number)}: give a whole number, {least} or more", key)
        return int(number)

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of increasing numbers; empty if it is not given."""
        numbers = self.values.get(key, ())
        is_list = isinstance(numbers, list | tuple)
        if not is_list or not all(is_number(x) for x in numbers):
            raise self.error(f"{short_repr(numbers)}: give a list of numbers, such as [0, 20, 40]", key)
        if len(numbers) == 1 or any(a >= b for a, b in pairwise(numbers)):
            raise self.error(f"{short_repr(numbers)}: give two or more increasing numbers", key)
        return tuple(map(float, numbers))

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if it is not given."""
        names = self.values.get(key, ())
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise self.error(f'{short_repr(names)}: give a list of texts, such as ["en", "de"]', key)
        return tuple(names)

    def table(self, key: str) -> Mapping[str, Any]:
        """Values by name; empty if they are not given."""
        table = self.values.get(key, {})
        if not isinstance(table, Mapping):
            raise self.error(
                f"{short_repr(table)}: give values by name, such as {{yes = 0.2, no = 0.8}}", key
            )
        return table
