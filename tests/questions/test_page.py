"""docs/surveys.md is run from top to bottom: its file is read, and its commands print what the page shows.

After a change of words run `make messages` and review the difference.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from terminal import run

PAGE = Path(__file__).parent.parent.parent / "docs" / "surveys.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANSWERS = re.compile(r"^```csv\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def with_output_of_today(page: str) -> str:
    """The page with what its commands print now, in the current folder, where its files are saved first."""
    survey = FILE.findall(page)[0]
    Path("survey.toml").write_text(survey, encoding="utf-8")
    Path("answers.csv").write_text(ANSWERS.findall(page)[0], encoding="utf-8")
    Path("mistake.toml").write_text(survey.replace("no = 0.6", "no = 0.5"), encoding="utf-8")

    def block_of_today(block: re.Match[str]) -> str:
        command = block[1].split("\n")[0].removeprefix("$ ")
        with patch.dict(os.environ, COLUMNS="100"):  # whatever terminal the tests run in
            status, out, err = run(*shlex.split(command)[1:])
        assert status == (2 if "mistake" in command else 0), err
        words = re.sub("[0-9a-f]{64}", "...", out + err)  # the id of a campaign
        lines = [line.rstrip() for line in words.splitlines()]
        return "\n".join(["```console", f"$ {command}", *lines, "```"])

    return BLOCK.sub(block_of_today, page)


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    with chdir(tmp_path):
        assert with_output_of_today(page) == page


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    with TemporaryDirectory() as scratch, chdir(scratch):
        PAGE.write_text(with_output_of_today(text), encoding="utf-8")
