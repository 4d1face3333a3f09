"""docs/mistakes.md is run from top to bottom: mistakes print what the page shows, and the advice below them works.

After a change of words, or for a new mistake, run `make messages` and review the difference.
"""

from __future__ import annotations

import re
import shlex
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from priorveil import PriorveilError
from terminal import run

PAGE = Path(__file__).parent.parent / "docs" / "mistakes.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def error_of_expression(expression: str, namespace: dict[str, object]) -> str:
    with pytest.raises(PriorveilError) as raised:
        eval(expression, namespace)
    return f"{raised.type.__name__}: {raised.value}\n"


def error_of_command(command: str) -> str:
    status, out, err = run(*shlex.split(command)[1:])
    assert status in (1, 2) and out == "", command
    return err


def run_commands(commands: str) -> None:
    for command in commands.splitlines():
        status, _, err = run(*shlex.split(command)[1:])
        assert status == 0, f"{command}: {err}"


def with_messages_of_today(page: str) -> str:
    """The page with the messages that its mistakes print now. Its files are written to the current folder."""
    namespace: dict[str, object] = {}

    def block_of_today(block: re.Match[str]) -> str:
        language, text = block.groups()
        first_line = text.split("\n")[0]
        if language == "python":
            exec(text, namespace)
        elif language == "sh":
            run_commands(text)
        elif language == "pycon":
            text = f"{first_line}\n{error_of_expression(first_line.removeprefix('>>> '), namespace)}"
        else:
            assert language == "console"
            text = f"{first_line}\n{error_of_command(first_line.removeprefix('$ '))}"
        return f"```{language}\n{text}```"

    return BLOCK.sub(block_of_today, page)


def test_the_page_shows_what_mistakes_print(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    with chdir(tmp_path):
        assert with_messages_of_today(page) == page


def test_another_message_and_advice_that_fails_are_noticed() -> None:
    mistake = "```pycon\n>>> pv.Prior([0.5, 0.6])\nInvalidPrior: no\n```"
    page = f"```python\nimport priorveil as pv\n```\n{mistake}\n"
    assert with_messages_of_today(page).startswith(page.removesuffix("no\n```\n"))
    assert with_messages_of_today(page) != page
    with pytest.raises(AssertionError, match="desing"):
        with_messages_of_today("```sh\npriorveil desing\n```")
    with pytest.raises(pytest.fail.Exception):
        with_messages_of_today("```pycon\n>>> 1 + 1\n```")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    with TemporaryDirectory() as scratch, chdir(scratch):
        PAGE.write_text(with_messages_of_today(text), encoding="utf-8")
