"""What `priorveil estimate` found, for people and for machines: tables, CSV, JSON and tallies."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.commands import screens
from priorveil.errors import TooLarge, counted

if TYPE_CHECKING:
    from priorveil.estimates import Estimate
    from priorveil.frames import Refused, TableEstimate

_DOUBTFUL = 0.01  # a check of the prior below this is worth a word
_WRONG = 0.001  # and below this, other advice


def refused_record(refused: Refused) -> dict[str, object]:
    """What was refused, for a machine; the first row of data is row 1."""
    rows = [{"row": row + 1, "reason": reason} for row, reason in refused.rows]
    return {"refused": refused.counts, "refused_rows": rows}


def _by_group(found: TableEstimate) -> Iterator[tuple[Any, Estimate]]:
    """The groups, or everybody where there are none."""
    yield from found.groups.items() if found.groups else [(None, found.everybody)]


def _rows(estimate: Estimate, level: float) -> Iterator[dict[str, object]]:
    low, high = estimate.interval(level)
    for label, value, error, a, b in zip(
        estimate.labels, estimate.values, estimate.std_error, low, high, strict=True
    ):
        numbers = {"estimate": value, "std_error": error, "low": a, "high": b}
        yield {"value": label, **{name: _finite(number) for name, number in numbers.items()}}


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _record(estimate: Estimate, level: float) -> dict[str, object]:
    return {
        "reports": estimate.reports,
        "method": estimate.method,
        "assumes": estimate.assumes,
        "level": level,
        "prior_check": estimate.prior_check,
        "values": list(_rows(estimate, level)),
    }


def print_json(found: TableEstimate, by: str | None, level: float) -> None:
    """An object: everybody, the groups, and what was refused."""
    record = _record(found.everybody, level)
    if by is not None:
        record["by"] = by
        record["groups"] = [{"group": group, **_record(e, level)} for group, e in found.groups.items()]
    click.echo(
        json.dumps({**record, **refused_record(found.refused)}, indent=2, allow_nan=False, default=str)
    )


def print_csv(found: TableEstimate, by: str | None, level: float) -> None:
    """A line for each value, of each group if there are any."""
    text = io.StringIO()
    names = ["value", "estimate", "std_error", "low", "high"]
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(names if by is None else [by, *names])
    for group, estimate in _by_group(found) if by is None else found.groups.items():
        for row in _rows(estimate, level):
            lines.writerow([*([] if by is None else [group]), *(row[name] for name in names)])
    click.echo(text.getvalue(), nl=False)


def print_tables(found: TableEstimate, by: str | None, level: float) -> None:
    """A table for each group and for everybody, and what the estimate rests on."""
    console = screens.console()
    for group, estimate in found.groups.items():
        console.print(_table(estimate, level, f"{by} = {_title(group)}"))
    console.print(_table(found.everybody, level, "everybody" if found.groups else None))
    console.print(f"{found.everybody.method}: assumes {found.everybody.assumes}", soft_wrap=True)
    check = found.everybody.prior_check
    if check is not None:
        verdict = "the prior or the reports are doubtful" if check < _DOUBTFUL else "the prior fits"
        advice = "; try --method unbiased" if check < _WRONG and _leans_needlessly(found) else ""
        console.print(f"check of the prior: p = {check:.3g}, {verdict}{advice}", soft_wrap=True)


def _leans_needlessly(found: TableEstimate) -> bool:
    """Whether the prior was leant on though reports alone would do."""
    try:
        return found.everybody.method == "mmse" and all(p.identifiable for p in found.tallies.plans.values())
    except TooLarge:
        return False


def _title(group: Any) -> str:
    return "(missing)" if group is None else str(group)


def _table(estimate: Estimate, level: float, title: str | None) -> Any:
    from rich.table import Table
    from rich.text import Text

    reports = counted(estimate.reports, "report")
    heading = reports if title is None else f"{title}: {reports}"
    table = Table("value", box=None, pad_edge=False, title=Text(heading), title_justify="left")
    for name in ("estimate", f"{100 * level:.4g} % low", "high"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in _rows(estimate, level):
        numbers = (row["estimate"], row["low"], row["high"])
        table.add_row(Text(str(row["value"])), *(_shown(number) for number in numbers))
    return table


def _shown(number: object) -> str:
    return f"{number:,.1f}" if isinstance(number, float) else "-"


def save_tallies(found: TableEstimate, path: Path) -> None:
    """The tallies, a JSON object on each line with its cohort and group."""
    from priorveil.frames.sinks import whole_file

    with whole_file(path, replace=True) as file:
        for (cohort, group), tally in found.tallies.by.items():
            line = {"cohort": cohort, "group": group, "tally": json.loads(tally.to_json())}
            file.write(json.dumps(line, default=str).encode() + b"\n")
