"""The HTML of a notebook: the words of the printed form, escaped, well formed, in the colours of the page."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

import priorveil as pv
from priorveil.formatting import level_text
from priorveil.results.findings import finding_of
from priorveil.words import html
from priorveil.words.levels import leakage_rows
from priorveil.words.plans import plan_facts
from priorveil.words.results import table_cells
from sample_exhibits import EXHIBITS, HOSTILE, PRIOR


class Page(HTMLParser):
    """The texts and the tags of a page; it fails on a tag that is not closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] != "style":
            self.texts.append(data)


def shown(name: str) -> list[str]:
    return Page(EXHIBITS[name]._repr_html_()).texts


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_form_is_whole_and_escaped(name: str) -> None:
    page = Page(EXHIBITS[name]._repr_html_())
    assert {"div", "style"} <= set(page.tags) and not {"img", "script"} & set(page.tags)
    assert page.texts[0].strip(), "a title"


@pytest.mark.parametrize("name", ["Prior", "Channel", "Estimate"])
def test_labels_are_shown_as_they_are(name: str) -> None:
    assert HOSTILE in shown(name)


def test_an_indented_name_is_not_broken_after_its_indent() -> None:
    """On a phone the level stood above its name, which was on the second line of its cell."""
    assert "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}downwards" in shown("Leakage")
    assert html.table(["a"], [["x  y"]], []).count("<td>x  y</td>") == 1


def test_the_style_has_no_colours_of_its_own() -> None:
    """A page is light or dark by its own choice, which no style sheet of ours can know."""
    style = re.search(r"<style>(.*?)</style>", html.sheet("a"), re.DOTALL)
    assert style is not None
    values = re.findall(r"(?:color|background|border(?:-\w+)?):\s*([^;]+);", style[1])
    assert values and all(re.fullmatch(r"inherit|none|0|collapse|.*currentColor", each) for each in values)


def test_the_plan_shows_the_facts_that_it_prints() -> None:
    texts = shown("Plan")
    assert texts[1:] == [text for fact in plan_facts(EXHIBITS["Plan"]) for text in fact]


def test_the_estimate_shows_the_numbers_and_notes_that_it_prints() -> None:
    estimate, texts = EXHIBITS["Estimate"], shown("Estimate")
    found = finding_of(estimate)
    table = found.figures.tables[0]
    heads, rows = table_cells(found, table, table.rows, 0.95)
    for row in (heads, *rows):
        at = texts.index(row[0])
        assert texts[at : at + len(row)] == list(row)
    assert texts[-len(estimate.notes) :] == list(map(str, estimate.notes))


def test_a_warning_comes_first() -> None:
    plan = EXHIBITS["Plan"]
    estimate = plan.estimate(plan.tally(plan.privatize(["c"] * 1_000, np.random.default_rng(0))))
    assert Page(estimate._repr_html_()).texts[1] == f"Warning: {estimate.warning}"


def test_levels_have_their_meaning() -> None:
    leakage = EXHIBITS["Leakage"]
    cells = [
        cell for name, level, words in leakage_rows(leakage) for cell in (name, level_text(level), words)
    ]
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in shown("Leakage")[-len(cells) :]] == cells


def test_certified_levels_are_rounded_up() -> None:
    certificate = pv.Certificate("LIP", 0.99999, 1.00001, 1.5, 1.00001)
    texts = Page(certificate._repr_html_()).texts
    assert texts[texts.index("LIP") + 1] == "1.001"
    assert "Pufferfish" in Page(pv.Certificate("Pufferfish", 1.0, 1.0, 1.5, 1.2)._repr_html_()).texts


def test_a_ledger_shows_what_is_spent_and_the_limit() -> None:
    ledger = EXHIBITS["Ledger"]
    texts = shown("Ledger")
    assert texts[1:5] == ["reports", "1", "limit", str(ledger.limit)] and ledger.spent[0].plan[:12] in texts
    assert Page(pv.Ledger(PRIOR)._repr_html_()).texts[1:5] == ["reports", "0", "limit", "none"]


def test_a_tally_counts_what_was_refused() -> None:
    texts = shown("Tally")
    assert texts[1:] == ["reports", "1,000", "refused", "1 foreign", "plan", EXHIBITS["Plan"].id]


def test_a_statistic_has_its_interval() -> None:
    statistic = EXHIBITS["Statistic"]
    low, high = statistic.interval()
    texts = shown("Statistic")
    assert texts[-4] == statistic.method
    assert [float(text) for text in texts[-3:]] == pytest.approx([statistic.value, low, high], abs=1)


@pytest.mark.parametrize("size", [30, 31, 500])
def test_long_priors_and_wide_channels_are_cut_and_say_so(size: int) -> None:
    texts = Page(pv.Prior.uniform(size)._repr_html_()).texts
    assert (f"and {size - 30:,} more" in texts) == (size > 30)
    assert "The first 30 values and 12 reports." in Page(pv.Channel.identity(size)._repr_html_()).texts
    assert len(pv.Channel.identity(size)._repr_html_()) < 40_000


def test_a_prior_says_whether_it_is_assumed() -> None:
    texts = [Page(pv.Prior.uniform(3, assumed=assumed)._repr_html_()).texts for assumed in (True, False)]
    assert "Prior of 3 values, assumed" in texts[0] and "Prior of 3 values" in texts[1]


def test_bars_are_shares_of_the_longest() -> None:
    widths = re.findall(r"width:([\d.]+)%", PRIOR._repr_html_())
    assert list(map(float, widths)) == pytest.approx([100, 60, 40])
    assert escape(HOSTILE) in PRIOR._repr_html_()
