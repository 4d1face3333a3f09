"""`priorveil inspect`: what a plan promises, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import files as inputs
from priorveil.cli import outputs
from priorveil.cli import screen as screens
from priorveil.cli.promises import identifiable, promises, record
from priorveil.cli.watching import gap_of
from priorveil.errors import TooLarge

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.notions import Leakage
    from priorveil.plans import Plan
    from priorveil.studies.compare import Rival

_EXAMPLES = """\b
Examples
  priorveil inspect plan.json
      its levels, its error beside others, and whether it identifies
  priorveil inspect plan.json --plot plan.png
      a picture of the channel, and of the error against epsilon
  priorveil inspect plan.json --json
      the same numbers for a machine to read

The file is not believed: its certificate is proven again from the integers that devices draw from.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("plan", type=inputs.FILE)
@inputs.options(outputs.PLOT, inputs.JSON)
def inspect(plan: Path, plot: Path | None, as_json: bool) -> int:
    """Show what a PLAN promises, and how good it is.

    Its expected error beside no report at all, beside the best of local differential privacy and beside the
    proven bound; its level under every notion; and whether reports alone determine the distribution.
    """
    from priorveil.studies.compare import best_ldp

    outputs.keep_apart({"PLAN": plan}, {"--plot": plot})
    read = inputs.plan(plan)
    levels = _levels(read)
    with screens.waiting("looking for the best LDP mechanism"):
        rival = best_ldp(read)
    if as_json:
        screens.print_json(_record(read, levels, rival))
    else:
        _show(read, levels, rival)
    if plot is not None:
        outputs.draw_plan(read, plot)
        click.echo(f"Drawn in {plot}.", err=as_json)
    return 0


def _levels(plan: Plan) -> Leakage | None:
    """The levels under every notion, where the channel can be written out."""
    from priorveil.notions import leakage

    try:
        return leakage(plan.exposed, plan.prior, plan.secret)
    except TooLarge:
        return None


def _record(plan: Plan, levels: Leakage | None, rival: Rival | None) -> dict[str, object]:
    beside = (
        None
        if rival is None
        else {"name": rival.name, "error": screens.plain(rival.error), "best": rival.best}
    )
    return {
        **record(plan),
        "levels": None if levels is None else screens.levels_record(levels),
        "ldp": beside,
    }


def _show(plan: Plan, levels: Leakage | None, rival: Rival | None) -> None:
    screen = screens.console()
    screen.print(f"Plan {plan.id[:12]}, proven again.", style="bold")
    screens.print_table(screen, ("", ""), promises(plan))
    screen.print("\nExpected error per person", style="bold")
    screens.print_table(screen, ("", "error", "of the gain"), _errors(plan, rival), "lrr")
    _show_levels(screen, plan, levels)
    screen.print("\nWhat reports can tell", style="bold")
    screen.print(_identified(plan))


def _errors(plan: Plan, rival: Rival | None) -> list[tuple[str, str, str]]:
    """The plan's error beside the others, and which share of the achievable gain each has."""
    rows = [("no report at all", plan.no_report), ("this plan", plan.expected_mse)]
    if rival is not None:
        smaller = min(plan.budget.lower, plan.budget.upper)
        quality = "the best LDP" if rival.best else "LDP"
        rows.insert(1, (f"{quality} at epsilon {smaller:.4g} ({rival.name})", rival.error))
    rows.append(("proven bound: nothing is below", plan.lower_bound))
    shares = [1 - gap_of(error, plan.lower_bound, plan.no_report) for _, error in rows]
    return [
        (name, screens.shown_error(error), screens.shown_share(share))
        for (name, error), share in zip(rows, shares, strict=True)
    ]


def _show_levels(screen: Console, plan: Plan, levels: Leakage | None) -> None:
    screen.print("\nLevels", style="bold")
    if levels is None:
        screen.print("The channel is too large to be written out; certified are LIP and LDP, above.")
        return
    screens.print_levels(screen, levels)
    if plan.secret is not None:
        screen.print("LIP and Pufferfish are for the secret; about the value itself only LDP is said.")
    if plan.exposed is not plan.channel:
        screen.print("MIL and MIP are bounds from above.")


def _identified(plan: Plan) -> str:
    known = identifiable(plan)
    if known is None:
        return (
            "The channel is too large to tell whether reports alone determine the distribution: read them "
            "with `mmse`, which leans on the prior."
        )
    if known:
        return (
            "Reports alone determine the distribution: `unbiased` and `mle` estimates do not lean on the "
            "prior, and a wrong prior can be corrected."
        )
    return (
        "Reports alone do not determine the distribution: estimates (`mmse`) lean on the prior, and are as "
        "wrong as it is where reports cannot tell. To learn the distribution, design with "
        "--query distribution."
    )
