"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import priorveil as pv
from priorveil.atomic_files import write_problem
from priorveil.csv_reader import is_number
from priorveil.errors import InvalidInput, MissingExtra, plural
from priorveil.formatting import decimal_point, read_number
from priorveil.notions import CONES
from priorveil.priors.label_texts import first_labels
from priorveil.reading.precision import USUAL_PEOPLE

if TYPE_CHECKING:
    from priorveil.priors.joint import Impossible
    from priorveil.queries import Query

Command = Callable[..., Any]

NO_PRIOR = (
    "give PRIOR, what is known about the values; or --numbers LOW:HIGH: priorveil {} --help has examples"
)
_TOKEN = re.compile(rb"[!-~]{16,}")  # what a header can hold, and long enough not to be guessed
INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
POSITIVE = click.FloatRange(min=0, min_open=True)
DESIGN_NOTIONS = {name.lower(): notion for name, notion in CONES.items()}  # for --notion


class WholeNumber(click.IntRange):
    """A whole number within a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with what to give."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value}: give a whole number, {self.min} or more", param, ctx)


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
    """The file of a plot. Without matplotlib it is refused before any work is done."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with the reason why no plot can be saved there."""
        path = super().convert(value, param, ctx)
        if path.suffix.lower() not in (".png", ".svg", ".pdf"):
            self.fail(f"{path.name}: give a name that ends in .png, .svg or .pdf", param, ctx)
        require_plots()
        return path


def read_token(file: Path) -> str:
    """Read the token in a file; an empty or unfinished one is refused."""
    try:
        token = file.read_bytes().strip()
    except OSError as error:
        raise InvalidInput(
            "token_file", str(file), f"it cannot be read ({error.strerror}): give another file"
        ) from error
    if not _TOKEN.fullmatch(token):
        advice = "it must hold one token, 16 or more ASCII characters without spaces: openssl rand -base64 32"
        raise click.UsageError(f"--token-file {file}: {advice}")
    return token.decode("ascii")


