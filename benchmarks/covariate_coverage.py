"""How often 95 % intervals contain the truth where a randomised answer is a covariate.

A linear outcome, 3,000 people, LIP 1 at the shares of the values. With two values the share is .3 among all people, and
depends on a covariate; the effect is -.8. With four values the effects are 1, -1 and .5. The model is fitted to the
reports and the outcome jointly (`pv.regress_on`); people, reports and outcomes are drawn again for every survey.

    python benchmarks/covariate_coverage.py                      4,000 surveys with two values: about five minutes
    python benchmarks/covariate_coverage.py --values 4           with four values: longer, and not within these limits
    python benchmarks/covariate_coverage.py --simulations 200    a first look

The exit status is 1 if the coverage of a coefficient lies outside 93.5 to 96.5 %.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import priorveil as pv
from priorveil.arrays import Array
from priorveil.statistics.logit import logit_shares
from priorveil.statistics.outcome_fit import OutcomeFit

PEOPLE = 3_000
LABELS = {2: ["yes", "no"], 4: ["often", "sometimes", "once", "never"]}
BETWEEN = (0.935, 0.965)
SHARE_COEFFICIENTS = {2: [[-0.87], [0.4]], 4: [[-0.7, -0.3, -1.4], [0.3, 0.0, -0.2]]}
EFFECTS = {2: [-0.8], 4: [1.0, -1.0, 0.5]}
MEAN = [3.0, 0.2]


def survey(plan: pv.Plan, values: int, rng: np.random.Generator) -> OutcomeFit:
    """The fit to the reports and outcomes of new people."""
    X = np.stack([np.ones(PEOPLE), rng.normal(size=PEOPLE)], axis=1)
    shares = logit_shares((X @ np.array(SHARE_COEFFICIENTS[values])).T).T
    x = (rng.uniform(size=PEOPLE)[:, None] > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
    outcome = X @ MEAN + np.append(EFFECTS[values], 0.0)[x] + rng.normal(size=PEOPLE)
    return pv.regress_on(plan.privatize(x, rng, codes=True), plan=plan, outcome=outcome, X=X)


def coverage(values: int, simulations: int) -> tuple[tuple[str, ...], Array]:
    """The names of all parameters, and the share of surveys whose interval contains each."""
    rng = np.random.default_rng(39)
    truth = np.concatenate([MEAN, EFFECTS[values], np.array(SHARE_COEFFICIENTS[values]).T.ravel()])
    X = np.stack([np.ones(100_000), np.random.default_rng(0).normal(size=100_000)], axis=1)
    shares = logit_shares((X @ np.array(SHARE_COEFFICIENTS[values])).T).T.mean(axis=0)
    prior = pv.Prior(shares, LABELS[values])
    plan, names, held = pv.design(prior, 1.0, pv.Distribution()), (), np.zeros(len(truth))
    for _ in range(simulations):
        columns = survey(plan, values, rng).columns()
        held += (columns["low"] <= truth) & (truth <= columns["high"])
        names = tuple(
            f"{name} in the share of {value}" if value else name
            for value, name in zip(columns["share_of"], columns["covariate"], strict=True)
        )
    return names, held / simulations


def main() -> None:
    """Print the coverage of each coefficient."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=4_000)
    parser.add_argument("--values", type=int, choices=(2, 4), default=2)
    given = parser.parse_args()
    names, held = coverage(given.values, given.simulations)
    print("| coefficient | in the interval |\n|---|---|")
    for name, share in zip(names, held, strict=True):
        print(f"| {name} | {100 * share:.1f} % |")
    outside = (held < BETWEEN[0]) | (held > BETWEEN[1])
    sys.exit(int(outside.any() and given.simulations >= 1_000))


if __name__ == "__main__":
    main()
