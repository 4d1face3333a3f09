"""Show the doctests of docstrings as code in the reference: a Griffe extension, which mkdocs.yml names."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A prompt, and everything up to the next empty line.
EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)


def with_fences(text: str) -> str:
    """The text with each doctest in a fenced block, which Markdown would take for quotations.

    >>> print(with_fences("Adds.\\n\\n>>> 1 + 1\\n2"))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text).rstrip("\n")


class DoctestFences(griffe.Extension):
    """Puts fences around the doctests of every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_fences(obj.docstring.value)