def require_plots() -> None:
    """Refuse to begin if no plot can be drawn in the end."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot")


PLOT = click.option("--plot", type=PictureFile(), help="Save a plot to this file (.png, .svg, .pdf).")
JSON = click.option("--json", "as_json", is_flag=True, help='Print JSON; infinity is the text "inf".')
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the random generator.")
PEOPLE = click.option(
    "--people",
    type=WholeNumber(min=1),
    default=USUAL_PEOPLE,
    help="How many people will answer, for the precision.",
)
SECRET = click.option(
    "--secret", "secret_file", type=INPUT_FILE, help="Protect a secret: a file with Pr(value | secret)."
)
MIX = click.option(
    "--mix", is_flag=True, help="Replace the prior by the nearest mixture of the secret's rows."
)
COHORT = click.option(
    "--cohort",
    metavar="COLUMN",
    help="The public column that chooses the plan, or the cohort: with a plan for each public group, LIP holds given "
    "the group.",
)
REFUSED = click.option("--refused", "refused_file", type=OutputFile(), help="List refused rows in this CSV.")

NumberRange = tuple[float, float, int | None]  # both ends, and how many points (None: choose)
_LARGEST = 1e100  # of an end
_MOST_POINTS, _MOST_CELLS = 20_000, 1_000  # for which designs find good plans: for means, and for quantiles


def _read_range(text: str) -> NumberRange:
    """Read LOW:HIGH or LOW:HIGH:POINTS."""
    low, _, rest = text.partition(":")
    high, _, points = rest.partition(":")
    least, largest = (math.nan if (end := read_number(word)) is None else end for word in (low, high))
    readable = points.isdecimal() or not points
    if not readable or not -_LARGEST <= least < largest <= _LARGEST or float(points or 2) < 2:
        advice = "give the two ends, the lower one first, each at most 1e100 in size"
        points_advice = "a number of points is optional: at least 2, such as 0:100:21"
        raise click.BadParameter(f"{text!r}: {advice}; {points_advice}")
    if float(points or 2) > _MOST_POINTS:
        most = f"at most {_MOST_POINTS:,} points for a mean and {_MOST_CELLS:,} for quantiles"
        raise click.BadParameter(f"{text!r}: too many points: give {most}, or leave POINTS out")
    return least, largest, int(points) if points else None


def _grids(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, list[float]]:
    """Read NAME=LOW:HIGH:POINTS: the points of each grid by its name."""
    grids: dict[str, list[float]] = {}
    for text in texts:
        name, _, numbers = text.rpartition("=")
        low, high, points = _read_range(numbers) if name else (0.0, 0.0, None)
        if points is None or name in grids:
            advice = "give the name of an attribute once, its range, and how many points: overtime=0:80:5"
            raise click.BadParameter(f"{text!r}: {advice}")
        grids[name] = [*(low + (high - low) * step / (points - 1) for step in range(points - 1)), high]
    return grids


NUMBERS = click.option(
    "--numbers",
    metavar="LOW:HIGH[:POINTS]",
    type=_read_range,
    help="The values are numbers: their range, and how many points to use.",
)

GRID = click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="NAME=LOW:HIGH:POINTS",
    callback=_grids,
    help="Make one of several attributes a number: its range, and how many points to use; repeatable.",
)

TABLES_HELP = """Tables
  Parquet, Arrow or CSV (also in gzip), recognised by their content: files,
  folders of files (folders named column=value give a column), patterns in
  quotes, or - for standard input (Arrow or CSV). In a CSV an empty cell is a
  missing value.
  PLAN is a plan; or, with --cohort COLUMN, a folder with a plan VALUE.json
  for each value of that public column (%2F for / in a value, as in URLs); or
  a campaign, as `priorveil campaign build` writes it."""


_OTHER_OPTIONS = "Other options"
PRIOR_FORMAT = ("--counts", "--smoothing", "--normalise", "--leave-out")  # of a section of the help
QUERY_DETAILS = ("--unbiased", "--amounts", "--margin", "--by", "--matrix")


class SectionedCommand(click.Command):
    """A command whose help shows its options in sections; `sections` has the names of the options by title."""

    def __init__(self, *arguments: Any, sections: Mapping[str, tuple[str, ...]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in the order of the sections; those in none come last."""
        shown = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        by_name = {name: param for param in shown for name in param.opts}
        sections = {title: [by_name[name] for name in names] for title, names in self.sections.items()}
        others = [param for param in shown if not any(param in params for params in sections.values())]
        for title, params in {**sections, _OTHER_OPTIONS: others}.items():
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(records)


def epilog(module_doc: str | None, *paragraphs: str) -> str:
    """Return the end of a command's help: these paragraphs, and those of its module's docstring after the first.

    Paragraphs with indented lines are shown line by line; others are filled.
    """
    paragraphs = (*paragraphs, *(module_doc or "").strip().split("\n\n")[1:])
    return "\n\n".join(f"\b\n{text}" if "\n " in text else text for text in paragraphs)


@dataclass(frozen=True)
class PriorFormat:
    """What the numbers of a prior are: whole counts, to which `smoothing` may be added, or rounded shares."""

    counts: bool
    smoothing: float | None
    normalise: bool
    impossible: Impossible  # cells of probability zero, of several attributes

    def read(self, path: Path) -> pv.Prior:
        """Read a prior from a file of numbers."""
        if self.smoothing is not None and not self.counts:
            raise click.UsageError("--smoothing is added to counts: give --counts too")
        return pv.Prior.from_file(
            path,
            counts=self.counts,
            normalise=self.normalise and not self.counts,
            smoothing=self.smoothing,
            impossible=self.impossible,
        )


def prior_format_options(command: Command) -> Command:
    """Add the options that say what the numbers of a prior are; the command gets them as one `prior_format`."""

    @click.option("--counts", is_flag=True, help="PRIOR contains counts, not probabilities.")
    @click.option("--smoothing", type=float, help="Add this to every count (1: Laplace, 0.5: Jeffreys).")
    @click.option("--normalise", is_flag=True, help="Scale rounded figures so that they add up to one.")
    @click.option(
        "--leave-out", is_flag=True, help="Leave out cells of probability zero: they cannot happen."
    )
    @functools.wraps(command)
    def wrapper(
        counts: bool, smoothing: float | None, normalise: bool, leave_out: bool, **others: Any
    ) -> Any:
        impossible: Impossible = "leave out" if leave_out else "refuse"
        return command(prior_format=PriorFormat(counts, smoothing, normalise, impossible), **others)

    return wrapper


