"""What the curator counts and times, for Prometheus.

No metric has a label for a campaign, cohort, plan or question, so metrics reveal nothing about a group of people.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.exposition import generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # they tell when a thing happened for the first time


class Metrics:
    """The metrics of one curator, in a registry of their own, with those of its process."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.responses = Counter(
            "priorveil_responses",
            "Responses by template of the route and status.",
            ["route", "status"],
            registry=registry,
        )
        self.response_seconds = Histogram(
            "priorveil_response_seconds",
            "Time until a response begins, by template of the route.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.stored = Counter("priorveil_reports_stored", "Reports stored and counted.", registry=registry)
        self.duplicate = Counter(
            "priorveil_reports_duplicate", "Reports that were already stored.", registry=registry
        )
        self.refused = Counter(
            "priorveil_reports_refused", "Reports refused, by reason.", ["reason"], registry=registry
        )
        self.transaction_seconds = Histogram(
            "priorveil_transaction_seconds",
            "Time of a transaction that stored reports.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.transaction_failures = Counter(
            "priorveil_transaction_failures", "Transactions of reports that failed.", registry=registry
        )
        self.queue_bytes = Gauge(
            "priorveil_queue_bytes", "Bytes of reports that wait to be stored.", registry=registry
        )
        self.queue_limit = Gauge(
            "priorveil_queue_limit_bytes", "Bytes of reports that may wait to be stored.", registry=registry
        )
        self.ready = Gauge(
            "priorveil_store_ready",
            "Whether a report could be stored when /readyz last tried.",
            registry=registry,
        )
        self._counted: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self.ready.set(1)  # the store is opened before anything is served

    def count_response(self, route: str, status: int, seconds: float) -> None:
        """Count a response that began after some seconds."""
        count, latency = self._counted.get((route, status)) or self._add_response(route, status)
        count.inc()
        latency.observe(seconds)

    def _add_response(self, route: str, status: int) -> tuple[Counter, Histogram]:
        """The metrics of a route and a status, kept because looking them up takes longer than counting."""
        pair = self.responses.labels(route, str(status)), self.response_seconds.labels(route)
        return self._counted.setdefault((route, status), pair)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    @contextmanager
    def serving(self, host: str, port: int) -> Iterator[None]:
        """Show the metrics on a port of their own, in a thread: also while the event loop is busy."""
        server, thread = start_http_server(port, host, self.registry)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
