"""Channels: stochastic matrices with names, and what becomes of a value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.channels import Channel
from priorveil.errors import ForeignReport, InvalidChannel, InvalidFile, InvalidInput, TooLarge
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


# -- labelled reports, and transition matrices in and out ----------------------------------------------------


@pytest.mark.parametrize("column", [list, np.array, pd.Series, pd.Categorical])
def test_labelled_reports_become_numbers(column: Callable[[list[str]], object]) -> None:
    codes = Channel([[0.25, 0.75], [0.75, 0.25]], outputs=["same", "different"]).report_codes(
        column(["same", "different", "same"])
    )
    assert codes.tolist() == [0, 1, 0] and codes.dtype == np.int64


@pytest.mark.parametrize(
    ("reports", "row"), [(["yes", "perhaps"], 1), (["yes", None], 1), (["no", "yes", 0], 2)]
)
def test_a_report_without_a_column_is_refused(reports: list[object], row: int) -> None:
    with raises(ForeignReport, argument=f"reports[{row}]"):
        Channel([[0.25, 0.75], [0.75, 0.25]], outputs=["yes", "no"]).report_codes(reports)


PRAM = '"","east","north","west"\n"east",0.8,0.15,0.05\n"north",0.1,0.85,0.05\n"west",0.2,0.1,0.7\n'


def test_a_transition_matrix_comes_in_and_goes_out(tmp_path: Path) -> None:
    """As R's `write.csv` writes the matrix of sdcMicro's `pram`: true values in the rows, released ones in columns."""
    (tmp_path / "pram.csv").write_text(PRAM)
    channel = pv.Channel.from_file(tmp_path / "pram.csv")
    prior = pv.Prior({"west": 0.2, "north": 0.3, "east": 0.5})  # in another order
    plan = pv.Plan.of(channel, prior, pv.Distribution())
    assert plan.labels == ("east", "north", "west")
    assert plan.certificate.ldp == pytest.approx(math.log(14))
    released = channel.report_codes(["east"] * 470 + ["north"] * 350 + ["west"] * 180)
    estimate = plan.estimate(plan.tally(released))
    assert estimate.proportions @ channel.matrix == pytest.approx([0.47, 0.35, 0.18])
    for name in ("out.csv", "out.json"):
        channel.save(tmp_path / name)
        assert pv.Channel.from_file(tmp_path / name) == channel
    assert (tmp_path / "out.csv").read_text() == PRAM.replace('"', "")


def test_a_designed_plan_goes_out_as_a_transition_matrix(tmp_path: Path) -> None:
    plan = pv.design(pv.Prior({"a": 0.5, "b, c": 0.3, 'd"': 0.2}), 1.0, pv.Distribution())
    plan.channel.save(tmp_path / "plan.csv")
    read = pv.Channel.from_file(tmp_path / "plan.csv")
    assert read == plan.channel and read.inputs == ("a", "b, c", 'd"')
    assert pd.read_csv(tmp_path / "plan.csv", index_col=0).to_numpy() == pytest.approx(read.matrix)


def test_a_transposed_matrix_is_refused(tmp_path: Path) -> None:
    transposed = [["", "a", "b"], ["a", "0.9", "0.3"], ["b", "0.1", "0.7"]]
    (tmp_path / "pram.csv").write_text("\n".join(map(",".join, transposed)))
    with raises(InvalidFile, argument="path"):
        pv.Channel.from_file(tmp_path / "pram.csv")
