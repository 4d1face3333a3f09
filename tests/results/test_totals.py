"""What a publication says about its totals, and when it says nothing."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from priorveil import Distribution, Histogram, Plan, Prior, PriorSet, Secret, design
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.reading.tally import Tally
from priorveil.results.document import Totals
from priorveil.results.findings import result_of
from priorveil.results.form_estimates import CohortForms, estimate_forms
from priorveil.results.lines import frame_of, statistic_lines, write_lines
from priorveil.results.totals import people_who_do_not_collude, totals_of
from priorveil.words.results import totals_texts

YES = Prior({"yes": 0.3, "no": 0.7})
TRAVEL = Prior({"walk": 0.5, "bus": 0.3, "car": 0.2})
SMOKES, TRAVELS = design(YES, 1.0, Distribution()), design(TRAVEL, 1.0, Distribution())


def tallied(plan: Plan, people: int, seed: int = 1) -> Tally:
    """The tally of people who follow the prior."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(plan.labels), people, p=plan.reference.probabilities)
    return plan.tally(plan.privatize(codes, rng=rng, codes=True))


def forms_of(*slots: Sequence[Plan], smallest_count: int = 20, cohorts: int = 1) -> CohortForms:
    """Cohorts that have the same questions; a slot with several plans asks about one of them."""
    names = iter("abcdefgh")
    parts = [tuple(Part((next(names),), plan) for plan in slot) for slot in slots]
    form = Form(tuple(Slot(own, (SHARE_DENOMINATOR // len(own),) * len(own)) for own in parts))
    questions = {name: name for name in form.attributes}
    return CohortForms("0" * 64, {f"town {i}": form for i in range(cohorts)}, questions, smallest_count)


def told(forms: CohortForms, tallies: Mapping[Any, Sequence[Tally]], colluding: float = 0.1) -> Totals | None:
    """What is said of the only cohort."""
    return totals_of(forms, tallies, colluding).get("town 0")


def test_one_question_has_the_level_of_its_plan_for_the_people_who_do_not_collude() -> None:
    tally = tallied(TRAVELS, 1_000)
    found = told(forms_of([TRAVELS]), {"town 0": [tally]})
    assert found is not None
    assert (found.people, found.colluding, found.delta) == (900, 0.1, 1e-6)
    assert found.epsilon == TRAVELS.totals_level(900, 1e-6) > TRAVELS.totals_level(1_000, 1e-6)
    (belief,) = found.beliefs
    shares = TRAVELS.estimate(tally, method="mmse").proportions
    lifts = dict(zip(TRAVELS.labels, shares / TRAVEL.probabilities, strict=True))
    assert max(lifts, key=lambda label: abs(math.log(lifts[label]))) == belief.label[0]
    assert belief.after / belief.before == pytest.approx(lifts[belief.label[0]])
    alone = told(forms_of([TRAVELS]), {"town 0": [tally]}, colluding=0.0)
    assert alone is not None and alone.epsilon == TRAVELS.totals_level(1_000, 1e-6)


@pytest.mark.parametrize("method", ["arc", "unary", "hashing", "columns"])
def test_every_mechanism_has_a_level_and_a_belief(method: Any) -> None:
    """Several attributes in one part; without columns the LIP level decides."""
    cells = {
        (age, way): p * q
        for age, p in (("young", 0.4), ("old", 0.6))
        for way, q in (("bus", 0.7), ("car", 0.3))
    }
    plan = design(Prior.joint(cells, ("age", "way")), 1.0, Histogram(), method=method)
    form = Form((Slot((Part(("age", "way"), plan),)),))
    forms, tally = CohortForms("0" * 64, {"all": form}, {"age": "age", "way": "way"}, 1), tallied(plan, 2_000)
    found = totals_of(forms, {"all": [tally]}, 0.1)["all"]
    assert 0 < found.epsilon < plan.certificate.ldp
    shares = dict(zip(plan.labels, plan.estimate(tally, method="mmse").proportions, strict=True))
    (belief,) = found.beliefs
    assert belief.after == pytest.approx(shares[belief.label]) and belief.before == pytest.approx(
        cells[belief.label]
    )
    result = result_of(estimate_forms(forms, {("all", None): [tally]}), totals={"all": found})
    (line,) = (each for each in statistic_lines(result) if each["statistic"] == "belief after totals")
    assert (line["age"], line["way"], line["cohort"]) == (*belief.label, "")


@pytest.mark.parametrize(
    ("reports", "colluding", "left"), [(10, 0.1, 9), (11, 0.1, 9), (1, 0.9, 1), (20, 0.0, 20), (20, 0.5, 10)]
)
def test_people_who_collude_are_rounded_up(reports: int, colluding: float, left: int) -> None:
    assert people_who_do_not_collude(reports, colluding) == left


def test_levels_and_deltas_of_several_questions_of_the_same_people_add_up() -> None:
    tallies = [tallied(SMOKES, 500), tallied(TRAVELS, 500)]
    found = told(forms_of([SMOKES], [TRAVELS]), {"town 0": tallies}, 0.0)
    assert found is not None and found.delta == 1e-6
    assert found.epsilon == pytest.approx(sum(plan.totals_level(500, 5e-7) for plan in (SMOKES, TRAVELS)))
    assert len(found.beliefs) == 2


def test_a_drawn_question_has_its_own_reports_and_a_person_answers_one() -> None:
    tallies = [tallied(SMOKES, 100), tallied(TRAVELS, 400)]
    found = told(forms_of([SMOKES, TRAVELS]), {"town 0": tallies}, 0.0)
    assert found is not None and found.people == 100
    assert found.epsilon == max(SMOKES.totals_level(100), TRAVELS.totals_level(400))
    few = told(forms_of([SMOKES, TRAVELS], smallest_count=200), {"town 0": tallies}, 0.0)
    assert few is not None and few.epsilon == TRAVELS.totals_level(400), "the other one is withheld"


def test_each_cohort_stands_by_itself_and_one_that_is_withheld_says_nothing() -> None:
    forms = forms_of([TRAVELS], cohorts=3)
    tallies = {f"town {i}": [tallied(TRAVELS, people)] for i, people in enumerate((100, 1_000, 5))}
    found = totals_of(forms, tallies, 0.0)
    assert {name: each.epsilon for name, each in found.items()} == {
        "town 0": TRAVELS.totals_level(100),
        "town 1": TRAVELS.totals_level(1_000),
    }


def test_nothing_is_said_of_a_secret_of_weights_or_without_a_level() -> None:
    hidden = design(Prior([0.5, 0.5]), 0.5, Histogram(), secret=Secret([[0.55, 0.45], [0.45, 0.55]]))
    assert told(forms_of([hidden]), {"town 0": [tallied(hidden, 200)]}) is None
    weighted = TRAVELS.tally(np.zeros(200, dtype=np.int64), weights=np.full(200, 2.0))
    assert told(forms_of([TRAVELS]), {"town 0": [weighted]}) is None
    assert told(forms_of([TRAVELS]), {"town 0": [tallied(TRAVELS, 0)]}) is None, "there are no totals"


def test_nothing_is_said_if_one_cohort_has_no_finite_level(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = forms_of([TRAVELS], cohorts=2)
    tallies = {"town 0": [tallied(TRAVELS, 100)], "town 1": [tallied(TRAVELS, 50)]}
    monkeypatch.setattr(Plan, "totals_level", lambda plan, people, delta: math.inf if people < 90 else 0.5)
    assert totals_of(forms, tallies, 0.0) == {}


def test_there_is_no_belief_to_start_from_under_a_set_of_priors() -> None:
    both = design(PriorSet([[0.3, 0.7], [0.4, 0.6]]), 1.0, Distribution())
    found = told(forms_of([both]), {"town 0": [tallied(both, 300)]})
    assert found is not None and found.epsilon > 0 and found.beliefs == ()


def test_the_result_its_lines_and_its_words_have_the_totals() -> None:
    forms, tally = forms_of([TRAVELS]), tallied(TRAVELS, 1_000)
    estimates = estimate_forms(forms, {("town 0", None): [tally]})
    assert totals_texts(result_of(estimates)) == ()
    totals = totals_of(forms, {"town 0": [tally]}, 0.1)
    result = result_of(estimates, totals=totals)
    assert result.cohorts[0].totals == totals["town 0"]
    lines = {line["statistic"]: line for line in frame_of(result, "pandas").to_dict("records")}
    assert lines["totals epsilon"]["estimate"] == totals["town 0"].epsilon
    assert lines["totals epsilon"]["reports"] == 900 and lines["totals delta"]["estimate"] == 1e-6
    (belief,) = totals["town 0"].beliefs
    assert lines["belief before totals"]["a"] == belief.label[0]
    assert lines["belief after totals"]["estimate"] == belief.after
    write_lines(result, file := io.StringIO())
    assert file.getvalue().count("totals") == 4
    title, level, example, unless = totals_texts(result)
    factor = math.ceil(100 * math.exp(totals["town 0"].epsilon)) / 100
    assert "one person" in title and f"{factor:g} times" in level and "1 in 1,000,000" in level
    assert belief.label[0] in example and "10 %" in unless
