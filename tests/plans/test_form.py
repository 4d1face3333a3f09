"""Forms: what leaves a device, how it is packed, counted and read."""

from __future__ import annotations

import copy
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import ForeignReport, InvalidInput, OutsideDomain, PlanError
from priorveil.mechanisms.randomness import BytesSource, GeneratorSource
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.reading.estimate_notes import FEW_PEOPLE
from refusals import raises

SMOKES = pv.Prior({"never": 0.7, "sometimes": 0.1, "daily": 0.2})
TOWN = pv.Prior.zipf(70, labels=[f"t{i}" for i in range(70)])
AGE_RENT = pv.Prior.joint(
    {("young", "yes"): 0.3, ("young", "no"): 0.1, ("old", "yes"): 0.2, ("old", "no"): 0.4},
    names=("age", "rents"),
)
HOURS = pv.Prior.grid([0, 20, 40, 60], [0.2, 0.2, 0.5, 0.1])
TRUTH = {
    "smokes": dict(zip(SMOKES.labels, [0.5, 0.2, 0.3], strict=True)),
    "town": dict(zip(TOWN.labels, np.full(70, 1 / 70), strict=True)),
    "age": {"young": 0.7, "old": 0.3},
    "rents": {"yes": 0.4, "no": 0.6},
    "hours": {0.0: 0.1, 30.0: 0.5, 40.0: 0.4},
}


@pytest.fixture(scope="module")
def parts() -> dict[str, Part]:
    return {
        "smokes": Part(("smokes",), pv.design(SMOKES, 1.0, pv.Distribution())),
        "town": Part(("town",), pv.design(TOWN, 1.0, pv.Distribution(), method="unary")),
        "home": Part(("age", "rents"), pv.design(AGE_RENT, 1.0, pv.Distribution())),
        "hours": Part(("hours",), pv.design(HOURS, 1.0, pv.Sum([0, 20, 40, 60], unbiased=True))),
    }


