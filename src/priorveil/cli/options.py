"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli.files import PriorFormat
from priorveil.errors import MissingExtra
from priorveil.files import is_number, write_problem

if TYPE_CHECKING:
    from priorveil.priors import Budget, Prior
    from priorveil.queries import Query

Command = Callable[..., Any]

INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class OutputFile(click.Path):
    """The name of a file to write, checked before the work: - is standard output if `stdout` allows it."""

    def __init__(self, stdout: bool = False) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.stdout = stdout

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with the reason why it cannot be written."""
        path = Path(str(super().convert(value, param, ctx)))
        if str(path) == "-" and not self.stdout:
            self.fail("- is not the name of a file, and cannot be standard output here", param, ctx)
        problem = None if str(path) == "-" else write_problem(path)
        if problem is not None:
            self.fail(problem, param, ctx)
        return path


class PictureFile(OutputFile):
    """The name of a picture to draw. Without matplotlib it is refused before the work, unless it is `optional`."""

    def __init__(self, optional: bool = False) -> None:
        super().__init__()
        self.optional = optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with the reason why no picture can be drawn there."""
        path = super().convert(value, param, ctx)
        if path.suffix.lower() not in (".png", ".svg", ".pdf"):
            self.fail(f"{path.name}: give a name that ends in .png, .svg or .pdf", param, ctx)
        if not self.optional:
            require_plots()
        return path


