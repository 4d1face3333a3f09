"""Common mistakes in TOML, in plain words: what is wrong in a line that the parser refuses, and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator

LISTS = ("question", "together", "cohort")  # which are written in double brackets

_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|' + r"'[^']*'|#.*")
_LONG_TEXT = re.compile(r'"""|' + "'''")
_CURLY = re.compile("[\u2018-\u201f\u00ab\u00bb]")
_NAME = r'[\w-]+|""'
_HEADER = re.compile(r"\s*\[+\s*([\w-]+)")
_STATEMENT = re.compile(rf"\s*(?:(?:{_NAME})(?:\.(?:{_NAME}))*\s*=|\[+[\w.\"-]+\]+\s*$)")
_KEY = re.compile(r"""\s*([\w.-]+|"[^"]*")\s*=""")
_AFTER = r"[=\[,]\s*"  # what stands before a value

# In a line without the contents of its strings and without its comment: the pattern of a mistake, and what to write.
_PATTERNS = (
    (r"^[^\"]*(\"\"[^\"]*)*\"(?!\")[^\"]*$|'", 'a text has no second quotation mark: write "..." around it'),
    (rf"^\s*(?:{_NAME})\s*:|[{{,]\s*(?:{_NAME})\s*:", "write = between a name and its value, not a colon"),
    (r"=\s*-?\d+,\d+\s*([,}]|$)", "write a number with a decimal point: 0.4, not 0,4"),
    (rf"{_AFTER}-?[\d.,]+\s*%", "write a share as a number from 0 to 1: 0.4, not 40 %"),
    (rf"{_AFTER}-?(\.\d|\d+\.(?!\d))", "write a digit on both sides of a decimal point: 0.4, not .4"),
    (rf"{_AFTER}(?i:true|false)\b(?<!true)(?<!false)", "write true and false in small letters"),
    (
        rf"{_AFTER}(?!(?:true|false|inf|nan)\b|[\w.-]+\s*=)[^\W\d_]",
        'write a text in quotation marks, such as "yes"',
    ),
    (r"=\s*($|[,}\]])", "there is no value after =: write one, or remove the line"),
    (r"^\s*[\w-]+(\s+[\w-]+)+\s*=", "a name has no spaces: write _ instead, as in asked_by"),
    (r'""\s*[^\s,=\]}.#]', 'write a comma between values; in a text write \\" for a quotation mark'),
    (r"[\d\w}\]]\s+(\"\"|[\w-]+\s*=|\{)", "there is no comma between two values: write one"),
    (r",\s*}", "remove the comma before }"),
    (r"^[^=\[]*$", "write NAME = VALUE in a line; a comment begins with #"),
)
_MISTAKES = [(re.compile(pattern), advice) for pattern, advice in _PATTERNS]


def explain_mistake(text: str, line: int, words: str) -> tuple[int, str] | None:
    """The line of a mistake and what to do; None if it is none of the common ones.

    `line` is where the parser stopped, and `words` are its own.

    >>> explain_mistake("title = Work", 1, "Invalid value")
    (1, 'write a text in quotation marks, such as "yes"')
    """
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        line = len(lines)
    plain = dict(_plain_lines(lines[:line]))
    here = plain.get(line, "")
    if _CURLY.search(here):
        return line, 'these quotation marks come from a word processor: write plain ones, "..."'
    if "Unescaped" in words:
        return line, r"write a backslash in a text twice, \\, or the text in single quotation marks"
    header = _HEADER.match(here)
    if header and header[1] in LISTS and ("declare" in words or "mutate" in words or "overwrite" in words):
        return line, f"write [[{header[1]}]] above the keys of each {header[1]}, in double brackets"
    if "overwrite" in words or "uplicate" in words or "declare" in words:
        return line, _twice(lines, line)
    opened = _unclosed(plain, line)
    if opened is not None:
        return opened
    for pattern, advice in _MISTAKES:
        if pattern.search(here):
            return line, advice
    return None


def _plain_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The numbers and contents of lines outside multi-line strings; every string is `""`, and comments are left out."""
    inside = False
    for number, line in enumerate(lines, 1):
        quotes = len(_LONG_TEXT.findall(line))
        if not inside and not quotes:
            yield number, _STRING_OR_COMMENT.sub(lambda match: "" if match[0][0] == "#" else '""', line)
        inside ^= quotes % 2 == 1


def _twice(lines: list[str], line: int) -> str:
    """The advice about a name that is given twice, with the line of the first one."""
    key = _KEY.match(lines[line - 1])
    if key is None:
        return "this name is given twice: remove or rename one"
    for number in range(line - 1, 0, -1):
        before = _KEY.match(lines[number - 1])
        if before and before[1] == key[1]:
            return f"{key[1]} is given twice, also in line {number}: remove one of them"
    return "a name is given twice in this line: remove or rename one"


def _unclosed(plain: dict[int, str], line: int) -> tuple[int, str] | None:
    """The line of a bracket that is still open where the parser stopped, if it should have been closed before."""
    stack: list[tuple[int, str]] = []
    for number, content in plain.items():
        if stack and (stack[0][1] == "{" or _STATEMENT.match(content)):
            break
        for letter in content:
            if letter in "[{":
                stack.append((number, letter))
            elif letter in "]}" and stack:
                stack.pop()
    if not stack or (stack[0][0] == line and '"' in plain[line].replace('""', "")):
        return None
    number, letter = stack[0]
    if letter == "{":
        return number, "{ is not closed: write all of it in one line, up to }"
    return number, "[ is not closed: add ] after the last value"
