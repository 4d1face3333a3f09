"""The texts that people read, by key: one catalogue for what Python prints and what the pages show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent  # a file for each language
ENGLISH: dict[str, str] = json.loads((FOLDER / "en.json").read_text(encoding="utf-8"))  # every key


def say(key: str, **values: object) -> str:
    """The English text of a key, with its `{placeholders}` replaced by these values.

    >>> say("methodAssumes", method="mle", assumes="little")
    'Method mle assumes little.'
    """
    return ENGLISH[key].format_map(values)


@cache
def every_language() -> Mapping[str, Mapping[str, str]]:
    """The texts by language and key. English has every key; other languages have those that the public reads."""
    files = sorted(FOLDER.glob("*.json"), key=lambda path: (path.stem != "en", path.stem))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}
