"""Channels: stochastic matrices with names, and what becomes of a value."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorveil.channels import Channel
from priorveil.errors import InvalidChannel, InvalidInput, TooLarge
from priorveil.priors import Prior
from refusals import raises
from strategies import after, channels, priors, sizes


@given(st.data())
def test_posterior_and_lift_follow_bayes(data):
    prior = data.draw(priors())
    channel = data.draw(channels(len(prior))).drop_unused()
    P, Q = prior.probabilities, channel.matrix
    law = channel.output_law(prior)
    assert law.sum() == pytest.approx(1)
    assert channel.posterior(prior) == pytest.approx(P[:, None] * Q / law)
    assert P @ channel.lift(prior) == pytest.approx(np.ones(len(law)))
    assert channel.lift(prior) @ law == pytest.approx(np.ones(len(P)))


@given(st.data())
def test_reports_that_never_happen_are_removed(data):
    d = data.draw(sizes)
    channel = data.draw(channels(d))
    padded = Channel(np.column_stack([np.zeros(d), channel.matrix]), outputs=[-1, *range(channel.shape[1])])
    assert padded.drop_unused().outputs == channel.drop_unused().outputs
    assert np.array_equal(padded.drop_unused().matrix, channel.drop_unused().matrix)
    assert channel.drop_unused().drop_unused() == channel.drop_unused()
    assert np.isnan(padded.lift(Prior.uniform(d))[:, 0]).all()


@given(st.data())
def test_post_processing_is_a_product_and_associates(data):
    d = data.draw(sizes)
    first = data.draw(channels(d))
    second = data.draw(after(first))
    third = data.draw(after(second))
    assert (first @ second).matrix == pytest.approx(first.matrix @ second.matrix)
    assert ((first @ second) @ third).matrix == pytest.approx((first @ (second @ third)).matrix)
    assert (first @ Channel.identity(first.shape[1])).matrix == pytest.approx(first.matrix)


@given(st.data())
def test_side_by_side_each_report_is_still_there(data):
    d = data.draw(sizes)
    one, two = data.draw(channels(d)), data.draw(channels(d))
    joint = one.joint_with(two).matrix.reshape(d, one.shape[1], two.shape[1])
    assert joint.sum(axis=2) == pytest.approx(one.matrix)
    assert joint.sum(axis=1) == pytest.approx(two.matrix)


names = st.integers(-5, 5000) | st.sampled_from(
    ["a", "b c", 'quo"te', "com,ma", "é", "x1", "-", "1.5", "0x", "²"]
)


@given(st.data())
def test_json_gives_the_channel_back(data):
    channel = data.draw(channels(data.draw(sizes)))
    inputs, outputs = (data.draw(st.lists(names, min_size=n, max_size=n, unique=True)) for n in channel.shape)
    named = Channel(channel.matrix, inputs, outputs)
    assert Channel.from_json(named.to_json()) == named


def test_shapes_that_do_not_fit_are_refused():
    two, three = Channel.identity(2), Channel.identity(3)
    with raises(InvalidChannel, argument="after"):
        two @ three
    with raises(InvalidChannel, argument="other"):
        two.joint_with(three)
    with pytest.raises(InvalidChannel) as error:
        two.lift(Prior.uniform(3))
    assert error.value.argument == "prior"
    with raises(InvalidInput, argument="labels"):
        Channel(np.eye(2), inputs=["a"])
    large = Channel(np.full((10, 5000), 1 / 5000))
    with pytest.raises(TooLarge):
        large.joint_with(large)


def test_channels_compare_by_value_and_cannot_be_changed():
    one, two = Channel([[0.5, 0.5]]), Channel([[0.5, 0.5]])
    assert one == two
    assert hash(one) == hash(two)
    assert one != Channel([[0.5, 0.5]], outputs=["a", "b"])
    assert json.loads(one.to_json())["matrix"] == [[0.5, 0.5]]
    with pytest.raises(ValueError, match="read-only"):
        one.matrix[0, 0] = 1


def test_channels_are_joined_by_the_names_of_their_values() -> None:
    rows = np.array([[0.8, 0.2], [0.5, 0.5], [0.4, 0.6]])
    one, turned = Channel(rows, ["a", "b", "c"]), Channel(rows[::-1], ["c", "b", "a"])
    assert one.joint_with(turned) == one.joint_with(one)
    assert one.joint_with(rows) == one.joint_with(one)
    named = Channel(np.eye(2), ["a", "b"], ["yes", "no"])
    mixed = Channel([[0.3, 0.7], [1.0, 0.0]], ["no", "yes"])
    assert (named @ mixed).matrix.tolist() == [[1.0, 0.0], [0.3, 0.7]]
    assert (named @ mixed.matrix).matrix.tolist() == mixed.matrix.tolist()
    with raises(InvalidChannel, argument="other"):
        one.joint_with(Channel(rows, ["x", "y", "z"]))
    with raises(InvalidChannel, argument="after"):
        named @ Channel(np.eye(2), ["x", "y"])
