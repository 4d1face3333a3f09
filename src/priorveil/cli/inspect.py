"""`priorveil inspect`: what a plan guarantees, and how good it is.

Examples
  priorveil inspect plan.json
      its levels, its error, and whether reports determine the answer
  priorveil inspect plan.json --plot plan.png
      a picture of the channel, and of the error against epsilon
  priorveil inspect plan.json --json
      the same numbers for a program to read

The file is not trusted: its certificate is proven again from the integers that devices draw from.
"""

from __future__ import annotations

from pathlib import Path

import click

import priorveil as pv
from priorveil.cli import files, options, screen

_PROVEN = 0.999  # efficiency from which a plan is called the best


@click.command(epilog=options.epilog(__doc__))
@click.argument("plan", type=options.INPUT_FILE)
@options.PLOT
@options.JSON
def inspect(plan: Path, plot: Path | None, as_json: bool) -> None:
    """Show what a PLAN guarantees, and how good it is.

    Shows its expected error, compared with no report at all, with the best of local differential privacy and with the
    proven bound; its level under every notion; and whether reports alone determine the distribution.
    """
    from priorveil.studies.compare import best_ldp

    files.require_distinct({"PLAN": plan}, {"--plot": plot})
    proven = files.read_plan(plan)
    with screen.waiting("looking for the best LDP mechanism"):
        rival = best_ldp(proven)
    if plot is not None:  # before anything is printed, since a pipe may close early
        files.draw_plan(proven, plot)
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


def _print(plan: pv.Plan, rival: pv.Plan | None) -> None:
    from priorveil.information import gain_share
    from priorveil.priors.number_labels import readable_number
    from priorveil.reading.wording import percent

    facts = plan.summary()
    if rival is not None:
        smaller = min(plan.budget.lower, plan.budget.upper)
        kind = "the best LDP" if _is_best(rival) else "LDP"
        share = max(0.0, gain_share(rival.expected_mse, plan.lower_bound, plan.no_report))
        gain = f"{percent(share)} of the possible gain ({rival.method})"
        error = f"expected error {readable_number(rival.expected_mse)}"
        facts.append((f"{kind} at epsilon {smaller:.4g}", f"{error}, {gain}"))
    console = screen.open_console()
    console.print("This plan was proven again.", style="bold")
    screen.print_table(console, ("", ""), facts)
    console.print()
    screen.print_levels(console, plan.levels)
    if plan.secret is not None:
        console.print("LIP and Pufferfish are for the secret; for the value itself, only LDP holds.")


def _is_best(plan: pv.Plan) -> bool:
    return plan.efficiency > _PROVEN
