"""Reports as a Parquet file, made while it is sent: memory stays flat."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any

import numpy as np

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import ID_BYTES, WORD_BYTES, sends_numbers, words_per_report
from priorveil.curator.store import Chunk
from priorveil.errors import MissingExtra

PARQUET = "application/vnd.apache.parquet"
_ROWS = 100_000  # in a row group


def parquet(campaign: Campaign, chunks: AsyncIterator[Chunk]) -> AsyncIterator[bytes]:
    """The pieces of a Parquet file: id, cohort, and the report as a number (a row of bits: as bytes).

    Raises `MissingExtra` at once, not while it is sent.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from priorveil.tables.columns import PLAN_KEY
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    return _pieces(pa, pq, PLAN_KEY, campaign, chunks)


async def _pieces(
    pa: Any, pq: Any, plan_key: bytes, campaign: Campaign, chunks: AsyncIterator[Chunk]
) -> AsyncIterator[bytes]:
    sink = _Sink()
    numbers = all(sends_numbers(plan.mechanism) for plan in campaign.plans.values())
    kind = pa.int64() if numbers else pa.binary()
    made_by = " ".join(sorted(plan.id for plan in campaign.plans.values()))
    schema = pa.schema(
        [("id", pa.binary(ID_BYTES)), ("cohort", pa.string()), ("report", kind)],
        metadata={plan_key: made_by.encode()},  # so that no other plan estimates from it
    )
    with pq.ParquetWriter(sink, schema) as writer:
        waiting: list[Chunk] = []
        async for chunk in chunks:
            waiting.append(chunk)
            if sum(len(c.ids) for c in waiting) >= _ROWS * ID_BYTES:
                writer.write_table(_table(pa, schema, campaign, waiting, numbers))
                waiting = []
                yield sink.taken()
        writer.write_table(_table(pa, schema, campaign, waiting, numbers))
    yield sink.taken()


def _table(pa: Any, schema: Any, campaign: Campaign, chunks: list[Chunk], numbers: bool) -> Any:
    """The rows of some chunks."""
    ids, cohorts, reports = [], [], []
    for chunk in chunks:
        count = len(chunk.ids) // ID_BYTES
        size = WORD_BYTES * words_per_report(campaign.plans[chunk.plan].mechanism)
        ids.append(
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_BYTES), count, [None, pa.py_buffer(chunk.ids)])
        )
        cohorts.append(pa.repeat(campaign.cohort_of[chunk.plan], count))
        row = pa.array(
            np.frombuffer(chunk.words, dtype="<i8" if numbers else f"V{size}").tolist(), schema.field(2).type
        )
        reports.append(row)
    columns = [
        pa.chunked_array(parts, field.type)
        for parts, field in zip((ids, cohorts, reports), schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


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

    def taken(self) -> bytes:
        """Everything since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
