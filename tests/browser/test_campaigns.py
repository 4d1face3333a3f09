"""The list of campaigns in Chromium: what each is, the link for people, a new one, the end of one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

import priorveil as pv
from browser.steps import ANALYST, ENTER, ESCAPE, TAB, choose, open_dashboard
from priorveil.questions.campaign import ask

HEADING = "main h1"


def entry(browser: Any, question: str) -> Any:
    return browser.see(".campaigns li", question)


def state(browser: Any, name: str, curator: Any) -> str:
    place = f"/v1/campaigns/{curator.campaigns[name].id}/status"
    return str(browser.run("return fetch(arguments[0]).then(r => r.json()).then(s => s.state)", place))


def test_each_campaign_has_its_state_and_its_link(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator)
    for question, told in (("Do you cycle?", "open"), ("Is it time yet?", "not yet open")):
        assert entry(browser, question).find_element("css selector", ".badge").text == told
    assert "closes Jan 1, 2999" in entry(browser, "Do you cycle?").text
    links = entry(browser, "Do you cycle?").find_elements("css selector", "a")
    assert [link.get_attribute("href") for link in links][1] == curator.answer_page("few")
    assert ("link", "Answer page of: Do you cycle?") in browser.named_nodes()


def test_the_link_for_people_is_copied(browser: Any, curator: Any) -> None:
    allowed = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": curator.url}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", allowed)
    open_dashboard(browser, curator, "few")
    browser.click("main button", "Copy link")
    browser.see("main button", "Copied")
    assert browser.run("return navigator.clipboard.readText()") == curator.answer_page("few")
    assert "copied" in browser.run("return document.querySelector('[role=status]').textContent")


def test_a_campaign_is_closed_only_when_that_is_confirmed(browser: Any, curator: Any) -> None:
    curator.answered("ending", [0] * 40)
    open_dashboard(browser, curator, "ending")
    browser.click("#notes summary")
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
    browser.see("main", "This survey is closed")


def test_a_closed_campaign_reopens_and_goes_only_when_that_is_confirmed(
    browser: Any, curator: Any, tmp_path: Path
) -> None:
    browser.forgiven = ["409", "404"]
    ended = ask("Was it?", pv.Prior({"yes": 0.2, "no": 0.8}), closes=datetime(2026, 1, 1, tzinfo=UTC))
    curator.create(ended)
    open_dashboard(browser, curator)
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
    open_dashboard(browser, curator, "reopened")
    browser.click("#reopen")
    browser.click("dialog button", "Reopen it")
    browser.see(".facts .badge", "open")
    assert state(browser, "reopened", curator) == "open"


def test_invitations_are_made_counted_and_shown_once(browser: Any, curator: Any) -> None:
    invited = ask("Do you row?", pv.Prior({"yes": 0.2, "no": 0.8}), admission="invitation")
    curator.create(invited)
    curator.campaigns["rowing"] = invited
    open_dashboard(browser, curator, "rowing")
    browser.see("#free", "nobody has used yet: 0")
    browser.click("#invite")
    for count in ("", "0", "10001", "-3", "2.5"):
        browser.run("document.querySelector('dialog input').value = arguments[0]", count)
        browser.click("dialog button", "Make them")
        browser.see("dialog [role=alert]", "Give a number from 1 to 10,000.")
    browser.run("document.querySelector('dialog input').value = 12")
    browser.click("dialog button", "Make them")
    browser.see("dialog h2", "12 links")
    links = browser.run("return document.querySelector('dialog textarea').value").split()
    browser.click("dialog button", "Save as a file")
    file = browser.downloaded(f"invitations-{invited.id[:12]}.txt")
    assert file.read_text().split() == links and len(set(links)) == 12
    browser.click("dialog button", "Done")
    assert browser.gone("dialog")
    browser.see("#free", "nobody has used yet: 12")
    browser.open(links[0])
    choose(browser, "yes")
    browser.click("button", "Send")
    browser.see("main h1", "Thank you")
    browser.open(f"{curator.url}/dashboard#{invited.id}")
    browser.see("#free", "nobody has used yet: 11")


def test_a_second_click_does_nothing_twice(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "invited")
    browser.click("#invite")
    browser.see("dialog h2", "Make invitations?")
    browser.requests()
    browser.run(
        "document.querySelector('dialog input').value = 3;"
        "const button = document.querySelector('dialog button'); button.click(); button.click();"
    )
    browser.see("dialog h2", "3 links")
    sent = [r for r in browser.requests() if r["method"] == "POST"]
    assert len(sent) == 1
    browser.click("dialog button", "Done")
    assert browser.gone("dialog")


def test_a_dialog_says_that_the_curator_cannot_be_reached(browser: Any, curator: Any) -> None:
    """And stays open: nothing tries again by itself."""
    browser.forgiven = ["ERR_INTERNET_DISCONNECTED"]
    open_dashboard(browser, curator, "invited")
    browser.click("#invite")
    browser.see("dialog input").send_keys("1")
    browser.offline(True)
    try:
        browser.click("dialog button", "Make them")
        browser.see("dialog [role=alert]", "The curator cannot be reached. Try again.")
    finally:
        browser.offline(False)
    browser.click("dialog button", "Make them")
    browser.see("dialog h2", "One link")
    browser.click("dialog button", "Done")
    assert browser.gone("dialog")


def test_an_analyst_is_offered_what_the_token_opens_and_no_more(browser: Any, curator: Any) -> None:
    """The console stays empty, so nothing that needs another role was asked for."""
    open_dashboard(browser, curator, token=ANALYST)
    listed = entry(browser, "Do you own a bicycle?")
    assert "no results yet" in listed.text
    listed.find_element("css selector", "a").click()
    browser.see("#stored", "There are no results yet")
    curator.close("invited")
    browser.see("#stored", "after the campaign closed")
    browser.see("#admission", "Each answer needed an invitation")
    changes = "#free, #invite, #release, #close, #reopen, #delete"
    assert browser.gone(f"{changes}, #download, #download-csv, #download-json")
    curator.close("invited", "reopen")
    browser.click("main a", "All campaigns")
    entry(browser, "Do you own a bicycle?")
    assert browser.gone("main a[href='#new'], main a[href='#records']")


def test_an_admin_releases_results_to_analysts(browser: Any, curator: Any) -> None:
    browser.forgiven = ["409"]
    open_dashboard(browser, curator, "released")
    browser.see("#stored", "No results yet")
    curator.answered("released", [0] * 19)
    browser.click("#release")
    browser.click("dialog button", "Release them")
    browser.see("dialog [role=alert]", "19 of 20")
    curator.answered("released", [0])
    browser.click("dialog button", "Release them")
    assert browser.gone("dialog")
    browser.see("#stored", "Results from 20 reports")
    curator.answered("released", [0])
    open_dashboard(browser, curator, "released", ANALYST)
    browser.see("#stored", "an admin released them")
    assert browser.text("#reports") == "20"
    browser.picture("dashboard-stored-light")


def test_records_tell_who_did_what(browser: Any, curator: Any) -> None:
    gone = ask("Do you dive?", pv.Prior({"yes": 0.2, "no": 0.8}))
    curator.create(gone)
    curator.campaigns["diving"] = gone
    curator.close("diving")
    curator.invite("invited", 1234)
    open_dashboard(browser, curator)
    browser.click("main a", "Records")
    browser.see(".records")
    rows = [row.text for row in browser.driver.find_elements("css selector", ".records tbody tr")][:3]
    for row, parts in zip(
        rows,
        (
            ("invited", "Do you own a bicycle?", "1,234"),
            ("closed", "Do you dive?"),
            ("created", "Do you dive?"),
        ),
        strict=True,
    ):
        assert all(part in row for part in ("stage", *parts))
    browser.click(".records a", "Do you dive?")
    browser.see(HEADING, "Do you dive?")
    browser.click("#delete")
    browser.see("dialog input").send_keys(gone.id[:6])
    browser.click("dialog button", "Delete for good")
    browser.see(".campaigns")
    browser.click("main a", "Records")
    first = browser.see(".records tbody tr")
    assert all(part in first.text for part in ("stage", "deleted", gone.id[:12], "0"))
    assert first.find_elements("css selector", "a") == []


def test_closing_needs_no_mouse(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "later")
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


def test_tokens_are_made_shown_once_and_revoked_each_after_a_question(browser: Any, curator: Any) -> None:
    browser.forgiven = ["401", "409"]
    open_dashboard(browser, curator)
    browser.click("main a", "Tokens")
    browser.see("main th", "reader")
    browser.see("input[name=name]").send_keys("auditor")
    browser.see("select[name=role]").send_keys("analyst")
    browser.click("main form button")
    browser.see("dialog p", "Its role is analyst")
    assert browser.run("return document.activeElement.textContent") == "Make none"
    browser.click("dialog button", "Make it")
    browser.see("dialog h2", "The token auditor")
    secret = browser.run("return document.querySelector('dialog input').value")
    browser.click("dialog button", "Done")
    browser.see("main th", "auditor")
    assert secret not in browser.run("return document.documentElement.outerHTML")
    headers = {"authorization": f"Bearer {secret}"}
    assert httpx.get(f"{curator.url}/v1/token", headers=headers).json()["role"] == "analyst"
    browser.see("input[name=name]").send_keys("auditor")
    browser.click("main form button")
    browser.click("dialog button", "Make it")
    browser.see("dialog [role=alert]", "there is a token with the name auditor")
    browser.click("dialog button", "Make none")
    browser.click("#revoke-auditor")
    browser.see("dialog h2", "Revoke the token auditor?")
    browser.click("dialog button", "Revoke it")
    assert browser.gone("#revoke-auditor")
    assert httpx.get(f"{curator.url}/v1/token", headers=headers).status_code == 401


def test_an_analyst_is_offered_no_tokens(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, token=ANALYST)
    browser.see(".campaigns li")
    assert "Tokens" not in browser.text("main")
