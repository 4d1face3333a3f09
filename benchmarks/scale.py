"""Tables of any size: rows a second and peak memory, compared with the same count by DuckDB and polars alone.

Values are generated, privatised to a Parquet file and estimated from it. Every measurement is a process of
its own; "start" is loading libraries and the plan, the time is that of the work after it ("cpu" is the
processor's, over all threads, and bears a busy machine better), the memory is the peak of the process. The
floor is what DuckDB and polars need for the same job on the same file: to count the different ids, since
`estimate` notices a report that is there twice, and to count the column of reports: by report; for arc, a count
and two sums in as many cells of one width; for unary, the ones of every bit, by DuckDB alone. Lines that
begin with "times" say how many times the least of the floors `estimate` takes.

multi-freq-ldpy takes arrays, not files: it gets at most a million reports in memory (of local hashing, a
thousand: it hashes every value for every report), from the environment that `run.py` installs it in.

    python benchmarks/scale.py                     a million rows
    python benchmarks/scale.py --rows 1e6 1e7 1e8  all sizes of the documentation; 1e8 takes 5 GB of disk
    python benchmarks/scale.py --mechanisms arc    one of table, arc, unary, hashing
    python benchmarks/scale.py --repeat 3          all but making the reports three times; the least is shown
    python benchmarks/scale.py --json scale.json   also as JSON
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

MECHANISMS = {
    "table": ("columns", 16),
    "arc": ("arc", 1_000),
    "unary": ("unary", 64),
    "hashing": ("hashing", 1_000),
}
FLOORS: dict[str, list[tuple[Any, ...]]] = {
    "table": [("count_duckdb",), ("count_polars",)],
    "arc": [("cells_duckdb",), ("cells_polars",)],
    "unary": [("bits_duckdb", MECHANISMS["unary"][1])],
    "hashing": [("count_duckdb",), ("count_polars",)],
}
CHUNK = 1 << 20
PEER_ROWS = {"table": 1_000_000, "unary": 1_000_000, "hashing": 1_000}
CELLS = 2_000

Work = Callable[[], int]


# -- tasks, each in a process of its own -------------------------------------------------------------------


def write_values(path: str, rows: int, size: int) -> Work:
    """Zipf values, a chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    P = zipf(size)

    def work() -> int:
        with pq.ParquetWriter(path, pa.schema([("value", pa.int64())])) as writer:
            for start in range(0, rows, CHUNK):
                drawn = rng.choice(size, min(CHUNK, rows - start), p=P)
                writer.write_batch(pa.record_batch({"value": drawn}))
        return rows

    return work


def zipf(size: int) -> np.ndarray:
    mass = 1 / np.arange(1, size + 1)
    return mass / mass.sum()


def privatize(plan: str, data: str, out: str) -> Work:
    import priorveil as pv
    from priorveil.tables import privatize_table

    read = pv.Plan.load(plan)
    return lambda: privatize_table(data, read, "value", out, replace=True).reports


def estimate(plan: str, data: str) -> Work:
    import pyarrow.parquet  # noqa: F401  a library to load, as those of the floors are

    import priorveil as pv
    from priorveil.tables import estimate_table

    read = pv.Plan.load(plan)
    return lambda: estimate_table(data, read).everybody.reports


def duckdb_work(data: str, query: str, count: int) -> Work:
    """Count the different ids, and run a query whose column `count` adds up to the number of rows."""
    import duckdb

    ids = f"select count(distinct report_id) from '{data}'"

    def work() -> int:
        rows = sum(row[count] for row in duckdb.sql(query).fetchall())
        assert duckdb.sql(ids).fetchall()[0][0] == rows
        return rows

    return work


def polars_work(data: str, counted: Any) -> Work:
    """Count the different ids, and collect a frame whose column `len` adds up to the number of rows."""
    import polars as pl

    ids = pl.scan_parquet(data).select(pl.col("report_id").n_unique())

    def work() -> int:
        rows = int(counted.collect(engine="streaming")["len"].sum())
        assert ids.collect(engine="streaming").item() == rows
        return rows

    return work


def count_duckdb(data: str) -> Work:
    return duckdb_work(data, f"select report, count(*) from '{data}' group by 1", 1)


def cells_duckdb(data: str) -> Work:
    """The count of arc reports as a database has it: as many cells, of one width, a count and two sums."""
    import duckdb

    low, high = "sum(report & 2097151)", "sum(report >> 21)"
    top = duckdb.sql(f"select max(report) from '{data}'").fetchall()[0][0]
    query = f"select report // {top // CELLS + 1}, count(*), {low}, {high} from '{data}' group by 1"
    return duckdb_work(data, query, 1)


def count_polars(data: str) -> Work:
    import polars as pl

    counted = pl.scan_parquet(data).group_by("report").len()
    return polars_work(data, counted)


