"""Rows for dice and cards: exact levels, nothing dominated, the best within a budget, and the sheet to print."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import CertificateError, Infeasible, InvalidInput
from priorveil.statistics.dice import RANDOMISERS, DicePair
from references import devices as published
from refusals import raises

SHARE = pv.Sum([1, 0], unbiased=True)
PRIOR = pv.Prior({"yes": 0.2, "no": 0.8})
TOTALS = {"die": 6, "coin and die": 12, "two dice": 36, "cards": 52}


# -- the menu ------------------------------------------------------------------------------------------------


def test_a_die_at_five_and_one() -> None:
    pair = DicePair("die", PRIOR, (5, 1))
    assert pair.table.tolist() == [[5, 1], [1, 5]] and pair.lifts.ldp == 5
    assert pair.certificate.ldp == pytest.approx(math.log(5))
    assert pair.exact_variance == Fraction(21, 100) / Fraction(4, 9)


@pytest.mark.parametrize("randomiser", RANDOMISERS)
def test_levels_and_variances_are_those_of_the_plan(randomiser: str) -> None:
    menu = pv.dice_menu(PRIOR, randomiser)
    for pair in menu.pairs[:: max(1, len(menu.pairs) // 8)]:
        level = pair.certificate.lip
        assert pv.certify_table(pair.table, PRIOR, level) == pair.certificate
        with pytest.raises(CertificateError):
            pv.certify_table(pair.table, PRIOR, 0.999 * level)
        plan = pv.Plan.of(pair.channel, PRIOR, SHARE)
        assert plan.expected_mse == pytest.approx(pair.variance)
        assert plan.certificate.ldp == pytest.approx(pair.certificate.ldp)


@settings(max_examples=15, deadline=None)
@given(share=st.floats(0.05, 0.95), randomiser=st.sampled_from(["die", "coin and die"]))
def test_nothing_on_the_menu_is_dominated_and_all_else_is(share: float, randomiser: str) -> None:
    menu = pv.dice_menu([share, 1 - share], randomiser)

    def costs(pair: DicePair) -> tuple[Fraction, Fraction, Fraction]:
        lifts = pair.lifts
        assert lifts.ldp is not None
        return max(lifts.highest, 1 / lifts.lowest), lifts.ldp, pair.exact_variance

    def dominates(one: DicePair, other: DicePair) -> bool:
        return one != other and all(a <= b for a, b in zip(costs(one), costs(other), strict=True))

    for pair in menu.every_pair:
        rivals = [other for other in menu.every_pair if dominates(other, pair)]
        equal = [other for other in rivals if costs(other) == costs(pair)]
        assert (pair in menu.pairs) == (not rivals) or equal
    every = {costs(pair) for pair in menu.pairs}
    assert len(every) == len(menu.pairs)


@pytest.mark.parametrize("randomiser", RANDOMISERS)
def test_the_best_rows_at_lip_one(randomiser: str) -> None:
    words, ratio = published.DICE[randomiser]
    best, total = pv.dice_menu(PRIOR, randomiser).best(1.0), TOTALS[randomiser]
    assert best.outcomes == total and tuple(total - count for count in best.yes) == words
    assert best.certificate.lip <= 1 and best in pv.dice_menu(PRIOR, randomiser).pairs
    ideal = pv.design(PRIOR, 1.0, SHARE).expected_mse
    assert best.variance / ideal == pytest.approx(ratio, rel=5e-3)


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.2, 3), share=st.floats(0.05, 0.95), ldp=st.booleans())
def test_the_best_keeps_its_budget_and_no_other_pair_is_better(
    epsilon: float, share: float, ldp: bool
) -> None:
    menu = pv.dice_menu([share, 1 - share], "coin and die")
    notion = pv.LDP() if ldp else pv.LIP()
    levels = {pair: notion.epsilon(pair.channel, menu.prior) for pair in menu.every_pair}
    try:
        best = menu.best(epsilon, notion)
    except Infeasible:
        assert min(levels.values()) >= epsilon * (1 - 1e-9)
        return
    assert levels[best] <= epsilon * (1 + 1e-9)
    assert best.variance <= min(
        pair.variance for pair, level in levels.items() if level < epsilon * (1 - 1e-9)
    )


def test_two_sides_of_a_budget_are_kept() -> None:
    budget = pv.Budget(0.5, 1.0)
    best = pv.dice_menu(PRIOR, "cards").best(budget)
    assert best.certificate.lip_lower <= 0.5 and 0.8 < best.certificate.lip_upper <= 1.0


def test_what_a_die_cannot_do_is_refused() -> None:
    with pytest.raises(Infeasible):
        pv.dice_menu(PRIOR, "die").best(0.1)
    with raises(InvalidInput, argument="randomiser"):
        pv.dice_menu(PRIOR, "roulette")
    with raises(InvalidInput, argument="prior"):
        pv.dice_menu([0.2, 0.3, 0.5])


@pytest.mark.parametrize("yes", [(5, 5), (6, 1), (5, 0), (5, 1, 1), (5, 1.5)])
def test_rows_that_tell_nothing_or_give_an_answer_away_are_no_pair(yes: Any) -> None:
    with raises(InvalidInput, argument="yes"):
        DicePair("die", PRIOR, yes)


def test_the_menu_prints_a_table_of_at_most_a_dozen_pairs() -> None:
    lines = str(pv.dice_menu(PRIOR, "die")).splitlines()
    assert lines[-1].split() == ["5", "of", "6", "1", "of", "6", "1.436", "1.022", "1.61", "0.4725"]
    for randomiser in RANDOMISERS:
        menu = pv.dice_menu(PRIOR, randomiser)
        assert len(str(menu).splitlines()) == 2 + min(12, len(menu.pairs))
        assert len(menu.to_frame("pyarrow")) == len(menu.pairs)


def test_a_pair_shows_its_line_of_the_menu() -> None:
    menu = pv.dice_menu(PRIOR, "die")
    _, heads, *_, last = (line.split() for line in str(menu).splitlines())
    assert [line.split() for line in str(menu.pairs[-1]).splitlines()] == [heads, last]
    assert "5 of 6" in menu.pairs[-1]._repr_html_()


# -- the sheet -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("randomiser", RANDOMISERS)
def test_outcomes_can_be_named_for_every_count(randomiser: str) -> None:
    groups = RANDOMISERS[randomiser]
    assert sum(groups) == TOTALS[randomiser]
    for count in range(1, sum(groups)):
        spans = DicePair(randomiser, PRIOR, (2, 1)).spans(count)
        covered = [at for span in spans for at in span]
        assert len(covered) == len(set(covered)) and sum(groups[at] for at in covered) == count


class Boxes(HTMLParser):
    """The lines of the boxes of a sheet: what is thrown, and what is said then."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tag, self.boxes, self.texts = "", list[list[str]](), list[str]()
        self.feed(source)

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.tag = tag
        if tag == "section":
            self.boxes.append([])

    def handle_data(self, data: str) -> None:
        if self.tag in ("dt", "dd", "h2") and data.strip():
            self.boxes[-1].append(data)
        if self.tag != "style":
            self.texts.append(data)


