"""`priorveil audit`: what a channel leaks under a prior."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import files as inputs
from priorveil.cli import screen as screens
from priorveil.cli import secrets, watched

if TYPE_CHECKING:
    from priorveil.channels import Channel
    from priorveil.notions import Breach, Leakage
    from priorveil.priors import Budget, Prior, Secret

_OF_SECRETS = ("lip", "pufferfish")

_EXAMPLES = """\b
Files
  CHANNEL  Pr(report | value). CSV: a line for each value, numbers alone or with
           labels (first line: the reports; first column: the values).
           JSON: a list of rows, or {"inputs": [..], "outputs": [..], "matrix": [[..], ..]};
           or a plan.
  PRIOR    What is known about one person's value. CSV: lines of label,probability
           (or numbers alone). JSON: {"label": probability, ..} or a list.
  --secret Pr(value | secret), a line for each secret, in the same forms as CHANNEL.

\b
Examples
  priorveil audit channel.csv prior.csv
      all levels of the channel, as a table
  priorveil audit channel.csv prior.csv --epsilon 1
      exit status 1 if it is not 1-LIP, and the place where it breaks
  priorveil audit channel.csv prior.csv --lower 1 --upper 2
      an asymmetric budget; a side left out is not bounded
  priorveil audit channel.csv counts.csv --counts --smoothing 1
      a prior from counts, one added to each (Laplace)
  priorveil audit channel.csv prior.csv --secret given.csv --epsilon 1 --json
      what the report says of something behind the value, for a machine to read
  priorveil audit seen.csv prior.csv --observed --epsilon 1
      a sampler that was only watched: a line for each report, columns `value` and `report`;
      exit status 1 if chance does not explain it
  priorveil audit plan.json prior.csv --samples 1000000
      a plan's own sampler, run a million times for each value

Levels are natural logarithms, measured in floating point. LIP depends on the prior; LDP does not.
Of a plan of arcs, MIL and MIP are bounds from above.
"""


def _no_nan(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse what compares with nothing, and so would let every level pass."""
    if math.isnan(value):
        raise click.BadParameter("nan is no number from 0 to 1e-06", ctx, parameter)
    return value


@click.command(epilog=_EXAMPLES)
@click.argument("channel", type=inputs.FILE)
@click.argument("prior", type=inputs.FILE)
@inputs.options(secrets.SECRET, secrets.MIX, *inputs.BUDGET)
@click.option(
    "--notion",
    type=click.Choice(tuple(screens.NOTIONS)),
    default="lip",
    show_default=True,
    help="What has to hold.",
)
@inputs.options(inputs.COUNTS, inputs.SMOOTHING, inputs.NORMALISE)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1e-6),
    callback=_no_nan,
    default=1e-9,
    show_default=True,
    help="Allowed for rounding.",
)
@click.option("--observed", is_flag=True, help="CHANNEL holds reports that were seen.")
@click.option(
    "--samples", type=click.IntRange(1), help="CHANNEL is a plan: run its sampler so often for each value."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.99,
    show_default=True,
    help="Of levels from samples.",
)
@inputs.JSON
def audit(
    channel: Path,
    prior: Path,
    secret: Path | None,
    mix: bool,
    epsilon: float | None,
    lower: float | None,
    upper: float | None,
    notion: str,
    counts: bool,
    smoothing: float | None,
    normalise: bool,
    tolerance: float,
    observed: bool,
    samples: int | None,
    confidence: float,
    as_json: bool,
) -> int:
    """Measure what a CHANNEL leaks under a PRIOR.

    Prints the level of every notion. With --epsilon (or --lower and --upper) it also says whether the
    notion holds; if not, it names the input and output that break it and exits with status 1.

    With --observed or --samples the levels come from samples: ranges that hold together with the stated
    confidence. They can refute a budget, never prove one.
    """
    from priorveil.notions import leakage

    allowed = inputs.budget(epsilon, lower, upper, notion)
    known = inputs.prior(prior, counts, smoothing, normalise)
    if observed or samples is not None:
        if secret is not None or notion != "lip" or (observed and samples is not None):
            raise click.UsageError(
                "samples are for LIP of the value itself, from --observed counts or a plan's --samples"
            )
        return watched.show(channel, known, samples, confidence, allowed, as_json)
    read, known = _matched(inputs.channel(channel, normalise), known)
    latent = None if secret is None else secrets.secret(secret, known, normalise)
    known = secrets.fitted(known, latent, mix, secret)
    levels = leakage(read, known, latent)
    found = [] if allowed is None else _breaches(notion, allowed, tolerance, read, known, latent)
    if as_json:
        screens.print_json(_record(levels, notion, allowed, found))
    else:
        _show(levels, notion, allowed, found, latent is not None)
    return 1 if found else 0


