"""Margins of a table: the counts of the levels of some attributes."""

from __future__ import annotations

from dataclasses import replace

from priorveil.errors import NotIdentifiable
from priorveil.priors.label_texts import named_levels
from priorveil.reading.estimate_data import E, with_moments
from priorveil.reading.weighted_sums import labels_of, sums_of_values


def margin(estimate: E, names: tuple[str, ...]) -> E:
    """The counts of the levels of an attribute, or of the combinations of several; see `Estimate.margin`."""
    domain = estimate.own_readings[0].prior.domain
    cells, rows = domain.margin(names)
    try:
        sums = sums_of_values(estimate, rows)
    except NotIdentifiable as error:
        margins = dict.fromkeys(
            " x ".join(named_levels(str(name), domain.names or ())) for name in estimate.labels
        )
        about = f"; those that can be read are {', '.join(margins)}" if all(margins) else ""
        message = f"the plan was not designed to estimate the margin {' x '.join(names)}{about}"
        raise NotIdentifiable(message, *error.hints) from None
    labels = labels_of(cells)
    readings = tuple(
        replace(
            r,
            rows=r.align(rows, domain.labels),
            labels=labels,
            determined=r.determined and estimate.histogram,
            is_sum=False,
            sums_numbers=False,
        )
        for r in estimate.own_readings
    )
    parts = [r.unbiased_difference(r.moments(r.rows)) for r in readings if r.leans_on_prior]
    relabelled = replace(
        estimate,
        labels=labels,
        margin_attributes=names,
        number_by_group=None,
        readings=readings,
        unbiased_difference=largest_known(parts),
    )
    return replace(with_moments(relabelled, sums), histogram=True)


def largest_known(numbers: list[float | None]) -> float | None:
    """The largest of the numbers; None where one is unknown, or there are none."""
    present = [number for number in numbers if number is not None]
    return max(present) if present and len(present) == len(numbers) else None
