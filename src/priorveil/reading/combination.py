"""Estimates of several groups of people, combined into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.queries import LabelledRows, require_same_statistics
from priorveil.reading.estimate import Estimate
from priorveil.reading.estimate_data import with_moments
from priorveil.reading.moments import sum_moments
from priorveil.reading.table_margins import largest_known


def combine_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate over several groups of people: values and variances add up, label by label.

    All need the same statistics; the answer has them in the order of the first. Its method is "mixed" where theirs
    differ. It leans on the prior if one of them does, and counts as projected if one of them is.

    >>> import numpy as np
    >>> one = Estimate(np.array([1.0]), np.array([3.0]), "mmse", (), 1, ("a",))
    >>> combine_estimates([one, replace(one, std_error=np.array([4.0]))]).std_error.tolist()
    [5.0]
    """
    if not estimates:
        raise InvalidInput("estimates", estimates, "give at least one")
    first = estimates[0]
    if len(estimates) == 1:
        return first
    require_same_numbers(estimates)
    sums = sum_moments([e.moments_in_order(first.labels) for e in estimates])
    checks = [e.prior_check for e in estimates if e.prior_check is not None]
    changes = [e.noticeable_change for e in estimates if e.prior_check is not None]
    differences = [e.unbiased_difference for e in estimates if e.leans_on_prior]
    unweighted = all(e.total is None for e in estimates)
    projected = any(e.projected for e in estimates)
    mixed = "mixed, projected" if projected else "mixed"
    return replace(
        with_moments(first, sums),
        method=first.method if len({e.method for e in estimates}) == 1 else mixed,
        leans_on_prior=any(e.leans_on_prior for e in estimates),
        projected=projected,
        assumes=tuple(dict.fromkeys(chain.from_iterable(e.assumes for e in estimates))),
        reports=sum(e.reports for e in estimates),
        prior_check=min(1.0, len(checks) * min(checks)) if checks else None,  # Bonferroni
        noticeable_change=largest_known(changes),
        unseen_changes=next((e.unseen_changes for e in estimates if e.unseen_changes is not None), None),
        unbiased_difference=largest_known(differences),
        converged=all(e.converged for e in estimates),
        total=None if unweighted else sum(e.people for e in estimates),
        readings=sum((e.readings for e in estimates), ()) if all(e.readings for e in estimates) else (),
        remarks=tuple(dict.fromkeys(chain.from_iterable(e.remarks for e in estimates))),
    )


def require_same_numbers(estimates: Sequence[Estimate]) -> None:
    """Refuse estimates whose numbers are not those of the same statistics."""
    if any(estimate.histogram != estimates[0].histogram for estimate in estimates):
        raise InvalidInput("estimates", NOT_SHOWN, "some are histograms and some are not; use one query")
    by_argument = [(f"estimates[{index}]", e) for index, e in enumerate(estimates)]
    parts = [
        (name, LabelledRows(r.labels, r.prior.labels, r.rows)) for name, e in by_argument for r in e.readings
    ]
    parts += [(name, LabelledRows(e.labels)) for name, e in by_argument if not e.readings]
    require_same_statistics("estimates", parts)
