r"""`priorveil campaign`: make a campaign, questions that people answer, from a survey file or a plan, and manage it.

To try it in an empty folder
  priorveil campaign new survey.toml
  priorveil campaign check survey.toml
  priorveil campaign build survey.toml -o campaign.json

A survey is one file
  priorveil campaign new survey.toml
      write an example with comments; change it in a text editor
  priorveil campaign check survey.toml --people 300
      its promise to people, and how precise its results will be with 300
  priorveil campaign build survey.toml -o campaign.json
      then give campaign.json to the dashboard of `priorveil serve`
  priorveil campaign check form.xlsx
      an XLSForm from ODK or Kobo is a survey, too

One question from a plan of your own
  priorveil campaign from-plan plan.json --question "Do you smoke?" -o campaign.json
      the plan is made with `priorveil design`, or in Python

Campaigns of a running curator
  priorveil campaign list --server https://survey.example
  priorveil campaign release campaign.json
      analysts see the results so far; otherwise when it closes
  priorveil campaign close campaign.json
  priorveil campaign publish campaign.json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.atomic_files import atomic_write
from priorveil.cli import inputs, options, survey_files
from priorveil.cli.curator_api import CuratorApi, campaign_id, with_curator
from priorveil.errors import plural

if TYPE_CHECKING:
    from priorveil.questions.campaign import Campaign


_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
_SECTIONS = {
    "Options that most campaigns need": ("--question", "--asked-by", "--purpose", "--output"),
    "What else people read": ("--contact",),
    "When it is open, and what it shows": ("--opens", "--closes", "--keep-until", "--smallest-count"),
    "Who may answer": ("--admission", "--most-reports"),
}


_COMMANDS = {
    "From a survey file": ("new", "check", "build"),
    "From a plan of your own": ("from-plan",),
    "Campaigns of a running curator, given by file or id": (
        "list",
        "release",
        "close",
        "reopen",
        "publish",
        "delete",
    ),
}
_PLAN_EXAMPLES = """\b
Examples
  printf 'yes,0.3\\nno,0.7\\n' > prior.csv
  priorveil design prior.csv --epsilon 1 -o plan.json
  priorveil campaign from-plan plan.json --question "Do you smoke?" \\
      --asked-by "The town" --purpose "To help" -o campaign.json
  priorveil campaign from-plan plans/ --question "For whom do you work?" \\
      -o campaign.json
      a plan for each group of people, named after its file; people choose
      their group, which is sent without noise"""

_DIGITS = 6  # of the id, which are typed before a campaign is deleted


class _CampaignGroup(click.Group):
    """Commands about campaigns, listed in sections."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the work."""
        return [name for names in _COMMANDS.values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in sections."""
        for title, names in _COMMANDS.items():
            with formatter.section(title):
                width = formatter.width - 6 - max(map(len, self.commands))
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in names])


@click.group(cls=_CampaignGroup, epilog=options.epilog(__doc__))
def campaign() -> None:
    """Make a campaign from a survey file or a plan; close, publish or delete it.

    A campaign is the questions that people are asked, in one file, `campaign.json`, for the curator. Most people make
    it from a survey file.
    """


campaign.add_command(survey_files.new)
campaign.add_command(survey_files.check)
campaign.add_command(survey_files.build)


@campaign.command("list")
@with_curator
def list_campaigns(api: CuratorApi) -> None:
    """List all campaigns with their state, oldest first."""
    for entry in api.request("GET", "v1", "campaigns")["campaigns"]:
        reports = ", reports deleted" if entry["deleted"] else ""
        state = "published" if entry["published"] and entry["state"] == "closed" else entry["state"]
        click.echo(f"{entry['id']}  {state}{reports}  {entry['title']}")


@campaign.command()
@click.argument("campaign")
@_YES
@with_curator
def release(api: CuratorApi, campaign: str, yes: bool) -> int:
    """Let analysts see the results of a CAMPAIGN so far.

    Refused until enough further reports have come since the last results: `smallest_count` of the campaign, and at
    least 20.
    """
    id = campaign_id(campaign)
    if not yes:
        click.echo(_publication_text(api.request("GET", "v1", "campaigns", id, "estimates")), err=True)
    if not _is_confirmed(yes, f"Let analysts see the results of the campaign {id[:12]}?"):
        return 1
    released = api.request("POST", "v1", "campaigns", id, "release")
    click.echo(f"released {id}: results from {plural(released['stored']['reports'], 'report')}")
    return 0


@campaign.command()
@click.argument("campaign")
@_YES
@with_curator
def close(api: CuratorApi, campaign: str, yes: bool) -> int:
    """Accept no more reports for a CAMPAIGN. It can be reopened until its closing time."""
    id = campaign_id(campaign)
    if not _is_confirmed(yes, f"Close the campaign {id[:12]}?"):
        return 1
    api.request("POST", "v1", "campaigns", id, "close")
    click.echo(f"closed {id}")
    return 0


@campaign.command()
@click.argument("campaign")
@_YES
@with_curator
def reopen(api: CuratorApi, campaign: str, yes: bool) -> int:
    """Accept reports again for a CAMPAIGN that was closed early."""
    id = campaign_id(campaign)
    if not _is_confirmed(yes, f"Reopen the campaign {id[:12]}?"):
        return 1
    api.request("POST", "v1", "campaigns", id, "reopen")
    click.echo(f"reopened {id}")
    return 0


@campaign.command()
@click.argument("campaign")
@_YES
@with_curator
def publish(api: CuratorApi, campaign: str, yes: bool) -> int:
    """Publish the results of a closed CAMPAIGN. This is final.

    Everybody can read them, and they never change. From then on no report can be withdrawn, and the campaign cannot
    reopen, because two tables that differ by one report reveal that report.
    """
    id = campaign_id(campaign)
    if not yes:
        estimates = api.request("GET", "v1", "campaigns", id, "estimates")
        if estimates["state"] != "closed":
            raise click.ClickException(
                f"the campaign is {estimates['state']}: close it first (priorveil campaign close)"
            )
        click.echo(_publication_text(estimates), err=True)
    if not _is_confirmed(yes, f"Publish the results of the campaign {id[:12]}? This cannot be undone."):
        return 1
    api.request("POST", "v1", "campaigns", id, "publication")
    click.echo(f"published {api.server.rstrip('/')}/published/{id}")
    for text in _totals_texts(api.request("GET", "v1", "campaigns", id, "publication")):
        click.echo(text, err=True)
    return 0


def _totals_texts(publication: Any) -> tuple[str, ...]:
    """What the published totals tell about one person, if that can be said."""
    from priorveil.plans.structure import convert
    from priorveil.results.document import Result
    from priorveil.words.results import totals_texts

    return totals_texts(convert(publication["result"], Result))


def _is_confirmed(yes: bool, question: str) -> bool:
    """Return whether the user agrees; `yes` agrees beforehand. If not, nothing is changed, and a line says so."""
    if yes or click.confirm(question, err=True):
        return True
    click.echo("nothing was changed", err=True)
    return False


def _publication_text(estimates: Any) -> str:
    """How many reports there are, and how many of the results would be withheld."""
    from priorveil.catalogue import say
    from priorveil.words.notes import reports_text

    found = estimates["result"]
    results = [each for each in found["findings"] if each["withheld"] != "other forms"]
    withheld = sum(each["withheld"] is not None for each in results)
    reports = reports_text(found["reports"])
    if not withheld:
        return say("allWouldBeShown", reports=reports)
    least = reports_text(found["smallest_count"])
    return say("someWouldBeWithheld", reports=reports, withheld=withheld, all=len(results), least=least)


@campaign.command()
@click.argument("campaign")
@_YES
@with_curator
def delete(api: CuratorApi, campaign: str, yes: bool) -> None:
    """Delete a CAMPAIGN with all its reports and results. It can never be created again."""
    id = campaign_id(campaign)
    if not yes:
        digits = id[:_DIGITS]
        typed = click.prompt(
            f"Delete it? This cannot be undone. Type the first digits of its id, {digits}", err=True
        )
        if typed.strip().lower() != digits:
            raise click.UsageError(f"{typed} are not the first digits of the id: nothing was deleted")
    reports = api.request("DELETE", "v1", "campaigns", id)["reports"]
    click.echo(f"deleted {id} with {plural(reports, 'report')}")


@campaign.command(
    "from-plan",
    cls=options.SectionedCommand,
    sections=_SECTIONS,
    epilog=_PLAN_EXAMPLES,
)
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
@click.option("--most-reports", type=int, help="Accept at most this many reports.")
@click.option("-o", "--output", required=True, type=options.OutputFile(), help="Save the campaign here.")
@click.option("--force", is_flag=True, help="Replace the output file if it exists.")
def from_plan(plan: Path, output: Path, force: bool, **texts: Any) -> None:
    """Make a campaign with one question from a PLAN.

    PLAN may be a folder with a plan for each group of people. For several questions under one promise, write a
    survey file instead: priorveil campaign new.
    """
    from priorveil.catalogue import say
    from priorveil.questions.campaign import ask_with

    inputs.require_new(force, output)
    plans = inputs.read_plans(plan, "cohort" if plan.is_dir() else None)
    new_campaign = ask_with(texts.pop("question"), plans, **texts)
    with atomic_write(output, replace=force) as file:
        file.write(new_campaign.to_json().encode("utf-8"))
    cohorts = plural(len(new_campaign.cohorts), "cohort")
    click.echo(f"saved {output}: {_answers(new_campaign)}, {cohorts}, id {new_campaign.id}")
    missing = [f"--{name}" for name in ("asked-by", "purpose") if not texts[name.replace("-", "_")]]
    if missing:
        click.echo(say("giveWhoAsks", keys=" and ".join(missing)), err=True)
    for warning in map(str, new_campaign.warnings):
        click.echo(warning, err=True)


def _answers(campaign: Campaign) -> str:
    """Return what people may answer: how many answers there are, or the range of a number."""
    domain = campaign.form_for(next(iter(campaign.cohorts))).parts[0].plan.domain
    is_list = domain.names is None and domain.resolution is None
    return plural(len(domain.labels), "answer") if is_list else domain.describe()
