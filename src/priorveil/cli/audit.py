r"""`priorveil audit`: what a channel leaks under a prior.

To try it in an empty folder
  printf 'yes,0.3\nno,0.7\n' > prior.csv
  printf '0.75,0.25\n0.25,0.75\n' > channel.csv
  priorveil audit channel.csv prior.csv

Files
  CHANNEL  Pr(report | value). CSV: a line for each value, numbers alone or
           with labels (first line: the reports; first column: the values).
           JSON: a list of rows, or a plan, or
           {"inputs": [..], "outputs": [..], "matrix": [[..], ..]}.
  PRIOR    What is known about one person's value. CSV: lines of
           label,probability (or numbers alone).
           JSON: {"label": probability, ..} or a list.
  --secret Pr(value | secret), a line for each secret, in a form of CHANNEL.

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
      what a report reveals about something behind the value, as JSON
  priorveil audit seen.csv prior.csv --observed --epsilon 1
      a sampler that was observed: a line for each report, columns `value` and
      `report`; exit status 1 if the reports refute the budget
  priorveil audit plan.json prior.csv --samples 1000000
      a plan's own sampler, run a million times for each value

Levels are natural logarithms, measured in floating point. LIP depends on the prior; LDP does not.
For arc plans, MIL and MIP are upper bounds.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil import notions
from priorveil.channels import Channel
from priorveil.cli import inputs, options, screen
from priorveil.errors import plural
from priorveil.formatting import level_text
from priorveil.priors import Budget, Prior, Secret

if TYPE_CHECKING:
    from priorveil.studies.audit import SampledLeakage

_NOTIONS = {name.lower(): notion for name, notion in notions.NOTIONS.items()}
_ROUNDING = 1e-9  # a level that is above its limit by less than this holds
_OF_SECRETS = ("lip", "pufferfish")  # the notions that a secret changes


_SECTIONS = {
    "Options that most audits need": ("--epsilon", "--secret", "--json"),
    "What is checked": ("--notion", "--lower", "--upper", "--mix"),
    "What PRIOR holds": options.PRIOR_FORMAT,
    "Levels from samples": ("--observed", "--samples", "--confidence"),
}


@click.command(cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__))
@click.argument("channel_file", metavar="CHANNEL", type=options.INPUT_FILE)
@click.argument("prior_file", metavar="PRIOR", type=options.INPUT_FILE)
@options.SECRET
@options.MIX
@options.budget_options
@click.option("--notion", type=click.Choice(list(_NOTIONS)), default="lip", help="The privacy notion.")
@options.prior_format_options
@click.option("--observed", is_flag=True, help="CHANNEL is a table with the columns `value` and `report`.")
@click.option("--samples", type=click.IntRange(1), help="CHANNEL is a plan: how often to sample each value.")
@click.option("--confidence", type=options.SHARE, default=0.99, help="Confidence of levels from samples.")
@options.JSON
def audit(
    channel_file: Path,
    prior_file: Path,
    secret_file: Path | None,
    mix: bool,
    budget: Budget | None,
    notion: str,
    prior_format: options.PriorFormat,
    observed: bool,
    samples: int | None,
    confidence: float,
    as_json: bool,
) -> int:
    """Measure what a CHANNEL leaks under a PRIOR.

    Prints the level of every notion. With --epsilon (or --lower and --upper) it also says whether the
    notion holds; if not, it names the value and report that break it and exits with status 1.

    With --observed or --samples the levels come from samples: ranges that hold together with the stated
    confidence. They can refute a budget, never prove one.
    """
    prior = prior_format.read(prior_file)
    if observed or samples is not None:
        if secret_file is not None or notion != "lip" or (observed and samples is not None):
            advice = "leave out --secret and --notion, and give only one of --observed and --samples"
            raise click.UsageError(f"samples measure LIP of the value itself: {advice}")
        return _report_samples(_sampled_leakage(channel_file, prior, samples, confidence), budget, as_json)
    channel = inputs.read_channel(channel_file, prior_format.normalise)
    prior = channel.align(prior)
    # Where the channel has numbers, the prior may have names.
    channel = Channel(channel.matrix, prior.labels, channel.outputs)
    secret, prior = inputs.read_secret(secret_file, prior, prior_format.normalise, mix)
    return _report(channel, prior, secret, notion, budget, as_json)


def _report(
    channel: Channel, prior: Prior, secret: Secret | None, notion: str, budget: Budget | None, as_json: bool
) -> int:
    """Print the levels and the verdict; return the exit status."""
    levels = notions.leakage(channel, prior, secret)
    worst = _NOTIONS[notion].worst(channel, prior, secret)  # one, or one for each side
    limits = () if budget is None else (budget.lower, budget.upper)
    breaches = [(b, limit) for b, limit in zip(worst, limits, strict=False) if b.level > limit + _ROUNDING]
    if as_json:
        record: dict[str, object] = {"levels": screen.levels_record(levels)}
        if budget is not None:
            records = [{**asdict(breach), "allowed": allowed} for breach, allowed in breaches]
            verdict = {"notion": notion, **asdict(budget), "holds": not breaches, "breaches": records}
            record["verdict"] = verdict
        screen.print_json(record)
        return int(bool(breaches))
    console = screen.open_console()
    screen.print_levels(console, levels)
    if secret is not None:
        console.print("LIP and Pufferfish are for the secret; LDP, DI, MIL and MIP for the value itself.")
    if budget is not None and not breaches:
        console.print(f"{_NOTIONS[notion].name} holds at {budget}.", style="green")
    kind = "secret" if secret is not None and notion in _OF_SECRETS else "value"
    for breach, allowed in breaches:
        console.print(_sentence(notion, kind, breach, allowed), style="red")
    return int(bool(breaches))


def _sentence(notion: str, kind: str, breach: notions.Breach, allowed: float) -> str:
    """Say what breaks where; `kind` is "value" or "secret"."""
    name, excess = _NOTIONS[notion].name, f"level {breach.level:.6g}, above {allowed:.6g}"
    if breach.report is None:
        return f"{name} does not hold: {excess}."
    direction = {"lower": " downwards", "upper": " upwards"}.get(breach.side or "", "")
    against = "" if breach.against is None else f" against {kind} {breach.against!r}"
    place = f"at {kind} {breach.secret!r}{against}, report {breach.report!r}"
    return f"{name} does not hold{direction} {place}: {excess}."


# -- levels from samples -----------------------------------------------------------------------------------


def _sampled_leakage(path: Path, prior: Prior, samples: int | None, confidence: float) -> SampledLeakage:
    """Measure a table with the columns `value` and `report`; or, with a number of samples, the sampler of a plan."""
    from priorveil.studies.audit import audit_plan, observed_leakage

    if samples is None:
        rows = inputs.read_people(path, "value", "report")
        values = inputs.match_labels(rows, prior.domain, path, "the prior")
        with inputs.naming_file(path):
            return observed_leakage(values, [report for _, (_, report) in rows], prior, confidence)
    plan = inputs.read_plan(path)
    with screen.waiting(f"drawing {samples * len(prior):,} reports"):
        return audit_plan(plan, samples, confidence, prior.align_to(plan.labels))


def _report_samples(leakage: SampledLeakage, budget: Budget | None, as_json: bool) -> int:
    """Print the ranges and the verdict; return 1 where the samples refute the budget."""
    refuted = budget is not None and leakage.refutes(budget)
    if as_json:
        record: dict[str, object] = {**asdict(leakage), "lip": asdict(leakage.lip)}
        if budget is not None:
            record["verdict"] = {**asdict(budget), "refuted": refuted}
        screen.print_json(record)
        return int(refuted)
    levels = (leakage.lip, leakage.lip_lower, leakage.lip_upper, leakage.ldp)
    names = ("LIP", "  downwards", "  upwards", "LDP")
    rows = [(n, level_text(x.low), level_text(x.high)) for n, x in zip(names, levels, strict=True)]
    console = screen.open_console()
    screen.print_table(console, ("notion", "at least", "at most"), rows, "lrr")
    count = plural(leakage.samples, "report")
    console.print(f"{count}; all ranges hold with confidence {leakage.confidence:g}.")
    if not leakage.has_upper_bounds:
        console.print("Different reports were counted together, so there are no upper bounds.")
    if refuted:
        console.print(f"LIP does not hold at {budget}: the samples refute it.", style="red")
    elif budget is not None:
        verdict = f"The samples do not refute LIP at {budget}; only a certificate proves it."
        console.print(verdict, style="green")
    return int(refuted)
