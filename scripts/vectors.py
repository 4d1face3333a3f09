"""Keep Python and JavaScript together: write the test vectors that they share.

    PYTHONPATH=tests python scripts/vectors.py

Both sides read the files; only this script writes them. A vector has random bytes, and what is made with them:

* of a plan (clients/js/vectors, one file for each): a value and its report; also reports that the plan cannot have made
* of a campaign (campaigns/): answers, with the draw, the level of each attribute and the submission
* of a campaign with several cohorts (draws/): the draw of each form

A file keeps its plans: the last digits of a design depend on the processor. To design them again, delete it first.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

import priorveil as pv
from joint_laws import without_joint_law
from priorveil.certify import TOTAL, certificate
from priorveil.device.wire import words_to_hex
from priorveil.mechanisms import Arc, Grouped, Mechanism, Orders, PooledHash, Subset, Table, Unary
from priorveil.mechanisms.randomness import BytesSource
from priorveil.plans import Plan
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.priors.number_domains import NumberDomain
from priorveil.questions.campaign import Campaign
from priorveil.questions.choices import MultipleChoice, SingleChoice
from priorveil.questions.number import NumberQuestion
from priorveil.questions.question import Question
from vector_reports import report_array, report_to_json

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "clients" / "js" / "vectors"
CASES = 28
SHARES = (("a", 0.2), ("b", 0.3), ("c", 0.4), ("d", 0.5))  # of yes, in the cohorts


def plans() -> Iterator[tuple[str, Plan]]:
    """A plan for every mechanism and for every branch of the samplers and certificates."""
    work = pv.Prior({"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07})
    scripts = pv.Prior({"да": 0.2, "日本語": 0.3, 'quoted "\\ / \n': 0.1, "\U0001f300 \uffee": 0.4})
    zipf, even = pv.Prior.zipf(40), pv.Prior.uniform(70)
    histogram = pv.Histogram()
    ill = pv.Secret([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    yield "table-two-answers", pv.design(pv.Prior({"yes": 0.2, "no": 0.8}), 1.0, histogram)
    yield "table-truth-or-draw", pv.design(pv.Prior([0.3, 0.3, 0.4]), 1.0, histogram, method="closed")
    yield "table-histogram", pv.design(work, 1.0, histogram)
    yield "table-distribution", pv.design(work, 1.0, pv.Distribution())
    yield "table-asymmetric", pv.design(scripts, pv.Budget(0.5, 2.0), histogram)
    yield "table-secret", pv.design(pv.Prior([0.55, 0.2, 0.25]), 1.0, pv.Guess(), secret=ill)
    yield "table-ldp", pv.design(work, 1.0, histogram, notion=pv.LDP())
    yield "table-finite-set", pv.design(pv.PriorSet([[0.2, 0.3, 0.5], [0.4, 0.3, 0.3]]), 1.0, histogram)
    yield "table-interval", pv.design(pv.PriorSet.interval([0.1, 0.2, 0.3], [0.3, 0.5, 0.6]), 1.0, histogram)
    yield "arc-some-heavy", pv.design(zipf, 2.0, histogram, method="arc")
    yield "arc-all-light", pv.design(even, 1.0, histogram, method="arc")
    yield "arc-all-heavy", pv.design(pv.Prior([0.3, 0.3, 0.4]), 1.0, histogram, method="arc")
    yield "arc-lending", pv.design(pv.Prior([0.6, 0.3, 0.06, 0.04]), 1.0, histogram, method="arc")
    yield "unary-one-word", pv.design(work, 1.0, histogram, method="unary")
    yield "unary-two-words", pv.design(even, 2.0, histogram, method="unary")
    yield "grouped", grouped(pv.design(pv.Prior([0.3, 0.3, 0.4]), 1.0, histogram, method="closed"))
    yield "hashing", pv.design(zipf, 1.0, histogram, method="hashing")
    yield "orders", pv.design(pv.Prior.zipf(30), 1.0, pv.Distribution(), method="arc")
    yield "orders-owners", pv.design(pv.Prior.zipf(12), 2.5, pv.Distribution(), method="arc")
    yield "subset-one-word", pv.design(zipf, 1.0, pv.Distribution(), notion=pv.LDP())
    yield "subset-two-words", pv.design(even, 1.0, histogram, method="subset")
    hours = pv.Prior.grid([-2.5, 0.1, 40, 1e6], [0.3, 0.3, 0.2, 0.2], outside="ends")
    yield "table-grid", pv.design(hours, 1.0, histogram)
    yield "table-cells", pv.design(pv.Prior.cells([0, 0.3, 7, 1e22], [0.3, 0.3, 0.4]), 1.0, histogram)
    cells = {("young", 0.5): 0.2, ("young", 3): 0.3, ("old", 0.5): 0.4, ("old", 3): 0.1}
    yield "table-attributes", pv.design(pv.Prior.joint(cells, ("age", "dose")), 1.0, histogram)
    yield "table-joint-numbers", pv.design(joint_numbers(), 1.0, histogram)
    guess = pv.Prior.uniform(["north", "south", "west"])
    yield "table-assumed", pv.design(guess, 1.0, histogram)
    yield "table-assumed-ball", pv.design(pv.PriorSet.ball(guess, 0.1), 1.0, histogram)
    pair = pv.PriorSet([[0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])
    yield "table-reading-prior", pv.design(pair, 1.0, pv.Distribution(), rounds=3)


def joint_numbers() -> pv.Prior:
    """A grid and cells beside a group; the old have two of the three points."""
    hours = [("young", 0), ("young", 2.5), ("young", 40), ("old", 0), ("old", 40)]
    mass = {(*group, income): 0.1 for group in hours for income in (0, 1e3)}
    numbers: dict[str, Any] = {"grids": ("hours",), "cells": {"income": [0, 1e3, 5e5]}}
    return pv.Prior.joint(mass, ("age", "hours", "income"), impossible="leave out", outside="ends", **numbers)


def grouped(plan: Plan) -> Plan:
    """The plan on five values, of which the first three share a row."""
    assert isinstance(plan.mechanism, Table)
    finer = pv.Prior([0.1, 0.1, 0.1, 0.3, 0.4])
    mechanism = Grouped(np.array([0, 0, 0, 1, 2]), plan.mechanism)
    proven = certificate(mechanism.lifts(finer, None, plan.notion), plan.notion)
    error = plan.query.error(pv.Channel(mechanism.matrix), finer)
    known = {"expected_mse": error, "lower_bound": 0.0, "no_report": plan.query.no_report(finer)}
    return dataclasses.replace(plan, prior=finer, mechanism=mechanism, certificate=proven, **known)


def case(plan: Plan, value: Any, randomness: bytes) -> dict[str, Any]:
    """One value, the bytes it draws, and its report."""
    source = BytesSource(randomness)
    report = report_to_json(plan.mechanism, plan.privatize(value, source))
    return {"value": value, "randomness": randomness[: source.used].hex(), "report": report}


def likelihoods(plan: Plan, sent: str | int) -> list[float]:
    """`Pr(report | x)` for every value over the largest of them, to nine digits."""
    likelihood = plan.reader.likelihood(report_array(plan.mechanism, [sent]))[0]
    return [round(float(v), 9) for v in likelihood / likelihood.max()]


def edges(mechanism: Mechanism) -> list[bytes]:
    """Draws for the first value that fall on a threshold of the sampler, and one below."""
    if isinstance(mechanism, Arc | Orders):
        first = [7] if isinstance(mechanism, Orders) else []
        keep = mechanism.line.keep
        return [packed(*first, coin, 1 << 63, 1 << 62) for coin in (keep, keep - 1)]
    if isinstance(mechanism, Unary):
        quiet = [0] * (mechanism.draws_per_report - 1)
        last = (TOTAL - mechanism.drop) << 2
        return [packed(*quiet, last), packed(*quiet, last - 1)]
    if isinstance(mechanism, Subset):
        rest = [1 << 62] * mechanism.subset_size
        last = mechanism.keep << 2
        return [packed(last, *rest), packed(last - 1, *rest)]
    if isinstance(mechanism, PooledHash):
        row = mechanism.tables[0, mechanism.assignments()[0, 0]].tolist()
        return [packed(0, word) for word in thresholds(row)]
    table = mechanism.table if isinstance(mechanism, Grouped) else mechanism
    assert isinstance(table, Table)
    return [packed(word) for word in thresholds(table.weights[0].tolist())]


def thresholds(row: list[int]) -> list[int]:
    """The words at which the report of a row changes, each with the word before."""
    inner = [total for total in accumulate(row) if 0 < total < TOTAL][:3]
    return [word for total in inner for word in (total << 2, (total << 2) - 1)]


def packed(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def cases(plan: Plan, seed: int) -> list[dict[str, Any]]:
    """The extreme draws for the first and the last value, those on an edge, then random ones for all."""
    size, width = plan.mechanism.size, 8 * plan.mechanism.draws_per_report
    rng = np.random.default_rng(seed)
    extremes = [(code, fill * width) for code in (0, size - 1) for fill in (b"\x00", b"\xff", b"\x7f")]
    extremes += [(0, randomness) for randomness in edges(plan.mechanism)]
    rest = [(i * 7 % size, rng.bytes(width)) for i in range(CASES - len(extremes))]
    pairs = [(plan.labels[code], randomness) for code, randomness in extremes + rest]
    if isinstance(plan.domain, NumberDomain):
        pairs = list(number_draws(plan.domain, rng))
    elif plan.domain.rounds:
        pairs = list(joint_draws(rng))
    listed = [case(plan, value, randomness) for value, randomness in pairs]
    for told in listed[-2:]:
        told["likelihoods"] = likelihoods(plan, told["report"])
    return listed


def foreign_reports(mechanism: Mechanism) -> list[int | str]:
    """Reports that the mechanism cannot have made, as they would be sent."""
    if mechanism.width:
        return ["ff" * 8 * mechanism.width, "0" * 15, "0" * 16 * (mechanism.width + 1)]
    if isinstance(mechanism, Orders):
        span, places = mechanism.line.places, mechanism.line.outputs
        beyond = [places, 2 * span - 1] if places < span else []  # of an order, followed by another one
        return [*beyond, mechanism.count * span]
    assert mechanism.outputs is not None
    return [-1, mechanism.outputs, 2**53]


def joint_draws(rng: np.random.Generator) -> Iterator[tuple[Any, bytes]]:
    """Numbers beside a group, with draws at the threshold of rounding up between the points of the group."""
    for age, points in (("young", [0.0, 2.5, 40.0]), ("old", [0.0, 40.0])):
        for low, high in pairwise(points):
            for share in (0.0, 0.3, 1.0):
                number, income = low + share * (high - low), float(rng.uniform(-10, 6e5))
                edge = int((Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low)) * 2**128)
                for draw in (edge, edge - 1, edge + 2**64, int.from_bytes(rng.bytes(16), "little")):
                    words = divmod(draw % 2**128, 2**64)
                    yield (age, number, income), packed(*words, *rng.integers(0, 2**63, 2).tolist())


def number_draws(domain: NumberDomain, rng: np.random.Generator) -> Iterator[tuple[float, bytes]]:
    """Numbers on the bounds, next to them and between them, with draws at the threshold of rounding up."""
    for low, high in pairwise(domain.bounds):
        for number in (low, np.nextafter(low, high), low + (high - low) / 3, np.nextafter(high, low), high):
            chance = (Fraction(float(number)) - Fraction(low)) / (Fraction(high) - Fraction(low))
            edge = int(chance * 2**128)
            for draw in (edge, edge - 1, edge + 2**64, int.from_bytes(rng.bytes(16), "little")):
                yield (
                    float(number),
                    packed(*divmod(draw % 2**128, 2**64), *rng.integers(0, 2**63, 2).tolist()),
                )
    if domain.outside == "ends":
        yield from ((number, rng.bytes(32)) for number in (-1e9, 1e300))


def campaigns() -> Iterator[tuple[str, Campaign, list[dict[str, Any]]]]:
    """Campaigns for every kind of question and slot, each with answers to it."""
    learn, total = pv.Distribution(), pv.Sum([0, 20, 40, 80], unbiased=True)
    smokes = SingleChoice("smokes", "Smoke?", {"never": "Never", "daily": "Daily"})
    kind = SingleChoice("kind", "What?", options={"a": "A", "b": "B"}, asked_if={"smokes": ("daily",)})
    ills = MultipleChoice("ills", "Which?", {"cough": "Cough", "gout": "Gout"})
    later = MultipleChoice("later", "And now?", {"1": "One", "2": "Two"}, asked_if={"smokes": ("daily",)})
    hours = NumberQuestion("hours", "Hours?", unit="hours")
    packs = NumberQuestion(
        "packs", "Packs?", asked_if={"smokes": ("daily",), "kind": ("a",)}, edges=(0, 1, 2.5, 5)
    )
    on_smokes = pv.design(pv.Prior({"never": 0.7, "daily": 0.3}), 0.5, learn)
    on_kind = pv.design(pv.Prior({"a": 0.2, "b": 0.1, "not asked": 0.7}), 0.5, learn)
    on_hours = pv.design(pv.Prior.grid([0, 20, 40, 80], [0.2, 0.3, 0.4, 0.1], outside="ends"), 0.8, total)
    ranges = {"[0, 1)": 0.1, "[1, 2.5)": 0.05, "[2.5, 5]": 0.05, "not asked": 0.8}
    on_packs = pv.design(pv.Prior(ranges), 1.0, learn)
    both = {("yes", "yes"): 0.1, ("yes", "no"): 0.2, ("no", "yes"): 0.3, ("no", "no"): 0.4}
    on_ills = pv.design(pv.Prior.joint(both, ("ills/cough", "ills/gout")), 1.0, learn)
    asked = {
        ("yes", "yes"): 0.1,
        ("yes", "no"): 0.1,
        ("no", "yes"): 0.05,
        ("no", "no"): 0.05,
        ("not asked",) * 2: 0.7,
    }
    on_later = pv.design(pv.Prior.joint(asked, ("later/1", "later/2"), impossible="leave out"), 1.0, learn)
    on_cough = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 1.0, learn)
    on_gout = pv.design(pv.Prior({"yes": 0.4, "no": 0.6}), 1.0, learn, method="unary")
    wide = pv.design(pv.Prior.zipf(70, labels=[str(i) for i in range(70)]), 1.0, learn, notion=pv.LDP())
    street = SingleChoice("street", "Where?", {str(i): f"Street {i}" for i in range(70)})

    def slot(*parts: tuple[tuple[str, ...], Plan]) -> Slot:
        return Slot.by_weights([Part(*part) for part in parts], [1.0 + i for i in range(len(parts))])

    def made(questions: list[Question], *slots: Slot) -> Campaign:
        return Campaign("Test", questions, {"everyone": Form(slots)})

    two = made([smokes, kind], slot((("smokes",), on_smokes)), slot((("kind",), on_kind)))
    paths = [{"smokes": "never"}, {"smokes": "daily", "kind": "a"}, {"smokes": "never", "kind": "b"}]
    yield "two-slots-not-asked", two, paths
    cough, gout = ((f"ills/{code}",) for code in ("cough", "gout"))
    drawn = made([ills, street], slot((cough, on_cough), (gout, on_gout), (("street",), wide)))
    yield "drawn-slot", drawn, [{"ills": ["gout"], "street": "3"}, {"ills": [], "street": "69"}]
    sets = made(
        [smokes, ills, later],
        slot((("ills/cough", "ills/gout"), on_ills)),
        slot((("later/1", "later/2"), on_later)),
    )
    ticked = [
        {"smokes": "daily", "ills": ["gout", "cough"], "later": []},
        {"smokes": "never", "ills": []},
        {"smokes": "daily", "ills": ["cough"], "later": ["2"]},
    ]
    yield "choices", sets, ticked
    numbers = made(
        [smokes, kind, hours, packs],
        slot((("hours",), on_hours), (("packs",), on_packs)),
        slot((("smokes",), on_smokes)),
    )
    counted = [
        {"smokes": "daily", "kind": "a", "hours": "12,5", "packs": 1},
        {"smokes": "daily", "kind": "a", "hours": -3, "packs": 2.5},
        {"smokes": "daily", "kind": "b", "hours": 80, "packs": 7},
        {"smokes": "never", "hours": 39.999},
    ]
    yield "number", numbers, counted

    form, _ = without_joint_law(1.0)
    three = [SingleChoice(name, f"{name}?", {"yes": "Yes", "no": "No"}) for name in "abc"]
    yield "no-joint-law", Campaign("Test", three, {"everyone": form}), [{"a": "yes", "b": "no", "c": "yes"}]


def submission(campaign: Campaign, answers: dict[str, Any], randomness: bytes) -> dict[str, Any]:
    """Answers and the bytes that they draw, with what is drawn, the level of each attribute and the submission."""
    form, source = campaign.form_for(None), BytesSource(randomness)
    draw = form.draw(source)
    names = campaign.questions_to_ask(None, draw)
    levels = campaign.attribute_values(answers, names)
    report = words_to_hex(form.privatize(levels, draw, source))
    return {
        "answers": answers,
        "randomness": randomness[: source.used].hex(),
        "draw": list(draw),
        "questions": list(names),
        "levels": levels,
        "report": report,
    }


def campaign_vector(campaign: Campaign, answers: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    form, rng = campaign.form_for(None), np.random.default_rng(seed)
    drawn = sum(slot.is_drawn for slot in form.slots)
    words = drawn + sum(
        max(part.plan.mechanism.draws_per_report + 3 for part in slot.parts) for slot in form.slots
    )
    randomness = [
        b"\x00" * 8 * words,
        b"\xff" * 8 * words,
        *(rng.bytes(8 * words) for _ in range(CASES // 2)),
    ]
    width, levels = 16 * form.width, campaign.promise["everyone"]
    return {
        "campaign": json.loads(campaign.to_json()),
        "levels": {
            "lip": levels.lip,
            "lipLower": levels.lip_lower,
            "lipUpper": levels.lip_upper,
            "ldp": levels.ldp,
        },
        "foreign": ["f" * width, "0" * (width - 16), "0" * (width + 16), "0" * (width - 1) + "1"],
        "cases": [submission(campaign, given, drawn) for drawn in randomness for given in answers],
    }


def cohorts() -> Campaign:
    """Cohorts that draw with other shares, in other slots, in two slots, or not at all."""
    yes_no = {"yes": "Yes", "no": "No"}
    plans = {name: pv.design(pv.Prior({"yes": p, "no": 1 - p}), 0.5, pv.Distribution()) for name, p in SHARES}
    a, b, c, d = (Part((name,), plan) for name, plan in plans.items())
    forms = {
        "first": Form((Slot.by_weights([a, b, c], [1, 2, 3]), Slot((d,)))),
        "last": Form((Slot((d,)), Slot.by_weights([c, b, a], [1, 1, 1]))),
        "both": Form((Slot.by_weights([a, b], [1, 9]), Slot.by_weights([c, d], [1, 1]))),
        "none": Form(tuple(Slot((part,)) for part in (a, b, c, d))),
    }
    return Campaign("Test", [SingleChoice(name, f"{name}?", options=yes_no) for name in plans], forms)


def draws_vector(campaign: Campaign) -> dict[str, Any]:
    """Words at the ends of all shares, and random ones, with the draw of every form."""
    rng = np.random.default_rng(7)
    shares = [slot.shares for form in campaign.cohorts.values() for slot in form.slots]
    ends = sorted({end for own in shares for end in accumulate(own) if end < SHARE_DENOMINATOR})
    edges = [word for end in ends for word in ((end << 44) - 1, end << 44)]
    pairs = [(0, 0), (2**64 - 1, 2**64 - 1), *zip(edges, reversed(edges), strict=True)]
    randomness = [*(packed(*pair) for pair in pairs), *(rng.bytes(16) for _ in range(CASES))]
    cases = [{"randomness": own.hex(), "draws": campaign.draw_forms(BytesSource(own))} for own in randomness]
    return {"campaign": json.loads(campaign.to_json()), "cases": cases}


def main() -> None:
    (FOLDER / "draws").mkdir(parents=True, exist_ok=True)
    text = json.dumps(draws_vector(cohorts()), ensure_ascii=False, separators=(",", ":"))
    path = FOLDER / "draws" / "cohorts.json"
    path.write_text(text.replace('{"randomness"', '\n{"randomness"') + "\n", encoding="utf-8")
    (FOLDER / "campaigns").mkdir(parents=True, exist_ok=True)
    for seed, (name, campaign, answers) in enumerate(campaigns()):
        path = FOLDER / "campaigns" / f"{name}.json"
        if path.exists():
            form = Form.read(json.loads(path.read_bytes())["campaign"]["cohorts"]["everyone"])
            campaign = dataclasses.replace(campaign, cohorts={"everyone": form})
        vector = campaign_vector(campaign, answers, seed)
        text = json.dumps(vector, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text.replace('{"answers"', '\n{"answers"') + "\n", encoding="utf-8")
    for seed, (name, plan) in enumerate(plans()):
        path = FOLDER / f"{name}.json"
        if path.exists():
            plan = Plan.read(json.loads(path.read_bytes())["plan"])
        foreign = foreign_reports(plan.mechanism)
        vector = {"plan": json.loads(plan.to_json()), "foreign": foreign, "cases": cases(plan, seed)}
        text = json.dumps(vector, ensure_ascii=False, indent=None, separators=(",", ":"))
        path.write_text(text.replace('{"value"', '\n{"value"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
