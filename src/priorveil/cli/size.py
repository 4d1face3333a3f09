r"""`priorveil size`: how many people a survey needs, or how precise it is with some.

To try it in an empty folder
  printf 'yes,0.2\nno,0.8\n' > prior.csv
  priorveil size prior.csv

Files
  FILE     What is known about one person's value, as in priorveil design: CSV
           lines of label,probability; with --counts the numbers are counts.
           A plan is designed for each --epsilon.
           Or a PLAN that priorveil design made.
           For a survey file: priorveil campaign check survey.toml --people N

Examples
  priorveil size prior.csv --within 0.03
      the people who are needed to know every share to 3 points, for a few
      epsilons
  priorveil size prior.csv --people 400
      the margin of error that 400 people give
  priorveil size prior.csv --people 400 --within 0.05
      also the least epsilon with which 400 people are enough
  priorveil size prior.csv --epsilon 1 --epsilon 2 --plot size.png
      a picture: margin of error against people
  priorveil size plan.json --within 0.02 --json
      of one plan, for a program to read

Two figures are shown: one if people follow the prior, and one that is enough whatever the truth is. Margins of error
are half the width of the widest interval. A query that leans on the prior is refused, because no number of people
corrects a wrong prior.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import priorveil as pv
from priorveil.cli import inputs, options, outputs, screen
from priorveil.cli.prior_sources import PriorSource
from priorveil.errors import Infeasible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from priorveil.designs.survey_sizes import SurveySize
    from priorveil.notions import PriorOrSet
    from priorveil.queries import Query
    from priorveil.words.planning import SizeQuestion

_EPSILONS = (0.5, 1.0, 2.0)
_WITHIN = 0.03
_OF_PLANS = ("file", "within", "people", "confidence", "plot", "as_json")  # the others belong to a prior

_SECTIONS = {
    "What is wanted": ("--within", "--people", "--confidence", "--epsilon", "--plot"),
    "What is asked": ("--query", "--numbers", *options.QUERY_DETAILS),
    "What PRIOR holds": options.PRIOR_FORMAT,
}


@click.command(cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__))
@click.argument("file", metavar="[FILE]", type=options.INPUT_FILE, required=False)
@click.option(
    "--within", type=options.POSITIVE, help="The wanted margin of error.  [default: 0.03, for shares]"
)
@click.option("--people", type=options.WholeNumber(min=1), help="How many people will answer.")
@click.option("--confidence", type=options.SHARE, default=0.95, help="Of the intervals.")
@options.epsilons(_EPSILONS)
@options.query_options
@options.NUMBERS
@options.prior_format_options
@click.option(
    "--notion", type=click.Choice(list(options.DESIGN_NOTIONS)), default="lip", help="The privacy notion."
)
@options.PLOT
@options.JSON
@click.pass_context
def size(
    context: click.Context,
    file: Path | None,
    within: float | None,
    people: int | None,
    confidence: float,
    epsilons: tuple[float, ...],
    query: options.QueryChoice,
    numbers: options.NumberRange | None,
    prior_format: options.PriorFormat,
    notion: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Say how many people a survey needs, or how precise it is with some.

    For a PRIOR, at a few epsilons; or for a PLAN. With --within it shows the people who are needed, with --people the
    margin of error, and with both also the least epsilon that is enough.
    """
    inputs.require_distinct({"FILE": file}, {"--plot": plot})
    if file is not None and inputs.is_campaign(file):
        advice = "give its survey file: priorveil campaign check survey.toml --people N"
        raise click.UsageError(f"{file} is a campaign: {advice}")
    with screen.waiting("designing"):
        if file is not None and inputs.is_plan(file):
            _refuse_options_of_priors(context)
            design = _Design.of_plan(inputs.read_plan(file))
        else:
            prior = _read_prior(file, prior_format, query, numbers, epsilons, notion)
            design = _Design(prior, query.of(prior), {"notion": options.DESIGN_NOTIONS[notion]})
        question = _question(design.query, within, people, confidence)
        sizes, least = design.sizes(epsilons), None
        if question.within is not None and people is not None:
            least = [design.least_epsilon(question, worst) for worst in (False, True)]
    if plot is not None:  # before anything is printed, since a pipe may close early
        from priorveil.words.plots.planning import size_figure

        outputs.save_plot(size_figure(sizes, question), plot)
    if as_json:
        screen.print_json(_record(sizes, question, least))
    else:
        _print(sizes, question, least)


