"""Write docs/commands.md from the commands' own help; with --check, only say whether it is current."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from priorveil.cli import commands

PAGE = Path(__file__).resolve().parent.parent / "docs" / "commands.md"
INTRODUCTION = """# Commands

This page shows the `--help` of every command. Exit status: 0 success, 1 a check failed, 2 a wrong
argument or file, 130 stopped by ctrl-C, 141 the reader of the output has gone.
"""


def sections(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": 80, "max_content_width": 80}
    context = click.Context(command, parent, info_name=name, **settings)
    path = context.command_path
    yield f"## {path}\n\n```console\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None and not found.hidden:
                yield from sections(found, child, context)


def page() -> str:
    return "\n".join([INTRODUCTION, *sections(commands, "priorveil")])


def main() -> int:
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