@dataclass(frozen=True)
class NamedQuery:
    """A query that --query can name: how it is made, and which options go with it.

    `own_option` is an option that no other query takes. `needs_numbers` says whether it is for --numbers only,
    `rounds_numbers` whether numbers are then rounded to a grid instead of put into cells, and `chooses_points` whether
    the design chooses that grid if --numbers does not say how many points.
    """

    make: Callable[[QueryChoice, pv.Prior], Query]
    own_option: str | None = None
    can_be_unbiased: bool = True
    needs_numbers: bool = False
    rounds_numbers: bool = False
    chooses_points: bool = False


@dataclass(frozen=True)
class QueryChoice:
    """The query of a command, before its prior is known. Means, averages and quantiles are always unbiased."""

    name: str
    unbiased: bool
    amounts: str | None
    margin: tuple[str, ...]
    matrix: Path | None
    by: str | None = None

    def __post_init__(self) -> None:
        for name, query in NAMED_QUERIES.items():
            if name != self.name and query.own_option is not None and getattr(self, query.own_option):
                raise click.UsageError(f"--{query.own_option} is for --query {name}, not for {self.name}")
        if self.unbiased and not self.named_query.can_be_unbiased:
            raise click.UsageError(f"--unbiased is not for --query {self.name}")

    @property
    def named_query(self) -> NamedQuery:
        """What the name stands for."""
        return NAMED_QUERIES[self.name]

    def of(self, prior: pv.Prior) -> Query:
        """Return the query about the values of a prior."""
        return self.named_query.make(self, prior)

    def quantiles(self, prior: pv.Prior) -> Query:
        """Return the cumulative shares of numbers, from which quantiles are read."""
        if prior.edges is None:
            self.numbers(prior)  # refuses words
        return pv.Linear.cumulative(prior, unbiased=True)

    def linear(self, prior: pv.Prior) -> Query:
        """Return the statistics in the rows of a file."""
        if self.matrix is None:
            raise click.UsageError("--query linear needs its numbers: give --matrix FILE")
        return pv.Linear.from_file(self.matrix, prior, self.unbiased)

    def margins(self, prior: pv.Prior) -> Query:
        """Return the margins of some attributes: by default of each attribute alone."""
        margins = self.margin or prior.names or ()
        attributes = [[name.strip() for name in margin.split(",")] for margin in margins]
        return pv.Linear.margins(prior, attributes, self.unbiased)

    def averages(self, prior: pv.Prior) -> Query:
        """Return the averages of the attribute that is a number, by some others or by all of them."""
        levels, grids = prior.levels, prior.domain.grids
        numbers = grids or [name for name in levels if all(isinstance(x, int | float) for x in levels[name])]
        if len(numbers) != 1:
            advice = "name it, with its range and points: priorveil design --grid overtime=0:80:5"
            raise click.UsageError(f"--query averages needs exactly one attribute that is a number; {advice}")
        others = [name for name in levels if name not in numbers]
        by = others if self.by is None else [name.strip() for name in self.by.split(",")]
        return pv.Linear.averages(prior, numbers[0], by)

    def numbers(self, prior: pv.Prior) -> list[float]:
        """Return the number that each value stands for: by default its label."""
        numbers = list(map(str, prior.labels)) if self.amounts is None else self.amounts.split(",")
        if self.amounts is not None:
            if bad := [number for number in numbers if not is_number(number)]:
                raise click.UsageError(
                    f"--amounts {self.amounts}: {bad[0]!r} is not a number; give numbers such as 0,1,2"
                )
            if len(numbers) != len(prior):
                advice = f"give {len(prior):,}, one for each of {first_labels(prior.labels)}"
                raise click.UsageError(
                    f"--amounts {self.amounts}: {plural(len(numbers), 'number')}; {advice}"
                )
        elif not all(map(is_number, numbers)):
            others = "use --query distribution or cumulative for values that are words"
            advice = "give --amounts, such as 0,1,2" if self.named_query.own_option == "amounts" else others
            raise click.UsageError(f"--query {self.name} needs a number for each value of PRIOR: {advice}")
        return [float(decimal_point(number)) for number in numbers]