def cells_polars(data: str) -> Work:
    import polars as pl

    y = pl.col("report")
    top = pl.scan_parquet(data).select(y.max()).collect(engine="streaming")["report"][0]
    cell = (y // (top // CELLS + 1)).alias("cell")
    added = pl.scan_parquet(data).group_by(cell).agg(pl.len(), low=(y % 2**21).sum(), high=(y // 2**21).sum())
    return polars_work(data, added)


def bits_duckdb(data: str, size: int) -> Work:
    """The ones of every bit. A database counts the bits of a byte from the left, reports from the right."""
    ones = ", ".join(f"sum(get_bit(bits, {8 * (x // 8) + 7 - x % 8}))" for x in range(size))
    query = f"select count(*), {ones} from (select report::BIT as bits from '{data}')"
    return duckdb_work(data, query, 0)


def count_peer(mechanism: str, size: int, rows: int) -> Work:
    """Multi-freq-ldpy reads reports that are in memory already."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, UE

    rng = np.random.default_rng(1)
    if mechanism == "table":
        reports = rng.integers(0, size, rows)
        return lambda: len(GRR.GRR_Aggregator_MI(reports, size, 1.0)) and rows
    if mechanism == "unary":
        bits = rng.integers(0, 2, (rows, size), dtype=np.int8)
        return lambda: len(UE.UE_Aggregator_MI(bits, 1.0)) and rows
    pairs = list(zip(rng.integers(0, 4, rows).tolist(), rng.integers(0, 2**31, rows).tolist(), strict=True))
    return lambda: len(LH.LH_Aggregator_MI(pairs, size, 1.0)) and rows


TASKS: dict[str, Callable[..., Work]] = {
    f.__name__: f
    for f in (
        write_values,
        privatize,
        estimate,
        count_duckdb,
        cells_duckdb,
        count_polars,
        cells_polars,
        bits_duckdb,
        count_peer,
    )
}


def run_task(name: str, arguments: list[Any]) -> None:
    begin = time.perf_counter()
    work = TASKS[name](*arguments)
    ready, used = time.perf_counter(), time.process_time()
    rows = work()
    seconds, cpu = time.perf_counter() - ready, time.process_time() - used
    unit = 1024**3 if sys.platform == "darwin" else 1024**2  # macOS counts bytes, Linux kilobytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps({"rows": rows, "start": ready - begin, "seconds": seconds, "cpu": cpu, "peak_gb": peak}))


def measured(
    name: str, *arguments: Any, repeat: int = 1, python: Path | str = sys.executable
) -> dict[str, Any]:
    """A task in a process of its own, the quickest of several; its error if it cannot."""
    task = json.dumps([str(a) if isinstance(a, Path) else a for a in arguments])
    found = []
    for _ in range(repeat):
        try:
            done = subprocess.run(
                [str(python), __file__, "--task", name, task],
                capture_output=True,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                check=False,
            )
        except OSError as error:
            return {"task": name, "error": str(error)}
        if done.returncode:
            return {"task": name, "error": (done.stderr.strip().splitlines() or ["killed"])[-1]}
        found.append(json.loads(done.stdout.splitlines()[-1]))
    least = {key: min(one[key] for one in found) for key in ("start", "seconds", "cpu")}
    return {"task": name, **found[0], **least, "peak_gb": max(one["peak_gb"] for one in found)}


# -- the table ---------------------------------------------------------------------------------------------


def measure(
    mechanism: str, rows: int, folder: Path, repeat: int, peer: Path | None
) -> Iterator[dict[str, Any]]:
    """All that is measured of a mechanism; the floors before the estimate, which is told in times of them."""
    import priorveil as pv

    method, size = MECHANISMS[mechanism]
    about = {"mechanism": mechanism, "values": size}
    plan, values, reports = folder / "plan.json", folder / "values.parquet", folder / "reports.parquet"
    pv.design(pv.Prior(zipf(size)), 1.0, pv.Histogram(), method=method, time_limit=20).save(plan)
    measured("write_values", values, rows, size)
    yield {**about, **measured("privatize", plan, values, reports)}
    values.unlink()
    floors = []
    for name, *more in FLOORS[mechanism]:
        floors.append(measured(name, reports, *more, repeat=repeat))
        yield {**about, **floors[-1]}
    own = measured("estimate", plan, reports, repeat=repeat)
    ratios = {
        kind: own[kind] / min(floor[kind] for floor in floors if "error" not in floor)
        for kind in ("seconds", "cpu")
        if "error" not in own and any("error" not in floor for floor in floors)
    }
    yield {**about, **own, "times": ratios}
    if peer is not None and mechanism in PEER_ROWS:
        most = min(rows, PEER_ROWS[mechanism])
        yield {**about, **measured("count_peer", mechanism, size, most, repeat=repeat, python=peer)}


def shown(one: dict[str, Any]) -> str:
    head = f"{one['mechanism']:<8} {one['values']:>6,}"
    if "error" in one:
        return f"{head} {one['task']:<13} {one['error']}"
    rate = one["rows"] / one["seconds"] / 1e6
    times = f"start {one['start']:.2f} s {one['seconds']:>8.2f} s (cpu {one['cpu']:.2f}) {rate:>8.2f} M/s"
    line = f"{head} {one['rows']:>11,} {one['task']:<13} {times} {one['peak_gb']:>6.2f} GB"
    if one.get("times"):
        line += (
            f"\n{head} times the least floor: {one['times']['seconds']:.2f} (cpu {one['times']['cpu']:.2f})"
        )
    return line


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=float, default=[1e6])
    parser.add_argument("--mechanisms", nargs="+", choices=list(MECHANISMS), default=list(MECHANISMS))
    parser.add_argument(
        "--repeat", type=int, default=1, help="how often each is measured; the least is shown"
    )
    parser.add_argument("--no-peers", action="store_true", help="without multi-freq-ldpy")
    parser.add_argument("--folder", type=Path, help="where the files go; a temporary folder by default")
    parser.add_argument("--json", type=Path, help="write the measurements here too")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        run_task(given.task[0], json.loads(given.task[1]))
        return
    from run import peers_python

    peer = None if given.no_peers else peers_python()
    results = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for rows in map(int, given.rows):
            for mechanism in given.mechanisms:
                for one in measure(mechanism, rows, Path(folder), given.repeat, peer):
                    results.append(one)
                    print(shown(one), flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
