"""What commands read: tables of people, channels, secrets and plans; and checks of the files before the work."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click

import priorveil as pv
from priorveil.cli.screen import error_text
from priorveil.errors import PriorveilError, plural
from priorveil.formatting import read_number
from priorveil.plans.structure import edition

if TYPE_CHECKING:
    from priorveil.priors import Domain, Label
    from priorveil.questions.campaign import Campaign

PeopleRows = list[tuple[int, tuple[str, ...]]]  # the number and the cells of each row


@contextmanager
def naming_file(path: Path, advice: str = "") -> Iterator[None]:
    """Put the file's name before what is wrong with it, and advice after it."""
    try:
        yield
    except (PriorveilError, ValueError, TypeError) as error:
        raise click.ClickException(f"{path}: {error_text(error)}{advice and f'. {advice}'}") from error


def read_people(path: Path, *columns: str) -> PeopleRows:
    """Read columns of a table as text: the number and the cells of each row.

    Rows with a missing value are left out; their number is printed.
    """
    from priorveil.files.data_table import text_columns

    rows = list(enumerate(zip(*text_columns(path, *columns), strict=True), 1))
    if not rows:
        raise click.ClickException(f"{path}: it has no rows")
    complete = [(row, cells) for row, cells in rows if "" not in cells]
    if len(complete) < len(rows):
        without = plural(len(rows) - len(complete), "row")
        click.echo(f"left out because a value is missing: {without}", err=True)
    return complete


def read_numbers(path: Path, column: str, low: float, high: float, advice: str) -> list[float]:
    """Read a column of numbers; the first row that has no number from `low` to `high` is an error with the advice."""
    rows = [(row, word) for row, (word,) in read_people(path, column)]
    return numbers_in_range(rows, low, high, path, column, advice)


def numbers_in_range(
    rows: Iterable[tuple[int, str]], low: float, high: float, path: Path, column: str, advice: str
) -> list[float]:
    """Return the numbers in the cells of numbered rows; the first one outside of the range is an error."""
    numbers = []
    for row, word in rows:
        number = read_number(word)
        if number is None or not low <= number <= high:
            raise click.ClickException(f"{path}: row {row}: {column} is not a number in the range: {advice}")
        numbers.append(number)
    return numbers


def match_labels(rows: PeopleRows, domain: Domain, path: Path, owner: str) -> list[Label]:
    """Return the labels of `owner` that are in the first cells of numbered rows: a cell for each attribute.

    They are found as in any table of values. Any other value is refused by its row; it is private and not shown.
    """
    from priorveil.mechanisms.randomness import SystemSource

    columns = [[cells[place] for _, cells in rows] for place in range(len(domain.names or [None]))]
    codes = domain.encode(columns, SystemSource().words).tolist()
    for (row, _), code in zip(rows, codes, strict=True):
        if code < 0:
            raise click.ClickException(f"{path}: row {row}: {owner} has no such value: correct one of them")
    return [domain.labels[code] for code in codes]


def read_channel(path: Path, normalise: bool) -> pv.Channel:
    """Read a channel; for a plan, the channel that its levels are measured on."""
    if _stated_format(path) is not None:  # matrices have none
        return read_plan(path).leakage_channel
    return pv.Channel.from_file(path, normalise=normalise)


def read_secret(
    path: Path | None, prior: pv.Prior, normalise: bool, mix: bool
) -> tuple[pv.Secret | None, pv.Prior]:
    """Read a secret, None without a path; and the prior that fits it.

    The prior has to be a mixture of the secret's rows; with `mix` it becomes the nearest one.
    """
    if path is None:
        if mix:
            raise click.UsageError("--mix is for the rows of a secret: give --secret")
        return None, prior
    secret = pv.Secret.from_file(path, prior, normalise=normalise)
    with naming_file(path):
        if mix:
            mixture = secret.nearest(prior)
            distance = abs(mixture.probabilities - prior.probabilities).sum() / 2
            click.echo(f"the prior is now the nearest mixture of the rows, {distance:.3g} away", err=True)
            prior = mixture
        secret.require_fits(prior)
    return secret, prior