def require_plots() -> None:
    """Refuse to begin where no picture can be drawn in the end."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot")


PLOT = click.option("--plot", type=PictureFile(), help="Save a plot to this file (.png, .svg, .pdf).")
JSON = click.option(
    "--json", "as_json", is_flag=True, help='Print JSON; an infinite number is the string "inf".'
)
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the random generator.")
SECRET = click.option(
    "--secret",
    type=INPUT_FILE,
    help="Protect a secret that the value depends on: a file with Pr(value | secret).",
)
MIX = click.option(
    "--mix",
    is_flag=True,
    help="Use the nearest mixture of the secret's rows as the prior (for rounded figures).",
)
COHORT = click.option("--cohort", metavar="COLUMN", help="The public column that chooses the plan.")
REFUSED = click.option(
    "--refused", "refused_file", type=OutputFile(), help="List all refused rows in this CSV file."
)

TABLES_HELP = """Tables
  Parquet, Arrow or CSV (also in gzip), recognised by their content: a file, a
  folder of files (folders named column=value give a column), a pattern in quotes,
  or - for standard input (Arrow or CSV). In a CSV an empty cell is a missing value.
  PLAN is a plan; or, with --cohort COLUMN, a folder with a plan VALUE.json for
  each value of that public column (%2F for / in a value, as in addresses)."""


def epilog(module_doc: str | None, *paragraphs: str) -> str:
    """Return the end of a command's help: these paragraphs, and those of its module's docstring after the first.

    Paragraphs with indented lines are shown line by line; others are filled.
    """
    paragraphs = (*paragraphs, *(module_doc or "").strip().split("\n\n")[1:])
    return "\n\n".join(f"\b\n{text}" if "\n " in text else text for text in paragraphs)


def prior_format_options(command: Command) -> Command:
    """Add the options that say what the numbers of a prior are; the command gets them as one `prior_format`."""

    @click.option("--counts", is_flag=True, help="PRIOR holds whole counts.")
    @click.option("--smoothing", type=float, help="Add this to every count (1: Laplace, 0.5: Jeffreys).")
    @click.option("--normalise", is_flag=True, help="Scale rounded figures so that they add up to one.")
    @click.option(
        "--leave-out",
        is_flag=True,
        help="Several attributes: cells of probability zero are impossible, not values.",
    )
    @functools.wraps(command)
    def wrapper(
        counts: bool, smoothing: float | None, normalise: bool, leave_out: bool, **others: Any
    ) -> Any:
        return command(prior_format=PriorFormat(counts, smoothing, normalise, leave_out), **others)

    return wrapper


def query_options(command: Command) -> Command:
    """Add the options of the query; the command gets a function `query` from the prior to the query."""
    from priorveil.queries import QUERIES, Histogram, Linear, Sum

    simple = [name.lower() for name in QUERIES if name not in ("Linear", "Sum")]

    def make(kind: str, amounts: str | None, margins: tuple[str, ...], unbiased: bool, prior: Prior) -> Query:
        if amounts is not None and kind != "sum":
            raise click.UsageError(f"--amounts are for --query sum, not for {kind}")
        if margins and kind != "margins":
            raise click.UsageError(f"--margin is for --query margins, not for {kind}")
        if kind == "sum":
            return Sum(_amounts(amounts, prior), unbiased)
        if kind == "margins":
            kept = [margin.split(",") for margin in margins]
            return Linear.margins(prior, kept or prior.names or (), unbiased)
        if kind not in simple:
            return (Linear.cumulative if kind == "cumulative" else Linear.ranges)(prior, unbiased)
        if unbiased and kind != "histogram":
            raise click.UsageError(f"--unbiased is not for --query {kind}")
        return Histogram(unbiased=True) if unbiased else QUERIES[kind.capitalize()]()

    kinds = [*simple, "sum", "cumulative", "ranges", "margins"]

    @click.option("--query", type=click.Choice(kinds), default="histogram", help="The query.")
    @click.option(
        "--amounts",
        metavar="0,1,2",
        help="For a sum: the number that each value of PRIOR stands for, in its order.  [default: its label]",
    )
    @click.option(
        "--margin",
        "margins",
        multiple=True,
        metavar="NAMES",
        help="For margins: the attributes of one, such as age,smokes; repeatable.  [default: each attribute alone]",
    )
    @click.option(
        "--unbiased", is_flag=True, help="The reports alone decide; the prior never biases the answer."
    )
    @functools.wraps(command)
    def wrapper(
        query: str, amounts: str | None, margins: tuple[str, ...], unbiased: bool, **others: Any
    ) -> Any:
        return command(query=functools.partial(make, query, amounts, margins, unbiased), **others)

    return wrapper


def _amounts(amounts: str | None, prior: Prior) -> list[float]:
    """Return the number that each value stands for: by default its label."""
    numbers = list(map(str, prior.labels)) if amounts is None else amounts.split(",")
    if not all(map(is_number, numbers)):
        raise click.UsageError("a sum needs a number for each value of PRIOR: give --amounts, such as 0,1,2")
    return [float(number) for number in numbers]


def budget_options(command: Command) -> Command:
    """Add --epsilon, --lower and --upper; the command gets them as one `budget`, None if none is given."""

    @click.option(
        "--epsilon", "--eps", type=float, help="How far a belief may move: by a factor e^epsilon, both ways."
    )
    @click.option("--lower", type=float, help="How far downwards (LIP only).")
    @click.option("--upper", type=float, help="How far upwards (LIP only).")
    @functools.wraps(command)
    def wrapper(epsilon: float | None, lower: float | None, upper: float | None, **others: Any) -> Any:
        return command(budget=_budget(epsilon, lower, upper, others["notion"]), **others)

    return wrapper


def _budget(epsilon: float | None, lower: float | None, upper: float | None, notion: str) -> Budget | None:
    """Return the budget that the options state. A side that is left out is not bounded."""
    from priorveil.priors import Budget

    if lower is None and upper is None:
        return None if epsilon is None else Budget.of(epsilon)
    if epsilon is not None:
        raise click.UsageError("give --epsilon, or --lower and --upper, not both")
    if notion != "lip":
        raise click.UsageError(f"--lower and --upper are for lip; {notion} has one level: use --epsilon")
    return Budget(math.inf if lower is None else lower, math.inf if upper is None else upper)
