"""Questions: texts in every language, codes, skip logic, and the attributes that answers give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forged_documents import identified
from priorveil import Distribution, Plan, Prior, design
from priorveil.errors import InvalidInput, PlanError
from priorveil.plans.form import Form
from priorveil.questions import KINDS
from priorveil.questions.campaign import Campaign, ask
from priorveil.questions.choices import SingleChoice
from priorveil.questions.question import NOT_ASKED, Question
from refusals import raises
from sample_surveys import HOURS, QUESTIONS, SMOKES, always, form, plans

FORM = form()
SMOKING, WORKING = plans()["smokes"], plans()["hours"]


def plan(prior: Prior) -> Plan:
    return design(prior, 1.0, Distribution())


def test_a_campaign_with_several_questions_reads_back(survey: Campaign) -> None:
    again = Campaign.from_json(survey.to_json())
    assert again == survey and again.to_json() == survey.to_json()
    assert again.questions == survey.questions and again.forms.keys() == {FORM.id}
    assert again.cohort_of == {FORM.id: "everyone"}


def test_answers_become_levels_of_attributes(survey: Campaign) -> None:
    answers = {"smokes": "daily", "ills": ["asthma"], "hours": "12,5", "packs": 1}
    assert survey.attribute_values(answers) == {
        "smokes": "daily",
        "ills/cough": "no",
        "ills/asthma": "yes",
        "hours": "12,5",
        "packs": "[1, 5]",
    }
    nothing_ticked = survey.attribute_values(answers | {"ills": ()})
    assert nothing_ticked["ills/cough"] == nothing_ticked["ills/asthma"] == "no"
    assert survey.attribute_values(answers | {"packs": 99})["packs"] == "[1, 5]"  # at the nearest end


def test_a_question_that_is_skipped_has_a_level_of_its_own(survey: Campaign) -> None:
    """People may go back: an answer that was given before does not count."""
    for more in ({}, {"ills": ["cough"], "packs": 3}, {"packs": "nonsense"}):
        levels = survey.attribute_values({"smokes": "never", "hours": 30, **more})
        assert [levels[name] for name in ("ills/cough", "ills/asthma", "packs")] == [NOT_ASKED] * 3


def test_a_question_after_a_skipped_one_is_skipped_too() -> None:
    brand = SingleChoice("brand", "Which?", options={"a": "A", "b": "B"}, asked_if={"smokes": ("daily",)})
    why = SingleChoice("why", "Why?", options={"x": "X", "y": "Y"}, asked_if={"brand": ("a",)})
    form = Form((always(("why",), plan(Prior({"x": 0.1, "y": 0.1, NOT_ASKED: 0.8}))),))
    campaign = Campaign("Brands", [SMOKES, brand, why], {"all": form})
    assert campaign.questions_to_ask(None, [0]) == ("smokes", "brand", "why")
    assert campaign.attribute_values({"smokes": "never", "brand": "a", "why": "x"})["why"] == NOT_ASKED
    assert campaign.attribute_values({"smokes": "daily", "brand": "b"})["why"] == NOT_ASKED
    assert campaign.attribute_values({"smokes": "daily", "brand": "a", "why": "x"})["why"] == "x"


def test_only_drawn_questions_are_asked_with_those_that_decide_on_them(survey: Campaign) -> None:
    assert survey.questions_to_ask(None, [0, 0]) == ("smokes", "ills", "hours")
    drawn = survey.questions_to_ask("everyone", [0, 1])
    assert drawn == ("smokes", "ills", "packs")
    levels = survey.attribute_values({"smokes": "never", "hours": "not read"}, drawn)
    assert levels == {"smokes": "never"} | dict.fromkeys(("ills/cough", "ills/asthma", "packs"), NOT_ASKED)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("smokes", None),
        ("smokes", "often"),
        ("smokes", ["daily"]),
        ("smokes", ("daily",)),
        ("smokes", NOT_ASKED),
        ("ills", None),
        ("ills", "cough"),
        ("ills", ["cough", "measles"]),
        ("ills", 7),
        ("hours", None),
        ("hours", "long"),
        ("hours", "1,234.5"),
        ("hours", True),
        ("hours", [8]),
        ("hours", float("nan")),
        ("packs", "few"),
        ("packs", NOT_ASKED),
    ],
)
def test_a_wrong_answer_is_refused_and_not_shown(survey: Campaign, name: str, answer: object) -> None:
    answers: dict[str, Any] = {"smokes": "daily", "ills": [], "hours": 8, "packs": 1}
    with raises(InvalidInput, argument=f"answers[{name!r}]") as caught:
        survey.attribute_values(answers | {name: answer})
    assert answer is None or str(answer) not in str(caught.value).replace(name, "")


def test_codes_match_numbers_as_values_do() -> None:
    rooms = ask("Rooms?", Prior([0.5, 0.3, 0.2]))
    assert rooms.attribute_values({"answer": 2}) == rooms.attribute_values({"answer": "2"}) == {"answer": "2"}
    plan = rooms.form_for(None).parts[0].plan
    assert plan.mechanism.accepts([plan.privatize("2")]).all()


def test_ask_takes_every_kind_of_prior() -> None:
    pair = Prior.joint(
        {(age, hours): 0.25 for age in ("young", "old") for hours in (0.0, 9.0)},
        names=("age", "hours"),
        grids=("hours",),
        outside="ends",
    )
    campaign = ask("About you", pair)
    assert [(question.name, question.kind) for question in campaign.questions] == [
        ("age", "choice"),
        ("hours", "number"),
    ]
    assert campaign.form_for(None).attributes == ("age", "hours")
    cells = ask("How long?", Prior.cells([0, 8, 24], [0.5, 0.5], outside="ends"))
    assert cells.questions[0].kind == "number" and cells.attribute_values({"answer": 30}) == {"answer": 30}
    with raises(InvalidInput, argument="cohorts"):  # who is outside the range would send nothing
        ask("How long?", Prior.cells([0, 8, 24], [0.5, 0.5]))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_knows_everything_about_its_kind(question: Question, survey: Campaign) -> None:
    assert Question.read(question.in_languages(["en"]).document()) == question.in_languages(["en"])
    assert Question.by_kind[question.kind] is type(question)
    assert question.queries and question.describe_answers(survey.domains, survey.text)
    assert question.levels(None) == dict.fromkeys(question.attributes, NOT_ASKED)
    for attribute in {*question.attributes} & {*survey.domains}:
        question.check_domain(attribute, survey.domains[attribute])


def test_every_kind_is_among_the_questions_of_these_tests() -> None:
    assert {type(question) for question in QUESTIONS} == set(KINDS) == set(Question.by_kind.values())


# -- what is refused -----------------------------------------------------------------------------------------


def test_all_cohorts_report_the_same_attributes() -> None:
    both = Form((always(("smokes",), SMOKING), always(("hours",), WORKING)))
    one = Form((always(("smokes",), SMOKING),))
    with raises(InvalidInput, argument="cohorts"):
        Campaign("Health", [SMOKES, HOURS], {"a": both, "b": one})


# -- languages -----------------------------------------------------------------------------------------------

TWO = {"en": "Do you smoke?", "de": "Rauchen Sie?"}
OPTIONS = {"never": {"en": "Never", "de": "Nie"}, "daily": {"en": "Every day", "de": "Jeden Tag"}}
ONE_FORM = {"all": Form((always(("smokes",), SMOKING),))}


def test_every_text_is_in_every_language() -> None:
    campaign = Campaign(TWO, [SingleChoice("smokes", TWO, options=OPTIONS)], ONE_FORM, languages=["en", "de"])
    assert Campaign.from_json(campaign.to_json()) == campaign
    german_first = Campaign(TWO, campaign.questions, ONE_FORM, languages=["de", "en"])
    assert german_first.id != campaign.id and german_first.text(german_first.title) == TWO["de"]


def test_a_swapped_translation_is_another_campaign() -> None:
    campaign = Campaign(TWO, [SingleChoice("smokes", TWO, options=OPTIONS)], ONE_FORM, languages=["en", "de"])
    document = json.loads(campaign.to_json())
    first, second = (option["text"] for option in document["questions"][0]["options"])
    first["de"], second["de"] = second["de"], first["de"]
    with pytest.raises(PlanError) as caught:
        Campaign.from_json(json.dumps(document))
    assert caught.value.field == "id"


@pytest.mark.parametrize(
    "change", [{"kind": "other"}, {"options": []}, {"options": [{"code": "a"}]}, {"edges": 3}]
)
def test_a_wrong_question_in_a_document_is_refused(survey: Campaign, change: dict[str, Any]) -> None:
    document = survey.document()
    document["questions"][0] |= change
    with pytest.raises(PlanError):
        Campaign.from_json(json.dumps(identified(document)))
