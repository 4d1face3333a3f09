"""The levels of plans whose channel is too large to write out, and the memory that large plans take."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import TooLarge
from priorveil.mechanisms import bit_reports, hashing
from priorveil.notions import leakage_bounds
from priorveil.words.levels import leakage_rows
from refusals import raises
from sample_plans import NAMES, named_plan

LEVELS = ("lip_lower", "lip_upper", "ldp", "pufferfish", "di", "mil", "mip")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "wide"])
def test_levels_are_those_of_the_channel(name: str) -> None:
    plan = named_plan(name)
    found, measured = plan.levels, pv.leakage(plan.leakage_channel, plan.prior)
    levels = [[getattr(each, level) for level in LEVELS] for each in (found, measured)]
    assert levels[0] == pytest.approx(levels[1], rel=1e-6, abs=1e-9)
    assert found.bounds == (("MIL", "MIP") if name in ("arc", "arc_pool") else ())


def random_plans(method: str) -> Iterator[pv.Plan]:
    """Plans at random levels, of this method for the value itself, or of tables for more than that."""
    rng = np.random.default_rng(7)
    for size in (2, 3, 5) * 3:
        prior, epsilon = pv.Prior(rng.dirichlet(np.ones(size)) * 0.98 + 0.02 / size), rng.uniform(0.2, 6)
        if method in ("arc", "columns", "subset", "unary"):
            yield pv.design(prior, epsilon, pv.Histogram(), method=method, rounds=3)
        elif method == "set of priors":
            yield pv.design(pv.PriorSet.ball(prior, 0.01), epsilon, pv.Histogram(), rounds=3)
        elif method == "two sides":
            yield pv.design(prior, pv.Budget(epsilon, epsilon / 2), pv.Histogram(), rounds=3)
        elif method == "distances":
            apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) + np.eye(size)
            yield pv.design(prior, epsilon, pv.Distribution(), notion=pv.PairwiseLDP(apart), rounds=3)
        else:
            T = rng.dirichlet(np.ones(size), size=3)
            known = pv.Prior(rng.dirichlet(np.ones(3)) @ T)
            yield pv.design(known, epsilon, pv.Histogram(), secret=pv.Secret(T), rounds=3)


METHODS = ("arc", "columns", "subset", "unary", "set of priors", "two sides", "distances", "latent secret")


@pytest.mark.parametrize("method", METHODS)
def test_a_certified_plan_holds_by_its_own_notion(method: str) -> None:
    """By its integers: in floats some would be above their level by a rounding error."""
    for plan in random_plans(method):
        channel, notion, proven = plan.channel, plan.notion, plan.certificate.level
        assert notion.holds(channel, plan.prior, plan.budget, plan.secret)
        assert notion.epsilon(channel, plan.prior, plan.secret) == proven
        assert not notion.holds(channel, plan.prior, 0.99 * proven, plan.secret)
        if not notion.bounds_lifts:
            assert notion.holds(channel, None, plan.budget)


def test_levels_of_arcs_under_another_prior_are_those_of_reports() -> None:
    """The channel of arcs averages over reports: its columns tell less than a report."""
    plan = pv.design(pv.Prior.zipf(30), 1.0, pv.Histogram(), method="arc")
    other = pv.Prior.uniform(30)
    level = pv.LIP().epsilon(plan.channel, other)
    assert level == pv.LIP().epsilon(plan.leakage_channel, other)
    assert level > pv.LIP().epsilon(pv.Channel(plan.channel.matrix), other) + 0.05
    assert not pv.LIP().holds(plan.channel, pv.PriorSet([plan.prior, other]), 0.99 * level)


def test_a_plan_whose_channel_was_used_can_be_pickled() -> None:
    plan = named_plan("columns")
    again = pickle.loads(pickle.dumps((plan.channel, plan)))[1]
    assert again.channel == plan.channel and again.notion.holds(again.channel, again.prior, again.budget)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "wide"])
def test_levels_from_the_certificate_are_upper_bounds(name: str) -> None:
    plan = named_plan(name)
    proven, measured = plan.certificate, pv.leakage(plan.leakage_channel, plan.prior)
    bounds = leakage_bounds(proven.lip_lower, proven.lip_upper, proven.ldp, plan.prior)
    assert all(getattr(measured, level) <= getattr(bounds, level) + 1e-9 for level in LEVELS)
    assert all(word in str(bounds) for word in ("MIL", "MIP", "DI", "(an upper bound)"))


def test_bounds_are_reached_by_lifts_at_both_ends() -> None:
    channel, prior = pv.Channel([[0.75, 0.25], [0.25, 0.75]]), pv.Prior([0.5, 0.5])
    found = pv.leakage(channel, prior)
    bounds = leakage_bounds(found.lip_lower, found.lip_upper, found.ldp, prior)
    assert (bounds.mil, bounds.mip, bounds.di) == pytest.approx((found.mil, found.mip, found.di))


@pytest.mark.parametrize("name", ["unary", "subset"])
def test_levels_of_bits_need_no_list_of_reports(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = named_plan(name)
    measured = pv.leakage(plan.channel, plan.prior)
    monkeypatch.setattr(bit_reports, "MOST_LISTED", 2)
    found = plan.mechanism.levels(plan.prior, None, plan.certificate)
    exact = [level for level in LEVELS if level != "mip"]
    assert [getattr(found, n) for n in exact] == pytest.approx(
        [getattr(measured, n) for n in exact], rel=1e-6
    )
    assert found.bounds == ("MIP",) and measured.mip <= found.mip < 1.4 * measured.mip


def test_hashing_in_blocks_is_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = pv.design(pv.Prior.uniform(30), 1.0, pv.Histogram(), method="hashing")
    tally = plan.tally(plan.privatize(np.arange(30).repeat(20), np.random.default_rng(3)))
    whole = [plan.estimate(tally, method) for method in ("mmse", "unbiased")]
    monkeypatch.setattr(hashing, "_BLOCK", 1)
    for one, method in zip(whole, ("mmse", "unbiased"), strict=True):
        found = plan.estimate(tally, method)
        assert found.values == pytest.approx(one.values) and found.std_error == pytest.approx(one.std_error)
    monkeypatch.setattr(hashing, "MOST_MEASURED", 1)
    assert plan.mechanism.levels(plan.prior, None, plan.certificate).bounds == ("MIL", "MIP", "DI")


@pytest.mark.parametrize(
    ("method", "query"), [("arc", pv.Histogram()), ("unary", pv.Guess()), ("subset", pv.Distribution())]
)
def test_the_channel_of_a_large_plan_is_refused_with_advice(method: str, query: pv.queries.Query) -> None:
    plan = pv.design(pv.Prior.zipf(18_700), 1.0, query, method=method)
    for channel in ("channel", "leakage_channel"):
        with raises(TooLarge, hint="plan.levels"):
            getattr(plan, channel)


@pytest.mark.parametrize("method", ["columns", "unary"])
def test_tables_of_levels_say_which_rest_on_an_assumed_prior(method: str) -> None:
    """So does the ledger; LDP, MIL and Pufferfish of the value itself need no prior."""
    for prior in (pv.Prior.uniform(40), pv.Prior.uniform(40, assumed=False)):
        plan = pv.design(prior, 1.0, pv.Histogram(), method=method, rounds=5)
        ledger = pv.Ledger(prior)
        ledger.spend(plan)
        for levels in (plan.levels, pv.leakage(np.eye(40), prior)):
            conditional = {name for name, _, meaning in leakage_rows(levels) if ONLY_IF_RIGHT in meaning}
            assert conditional == ({"LIP", "DI", "MIP"} if prior.assumed else set())
            assert (ONLY_IF_RIGHT in str(levels)) == (ONLY_IF_RIGHT in levels._repr_html_()) == prior.assumed
        assert (ONLY_IF_RIGHT in ledger._repr_html_()) == prior.assumed


INSPECT = """
import resource, sys
import numpy as np
import priorveil as pv
from priorveil.cli import run
if sys.platform == "linux":
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
prior = pv.Prior.zipf(50_000)
for method, query in (("arc", pv.Histogram()), ("unary", pv.Guess()), ("subset", pv.Distribution())):
    pv.design(prior, 1.0, query, method=method).save("plan.json")
    assert run(["inspect", "plan.json"]) == 0
    plan = pv.Plan.load("plan.json")
    assert "50,000" in str(plan) and len(repr(plan)) < 200
    estimate = plan.estimate(plan.tally(plan.privatize(np.arange(200) % 50)))
    assert len(str(estimate).splitlines()) < 100
if sys.platform == "linux":  # getrusage would count the process that started this one
    peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) >> 10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
print("peak", peak)
"""

ONLY_IF_RIGHT = "only if the assumed prior is right"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no module resource")
def test_inspecting_50_000_values_takes_less_than_a_gigabyte(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", INSPECT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).count("(an upper bound)") == 3 + 1 + 1
    assert int(done.stdout.split()[-1]) < 1000
