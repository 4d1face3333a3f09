"""Counters in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Mapping

from priorveil.curator.service import Service


def exposition(service: Service) -> str:
    """What happened since the process started, and what is waiting."""
    commits = service.writer.commits
    families: list[tuple[str, str, str, list[tuple[str, float]]]] = [
        ("reports_stored_total", "counter", "Reports stored.", [("", commits.stored)]),
        (
            "reports_duplicate_total",
            "counter",
            "Reports that were stored already.",
            [("", commits.duplicates)],
        ),
        ("reports_refused_total", "counter", "Reports refused.", _labelled("reason", service.refusals)),
        ("transactions_total", "counter", "Transactions written.", [("", commits.transactions)]),
        ("transaction_failures_total", "counter", "Transactions that failed.", [("", commits.failures)]),
        ("transaction_seconds_total", "counter", "Time spent in transactions.", [("", commits.seconds)]),
        ("queue_bytes", "gauge", "Bytes waiting to be stored.", [("", service.writer.waiting)]),
        ("responses_total", "counter", "Answers by status.", _labelled("status", service.statuses)),
    ]
    return "".join(_family(*family) for family in families)


def _labelled(label: str, counts: Mapping[str, int] | Mapping[int, int]) -> list[tuple[str, float]]:
    return [(f'{{{label}="{name}"}}', count) for name, count in sorted(counts.items(), key=str)]


def _family(name: str, kind: str, meaning: str, samples: list[tuple[str, float]]) -> str:
    """One metric with its samples.

    >>> print(_family("x", "gauge", "An x.", [("", 1)]), end="")
    # HELP priorveil_x An x.
    # TYPE priorveil_x gauge
    priorveil_x 1
    """
    head = f"# HELP priorveil_{name} {meaning}\n# TYPE priorveil_{name} {kind}\n"
    return head + "".join(f"priorveil_{name}{label} {value}\n" for label, value in samples)
