"""Exports: all reports of a campaign as a Parquet file, which is made while it is sent. Memory stays flat."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import ID_BYTES
from priorveil.curator.store import StoredReport
from priorveil.tables.columns import pyarrow
from priorveil.tables.write import plan_field

PARQUET = "application/vnd.apache.parquet"
_ROWS = 100_000  # in a row group


def parquet_pieces(campaign: Campaign, pages: AsyncIterator[list[StoredReport]]) -> AsyncIterator[bytes]:
    """The pieces of a Parquet file: id, cohort, plan, and the report as a number (a row of bits: as bytes).

    Raises `MissingExtra` at once, not while it is sent.
    """
    pa = pyarrow()
    numbers = all(plan.mechanism.width == 0 for plan in campaign.plans.values())
    kind = pa.int64() if numbers else pa.binary()
    schema = pa.schema({"id": pa.binary(ID_BYTES), "cohort": pa.string(), "report": kind}).insert(
        2, plan_field()
    )

    def table(rows: list[StoredReport]) -> Any:
        words = [row.words for row in rows]
        columns = {
            "id": [row.id for row in rows],
            "cohort": [campaign.cohort_of[row.plan] for row in rows],
            "plan": [row.plan for row in rows],
            "report": np.frombuffer(b"".join(words), "<i8") if numbers else words,
        }
        return pa.table(columns, schema=schema)

    async def pieces() -> AsyncIterator[bytes]:
        sink, waiting = _Sink(), list[StoredReport]()
        with pa.parquet.ParquetWriter(sink, schema) as writer:
            async for page in pages:
                waiting += page
                if len(waiting) >= _ROWS:
                    writer.write_table(table(waiting))
                    waiting = []
                    yield sink.take_written()
            writer.write_table(table(waiting))
        yield sink.take_written()

    return pieces()


class _Sink(io.BytesIO):
    """A buffer that is emptied when its content is sent; its position counts everything that was written."""

    _sent = 0

    def tell(self) -> int:
        return self._sent + super().tell()

    def take_written(self) -> bytes:
        """Everything since the last call."""
        written = self.getvalue()
        self._sent += len(written)
        self.seek(0)
        self.truncate()
        return written


class Export(StreamingResponse):
    """A long response that ends when its reader disconnects.

    Starlette's StreamingResponse also waits for its disconnect listener, which a stalled reader can block.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all pieces."""
        gone = asyncio.create_task(self.listen_for_disconnect(receive))

        async def send_unless_gone(message: Message) -> None:
            if gone.done():
                raise ClientDisconnect
            await send(message)

        try:
            await self.stream_response(send_unless_gone)
        finally:
            gone.cancel()
