"""Errors: one base class; each carries its details and none carries private data."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from priorveil import errors
from priorveil.errors import install_command

FAMILY = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.PriorveilError)]


@pytest.mark.parametrize("error", FAMILY, ids=lambda e: e.__name__)
def test_every_error_is_one_of_ours_and_in_the_drawing(error):
    assert error.__module__ == errors.__name__
    assert error.__name__ in errors.__doc__
    assert error.__doc__


def test_the_drawing_is_the_hierarchy():
    """Every line of the diagram is below its parent."""
    parents: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines():
        name = next((c.__name__ for c in FAMILY if line.strip("│├└─ ").split(" ")[0] == c.__name__), None)
        if name is None:
            continue
        depth = line.index(name)
        parents = [(at, parent) for at, parent in parents if at < depth]
        if parents:
            assert issubclass(getattr(errors, name), getattr(errors, parents[-1][1]))
        parents.append((depth, name))
    assert parents


@pytest.mark.parametrize(
    "error",
    [
        e
        for e in FAMILY
        if issubclass(e, errors.InvalidInput) and e not in (errors.OutsideDomain, errors.InvalidFile)
    ],
)
def test_bad_input_names_the_argument_shows_the_value_and_says_what_to_do(error):
    raised = error("epsilon", [1] * 1000, "give a number")
    assert isinstance(raised, ValueError)
    assert (raised.argument, raised.value, raised.advice) == ("epsilon", [1] * 1000, "give a number")
    assert str(raised).startswith("epsilon = [1, 1")
    assert "..." in str(raised) and str(raised).endswith(", 1]: give a number")
    assert len(str(raised)) < 120


def test_a_private_value_never_appears():
    raised = errors.OutsideDomain(7, "4 values")
    assert raised.row == 7
    assert "values[7]" in str(raised)
    assert not hasattr(raised, "value")


def test_errors_carry_their_data():
    assert errors.CertificateError("broken", breach=3).breach == 3
    assert errors.PlanError("prior", "missing").field == "prior"
    assert errors.UnknownVersion("version", "update").advice == "update"
    assert (errors.MissingExtra("x", "plot").library, errors.MissingExtra("x", "plot").extra) == ("x", "plot")


def test_hints_are_worded_by_whoever_shows_them():
    """Python names arguments; another front end may use its own names."""
    hints = errors.Hint("method", "arc", "columns"), errors.Hint("Prior.from_counts", purpose="for counts")
    raised = errors.InvalidPrior("prior", [2], "too much", *hints)
    assert (
        str(raised)
        == "prior = [2]: too much; use method='arc' or 'columns'; for counts, use Prior.from_counts"
    )
    assert raised.hints == hints
    assert raised.text(lambda hint: hint.argument) == "prior = [2]: too much; method; Prior.from_counts"


def test_values_are_shown_on_one_line():
    assert errors.short_repr("a\n  b") == "'a\\n b'"
    assert "\n" not in errors.short_repr({"a": "b\nc" * 100})


def test_a_description_is_not_quoted_as_a_value():
    raised = errors.InvalidInput("values", errors.NOT_SHOWN, "shape (2, 3); give one column")
    assert str(raised) == "values: shape (2, 3); give one column"
    assert (raised.argument, raised.advice) == ("values", "shape (2, 3); give one column")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'priorveil[plot]'"),
        ({"dir_info": {}}, "pip install '.[plot]' in the checkout of priorveil"),
        ({"dir_info": {"editable": True}}, "pip install -e '.[plot]' in the checkout of priorveil"),
        (
            {"archive_info": {}, "url": "file:///w/priorveil.whl"},
            "pip install 'priorveil[plot] @ file:///w/priorveil.whl'",
        ),
        (
            {"vcs_info": {"vcs": "git"}, "url": "https://git.example/p"},
            "pip install 'priorveil[plot] @ git+https://git.example/p'",
        ),
    ],
)
def test_an_extra_is_installed_as_priorveil_was(
    origin: dict[str, object] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package of this name, first in the path, says where it came from."""
    info = tmp_path / "priorveil-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: priorveil\nVersion: 0.1.0\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps({"url": "file:///w", **origin}))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert install_command("plot") == command
