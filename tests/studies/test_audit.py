"""Levels from samples: the ranges hold as often as they say, and a broken sampler is found."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from priorveil import Budget, Histogram, Prior, design, leakage
from priorveil.channels import Channel
from priorveil.studies import published
from priorveil.studies.audit import audit_plan, count_reports, sampled_leakage
from terminal import refused, run

PRIOR = Prior([0.5, 0.3, 0.15, 0.05])


def drawn(channel: Channel, samples: int, rng: np.random.Generator) -> np.ndarray:
    return rng.multinomial(samples, channel.matrix)


def test_ranges_hold_as_often_as_they_say() -> None:
    """Ranges at 90 % for 300 random channels: 30 misses are expected at most, 45 have a chance below 0.3 %."""
    rng = np.random.default_rng(4)
    misses = 0
    for _ in range(300):
        Q = Channel(rng.dirichlet(np.ones(3), 4))
        true, found = leakage(Q, PRIOR), sampled_leakage(drawn(Q, 2000, rng), PRIOR, 0.9)
        pairs = (
            (found.lip_lower, true.lip_lower),
            (found.lip_upper, true.lip_upper),
            (found.lip, true.lip),
            (found.ldp, true.ldp),
        )
        misses += not all(r.low <= level <= r.high for r, level in pairs)
    assert misses <= 45


def test_ranges_close_in_on_the_levels() -> None:
    rng = np.random.default_rng(5)
    Q = design(PRIOR, 1.0, Histogram(), method="columns").channel
    widths = [
        (found := sampled_leakage(drawn(Q, n, rng), PRIOR)).lip_upper.high - found.lip_upper.low
        for n in (10**4, 10**6, 10**8)
    ]
    assert widths[0] > 5 * widths[1] > 25 * widths[2]


@pytest.mark.parametrize("method", ["columns", "arc", "unary", "subset", "hashing"])
def test_certified_plans_are_never_refuted(method: str) -> None:
    plan = design(PRIOR, 1.0, Histogram(), method=method)
    found = audit_plan(plan, 200_000, rng=np.random.default_rng(6))
    assert not found.refutes(plan.budget)
    assert 0.4 < found.lip.low <= 1.0, "and the samples see most of what is there"
    assert found.has_upper_bounds == (method != "arc") == math.isfinite(found.lip_upper.high)


def test_a_closed_form_that_breaks_its_budget_is_found() -> None:
    """The paper's formula for a small prior, as printed, sampled a million times."""
    prior = Prior([0.98, 0.01, 0.01])
    printed = published.rr_lip(prior, 1.0)
    true = printed.leakage.lip
    assert true > 1.01
    found = sampled_leakage(drawn(printed.channel, 10**6, np.random.default_rng(7)), prior)
    assert found.refutes(Budget(1.0, 1.0)) and found.lip.low <= true <= found.lip.high


def test_a_sampler_with_a_slip_is_found() -> None:
    """One value in a hundred sent as it is: no certificate sees that, an audit does."""
    plan = design(PRIOR, 0.5, Histogram(), method="columns")
    rng = np.random.default_rng(8)

    def leaky(codes: np.ndarray) -> np.ndarray:
        slip = rng.random(len(codes)) < 0.02
        return np.where(slip, plan.channel.shape[1] + codes, plan.mechanism.sample(codes, source))

    from priorveil.mechanisms.randomness import as_source

    source = as_source(rng)
    kinds = plan.channel.shape[1] + len(PRIOR)
    counts = count_reports(leaky, len(PRIOR), 50_000, lambda reports: reports.astype(np.int64), kinds)
    assert sampled_leakage(counts, PRIOR).refutes(plan.budget)


# -- the command -------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A prior, a plan for it, and reports of a sampler that breaks a budget of 1/2."""
    prior = Prior({"a": 0.7, "b": 0.3})
    (tmp_path / "prior.csv").write_text("a,0.7\nb,0.3\n")
    design(prior, 1.0, Histogram()).save(tmp_path / "plan.json")
    rng = np.random.default_rng(9)
    lines = [f"{x},{'ab'[(x == 'b') ^ bool(rng.random() < 0.2)]}" for x in "ab" * 3000]
    (tmp_path / "seen.csv").write_text("value,report\n" + "\n".join(lines) + "\n")
    return tmp_path


def test_the_command_refutes_what_it_has_seen(files: Path) -> None:
    command = ("audit", files / "seen.csv", files / "prior.csv", "--observed", "--epsilon")
    status, out, _ = run(*command, 0.5)
    assert status == 1 and "does not hold" in out
    status, out, _ = run(*command, 2)
    assert status == 0 and "only a certificate proves it" in out


def test_a_machine_reads_what_is_infinite(files: Path) -> None:
    (files / "seen.csv").write_text("value,report\n" + "a,1\nb,2\n" * 3)
    command = ("audit", files / "seen.csv", files / "prior.csv", "--observed", "--lower", 1, "--json")
    status, out, _ = run(*command)
    record = json.loads(out)
    assert (status, record["verdict"]) == (0, {"lower": 1.0, "upper": "inf", "refuted": False})
    assert record["ldp"]["high"] == "inf" and record["ldp"]["low"] >= 0


def test_the_command_runs_a_plan(files: Path) -> None:
    command = ("audit", files / "plan.json", files / "prior.csv", "--samples", 20_000, "--epsilon", 1)
    record = json.loads(run(*command, "--json")[1])
    assert record["samples"] == 40_000 and record["has_upper_bounds"] and not record["verdict"]["refuted"]
    assert record["lip"]["low"] <= 1 <= record["lip"]["high"] + 0.05
    assert run(*command)[0] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--observed", "--samples", 10], "samples measure LIP"),
        (["--observed", "--notion", "ldp"], "samples measure LIP"),
        (["--samples", 10], "seen.csv"),
    ],
)
def test_the_command_says_what_is_wrong(files: Path, more: list[object], message: str) -> None:
    assert message in refused("audit", files / "seen.csv", files / "prior.csv", *more)


def test_a_value_that_the_prior_does_not_have(files: Path) -> None:
    (files / "seen.csv").write_text("value,report\nz,1\n")
    assert "row 1: the prior has no such value" in refused(
        "audit", files / "seen.csv", files / "prior.csv", "--observed"
    )
