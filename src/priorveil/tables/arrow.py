"""The table library, in one place: everything in `frames` takes Arrow from here."""

from __future__ import annotations

from priorveil.errors import MissingExtra

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet
except ImportError as error:
    raise MissingExtra("pyarrow", "tables") from error

__all__ = ["csv", "pa", "parquet", "pc"]
