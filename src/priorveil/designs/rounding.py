"""From a channel in floats to the integers a device samples from, certified.

A solver's channel overshoots its budget by about 1e-13. Mixing it with its own output law,
`Q <- (1 - t) Q + t 1 lam'`, keeps the law and pulls every lift towards one, in every notion here: the
smallest `t` of a ladder is taken at which the rounded integers pass the exact check.
"""

from __future__ import annotations

import numpy as np

from priorveil.certify import TOTAL, Certifiable, Certificate, Lifts, Table, certificate, lifts, within
from priorveil.errors import CertificateError
from priorveil.notions import Known, Secrets
from priorveil.priors import Array, Budget, Prior

_LADDER = (0.0, *(10.0**-k for k in np.arange(15.0, 3.75, -0.25)))
_NEARLY = 1e-6  # rows of a solver's channel add up to one but for this
_NEVER = 1e-13  # a report this unlikely is dropped before rounding


def certified_table(
    Q: Array,
    prior: Known,
    budget: Budget,
    secret: Secrets = None,
    notion: Certifiable | None = None,
) -> tuple[Table, Certificate]:
    """An integer table as near to `Q` as the budget allows, and its certificate.

    >>> Q = np.array([[0.731, 0.269], [0.269, 0.731]])
    >>> table, proof = certified_table(Q, Prior([0.5, 0.5]), Budget(1.0))
    >>> proof.lip <= 1.0, int(table[0].sum()) == TOTAL
    (True, True)
    """
    P = (prior if isinstance(prior, Prior) else prior.centre).probabilities
    _require_channel(Q, len(P))
    clean = _clean(Q, P)
    law = P @ clean
    for t in _LADDER:
        table = rounded((1 - t) * clean + t * law)
        found = lifts(table, prior, secret, notion)
        if within(found, budget, notion):
            return table, certificate(found, notion)
    raise _too_far(found, budget)


def rounded(Q: Array) -> Table:
    """Integers whose rows add up to `2**62`; what rounding leaves over goes to the largest entry of the row.

    >>> rounded(np.array([[0.5, 0.5]])).tolist() == [[2**61, 2**61]]
    True
    """
    W = np.floor(Q * float(TOTAL)).astype(np.int64)
    left = TOTAL - W.sum(axis=1)
    W[np.arange(len(W)), W.argmax(axis=1)] += left
    return W


def _require_channel(Q: Array, size: int) -> None:
    """Refuse what a failed solver may return: it is no channel, not even nearly."""
    if Q.ndim != 2 or len(Q) != size or not np.isfinite(Q).all():
        raise CertificateError(
            f"the solver did not return a channel, but an array {Q.shape} for {size} values"
        )
    off = float(np.abs(np.maximum(Q, 0.0).sum(axis=1) - 1).max())
    if off > _NEARLY:
        raise CertificateError(f"the solver did not return a channel: a row misses one by {off:.2g}")


def _clean(Q: Array, P: Array) -> Array:
    """The channel with a solver's dust wiped off: no negatives, no report that never happens, rows of one."""
    positive = np.maximum(Q, 0.0)
    kept = positive[:, P @ positive > _NEVER]
    clean: Array = kept / kept.sum(axis=1, keepdims=True)
    return clean


def _too_far(found: Lifts, budget: Budget) -> CertificateError:
    reached = certificate(found)
    return CertificateError(
        f"the designed channel cannot be mended: it leaks {reached.lip_lower:.6g} downwards and "
        f"{reached.lip_upper:.6g} upwards, the budget is {budget.lower:.6g} and {budget.upper:.6g}"
    )
