"""Tables of any size: columns of values in, a column of reports out; a column of reports in, estimates out.

Tables are read and written in batches, so memory grows with the domain and the groups, not with the rows. CSV files
need no further library; Parquet, Arrow and data frames need the extra `tables`.
"""

from __future__ import annotations

from priorveil.tables.counting import tally_table
from priorveil.tables.estimate import TableEstimates, estimate_table
from priorveil.tables.privatize import Privatized, privatize_table
from priorveil.tables.refusals import NothingWritten, RefusedRows
from priorveil.tables.repeats import ConflictingReports
from priorveil.tables.tallies import Tallies

__all__ = [
    "ConflictingReports",
    "NothingWritten",
    "Privatized",
    "RefusedRows",
    "TableEstimates",
    "Tallies",
    "estimate_table",
    "privatize_table",
    "tally_table",
]
