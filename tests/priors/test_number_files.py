"""Priors, secrets, sets of priors, channels and statistics from files; errors have the line and show no cell."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import priorveil as pv
from priorveil.errors import InvalidFile, InvalidInput, PriorveilError
from refusals import raises

THREE = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2})


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        ("p.csv", "a,0.5\nb,0.3\nc,0.2\n", {}),
        ("p.csv", "answer,share\na,0.5\nb,0.3\nc,0.2\n", {}),
        ("p.csv", "sep=;\nanswer;share\na;0.5\nb;0.3\nc;0.2\n", {}),
        ("p.csv", "a\t5\nb\t3\nc\t2\n", {"counts": True}),
        ("p.csv", "a,5\nb,3\nc,2\nd,0\n", {"counts": True, "impossible": "leave out"}),
        ("p.csv", "a,4\nb,2\nc,1\n", {"counts": True, "smoothing": 1}),
        ("p.csv", "a,50\nb,30\nc,20\n", {"normalise": True}),
        ("p.JSON", '{"a": 0.5, "b": 0.3, "c": 0.2}', {}),
        ("p.json", '{"a": 5, "b": 3, "c": 2}', {"counts": True}),
    ],
)
def test_a_prior_in_any_form(tmp_path: Path, name: str, text: str, rules: dict[str, Any]) -> None:
    prior = pv.Prior.from_file(str(write(tmp_path, name, text)), **rules)
    assert prior.labels == THREE.labels
    assert prior.probabilities == pytest.approx(THREE.probabilities, rel=1e-12)


@pytest.mark.parametrize(("name", "text"), [("p.csv", "0.5,0.3,0.2\n"), ("p.json", "[0.5, 0.3, 0.2]")])
def test_numbers_alone_have_positions_as_labels(tmp_path: Path, name: str, text: str) -> None:
    assert pv.Prior.from_file(write(tmp_path, name, text)) == pv.Prior([0.5, 0.3, 0.2])


def test_whole_numbers_are_labels_if_all_are(tmp_path: Path) -> None:
    assert pv.Prior.from_file(write(tmp_path, "n.csv", "8,0.5\n-3,0.5\n")).labels == (8, -3)
    assert pv.Prior.from_file(write(tmp_path, "t.csv", "08,0.5\n-3,0.5\n")).labels == ("08", "-3")


def test_people_whose_last_column_is_a_number_are_no_prior(tmp_path: Path) -> None:
    """The same value twice is more often a row for each person than a mistyped table."""
    path = write(tmp_path, "people.csv", "shift,sleeps,cups\nday,well,1\nday,well,3\nnight,badly,4\n")
    with raises(InvalidFile, line=3, hint="Prior.from_table"):
        pv.Prior.from_file(path)


def test_several_attributes(tmp_path: Path) -> None:
    text = "age,smokes,share\nyoung,yes,0.2\nyoung,no,0.3\nold,no,0.5\n"
    path = write(tmp_path, "cross.csv", text)
    prior = pv.Prior.from_file(path, impossible="leave out")
    assert prior.names == ("age", "smokes") and len(prior) == 3
    with pytest.raises(InvalidFile) as caught:
        pv.Prior.from_file(path)
    assert {hint.argument for hint in caught.value.hints} >= {"impossible='leave out'"}
    assert "old" not in str(caught.value)


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=20))
def test_counts_are_read_exactly(tmp_path_factory: pytest.TempPathFactory, counts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("counts")
    path = write(folder, "p.csv", "".join(f"v{i},{count}\n" for i, count in enumerate(counts)))
    assert pv.Prior.from_file(path, counts=True).weights == pv.Prior.from_counts(counts).weights


PRIVATE = "Xq7"  # stands for a cell that may be private


@pytest.mark.parametrize(
    ("name", "text", "rules", "line"),
    [
        ("p.csv", "", {}, None),
        ("p.csv", f"yes,{PRIVATE}\nno,0.5\n", {}, 1),
        ("p.csv", f"v,p\n\nyes,0.5\nno,{PRIVATE}\n", {}, 4),
        ("p.csv", f"sep=;\nyes;0.5\nno;{PRIVATE}\n", {}, 3),
        ("p.csv", "yes,nan\nno,0.5\nmaybe,0.5\n", {}, 1),
        ("p.csv", "yes,-inf\nno,0.5\nmaybe,0.5\n", {}, 1),
        ("p.csv", "yes,N/A\nno,0.5\nmaybe,0.5\n", {}, 1),
        ("p.csv", "yes,None\nno,0.5\nmaybe,0.5\n", {}, 1),
        ("p.csv", "yes,\nno,0.5\nmaybe,0.5\n", {}, 1),
        ("p.csv", "yes,?\nno,0.5\nmaybe,0.5\n", {}, 1),
        ("p.csv", "yes,69%\nno,31%\n", {}, 1),
        ("p.csv", 'a,"1,200"\nb,"3,400"\n', {"counts": True}, 1),
        ("p.csv", "a,0.6\nb,0.4\n,\n", {}, 3),
        ("p.csv", "0.5\n\n0.5\n", {}, 2),
        ("p.csv", "a,1.5\nb,-0.5\n", {}, 2),
        ("p.csv", "a,2\nb,0.5\n", {"counts": True}, 2),
        ("p.csv", f"{PRIVATE},0.5\nb,0.3\n{PRIVATE},0.2\n", {}, 3),
        ("p.csv", f"{PRIVATE},x,1\nb,y,2\n", {}, None),
        ("p.csv", f"{PRIVATE},0.5\nb,0.6\n", {}, None),
        ("p.csv", f"{PRIVATE},1.0\nb,0\n", {}, None),
        ("p.csv", f"{PRIVATE},0\nb,0\n", {"normalise": True}, None),
        ("p.csv", f"name,age,pay\n{PRIVATE},34,51000\nBob,51,{2**40}\n", {}, None),
        ("p.json", "{", {}, 1),
        ("p.json", f'{{"{PRIVATE}": 0.5,\n "b" 0.5}}', {}, 2),
        ("p.json", f'{{"{PRIVATE}": 0.5, "{PRIVATE}": 0.5, "b": 0.5}}', {}, None),
        ("p.json", f'{{"a": "{PRIVATE}"}}', {}, None),
        ("p.json", "[1.5, -0.5]", {}, None),
        ("p.json", "[NaN, 1.0]", {}, None),
        ("p.json", "[true, false]", {}, None),
        ("p.json", "[]", {}, None),
        ("p.json", "3", {}, None),
        ("p.json", "[" * 100_000, {}, None),
    ],
)
def test_a_broken_prior_has_its_line_and_shows_no_cell(
    tmp_path: Path, name: str, text: str, rules: dict[str, Any], line: int | None
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(InvalidFile) as caught:
        pv.Prior.from_file(path, **rules)
    error = caught.value
    assert (error.path, error.line) == (str(path), line)
    assert str(error).startswith(f"{path}: " if line is None else f"{path}: line {line}: ")
    for private in (PRIVATE, "34", "51000", str(2**40)):
        assert private not in str(error).removeprefix(str(path))
    assert error.__cause__ is None  # a traceback shows causes too


CELL = st.sampled_from(
    ["", "a", "--3", "0", "1", "0.5", "-1", "1e308", "1e-320", "nan", "9" * 5000, '"', "ß"]
)
TABLE = st.lists(st.lists(CELL, max_size=4).map(",".join), max_size=5).map("\n".join)
NUMBER = st.floats() | st.integers() | st.sampled_from([10**400, "x", None, True, [0.5]])
DOCUMENT = st.dictionaries(CELL, NUMBER, max_size=4) | st.lists(
    NUMBER | st.lists(NUMBER, max_size=3), max_size=4
)


@given(
    text=TABLE | st.text(max_size=40) | DOCUMENT.map(json.dumps),
    ending=st.sampled_from([".csv", ".json"]),
    counts=st.booleans(),
    normalise=st.booleans(),
)
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, ending: str, counts: bool, normalise: bool
) -> None:
    """Every reader returns an object or raises an error of its own, never one of Python or numpy."""
    path = tmp_path_factory.mktemp("any") / f"file{ending}"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    readers = (
        lambda: pv.Prior.from_file(path, counts=counts, normalise=normalise and not counts),
        lambda: pv.Prior.from_file(path, impossible="leave out"),
        lambda: pv.Channel.from_file(path, normalise=normalise),
        lambda: pv.Secret.from_file(path, pv.Prior([0.5, 0.5]), normalise=normalise),
        lambda: pv.PriorSet.from_file(path, normalise=normalise),
        lambda: pv.Linear.from_file(path, pv.Prior([0.5, 0.5])),
    )
    for read in readers:
        with suppress(PriorveilError):
            read()


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    for name in ("p.csv", "p.json"):
        (tmp_path / name).write_bytes(b"caf\xe9,0.5\n")
        with pytest.raises(InvalidFile):
            pv.Prior.from_file(tmp_path / name)


def test_rules_that_contradict_each_other(tmp_path: Path) -> None:
    path = write(tmp_path, "p.csv", "a,1\nb,1\n")
    for rules in ({"smoothing": 1.0}, {"counts": True, "normalise": True}):
        with pytest.raises(InvalidInput):
            pv.Prior.from_file(path, **rules)  # type: ignore[arg-type]


@pytest.mark.parametrize("inputs", [["com,ma", 'quo"te', "é"], ["007", "²", "-3"], [-3, 0, 12]])
def test_a_channel_in_csv_and_json(tmp_path: Path, inputs: list[Any]) -> None:
    channel = pv.Channel([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], inputs, ["x", "y"])
    names = ['"' + str(label).replace('"', '""') + '"' for label in inputs]
    rows = [f"{name},{x},{y}" for name, (x, y) in zip(names, channel.matrix.tolist(), strict=True)]
    assert pv.Channel.from_file(write(tmp_path, "q.csv", "\n".join([",x,y", *rows]))) == channel
    assert pv.Channel.from_file(write(tmp_path, "q.json", channel.to_json())) == channel
    rounded = write(tmp_path, "rounded.csv", "0.33,0.33,0.33\n0.5,0.25,0.25\n")
    assert pv.Channel.from_file(rounded, normalise=True).matrix[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("q.csv", "", None),
        ("q.csv", "a,b\n", None),
        ("q.csv", "a\nb\n", None),
        ("q.csv", "0.5,0.5\n1\n", 2),
        ("q.csv", f",x\na,{PRIVATE}\n", 2),
        ("q.csv", f"0.5,{PRIVATE}\n", 1),
        ("q.csv", "0.33,0.33\n", None),
        ("q.csv", "1.5,-0.5\n", None),
        ("q.json", "{}", None),
        ("q.json", "[0.5, 0.5]", None),
        ("q.json", "[[0.5, 0.5], [1]]", None),
        ("q.json", f'[[0.5, "{PRIVATE}"]]', None),
        ("q.json", "[[0.5, NaN]]", None),
        ("q.json", '{"matrix": [[1.0]], "inputs": "ab"}', None),
        ("q.json", '{"matrix": [[1.0]], "inputs": ["a", "b"]}', None),
    ],
)
def test_a_broken_matrix_has_its_line_and_shows_no_cell(
    tmp_path: Path, name: str, text: str, line: int | None
) -> None:
    path = write(tmp_path, name, text)
    readers = (
        lambda: pv.Channel.from_file(path),
        lambda: pv.Secret.from_file(path, pv.Prior([0.5, 0.5])),
        lambda: pv.PriorSet.from_file(path),
    )
    for read in readers:
        if '"inputs": ["a", "b"]' in text and read is readers[2]:
            continue  # a set has no names
        with pytest.raises(InvalidFile) as caught:
            read()
        assert caught.value.path == str(path) and caught.value.line == line
        assert PRIVATE not in str(caught.value)


def test_the_columns_of_a_secret_may_have_any_order(tmp_path: Path) -> None:
    text = ",c,a,b\nill,0.1,0.6,0.3\nwell,0.3,0.4,0.3\n"
    secret = pv.Secret.from_file(write(tmp_path, "s.csv", text), THREE)
    assert secret == pv.Secret([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]], ["ill", "well"])
    alone = write(tmp_path, "alone.csv", "6,3,1\n4,3,3\n")
    assert pv.Secret.from_file(alone, THREE, normalise=True).rows.tolist() == pytest.approx(secret.rows)


@pytest.mark.parametrize("text", [",a,b\nill,0.5,0.5\n", ",a,b,d\nill,0.5,0.3,0.2\n", "0.5,0.5\n"])
def test_a_secret_about_other_values(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidFile):
        pv.Secret.from_file(write(tmp_path, "s.csv", text), THREE)


def test_a_set_of_priors(tmp_path: Path) -> None:
    text = ",a,b\nfirst,0.2,0.8\nsecond,0.4,0.6\n"
    members = [pv.Prior({"a": 0.2, "b": 0.8}), pv.Prior({"a": 0.4, "b": 0.6})]
    assert pv.PriorSet.from_file(write(tmp_path, "set.csv", text)) == pv.PriorSet(members)
    counts = write(tmp_path, "counts.json", json.dumps([[2, 8], [4, 6]]))
    read = pv.PriorSet.from_file(counts, normalise=True)
    assert np.allclose(read.vertices(), [[0.2, 0.8], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("labels", "text", "names"),
    [
        ("abc", "statistic,c,b,a\nfirst,1,2,3\nsecond,0,0,1\n", ("first", "second")),
        ("abc", "c,b,a\n1,2,3\n0,0,1\n", ("row 1", "row 2")),
        ("abc", "first,3,2,1\nsecond,1,0,0\n", ("first", "second")),
        ("abc", "3,2,1\n1,0,0\n", None),
        ("012", "first,3,2,1\nsecond,1,0,0\n", ("first", "second")),
        ("012", ",2,1,0\nfirst,1,2,3\nsecond,0,0,1\n", ("first", "second")),
    ],
)
def test_statistics_with_or_without_a_header_and_names(
    tmp_path: Path, labels: str, text: str, names: tuple[str, ...] | None
) -> None:
    values = [int(label) if label.isdigit() else label for label in labels]
    prior = pv.Prior([0.5, 0.3, 0.2], values)
    query = pv.Linear.from_file(write(tmp_path, "m.csv", text), prior, unbiased=True)
    assert query == pv.Linear([[3, 2, 1], [1, 0, 0]], names, unbiased=True)


def test_statistics_in_json(tmp_path: Path) -> None:
    path = write(tmp_path, "m.json", "[[3, 2, 1], [1, 0, 0.5]]")
    assert pv.Linear.from_file(path, THREE) == pv.Linear([[3, 2, 1], [1, 0, 0.5]])


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("m.csv", f"1,1,{PRIVATE}\n", 1),
        ("m.csv", "1,,0\n0,1,1\n", 1),
        ("m.csv", "x,1,0\n", 1),
        ("m.csv", "score,1,0,1%\n", 1),
        ("m.csv", "1,2,3,4\n2,2,2,2\n", None),
        ("m.json", f'[[1, 1, "{PRIVATE}"]]', None),
        ("m.json", "[1, 1, 0]", None),
        ("m.json", "[[1, 1]]", None),
    ],
)
def test_broken_statistics(tmp_path: Path, name: str, text: str, line: int | None) -> None:
    with pytest.raises(InvalidFile) as caught:
        pv.Linear.from_file(write(tmp_path, name, text), THREE)
    assert caught.value.line == line and PRIVATE not in str(caught.value)


@pytest.mark.parametrize("text", ["score,0,1,2\nrare,0,0,1\n", "0,1,2\n1,0,0\n", "2,0,1\n1,0,0\n"])
def test_a_line_that_may_be_a_header_or_numbers_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        pv.Linear.from_file(write(tmp_path, "m.csv", text), pv.Prior([0.5, 0.3, 0.2]))
    assert caught.value.line == 1


def test_a_decimal_comma_is_read_where_cells_are_separated_by_semicolons(tmp_path: Path) -> None:
    path = write(tmp_path, "p.csv", "yes;0,69\nno;0,31\n")
    assert pv.Prior.from_file(path) == pv.Prior({"yes": 0.69, "no": 0.31})
    with raises(InvalidFile, line=1):
        pv.Prior.from_file(write(tmp_path, "c.csv", "yes;1,234\nno;3\n"), counts=True)