NAMED_QUERIES = {
    "distribution": NamedQuery(lambda choice, prior: pv.Distribution()),
    "histogram": NamedQuery(lambda choice, prior: pv.Histogram(choice.unbiased)),
    "cumulative": NamedQuery(lambda choice, prior: pv.Linear.cumulative(prior, choice.unbiased)),
    "ranges": NamedQuery(lambda choice, prior: pv.Linear.ranges(prior, choice.unbiased)),
    "margins": NamedQuery(QueryChoice.margins, own_option="margin"),
    "sum": NamedQuery(
        lambda choice, prior: pv.Sum(choice.numbers(prior), choice.unbiased),
        own_option="amounts",
        rounds_numbers=True,
    ),
    "mean": NamedQuery(
        lambda choice, prior: pv.Sum(choice.numbers(prior), unbiased=True),
        needs_numbers=True,
        rounds_numbers=True,
        chooses_points=True,
    ),
    "averages": NamedQuery(QueryChoice.averages, own_option="by"),
    "quantiles": NamedQuery(QueryChoice.quantiles, needs_numbers=True),
    "linear": NamedQuery(QueryChoice.linear, own_option="matrix"),
    "guess": NamedQuery(lambda choice, prior: pv.Guess(), can_be_unbiased=False),
}
_QUERY_HELP = f"What is asked: {', '.join(NAMED_QUERIES)}."


def query_options(command: Command) -> Command:
    """Add the options of the query; the command gets a `QueryChoice`."""

    @click.option(
        "--query",
        type=click.Choice(list(NAMED_QUERIES)),
        default="distribution",
        metavar="NAME",
        help=_QUERY_HELP,
    )
    @click.option(
        "--unbiased", is_flag=True, help="Estimate from the reports alone; the prior only shapes the noise."
    )
    @click.option(
        "--amounts", metavar="0,1,2", help="For sum: a number for each value of PRIOR.  [default: its label]"
    )
    @click.option(
        "--margin",
        multiple=True,
        metavar="NAMES",
        help="For margins: the attributes of one table, such as age,smokes; repeatable.  [default: each alone]",
    )
    @click.option(
        "--by",
        metavar="NAMES",
        help="For averages: the attributes that form the groups, such as age,sex.  [default: all others]",
    )
    @click.option(
        "--matrix",
        type=INPUT_FILE,
        help="For linear: a CSV with a row of numbers for each statistic, a column for each value of PRIOR; "
        "with or without a header, and names in the first column. Or a JSON list of rows.",
    )
    @functools.wraps(command)
    def wrapper(
        query: str, unbiased: bool, amounts: Any, margin: Any, by: Any, matrix: Any, **others: Any
    ) -> Any:
        return command(query=QueryChoice(query, unbiased, amounts, margin, matrix, by), **others)

    return wrapper


def budget_options(command: Command) -> Command:
    """Add --epsilon, --lower and --upper; the command gets them as one `budget`, None if none is given."""

    @click.option("--epsilon", "--eps", type=float, help="A belief moves by at most a factor of e^epsilon.")
    @click.option("--lower", type=float, help="Budget for a belief that decreases (LIP only).")
    @click.option("--upper", type=float, help="Budget for a belief that increases (LIP only).")
    @functools.wraps(command)
    def wrapper(epsilon: float | None, lower: float | None, upper: float | None, **others: Any) -> Any:
        return command(budget=_budget(epsilon, lower, upper, others["notion"]), **others)

    return wrapper


def _budget(epsilon: float | None, lower: float | None, upper: float | None, notion: str) -> pv.Budget | None:
    """Return the budget that the options state. A side that is left out is not bounded."""
    if lower is None and upper is None:
        return None if epsilon is None else pv.Budget.of(epsilon)
    if epsilon is not None:
        raise click.UsageError("give --epsilon, or --lower and --upper, not both")
    if notion != "lip":
        raise click.UsageError(f"--lower and --upper are for lip; {notion} has one level: use --epsilon")
    return pv.Budget(math.inf if lower is None else lower, math.inf if upper is None else upper)


def epsilons(default: Sequence[float]) -> Callable[[Command], Command]:
    """The option for several budgets."""
    return click.option(
        "--epsilon",
        "--eps",
        "epsilons",
        type=POSITIVE,
        multiple=True,
        default=default,
        help="Repeatable.",
    )
