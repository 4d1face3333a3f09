"""Surveys in TOML. Python's TOML parser does not report lines, so the text is searched for the line of each key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from priorveil.errors import InvalidFile, not_text_advice
from priorveil.surveys.sections import Place, Section, SurveyFile
from priorveil.surveys.toml_mistakes import LISTS, explain_mistake

TOO_LONG = "a number has thousands of digits, or brackets are nested too deeply: correct the file"
Places = dict[tuple[str, ...], Place]

_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_QUOTES = re.compile(r'"""|' + "'''")
_LINE = re.compile(r"at line (\d+)")


def read_toml(path: Path, content: bytes) -> SurveyFile:
    """Read the sections of a survey in TOML; a broken file is an error with its line."""
    try:
        text = content.decode("utf-8-sig")
        document = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InvalidFile(path, not_text_advice(content[:4])) from None
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, text, str(error)) from None
    except (ValueError, RecursionError):
        raise InvalidFile(path, TOO_LONG) from None
    places = key_places(text)
    sections = {name: _sections(path, document, name, places) for name in LISTS}
    survey = {key: value for key, value in document.items() if key not in LISTS}
    return SurveyFile(
        path,
        Section(path, survey, places.get(("", 0), {})),
        sections["question"],
        sections["together"],
        cohorts=sections["cohort"],
    )


def _syntax_error(path: Path, text: str, words: str) -> InvalidFile:
    """The error about broken TOML, in plain words if the mistake is a common one."""
    match = _LINE.search(words)
    line = int(match[1]) if match else len(text.splitlines())
    explained = explain_mistake(text, line, words)
    if explained is not None:
        return InvalidFile(path, explained[1], line=explained[0])
    advice = "this is not TOML: check its quotation marks, brackets and commas"
    return InvalidFile(path, f"{advice} ({words})", line=line)


def _sections(
    path: Path, document: dict[str, Any], name: str, places: dict[tuple[str, int], Places]
) -> tuple[Section, ...]:
    entries = document.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        line = places.get(("", 0), {}).get((name,), Place()).line
        raise InvalidFile(
            path, f"write [[{name}]] above the keys of each {name}, in double brackets", line=line
        )
    return tuple(Section(path, entry, places.get((name, number), {})) for number, entry in enumerate(entries))


def key_places(text: str) -> dict[tuple[str, int], Places]:
    r"""The line of each key, by section: the name of its list and its number there; `("", 0)` is the top of the file.

    >>> places = key_places('title = "T"\n[[question]]\nname = "a"\n[question.text]\nde = "A"\n')
    >>> places["", 0]["title",].line, places["question", 0][()].line, places["question", 0]["text", "de"].line
    (1, 2, 5)
    """
    places: dict[tuple[str, int], Places] = {("", 0): {}}
    counts = dict.fromkeys(LISTS, 0)
    section, above, inside_text = ("", 0), tuple[str, ...](), False
    for line, content in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(content), _KEY.match(content)
        if not inside_text and header is not None:
            name, *rest = _parts(header[2])
            if name in LISTS and header[1] == "[[" and not rest:
                section, counts[name] = (name, counts[name]), counts[name] + 1
                places[section] = {(): Place(line)}
            elif name in LISTS and counts[name]:
                section = (name, counts[name] - 1)
            else:
                section, rest = ("", 0), [name, *rest]
            above = tuple(rest)
            _note(places[section], above, line)
        elif not inside_text and key is not None:
            _note(places[section], (*above, *_parts(key[1])), line)
        inside_text ^= len(_QUOTES.findall(content)) % 2 == 1
    return places


def _note(places: Places, keys: tuple[str, ...], line: int) -> None:
    for length in range(1, len(keys) + 1):
        places.setdefault(keys[:length], Place(line))


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]
