"""`priorveil inspect`: what a plan guarantees, and how good it is.

Examples
  priorveil inspect plan.json
      its levels, its error next to others, and whether reports determine the answer
  priorveil inspect plan.json --plot plan.png
      a picture of the channel, and of the error against epsilon
  priorveil inspect plan.json --json
      the same numbers for a program to read

The file is not trusted: its certificate is proven again from the integers that devices draw from.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import files, options, screen

if TYPE_CHECKING:
    from priorveil.plans import Plan

_PROVEN = 0.999  # efficiency from which a plan is called the best


@click.command(epilog=options.epilog(__doc__))
@click.argument("plan", type=options.INPUT_FILE)
@options.PLOT
@options.JSON
def inspect(plan: Path, plot: Path | None, as_json: bool) -> None:
    """Show what a PLAN guarantees, and how good it is.

    Its expected error, compared with no report at all, with the best of local differential privacy and with the
    proven bound; its level under every notion; and whether reports alone determine the distribution.
    """
    from priorveil.studies.compare import best_ldp

    files.require_distinct({"PLAN": plan}, {"--plot": plot})
    proven = files.read_plan(plan)
    with screen.waiting("looking for the best LDP mechanism"):
        rival = best_ldp(proven)
    if as_json:
        record = screen.plan_record(proven)
        record["levels"] = screen.levels_record(proven.levels)
        record["ldp"] = rival and {
            "method": rival.method,
            "error": rival.expected_mse,
            "best": _is_best(rival),
        }
        screen.print_json(record)
    else:
        _print(proven, rival)
    if plot is not None:
        files.draw_plan(proven, plot)
        click.echo(f"Drawn in {plot}.", err=as_json)


def _print(plan: Plan, rival: Plan | None) -> None:
    console = screen.open_console()
    console.print(f"Plan {plan.id[:12]}, proven again.", style="bold")
    screen.print_table(console, ("", ""), screen.plan_rows(plan))
    console.print("\nPrecision", style="bold")
    console.print(f"{plan.precision}.")
    console.print(f"\nExpected error, {plan.query.error_unit}", style="bold")
    screen.print_table(console, ("", "error", "of the gain"), _errors(plan, rival), "lrr")
    console.print("\nLevels", style="bold")
    screen.print_levels(console, plan.levels)
    if plan.secret is not None:
        console.print("LIP and Pufferfish are for the secret; for the value itself, only LDP holds.")
    console.print("\nWhat reports determine", style="bold")
    console.print(_identifiability(plan))


def _errors(plan: Plan, rival: Plan | None) -> list[tuple[str, str, str]]:
    """Return the errors of the plan and of others, with the share of the achievable gain that each has."""
    from priorveil.queries import gain_share

    errors = [("no report at all", plan.no_report), ("this plan", plan.expected_mse)]
    if rival is not None:
        smaller = min(plan.budget.lower, plan.budget.upper)
        kind = "the best LDP" if _is_best(rival) else "LDP"
        errors.insert(1, (f"{kind} at epsilon {smaller:.4g} ({rival.method})", rival.expected_mse))
    errors.append(("proven bound: nothing is below", plan.lower_bound))
    shares = [max(0.0, gain_share(error, plan.lower_bound, plan.no_report)) for _, error in errors]
    return [
        (name, screen.error_figure(error), screen.share_text(share))
        for (name, error), share in zip(errors, shares, strict=True)
    ]


def _is_best(plan: Plan) -> bool:
    return plan.efficiency > _PROVEN


def _identifiability(plan: Plan) -> str:
    if plan.identifiable:
        return (
            "Reports alone determine the distribution: `unbiased` and `mle` estimates do not lean on the "
            "prior, and a wrong prior can be corrected."
        )
    return (
        "Reports alone do not determine the distribution: estimates (`mmse`) lean on the prior, and are as "
        "wrong as the prior is where reports cannot tell. To learn the distribution, design with "
        "--query distribution."
    )
