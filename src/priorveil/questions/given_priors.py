"""What a survey file says under `prior`: "unknown", shares, counts of a sample, or a table, for all or by cohort.

Entries are by question. An entry of "tick all that apply" has the codes of the ticked options, from which a yes or no
for each option is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.files.batches import WantedColumns
from priorveil.files.data_table import DataTable, text_columns
from priorveil.formatting import number_text, read_number
from priorveil.notions import PriorOrSet
from priorveil.priors import Prior, PriorSet
from priorveil.questions.choices import NO, YES
from priorveil.questions.question import NOT_ASKED, Question
from priorveil.questions.shares import (
    Attribute,
    counted_prior,
    read_range,
    sample_priors,
    typed_prior,
    unknown_prior,
)
from priorveil.questions.survey_document import Section, SurveyDocument, is_number

UNKNOWN = "unknown"
PRIOR_KEYS = ("file", "sheet", "column", "cohort_column", "public", "smoothing")
JOINT, COHORTS, COHORT_COLUMN = "joint", "cohorts", "cohort_column"
COUNTS, DELTA = "counts", "delta"
_NO_COHORTS = "the survey has no cohorts: add them, or leave this out"
_NO_PEOPLE = (
    "it has a row for each person, and such rows should not be sent: give a column share or count, or run "
    "`priorveil campaign build` where the file is"
)
_WEIGHTS = ("share", "count")  # columns of a table that has no row for each person
_MOST_ROWS = 1 << 16  # read at a time, from a table of people


@dataclass(frozen=True)
class GivenPrior:
    """The prior of one cohort as a survey file gives it, and the keys that lead to it in its section."""

    value: Any
    keys: tuple[str, ...]

    @property
    def unknown(self) -> bool:
        """Whether the file says that nobody knows the prior."""
        return bool(self.value == UNKNOWN)

    @property
    def table(self) -> bool:
        """Whether it is a table: a file in the folder of the survey, or a sheet in it."""
        return isinstance(self.value, Mapping) and any(
            isinstance(self.value.get(key), str) for key in ("file", "sheet")
        )

    @property
    def of_sample(self) -> bool:
        """Whether it has the counts of a sample."""
        return isinstance(self.value, Mapping) and isinstance(self.value.get(COUNTS), Mapping)

    @property
    def by_answer(self) -> bool:
        """Whether it has a share for each answer."""
        return isinstance(self.value, Mapping) and not self.table and not self.of_sample

    @property
    def by_set(self) -> bool:
        """Whether it has a share for each set of options of "tick all that apply"."""
        return self.by_answer and isinstance(self.value.get(JOINT), Mapping)

    def range_ends(self) -> set[float]:
        """The ends of the ranges that typed shares or counts of a number are for."""
        keys = self.value[COUNTS] if self.of_sample else self.value if self.by_answer else ()
        return {end for key in keys for end in read_range(str(key)) or ()}


def given_priors(section: Section, cohorts: Sequence[str]) -> dict[str, GivenPrior]:
    """The prior that a section gives for each cohort: the same for all, or one for each."""
    given = section.values.get("prior", UNKNOWN)
    by_cohort = given.get(COHORTS) if isinstance(given, Mapping) else None
    if not isinstance(by_cohort, Mapping):
        return dict.fromkeys(cohorts, GivenPrior(given, ("prior",)))
    if len(cohorts) == 1:
        raise section.error(_NO_COHORTS, "prior", COHORTS)
    if set(by_cohort) != set(cohorts) or len(given) > 1:
        advice = f"give a prior for each cohort, {', '.join(cohorts)}, and nothing else"
        raise section.error(advice, "prior", COHORTS)
    return {name: GivenPrior(by_cohort[name], ("prior", COHORTS, name)) for name in cohorts}


@dataclass
class PriorReader:
    """Reads priors; each table is read once."""

    file: SurveyDocument
    cohorts: Sequence[str]
    _tables: dict[tuple[str, tuple[str, ...]], list[list[str]]] = field(default_factory=dict)

    def prior(
        self, given: GivenPrior, attributes: tuple[Attribute, ...], cohort: str, asked: float | None
    ) -> PriorOrSet:
        """The prior of all attributes of some questions, as it is given for a cohort: a set if it is of a sample.

        `asked` is the share of people who are asked the first of them, where it is known.
        """
        questions = list({attribute.question.name: attribute.question for attribute in attributes}.values())
        if given.unknown:
            return unknown_prior(attributes)
        if given.table:
            return self._table_prior(given.value, questions, attributes, cohort, asked)
        if given.of_sample:
            return _sample_priors(given.value, attributes)
        value, smoothing = given.value, None
        if given.by_set and [question.by_option for question in questions] == [True]:
            if unknown := [key for key in value if key not in (JOINT, "smoothing")]:
                raise InvalidInput("prior", unknown[0], f"beside {JOINT} there may only be smoothing")
            value, smoothing = value[JOINT], _smoothing(value)
        rows = [(_split_sets(questions, row), share) for row, share in _typed_rows(value, questions)]
        for entries, _ in rows:  # as typed, so that an error may show it
            for attribute, entry in zip(attributes, entries, strict=True):
                attribute.check_typed(entry)
        return typed_prior(attributes, rows, asked, smoothing)

    def _table_prior(
        self,
        given: Mapping[str, Any],
        questions: Sequence[Question],
        attributes: tuple[Attribute, ...],
        cohort: str,
        asked: float | None,
    ) -> Prior:
        """The prior from a table of shares, of counts, or of people."""
        names = [question.name for question in questions]
        if len(names) > 1 and "column" in given:
            advice = f"its columns are those of the questions, {', '.join(names)}: leave column out"
            raise InvalidInput("column", given["column"], advice)
        columns = [str(given.get("column", names[0]))] if len(names) == 1 else names
        public, smoothing = _is_public(given), _smoothing(given)
        weighing = self._weight_columns(given, columns)
        if len(weighing) > 1:
            raise InvalidInput("table", NOT_SHOWN, "it has a column share and a column count: remove one")
        if not weighing and self.file.folder is None:
            raise InvalidInput("table", NOT_SHOWN, _NO_PEOPLE)
        entries = list(self._columns_of(given, [*columns, *weighing], cohort))
        weights = [1.0] * len(entries[0])
        if weighing:
            read = _share if weighing == ["share"] else _count
            weights = [read(weighing[0], read_number(weight)) for weight in entries.pop()]
        rows = zip(_answers_in_table(questions, zip(*entries, strict=True)), weights, strict=True)
        if weighing == ["share"]:
            return typed_prior(attributes, rows, asked, smoothing)
        return counted_prior(attributes, rows, asked, public, smoothing)

    def _columns_of(
        self, given: Mapping[str, Any], columns: Sequence[str], cohort: str
    ) -> Iterator[list[str]]:
        """Columns of a table: all its rows, or those of the cohort if it has a column of cohorts."""
        if COHORT_COLUMN not in given:
            yield from self._columns(given, columns)
            return
        *entries, groups = self._columns(given, [*columns, str(given[COHORT_COLUMN])])
        if len(self.cohorts) == 1:
            raise InvalidInput(COHORT_COLUMN, given[COHORT_COLUMN], _NO_COHORTS)
        if not set(groups) <= set(self.cohorts):
            advice = f"an entry is no cohort; cohorts: {', '.join(self.cohorts)}: leave other rows out"
            raise InvalidInput(COHORT_COLUMN, given[COHORT_COLUMN], advice)
        if cohort not in groups:
            raise InvalidInput(COHORT_COLUMN, given[COHORT_COLUMN], f"no row is about {cohort}: add some")
        for column in entries:
            yield [entry for entry, group in zip(column, groups, strict=True) if group == cohort]

    def _weight_columns(self, given: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
        if "sheet" in given:
            names: Iterable[str] = (self._sheet(given) or [{}])[0]
        else:
            wanted = WantedColumns(tuple(columns), _WEIGHTS)
            names = DataTable(self._path(given)).open(wanted, _MOST_ROWS).types
        return [name for name in _WEIGHTS if name in names]

    def _columns(self, given: Mapping[str, Any], names: Sequence[str]) -> list[list[str]]:
        """Columns of a file in the folder of the survey, or of another sheet in it."""
        if "sheet" not in given:
            wanted = (str(given["file"]), tuple(names))
            if wanted not in self._tables:
                self._tables[wanted] = list(text_columns(self._path(given), *names))
            return self._tables[wanted]
        rows = self._sheet(given)
        for name in names:
            if not rows or name not in rows[0]:
                advice = f"it has no rows, or no column {name!r}: add it"
                raise InvalidInput("sheet", str(given["sheet"]), advice)
        return [[row[name] for row in rows] for name in names]

    def _sheet(self, given: Mapping[str, Any]) -> list[dict[str, str]]:
        sheet = str(given["sheet"])
        if sheet not in self.file.tables:
            others = ", ".join(self.file.tables) or "none"
            raise InvalidInput("sheet", sheet, f"there is no such sheet; other sheets: {others}")
        return self.file.tables[sheet]

    def _path(self, given: Mapping[str, Any]) -> Path:
        """The path of a table in the folder of the survey. An uploaded survey has no folder."""
        if self.file.folder is None:
            advice = (
                "a survey that is sent reads no files here: choose the table in the form, or run "
                "`priorveil campaign build` where the file is"
            )
            raise InvalidInput("file", str(given["file"]), advice)
        return self.file.folder / str(given["file"])


def option_priors(given: GivenPrior, attributes: Sequence[Attribute], asked: float | None) -> list[Prior]:
    """A prior for each option of "tick all that apply": from its share, or because nobody knows."""
    if given.unknown:
        return [unknown_prior((attribute,)) for attribute in attributes]
    shares, codes = _typed_shares(given.value), list(attributes[0].question.options)
    if set(shares) - {NOT_ASKED} != set(codes):
        raise InvalidInput("shares", NOT_SHOWN, f"give the share of each option: {', '.join(codes)}")
    skipped = shares.pop(NOT_ASKED, None)
    priors = []
    for attribute, code in zip(attributes, codes, strict=True):
        yes = shares[code]
        if not 0 < yes < 1 - (skipped or 0.0):
            raise InvalidInput(code, yes, "give a share above 0 and below 1")
        rows = [((YES,), yes), ((NO,), 1 - yes - (skipped or 0.0))]
        rows += [] if skipped is None else [((NOT_ASKED,), skipped)]
        priors.append(typed_prior((attribute,), rows, asked, None))
    return priors


# -- what is typed ---------------------------------------------------------------------------------------------


def _typed_rows(given: Any, questions: Sequence[Question]) -> Iterator[tuple[Sequence[str], float]]:
    """The entries for each question, and their share, from rows or from shares by answer."""
    names = [question.name for question in questions]
    if isinstance(given, list) and all(isinstance(row, Mapping) for row in given):
        for row in given:
            if set(row) != {*names, "share"}:
                raise InvalidInput("prior", dict(row), f"give {', '.join(names)} and share in every row")
            yield [_entry(row[name]) for name in names], _share("share", row["share"])
        return
    if len(names) > 1:
        advice = f'give "{UNKNOWN}", a file, or a list of rows with {", ".join(names)} and share'
        raise InvalidInput("prior", given, advice)
    yield from (([entry], share) for entry, share in _typed_shares(given).items())


def _typed_shares(given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping) or not given:
        advice = f'give the share of each answer, such as {{yes = 0.2, no = 0.8}}, a file, or "{UNKNOWN}"'
        raise InvalidInput("prior", given, advice)
    return {str(key): _share(str(key), share) for key, share in given.items()}


def _sample_priors(given: Mapping[str, Any], attributes: Sequence[Attribute]) -> PriorSet:
    """The priors that the typed counts of a sample leave possible, of a question with one answer."""
    if unknown := [key for key in given if key not in (COUNTS, DELTA)]:
        raise InvalidInput("prior", unknown[0], f"beside {COUNTS} there may only be {DELTA}")
    if len(attributes) != 1:
        advice = "counts of a sample are for one question with one answer: give shares, or a table"
        raise InvalidInput("prior", NOT_SHOWN, advice)
    delta = given.get(DELTA, 1e-6)
    if not is_number(delta):
        raise InvalidInput(DELTA, delta, "give a share between 0 and 1, such as 1e-6")
    counts = {str(entry): _typed_count(str(entry), count) for entry, count in given[COUNTS].items()}
    for entry in counts:
        attributes[0].check_typed(entry)
    return sample_priors(attributes[0], counts, delta)


def _typed_count(name: str, count: Any) -> int:
    if not is_number(count) or count < 0 or count % 1:
        raise InvalidInput(name, count, "give a whole number of people, such as 120")
    return int(count)


def _share(name: str, share: Any) -> float:
    if not is_number(share) or not 0 <= share <= 1:
        raise InvalidInput(name, share, "give a share from 0 to 1, such as 0.2")
    return float(share)


def _count(name: str, count: float | None) -> float:
    if not is_number(count) or count < 0 or count % 1:
        raise InvalidInput(name, NOT_SHOWN, "an entry is no whole number of people")
    return count


def _is_public(given: Mapping[str, Any]) -> bool:
    """Whether a table is already public; unknown keys are refused."""
    if unknown := [key for key in given if key not in PRIOR_KEYS]:
        raise InvalidInput("prior", unknown[0], f"choose among {', '.join(PRIOR_KEYS)}")
    public = given.get("public", False)
    if not isinstance(public, bool):
        raise InvalidInput("public", public, "write true or false, without quotation marks")
    return public


def _smoothing(given: Mapping[str, Any]) -> float | None:
    smoothing = given.get("smoothing")
    if smoothing is not None and not (is_number(smoothing) and smoothing > 0):
        raise InvalidInput("smoothing", smoothing, "give a number above zero, which is added to every share")
    return smoothing


def _entry(value: Any) -> str:
    """An entry of a typed row as a string, as in a table."""
    if isinstance(value, str):
        return value
    return number_text(value) if is_number(value) else str(value)


# -- sets ------------------------------------------------------------------------------------------------------


def _answers_in_table(
    questions: Sequence[Question], rows: Iterable[Sequence[str]]
) -> Iterator[tuple[str, ...]]:
    """The rows of a table, where an empty cell of a question that is not always asked means that it was not."""
    known: dict[Sequence[str], tuple[str, ...]] = {}
    for row in rows:
        if row not in known:
            cells = zip(questions, row, strict=True)
            known[row] = _split_sets(questions, [e or (NOT_ASKED if q.asked_if else "") for q, e in cells])
        yield known[row]


def _split_sets(questions: Sequence[Question], entries: Sequence[str]) -> tuple[str, ...]:
    """An entry for each attribute: sets of codes become a yes or no for each option."""
    cells = zip(questions, entries, strict=True)
    return tuple(chain.from_iterable(question.entries(entry) for question, entry in cells))
