"""`priorveil inspect`: what a plan guarantees and how good it is; what a campaign asks, promises and sends.

Examples
  priorveil inspect plan.json
      its levels, its error, and whether reports determine the distribution
  priorveil inspect plan.json --plot plan.png
      a plot of the channel, and of the error against epsilon
  priorveil inspect plan.json --json
      the same numbers for a program to read
  priorveil inspect campaign.json
      a campaign: its questions, what a whole submission reveals, and the ids

The file is not trusted: its certificate is proven again from the integers that devices draw from.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import priorveil as pv
from priorveil.catalogue import say
from priorveil.cli import inputs, options, outputs, screen
from priorveil.cli.campaign_facts import inspect_campaign
from priorveil.reading.precision import USUAL_PEOPLE
from priorveil.words.plans import is_best, ldp_fact, plan_facts

if TYPE_CHECKING:
    from priorveil.studies.trade_offs import LdpComparison

_MOST_COMPARED = 30  # values up to which a plan is compared with LDP in three ways: for more it takes long


@click.command(epilog=options.epilog(__doc__))
@click.argument("plan", type=options.INPUT_FILE)
@options.PEOPLE
@options.PLOT
@options.JSON
def inspect(plan: Path, people: int, plot: Path | None, as_json: bool) -> None:
    """Show what a PLAN or a campaign guarantees, and how good it is.

    Shows its expected error, compared with no report at all, with the best of local differential privacy and with the
    proven bound; its level under every notion; and whether reports alone determine the distribution. For a campaign, it
    shows the questions, what a whole submission reveals, and what each report is.
    """
    from priorveil.studies.trade_offs import compare_with_ldp, flat_prior_remark, ldp_plan

    inputs.require_distinct({"PLAN": plan}, {"--plot": plot})
    if inputs.is_campaign(plan):
        if plot is not None:
            raise click.UsageError("--plot shows the channel of one plan: it cannot be used with a campaign")
        if people != USUAL_PEOPLE:
            advice = "for the precision of a survey: priorveil campaign check survey.toml --people N"
            raise click.UsageError(f"--people is for one plan; {advice}")
        inspect_campaign(plan, as_json)
        return
    proven = inputs.read_plan(plan)
    with screen.waiting("looking for the best LDP mechanism"):
        comparison = compare_with_ldp(proven) if len(proven.labels) <= _MOST_COMPARED else None
        rival = ldp_plan(proven, proven.budget.smaller) if comparison is None else comparison.same_epsilon
        remark = flat_prior_remark(proven)
    if plot is not None:  # before anything is printed, since a pipe may close early
        outputs.draw_plan(proven, plot, people)
    if as_json:
        record = screen.plan_record(proven, people)
        record["levels"] = screen.levels_record(proven.levels)
        record["ldp"] = rival and {
            "method": rival.method,
            "error": rival.expected_mse,
            "best": is_best(rival),
        }
        record["remark"] = remark
        record["beside_ldp"] = None if comparison is None or rival is None else comparison.record()
        screen.print_json(record)
    else:
        _print(proven, people, rival, comparison)
        if remark is not None:
            screen.open_console().print(f"\n{remark}")


def _print(plan: pv.Plan, people: int, rival: pv.Plan | None, comparison: LdpComparison | None) -> None:
    facts = plan_facts(plan, people)
    if rival is not None:
        facts.append(ldp_fact(plan, rival))
    console = screen.open_console()
    console.print("This plan was proven again.", style="bold")
    screen.print_table(console, ("", ""), facts)
    console.print()
    screen.print_levels(console, plan.levels)
    if plan.prior.assumed:
        console.print(say("levelsHoldFor"), style="yellow")
    if plan.secret is not None:
        console.print("LIP and Pufferfish are for the secret; for the value itself, only LDP holds.")
    if comparison is not None and rival is not None:
        console.print()
        screen.print_ldp_comparison(console, comparison)
