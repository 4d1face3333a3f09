"""Small linear problems under every notion, and their least errors by full enumeration.

Nothing here uses the engine: inequalities are written out, vertices are found by trying every choice of tight
inequalities, the best mixture is one linear programme (prior-based queries) or a barrier method (unbiased ones).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.optimize

import priorveil as pv
from priorveil.certify import keeps_budget
from priorveil.mechanisms import Table

Array = np.ndarray
INF = math.inf


class Instance(NamedTuple):
    """A problem: what `design` gets, the matrix of its statistics, and its inequalities `A @ column >= 0`."""

    prior: pv.Prior | pv.PriorSet
    budget: pv.Budget
    W: Array
    secret: pv.Secret | list[pv.Secret] | None
    notion: pv.LIP | pv.LDP | pv.Pufferfish | pv.DI
    A: Array

    def plan(self, unbiased: bool) -> pv.Plan:
        query = pv.Linear(self.W, unbiased=unbiased)
        return pv.design(self.prior, self.budget, query, secret=self.secret, notion=self.notion)


# -- random problems -------------------------------------------------------------------------------------------


def random_prior(rng: np.random.Generator, d: int) -> pv.Prior:
    p = rng.dirichlet(np.full(d, rng.choice([0.4, 1.0, 5.0]))) + 1e-3
    return pv.Prior(p / p.sum())


def random_budget(rng: np.random.Generator) -> pv.Budget:
    a, b = rng.choice([0.2, 0.7, 1.0, 2.0, 3.5], 2)
    return [pv.Budget(a), pv.Budget(a, b), pv.Budget(a, INF), pv.Budget(INF, b)][rng.integers(4)]


def random_secret(rng: np.random.Generator, prior: pv.Prior, count: int = 3) -> pv.Secret:
    onward = rng.dirichlet(np.full(count, 0.7), size=len(prior))
    return pv.Secret.from_joint((prior.probabilities[:, None] * onward).T)


def random_statistics(rng: np.random.Generator, d: int) -> Array:
    """A random matrix, of any rank: one row, running totals, margins, repeated rows and indicators among them."""
    scale, m = 10.0 ** rng.integers(-2, 4), int(rng.integers(1, d + 1))
    kind = rng.integers(6)
    if kind == 0:
        return scale * rng.normal(size=(1, d))
    if kind == 1:
        return np.tri(d)
    if kind == 2 and d % 2 == 0:  # the margins of a table of two rows
        return np.array([*np.kron(np.eye(2), np.ones(d // 2)), *np.tile(np.eye(d // 2), 2)])
    if kind == 2:  # all ranges of neighbouring values
        return np.array(
            [(np.arange(d) >= i) * (np.arange(d) <= j) * 1.0 for i in range(d) for j in range(i, d)]
        )
    if kind == 3:
        rows = rng.integers(0, 2, (m, d)) + 0.0
        rows[0, 0] += 1.5  # so that they are not the same for all
        return rows
    if kind == 4:
        return scale * rng.normal(size=(m, 1)) * rng.normal(size=(1, d)) + rng.normal(size=(m, 1))
    return scale * (rng.normal(size=(m, d)) + 5.0)


def pairwise_rows(rows: Array, level: float) -> Array:
    """`e**level row' - row` for all pairs of different rows."""
    return np.array([math.exp(level) * b - a for a, b in itertools.permutations(rows, 2)])


def lift_rows(rows: Array, priors: Array, budget: pv.Budget) -> Array:
    """`row - lo p` and `hi p - row` for all rows and priors."""
    found = [row - budget.lo * p for row in rows for p in priors]
    if math.isfinite(budget.hi):
        found += [budget.hi * p - row for row in rows for p in priors]
    return np.array(found)


def of_value(rng: np.random.Generator) -> Instance:
    d, budget = int(rng.integers(3, 8)), pv.Budget(float(rng.choice([0.3, 1.0, 2.0])))
    prior = random_prior(rng, d)
    rows = lift_rows(np.eye(d), prior.vertices(), budget)
    return Instance(prior, budget, random_statistics(rng, d), None, pv.LIP(), rows)


def of_value_asymmetric(rng: np.random.Generator) -> Instance:
    budget = random_budget(rng)
    prior = random_prior(rng, int(rng.integers(3, 8)))
    rows = lift_rows(np.eye(len(prior)), prior.vertices(), budget)
    return Instance(prior, budget, random_statistics(rng, len(prior)), None, pv.LIP(), rows)


def of_ldp(rng: np.random.Generator) -> Instance:
    d, level = int(rng.integers(3, 6)), float(rng.choice([0.3, 1.0, 2.0]))
    rows = pairwise_rows(np.eye(d), level)
    return Instance(random_prior(rng, d), pv.Budget(level), random_statistics(rng, d), None, pv.LDP(), rows)


def of_di(rng: np.random.Generator) -> Instance:
    """Differential identifiability: the prior alone has a level."""
    d = int(rng.integers(3, 6))
    prior = random_prior(rng, d)
    P = prior.probabilities
    level = math.log(P.max() / P.min()) + float(rng.choice([0.3, 1.0, 2.0]))
    rows = pairwise_rows(np.diag(P), level)
    return Instance(prior, pv.Budget(level), random_statistics(rng, d), None, pv.DI(), rows)


def of_pufferfish(rng: np.random.Generator) -> Instance:
    """One secret or two possible ones, and all pairs of its values or one of them."""
    d, level = int(rng.integers(3, 6)), float(rng.choice([0.3, 1.0, 2.0]))
    prior = random_prior(rng, d)
    secrets = [random_secret(rng, prior) for _ in range(int(rng.integers(1, 3)))]
    pair = rng.integers(3) == 0
    chosen = [s.rows[:2] if pair else s.rows for s in secrets]
    rows = np.vstack([pairwise_rows(part, level) for part in chosen])
    notion = pv.Pufferfish(pairs=[(0, 1)]) if pair else pv.Pufferfish()
    return Instance(prior, pv.Budget(level), random_statistics(rng, d), secrets, notion, rows)


def of_latent_secret(rng: np.random.Generator) -> Instance:
    d, budget = int(rng.integers(3, 6)), random_budget(rng)
    prior = random_prior(rng, d)
    secret = random_secret(rng, prior, int(rng.integers(2, 4)))
    rows = lift_rows(secret.rows, prior.vertices(), budget)
    return Instance(prior, budget, random_statistics(rng, d), secret, pv.LIP(), rows)


def of_priors(rng: np.random.Generator) -> Instance:
    d, budget = int(rng.integers(3, 5)), random_budget(rng)
    known = pv.PriorSet([random_prior(rng, d) for _ in range(int(rng.integers(2, 4)))])
    rows = lift_rows(np.eye(d), known.vertices(), budget)
    return Instance(known, budget, random_statistics(rng, d), None, pv.LIP(), rows)


def of_polytope(rng: np.random.Generator) -> Instance:
    """Intervals of probabilities, or a ball around a prior."""
    d, budget = int(rng.integers(3, 5)), pv.Budget(float(rng.choice([0.3, 1.0, 2.0])))
    centre = random_prior(rng, d)
    p = centre.probabilities
    ball = rng.integers(2) and p.min() > 0.06
    known = pv.PriorSet.ball(centre, 0.1) if ball else pv.PriorSet.interval(0.8 * p, np.minimum(1, 1.3 * p))
    rows = lift_rows(np.eye(d), known.vertices(), budget)
    return Instance(known, budget, random_statistics(rng, d), None, pv.LIP(), rows)


SETTINGS: dict[str, Callable[[np.random.Generator], Instance]] = {
    "LIP": of_value,
    "LIP, asymmetric budgets": of_value_asymmetric,
    "LIP, latent secrets": of_latent_secret,
    "LIP, finite sets of priors": of_priors,
    "LIP, polytopes of priors": of_polytope,
    "LDP": of_ldp,
    "Pufferfish": of_pufferfish,
    "DI": of_di,
}


# -- errors, from their definitions --------------------------------------------------------------------------


def lean_error(Q: Array, W: Array, p: Array) -> float:
    """The mean square error of posterior means: that of the prior, less the spread of the posterior means."""
    joint = p[:, None] * Q[:, p @ Q > 0]
    law = joint.sum(axis=0)
    centred = W - (W @ p)[:, None]
    return float(p @ (centred**2).sum(axis=0) - ((centred @ joint) ** 2 / law).sum())


def unbiased_error(Q: Array, W: Array, p: Array) -> float:
    """N times the variance of the best unbiased estimates, summed; for a channel with independent rows."""
    J = (Q / (p @ Q)) @ Q.T
    return float(np.trace(W @ np.linalg.solve(J, W.T)) - ((W @ p) ** 2).sum())


def unbiased_errors_at(Q: Array, W: Array, reading_prior: Array, priors: Array) -> Array:
    """N times the variance under each prior, summed, of the scores that are best under the reading prior."""
    Q = Q[:, Q.max(axis=0) > 0]
    J = (Q / (reading_prior @ Q)) @ Q.T
    scores = W @ np.linalg.pinv(J, rcond=1e-13) @ (Q / (reading_prior @ Q))
    assert np.abs(scores @ Q.T - W).max() <= 1e-6 * np.abs(W).max() * max(1.0, np.abs(scores).max()), "biased"
    return np.asarray(priors @ Q @ (scores**2).sum(axis=0) - ((priors @ W.T) ** 2).sum(axis=1))


def worst_unbiased_error(Q: Array, W: Array, reading_prior: Array, known: pv.PriorSet) -> float:
    """The largest variance under a prior of the set, which over a polytope is a concave maximum."""
    corners = known.vertices()
    if known.members:
        return float(unbiased_errors_at(Q, W, reading_prior, corners).max())
    at_corners = unbiased_errors_at(Q, W, reading_prior, corners)
    linear = at_corners + ((corners @ W.T) ** 2).sum(
        axis=1
    )  # the second moments of the scores at the corners
    scale = float(np.abs(linear).max())

    def loss(shares: Array) -> tuple[float, Array]:
        means = W @ (shares @ corners)
        slopes = linear - 2 * corners @ W.T @ means
        return -float(shares @ linear - means @ means) / scale, -slopes / scale

    k = len(corners)
    optimum = scipy.optimize.minimize(
        loss, np.full(k, 1 / k), jac=True, bounds=[(0, 1)] * k, method="SLSQP",
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1, "jac": lambda s: np.ones(k)},
        options={"maxiter": 300, "ftol": 1e-14},
    )  # fmt: skip
    return max(float(at_corners.max()), -scale * float(optimum.fun))


# -- the best channel ----------------------------------------------------------------------------------------


def rays(A: Array, P: Array) -> Array:
    """All vertices of `{r >= 0, A r >= 0, P r = 1}`: every choice of tight rows, kept if it is allowed."""
    d = len(P)
    rows = np.vstack([A, np.eye(d)])
    rows = rows[np.abs(rows).max(axis=1) > 0]
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    rows = rows[np.unique(np.round(rows, 13), axis=0, return_index=True)[1]]
    chosen = np.array(list(itertools.combinations(range(len(rows)), d - 1)), dtype=int).reshape(-1, d - 1)
    systems = np.concatenate([rows[chosen], np.broadcast_to(P, (len(chosen), 1, d))], axis=1)
    solvable = np.abs(np.linalg.det(systems)) > 1e-12
    side = np.broadcast_to(np.eye(d)[-1][:, None], (int(solvable.sum()), d, 1))
    found = np.linalg.solve(systems[solvable], side)[:, :, 0]
    found[np.abs(found) < 1e-12] = 0.0  # a tight `r >= 0`
    kept = found[(found @ rows.T >= -1e-11 * (np.abs(found) @ np.abs(rows).T)).all(axis=1)]
    return kept[np.unique(np.round(kept, 10), axis=0, return_index=True)[1]]


def least_error(columns: Array, W: Array, priors: Array) -> tuple[float, Array]:
    """The least worst error over a finite set of priors, and its channel: a linear programme."""
    gains, idle = [], []
    for p in priors:
        centred = W - (W @ p)[:, None]
        gains.append((((columns * p) @ centred.T) ** 2).sum(axis=1) / (columns @ p))
        idle.append(float(p @ (centred**2).sum(axis=0)))
    scale = max(idle)
    solved = scipy.optimize.linprog(
        np.append(np.zeros(len(columns)), 1.0),
        A_ub=np.hstack([-np.array(gains) / scale, -np.ones((len(gains), 1))]),
        b_ub=-np.array(idle) / scale,
        A_eq=np.hstack([columns.T, np.zeros((columns.shape[1], 1))]),
        b_eq=np.ones(columns.shape[1]),
        bounds=[(0, None)] * len(columns) + [(None, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0
    return scale * float(solved.fun), (columns * solved.x[:-1, None]).T


def least_error_of_hull(columns: Array, W: Array, known: pv.PriorSet) -> float:
    """The same over the hull of a set: the worst prior of each channel is added until it is no news."""
    corners = known.vertices()
    priors = np.vstack([corners, corners.mean(axis=0)])
    nothing = np.ones((len(corners[0]), 1))
    no_report = lean_error(nothing, W, worst_mixture(nothing, W, corners))
    for _ in range(100):
        best, Q = least_error(columns, W, priors)
        worst = worst_mixture(Q, W, corners)
        # where almost nothing is left of the error, rounding decides: then relative to a little of it
        if lean_error(Q, W, worst) - best <= 1e-8 * max(best, 1e-3 * no_report):
            return best
        priors = np.vstack([priors, worst])
    raise AssertionError("cutting planes did not converge")


def worst_mixture(Q: Array, W: Array, corners: Array) -> Array:
    """The mixture of some priors with the largest error, which is concave: its slope is the risk of its decoder."""
    Q = Q[:, Q.max(axis=0) > 1e-12]
    scale = float(np.ptp(W, axis=1) @ np.ptp(W, axis=1))

    def loss(shares: Array) -> tuple[float, Array]:
        p = shares @ corners
        means = W @ (p[:, None] * Q) / (p @ Q)
        risk = (Q * ((W[:, :, None] - means[:, None, :]) ** 2).sum(axis=0)).sum(axis=1) / scale
        return -float(p @ risk), -corners @ risk

    k = len(corners)
    found = scipy.optimize.minimize(
        loss, np.full(k, 1 / k), jac=True, bounds=[(0, 1)] * k, method="SLSQP",
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1, "jac": lambda s: np.ones(k)},
        options={"maxiter": 300, "ftol": 1e-14},
    )  # fmt: skip
    shares = np.maximum(found.x, 0)
    return shares @ corners / shares.sum()


def least_variance(columns: Array, W: Array) -> float:
    """The least variance of `W @ shares` over all mixtures of `columns`, from below: a barrier method on the dual.

    With `T = W V`, `z = V' (r - 1)` and any `M` and `nu`, no mixture has a variance below
    `tr(T M)^2 / max(|M' z|^2 - nu . z)`. The best ones minimise `t - 2 tr(T M)` subject to
    `s = t + nu . z - |M' z|^2 >= 0` for all columns: Newton steps on this less `mu sum(log s)`, for smaller and
    smaller `mu`, end within `mu` times the number of columns.
    """
    V = np.linalg.svd(np.ones((1, columns.shape[1])))[2][1:].T
    _, sizes, turned = np.linalg.svd(W @ V)
    T = (sizes[:, None] * turned[: len(sizes)])[sizes > 1e-10 * sizes[0]]
    Z = (columns - 1) @ V
    K, (k, n) = len(Z), T.shape
    weights = scipy.optimize.linprog(  # of a channel, the least one as large as can be
        np.append(np.zeros(K), -1.0),
        A_ub=np.hstack([-np.eye(K), np.ones((K, 1))]),
        b_ub=np.zeros(K),
        A_eq=np.hstack([np.vstack([Z.T, np.ones(K)]), np.zeros((n + 1, 1))]),
        b_eq=np.eye(n + 1)[-1],
    ).x[:-1]
    root = np.linalg.inv(
        np.linalg.cholesky(Z.T @ (Z * weights[:, None]))
    ).T  # its information is the identity
    Z, T = Z @ root, T @ root
    unit = float((T**2).sum())
    T = T / math.sqrt(unit)
    cost = np.concatenate([-2 * T.T.ravel(), np.zeros(n), [1.0]])
    both = (Z[:, :, None] * Z[:, None, :]).reshape(K, -1)

    def slacks(x: Array) -> tuple[Array, Array]:
        X = Z @ x[: n * k].reshape(n, k)
        return X, x[-1] + Z @ x[n * k : -1] - (X**2).sum(axis=1)

    def barrier(x: Array, mu: float) -> float:
        s = slacks(x)[1]
        return float(cost @ x - mu * np.log(s).sum()) if s.min() > 0 else INF

    x = np.concatenate([T.T.ravel(), np.zeros(n + 1)])
    x[-1], mu = 1 - 2 * slacks(x)[1].min(), 1.0
    while mu * K > 1e-9:
        mu /= 4
        for _ in range(100):
            X, s = slacks(x)
            G = (
                np.hstack([-2 * (Z[:, :, None] * X[:, None, :]).reshape(K, -1), Z, np.ones((K, 1))])
                / s[:, None]
            )
            H = G.T @ G
            H[: n * k, : n * k] += 2 * np.kron((both / s[:, None]).sum(axis=0).reshape(n, n), np.eye(k))
            slope = cost / mu - G.sum(axis=0)
            scale = 1 / np.sqrt(np.diag(H))
            scaled = H * np.outer(scale, scale) + 1e-13 * np.eye(
                len(H)
            )  # it may be singular but for rounding
            step = -scale * np.linalg.solve(scaled, scale * slope)
            now, length, decrement = barrier(x, mu), 1.0, float(-slope @ step)
            while barrier(x + length * step, mu) > now - 0.1 * length * mu * decrement and length > 1e-6:
                length /= 2
            x = x + length * step
            if decrement < 0.01:
                break
    M, nu = x[: n * k].reshape(n, k), x[n * k : -1]
    return unit * float((T.T * M).sum()) ** 2 / float((((Z @ M) ** 2).sum(axis=1) - Z @ nu).max())


def best_of_all(instance: Instance, plan: pv.Plan) -> float:
    """The least error of all channels that the problem allows."""
    columns, W, known = rays(instance.A, plan.reference.probabilities), instance.W, instance.prior
    if plan.query.unbiased and isinstance(known, pv.PriorSet):
        priors = [plan.reference.probabilities, *known.vertices()]
        return max(bound_at(instance, p) for p in priors if p.min() > 0)
    if plan.query.unbiased:
        return least_variance(columns, W)
    if isinstance(known, pv.Prior):
        return least_error(columns, W, known.probabilities[None])[0]
    return least_error_of_hull(columns, W, known)


def bound_at(instance: Instance, middle: Array) -> float:
    """A bound on the worst variance over a set, from the least variance at a weighted mean of its members.

    The weighted mean of their errors is that of the middle, less what the means of the statistics differ. A polytope
    holds the middle itself.
    """
    least, W = least_variance(rays(instance.A, middle), instance.W), instance.W
    if not instance.prior.members:
        return least
    members = np.array([p.probabilities for p in instance.prior.members])
    weights = scipy.optimize.nnls(members.T, middle)[0]
    return least - float(weights @ ((members @ W.T - W @ middle) ** 2).sum(axis=1))


# -- channels that try to beat a bound -----------------------------------------------------------------------


def valid_channel(Q: Array, P: Array, A: Array) -> Array:
    """`Q` pulled towards its output law, as far as needed to meet `A @ column >= 0`."""
    law = P @ Q
    Q, law = Q[:, law > 0], law[law > 0]
    moved = Q / law - 1
    room, change = A.sum(axis=1)[:, None], -A @ moved
    share = min(1.0, float(np.divide(room, change, out=np.ones_like(change), where=change > 0).min()))
    return (1 + share * moved) * law


def least_found(instance: Instance, plan: pv.Plan, rng: np.random.Generator) -> float:
    """The least error of random channels, of randomised response, and of small changes to these and to the plan."""
    W, A, P, known = instance.W, instance.A, plan.reference.probabilities, instance.prior
    d, steps = (
        len(P),
        60 if plan.query.unbiased or isinstance(known, pv.Prior) else 5,
    )  # the worst prior of a hull takes long

    def error(Q: Array) -> float:
        if plan.query.unbiased and isinstance(known, pv.PriorSet):
            return worst_unbiased_error(Q, W, P, known)
        if plan.query.unbiased:
            return unbiased_error(Q, W, P)
        if isinstance(known, pv.Prior):
            return lean_error(Q, W, known.probabilities)
        return lean_error(Q, W, worst_mixture(Q, W, known.vertices()))

    starts = [rng.dirichlet(np.full(int(rng.integers(d, 2 * d)), 0.3), size=d) for _ in range(4)]
    starts = [valid_channel(Q, P, A) for Q in [*starts, np.eye(d)]]
    least = min(map(error, starts))
    own = plan.channel.matrix
    if plan.query.unbiased:  # it may tell nothing of what is not asked for
        own = np.hstack([0.9 * own, 0.1 * starts[-1]])
    for Q in (min(starts, key=error), own):
        size, reached = 0.3, error(Q)
        for _ in range(steps):
            step = np.maximum(Q * (1 + size * rng.normal(size=Q.shape)), 1e-12)
            trial = valid_channel(step / step.sum(axis=1, keepdims=True), P, A)
            now = error(trial)
            if now < reached:
                Q, reached = trial, now
            else:
                size = max(0.9 * size, 1e-4)
        least = min(least, reached)
    return least


def certified(plan: pv.Plan) -> None:
    """Everything a plan says of itself holds, checked again from its integers."""
    found = plan.mechanism.lifts(plan.prior, plan.secret, plan.notion)
    assert keeps_budget(found, plan.budget, plan.notion)
    assert plan.lower_bound <= plan.expected_mse
    assert plan.expected_mse <= plan.no_report * (1 + 1e-9)
    assert plan.efficiency <= 1
    if isinstance(plan.mechanism, Table):
        again = pv.certify_table(
            plan.mechanism.weights, plan.prior, plan.budget, secret=plan.secret, notion=plan.notion
        )
        assert again == plan.certificate
