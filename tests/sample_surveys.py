"""A survey with every kind of question: skip logic, a drawn slot, "tick all that apply", and numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from priorveil import Distribution, Plan, Prior, Sum, design
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.questions.campaign import Campaign
from priorveil.questions.choices import MultipleChoice, SingleChoice
from priorveil.questions.number import NumberQuestion
from priorveil.questions.question import NOT_ASKED

SMOKES = SingleChoice("smokes", "Do you smoke?", options={"never": "Never", "daily": "Every day"})
ILLS = MultipleChoice(
    "ills",
    "Which of these?",
    {"cough": "Cough", "asthma": "Asthma"},
    asked_if={"smokes": ("daily",)},
)
HOURS = NumberQuestion("hours", "How long do you work?", unit="hours")
PACKS = NumberQuestion("packs", "How many packs?", asked_if={"smokes": ("daily",)}, edges=(0, 1, 5))
QUESTIONS = (SMOKES, ILLS, HOURS, PACKS)


def _plan(prior: Prior) -> Plan:
    return design(prior, 1.0, Distribution())


@cache
def plans() -> dict[str, Plan]:
    """A plan for each question."""
    both = {("yes", "yes"): 0.05, ("yes", "no"): 0.1, ("no", "yes"): 0.05, ("no", "no"): 0.1}
    ills = Prior.joint(
        both | {(NOT_ASKED, NOT_ASKED): 0.7}, names=("ills/cough", "ills/asthma"), impossible="leave out"
    )
    hours = Prior.grid([0, 40, 80], [0.3, 0.5, 0.2], outside="ends")
    return {
        "smokes": _plan(Prior({"never": 0.7, "daily": 0.3})),
        "ills": _plan(ills),
        "hours": design(hours, 1.0, Sum([0, 40, 80], unbiased=True)),
        "packs": _plan(Prior({"[0, 1)": 0.2, "[1, 5]": 0.1, NOT_ASKED: 0.7})),
    }


def always(attributes: tuple[str, ...], plan: Plan) -> Slot:
    """A slot that everybody fills in."""
    return Slot((Part(attributes, plan),), (SHARE_DENOMINATOR,))


@cache
def form() -> Form:
    """A slot about illnesses, and one about working hours or packs of cigarettes."""
    of = plans()
    drawn = (Part(("hours",), of["hours"]), Part(("packs",), of["packs"]))
    return Form(
        (
            always(("ills/cough", "ills/asthma"), of["ills"]),
            Slot(drawn, (SHARE_DENOMINATOR // 4, SHARE_DENOMINATOR - SHARE_DENOMINATOR // 4)),
        )
    )


def health(**details: Any) -> Campaign:
    """The survey; smoking is asked for the device alone."""
    return Campaign("Health", QUESTIONS, {"everyone": form()}, **details)


def people(count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The answers of random people, some of whom skip questions."""
    rows = []
    for smokes, cough, asthma, hours, packs in rng.random((count, 5)):
        ticked = [code for code, chance in (("cough", cough), ("asthma", asthma)) if chance < 0.4]
        answers: dict[str, Any] = {"smokes": "daily" if smokes < 0.3 else "never", "hours": 80 * hours}
        rows.append(answers | ({"ills": ticked, "packs": 5 * packs} if smokes < 0.3 else {}))
    return rows
