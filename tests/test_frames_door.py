"""Tables and columns of every library are taken wherever a table or a column is: the answers are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import priorveil as pv

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

from priorveil.tables import estimate_table, privatize_table  # noqa: E402

PEOPLE = {
    "home": ["rent"] * 40 + ["own"] * 60,
    "hours": [0.0, 40.0] * 50,
    "report": [0, 1] * 50,
    "weight": [1.0, 2.0] * 50,
}


class Stream:
    """Nothing but Arrow's C stream interface, as tables and columns of many libraries have it."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._data.__arrow_c_stream__(requested_schema)


KINDS: dict[str, tuple[Callable[[dict[str, Any]], Any], Callable[[list[Any]], Any]]] = {
    "dict": (dict, list),
    "numpy": (lambda t: {name: np.array(column) for name, column in t.items()}, np.array),
    "pandas": (pd.DataFrame, pd.Series),
    "pandas with arrow": (
        lambda t: pd.DataFrame(t).convert_dtypes(dtype_backend="pyarrow"),
        lambda column: pd.Series(column).convert_dtypes(dtype_backend="pyarrow"),
    ),
    "polars": (pl.DataFrame, pl.Series),
    "pyarrow": (pa.table, pa.array),
    "chunks": (pa.table, lambda column: pa.chunked_array([column[:30], column[30:]])),
    "batch": (pa.RecordBatch.from_pydict, pa.array),
    "reader": (lambda t: pa.table(t).to_reader(), pa.array),
    "duckdb": (lambda t: duckdb.from_arrow(pa.table(t)), pa.array),
    "stream": (lambda t: Stream(pa.table(t)), lambda column: Stream(pa.chunked_array([column]))),
}

PRIOR = pv.Prior({"own": 0.6, "rent": 0.4})
JOINT = pv.Prior.joint(
    {("own", 0): 0.3, ("own", 40): 0.3, ("rent", 0): 0.2, ("rent", 40): 0.2},
    ("home", "hours"),
    grids=("hours",),
)
GRID = pv.Prior.grid([0, 40], [0.5, 0.5])
PLAN, JOINT_PLAN = pv.design(PRIOR, 1.0, pv.Histogram()), pv.design(JOINT, 1.0, pv.Histogram())
GRID_PLAN = pv.design(GRID, 1.0, pv.Sum([0, 40]))

TABLES: dict[str, Callable[[Any], Any]] = {
    "Prior.from_table": lambda t: pv.Prior.from_table(t, "home"),
    "Prior.from_table, several": lambda t: pv.Prior.from_table(
        t, ["home", "hours"], grids={"hours": [0, 40]}
    ),
    "Plan.privatize": lambda t: JOINT_PLAN.privatize(t, np.random.default_rng(0)).tolist(),
    "privatize_table": lambda t: (
        privatize_table(t, PLAN, "home", rng=np.random.default_rng(0)).table["report"].to_pylist()
    ),
    "estimate_table": lambda t: estimate_table(t, PLAN, assume_plan=True).everybody.values.tolist(),
}
COLUMNS: dict[str, Callable[[Callable[[str], Any]], Any]] = {
    "Prior.from_values": lambda c: pv.Prior.from_values(c("home")),
    "Prior.grid": lambda c: pv.Prior.grid([0, 40], sample=c("hours")),
    "Secret.from_columns": lambda c: pv.Secret.from_columns(c("hours"), c("home")).rows.tolist(),
    "Plan.privatize": lambda c: PLAN.privatize(c("home"), np.random.default_rng(0)).tolist(),
    "Plan.privatize, numbers": lambda c: GRID_PLAN.privatize(c("hours"), np.random.default_rng(0)).tolist(),
    "Plan.privatize, columns": lambda c: JOINT_PLAN.privatize(
        {"home": c("home"), "hours": c("hours")}, np.random.default_rng(0)
    ).tolist(),
    "Plan.tally": lambda c: PLAN.tally(c("report")),
    "Plan.tally, weights": lambda c: PLAN.tally(c("report"), weights=c("weight")),
    "Plan.likelihood": lambda c: PLAN.likelihood(c("report")).tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", TABLES)
def test_tables_of_every_kind_are_taken_alike(place: str, kind: str) -> None:
    table, _ = KINDS[kind]
    assert TABLES[place](table(PEOPLE)) == TABLES[place](PEOPLE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", COLUMNS)
def test_columns_of_every_kind_are_taken_alike(place: str, kind: str) -> None:
    _, column = KINDS[kind]
    assert COLUMNS[place](lambda name: column(PEOPLE[name])) == COLUMNS[place](lambda name: PEOPLE[name])
