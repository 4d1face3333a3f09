"""Queries: what the curator wants to know, and how much a report tells about it.

Most queries are *linear*: the curator wants `W @ counts` for a matrix `W` with one row for each statistic and one
column for each value. `Histogram` is the identity, `Sum` is one row, `Distribution` is the histogram estimated without
the prior. `Guess` and `Convex` are about the value of one person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from priorveil.errors import InvalidInput
from priorveil.named_classes import class_named
from priorveil.queries.labelled_rows import LabelledRows, require_same_statistics
from priorveil.queries.linear import Distribution, Histogram, Linear, Sum, group_rows
from priorveil.queries.matrices import (
    MATRICES,
    AverageInfluence,
    Cumulative,
    Dense,
    Identity,
    Margins,
    Matrix,
    NumberByGroup,
    Ranges,
    StatisticName,
)
from priorveil.queries.posterior_gains import Convex, Guess
from priorveil.queries.query import Criterion, Query

__all__ = [
    "MATRICES",
    "QUERIES",
    "AverageInfluence",
    "Convex",
    "Criterion",
    "Cumulative",
    "Dense",
    "Distribution",
    "Guess",
    "Histogram",
    "Identity",
    "LabelledRows",
    "Linear",
    "Margins",
    "Matrix",
    "NumberByGroup",
    "Query",
    "Ranges",
    "StatisticName",
    "Sum",
    "group_rows",
    "read_query",
    "require_query",
    "require_same_statistics",
]

# The queries that come with the package, by name.
QUERIES: dict[str, type[Any]] = {q.__name__: q for q in (Histogram, Sum, Guess, Distribution, Linear)}


def require_query(query: Any) -> None:
    """Raise `InvalidInput` if this is not a query, but its class, say."""
    if not isinstance(query, Query):
        advice = (
            f"give one of {', '.join(QUERIES)} or Convex, such as Histogram(), or an object of your own class"
        )
        raise InvalidInput("query", query, advice)


def read_query(document: Mapping[str, Any]) -> Query:
    """Read a query from its JSON document. A convex gain is code, which no document carries.

    >>> read_query(Linear([[0, 1], [2, 3]], names=("a", "b")).document()).statistic_labels((0, 1))
    ('a', 'b')
    """
    query: type[Query] = class_named(Query.by_name, document["name"], "query")
    return query.read(document)