def _matched(channel: Channel, prior: Prior) -> tuple[Channel, Prior]:
    """The two with the same labels in the same order: the channel's, unless only the prior has any."""
    from priorveil.channels import Channel
    from priorveil.priors import Prior

    order = inputs.places(prior.labels, channel.inputs)
    if inputs.unnamed(channel.inputs) and order == list(range(len(prior))):
        return Channel(channel.matrix, prior.labels, channel.outputs), prior
    return channel, Prior.from_counts([prior.weights[i] for i in order], channel.inputs)


def _breaches(
    notion: str, budget: Budget, tolerance: float, channel: Channel, prior: Prior, secret: Secret | None
) -> list[tuple[Breach, float]]:
    """Where the notion fails, with the level that is allowed there: at most one for each side of the budget."""
    from priorveil import notions

    measure = getattr(notions, screens.NOTIONS[notion])()
    sides = zip(measure.worst(channel, prior, secret), (budget.lower, budget.upper), strict=False)
    return [(worst, allowed) for worst, allowed in sides if worst.level > allowed + tolerance]


def _sentence(notion: str, kind: str, breach: Breach, allowed: float) -> str:
    """Say what breaks where; `kind` is "value" or "secret"."""
    name, excess = screens.NOTIONS[notion], f"level {breach.level:.6g}, above {allowed:.6g}"
    if breach.report is None:
        return f"{name} does not hold: {excess}."
    direction = {"lower": " downwards", "upper": " upwards"}.get(breach.side or "", "")
    against = "" if breach.against is None else f" against {kind} {breach.against!r}"
    return (
        f"{name} does not hold{direction} at {kind} {breach.secret!r}{against}, "
        f"report {breach.report!r}: {excess}."
    )


def _breach_record(breach: Breach, allowed: float) -> dict[str, object]:
    return {
        "level": screens.plain(breach.level),
        "allowed": allowed,
        "side": breach.side,
        "input": breach.secret,
        "against": breach.against,
        "output": breach.report,
    }


def _record(
    levels: Leakage, notion: str, budget: Budget | None, found: list[tuple[Breach, float]]
) -> dict[str, object]:
    record: dict[str, object] = {"levels": screens.levels_record(levels)}
    if budget is not None:
        record["verdict"] = {
            "notion": notion,
            "lower": screens.plain(budget.lower),
            "upper": screens.plain(budget.upper),
            "holds": not found,
            "breaches": [_breach_record(*each) for each in found],
        }
    return record


def _show(
    levels: Leakage, notion: str, budget: Budget | None, found: list[tuple[Breach, float]], latent: bool
) -> None:
    screen = screens.console()
    screens.print_levels(screen, levels)
    if latent:
        screen.print("LIP and Pufferfish are for the secret; LDP, DI, MIL and MIP for the value itself.")
    if budget is not None and not found:
        screen.print(f"{screens.NOTIONS[notion]} holds at {screens.stated(budget)}.", style="green")
    kind = "secret" if latent and notion in _OF_SECRETS else "value"
    for breach, allowed in found:
        screen.print(_sentence(notion, kind, breach, allowed), style="red")