def read_plan(path: Path) -> pv.Plan:
    """Read a plan and prove it again."""
    with naming_file(path):
        return pv.Plan.load(path)


def read_forms(path: Path, cohort: str | None) -> pv.Plan | dict[str, pv.Plan] | Campaign:
    """Read a plan, the plans of cohorts in a folder, or a campaign."""
    return read_campaign(path) if is_campaign(path) else read_plans(path, cohort)


def read_plans(path: Path, cohort: str | None) -> pv.Plan | dict[str, pv.Plan]:
    """Read a plan; with `cohort`, the plans of a folder by the names of their files, where %2F is a slash."""
    if path.is_dir() and cohort is None:
        raise click.UsageError(f"{path} is a folder: name the column that chooses a plan, --cohort COLUMN")
    if cohort is None:
        return read_plan(path)
    plan_files = sorted(path.glob("*.json"))
    plans = {unquote(file.stem): read_plan(file) for file in plan_files}
    if len(plans) < len(plan_files):
        raise click.UsageError(f"two plans in {path} stand for the same value: remove one of them")
    if not plans:
        raise click.UsageError(f"with --cohort, PLAN is a folder of plans VALUE.json, not {path}")
    return plans


def require_plan_first(plan: Path, tables: tuple[str, ...], name: str) -> None:
    """Refuse a survey or a table in the place of a plan or campaign, and one of these in the place of a table.

    `name` is what the command calls its tables.
    """
    order = f"give a plan or a campaign first, and then {name}"
    for table in map(Path, tables):
        if (found := _stated_format(table)) is not None:
            raise click.UsageError(f"{table} is a {found.removeprefix('priorveil-')}, not a table: {order}")
    if plan.suffix.lower() in (".toml", ".xlsx"):
        advice = f"make the campaign first, priorveil campaign build {plan} -o campaign.json"
        raise click.UsageError(f"{plan} is a survey: {advice}")
    if plan.is_file() and plan.suffix.lower() != ".json" and _stated_format(plan) is None:
        raise click.UsageError(f"{plan} is neither a plan nor a campaign: {order}")


def _stated_format(path: Path) -> str | None:
    """Return the format that the JSON document in a file states; None for other files."""
    if not path.is_file():  # a pipe can be read only once
        return None
    with path.open("rb") as file:
        start = file.read(64)
        text = start + file.read() if start.lstrip().startswith(b"{") else b""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return str(document["format"]) if "format" in document else None


def is_plan(path: Path) -> bool:
    """Return whether a file is a plan, and not a prior in JSON or CSV."""
    from priorveil.plans.structure import PlanDocument

    format: str = edition(PlanDocument)["format"]
    return _stated_format(path) == format


def is_campaign(path: Path) -> bool:
    """Return whether a file is a campaign: anything else is read as a plan."""
    from priorveil.questions.structure import CampaignDocument

    format: str = edition(CampaignDocument)["format"]
    return _stated_format(path) == format


def read_campaign(path: Path) -> Campaign:
    """Read a campaign and prove its plans again."""
    from priorveil.questions.campaign import Campaign

    with naming_file(path):
        return Campaign.from_json(path.read_bytes())


def require_new(force: bool, *paths: Path | None) -> None:
    """Refuse to replace files that exist, unless `force`."""
    for path in paths:
        if path is not None and path.is_file() and not force:
            raise click.UsageError(f"{path} exists: choose another name, or --force")


def require_distinct(
    read: Mapping[str, Path | tuple[str, ...] | None], written: Mapping[str, Path | None]
) -> None:
    """Refuse to write over a file that is read, or twice into one file."""
    from priorveil.files.data_table import named_paths, table_files

    paths = [(name, path) for name, data in read.items() for path in named_paths(data)]
    names = {os.path.realpath(file): name for name, path in paths for file, _ in table_files(path)}
    for name, path in written.items():
        if path is None or str(path) == "-":
            continue
        other = names.setdefault(os.path.realpath(path), name)
        if other != name:
            raise click.UsageError(f"{name} and {other} are one file, {path}: choose another name for {name}")
