"""Documents with one thing changed in them, and an id that fits: forgeries for those who read documents."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from priorveil.plans.document import content_id

Path = tuple[str | int, ...]

_STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 62, 1.5, 2**53, 2**64, "", "x", "0", "1", "-1", "-0", "00", "01", "+1", " 1", "1 ",
    "1_0", "0x1", "1e0", "1E0", "1.", ".5", "0.0", "-0.0", "1.0", "0.10", "1e-05", "1e-5", "0.00001", "1e16", "1e+16",
    "10000000000000000.0", "inf", "-inf", "Infinity", "nan", "900.0", "1e400", "1e-400", "\u0661", "\x1f", "\ud800",
    str(2**62), str(2**64), "9" * 5000, [], {}, [0], ["1"], [[]], {"kind": "table"}, {"name": "LIP"}, "__proto__",
    "LIP", "LDP", "DI", "Pufferfish", {"name": "Pufferfish", "pairs": [[0, 1]]},
    {"name": "Pufferfish", "pairs": [[0, 99]]}, "2026-01-31T12:00:00Z",
    "2026-02-30T12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:00:00+00:00",
    "0000-01-01T00:00:00Z", "x" * 2001,
)  # fmt: skip


def places(document: Any, at: Path = ()) -> Iterator[Path]:
    """Where a document can be changed: every member, and of a list the first, the second and the last."""
    if isinstance(document, dict):
        inner: list[str | int] = list(document)
    elif isinstance(document, list):
        inner = sorted({*range(len(document))[:2], *range(len(document))[-1:]})
    else:
        inner = []
    for key in inner:
        yield (*at, key)
        yield from places(document[key], (*at, key))


def changes(value: Any) -> Iterator[Any]:
    """What may stand in a value's place."""
    yield from (strange for strange in _STRANGE if strange != value or type(strange) is not type(value))
    yield [value]
    if isinstance(value, str):
        yield from (value + " ", value + "0", f"-{value}", f"0{value}")
        yield from _other_numbers(value)
    elif isinstance(value, int):
        yield from (value + 1, value - 1, str(value), float(value))
    elif isinstance(value, list) and value:
        yield from (value[:-1], value[1:], [*value, value[-1]], value[::-1], dict(enumerate(value)))
    elif isinstance(value, dict):
        yield from ({**value, "extra": 1}, list(value.values()))


def _other_numbers(text: str) -> Iterator[str | int]:
    """The neighbours of a number, and other spellings of it."""
    try:
        number = float(text)
    except ValueError:
        return
    if text.isdecimal():
        yield from (str(int(text) + 1), str(int(text) - 1), str(2 * int(text)), int(text))
    elif math.isfinite(number):
        yield from (repr(math.nextafter(number, end)) for end in (-math.inf, math.inf))
        yield from (repr(number * 1.5), repr(number / 3), repr(-number), f"{number:.20e}", number.hex())


def changed(document: dict[str, Any], at: Path, value: Any) -> dict[str, Any]:
    """The document with another value at a place."""
    made = copy.deepcopy(document)
    inner: Any = made
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return made


def without(document: dict[str, Any], at: Path) -> dict[str, Any]:
    """The document without what is at a place."""
    made = copy.deepcopy(document)
    inner: Any = made
    for key in at[:-1]:
        inner = inner[key]
    del inner[at[-1]]
    return made


def forged_documents(
    document: dict[str, Any], rng: np.random.Generator | None = None, count: int = 0
) -> Iterator[dict[str, Any]]:
    """The document with one thing changed: in every way, or in `count` ways drawn at random, with an id that fits."""
    every: list[tuple[Path, Any]] = [(("extra",), 1)]
    for at in places({key: value for key, value in document.items() if key != "id"}):
        value: Any = document
        for key in at:
            value = value[key]
        every += [(at, new) for new in (..., *changes(value))]
    chosen = every if rng is None else [every[i] for i in rng.choice(len(every), count, replace=False)]
    for at, new in chosen:
        yield identified(without(document, at) if new is ... else changed(document, at, new))


def identified(document: dict[str, Any]) -> dict[str, Any]:
    """The document under the id of its content, where it has one; so are the forms and plans in a campaign."""
    try:
        if isinstance(document.get("cohorts"), dict):
            forms = document["cohorts"].items()
            document = {**document, "cohorts": {name: _identified_form(form) for name, form in forms}}
        return {**document, "id": content_id(document)}
    except (UnicodeEncodeError, ValueError):
        return document


def _identified_form(form: Any) -> Any:
    """A form under the id that its content has, with plans under theirs; anything else as it is."""
    try:
        slots = [[{**part, "plan": identified(part["plan"])} for part in parts] for parts in form["slots"]]
        named = [[{**part, "plan": part["plan"]["id"]} for part in parts] for parts in slots]
        return {**form, "slots": slots, "id": content_id({"slots": named})}
    except (KeyError, TypeError, AttributeError):
        return form
