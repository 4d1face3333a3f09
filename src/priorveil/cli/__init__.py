"""The command line: a thin shell around the library.

Exit status: 0 success, 1 the answer is no (a level does not hold), 2 a wrong argument or file, 130 stopped by ctrl-C,
141 nobody reads the output any more. Errors are one line.

A command's module is loaded when the command is called, and a library when it is needed. So help is quick, and a
missing library stops only the commands that need it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import click

from priorveil import __version__
from priorveil.cli.screen import error_text
from priorveil.errors import PriorveilError
from priorveil.progress_bar import without_bars

# The commands in the order of the work; each is the function of its name in the module of its name.
COMMANDS = {
    "demo": "Go from prior to estimate in a minute.",
    "design": "Find the best mechanism for a PRIOR, and certify it.",
    "inspect": "Show what a PLAN or a campaign guarantees, and how good it is.",
    "size": "Say how many people a survey needs, or how precise it is with some.",
    "audit": "Measure what a CHANNEL leaks under a PRIOR.",
    "privatize": "Turn private columns of DATA into reports with a PLAN or a campaign.",
    "estimate": "Estimate from tables of REPORTS made by a PLAN or a campaign.",
    "campaign": "Make a campaign from a survey file or a plan; close, publish or delete it.",
    "serve": "Collect reports and estimate while they arrive.",
    "invite": "Make invitations to a CAMPAIGN, given by its file or its id, and print their links.",
    "token": "Make, list and revoke the tokens of a running curator.",
    "backup": "Copy a STORE into FILE, while the curator runs.",
    "restore": "Fill a STORE from a FILE that `priorveil backup` made.",
    "recount": "Count all reports in a STORE again and compare with the tallies.",
    "simulate": "Compare mechanisms on your own prior, people and budgets: a table, CSV or a plot.",
    "reproduce": "Reproduce the figures of the paper, as printed and with the guarantee kept.",
    "bench": "Measure the claims of speed and accuracy.",
    "doctor": "Say what is installed, what is missing, and how fast this machine is.",
}

_CLOSED_PIPE = 141  # what a shell reports of a program that SIGPIPE ended; 1 would mean that the answer is no

_START = """\
priorveil collects statistics from people who keep their data. Where to begin:

Run a survey
  priorveil demo
  priorveil campaign new survey.toml
  priorveil campaign check survey.toml
  priorveil campaign build survey.toml -o campaign.json
  priorveil serve

Collect from devices
  priorveil design prior.csv --epsilon 1 -o plan.json
  priorveil privatize plan.json people.csv --column answer -o reports.csv
  priorveil estimate plan.json reports.csv

Study mechanisms
  priorveil audit channel.csv prior.csv
  priorveil simulate prior.csv
  priorveil reproduce

priorveil --help lists all commands, priorveil COMMAND --help has examples,
priorveil doctor checks this machine.
"""


class LazyGroup(click.Group):
    """A group that loads a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; a mistyped name is an error that suggests the nearest one."""
        if cmd_name not in COMMANDS:
            similar = get_close_matches(cmd_name.lower(), [*COMMANDS, "--help", "--version"], 1)
            advice = f"did you mean {similar[0]}?" if similar else "priorveil --help lists them"
            raise click.UsageError(f"there is no command {cmd_name!r}: {advice}", ctx)
        command: click.Command = getattr(import_module(f"priorveil.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Describe the commands from the table, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Collect statistics from people who keep their data.

    A prior says what is known, and a channel says what is reported. Together they show how far a report can move
    anyone's belief about a person. Design finds the best channel within a budget, and proves that it stays within it.

    New here? Try: priorveil demo

    Shell completion: eval "$(_PRIORVEIL_COMPLETE=bash_source priorveil)" in ~/.bashrc
    (zsh_source in ~/.zshrc; for fish: _PRIORVEIL_COMPLETE=fish_source priorveil | source).
    """
    if context.invoked_subcommand is None:
        click.echo(_START, nl=False)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its status. An error is one line on standard error; ctrl-C is KeyboardInterrupt."""
    try:
        with without_bars():
            status = commands.main(arguments, prog_name="priorveil", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except BrokenPipeError:  # the program that read our output has ended
        _discard_output()
        return _CLOSED_PIPE
    except SystemExit as ended:  # click and rich leave with 1 in this case; our commands return their status
        return _CLOSED_PIPE if ended.code == 1 else int(ended.code or 0)
    except Exception as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from error
        message = _message(error)
        if message is None:
            raise
        click.echo(f"error: {' '.join(message.split())}", err=True)
        _discard_output()
        return 2
    return status if isinstance(status, int) else 0


def _discard_output() -> None:
    """Drop output that cannot be written, so that the interpreter does not try again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str | None:
    """Return the message of an error that the user can fix; None for a bug."""
    if isinstance(error, click.MissingParameter) or (
        isinstance(error, click.NoSuchOption) and not error.possibilities
    ):
        path = error.ctx.command_path if error.ctx else "priorveil"
        return f"{error.format_message().rstrip('.')}: {path} --help has examples"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename}: there is no such file or folder: check the path"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and not error.filename:
        from tempfile import gettempdir

        return f"no space left for standard output, or for temporary files in {gettempdir()} (TMPDIR)"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if isinstance(error, UnicodeEncodeError):
        return f"the output is {error.encoding}, which lacks some letters: set PYTHONUTF8=1, or use --json"
    return error_text(error) if isinstance(error, PriorveilError | UnicodeDecodeError) else None


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether ctrl-C caused an error: a library that is interrupted while it loads may raise its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
