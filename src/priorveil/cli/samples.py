"""The options of `priorveil estimate` for a sample of a population, and what they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import inputs, outputs, screen
from priorveil.cli.options import Command, OutputFile
from priorveil.errors import InvalidInput
from priorveil.formatting import read_number

if TYPE_CHECKING:
    from priorveil.results.document import Result
    from priorveil.tables.samples import SampleReader


class _ScoresFile(OutputFile):
    """The table of scores: its format is the ending of its name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail if no format has this ending."""
        from priorveil.tables.write import format_of

        path: Path = super().convert(value, param, ctx)
        try:
            format_of(path)
        except InvalidInput as error:
            self.fail(f"{path.name}: {error.advice}", param, ctx)
        return path


_COLUMNS = ("weights", "strata", "clusters", "population")
_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "--weights",
        metavar="COLUMN",
        help="A public column: how many people each one stands for. Beside such columns the LDP level is what "
        "holds, not LIP.",
    ),
    click.option("--strata", metavar="COLUMN", help="A public column: the stratum of each person."),
    click.option(
        "--clusters",
        metavar="COLUMN",
        help="A public column: the cluster that was drawn, within its stratum.",
    ),
    click.option(
        "--population",
        metavar="NUMBER|COLUMN",
        help="How many people the population has, or clusters if these were drawn; with strata a public column with "
        "the number of each. Variances are then those for a finite population.",
    ),
    click.option(
        "--scores",
        type=_ScoresFile(),
        help="In place of an estimate, write what each report says about its person, and the noise of that, beside all "
        "other columns: a table (.csv, .parquet, .arrow) for R's survey and other software.",
    ),
)
_PRINTED = ("json", "csv")  # options that say how an estimate is printed
_INSTEAD = {
    "by": "for groups within a sample, write --scores FILE alone, and use svyby of R's survey on its columns"
}
NAMES = tuple(f"--{name}" for name in (*_COLUMNS, "scores"))


def sample_options(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def take_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Take the values of these options out of others, those that were given."""
    taken = {name: settings.pop(name) for name in (*_COLUMNS, "scores")}
    return {name: value for name, value in taken.items() if value is not None}


def require_alone(given: Mapping[str, Any], others: Mapping[str, Any], method: str) -> None:
    """Refuse options of other estimates beside those of samples, and columns beside `--scores`."""
    first, writes = f"--{next(iter(given))}", "scores" in given
    if writes and len(given) > 1:
        raise click.UsageError(f"--scores FILE keeps all columns: leave out {first}")
    if method not in ("auto", "unbiased"):
        raise click.UsageError(f"--method {method} does not go with {first}, which takes unbiased scores")
    for name, value in others.items():
        if value and (writes or name not in _PRINTED):
            advice = _INSTEAD.get(name, "leave it out")
            raise click.UsageError(f"--{name} does not go with {first}: {advice}")


def read_sample(
    plan: Path,
    reports: tuple[str, ...],
    given: Mapping[str, Any],
    refused_file: Path | None,
    confidence: float,
    **options: Any,
) -> tuple[SampleReader, Result | None]:
    """Read the table of a sample, and estimate from it; without a result where scores are written instead."""
    from priorveil.results.form_estimates import CohortForms
    from priorveil.results.samples import sample_result
    from priorveil.tables.samples import SampleReader, estimate_sample_table, write_scores

    if plan.is_dir() or inputs.is_campaign(plan):
        raise click.UsageError(
            f"{plan}: a sample is read by one plan, not by a campaign or by plans of cohorts"
        )
    own, settings = inputs.read_plan(plan), dict(given)
    size = read_number(settings.get("population", ""))
    if size is not None:
        if "strata" in settings:
            advice = "with --strata give a column, with the number of each row's stratum"
            raise click.UsageError(f"--population {size:,.15g}: {advice}")
        settings["population"] = size

    def read(table: Any, **about: Any) -> SampleReader:
        reader = SampleReader(table, own, **options, **about)
        if "scores" in given:
            write_scores(reader, given["scores"])
        else:
            reader.estimate = estimate_sample_table(reader, **settings)
        return reader

    reader: SampleReader = outputs.run_on_table(
        read, reports, words="counting", refused_file=refused_file, force=True
    )
    if reader.estimate is None:
        return reader, None
    return reader, sample_result(reader.estimate, CohortForms.of(own), confidence)


def print_scores_note(file: Path, reader: SampleReader) -> None:
    """Print what was written, which level holds beside it, and what to know about finite populations."""
    from priorveil.catalogue import say
    from priorveil.statistics.samples import beside_columns

    console, proof = screen.open_console(stderr=True), reader.plan.certificate
    console.print(say("scoresWritten", count=f"{reader.reports:,}", file=file), soft_wrap=True)
    console.print(str(beside_columns(proof.ldp, proof.lip)))
    console.print(say("scoresFinite"))
