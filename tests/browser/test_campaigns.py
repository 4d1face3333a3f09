"""The list of campaigns in Chromium: what each is, the link for people, a new one, the end of one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import priorveil as pv
from browser.steps import ENTER, ESCAPE, TAB, sign_in
from priorveil.collect.campaign import ask

HEADING = "main h1"


def entry(browser: Any, question: str) -> Any:
    return browser.see(".campaigns li", question)


def state(browser: Any, name: str, curator: Any) -> str:
    place = f"/v1/campaigns/{curator.campaigns[name].id}/status"
    return str(browser.run("return fetch(arguments[0]).then(r => r.json()).then(s => s.state)", place))


def test_each_campaign_has_its_state_and_its_link(browser: Any, curator: Any) -> None:
    sign_in(browser, curator)
    for question, told in (("Do you cycle?", "open"), ("Is it time yet?", "not yet open")):
        assert entry(browser, question).find_element("css selector", ".badge").text == told
    links = entry(browser, "Do you cycle?").find_elements("css selector", "a")
    assert [link.get_attribute("href") for link in links][1] == curator.answer_page("few")
    assert ("link", "Answer page of: Do you cycle?") in browser.named_nodes()


def test_the_link_for_people_is_copied(browser: Any, curator: Any) -> None:
    allowed = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": curator.url}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", allowed)
    sign_in(browser, curator, "few")
    browser.click("main button", "Copy link")
    browser.see("main button", "Copied")
    assert browser.run("return navigator.clipboard.readText()") == curator.answer_page("few")
    assert "copied" in browser.run("return document.querySelector('[role=status]').textContent")


def test_a_campaign_is_made_from_its_file(browser: Any, curator: Any, tmp_path: Path) -> None:
    campaign = ask("Do you sing?", pv.Prior({"yes": 0.2, "no": 0.8}), smallest_count=5)
    file = tmp_path / "campaign.json"
    file.write_text(campaign.to_json(), encoding="utf-8")
    sign_in(browser, curator)
    browser.see("input[type=file]").send_keys(str(file))
    browser.click("button", "Create campaign")
    browser.see(HEADING, "Do you sing?")
    assert browser.driver.current_url.endswith(f"#{campaign.id}")
    browser.see("#withheld", "fewer than 5 reports")


@pytest.mark.parametrize("content", ["{}", "not JSON", '{"format": 1}'])
def test_another_file_is_refused_with_the_reason(
    browser: Any, curator: Any, tmp_path: Path, content: str
) -> None:
    browser.forgiven = ["422"]
    file = tmp_path / "other.json"
    file.write_text(content, encoding="utf-8")
    sign_in(browser, curator)
    browser.see("input[type=file]").send_keys(str(file))
    browser.click("button", "Create campaign")
    browser.see("[role=alert]", "This file was not accepted.")
    browser.picture("dashboard-refused-file")


def test_a_campaign_is_closed_only_when_that_is_confirmed(browser: Any, curator: Any) -> None:
    curator.answered("ending", [0] * 40)
    sign_in(browser, curator, "ending")
    browser.see("main p", "can be below zero")
    browser.click("#close")
    browser.see("dialog h2", "Close this campaign?")
    browser.picture("dashboard-close")
    assert browser.run("return document.activeElement.textContent") == "Keep it open"
    browser.press(ESCAPE)
    assert browser.gone("dialog")
    browser.click("#close")
    browser.click("dialog button", "Keep it open")
    assert browser.gone("dialog")
    assert state(browser, "ending", curator) == "open"
    browser.click("#close")
    browser.click("dialog button", "Close it")
    browser.see(".facts .badge", "closed")
    assert state(browser, "ending", curator) == "closed"
    assert browser.gone("#close, dialog")
    browser.see("#histogram")
    browser.open(curator.answer_page("ending"))
    browser.see("main", "This question is closed")


def test_a_closed_campaign_reopens_and_goes_only_when_that_is_confirmed(
    browser: Any, curator: Any, tmp_path: Path
) -> None:
    browser.forgiven = ["409", "404"]
    ended = ask("Was it?", pv.Prior({"yes": 0.2, "no": 0.8}), closes=datetime(2026, 1, 1, tzinfo=UTC))
    curator.create(ended)
    sign_in(browser, curator)
    entry(browser, "Was it?").find_element("css selector", "a").click()
    browser.click("#reopen")
    browser.see("dialog h2", "Reopen this campaign?")
    browser.click("dialog button", "Reopen it")
    browser.see("dialog [role=alert]", "cannot reopen")
    browser.click("dialog button", "Keep it closed")
    assert browser.gone("dialog")
    browser.click("#delete")
    browser.see("dialog h2", "Delete this campaign?")
    browser.picture("dashboard-delete")
    assert browser.run("return document.activeElement.textContent") == "Keep it"
    for typed in ("", "000000"):
        browser.see("dialog input").send_keys(typed)
        browser.click("dialog button", "Delete for good")
        browser.see("dialog [role=alert]", "not the first digits")
    browser.run("document.querySelector('dialog input').value = ''")
    browser.see("dialog input").send_keys(ended.id[:6])
    browser.click("dialog button", "Delete for good")
    browser.see(HEADING, "Campaigns")
    browser.see(".campaigns")
    assert "Was it?" not in browser.text("main")


def test_a_campaign_that_was_closed_early_reopens(browser: Any, curator: Any) -> None:
    curator.close("reopened")
    sign_in(browser, curator, "reopened")
    browser.click("#reopen")
    browser.click("dialog button", "Reopen it")
    browser.see(".facts .badge", "open")
    assert state(browser, "reopened", curator) == "open"


def test_closing_needs_no_mouse(browser: Any, curator: Any) -> None:
    sign_in(browser, curator, "later")
    browser.see("#close")
    for _ in range(12):
        browser.press(TAB)
        if browser.run("return document.activeElement.id") == "close":
            break
    browser.press(ENTER)
    browser.see("dialog h2", "Close this campaign?")
    browser.press(ENTER)
    assert browser.gone("dialog")
    assert browser.run("return document.activeElement.id") == "close"
    assert state(browser, "later", curator) == "not yet open"
