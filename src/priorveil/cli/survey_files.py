"""`priorveil campaign new`, `check` and `build`: a survey is one file, in TOML or an XLSForm, and needs no Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from priorveil.atomic_files import atomic_write
from priorveil.cli import inputs, options, screen
from priorveil.errors import plural
from priorveil.formatting import level_at_most
from priorveil.progress_bar import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.questions.survey import SurveyDesign
    from priorveil.questions.survey_check import SurveyCheck

_PEOPLE = 300  # who will answer, by default
_CHECK_EXAMPLES = """\b
Examples
  priorveil campaign new survey.toml
  priorveil campaign check survey.toml
      its promise, and how precise its results will be with 300 people
  priorveil campaign check form.xlsx --people 2000
      an XLSForm, as ODK and Kobo use them; what cannot be converted is listed

\b
The file
  TOML: priorveil campaign new writes an example with comments on every key.
  XLSForm: the sheets survey, choices and settings, with these extra columns:
    survey    pv::prior, pv::query, pv::weight, pv::epsilon, pv::together,
              pv::range, pv::points, pv::unit
    choices   pv::prior (or pv_prior, which ODK accepts too): the share of each
              option
    settings  pv::epsilon, pv::asked_by, pv::purpose, pv::contact, ...
  Cohorts, such as regions, have priors of their own: [[cohort]] in TOML, and
  pv::cohorts with pv::prior::COHORT in an XLSForm.
  JSON: what the form on the dashboard saves, with the keys of TOML.
  An error names the line, or the sheet and cell, of the mistake."""

_BUILD_EXAMPLES = """\b
Examples
  priorveil campaign build survey.toml -o campaign.json
      then give campaign.json to the dashboard of `priorveil serve`
  priorveil campaign build form.xlsx -o campaign.json
First look at its promise and its precision: priorveil campaign check FILE"""

_TIME_LIMIT = click.option(
    "--time-limit", type=click.FloatRange(min=0), default=10.0, help="Seconds to search for each report."
)


@click.command()
@click.argument("file", default="survey.toml", type=options.OutputFile())
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def new(file: Path, force: bool) -> None:
    """Write an example survey FILE with comments; change it in a text editor.

    It is TOML, with a line for each setting. Then check it with `priorveil campaign check`, and make the campaign with
    `priorveil campaign build`.
    """
    from priorveil.questions.survey_reader import template

    if file.suffix.lower() != ".toml":
        raise click.UsageError(
            f"{file}: give a name that ends in .toml (an XLSForm is made in a spreadsheet)"
        )
    inputs.require_new(force, file)
    with atomic_write(file, replace=force) as output:
        output.write(template(file.name).encode("utf-8"))
    click.echo(f"saved {file}: change it in an editor, then run: priorveil campaign check {file}")


@click.command(epilog=_CHECK_EXAMPLES)
@click.argument("file", type=options.INPUT_FILE)
@click.option(
    "--people",
    type=options.WholeNumber(min=1),
    help="How many people will answer. Default: the people of the cohorts, or 300.",
)
@_TIME_LIMIT
@options.JSON
def check(file: Path, people: int | None, time_limit: float, as_json: bool) -> None:
    """Design the survey in FILE; show its promise and its precision.

    Nothing is saved, and nobody is asked.
    """
    from priorveil.questions.survey_check import SurveyCheck
    from priorveil.words.surveys import survey_words

    made = _build(file, time_limit)
    survey_check = SurveyCheck.of(made, people or made.survey.people or _PEOPLE)
    words = survey_words(survey_check)
    if as_json:
        screen.print_json({**to_builtins(survey_check), "words": to_builtins(words)})
        return
    console = screen.open_console()
    for passage in (words.promise, words.precision):
        console.print(passage.heading, style="bold")
        screen.print_sentences(console, passage.sentences)
        if passage.sentences:
            console.print()
    if len(survey_check.cohorts) > 1:
        _print_cohorts(console, survey_check)
    heads, rows = words.table.heads, words.table.rows
    screen.print_table(console, heads, rows, "l" * (len(heads) - 3) + "rrr")
    console.print(f"{words.table.note}\n")
    console.print(words.budget.heading, style="bold")
    screen.print_sentences(console, words.budget.sentences)


def _print_cohorts(console: Console, survey_check: SurveyCheck) -> None:
    """Print how many people each cohort has, and the levels of its submissions, the highest first."""
    heads = ("cohort", *(f"{number:,} people" for number in survey_check.people), "LIP", "LDP")
    rows = [
        (
            cohort.name,
            *(f"{n:,}" for n in cohort.people),
            level_at_most(cohort.lip),
            level_at_most(cohort.ldp),
        )
        for cohort in sorted(survey_check.cohorts, key=lambda cohort: -cohort.ldp)
    ]
    screen.print_table(console, heads, rows, "lrrrr")
    console.print()


@click.command(epilog=_BUILD_EXAMPLES)
@click.argument("file", type=options.INPUT_FILE)
@click.option("-o", "--output", required=True, type=options.OutputFile(), help="Save the campaign here.")
@_TIME_LIMIT
@click.option("--force", is_flag=True, help="Replace the output file if it exists.")
def build(file: Path, output: Path, time_limit: float, force: bool) -> None:
    """Design the survey in FILE, and save the campaign."""
    inputs.require_new(force, output)
    inputs.require_distinct({"FILE": file}, {"-o": output})
    made = _build(file, time_limit)
    with atomic_write(output, replace=force) as saved:
        saved.write(made.campaign.to_json().encode("utf-8"))
    campaign = made.campaign
    asked = f"{plural(len(campaign.questions), 'question')} in {', '.join(campaign.languages)}"
    cohorts = f", {len(campaign.cohorts)} cohorts" if len(campaign.cohorts) > 1 else ""
    click.echo(f"saved {output}: {asked}{cohorts}, id {campaign.id}")
    for warning in map(str, campaign.warnings):
        click.echo(warning, err=True)


def _build(file: Path, time_limit: float) -> SurveyDesign:
    """Read and design a survey; print what could not be converted, and what should be done before people are asked."""
    from priorveil.questions import survey
    from priorveil.questions.survey_reader import read_survey

    described = read_survey(file)
    if described.left_out:
        click.echo(f"{file}: the campaign differs from this file:", err=True)
        for words in described.left_out:
            click.echo(f"  {words}", err=True)
    for remark in described.remarks:
        click.echo(remark, err=True)
    with _design_bar() as progress:
        return survey.build(described, time_limit=time_limit, progress=progress)


@contextmanager
def _design_bar() -> Iterator[Progress]:
    """Show progress; ctrl-C gives up. It does not keep the plans so far: a survey needs a plan for every design."""
    with screen.end_on_interrupt(), screen.progress_bar("designing") as advance:
        yield lambda rounds, error, bound: advance(None, f"round {rounds}")
