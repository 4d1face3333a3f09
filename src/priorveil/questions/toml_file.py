"""Surveys in TOML. Python's TOML parser does not report lines, so the text is searched for the line of each key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from priorveil.errors import InvalidFile, not_text_advice
from priorveil.questions.survey_document import LISTS, Keys, Place, Places, SurveyDocument, nearest

TOO_LONG = "a number has thousands of digits, or brackets are nested too deeply: correct the file"

_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_QUOTES = re.compile(r'"""|' + "'''")
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")


def read_toml(path: Path, content: bytes) -> SurveyDocument:
    """Read a survey in TOML; a broken file is an error with its line, in the words of the parser."""
    try:
        text = content.decode("utf-8-sig")
        values = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InvalidFile(path, not_text_advice(content[:4])) from None
    except tomllib.TOMLDecodeError as error:
        match = _POSITION.search(str(error))
        line = int(match[1]) if match and match[1] else len(text.splitlines())
        raise InvalidFile(path, f"this is not TOML: {_POSITION.sub('', str(error))}", line=line) from None
    except (ValueError, RecursionError):
        raise InvalidFile(path, TOO_LONG) from None
    return SurveyDocument(path, values, nearest(key_places(text)))


def key_places(text: str) -> Places:
    r"""The line of each key.

    >>> places = key_places('title = "T"\n[[question]]\nname = "a"\n[question.text]\nde = "A"\n')
    >>> places["title",].line, places["question", 0].line, places["question", 0, "text", "de"].line
    (1, 2, 5)
    """
    places: Places = {}
    counts = dict.fromkeys(LISTS, 0)
    above: Keys = ()
    inside_text = False
    for line, content in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(content), _KEY.match(content)
        if not inside_text and header is not None:
            name, *rest = _parts(header[2])
            if name in LISTS and header[1] == "[[" and not rest:
                counts[name] += 1
            above = (name, counts[name] - 1, *rest) if name in LISTS and counts[name] else (name, *rest)
            _note(places, above, line)
        elif not inside_text and key is not None:
            _note(places, (*above, *_parts(key[1])), line)
        inside_text ^= len(_QUOTES.findall(content)) % 2 == 1
    return places


def _note(places: Places, keys: Keys, line: int) -> None:
    for length in range(1, len(keys) + 1):
        places.setdefault(keys[:length], Place(line))


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]
