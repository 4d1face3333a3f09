"""Everyone's way to run GRR, OUE and OLH: priorveil, plain numpy, multi-freq-ldpy and pure-LDP.

A runner turns values into reports and reports into a histogram, for people who know no better prior than the
uniform one. The unary curators do different amounts of work: numpy and the libraries count bits; priorveil also
adds up the lifts of each report, so that posteriors can be taken given the whole of it. Under a uniform prior that is
counting the bits of a report; "priorveil, Zipf prior" has to add up their masses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

EPSILON = 1.0


class Runner(NamedTuple):
    """A library at work on one mechanism: values to reports, and reports to a histogram."""

    client: Callable[[np.ndarray], Any]
    curator: Callable[[Any], np.ndarray]


# -- priorveil -----------------------------------------------------------------------------------------------


def priorveil(mechanism: str, d: int, seeded: bool = False, zipf: bool = False) -> Runner:
    from fractions import Fraction

    import priorveil as pv
    from _local_hash import LocalHash, randomized_response
    from priorveil.mechanisms.randomness import as_source
    from priorveil.reading.families import reader_of

    source = as_source(np.random.default_rng(1) if seeded else None)
    ratio = Fraction(math.exp(EPSILON))
    if mechanism == "OUE":
        prior = pv.Prior.zipf(d) if zipf else pv.Prior.uniform(d)
        plan = pv.design(prior, EPSILON, pv.Histogram(), notion=pv.LDP(), method="unary")
        unary, reader, P = plan.mechanism, plan.reader, prior.probabilities
        return Runner(
            lambda x: unary.sample(x, source),
            lambda r: reader.answer("unbiased", reader.count(r), P, None, False).mean,
        )
    if mechanism == "OLH":
        hashed = LocalHash(d, round(math.exp(EPSILON)) + 1, ratio)
        return Runner(lambda x: hashed.sample(x, source), hashed.estimate)
    table = randomized_response(d, ratio)
    keep, other, count = table.matrix[0, 0], table.matrix[0, 1], reader_of(table).count
    return Runner(lambda x: table.sample(x, source), lambda r: (count(r) - len(r) * other) / (keep - other))


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

    def curator(r: np.ndarray) -> np.ndarray:
        if r.min() < 0 or r.max() >= d:
            raise ValueError("a report that randomised response cannot have made")
        return (np.bincount(r, minlength=d) - len(r) * other) / (keep - other)

    return Runner(client, curator)


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
    "priorveil": priorveil,
    "priorveil, seeded": lambda mechanism, d: priorveil(mechanism, d, seeded=True),
    "priorveil, Zipf prior": lambda mechanism, d: priorveil(mechanism, d, zipf=True),
    "numpy": plain_numpy,
    "multi-freq-ldpy": multi_freq_ldpy,
    "pure-LDP": pure_ldp,
}
FOREIGN = ("multi-freq-ldpy", "pure-LDP")


def taking_part(mechanism: str) -> tuple[str, ...]:
    """Who runs a mechanism; only unary reports are read in the light of a prior."""
    return tuple(name for name in RUNNERS if "Zipf" not in name or mechanism == "OUE")