@pytest.fixture(scope="module")
def form(parts: dict[str, Part]) -> Form:
    """A plain slot, a drawn one whose reports have one and two words, and a number."""
    drawn = Slot((parts["home"], parts["town"]), (SHARE_DENOMINATOR // 4, 3 * SHARE_DENOMINATOR // 4))
    return Form((Slot((parts["smokes"],)), drawn, Slot((parts["hours"],))))


def people(count: int, rng: np.random.Generator) -> dict[str, list[object]]:
    return {
        name: rng.choice(np.array(list(law), dtype=object), count, p=list(law.values())).tolist()
        for name, law in TRUTH.items()
    }


def test_a_submission_has_one_width_for_everybody(form: Form, parts: dict[str, Part]) -> None:
    words = form.privatize(people(500, np.random.default_rng(1)), rng=np.random.default_rng(2))
    assert form.width == 1 + (1 + 2) + 1 and words.shape == (500, 5) and words.dtype == np.dtype("<u8")
    about_home = words[:, 1] == 0
    assert 0.15 < about_home.mean() < 0.35  # a quarter, 500 draws: five standard errors
    assert not words[about_home, 3].any() and words[~about_home, 3].any()
    assert form.attributes == ("smokes", "age", "rents", "town", "hours")
    assert form.parts == tuple(parts[name] for name in ("smokes", "home", "town", "hours"))


def test_words_hold_the_reports_that_the_plans_make(form: Form, parts: dict[str, Part]) -> None:
    """The same random words, used in the order that the module states, give the same reports by plan.privatize."""
    person = {"smokes": "daily", "age": "old", "rents": "no", "town": "t7", "hours": 33}
    for draw in itertools.product([0], [0, 1], [0]):
        ours, theirs = (GeneratorSource(np.random.default_rng(5)) for _ in range(2))
        [row] = form.privatize(person, draw, ours)
        smokes = parts["smokes"].plan.privatize("daily", theirs)
        if draw[1] == 0:
            packed = [parts["home"].plan.privatize(("old", "no"), theirs), 0]
        else:
            packed = parts["town"].plan.privatize("t7", theirs).tolist()
        hours = parts["hours"].plan.privatize(33, theirs)
        assert row.tolist() == [smokes, draw[1], *packed, hours]


def test_the_draw_takes_one_word_for_each_slot_with_several_parts(form: Form) -> None:
    """The upper 20 bits of the word are below the share of the first part, or not."""
    for top, place in (
        (0, 0),
        (SHARE_DENOMINATOR // 4 - 1, 0),
        (SHARE_DENOMINATOR // 4, 1),
        (SHARE_DENOMINATOR - 1, 1),
    ):
        word = (top << 44) | ((1 << 44) - 1)
        assert form.draw(BytesSource(word.to_bytes(8, "little"))) == (0, place, 0)
    drawn = np.array([form.draw(np.random.default_rng(seed)) for seed in range(400)])
    assert not drawn[:, [0, 2]].any() and 0.65 < drawn[:, 1].mean() < 0.85


def test_shares_follow_the_weights_and_none_is_zero(parts: dict[str, Part]) -> None:
    def shares(*weights: float) -> tuple[int, ...]:
        plan = parts["smokes"].plan
        return Slot.by_weights([Part((f"q{i}",), plan) for i, _ in enumerate(weights)], weights).shares

    assert shares(1.0, 1.0) == shares(0.0, 0.0) == (SHARE_DENOMINATOR // 2, SHARE_DENOMINATOR // 2)
    assert shares(1e-9, 3e-9)[1] == pytest.approx(0.75 * SHARE_DENOMINATOR, abs=1)
    assert shares(*[1.0] * 60, 0.0)[-1] == 1 and sum(shares(*[1.0] * 60, 0.0)) == SHARE_DENOMINATOR


def test_only_the_answers_of_drawn_parts_are_needed(form: Form) -> None:
    person = {"smokes": "daily", "hours": 33, "town": "t7"}
    assert form.accepts(form.privatize(person, (0, 1, 0))).all()
    with raises(InvalidInput, argument="values"):
        form.privatize(person, (0, 0, 0))


def test_everything_that_a_form_cannot_have_made_is_refused(form: Form) -> None:
    words = form.privatize(people(40, np.random.default_rng(3)), rng=np.random.default_rng(4))
    assert form.accepts(words).all()
    home, town = int(np.argmax(words[:, 1] == 0)), int(np.argmax(words[:, 1] == 1))
    outputs = [part.plan.mechanism.outputs for part in form.parts]
    for row, column, value in (
        (0, 0, outputs[0]),  # a report that the plan never makes
        (0, 0, 2**63),  # negative as a signed number
        (home, 1, 2),  # a part that does not exist
        (home, 1, 2**64 - 1),
        (home, 2, outputs[1]),
        (home, 3, 1),  # padding
        (town, 3, 1 << 6),  # a bit beyond the 70th
        (0, 4, outputs[3]),
    ):
        forged = words.copy()
        forged[row, column] = value
        assert np.flatnonzero(~form.accepts(forged)).tolist() == [row]
        with raises(ForeignReport, argument=f"reports[{row}]"):
            form.count(forged)
    for wrong in (words[:, :4], words[0], words.astype(np.int64), words.astype(float)):
        with raises(ForeignReport, argument="reports"):
            form.accepts(wrong)


def test_counts_of_groups_add_up_to_the_counts_of_all(form: Form) -> None:
    words = form.privatize(people(300, np.random.default_rng(6)), rng=np.random.default_rng(7))
    cells = form.count(words)
    assert (cells == form.count(words[:100]) + form.count(words[100:])).all() and cells.dtype == np.int64
    assert not form.count(words[:0]).any()
    tallies = form.tallies(cells)
    assert [tally.reports for tally in tallies] == [
        300,
        (words[:, 1] == 0).sum(),
        (words[:, 1] == 1).sum(),
        300,
    ]
    by_hand = [words[:, 0], words[words[:, 1] == 0, 2], words[words[:, 1] == 1, 2:4], words[:, 4]]
    for part, tally, reports in zip(form.parts, tallies, by_hand, strict=True):
        own = reports if reports.ndim == 2 else reports.astype(np.int64)
        assert part.plan.tally(own) == tally


def test_a_form_of_one_plan_counts_as_the_plan_does(parts: dict[str, Part]) -> None:
    for part in (parts["smokes"], parts["town"]):
        alone = Form.of(part.attributes, part.plan)
        values = people(200, np.random.default_rng(1))
        words = alone.privatize(values, rng=np.random.default_rng(8))
        reports = part.plan.privatize(values[part.attributes[0]], np.random.default_rng(8))
        tally = part.plan.tally(reports)
        assert alone.count(words).tolist() == [200, *tally.counts.ravel()]
        [found] = alone.estimate(alone.tallies(alone.count(words))).values()
        assert found.values.tolist() == part.plan.estimate(tally).values.tolist()


@pytest.mark.statistical
def test_estimates_are_for_all_people_and_intervals_cover(parts: dict[str, Part]) -> None:
    """300 surveys of 800 people with wrong priors: means within four standard errors, and so is the coverage."""
    form = Form((Slot((parts["smokes"],)), Slot.by_weights((parts["home"], parts["hours"]), (2.0, 1.0))))
    rng, N, runs = np.random.default_rng(4), 800, 300
    pair = np.outer(list(TRUTH["age"].values()), list(TRUTH["rents"].values())).ravel()
    truth = {
        ("smokes",): N * np.array(list(TRUTH["smokes"].values())),
        ("age", "rents"): N * pair,
        ("hours",): N * np.array([sum(x * p for x, p in TRUTH["hours"].items())]),
    }
    errors: dict[tuple[str, ...], list[np.ndarray]] = {names: [] for names in truth}
    inside = []
    for _ in range(runs):
        found = form.estimate(form.tallies(form.count(form.privatize(people(N, rng), rng=rng))))
        for names, answer in found.items():
            errors[names].append(answer.values - truth[names])
            low, high = answer.interval(0.95)
            inside.append(((low <= truth[names]) & (truth[names] <= high)).mean())
    for each in errors.values():
        assert (np.abs(np.mean(each, axis=0)) < 4 * np.std(each, axis=0) / math.sqrt(runs)).all()
    assert abs(np.mean(inside) - 0.95) < 4 * np.std(inside) / math.sqrt(len(inside)) + 0.005


def test_of_a_part_that_nobody_was_asked_about_nothing_is_known(parts: dict[str, Part]) -> None:
    form = Form((Slot.by_weights((parts["smokes"], parts["home"]), (1.0, 1.0)),))
    found = form.estimate(form.tallies(form.count(form.privatize({"smokes": ["daily"] * 9}, (0,)))))
    assert found["smokes",].total == 9 and np.isfinite(found["smokes",].std_error).all()
    assert np.isinf(found["age", "rents"].std_error).all()


def test_of_few_people_who_were_asked_the_notes_say_so() -> None:
    """Fifty-seven of four hundred people answer each question, and stand for seven people each."""
    plan = pv.design(pv.Prior([0.9, 0.1]), 5.0, pv.Distribution())
    names = [f"question {i}" for i in range(7)]
    form = Form((Slot.by_weights(tuple(Part((name,), plan) for name in names), (1.0,) * 7),))
    rng = np.random.default_rng(0)
    words = form.privatize({name: rng.choice(2, 400, p=[0.9, 0.1]).tolist() for name in names}, rng=rng)
    for found in form.estimate(form.tallies(form.count(words))).values():
        assert found.interval()[1].max() > 50 and FEW_PEOPLE in found.notes


def test_a_document_is_read_and_proven_again(form: Form, tmp_path: Path) -> None:
    whole = {"id": form.id, **form.document()}
    again = Form.read(json.loads(json.dumps(whole)))
    assert again == form and again.id == form.id
    form.save(tmp_path / "form.json")
    assert Form.load(tmp_path / "form.json") == form
    other = Form((*form.slots[1:], form.slots[0]))
    assert other.id != form.id and other != form

    forged = copy.deepcopy(whole)
    forged["slots"][0][0]["plan"]["certificate"]["lip_upper"] = "0.5"
    with raises(PlanError, field="certificate"):
        Form.read(forged)
    for change in (
        {"share": SHARE_DENOMINATOR - 1},
        {"share": str(SHARE_DENOMINATOR)},
        {"attributes": ["a", "b"]},
        {"plan": {}},
    ):
        forged = copy.deepcopy(whole)
        forged["slots"][0][0].update(change)
        with pytest.raises(PlanError):
            Form.read(forged)
    with raises(PlanError, field="id"):
        Form.read({**form.document(), "id": other.id})


def test_bad_forms_and_values(form: Form, parts: dict[str, Part]) -> None:
    smokes, home = parts["smokes"], parts["home"]
    leaning = Part(("tea",), pv.design([0.5, 0.3, 0.2], 1.0, pv.Histogram()))
    channel = pv.Channel([[1.0, 0.0], [0.5, 0.5]])
    unbounded = Part(("milk",), pv.Plan.of(channel, pv.Prior([0.5, 0.5]), pv.Distribution()))
    secret = Part(
        ("tea",), pv.design([0.5, 0.5], 1.0, pv.Distribution(), secret=pv.Secret([[0.6, 0.4], [0.4, 0.6]]))
    )
    for argument, call in (
        ("attributes", lambda: Part(("age",), home.plan)),
        ("attributes", lambda: Part(("rents", "age"), home.plan)),
        ("attributes", lambda: Part("smokes", smokes.plan)),  # type: ignore[arg-type]
        ("attributes", lambda: Part(("a", "b"), smokes.plan)),
        ("parts", lambda: Slot(())),
        ("parts", lambda: Slot.by_weights((smokes, leaning), (1.0, 1.0))),
        ("shares", lambda: Slot((smokes, home), (1, 2))),
        ("shares", lambda: Slot((smokes, home), (0, SHARE_DENOMINATOR))),
        ("slots", lambda: Form(())),
        ("slots", lambda: Form((Slot((smokes,)), Slot((smokes,))))),
        ("slots", lambda: Form((Slot((smokes,)), Slot((secret,))))),
        ("slots", lambda: Form((Slot((smokes,)), Slot((unbounded,))))),
        ("draw", lambda: form.privatize({}, (0, 0))),
        ("draw", lambda: form.privatize({}, (0, 2, 0))),
        ("values", lambda: form.privatize(["daily"])),
        ("values", lambda: form.privatize({"smokes": ["daily"]})),
        ("values[1]", lambda: Form.of("smokes", smokes.plan).privatize({"smokes": ["daily", None]})),
        ("cells", lambda: form.tallies(np.zeros(3, dtype=np.int64))),
        ("tallies", lambda: form.estimate([])),
    ):
        with raises(InvalidInput, argument=argument):
            call()
    assert Form.of("tea", secret.plan).levels().ldp == secret.plan.certificate.ldp
    with raises(OutsideDomain, row=2):
        Form.of("smokes", smokes.plan).privatize({"smokes": ["daily", "daily", "hourly"]})
