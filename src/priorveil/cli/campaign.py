r"""`priorveil campaign`: make the file of a campaign, a question that people answer, from a plan.

To try it in an empty folder
  printf 'yes,0.3\nno,0.7\n' > prior.csv
  priorveil design prior.csv --epsilon 1 -o plan.json
  priorveil campaign plan.json --question "Do you smoke?" -o campaign.json

Examples
  priorveil campaign plan.json --question "Do you cycle?" --asked-by "The town" --purpose "To plan roads" -o c.json
      then give c.json to the dashboard of `priorveil serve`
  priorveil campaign plans/ --question "For whom do you work?" -o campaign.json
      a plan for each group of people, named by its file; people choose their
      group, which is sent as it is
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.atomic_files import atomic_write
from priorveil.cli import inputs, options
from priorveil.errors import plural

if TYPE_CHECKING:
    from priorveil.collect.campaign import Campaign


_SECTIONS = {
    "Options that most campaigns need": ("--question", "--asked-by", "--purpose", "--output"),
    "What else people read": ("--contact",),
    "When it is open, and what it shows": ("--opens", "--closes", "--keep-until", "--smallest-count"),
    "Who may answer": ("--admission", "--most-reports"),
}


@click.command(cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__))
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.option("--question", required=True, help="What people are asked.")
@click.option("--asked-by", default="", help="Who asks; people read it before they answer.")
@click.option("--purpose", default="", help="Why; people read it before they answer.")
@click.option("--contact", default="", help="Whom people can ask about the survey.")
@click.option("--opens", metavar="TIME", help="When the question opens, as 2026-01-31T12:00:00Z.")
@click.option("--closes", metavar="TIME", help="When it closes.")
@click.option("--keep-until", metavar="TIME", help="When the reports are deleted, after it has closed.")
@click.option("--smallest-count", default=100, help="Show no estimate from fewer reports.")
@click.option(
    "--admission",
    default="open",
    type=click.Choice(["open", "invitation"]),
    help="Everybody (who can then answer many times), or one answer for each code of `priorveil invite`.",
)
@click.option("--most-reports", type=int, help="Take no more reports than these.")
@click.option("-o", "--output", required=True, type=options.OutputFile(), help="Save the campaign here.")
@click.option("--force", is_flag=True, help="Replace the output file if it exists.")
def campaign(plan: Path, output: Path, force: bool, **texts: Any) -> None:
    """Make a campaign, a question to people, from a PLAN.

    PLAN may be a folder with a plan for each group of people.
    """
    from priorveil.collect.campaign import EVERYONE, Campaign

    inputs.require_new(force, output)
    plans = inputs.read_plans(plan, "cohort" if plan.is_dir() else None)
    new_campaign = Campaign(cohorts=plans if isinstance(plans, dict) else {EVERYONE: plans}, **texts)
    with atomic_write(output, replace=force) as file:
        file.write(new_campaign.to_json().encode("utf-8"))
    cohorts = plural(len(new_campaign.cohorts), "cohort")
    click.echo(f"saved {output}: {_answers(new_campaign)}, {cohorts}, id {new_campaign.id}")
    missing = [name for name in ("asked-by", "purpose") if not texts[name.replace("-", "_")]]
    if missing:
        click.echo(f"people should know who asks and why: give --{' and --'.join(missing)}", err=True)


def _answers(campaign: Campaign) -> str:
    """Return what people may answer: one of some answers, or a number of a range."""
    domain = campaign.domain
    is_list = domain.names is None and domain.resolution is None
    return plural(len(domain.labels), "answer") if is_list else domain.describe()
