"""The same survey with other libraries: the errors that docs/comparison.md quotes.

It needs other libraries in this environment: `pip install multi-freq-ldpy pure-ldp opendp 'xxhash<4' scikit-learn
statsmodels`. Then run `python scripts/comparison.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import priorveil as pv

KNOWN = [0.69, 0.11, 0.13, 0.07]
SHARES = np.array([0.70, 0.10, 0.12, 0.08])
PEOPLE, SURVEYS, EPSILON = 2_000, 40, 1.0
D = len(SHARES)
Shares = npt.NDArray[np.float64]
Survey = Callable[[npt.NDArray[np.int64]], Shares]


def multi_freq_ldpy() -> Survey:
    from multi_freq_ldpy.pure_frequency_oracles import GRR

    return lambda people: GRR.GRR_Aggregator_MI(
        np.array([GRR.GRR_Client(person, D, EPSILON) for person in people]), D, EPSILON
    )


def pure_ldp() -> Survey:
    from pure_ldp.frequency_oracles import direct_encoding

    def survey(people: npt.NDArray[np.int64]) -> Shares:
        client, server = direct_encoding.DEClient(EPSILON, D), direct_encoding.DEServer(EPSILON, D)
        for person in people:
            server.aggregate(client.privatise(int(person) + 1))
        counts = [server.estimate(value + 1, suppress_warnings=True) for value in range(D)]
        return np.array(counts) / len(people)

    return survey


def opendp() -> Survey:
    """OpenDP draws the reports and proves the level. It has no estimator of shares: the usual one is used."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    truth = math.exp(EPSILON) / (math.exp(EPSILON) + D - 1)
    measure = dp.m.make_randomized_response(list(range(D)), truth)

    def survey(people: npt.NDArray[np.int64]) -> Shares:
        seen = np.bincount([measure(int(person)) for person in people], minlength=D) / len(people)
        other = (1 - truth) / (D - 1)
        return np.asarray((seen - other) / (truth - other))

    return survey


def priorveil(notion: pv.LIP | pv.LDP) -> Survey:
    plan = pv.design(pv.Prior(KNOWN), EPSILON, pv.Distribution(), notion=notion)
    print(f"{notion!r}: {plan!r}")
    return lambda people: plan.estimate(plan.tally(plan.privatize(people))).proportions


def main() -> None:
    surveys = {
        "multi-freq-ldpy, GRR": multi_freq_ldpy(),
        "pure-LDP, direct encoding": pure_ldp(),
        "OpenDP, randomised response": opendp(),
        "priorveil, LDP 1": priorveil(pv.LDP()),
        "priorveil, LIP 1": priorveil(pv.LIP()),
    }
    rng = np.random.default_rng(1)
    draws = [rng.choice(D, PEOPLE, p=SHARES) for _ in range(SURVEYS)]
    for name, survey in surveys.items():
        answers = np.array([survey(people) for people in draws])
        errors = answers - SHARES
        total = PEOPLE * (errors**2).sum(axis=1)
        print(
            f"{name:<28} error {total.mean():5.2f} ± {total.std() / math.sqrt(SURVEYS):.2f}, "
            f"negative shares {np.mean(answers < 0):.1%}, lowest {answers.min():.3f}"
        )


if __name__ == "__main__":
    main()
