"""Running plans: reports a second for client and curator, beside multi-freq-ldpy, pure-LDP and plain numpy.

Every measurement is a process of its own with one thread, on the same machine in the same run, timed in
seconds of processor time: read the ratios. The peers live in an environment of their own in the user's
cache, made at the first run; their code is imported, nothing more. They get fewer reports where a million
would take too long: rates are per report, and N is in the table. The first call (imports, compiling,
warming up) is timed apart. Memory is the peak of the process less what it had before the reports, per
report. The error is the root mean square error of a count over the root of N; multi-freq-ldpy clips and
rescales its estimates, which lowers it.

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
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

EPSILON = 1.0
SIZES = (83, 1_024)
REPORTS = 1_000_000
PEERS = ("multi-freq-ldpy", "pure-ldp", "xxhash<4", "scikit-learn", "statsmodels")
PATIENCE = 4.0  # seconds that a peer may take for one measurement
ARC_SIZE, ARC_REPORTS = 1_296, 10_000_000
PEOPLE = 100_000  # with a prior each


class Runner(NamedTuple):
    """A library at work on one mechanism: values to reports, and reports to a histogram."""

    client: Callable[[np.ndarray], Any]
    curator: Callable[[Any], np.ndarray]


# -- priorveil -----------------------------------------------------------------------------------------------


def priorveil(mechanism: str, d: int, seeded: bool) -> Runner:
    from fractions import Fraction

    import priorveil as pv
    from priorveil.mechanisms.local_hash import LocalHash
    from priorveil.mechanisms.randomness import as_source

    source = as_source(np.random.default_rng(1) if seeded else None)
    ratio = Fraction(math.exp(EPSILON))
    if mechanism == "OUE":
        even_prior = pv.Prior.uniform(d)
        unary = pv.design(even_prior, EPSILON, pv.Histogram(), notion=pv.LDP(), method="unary").mechanism
        even = np.full(d, 1 / d)
        return Runner(
            lambda x: unary.sample(x, source),
            lambda r: unary.answer("unbiased", unary.accumulate(r), even, None, False).mean,
        )
    if mechanism == "OLH":
        hashed = LocalHash.at_ratio(d, round(math.exp(EPSILON)) + 1, ratio)
        return Runner(lambda x: hashed.sample(x, source), lambda r: hashed.unbiased_sum(hashed.accumulate(r)))
    table = LocalHash.at_ratio(d, d, ratio).channel
    keep, other = table.matrix[0, 0], table.matrix[0, 1]
    return Runner(
        lambda x: table.sample(x, source), lambda r: (table.accumulate(r) - len(r) * other) / (keep - other)
    )


# -- plain numpy ---------------------------------------------------------------------------------------------


def plain_numpy(mechanism: str, d: int) -> Runner:
    rng, e = np.random.default_rng(1), math.exp(EPSILON)
    return {"GRR": _numpy_grr, "OUE": _numpy_oue, "OLH": _numpy_olh}[mechanism](rng, d, e)


def _parts(n: int, d: int) -> Iterator[slice]:
    step = max(1, (1 << 17) // d)  # what fits the cache
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def _numpy_grr(rng: np.random.Generator, d: int, e: float) -> Runner:
    keep, other = e / (e + d - 1), 1 / (e + d - 1)

    def client(x: np.ndarray) -> np.ndarray:
        lie = (x + rng.integers(1, d, len(x))) % d
        return np.where(rng.random(len(x)) < keep, x, lie)

    return Runner(client, lambda r: (np.bincount(r, minlength=d) - len(r) * other) / (keep - other))


def _numpy_oue(rng: np.random.Generator, d: int, e: float) -> Runner:
    noise = np.float32(1 / (e + 1))

    def client(x: np.ndarray) -> np.ndarray:
        packed = np.empty((len(x), -(-d // 8)), dtype=np.uint8)
        for part in _parts(len(x), d):
            mine = x[part]
            bits = rng.random((len(mine), d), dtype=np.float32) < noise
            bits[np.arange(len(mine)), mine] = rng.random(len(mine)) < 0.5
            packed[part] = np.packbits(bits, axis=1)
        return packed

    def curator(r: np.ndarray) -> np.ndarray:
        ones = np.zeros(d)
        for part in _parts(len(r), d):
            ones += np.unpackbits(r[part], axis=1, count=d).sum(axis=0, dtype=np.int64)
        return (ones - len(r) * float(noise)) / (0.5 - float(noise))

    return Runner(client, curator)


def _numpy_olh(rng: np.random.Generator, d: int, e: float) -> Runner:
    bins = round(e) + 1
    keep, half, golden = e / (e + bins - 1), np.uint64(32), np.uint64(0x9E3779B97F4A7C15)

    def hashed(seeds: np.ndarray, values: np.ndarray) -> np.ndarray:
        places = seeds * values + ((seeds >> half) ^ seeds) * golden
        return ((places >> half) * np.uint64(bins)) >> half

    def client(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seeds = rng.integers(0, 2**64, len(x), dtype=np.uint64)
        own = hashed(seeds, x.astype(np.uint64))
        lie = (own + rng.integers(1, bins, len(x), dtype=np.uint64)) % np.uint64(bins)
        return seeds, np.where(rng.random(len(x)) < keep, own, lie)

    def curator(r: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        seeds, told = r
        support, values = np.zeros(d), np.arange(d, dtype=np.uint64)
        for part in _parts(len(seeds), d):
            support += (hashed(seeds[part, None], values) == told[part, None]).sum(axis=0)
        return (support - len(seeds) / bins) / (keep - 1 / bins)

    return Runner(client, curator)


# -- the peers -----------------------------------------------------------------------------------------------


def multi_freq_ldpy(mechanism: str, d: int) -> Runner:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, UE

    if mechanism == "GRR":
        return Runner(
            lambda x: np.array([GRR.GRR_Client(v, d, EPSILON) for v in x]),
            lambda r: GRR.GRR_Aggregator_MI(r, d, EPSILON) * len(r),
        )
    if mechanism == "OUE":
        return Runner(
            lambda x: np.array([UE.UE_Client(v, d, EPSILON, True) for v in x]),
            lambda r: UE.UE_Aggregator_MI(r, EPSILON, True) * len(r),
        )
    return Runner(
        lambda x: [LH.LH_Client(v, d, EPSILON, True) for v in x],
        lambda r: LH.LH_Aggregator_MI(r, d, EPSILON, True) * len(r),
    )


def pure_ldp(mechanism: str, d: int) -> Runner:
    from pure_ldp.frequency_oracles import direct_encoding, local_hashing, unary_encoding

    make_client, make_server, options = {
        "GRR": (direct_encoding.DEClient, direct_encoding.DEServer, {}),
        "OUE": (unary_encoding.UEClient, unary_encoding.UEServer, {"use_oue": True}),
        "OLH": (local_hashing.LHClient, local_hashing.LHServer, {"use_olh": True}),
    }[mechanism]
    client = make_client(EPSILON, d, **options)

    def curator(reports: list[Any]) -> np.ndarray:
        server = make_server(EPSILON, d, **options)
        for report in reports:
            server.aggregate(report)
        return np.array([server.estimate(v + 1, suppress_warnings=True) for v in range(d)])

    return Runner(lambda x: [client.privatise(int(v) + 1) for v in x], curator)


RUNNERS: dict[str, Callable[[str, int], Runner]] = {
    "priorveil": lambda mechanism, d: priorveil(mechanism, d, seeded=False),
    "priorveil, seeded": lambda mechanism, d: priorveil(mechanism, d, seeded=True),
    "numpy": plain_numpy,
    "multi-freq-ldpy": multi_freq_ldpy,
    "pure-LDP": pure_ldp,
}
FOREIGN = ("multi-freq-ldpy", "pure-LDP")


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
    return {
        "client": len(people) / best_client,
        "curator": len(people) / best_curator,
        "first": first,
        "memory": (peak() - before) / len(people),
        "reports": len(people),
        "error": float(np.sqrt(np.mean((found - truth) ** 2) / len(people))),
    }


def _affordable(runner: Runner, warm: np.ndarray, reports: int) -> int:
    """As many reports as take about `PATIENCE` seconds."""
    seconds, _ = timed(lambda x: runner.curator(runner.client(x)), warm)
    return int(min(reports, max(len(warm), PATIENCE / seconds * len(warm))))


def measure_arc(reports: int) -> dict[str, float]:
    import priorveil as pv
    from priorveil.mechanisms.randomness import as_source

    arc = pv.design(pv.Prior.zipf(ARC_SIZE), 2.0, pv.Histogram(), method="arc").mechanism
    rng = np.random.default_rng(0)
    source = as_source(rng)
    arc.accumulate(arc.sample(rng.integers(0, ARC_SIZE, 300_000), source))
    codes = rng.integers(0, ARC_SIZE, reports)
    client, told = timed(lambda x: arc.sample(x, source), codes)
    decode = min(timed(arc.accumulate, told)[0] for _ in range(3))
    sort = min(timed(np.sort, told)[0] for _ in range(3))
    return {"client": reports / client, "decode": decode, "sort": sort, "reports": reports}


def measure_cohorts(people: int) -> dict[str, float]:
    import priorveil as pv
    from priorveil.cohorts import Cohorts

    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(5), people) + 1e-6
    P, epsilons = P / P.sum(axis=1, keepdims=True), rng.uniform(0.5, 3.0, people)
    Cohorts(P[:100], epsilons[:100])
    found: dict[str, float] = {"reports": people}
    for name, query in (("histogram", pv.Histogram()), ("sum", pv.Sum([0, 1, 2, 5, 9]))):
        found[name], crowd = timed(lambda q: Cohorts(P, epsilons, q), query)
    found["client"], told = timed(crowd.privatize, rng.integers(0, 5, people))
    found["curator"], _ = timed(crowd.estimate, told)
    return found


SPECIAL = {"arc": measure_arc, "cohorts": measure_cohorts}


# -- all of them ---------------------------------------------------------------------------------------------


def peers_python() -> Path | None:
    """The interpreter of the peers' environment, made if need be; None where it cannot be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "priorveil-bench" / "peers"
    python = cache / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = cache / ".ready"
    if ready.exists():
        return python
    print(f"installing {', '.join(PEERS)} in {cache}", file=sys.stderr)
    try:
        venv.create(cache, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the peers cannot be installed, so they are left out: {error}", file=sys.stderr)
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


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join("---" if i == 0 else "---:" for i in range(len(header))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def compare(mechanism: str, d: int, reports: int, peers: Path | None) -> dict[str, dict[str, float]]:
    """One mechanism at one size, by everyone; printed, with ratios to priorveil on system randomness."""
    pythons = {name: peers if name in FOREIGN else sys.executable for name in RUNNERS}
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
    Aim("table curator", "GRR", "curator", "priorveil", "numpy", 1),
    Aim("unary client", "OUE", "client", "priorveil", "numpy", 5),
    Aim("unary curator, which scores reports too", "OUE", "curator", "priorveil", "numpy", 5),
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
    print_cohorts(in_process(sys.executable, "cohorts", PEOPLE))
    print_aims(found, arc)


def print_cohorts(found: dict[str, float]) -> None:
    people = int(found["reports"])
    print(f"### A prior and an epsilon for each of {people:,} people, five values\n")
    names = {"histogram": "design and certify for a histogram", "sum": "the same for a sum"}
    names |= {"client": "privatise", "curator": "estimate"}
    rows = [(words, f"{found[key]:.2f}", short(people / found[key])) for key, words in names.items()]
    print_table(("", "seconds", "people/s"), rows)


if __name__ == "__main__":
    main()