@dataclass(frozen=True)
class _Design:
    """What surveys are designed for: a prior and a query, with the options of `design`; or a plan that is known."""

    prior: PriorOrSet
    query: Query
    settings: dict[str, Any]
    plan: pv.Plan | None = None

    @classmethod
    def of_plan(cls, plan: pv.Plan) -> _Design:
        """What a plan was designed for."""
        return cls(plan.prior, plan.query, {"notion": plan.notion, "secret": plan.secret}, plan)

    def sizes(self, epsilons: Sequence[float]) -> list[SurveySize]:
        """Return the size of surveys at each epsilon, or with the plan; and without noise."""
        from priorveil.designs.survey_sizes import SurveySize, survey_sizes

        if self.plan is not None:
            return [SurveySize.of(self.plan), SurveySize.without_noise(self.prior, self.query)]
        return list(survey_sizes(self.prior, self.query, sorted({*epsilons}), **self.settings))

    def least_epsilon(self, question: SizeQuestion, worst: bool) -> float | None:
        """Return the least epsilon that is enough; None if none is."""
        wanted: dict[str, Any] = {"people": question.people, "within": question.within, "worst": worst}
        with suppress(Infeasible):
            found: float = pv.budget_for(
                self.prior, self.query, confidence=question.confidence, **wanted, **self.settings
            )
            return found
        return None


def _question(query: Query, within: float | None, people: int | None, confidence: float) -> SizeQuestion:
    """Return what is asked; shares are known to three points if nothing else is said."""
    from priorveil.words.planning import SizeQuestion

    is_share = query.statistic_name == "share"
    if within is None and people is None:
        if not is_share:
            advice = "give --within, in that unit, or --people"
            raise click.UsageError(f"the answer has a unit of its own: {advice}")
        within = _WITHIN
    if is_share and within is not None and within >= 1:
        raise click.UsageError(f"--within {within:g}: give a share, such as 0.03 for 3 points")
    return SizeQuestion(query.statistic_name, confidence, within, people)


def _refuse_options_of_priors(context: click.Context) -> None:
    """Refuse options that a plan has decided already."""
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if given and param.name not in _OF_PLANS:
            raise click.UsageError(f"{param.opts[0]} is for a PRIOR: a plan has its own; leave it out")


def _read_prior(
    file: Path | None,
    prior_format: options.PriorFormat,
    query: options.QueryChoice,
    numbers: options.NumberRange | None,
    epsilons: Sequence[float],
    notion: str,
) -> pv.Prior:
    if numbers is not None:
        largest = pv.Budget.of(max(epsilons))
        return PriorSource(file, prior_format).read_numbers(numbers, query, largest, notion)
    if file is None:
        raise click.UsageError(options.NO_PRIOR.format("size"))
    return prior_format.read(file)


def _record(
    sizes: Sequence[SurveySize], question: SizeQuestion, least: list[float | None] | None
) -> dict[str, Any]:
    """Return the numbers for a program; null where a worst case would take long to compute."""
    record: dict[str, Any] = {
        "within": question.within,
        "people": question.people,
        "confidence": question.confidence,
        "statistic": question.statistic,
        "sizes": [],
    }
    for each in sizes:
        entry: dict[str, Any] = {"epsilon": each.epsilon}
        if question.within is not None:
            entry |= dict(
                zip(
                    ("people", "people_worst"), each.people(question.within, question.confidence), strict=True
                )
            )
        if question.people is not None:
            widths = each.half_widths(question.people, question.confidence)
            entry |= dict(zip(("half_width", "half_width_worst"), widths, strict=True))
        record["sizes"].append(entry)
    if least is not None:
        record["least_epsilon"] = dict(zip(("at_prior", "worst"), least, strict=True))
    return record


def _print(sizes: Sequence[SurveySize], question: SizeQuestion, least: list[float | None] | None) -> None:
    console = screen.open_console()
    console.print(question.title(), style="bold")
    heads, rows = question.table(sizes)
    screen.print_table(console, heads, rows, "lrrr")
    console.print()
    lines = question.sentences(sizes)
    screen.print_sentences(console, lines if least is None else [*lines, question.least_epsilon(least)])
