"""Columns of values, whatever library they come from, mean the same codes; and no message shows a value."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import InvalidInput, OutsideDomain
from priorveil.mechanisms.randomness import SystemSource
from priorveil.priors.domain import MISSING, OUTSIDE, Codes, Domain, LabelDomain, Missing
from refusals import raises

LABELS = ("ash", "birch", "cedar")


def codes_of(values: Any, labels: Any, missing: Missing = "refuse") -> tuple[Codes, Any]:
    domain = labels if isinstance(labels, Domain) else LabelDomain(labels)
    return domain.encode_or_refuse(values, SystemSource().words, missing)


def codes(values: Any, labels: Any) -> list[int]:
    """With `MISSING` and `OUTSIDE`."""
    domain = LabelDomain(labels)
    return domain.encode(domain.columns(values), SystemSource().words).tolist()


WORDS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": iter,
    "numpy objects": lambda v: np.array(v, dtype=object),
    "pandas": pd.Series,
    "pandas string": lambda v: pd.Series(v, dtype="string"),
    "pandas category": lambda v: pd.Series(v, dtype="category"),
    "pandas arrow": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.string())),
    "polars": lambda v: pl.Series(v, dtype=pl.String),
    "polars category": lambda v: pl.Series(v, dtype=pl.Categorical),
    "arrow": lambda v: pa.array(v, pa.string()),
    "arrow large": lambda v: pa.array(v, pa.large_string()),
    "arrow dictionary": lambda v: pa.array(v, pa.string()).dictionary_encode(),
    "arrow chunks": lambda v: pa.chunked_array([v[:2], v[2:]], pa.string()),
    "arrow dictionary chunks": lambda v: pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (v[:1], v[1:])]
    ),
}

NUMBERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "floats with gaps": lambda v: np.array([np.nan if x is None else x for x in v], dtype=float),
    "masked": lambda v: np.ma.MaskedArray([99 if x is None else x for x in v], [x is None for x in v]),
    "pandas": lambda v: pd.Series(v, dtype="Int64"),
    "pandas floats": lambda v: pd.Series(v, dtype="float64"),
    "polars": lambda v: pl.Series(v, dtype=pl.UInt8),
    "arrow": lambda v: pa.array(v, pa.int16()),
    "arrow chunks": lambda v: pa.chunked_array([v[:1], v[1:]], pa.int64()),
}


@pytest.mark.parametrize("kind", WORDS)
@given(st.lists(st.sampled_from([*LABELS, None]), max_size=6))
def test_labels(kind: str, values: list[str | None]) -> None:
    codes, absent = codes_of(WORDS[kind](values), LABELS, missing="pass")
    assert absent is not None and absent.tolist() == [v is None for v in values]
    assert codes.tolist() == [0 if v is None else LABELS.index(v) for v in values]
    if None in values:
        with raises(InvalidInput, argument=f"values[{values.index(None)}]"):
            codes_of(WORDS[kind](values), LABELS)


@pytest.mark.parametrize("kind", NUMBERS)
@given(st.lists(st.sampled_from([0, 1, 2, None]), max_size=6))
def test_numbers(kind: str, values: list[int | None]) -> None:
    codes, absent = codes_of(NUMBERS[kind](values), (0, 1, 2), missing="pass")
    assert absent is not None and absent.tolist() == [v is None for v in values]
    assert codes.tolist() == [v or 0 for v in values]


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_position_is_never_a_value(kind: str) -> None:
    """A column of 0 and 1 is refused where labels are words; only `codes=True` takes positions, which are integers."""
    with pytest.raises(OutsideDomain):
        codes_of(NUMBERS[kind]([1, 0]), ("no", "yes"))
    plan = pv.design(pv.Prior({"no": 0.9, "yes": 0.1}), 1.0, pv.Histogram())
    for value in (1, [1, 0], NUMBERS[kind]([1, 0])):
        with pytest.raises(OutsideDomain):
            plan.privatize(value)
    if "floats" in kind:
        with raises(InvalidInput, argument="values[0]"):
            plan.privatize(NUMBERS[kind]([1, 0, 0]), codes=True)
        return
    expected = plan.privatize(["yes", "no", "no"], np.random.default_rng(4)).tolist()
    made = plan.privatize(NUMBERS[kind]([1, 0, 0]), np.random.default_rng(4), codes=True)
    assert made.tolist() == expected


def test_positions_are_checked() -> None:
    plan = pv.design(pv.Prior.grid([0, 10, 20], [0.2, 0.3, 0.5]), 1.0, pv.Histogram())
    assert isinstance(plan.privatize(2, codes=True), int)
    for wrong in (3, -1):
        with raises(OutsideDomain, row=0):
            plan.privatize(wrong, codes=True)


@pytest.mark.parametrize("kind", NUMBERS)
def test_whole_numbers_are_labels_where_labels_are_numbers(kind: str) -> None:
    assert codes_of(NUMBERS[kind]([7, 5, 5]), (5, 7, 9))[0].tolist() == [1, 0, 0]
    with pytest.raises(OutsideDomain):
        codes_of(NUMBERS[kind]([0, 1]), (5, 7, 9))


def test_numpy_columns() -> None:
    assert codes_of(np.array(LABELS)[[2, 0]], LABELS)[0].tolist() == [2, 0]
    for kind in ("uint8", "int64", "float32"):
        assert codes_of(np.array([2, 0], dtype=kind), (0, 1, 2))[0].tolist() == [2, 0]
    assert codes(np.array([2**63 + 1], dtype=np.uint64), (0, 1)) == [OUTSIDE]


SECRET = "larch-7391"


@pytest.mark.parametrize("kind", WORDS)
def test_outside_the_domain_names_the_row_and_never_the_value(kind: str) -> None:
    for missing in ("refuse", "pass"):
        with pytest.raises(OutsideDomain) as caught:
            codes_of(WORDS[kind](["ash", "cedar", SECRET]), LABELS, missing)
        assert caught.value.row == 2 and "values[2]" in str(caught.value)
        assert SECRET not in str(caught.value) and SECRET not in str(vars(caught.value))


@pytest.mark.parametrize("foreign", [3, -1, 739145, 10**30, 0.5, np.inf, True, "Ash", ("ash",), b"ash"])
def test_foreign_values(foreign: object) -> None:
    with pytest.raises(OutsideDomain) as caught:
        codes_of(["birch", foreign], LABELS)
    assert caught.value.row == 1 and repr(foreign) not in str(caught.value).replace("values[1]", "")


@pytest.mark.parametrize(
    "values",
    [None, 1.5, "ash", b"\x00", {"ash": 1}, {"ash"}, np.zeros((2, 2)), pd.DataFrame({"x": [1]})],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_column_is_refused(values: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        codes_of(values, LABELS)
    assert "'ash'" not in str(caught.value)


def test_labels_that_look_alike_are_refused() -> None:
    for labels in (
        ["1", "1.0"],
        [1, "1"],
        [0.5, "0.50"],
        ["a", " a"],
        [1, "true"],
        ["true", "TRUE"],
        [8, "08"],
    ):
        with pytest.raises(InvalidInput) as caught:
            LabelDomain(labels)
        assert caught.value.argument == "labels" and caught.value.value == labels
    for empty in ("", "  ", "\t"):
        with pytest.raises(InvalidInput):
            pv.Prior({"a": 0.5, empty: 0.5})


@given(
    st.lists(st.one_of(st.integers(-20, 20), st.floats(-5, 5), st.text("ab1 .e-+", max_size=4)), max_size=6)
)
def test_every_label_is_its_own_value_in_every_form(labels: list[Any]) -> None:
    """A label, its text, and its text with blanks around it are the same value, or the labels are refused."""
    try:
        domain = LabelDomain(labels)
    except InvalidInput:
        return
    expected = list(range(len(labels)))
    texts = [repr(label) if isinstance(label, float) else str(label) for label in labels]
    for column in (labels, texts, [f" {text}\n" for text in texts], pa.array(texts, pa.string())):
        assert domain.encode([column], SystemSource().words).tolist() == expected


MISSING_OR_FLOAT = (None, float("nan"), pd.NA, pd.NaT, 1.0, np.float64(2), 1.5)
OTHERS = (True, np.True_, b"ash", "ash", np.str_("oak"), np.int8(2), 3, 2**70, Decimal(1))
SINGLE = [*MISSING_OR_FLOAT, *OTHERS, datetime.date(2024, 5, 1), object(), 1j]


@pytest.mark.parametrize("value", SINGLE, ids=lambda value: type(value).__name__)
def test_a_single_value_is_read_like_a_column_of_one(value: Any) -> None:
    plan = pv.design(pv.Prior.uniform(LABELS), 1.0, pv.Histogram())

    def outcome(values: Any, missing: str) -> str:
        try:
            return str(np.ma.atleast_1d(plan.privatize(values, np.random.default_rng(1), missing)))
        except InvalidInput as error:
            return f"{type(error).__name__}: {error}"

    assert outcome(value, "refuse") == outcome([value], "refuse")
    if "missing" in outcome([value], "refuse"):
        assert plan.privatize(value, missing="pass") is None
    else:
        assert outcome(value, "pass") == outcome([value], "pass")


def test_an_array_without_dimensions_is_a_single_value() -> None:
    plan = pv.design(pv.Prior.uniform(LABELS), 1.0, pv.Histogram())
    assert isinstance(plan.privatize(np.array("ash")), int)
    with pytest.raises(OutsideDomain):
        plan.privatize(np.array("oak"))
    with raises(InvalidInput, argument="values[0]", hint="missing"):
        plan.privatize(np.ma.masked)


CELLS = [("young", "yes"), ("young", "no"), ("old", "yes"), ("old", "no")]


@pytest.mark.parametrize("kind", ["tuples", "lists", "array", "pandas", "polars", "arrow", "mapping"])
def test_values_of_several_attributes_are_rows_or_columns(kind: str) -> None:
    plan = pv.design(pv.Prior.joint(dict.fromkeys(CELLS, 0.25), ("age", "smokes")), 1.0, pv.Histogram())
    rows = [CELLS[2], CELLS[0], CELLS[3], CELLS[3]]
    table = {"smokes": [row[1] for row in rows], "other": [1, 2, 3, 4], "age": [row[0] for row in rows]}
    values: Any = {
        "tuples": lambda: rows,
        "lists": lambda: [list(row) for row in rows],
        "array": lambda: np.array(rows),
        "pandas": lambda: pd.DataFrame(table),
        "polars": lambda: pl.DataFrame(table),
        "arrow": lambda: pa.table(table),
        "mapping": lambda: table,
    }[kind]()
    drawn = plan.privatize(values, np.random.default_rng(3))
    assert drawn.tolist() == plan.privatize([2, 0, 3, 3], np.random.default_rng(3), codes=True).tolist()


def test_a_tuple_is_one_value_of_several_attributes() -> None:
    plan = pv.design(pv.Prior.joint(dict.fromkeys(CELLS, 0.25), ("age", "smokes")), 1.0, pv.Histogram())
    assert isinstance(plan.privatize(("old", "no")), int)
    with raises(OutsideDomain, row=0):
        plan.privatize(("old", "sometimes"))
    with raises(InvalidInput, argument="values[0]", hint="missing") as error:
        plan.privatize([("old", None)])
    assert "old" not in str(error.value)
    masked = plan.privatize([("old", "no"), ("old", None), ("old", float("nan")), None], missing="pass")
    assert masked.mask.tolist() == [False, True, True, True]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8])
def test_numbers_of_numpy_are_numbers(kind: Any) -> None:
    cells = pv.Prior.cells([0, 1, 2, 3], [0.2, 0.5, 0.3]).domain
    for column in ([kind(2.5)], np.array([2.5], dtype=kind)):
        assert codes_of(column, cells)[0].tolist() == [2]


def test_numbers_that_are_labels_are_not_positions() -> None:
    assert codes_of([1.5, 1, 0.0], [0.0, 1.0, 1.5])[0].tolist() == [2, 1, 0]
    with pytest.raises(OutsideDomain):
        codes_of([2], [0.0, 0.5, 1.5])


def test_a_dictionary_that_holds_the_gap_itself() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, 1, None, 0]), pa.array(["a", None, "b"]))
    assert codes(column, ["a", "b"]) == [1, MISSING, MISSING, 0]
    assert codes(pa.nulls(2), ["a", "b"]) == [MISSING, MISSING]


def test_equal_entries_of_different_types_are_read_one_by_one() -> None:
    assert codes([True, 1, "1", 1.0], [1, 2]) == [0, 0, 0, 0]
    assert codes([True, 1, "1", 1.0, False], ["true", "x"]) == [0, OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE]


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_of_numpy_are_never_numbers(unit: str) -> None:
    day = np.array(["2024-05-01", "NaT"], dtype=f"datetime64[{unit}]")
    text = "2024-05-01" if unit == "D" else "2024-05-01 00:00:00"
    assert codes(day, [text, int(day[0].astype("int64"))]) == [0, MISSING]
    assert codes([day[0]], [text, int(day[0].astype("int64"))])[0] in (0, OUTSIDE)


@pytest.mark.parametrize("library", [pd.Series, pl.Series, pa.array])
def test_large_whole_numbers_with_gaps_stay_exact(library: Any) -> None:
    labels = [2**53 - 1, 2**53 + 1]
    column = (
        pd.Series([labels[1], None], dtype="Int64") if library is pd.Series else library([labels[1], None])
    )
    assert codes(column, labels) == [1, MISSING]


def test_a_domain_shows_what_is_allowed() -> None:
    assert repr(LabelDomain(["yes", "no"])) == "LabelDomain(yes, no)"


def test_a_refused_column_of_positions_names_codes() -> None:
    domain = LabelDomain(["yes", "no"])
    for column in ([0, 1], np.array([1, 0]), ["0", None, "1"]):
        with raises(OutsideDomain, hint="codes"):
            domain.encode_or_refuse(column, np.empty)
    for words, column in ((domain, [0, "Yes"]), (domain, [0.5]), (LabelDomain([7, 8]), [0, 1])):
        with pytest.raises(OutsideDomain) as caught:
            words.encode_or_refuse(column, np.empty)
        assert not caught.value.hints


def test_one_person_in_a_list_is_told_to_be_a_tuple() -> None:
    cells = {(a, n): 0.25 for a in ("old", "young") for n in (0, 40)}
    domain = pv.Prior.joint(cells, ("age", "overtime"), grids="overtime").domain
    with raises(OutsideDomain, hint="a tuple with a level of each attribute"):
        domain.encode_or_refuse(["young", 12.5], lambda size: np.zeros(size, dtype=np.uint64))
    with pytest.raises(OutsideDomain) as caught:
        domain.encode_or_refuse(
            [("young", 12.5), ("middle", 3)], lambda size: np.zeros(size, dtype=np.uint64)
        )
    assert not caught.value.hints
