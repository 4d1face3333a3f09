"""The results of a campaign from a table of submissions: the part of `priorveil estimate` for campaigns."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priorveil.cli import inputs, outputs, screen
from priorveil.errors import InvalidInput
from priorveil.priors.label_texts import first_labels

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.collect.results import Result
    from priorveil.reading.estimate import EstimateMethod
    from priorveil.tables.submissions import CampaignEstimate, SubmissionTallies


def estimate_campaign(
    path: Path,
    reports: tuple[str, ...],
    method: EstimateMethod,
    level: float,
    as_json: bool,
    as_csv: bool,
    refused_file: Path | None,
) -> SubmissionTallies:
    """Print the results of a campaign from tables of submissions; return what was counted."""
    from priorveil.collect.results_csv import statistic_lines, write_csv
    from priorveil.tables import estimate_table

    campaign = inputs.read_campaign(path)
    estimates: CampaignEstimate = outputs.run_on_table(
        estimate_table,
        reports,
        campaign,
        method=method,
        words="counting",
        refused_file=refused_file,
        force=True,
    )
    results, tallies = list(estimates.results), estimates.tallies
    if not tallies.reports:
        raise InvalidInput("reports", first_labels(reports), "there is no submission to this campaign in it")
    if as_json:
        screen.print_json(_record(results, tallies, level))
    elif as_csv:
        write_csv(campaign, statistic_lines(results, level), sys.stdout)
    else:
        _print_tables(screen.open_console(), results, level)
    return tallies


def _record(results: list[Result], tallies: SubmissionTallies, level: float) -> dict[str, Any]:
    """Return the results for a program to read; withheld ones have no estimate."""
    records = [
        {
            "attributes": list(result.attributes),
            "questions": result.questions,
            "title": result.title,
            "option": result.option,
            "margin_of": None if result.margin_of is None else list(result.margin_of),
            "cohorts": {
                name: {"reports": reports}
                | (
                    {"withheld": True}
                    if name not in result.estimates
                    else result.estimates[name].record(level)
                )
                for name, (_, reports) in result.parts.items()
            },
            "total": None if result.total is None else result.total.record(level),
        }
        for result in results
    ]
    counts = {"repeated": tallies.repeated, "without_id": tallies.without_id}
    return {
        "level": level,
        "reports": tallies.reports,
        "results": records,
        **outputs.refused_record(tallies.refused),
        **counts,
    }


def _print_tables(console: Console, results: list[Result], level: float) -> None:
    """Print a table for each result, of each cohort and of all together; what holds for several results comes last."""
    notes = [
        result.total.estimate.notes
        if result.total and result.margin_of is None
        else ()  # margins repeat them
        for result in results
    ]
    counts = Counter(note for each in notes for note in dict.fromkeys(each))
    for result, own_notes in zip(results, notes, strict=True):
        console.print(f"\n{result.title} {result.option or ''}".rstrip(), style="bold")
        withheld = [name for name in result.parts if name not in result.estimates]
        if withheld:
            least = result.campaign.smallest_count
            console.print(f"withheld, fewer than {least:,} reports: {', '.join(withheld)}")
        for cohort, figures in result.shown():
            description, estimate = figures.description(level), figures.estimate
            title = f"{cohort}: " if cohort else ""
            outputs.print_estimate(console, description, estimate.reports, title)
        for note in own_notes:
            if counts[note] == 1:
                console.print(note)
    for note in counts:
        if counts[note] > 1:
            console.print(note)
