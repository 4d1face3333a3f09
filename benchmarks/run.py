"""Running plans: reports a second for client and curator, compared with multi-freq-ldpy, pure-LDP and plain numpy.

Every measurement is a process of its own with one thread, on the same machine in the same run, timed in
seconds of processor time: read the ratios. The peers live in an environment of their own in the user's
cache, made at the first run; their code is imported, nothing more. They get fewer reports where a million
would take too long: rates are per report, and N is in the table. The first call (imports, compiling,
warming up) is timed apart. Memory is the most that is allocated at a time, reports included, per report (for
the peers the peak of the process less what it had before); what the curator takes in addition to the reports is
measured apart, with N and with N / 4 of them. The error is the root mean square error of a count over the root
of N; multi-freq-ldpy clips and rescales its estimates, which lowers it. What the curators do, and that not all
do the same, is said in `_runners.py`.

    python benchmarks/run.py            everything, a few minutes
    python benchmarks/run.py --quick    fewer reports, for a first look
    python benchmarks/run.py --no-peers without installing anything
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
import tracemalloc
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _runners import EPSILON, FOREIGN, RUNNERS, Runner, taking_part

SIZES = (83, 1_024)
REPORTS = 1_000_000
PEERS = ("multi-freq-ldpy", "pure-ldp", "xxhash<4", "scikit-learn", "statsmodels")
PATIENCE = 4.0  # seconds that a peer may take for one measurement
ARC_SIZE, ARC_REPORTS = 1_296, 10_000_000
PEOPLE = 100_000  # with a prior each
LOOPED = 200  # of them, one after another


# -- one measurement, in a process of its own ----------------------------------------------------------------


def peak() -> int:
    """The most memory this process ever had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def timed(work: Callable[[Any], Any], argument: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = work(argument)
    return time.process_time() - start, result


def measure(library: str, mechanism: str, d: int, reports: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    values = np.minimum(rng.geometric(8 / d, reports) - 1, d - 1)
    first, runner = timed(lambda _: RUNNERS[library](mechanism, d), None)
    warm = values[: 200 if library in FOREIGN else min(reports, 210_000)]
    first += timed(lambda x: runner.curator(runner.client(x)), warm)[0]
    people = values[: _affordable(runner, warm, reports) if library in FOREIGN else reports]
    before = peak()
    best_client = best_curator = math.inf
    for _ in range(1 if library in FOREIGN else 5):
        seconds, told = timed(runner.client, people)
        best_client = min(best_client, seconds)
        seconds, found = timed(runner.curator, told)
        best_curator = min(best_curator, seconds)
        del told
    truth = np.bincount(people, minlength=d)
    if library in FOREIGN:
        memory, growth = peak() - before, math.nan
    else:
        memory, growth = (
            most_allocated(lambda x: runner.curator(runner.client(x)), people),
            _growth(runner, people),
        )
    return {
        "client": len(people) / best_client,
        "curator": len(people) / best_curator,
        "first": first,
        "memory": memory / len(people),
        "growth": growth,
        "reports": len(people),
        "error": float(np.sqrt(np.mean((found - truth) ** 2) / len(people))),
    }


def _growth(runner: Runner, people: np.ndarray) -> float:
    """Bytes that the curator takes in addition to the reports for each further one: from N / 4 to N of them."""
    many, few = (runner.client(people[:n]) for n in (len(people), len(people) // 4))
    more = most_allocated(runner.curator, many) - most_allocated(runner.curator, few)
    return more / (len(people) - len(people) // 4)


def most_allocated(work: Callable[[Any], Any], argument: Any) -> int:
    """The most bytes that were allocated at a time."""
    tracemalloc.start()
    work(argument)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def _affordable(runner: Runner, warm: np.ndarray, reports: int) -> int:
    """As many reports as take about `PATIENCE` seconds."""
    seconds, _ = timed(lambda x: runner.curator(runner.client(x)), warm)
    return int(min(reports, max(len(warm), PATIENCE / seconds * len(warm))))


def measure_arc(reports: int) -> dict[str, float]:
    import priorveil as pv
    from priorveil.mechanisms.randomness import as_source

    plan = pv.design(pv.Prior.zipf(ARC_SIZE), 2.0, pv.Histogram(), method="arc")
    arc, reader = plan.mechanism, plan.reader
    rng = np.random.default_rng(0)
    source = as_source(rng)
    reader.count(arc.sample(rng.integers(0, ARC_SIZE, 300_000), source))
    codes = rng.integers(0, ARC_SIZE, reports)
    client, told = timed(lambda x: arc.sample(x, source), codes)
    decode = min(timed(reader.count, told)[0] for _ in range(3))
    sort = min(timed(np.sort, told)[0] for _ in range(3))
    return {"client": reports / client, "decode": decode, "sort": sort, "reports": reports}


def measure_cohorts(people: int, size: int) -> dict[str, float]:
    """Seconds for all people at once, and for a person where each has a plan of their own, in a loop."""
    import priorveil as pv
    from priorveil.designs.cohorts import Cohorts
    from priorveil.reading.combination import combine_estimates

    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(size), people) + 1e-6
    P, epsilons = P / P.sum(axis=1, keepdims=True), rng.uniform(0.5, 3.0, people)
    values, query = rng.integers(0, size, people), pv.Histogram()
    Cohorts(P[:100], epsilons[:100], query)
    found: dict[str, float] = {"people": people, "size": size}
    found["design"], crowd = timed(lambda q: Cohorts(P, epsilons, q), query)
    found["client"], told = timed(crowd.privatize, values)
    found["curator"], _ = timed(crowd.estimate, told)
    few = range(LOOPED)
    seconds, plans = timed(
        lambda q: [pv.design(pv.Prior(P[i]), float(epsilons[i]), q, method="arc") for i in few], query
    )
    found["design loop"] = seconds / LOOPED
    seconds, reports = timed(lambda v: [plans[i].privatize(int(v[i])) for i in few], values)
    found["client loop"] = seconds / LOOPED
    seconds, _ = timed(
        lambda told: combine_estimates([plans[i].estimate(plans[i].tally([told[i]])) for i in few]), reports
    )
    found["curator loop"] = seconds / LOOPED
    return found


SPECIAL: dict[str, Callable[..., dict[str, float]]] = {"arc": measure_arc, "cohorts": measure_cohorts}


# -- all of them ---------------------------------------------------------------------------------------------


def peers_python() -> Path | None:
    """The interpreter of the peers' environment, made if need be; None where it cannot be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "priorveil-bench" / "peers"
    python = cache / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = cache / ".ready"
    if ready.exists() and python.exists():
        return python
    print(f"installing {', '.join(PEERS)} in {cache}", file=sys.stderr)
    try:
        venv.create(cache, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", *PEERS]
        subprocess.run(install, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        told = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        reason = next((line for line in told if line.startswith("ERROR")), told[-1])
        print(
            f"the peers cannot be installed, so they are left out (is there a network?): {reason}",
            file=sys.stderr,
        )
        return None
    ready.touch()
    return python


def in_process(python: Path | str, *job: object) -> dict[str, float]:
    """One measurement in a fresh process with one thread."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    command = [str(python), __file__, "--job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, check=False)
    if done.returncode:
        raise SystemExit(f"{job} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def short(number: float) -> str:
    """A rate or a number of bytes in a few characters."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{max(number, 0):.3g}"


def print_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join("---" if i == 0 else "---:" for i in range(len(header))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def compare(mechanism: str, d: int, reports: int, peers: Path | None) -> dict[str, dict[str, float]]:
    """One mechanism at one size, by everyone; printed, with ratios to priorveil on system randomness."""
    pythons = {name: peers if name in FOREIGN else sys.executable for name in taking_part(mechanism)}
    found = {name: in_process(p, name, mechanism, d, reports) for name, p in pythons.items() if p is not None}
    ours = found["priorveil"]
    print(f"### {mechanism}, d = {d:,}\n")
    header = (
        "",
        "N",
        "client/s",
        "priorveil is",
        "curator/s",
        "priorveil is",
        "bytes each",
        "first call",
        "error",
    )
    print_table(header, [_row(name, m, ours) for name, m in found.items()])
    return found


def _row(name: str, m: dict[str, float], ours: dict[str, float]) -> tuple[str, ...]:
    rates = [cell for s in ("client", "curator") for cell in (short(m[s]), times(ours[s] / m[s]))]
    return name, short(m["reports"]), *rates, short(m["memory"]), f"{m['first']:.2f} s", f"{m['error']:.2f}"


def times(ratio: float) -> str:
    return f"{ratio:,.0f} x" if ratio >= 100 else f"{ratio:.2g} x"


class Aim(NamedTuple):
    """Something to reach: a ratio of priorveil to another at some work."""

    words: str
    mechanism: str
    side: str
    ours: str
    other: str
    least: float


AIMS = (
    Aim("table client", "GRR", "client", "priorveil", "multi-freq-ldpy", 20),
    Aim("unary client", "OUE", "client", "priorveil", "multi-freq-ldpy", 40),
    Aim("hash decoding", "OLH", "curator", "priorveil", "multi-freq-ldpy", 2_000),
    Aim("table client, both seeded", "GRR", "client", "priorveil, seeded", "numpy", 1),
    Aim(
        "table curator", "GRR", "curator", "priorveil", "numpy", 0.75
    ),  # the same count, after a check that names the report
    Aim("unary client", "OUE", "client", "priorveil", "numpy", 5),
    Aim("unary curator, lifts too", "OUE", "curator", "priorveil", "numpy", 5),
    Aim("unary curator, lifts too, Zipf prior", "OUE", "curator", "priorveil, Zipf prior", "numpy", 5),
    Aim("hash client, both seeded", "OLH", "client", "priorveil, seeded", "numpy", 1),
    Aim("hash decoding", "OLH", "curator", "priorveil", "numpy", 5),
)


def print_aims(found: dict[tuple[str, int], dict[str, dict[str, float]]], arc: dict[str, float]) -> None:
    """What was aimed at, and what was reached here."""
    print("### Aims\n")
    rows = []
    for aim in AIMS:
        for d in SIZES:
            at = found[aim.mechanism, d]
            if aim.other in at:
                ratio = at[aim.ours][aim.side] / at[aim.other][aim.side]
                work = f"{aim.words}, d = {d:,}, to {aim.other}"
                rows.append((work, f"{aim.least:,g} x", times(ratio), _verdict(ratio >= aim.least)))
    ratio = arc["decode"] / arc["sort"]
    work = f"time of decoding {arc['reports']:,} arcs, to that of sorting them"
    rows.append((work, "at most 2 x", times(ratio), _verdict(ratio <= 2)))
    growth = max(
        m["growth"] for at in found.values() for name, m in at.items() if name.startswith("priorveil")
    )
    work = (
        "bytes that a curator takes in addition to the reports for each further one, the worst of all above"
    )
    rows.append((work, "at most 1", f"{growth:.1g}", _verdict(growth <= 1)))
    print_table(("", "aim", "here", ""), rows)


def _verdict(reached: bool) -> str:
    return "reached" if reached else "missed"


def main() -> None:
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    parser.add_argument("--quick", action="store_true", help="fewer reports")
    parser.add_argument("--no-peers", action="store_true", help="without multi-freq-ldpy and pure-LDP")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.job:
        what, *rest = json.loads(chosen.job)
        print(json.dumps(SPECIAL[what](*rest) if what in SPECIAL else measure(what, *rest)))
        return
    reports, arc_reports = (REPORTS // 5, ARC_REPORTS // 10) if chosen.quick else (REPORTS, ARC_REPORTS)
    peers = None if chosen.no_peers else peers_python()
    print(f"## Running, epsilon = {EPSILON:g}, one thread\n")
    found = {(m, d): compare(m, d, reports, peers) for d in SIZES for m in ("GRR", "OUE", "OLH")}
    arc = in_process(sys.executable, "arc", arc_reports)
    print(f"### Arc, d = {ARC_SIZE:,}, {arc_reports:,} reports\n")
    print_table(
        ("", "seconds", "reports/s"),
        [
            ("client, seeded", f"{arc_reports / arc['client']:.2f}", short(arc["client"])),
            ("curator", f"{arc['decode']:.2f}", short(arc_reports / arc["decode"])),
            ("np.sort", f"{arc['sort']:.2f}", short(arc_reports / arc["sort"])),
        ],
    )
    for people, size in ((PEOPLE, 5), (PEOPLE // 10, 83)):
        print_cohorts(in_process(sys.executable, "cohorts", people // 10 if chosen.quick else people, size))
    print_aims(found, arc)


def print_cohorts(found: dict[str, float]) -> None:
    people = int(found["people"])
    print(f"### A prior and an epsilon for each of {people:,} people, {int(found['size'])} values\n")
    names = {"design": "design and certify for a histogram", "client": "privatise", "curator": "estimate"}
    rows = [
        (
            words,
            f"{found[key]:.2f}",
            short(people / found[key]),
            times(found[f"{key} loop"] * people / found[key]),
        )
        for key, words in names.items()
    ]
    print_table(("", "seconds", "people/s", "to a loop over plans"), rows)


if __name__ == "__main__":
    main()
