"""Each notion against its definition, read off the paper entry by entry."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import close
from priorveil.channels import Channel
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.mechanisms import Unary
from priorveil.notions import DI, LDP, LIP, MIL, MIP, ComparedRows, Cone, Leakage, Pufferfish, leakage
from priorveil.priors import Budget, Prior, PriorSet, Secret
from priorveil.words.levels import leakage_rows
from refusals import raises
from strategies import channels, prior_sets, priors, secrets, sizes

CLEAR = Channel([[0.75, 0.25], [0.25, 0.75]])
EVEN = Prior([0.5, 0.5])


def ratio(top: float, bottom: float) -> float:
    """`log(top / bottom)`, infinite where the bottom is zero; nothing where both are."""
    if top == 0:
        return -math.inf
    return math.inf if bottom == 0 else math.log(top / bottom)


@given(st.data())
def test_lip_by_definition(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior))).drop_unused()
    secret = data.draw(st.none() | secrets(prior))
    rows = np.eye(len(prior)) if secret is None else secret.rows
    lower = upper = 0.0
    for row, y in product(rows, range(channel.shape[1])):
        likelihood, law = float(row @ channel.matrix[:, y]), float(channel.output_law(prior)[y])
        lower, upper = max(lower, ratio(law, likelihood)), max(upper, ratio(likelihood, law))
    found = LIP().sides(channel, prior, secret)
    assert all(close(one, other) for one, other in zip(found, (lower, upper), strict=True))


@given(st.data())
def test_ldp_and_di_by_definition(data):
    prior = data.draw(priors())
    Q = data.draw(channels(len(prior))).drop_unused().matrix
    joint = Q * prior.probabilities[:, None]
    for level, M in ((LDP().epsilon(Channel(Q)), Q), (DI().epsilon(Channel(Q), prior), joint)):
        expected = max(ratio(a, b) for column in M.T for a, b in product(column, repeat=2))
        assert close(level, max(0.0, expected))


@given(st.data())
def test_mip_and_mil_by_definition(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior))).drop_unused()
    joint, law = prior.probabilities[:, None] * channel.matrix, channel.output_law(prior)
    marginals = np.outer(prior.probabilities, law)
    nats = sum(j * math.log(j / m) for j, m in zip(joint.ravel(), marginals.ravel(), strict=True) if j > 0)
    assert MIP().epsilon(channel, prior) == pytest.approx(max(0.0, nats), abs=1e-12)
    assert MIL().epsilon(channel) == pytest.approx(math.log(sum(max(c) for c in channel.matrix.T)), abs=1e-12)


@given(st.data())
def test_pufferfish_by_definition(data):
    prior = data.draw(priors())
    channel, secret = data.draw(channels(len(prior))), data.draw(secrets(prior))
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, len(secret) - 1)] * 2), max_size=3))
    M = secret.rows @ channel.drop_unused().matrix
    expected = max(
        (abs(ratio(a, b)) for g, h in pairs for a, b in zip(M[g], M[h], strict=True) if a or b), default=0
    )
    assert close(Pufferfish(pairs).epsilon(channel, prior, secret), expected)


@given(st.data())
def test_a_set_is_as_bad_as_its_worst_corner(data):
    """Exact, not sampled: for columns that every corner of the set can see."""
    d = data.draw(st.integers(2, 4))
    known, channel = data.draw(prior_sets(d)), data.draw(channels(d, positive=True))
    Q, corners = channel.matrix, known.vertices()
    lifts = Q[None] / (corners @ Q)[:, None, :]
    lower, upper = LIP().sides(channel, known)
    assert lower == pytest.approx(max(0, -math.log(lifts.min())), abs=1e-9)
    assert upper == pytest.approx(max(0, math.log(lifts.max())), abs=1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = corners[:, :, None] * Q[None]
        worst = np.nanmax(joint[:, :, None, :] / joint[:, None, :, :])
    found = DI().epsilon(channel, known)
    assert found == pytest.approx(math.log(worst), abs=1e-6) or min(found, math.log(worst)) > 15


def test_levels_by_hand():
    found = leakage(CLEAR, EVEN)
    assert found.lip_lower == math.log(2)
    assert found.lip_upper == pytest.approx(math.log(1.5))
    assert found.lip == found.lip_lower
    assert found.ldp == found.di == found.pufferfish == pytest.approx(math.log(3))
    assert found.mil == pytest.approx(math.log(1.5))
    assert found.mip == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))


def test_infinite_levels():
    truth = Channel.identity(3)
    found = leakage(truth, Prior.uniform(3))
    assert found.lip_lower == found.ldp == found.di == math.inf
    assert found.lip_upper == found.mil == pytest.approx(math.log(3))
    assert "infinite" in str(found)
    assert LIP().holds(truth, Prior.uniform(3), Budget(math.inf, 1.1))
    assert not LIP().holds(truth, Prior.uniform(3), Budget(math.inf, 1.0))


def test_a_zero_entry_is_infinite_on_both_sides_when_nothing_is_known():
    """The smallest law of that report is zero too: a lift of 0/0 must not hide the infinite one."""
    assert LIP().sides(Channel([[1.0, 0.0], [0.5, 0.5]]), PriorSet.all(2)) == (math.inf, math.inf)


def test_where_it_leaks():
    channel = Channel([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]], inputs=["a", "b", "c"], outputs=["yes", "no"])
    down, up = LIP().worst(channel, Prior.uniform(3))
    assert (down.side, down.secret, down.report) == ("lower", "a", "no")
    assert (up.side, up.secret, up.report) == ("upper", "a", "yes")
    assert down.level == pytest.approx(math.log((1.1 / 3) / 0.1))
    latent = Secret([[1, 0, 0], [0, 0.5, 0.5]], labels=["ill", "well"])
    assert LIP().worst(channel, Prior.uniform(3), latent)[0].secret == "ill"


def test_asymmetric_budgets_hold_side_by_side():
    lower, upper = LIP().sides(CLEAR, EVEN)
    assert lower > upper
    assert LIP().holds(CLEAR, EVEN, Budget(lower, upper))
    assert not LIP().holds(CLEAR, EVEN, Budget(upper, lower))
    assert not LDP().holds(CLEAR, EVEN, Budget(9.0, 1.0))


def test_which_notions_are_cones():
    assert {
        type(n).__name__ for n in (LIP(), LDP(), Pufferfish(), DI(), MIL(), MIP()) if isinstance(n, Cone)
    } == {
        "LIP",
        "LDP",
        "Pufferfish",
        "DI",
    }


@given(sizes)
def test_how_many_inequalities(d):
    prior = Prior.uniform(d)
    assert LIP().inequalities(Budget(1.0), prior).shape == (2 * d, d)
    assert LIP().inequalities(Budget(1.0, math.inf), prior).shape == (d, d)
    assert LIP().inequalities(Budget(math.inf, 1.0), prior).shape == (d, d)
    assert LDP().inequalities(Budget(1.0), prior).shape == (d * (d - 1), d)
    assert Pufferfish(pairs=[]).inequalities(Budget(1.0), prior).shape == (0, d)


def test_the_table_names_every_level():
    names = [name.strip() for name, _, _ in leakage_rows(leakage(CLEAR, EVEN))]
    assert names == ["LIP", "downwards", "upwards", "LDP", "Pufferfish", "DI", "MIL", "MIP"]
    assert " - " in str(leakage(CLEAR, PriorSet.interval([0.2, 0.2], [0.8, 0.8])))
    assert isinstance(leakage([[1.0], [1.0]], [0.5, 0.5]), Leakage)


def test_mutual_information_of_a_finite_set_is_the_worst_members():
    known = PriorSet([EVEN, Prior([0.9, 0.1])])
    assert leakage(CLEAR, known).mip == MIP().epsilon(CLEAR, EVEN)
    with raises(InvalidInput, argument="prior"):
        MIP().epsilon(CLEAR, PriorSet.all(2))
    assert leakage(CLEAR, PriorSet.all(2)).mip is None
    assert leakage(Channel.identity(20), PriorSet.all(20)).di is None


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInput) as error:
        leakage(CLEAR, Prior.uniform(3))
    assert error.value.argument == "prior"
    for notion in (LIP(), Pufferfish()):
        with raises(InvalidInput, argument="secret"):
            notion.epsilon(CLEAR, EVEN, Secret([[0.2, 0.3, 0.5]]))
    with raises(InvalidInput, argument="pairs"):
        Pufferfish(pairs=[(0, 5)]).epsilon(CLEAR, EVEN)


class FirstAgainstSum:
    """Compares the first row with the sum of the others."""

    def compared_rows(self, columns, labels, prior, secret):
        return [ComparedRows(np.array([columns[0], columns[1:].sum(axis=0)]), ["first", "others"])]


def test_a_subclass_with_another_condition_inherits_no_flags():
    class MixedLDP(FirstAgainstSum, LDP):
        pass

    class OwnLIP(FirstAgainstSum, LIP):
        def worst(self, channel, prior=None, secret=None):
            return super().worst(channel, prior, secret)

    class StatedLDP(FirstAgainstSum, LDP):
        implies_lip = True

    class RenamedLIP(LIP):
        pass

    flags = {cls: (cls.bounds_lifts, cls.implies_lip) for cls in (MixedLDP, OwnLIP, StatedLDP, RenamedLIP)}
    assert flags == {
        MixedLDP: (False, False),
        OwnLIP: (False, False),
        StatedLDP: (False, True),
        RenamedLIP: (True, True),
    }
    with raises(PriorveilError):  # unary reports are certified for LDP odds, which are not what it compares
        Unary(np.array([1, 1, 2]), noise=1, noise_bits=2, drop=2**61).lifts(
            Prior.uniform(3), None, MixedLDP()
        )


@pytest.mark.parametrize(
    ("base", "method"),
    [(Cone, "compare_rows"), (Cone, "inequalities"), (LIP, "inequalities"), (LIP, "worst")],
)
def test_a_cone_says_what_it_compares(base, method):
    with raises(InvalidInput, argument="notion", value="Unsaid"):
        type("Unsaid", (base,), {method: lambda self, *arguments: []})
    assert "Unsaid" not in Cone.by_name


def test_a_class_that_is_defined_again_replaces_the_first_one():
    first, second = (type("DefinedAgain", (LDP,), {"__module__": __name__}) for _ in range(2))
    assert Cone.by_name["DefinedAgain"] is second is not first
