"""The results of a campaign from a table of submissions: the part of `priorveil estimate` for campaigns."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priorveil.cli import outputs, screen
from priorveil.errors import InvalidInput
from priorveil.priors.label_texts import first_labels, label_text
from priorveil.reading.wording import answer, describe, number_tables, table_cells, value_rows

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.collect.results import Result
    from priorveil.reading.estimate import Estimate, EstimateMethod
    from priorveil.tables.submissions import SubmissionTallies

_NUMBERS = ("estimate", "std_error", "low", "high", "share")
_TOTAL = ""  # the name of all cohorts together, in CSV


def is_campaign(path: Path) -> bool:
    """Return whether a file is a campaign: anything else is read as a plan."""
    from priorveil.collect.campaign import FORMAT

    try:
        document = json.loads(path.read_bytes()) if path.is_file() else None
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


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
    from priorveil.collect.campaign import Campaign
    from priorveil.collect.results import results
    from priorveil.tables.submissions import tally_submissions

    campaign = Campaign.from_json(path.read_bytes())
    tallies: SubmissionTallies = outputs.run_on_table(
        tally_submissions, reports, campaign.forms, words="counting", refused_file=refused_file, force=True
    )
    if not tallies.reports:
        raise InvalidInput("reports", first_labels(reports), "there is no submission to this campaign in it")
    found = list(results(campaign, tallies.by_form, method))
    if as_json:
        screen.print_json(_record(found, tallies, level))
    elif as_csv:
        _print_csv(found, level)
    else:
        _print_tables(screen.open_console(), found, level)
    return tallies


def _estimates(result: Result) -> Iterator[tuple[str, Estimate]]:
    """Yield the estimate of each cohort that is not withheld, if there are several, and that of all of them."""
    if len(result.campaign.cohorts) > 1:
        yield from result.estimates.items()
    if result.total is not None:
        yield _TOTAL, result.total


def _record(found: list[Result], tallies: SubmissionTallies, level: float) -> dict[str, Any]:
    """Return the results for a program to read; withheld ones have no estimate."""
    records = [
        {
            "attributes": list(result.attributes),
            "questions": result.questions,
            "title": result.title,
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
        for result in found
    ]
    counts = {"repeated": tallies.repeated, "without_id": tallies.without_id}
    return {
        "level": level,
        "reports": tallies.reports,
        "results": records,
        **outputs.refused_record(tallies.refused),
        **counts,
    }


def _print_csv(found: list[Result], level: float) -> None:
    """Print a line for each statistic: its attributes, its cohort (none for all together) and its numbers."""
    lines = csv.DictWriter(sys.stdout, ["attributes", "cohort", "value", *_NUMBERS], lineterminator="\n")
    lines.writeheader()
    for result in found:
        for cohort, estimate in _estimates(result):
            first = {"attributes": " x ".join(result.attributes), "cohort": cohort}
            for label, row in zip(answer(estimate).labels, value_rows(estimate, level), strict=True):
                share = row.value / estimate.people if estimate.counts_people else ""
                lines.writerow(first | _cells(label_text(label), (*row.numbers, share)))
            for table in number_tables(estimate, level):
                lines.writerows(first | _cells(table.name_of(row), (*row.numbers, "")) for row in table.rows)


def _cells(name: str, numbers: tuple[Any, ...]) -> dict[str, Any]:
    return {"value": name, **dict(zip(_NUMBERS, numbers, strict=True))}


def _print_tables(console: Console, found: list[Result], level: float) -> None:
    """Print a table for each result, of each cohort and of all together."""
    for result in found:
        console.print(f"\n{result.title}", style="bold")
        withheld = [name for name in result.parts if name not in result.estimates]
        if withheld:
            least = result.campaign.smallest_count
            console.print(f"withheld, fewer than {least:,} reports: {', '.join(withheld)}")
        for cohort, estimate in _estimates(result):
            description = describe(estimate, level)
            title = f"{cohort}: " if cohort else ""
            if description.warning is not None:
                console.print(f"{title}Warning: {description.warning}", style="bold red")
            console.print(f"{title}reports: {estimate.reports:,}", style="italic")
            for table in description.tables:
                heads, rows = table_cells(table, description)
                numbers = len(heads) - len(table.heads)
                screen.print_table(console, heads, rows, "l" * len(table.heads) + "r" * numbers)
    notes = dict.fromkeys(note for result in found if result.total for note in result.total.notes)
    for note in notes:
        console.print(note)
