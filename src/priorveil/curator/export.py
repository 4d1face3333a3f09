"""Reports as a Parquet file, made while it is sent: memory stays flat."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any

import numpy as np

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import ID_BYTES
from priorveil.curator.store import StoredReport
from priorveil.errors import MissingExtra

PARQUET = "application/vnd.apache.parquet"
_ROWS = 100_000  # in a row group


def parquet_pieces(campaign: Campaign, pages: AsyncIterator[list[StoredReport]]) -> AsyncIterator[bytes]:
    """The pieces of a Parquet file: id, cohort, plan, and the report as a number (a row of bits: as bytes).

    Raises `MissingExtra` at once, not while it is sent.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from priorveil.tables.write import plan_field
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    numbers = all(plan.mechanism.width == 0 for plan in campaign.plans.values())
    kind = pa.int64() if numbers else pa.binary()
    columns = {"id": pa.binary(ID_BYTES), "cohort": pa.string(), "report": kind}
    schema = pa.schema(columns).insert(2, plan_field())

    async def pieces() -> AsyncIterator[bytes]:
        sink = _Sink()
        with pq.ParquetWriter(sink, schema) as writer:
            waiting: list[StoredReport] = []
            async for page in pages:
                waiting += page
                if len(waiting) >= _ROWS:
                    writer.write_table(_table(pa, schema, campaign, waiting, numbers))
                    waiting = []
                    yield sink.take_written()
            writer.write_table(_table(pa, schema, campaign, waiting, numbers))
        yield sink.take_written()

    return pieces()


def _table(pa: Any, schema: Any, campaign: Campaign, rows: list[StoredReport], numbers: bool) -> Any:
    """Some reports as a table."""
    ids = [row.id for row in rows]
    cohorts = [campaign.cohort_of[row.plan] for row in rows]
    plans = [row.plan for row in rows]
    words = [row.words for row in rows]
    reports = np.frombuffer(b"".join(words), "<i8") if numbers else words
    return pa.table({"id": ids, "cohort": cohorts, "plan": plans, "report": reports}, schema=schema)


class _Sink(io.RawIOBase):
    """A file that remembers only what was written since it was last asked."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def take_written(self) -> bytes:
        """Everything since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
