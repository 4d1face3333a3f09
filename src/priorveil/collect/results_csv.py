"""The results of a campaign as CSV, for the command line and the service.

Every line is one statistic. `attributes` names what it is about, `cohort` whose reports it is from (empty: all), and
`statistic` what its number is: `people`, `mean`, `share within age` and so on. Each attribute that is reported has a
column with the answer that the line is about; it is empty if the line is about all answers. Then come the number of
`reports`, the `method`, the `estimate` with its standard error and interval, and numbers of people as a `share` of
everybody.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

from priorveil.collect.campaign import Campaign
from priorveil.collect.results import Figures, Result
from priorveil.priors.label_texts import label_text
from priorveil.reading.wording import NUMBERS, StatisticRow

_ABOUT = ("attributes", "cohort", "statistic")
_NUMBERS = ("estimate", "std_error", "low", "high")
_COLUMNS = (*_ABOUT, "reports", "method", *_NUMBERS, "share")
_Line = tuple[str, dict[str, str], StatisticRow, float | None]  # statistic, answers, numbers and share


def statistic_lines(results: Iterable[Result], level: float) -> Iterator[dict[str, Any]]:
    """A line for each statistic: its columns, with `answers` by attribute."""
    for result in results:
        for cohort, figures in result.shown():
            about = {"attributes": " x ".join(result.attributes), "cohort": cohort}
            source = {"reports": figures.estimate.reports, "method": figures.estimate.method}
            for statistic, answers, row, share in _lines(result, figures, level):
                numbers = dict(zip(_NUMBERS, row.numbers, strict=True))
                yield {
                    **about,
                    "statistic": statistic,
                    "answers": answers,
                    **source,
                    **numbers,
                    "share": share,
                }


def write_csv(campaign: Campaign, lines: Iterable[Mapping[str, Any]], file: TextIO) -> None:
    """Write the lines of `statistic_lines`, with a column for each attribute in place of `answers`."""
    attributes = [name for question in campaign.questions for name in question.attributes]
    reported = [name for name in attributes if name in campaign.domains]
    columns = {name: f"{name} (answer)" if name in _COLUMNS else name for name in reported}
    heads = [*_ABOUT, *columns.values(), *_COLUMNS[len(_ABOUT) :]]
    writer = csv.DictWriter(file, heads, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for line in lines:
        answers = {columns[name]: answer for name, answer in line["answers"].items()}
        writer.writerow({**line, **answers})


def _lines(result: Result, figures: Figures, level: float) -> Iterator[_Line]:
    """All statistics of a result: the answer to its query first."""
    estimate = figures.estimate
    for label, row in figures.rows(level):
        text, answers = label_text(label), result.levels(estimate, label)
        if estimate.averages is not None:
            yield estimate.averages.title, answers, row, None
        elif estimate.counts_people:
            single = {result.attributes[0]: text} if len(result.attributes) == 1 else {}
            yield "people", answers or single, row, row.value / estimate.people
        else:
            yield text, {}, row, None
    for table in figures.tables(level):
        for row in table.rows:
            if table.heads == NUMBERS:
                yield ", ".join(row.label), {}, row, None
            else:
                yield table.quantity, dict(zip(table.heads, row.label, strict=True)), row, None
