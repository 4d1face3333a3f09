"""`priorveil audit` of a sampler that can only be watched: levels from samples, with confidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import cells
from priorveil.cli import files as inputs
from priorveil.cli import screen as screens
from priorveil.errors import plural

if TYPE_CHECKING:
    from priorveil.priors import Budget, Prior
    from priorveil.studies.audit import LevelRange, SampledLeakage

_MEANINGS = {
    "LIP, downwards": "a report makes a value less likely by at most e^level",
    "LIP, upwards": "a report makes a value more likely by at most e^level",
    "LIP": "the larger of both",
    "LDP": "between any two values, whatever the prior",
}


def show(
    path: Path, prior: Prior, samples: int | None, confidence: float, budget: Budget | None, as_json: bool
) -> int:
    """Measure, print, and return 1 where the samples refute the budget."""
    found = _seen(path, prior, confidence) if samples is None else _run(path, prior, samples, confidence)
    refuted = budget is not None and found.refutes(budget)
    if as_json:
        screens.print_json(_record(found, budget, refuted))
    else:
        _print(found, budget, refuted)
    return 1 if refuted else 0


def _seen(path: Path, prior: Prior, confidence: float) -> SampledLeakage:
    """From a table with the columns `value` and `report`, a line for each report that was seen."""
    import numpy as np

    from priorveil.studies.audit import sampled_leakage

    values, reports = cells.columns(path, "value", "report")
    names = [str(label) for label in prior.labels]
    strange = next((v for v in values if v not in set(names)), None)
    if strange is not None:
        raise click.ClickException(f"{path.name}: the prior has no value {strange!r}")
    codes = np.array([names.index(v) for v in values])
    kinds, places = np.unique(np.array(reports), return_inverse=True)
    counts = np.zeros((len(names), len(kinds)), dtype=np.int64)
    np.add.at(counts, (codes, places), 1)
    with cells.reading(path):
        return sampled_leakage(counts, prior, confidence)


def _run(path: Path, prior: Prior, samples: int, confidence: float) -> SampledLeakage:
    """From the sampler of a plan."""
    from priorveil.priors import Prior
    from priorveil.studies.audit import audit_plan

    plan = inputs.plan(path)
    order = inputs.places(prior.labels, plan.labels, "the plan")
    known = Prior.from_counts([prior.weights[i] for i in order], plan.labels)
    with screens.waiting(f"drawing {samples * len(known):,} reports"):
        return audit_plan(plan, samples, confidence, known)


def _rows(found: SampledLeakage) -> dict[str, LevelRange]:
    sides = {"LIP, downwards": found.lip_lower, "LIP, upwards": found.lip_upper}
    return {**sides, "LIP": found.lip, "LDP": found.ldp}


def _print(found: SampledLeakage, budget: Budget | None, refuted: bool) -> None:
    screen = screens.console()
    rows = [
        (
            name,
            f"{level.low:.4f}",
            "?" if not found.whole else screens.shown_level(level.high),
            _MEANINGS[name],
        )
        for name, level in _rows(found).items()
    ]
    screens.print_table(screen, ("notion", "at least", "at most", "meaning"), rows, "lrr")
    screen.print(
        f"{plural(found.samples, 'report')}; all of this at once with confidence {found.confidence:g}."
    )
    if not found.whole:
        screen.print("Kinds of reports were put together, so nothing is said from above.")
    if budget is not None and refuted:
        screen.print(
            f"LIP does not hold at {screens.stated(budget)}: chance does not explain it.", style="red"
        )
    elif budget is not None:
        screen.print(
            f"Nothing here speaks against LIP at {screens.stated(budget)}; only a certificate proves it.",
            style="green",
        )


def _record(found: SampledLeakage, budget: Budget | None, refuted: bool) -> dict[str, object]:
    names = {"LIP, downwards": "lip_lower", "LIP, upwards": "lip_upper", "LIP": "lip", "LDP": "ldp"}
    record: dict[str, object] = {
        "levels": {
            names[name]: {"low": screens.plain(level.low), "high": screens.plain(level.high)}
            for name, level in _rows(found).items()
        },
        "confidence": found.confidence,
        "samples": found.samples,
        "whole": found.whole,
    }
    if budget is not None:
        sides = {"lower": screens.plain(budget.lower), "upper": screens.plain(budget.upper)}
        record["verdict"] = {**sides, "refuted": refuted}
    return record
