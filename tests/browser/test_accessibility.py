"""Every step of every page, held against axe's rules (WCAG 2.1 A and AA, and good practice), light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from browser.steps import ANALYST, COLOURS, answer_survey, choose, open_dashboard, start

Step = Callable[[Any, Any], Any]


def _question(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("few"))
    start(browser)
    browser.see("label.choice", "yes")


def _list(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("many"))
    start(browser)
    browser.see("select[name=answer]")


def _review(browser: Any, curator: Any) -> None:
    _question(browser, curator)
    choose(browser, "yes")
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")


def _thanks(browser: Any, curator: Any) -> None:
    _review(browser, curator)
    browser.click("button", "Send")
    browser.see("main h1", "Thank you")


def _unknown(browser: Any, curator: Any) -> None:
    browser.forgiven = ["404"]
    browser.open(f"{curator.url}/answer/{'0' * 64}")
    browser.see("main h1", "There is no such survey")


def _front(browser: Any, curator: Any) -> None:
    browser.open(f"{curator.url}/")


def _sign_in(browser: Any, curator: Any) -> None:
    browser.open(f"{curator.url}/dashboard")
    browser.see("input[type=password]")


def _campaigns(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator)
    browser.see(".campaigns li")


def _watching(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "watched")
    browser.see("#histogram")


def _withheld(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "few")
    browser.see("#withheld")


def _closing(browser: Any, curator: Any) -> None:
    _withheld(browser, curator)
    browser.click("#close")
    browser.see("dialog h2")


def _deleting(browser: Any, curator: Any) -> None:
    _withheld(browser, curator)
    browser.click("#delete")
    browser.click("dialog button", "Delete for good")
    browser.see("dialog [role=alert]")


def _inviting(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "invited")
    browser.click("#invite")
    browser.see("dialog input").send_keys("3")
    browser.picture("step-invite")
    browser.click("dialog button", "Make them")
    browser.see("dialog textarea")


def _reading(browser: Any, curator: Any) -> None:
    curator.close("watched", "release")
    open_dashboard(browser, curator, "watched", ANALYST)
    browser.see("#histogram")


def _records(browser: Any, curator: Any) -> None:
    curator.invite("invited", 2)
    open_dashboard(browser, curator)
    browser.click("main a", "Records")
    browser.see(".records td", "invited")


def _tokens(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator)
    browser.click("main a", "Tokens")
    browser.see("main th", "stage")


def _publishing(browser: Any, curator: Any) -> None:
    curator.close("reopened")
    open_dashboard(browser, curator, "reopened")
    browser.click("#publish")
    browser.see("dialog h2", "Publish")


def _sheet(browser: Any, curator: Any) -> None:
    browser.open(curator.published_page("sheet-checked"))
    browser.see("main h1", "Working hours, checked")
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")


def _unpublished(browser: Any, curator: Any) -> None:
    browser.forgiven = ["404"]
    browser.open(curator.published_page("few"))
    browser.see("main h1", "There are no published results here")


STEPS: list[Step] = [
    _question, _list, _review, _thanks, _unknown, _front, _sign_in, _campaigns, _watching, _withheld, _closing,
    _deleting, _inviting, _reading, _records, _tokens, _publishing, _sheet, _unpublished,
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _answers(curator: Any) -> Iterator[None]:
    curator.answered("watched", [0] * 150 + [1, 2, 3, 4] * 50)
    answer_survey(curator, "sheet-checked")
    curator.publish("sheet-checked")
    yield


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__.strip("_"))
def test_nobody_is_shut_out(browser: Any, curator: Any, step: Step) -> None:
    """All rules in the light; in the dark those about colours."""
    name = f"step-{step.__name__.strip('_')}"
    step(browser, curator)
    assert browser.faults() == []
    browser.picture(f"{name}-light")
    browser.scheme("dark")
    assert browser.faults(COLOURS) == []
    browser.picture(f"{name}-dark")
    browser.size(360, 740, scale=2, mobile=True)
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    assert browser.faults(COLOURS) == []
    browser.picture(f"{name}-phone-dark")
    browser.scheme("light")
    assert browser.faults() == []
    browser.picture(f"{name}-phone-light")


def test_axe_finds_what_is_wrong(browser: Any, curator: Any) -> None:
    """The check can fail: a field without a name is found."""
    _question(browser, curator)
    browser.run("document.querySelector('main').append(document.createElement('select'))")
    assert any(fault.startswith("select-name") for fault in browser.faults())
