"""The group of all commands, and how one is run.

A command's module is loaded when it is called, and a library when it is needed: so help is quick, and a library
that is missing stops only those who need it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module

import click

from priorveil import __version__
from priorveil.cli.options import error_text
from priorveil.errors import PriorveilError

_ALIKE = 0.7  # how much of a mistyped name has to be right

# name -> (module:attribute, what it does), in the order of the work
COMMANDS = {
    "demo": ("priorveil.cli.demo:demo", "See the whole loop in a minute."),
    "design": ("priorveil.cli.design:design", "Find the best mechanism for a PRIOR; certified."),
    "inspect": ("priorveil.cli.inspect:inspect", "Show what a PLAN promises, and how good it is."),
    "audit": ("priorveil.cli.audit:audit", "Measure what a CHANNEL leaks under a PRIOR."),
    "privatize": (
        "priorveil.cli.privatize:privatize",
        "Turn a private column of a table into reports, by a PLAN.",
    ),
    "estimate": ("priorveil.cli.estimate:estimate", "Estimate from a table of REPORTS made by a PLAN."),
    "serve": ("priorveil.cli.serve:serve", "Collect reports and estimate while they come in."),
    "recount": (
        "priorveil.cli.serve:recount",
        "Count all stored reports again and compare with the tallies.",
    ),
    "simulate": (
        "priorveil.cli.simulate:simulate",
        "Compare mechanisms on your own prior, people and budgets: a tidy table, and a picture.",
    ),
    "reproduce": (
        "priorveil.cli.reproduce:reproduce",
        "Make the figures of the paper again, as printed and with the guarantee kept.",
    ),
    "bench": ("priorveil.cli.bench:bench", "Measure the claims of speed and accuracy."),
}


class LazyGroup(click.Group):
    """A group whose commands are named in a table and loaded when called."""

    def __init__(self, table: Mapping[str, tuple[str, str]], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; for a name that is mistyped, an error with the nearest one."""
        name = args[0]
        if not name.startswith("-") and name not in self.table:
            raise click.UsageError(f"there is no command {name!r}: {self._nearest(ctx, name.lower())}", ctx)
        return super().resolve_command(ctx, args)

    def _nearest(self, ctx: click.Context, typed: str) -> str:
        """What may have been meant: a command that begins so or is written nearly so, or an option."""
        names = self.list_commands(ctx)
        begun = [name for name in names if name.startswith(typed)]
        near = begun or get_close_matches(typed, [*names, "--help", "--version"], 1, _ALIKE)
        return f"did you mean {near[0]}?" if near else "priorveil --help lists them"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What each command does, from the table: nothing is loaded for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.table[name][1]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Collect statistics from people who keep their data.

    A prior says what is known, a channel says what is reported, and the channel is measured against the
    prior: how far can a report move anyone's belief about a person? Design finds the best channel that a
    budget allows, and proves that it keeps to it.

    New here? Try: priorveil demo
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its status. An error is one line on standard error. Raises KeyboardInterrupt at ctrl-C."""
    try:
        status = commands.main(arguments, prog_name="priorveil", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except BrokenPipeError:  # the reader of our output has left
        _let_go_of_output()
        return 1
    except Exception as error:
        if _came_of_ctrl_c(error):
            raise KeyboardInterrupt from error
        said = _said(error)
        if said is None:
            raise
        click.echo(f"error: {' '.join(said.split())}", err=True)
        _let_go_of_output()
        return 2
    return status if isinstance(status, int) else 0


def _let_go_of_output() -> None:
    """What could not be written must not be tried again when the interpreter ends: it would complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _said(error: Exception) -> str | None:
    """What people are told of an error that is theirs to mend; None for any other."""
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if isinstance(error, UnicodeEncodeError):
        return f"the output is {error.encoding} and cannot hold all letters: set PYTHONUTF8=1, or take --json"
    return error_text(error) if isinstance(error, PriorveilError | UnicodeDecodeError) else None


def _came_of_ctrl_c(error: BaseException | None) -> bool:
    """Whether an error is a ctrl-C that a library, interrupted while it was loaded, has turned into its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
