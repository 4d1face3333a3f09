"""Tables of any size: a column of values in, a column of reports out; a column of reports in, estimates out.

Everything streams: memory grows with the domain and the groups, not with the rows. Needs the extra `tables`.
"""

from __future__ import annotations

from priorveil.tables.estimating import TableEstimate, Tallies, estimate_table, tally_table
from priorveil.tables.privatizing import Privatized, privatize_table
from priorveil.tables.refusals import Refused

__all__ = [
    "Privatized",
    "Refused",
    "TableEstimate",
    "Tallies",
    "estimate_table",
    "privatize_table",
    "tally_table",
]
