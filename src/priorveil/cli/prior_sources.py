"""Where the prior of a command comes from: a file of numbers, people's own values, or a range of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

import priorveil as pv
from priorveil.cli import inputs, options, screen
from priorveil.csv_reader import is_number
from priorveil.errors import plural
from priorveil.priors.domain import LabelDomain
from priorveil.priors.label_texts import first_labels, label_parts
from priorveil.priors.number_domains import Outside
from priorveil.priors.number_files import label_order, labels_from_text
from priorveil.priors.people_columns import people_labels

_POINTS, _EDGES = 11, 21  # of a grid and of cells, if --numbers does not say how many
_RULES = ("merge_rare", "allow_rare", "prior_epsilon")  # what a prior from data may publish


@dataclass(frozen=True)
class PriorSource:
    """Where a prior comes from: a file of probabilities, people's own values, or a range of numbers."""

    path: Path | None
    form: options.PriorFormat
    columns: tuple[str, ...] = ()
    secret_column: str | None = None
    values: str | None = None
    merge_rare: str | None = None
    allow_rare: bool = False
    prior_epsilon: float | None = None
    numbers: options.NumberRange | None = None
    outside: Outside = "refuse"
    equally_common: bool = False
    grids: Mapping[str, list[float]] = field(default_factory=dict)  # points of attributes that are numbers

    def read(
        self, query: options.QueryChoice, budget: pv.Budget, notion: str
    ) -> tuple[pv.Prior, pv.Secret | None, str | None]:
        """Return the prior, the secret of --secret-column, and what the plan assumes or publishes about people."""
        data_options = ("secret_column", "values", *_RULES)
        used_options = {name for name in data_options if getattr(self, name) not in (None, False)}
        if self.numbers is not None:
            if self.grids:
                raise click.UsageError(
                    "--numbers is for a single number, --grid for one of several attributes"
                )
            if used_options - {"values"}:
                raise click.UsageError("--numbers takes a public sample: leave out all of these but --values")
            prior = self.read_numbers(self.numbers, query, budget, notion)
            return prior, None, screen.NOTICES["no prior"] if prior.assumed and notion != "ldp" else None
        if self.equally_common:
            raise click.UsageError("--equally-common is for --numbers without PRIOR: leave it out")
        if (self.outside != "refuse" and not self.grids) or query.named_query.needs_numbers:
            raise click.UsageError(screen.NOTICES["about numbers"])
        if self.path is None:
            raise click.UsageError(options.NO_PRIOR.format("design"))
        if self.columns:
            if self.form.counts or self.form.normalise:
                raise click.UsageError("--column counts people itself: leave --counts and --normalise out")
            count = self._count_tuples if self.grids else self._count_people
            prior, secret = count(self.path)
            return prior, secret, self._publication(prior, secret)
        if used_options:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in data_options)
            raise click.UsageError(f"{names} are for priors from data: name the --column")
        prior = self.form.read(self.path)
        return self._with_grids(self.path, prior) if self.grids else prior, None, None

    def _with_grids(self, path: Path, prior: pv.Prior) -> pv.Prior:
        """Return the prior of a file, where some attributes are numbers."""
        names, probabilities = self._attributes(prior.names or ()), prior.probabilities.tolist()
        cells = {label_parts(label): p for label, p in zip(prior.labels, probabilities, strict=True)}
        kept: dict[str, Any] = {"impossible": self.form.impossible, "outside": self.outside}
        with inputs.naming_file(path):
            return pv.Prior.joint(cells, names, grids=self.grids, **kept)

    def _attributes(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of attributes, if each --grid is one of several."""
        for name in self.grids:
            if len(names) < 2 or name not in names:
                advice = "give several --column, or a PRIOR of several attributes, and name one of them"
                raise click.UsageError(f"--grid {name}: there is no such attribute; {advice}")
        return names

    def _count_tuples(self, path: Path) -> tuple[pv.Prior, None]:
        """Return the prior of several columns with a row for each person, some of which are numbers."""
        names, public = self._attributes(self.columns), self.values == "public"
        refused_values = (
            self.merge_rare,
            self.prior_epsilon,
            self.secret_column,
            None if public else self.values,
        )
        if any(value is not None for value in refused_values):
            options_text = "--merge-rare, --prior-epsilon, --secret-column and --values (except public)"
            raise click.UsageError(f"{options_text} are not for --grid: leave them out")
        rows = inputs.read_people(path, *names)
        table: dict[str, Any] = {}
        for place, name in enumerate(names):
            cells = [(row, entries[place]) for row, entries in rows]
            if name in self.grids:
                low, high = self._accepted_range(self.grids[name][0], self.grids[name][-1])
                advice = "correct it, change --grid, or add --outside ends"
                table[name] = inputs.numbers_in_range(cells, low, high, path, name, advice)
            else:
                table[name] = labels_from_text([word for _, word in cells])
        rules: dict[str, Any] = {"public": public, "allow_rare": self.allow_rare, "outside": self.outside}
        rules |= {"smoothing": self.form.smoothing, "impossible": self.form.impossible}
        with inputs.naming_file(path):
            return pv.Prior.from_table(table, names, grids=self.grids, **rules), None

    def read_numbers(
        self, numbers: options.NumberRange, query: options.QueryChoice, budget: pv.Budget, notion: str
    ) -> pv.Prior:
        """Return the prior of a grid for means and sums, of cells for other queries."""
        import numpy as np

        from priorveil import designs

        if self.equally_common and self.path is not None:
            raise click.UsageError("--equally-common is for --numbers without PRIOR: leave one of them out")
        low, high, points = numbers
        make, usual = (
            (pv.Prior.grid, _POINTS) if query.named_query.rounds_numbers else (pv.Prior.cells, _EDGES)
        )
        if self.path is not None and not self.columns:
            listed_prior = self.form.read(self.path)
            bounds = np.linspace(low, high, points or len(listed_prior) + (make == pv.Prior.cells))
            labels = make(bounds).labels
            order = label_order(self.path, listed_prior.labels, labels)
            return make(bounds, listed_prior.probabilities[order], outside=self.outside)
        data: dict[str, Any] = {"sample": self._read_sample(low, high), "outside": self.outside}
        density = (lambda number: 1.0) if self.equally_common else None
        bounds = np.linspace(low, high, points or usual)
        if query.named_query.chooses_points and points is None:
            plan = designs.design_mean(
                low, high, budget, density, notion=options.DESIGN_NOTIONS[notion], **data
            )
            bounds = np.array(plan.labels)
        return make(bounds, density, smoothing=self.form.smoothing, **data)

    def _read_sample(self, low: float, high: float) -> list[float] | None:
        """Return the numbers in a column of a public sample; None without a column."""
        if not self.columns:
            return None
        if self.form.impossible != "refuse":
            advice = "add --smoothing 1, or choose another range"
            raise click.UsageError(f"--leave-out is not for numbers: {advice}")
        if self.path is None or len(self.columns) > 1 or self.values != "public":
            reason = "--numbers with --column needs one column of a public sample, because a plan publishes its shares"
            raise click.UsageError(f"{reason}: add --values public if these numbers are public already")
        advice = "correct it, change --numbers, or add --outside ends"
        return inputs.read_numbers(self.path, self.columns[0], *self._accepted_range(low, high), advice)

    def _accepted_range(self, low: float, high: float) -> tuple[float, float]:
        """Return the range of the numbers that are not refused."""
        return (-math.inf, math.inf) if self.outside == "ends" else (low, high)

    def _count_people(self, path: Path) -> tuple[pv.Prior, pv.Secret | None]:
        """Return the prior of columns with a row for each person, and the secret of another column, if any."""
        columns, public = self.columns, self.values == "public"
        if self.secret_column is not None and self.prior_epsilon is not None:
            raise click.UsageError("--prior-epsilon adds no noise to --secret-column: give a public --secret")
        if len(columns) > 1 and (self.values not in (None, "public") or self.merge_rare is not None):
            raise click.UsageError("--merge-rare and --values (except public) are for a single --column")
        secret_columns = () if self.secret_column is None else (self.secret_column,)
        rows = inputs.read_people(path, *columns, *secret_columns)
        texts = zip(*(cells for _, cells in rows), strict=True)
        parts = [people_labels("values", labels_from_text(column)) for column in texts]
        people = parts[0] if len(columns) == 1 else list(zip(*parts[: len(columns)], strict=True))
        domain = None
        if self.values is not None and not public:
            file = Path(self.values)
            text = file.read_text(encoding="utf-8-sig") if file.is_file() else self.values.replace(",", "\n")
            domain = labels_from_text([word.strip() for word in text.splitlines()])
            people = inputs.match_labels(rows, LabelDomain(domain), path, "--values")
        rules: dict[str, Any] = {name: getattr(self, name) for name in _RULES}
        rules |= {"names": columns if len(columns) > 1 else None, "impossible": self.form.impossible}
        advice = screen.NOTICES["many attributes"] if len(columns) > 2 else ""
        advice = advice.format([columns[:2], columns[1:3]])
        numbers = [
            name for place, name in enumerate(columns) if all(is_number(cells[place]) for _, cells in rows)
        ]
        if numbers and len(columns) == 1:
            advice = "If these are numbers, give their public range: --numbers LOW:HIGH"
        elif numbers and len(columns) == 2:
            advice = (
                f"If {numbers[0]} is a number, give its public range: --grid {numbers[0]}=LOW:HIGH:POINTS"
            )
        with inputs.naming_file(path, advice):
            prior = pv.Prior.from_values(people, domain, self.form.smoothing, public=public, **rules)
            if self.secret_column is None:
                return prior, None
            reported = [self.merge_rare if label not in prior.labels else label for label in people]
            allowed = {"public": public, "allow_rare": self.allow_rare}
            secret = pv.Secret.from_columns(parts[-1], reported, prior.labels, **allowed)
            return secret.nearest(prior), secret  # the rows are rounded, so the prior has to move a little

    def _publication(self, prior: pv.Prior, secret: pv.Secret | None) -> str:
        """Return what a plan with this prior will publish about the people."""
        shares = first_labels(prior.labels, prior.probabilities.tolist())
        values = f"{plural(len(prior), 'value')} of {', '.join(self.columns)!r}"
        text = f"The plan will publish {values} and their shares: {shares}."
        if secret is not None:
            text += f" It will also publish the shares for each of {plural(len(secret), 'secret')}."
        if self.merge_rare is not None and self.merge_rare in map(str, prior.labels):
            text += f" People with any other value report {self.merge_rare!r}: replace it in their data too."
        if self.prior_epsilon is None:
            alternative = "" if self.grids else " --prior-epsilon gives one."
            return f"{text} Shares are rounded; this is no privacy guarantee.{alternative}"
        return (
            f"{text} They are differentially private at level {self.prior_epsilon:g}, for one person added or removed, "
            "if the values were public before. Every run of this command spends that level again."
        )