def sheet(pair: DicePair, folder: Path, question: str = "") -> Boxes:
    pair.sheet(folder / "sheet.html", question)
    return Boxes((folder / "sheet.html").read_text(encoding="utf-8"))


def test_a_sheet_shows_the_rows_of_both_answers(tmp_path: Path) -> None:
    page = sheet(DicePair("die", PRIOR, (5, 1)), tmp_path, "Do you smoke?")
    assert page.boxes == [
        ["If your true answer is “yes”", "the die shows 1 to 5", "say “Yes”", "the die shows 6", "say “No”"],
        ["If your true answer is “no”", "the die shows 1", "say “Yes”", "the die shows 2 to 6", "say “No”"],
    ]
    words = " ".join(page.texts)
    assert "Do you smoke?" in words
    assert "20.0 % of people" in words and "it is 55.6 % likely" in words and "4.8 % after" in words
    assert "at most 5." in words and "LDP at most 1.61." in words


def cards(text: str) -> set[str]:
    """The cards that a line names."""
    ranks = ["A", *map(str, range(2, 11)), "J", "Q", "K"]
    found = set()
    for part in text.split("; "):
        whole = re.fullmatch(r"any (.)", part)
        run = re.fullmatch(r"(.) (\w+)(?: to (\w+))?", part)
        assert whole or run
        suit = whole[1] if whole else run[1]  # type: ignore[index]
        first, last = (0, 12) if whole else (ranks.index(run[2]), ranks.index(run[3] or run[2]))  # type: ignore[index]
        found |= {f"{suit} {rank}" for rank in ranks[first : last + 1]}
    return found


@pytest.mark.parametrize("yes", [(38, 8), (13, 1), (51, 26), (27, 14)])
def test_every_card_is_in_one_line_of_each_box(yes: tuple[int, int], tmp_path: Path) -> None:
    for count, (_, says_yes, _, says_no, _) in zip(
        yes, sheet(DicePair("cards", PRIOR, yes), tmp_path).boxes, strict=True
    ):
        assert len(cards(says_yes)) == count and len(cards(says_yes) | cards(says_no)) == 52
        assert not cards(says_yes) & cards(says_no)


@pytest.mark.parametrize("count", range(1, 36))
def test_every_sum_is_in_one_line_of_each_box(count: int, tmp_path: Path) -> None:
    box = sheet(DicePair("two dice", PRIOR, (count, 2 if count == 1 else 1)), tmp_path).boxes[0]

    def sums(text: str) -> list[int]:
        runs = text.removeprefix("a sum of ").split(", ")
        ends = [[int(end) for end in run.split(" to ")] for run in runs]
        return [number for end in ends for number in range(end[0], end[-1] + 1)]

    throws = [a + b for a in range(1, 7) for b in range(1, 7)]
    assert sum(throw in sums(box[1]) for throw in throws) == count
    assert sorted(sums(box[1]) + sums(box[3])) == list(range(2, 13))


def test_a_coin_and_a_die(tmp_path: Path) -> None:
    boxes = sheet(DicePair("coin and die", PRIOR, (8, 2)), tmp_path).boxes
    assert boxes[0][1::2] == ["heads; tails and 1 to 2", "tails and 3 to 6"]
    assert boxes[1][1::2] == ["heads and 1 to 2", "heads and 3 to 6; tails"]


def test_what_a_sheet_takes_from_its_maker_is_escaped(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    pair = DicePair("die", pv.Prior({hostile: 0.2, "no": 0.8}), (5, 1))
    pair.sheet(tmp_path / "sheet.html", hostile)
    assert hostile not in (tmp_path / "sheet.html").read_text()
