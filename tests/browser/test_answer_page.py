"""The respondent's page in Chromium: only the perturbed report leaves, by mouse, by keyboard, on a phone."""

from __future__ import annotations

import json
import math
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser.steps import (
    COLOURS,
    DOWN,
    ENTER,
    ESCAPE,
    HOLD_REQUEST,
    SPACE,
    TAB,
    choose,
    choose_language,
    ends_on_the_right,
    running_first,
    start,
    type_over,
)
from patience import wait_until
from priorveil import Distribution, Prior, design
from priorveil.plans.form import Form, Part, Slot
from priorveil.questions.campaign import Campaign, ask
from priorveil.questions.choices import SingleChoice

STEPS = "main h1"
PHONE = 360  # pixels across


def receipt(browser: Any) -> dict[str, Any]:
    """What the last page shows as sent."""
    found: dict[str, Any] = json.loads(browser.see("#sent").text)
    return found


def send(browser: Any) -> dict[str, Any]:
    """Send, and read the receipt."""
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    return receipt(browser)


ENTRIES = """
  return new Promise((done, failed) => {
    const opening = indexedDB.open("priorveil");
    opening.onerror = () => failed(opening.error);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("reports").objectStore("reports").getAll();
      reading.onsuccess = () => done(reading.result);
      opening.result.close();
    };
  });
"""


def stored(browser: Any) -> list[dict[str, Any]]:
    """What the browser remembers; the page has made the database."""
    texts = browser.run(ENTRIES)
    records = [record for record in map(json.loads, texts) if "report" in record]
    for record in records:
        assert record.pop("origin").startswith("http://") and float(record.pop("ldp")) > 0
    return records


def unfold(browser: Any, text: str) -> None:
    """Open a fold-out, also one that is behind the buttons at the bottom of the screen."""
    browser.run("arguments[0].click()", browser.see("summary", text))


def posted(browser: Any) -> list[dict[str, Any]]:
    """The reports that left since the last look."""
    return [json.loads(r["postData"]) for r in browser.requests() if r["method"] == "POST"]


def urls_loaded(browser: Any) -> list[str]:
    """What was loaded since the last look, without the icon: Chromium asks for that only if it does not know it yet."""
    return sorted(r["url"] for r in browser.requests() if not r["url"].endswith("/icon.svg"))


@pytest.fixture
def impatient(browser: Any) -> Iterator[Any]:
    """A browser in which no script waits long before it tries a request again."""
    script = "const wait = setTimeout; window.setTimeout = (act, pause) => wait(act, Math.min(pause, 20));"
    with running_first(browser, script):
        yield browser


def test_only_the_perturbed_report_leaves_and_it_is_counted(browser: Any, curator: Any) -> None:
    before = curator.counters("work")["reports"]["everyone"]
    browser.open(curator.answer_page("work"))
    browser.see(STEPS, "What kind of work do you do?")
    loaded = browser.requests()
    assert len(loaded) >= 6 and {r["method"] for r in loaded} == {"GET"}
    assert all(r["url"].startswith(curator.url) for r in loaded)
    browser.picture("answer-start-light")
    choose_language(browser, "de")
    choose_language(browser, "en")
    start(browser)
    browser.picture("answer-question-light")
    choose(browser, "Government")
    browser.picture("answer-review-light")
    assert browser.requests() == [], "nothing more is loaded before it is sent"
    report = send(browser)
    browser.picture("answer-thanks-light")
    sent = browser.requests()
    assert all(r["url"].startswith(curator.url) for r in sent)
    assert [json.loads(r["postData"]) for r in sent if r["method"] == "POST"] == [report]
    assert set(report) == {"report_id", "form", "report"}
    assert len(report["report"]) == 16 and len(report["report_id"]) == 32
    assert stored(browser) == [{**report, "delivered": True}]
    browser.open(curator.answer_page("work"))
    browser.see(STEPS, "You have already answered")
    assert curator.counters("work")["reports"]["everyone"] == before + 1


def type_number(browser: Any, typed: str) -> None:
    type_over(browser, browser.see("input[name=answer]"), typed)
    browser.click("button", "Continue")


def test_a_number_is_typed_in_and_only_its_report_leaves(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("hours"))
    start(browser)
    browser.see("main", "A number from 0 to 80")
    assert browser.see("input[name=answer]").get_attribute("inputmode") == "decimal"
    type_number(browser, "1,234")
    browser.see("#answer-problem", "read in two ways")
    field = browser.see("input[name=answer]")
    assert field.get_attribute("aria-invalid") == "true"
    assert "answer-problem" in field.get_attribute("aria-describedby")
    assert browser.run("return document.activeElement.name") == "answer"
    type_number(browser, "250")
    browser.see(STEPS, "Check and send")
    assert "\n250, which counts as 80\n" in browser.text(".answers")
    browser.click("button", "Back")
    choose_language(browser, "de")
    assert browser.see("input[name=answer]").get_attribute("value") == "250"
    type_over(browser, browser.see("input[name=answer]"), "37,25")
    browser.click("button", "Weiter")
    browser.see(STEPS, "Prüfen und senden")
    assert "\n37,25\n" in browser.text(".answers")
    choose_language(browser, "en")
    assert "near 40" in browser.text("main")
    report = send(browser)
    assert posted(browser) == [report] and "37.25" not in json.dumps(stored(browser))


def test_who_asks_why_and_who_could_see_what_comes_before_the_question(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    browser.see(STEPS, "What kind of work do you do?")
    in_order(
        browser.text("main"), "The town of Example, office of statistics", "To plan buses for people who work"
    )
    assert len(table(browser, ".consequences")) == 4
    assert not browser.driver.find_elements("css selector", "input")


def test_weak_scrambling_and_what_is_not_protected_are_said_before_and_after(
    browser: Any, curator: Any
) -> None:
    campaign = ask("Do you smoke?", Prior({"yes": 0.24, "no": 0.76}), 5.0)
    curator.create(campaign)
    browser.open(f"{curator.url}/answer/{campaign.id}")
    browser.see(STEPS, "Do you smoke?")
    assert {tuple(row[1:]) for row in table(browser, ".consequences")} == {("not hidden", "visible")}
    assert "The scrambling is weak here" in browser.text("main")
    choose(browser, "yes")
    assert "The scrambling is weak here" in browser.text("main")
    browser.open(curator.answer_page("secret"))
    browser.see("main", "may be worked out")
    choose(browser, "never")
    text = browser.text("main")
    assert "what is sent can give the answer away" in text and "proves" not in text


def test_the_group_is_said_not_to_be_scrambled_before_the_question(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("cohorts"))
    browser.see(STEPS, "Are you ill?")
    in_order(browser.text("main"), "Your group", "Not scrambled: it is sent as it is", "Start")
    hint = browser.see("select[name=cohort]").get_attribute("aria-describedby").split()[0]
    assert "Not scrambled" in browser.text(f"#{hint}")
    browser.click("button", "Start")
    browser.see("#cohort-problem", "Please choose")


def in_order(text: str, *parts: str) -> None:
    places = [text.find(part) for part in parts]
    assert min(places) >= 0 and places == sorted(places), (
        f"{dict(zip(parts, places, strict=True))} in:\n{text}"
    )


def only_plan(curator: Any, name: str, cohort: str = "everyone") -> Any:
    (part,) = curator.campaigns[name].cohorts[cohort].parts
    return part.plan


def table(browser: Any, css: str) -> list[list[str]]:
    """The cells of a table's rows."""
    rows = browser.driver.find_elements("css selector", f"{css} tbody tr")
    return [[cell.text for cell in row.find_elements("css selector", "th, td")] for row in rows]


def test_reports_and_what_they_promise_are_explained_and_none_is_drawn(browser: Any, curator: Any) -> None:
    plan = only_plan(curator, "work")
    browser.open(curator.answer_page("work"))
    browser.see(STEPS)
    before = browser.text("body")
    choose(browser, "None")
    text = browser.text("main")
    assert not re.search("perturb|odds|What it could mean", before + text)  # the fold-outs are closed
    joint = plan.prior.probabilities[:, None] * plan.channel.matrix
    shares = 100 * (joint / joint.sum(axis=0))[3]
    rows = table(browser, ".reports")
    assert [name for name, _, _ in rows] == [f"code {report}" for report in range(len(shares))]
    for (_, drawn, same), chance, share in zip(rows, plan.channel.matrix[3], shares, strict=True):
        assert abs(float(drawn.strip("%")) - 100 * chance) < 0.051
        assert abs(int(same.removeprefix("about ")) - share) < 0.51
    assert f"one of {len(shares)} codes" in browser.text(".leaving")
    assert "Of 100 people in general, about 7 would answer as you did." in text
    assert not browser.driver.find_elements("css selector", "#sent") and stored(browser) == []
    levels = curator.campaigns["work"].promise["everyone"]
    lip, ldp = map(float, re.findall(r"at most a factor of ([0-9.]*[0-9])", browser.text(".promise")))
    assert 0 <= lip - math.exp(levels.lip) < 0.011 and 0 <= ldp - math.exp(levels.ldp) < 0.011
    unfold(browser, "For the curious")
    assert "Local information privacy 1, local differential privacy 2" in browser.text("main")


@pytest.mark.parametrize("name", ["many", "cohorts", "secret"])
def test_send_is_visible_on_a_phone_without_scrolling(browser: Any, curator: Any, name: str) -> None:
    browser.size(390, 844, scale=2, mobile=True)
    browser.open(curator.answer_page(name))
    browser.see("main form")
    for chosen in browser.driver.find_elements("css selector", "select[name=cohort]"):
        chosen.send_keys("south")
    start(browser)
    for chosen in browser.driver.find_elements("css selector", "select[name=answer]"):
        chosen.send_keys("Occupation 7")
    for choice in browser.driver.find_elements("css selector", "label.choice")[:1]:
        choice.click()
    browser.click("button", "Continue")
    browser.see(STEPS, "Check and send")
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        send = browser.run(
            "const send = [...document.querySelectorAll('button')].find(b => b.textContent === 'Send');"
            "const box = send.getBoundingClientRect();"
            "const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];"
            "const seen = document.elementFromPoint(x, y) === send;"
            "return {seen, bottom: box.bottom, height: innerHeight, scrolled: scrollY}"
        )
        assert send["seen"] and send["bottom"] <= send["height"] == 844 and send["scrolled"] == 0
        browser.picture(f"answer-send-{name}-{scheme}")


COVERED = """
  const covered = () => [...document.querySelectorAll("h1, #stage p, label.choice, td, th, dd")].filter((element) => {
    const box = element.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    if (!element.checkVisibility() || box.height === 0 || y < 0 || y > innerHeight) return false;
    const top = document.elementFromPoint(x, y);
    return top !== element && !element.contains(top) && !top?.contains(element);
  }).map((element) => element.textContent);
  const found = {};
  for (let place = 0; place < 1200; place += arguments[0]) {
    scrollTo(0, place);
    if (covered().length > 0) found[place] = covered();
  }
  return found;
"""


def covered(browser: Any, step: int) -> dict[str, list[str]]:
    """The texts that something else covers, by how far the page is scrolled down, in steps of so many pixels."""
    found: dict[str, list[str]] = browser.run(COVERED, step)
    return found


@pytest.mark.parametrize("language", ["de", "ar"])
def test_no_button_covers_text_before_the_last_step(browser: Any, curator: Any, language: str) -> None:
    browser.size(390, 844, scale=2, mobile=True)
    for name in ("survey", "long"):
        browser.open(curator.answer_page(name))
        browser.see("button", "Start")
        choose_language(browser, language)
        for step in ("start", "question"):
            assert covered(browser, 150) == {}, (name, step)
            if step == "start":
                browser.click("main form button[type=submit]")
                browser.see("#progress:not([hidden])")


def test_on_a_low_window_the_last_step_scrolls_as_a_whole(browser: Any, curator: Any) -> None:
    browser.size(740, 360, scale=2, mobile=True)
    browser.open(curator.answer_page("long"))
    choose(browser, "I read")
    assert covered(browser, 100) == {}


def test_a_missing_answer_is_said_where_it_can_be_read(browser: Any, curator: Any) -> None:
    """The list is longer than the screen: the words stand above it, and come into view."""
    browser.size(390, 844, scale=2, mobile=True)
    browser.open(curator.answer_page("long"))
    start(browser)
    browser.click("button", "Continue")
    browser.see("#answer-problem", "Please choose an answer.")
    box = browser.run(
        "const box = document.querySelector('#answer-problem').getBoundingClientRect();"
        "return [box.top, innerHeight - box.bottom]"
    )
    assert min(box) >= 0
    assert browser.run("return document.activeElement.name") == "answer"


def test_nothing_is_drawn_before_it_is_sent_so_that_nobody_can_try_until_they_like_it(
    browser: Any, curator: Any
) -> None:
    browser.open(curator.answer_page("few"))
    choose(browser, "yes")
    first = browser.text("main")
    browser.click("button", "Back")
    assert browser.see("input:checked").get_attribute("value") == "0"
    choose(browser, "no")
    browser.click("button", "Back")
    choose(browser, "yes")
    assert browser.text("main") == first
    browser.open(curator.answer_page("few"))  # a reload
    choose(browser, "yes")
    assert browser.text("main") == first and stored(browser) == []
    report = send(browser)
    assert stored(browser) == [{**report, "delivered": True}]


def test_the_keyboard_is_enough(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("keyboard"))
    browser.see("button", "Start")
    assert browser.run("return document.activeElement.tagName") == "H1"
    browser.press(TAB, ENTER)
    browser.see("label.choice", "Private")
    browser.press(TAB, SPACE, DOWN, DOWN)
    assert browser.see("input:checked").get_attribute("value") == "2"
    browser.press(TAB)
    browser.picture("answer-keyboard-focus")
    browser.press(ENTER)
    browser.see(STEPS, "Check and send")
    assert browser.run("return document.activeElement.tagName") == "H1"
    for _ in range(12):
        browser.press(TAB)
        if browser.run("return document.activeElement.textContent") == "Send":
            break
    browser.press(ENTER)
    browser.see(STEPS, "Thank you")
    assert curator.counters("keyboard")["reports"]["everyone"] == 1


def fits(browser: Any) -> None:
    """Nothing sticks out, and what can be pressed is large enough for a thumb."""
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE
    heights = browser.run(
        "const pressed = [...document.querySelectorAll('button, .choice, select')];"
        "return pressed.filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height)"
    )
    assert heights and min(heights) >= 44


def test_a_phone_is_enough(browser: Any, curator: Any) -> None:
    browser.size(PHONE, 740, scale=2, mobile=True)
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.open(curator.answer_page("phone"))
        browser.see("button", "Start")
        fits(browser)
        browser.picture(f"answer-start-phone-{scheme}")
        start(browser)
        fits(browser)
        browser.picture(f"answer-question-phone-{scheme}")
        choose(browser, "Private")
        fits(browser)
        browser.picture(f"answer-review-phone-{scheme}")
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE
    browser.picture("answer-thanks-phone-dark")


def test_a_report_that_cannot_be_delivered_is_kept(impatient: Any, curator: Any) -> None:
    browser = impatient
    browser.forgiven = ["ERR_INTERNET_DISCONNECTED"]
    browser.open(curator.answer_page("offline"))
    choose(browser, "yes")
    browser.offline(True)
    browser.click("button", "Send")
    browser.see(STEPS, "Not sent yet")
    browser.picture("answer-undelivered-light")
    (kept,) = stored(browser)
    report = {name: kept[name] for name in ("report_id", "form", "report")}
    assert kept == {**report, "delivered": False}
    assert report["report"] not in browser.text("body") and report["report_id"] not in browser.text("body")
    browser.offline(False)
    browser.open(curator.answer_page("offline"))
    browser.click("button", "Try again")
    browser.see(STEPS, "Thank you")
    assert receipt(browser) == report
    assert stored(browser) == [{**report, "delivered": True}]
    assert curator.counters("offline")["reports"]["everyone"] == 1


def test_a_question_that_was_closed_is_asked_again(browser: Any, curator: Any) -> None:
    """The clock of the curator may have been wrong, or the campaign reopens."""
    browser.open(curator.answer_page("reopened"))
    choose(browser, "yes")
    curator.close("reopened")
    browser.click("button", "Send")
    browser.see(STEPS, "Not sent yet")
    browser.see("[role=alert]", "this survey is closed")
    (kept,) = stored(browser)
    browser.open(curator.answer_page("reopened"))
    browser.see("main", "It is kept in this browser")
    curator.close("reopened", "reopen")
    browser.open(curator.answer_page("reopened"))
    browser.click("button", "Try again")
    browser.see(STEPS, "Thank you")
    assert stored(browser) == [{**kept, "delivered": True}] == [{**receipt(browser), "delivered": True}]


def test_a_report_that_was_cleared_away_is_not_said_to_have_arrived(impatient: Any, curator: Any) -> None:
    browser = impatient
    browser.forgiven = ["ERR_INTERNET_DISCONNECTED"]
    browser.open(curator.answer_page("few"))
    choose(browser, "yes")
    count = curator.counters("few")["reports"]["everyone"]
    browser.offline(True)
    browser.click("button", "Send")
    browser.see(STEPS, "Not sent yet")
    browser.offline(False)
    browser.forget()
    browser.click("button", "Try again")
    browser.see(STEPS, "Do you cycle?")
    assert curator.counters("few")["reports"]["everyone"] == count


def test_a_browser_that_stores_nothing_cannot_answer_and_says_so(forgetful: Any, curator: Any) -> None:
    count = curator.counters("few")["reports"]["everyone"]
    forgetful.open(curator.answer_page("few"))
    forgetful.see(STEPS, "You cannot answer in this browser")
    forgetful.picture("answer-no-storage-light")
    text = forgetful.text("main")
    assert "nothing was sent" in text and "store data of this site" in text
    assert forgetful.faults() == []
    assert forgetful.driver.find_elements("css selector", "form, button") == []
    assert not [r for r in forgetful.requests() if r["method"] != "GET"]
    assert forgetful.complaints() == []
    assert curator.counters("few")["reports"]["everyone"] == count


@contextmanager
def full(browser: Any, origin: str) -> Iterator[None]:
    """While this lasts, pages of an origin may store one byte; Chromium takes nought for no limit."""
    browser.driver.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 1})
    try:
        yield
    finally:
        browser.driver.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": origin})


def test_a_full_storage_stops_the_report_before_it_leaves(browser: Any, curator: Any) -> None:
    # A name under which nothing was stored yet: Chromium knows for a while how much room an origin had.
    origin = curator.url.replace("127.0.0.1", "localhost")
    with full(browser, origin):
        browser.open(curator.answer_page("few").replace(curator.url, origin))
        choose(browser, "yes")
        browser.click("button", "Send")
        browser.see(STEPS, "You cannot answer in this browser")
    browser.run("document.querySelector('details').open = true")
    assert "QuotaExceededError" in browser.text("details")
    assert not [r for r in browser.requests() if r["method"] != "GET"]
    assert stored(browser) == []


HOLDING = """
  return new Promise((done) => {
    const opening = indexedDB.open("priorveil");
    opening.onsuccess = () => {
      const reports = opening.result.transaction("reports", "readwrite").objectStore("reports");
      const on = () => { done(); if (window.holding) reports.count().onsuccess = on; };
      window.holding = true;
      reports.count().onsuccess = on;
      opening.result.close(); // once the transaction has ended
    };
  });
"""


def test_two_tabs_that_send_at_once_send_one_report(browser: Any, curator: Any) -> None:
    """Both wait for a transaction to look up what is remembered; then both find nothing, and want to remember."""
    count = curator.counters("few")["reports"]["everyone"]
    browser.open(curator.answer_page("few"))
    choose(browser, "no")
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    second = browser.driver.current_window_handle
    try:
        browser.open(curator.answer_page("few"))
        choose(browser, "yes")
        browser.run(HOLDING)
        for tab in (first, second):
            browser.driver.switch_to.window(tab)
            browser.click("button", "Send")
            browser.see("button", "Sending…")
        browser.run("window.holding = false")
        told, kept = [], []
        for tab in (second, first):
            browser.driver.switch_to.window(tab)
            kept.append(receipt(browser))
            told.append(browser.text(STEPS))
    finally:
        browser.driver.switch_to.window(second)
        browser.driver.close()
        browser.driver.switch_to.window(first)
    assert sorted(told) == ["Thank you", "You have already answered"]
    assert kept[0] == kept[1]
    sent = posted(browser)
    assert sent and all(report == kept[0] for report in sent)
    assert stored(browser) == [{**kept[0], "delivered": True}]
    assert curator.counters("few")["reports"]["everyone"] == count + 1


def test_a_report_that_came_first_stands(browser: Any, curator: Any) -> None:
    """Another tab remembers its report after this one has looked, and before it remembers its own."""
    key = f"priorveil:{curator.campaigns['few'].id}"
    browser.open(curator.answer_page("few"))
    choose(browser, "yes")
    form = curator.campaigns["few"].cohorts["everyone"]
    earlier = {"report_id": "0123456789abcdef" * 2, "form": form.id, "report": "0" * 16}
    record = {**earlier, "origin": curator.url, "ldp": "1.0", "delivered": False}
    browser.run(
        """
          const [key, text] = arguments;
          const transaction = IDBDatabase.prototype.transaction;
          window.durability = [];
          IDBDatabase.prototype.transaction = function (store, mode, options) {
            if (mode === "readwrite" && durability.length === 0)
              transaction.call(this, store, mode).objectStore(store).add(text, key);
            const made = transaction.call(this, store, mode, options);
            if (mode === "readwrite") durability.push(made.durability);
            return made;
          };
        """,
        key,
        json.dumps(record),
    )
    browser.click("button", "Send")
    browser.see(STEPS, "You have already answered")
    assert posted(browser) == [earlier]
    assert stored(browser) == [{**earlier, "delivered": True}]
    assert browser.run("return durability") == ["strict", "strict"]


def test_a_browser_that_is_killed_still_remembers(
    stage: Any, programs: tuple[str, str], curator: Any, tmp_path: Path
) -> None:
    """The report is on the disk before it is sent: nothing is left to a tidy end."""
    browser = stage.opened(*programs, tmp_path)
    try:
        browser.open(curator.answer_page("few"))
        choose(browser, "yes")
        report = send(browser)
        lock = (tmp_path / "profile" / "SingletonLock").readlink()  # names the machine and the process
        os.kill(int(lock.name.rpartition("-")[2]), signal.SIGKILL)
    finally:
        browser.driver.quit()
    again = stage.opened(*programs, tmp_path)
    try:
        again.open(curator.answer_page("few"))
        again.see(STEPS, "You have already answered")
        assert stored(again) == [{**report, "delivered": True}]
    finally:
        again.driver.quit()


def test_many_answers_and_cohorts_are_picked_from_a_list(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("many"))
    start(browser)
    browser.see("select[name=answer]").send_keys("Occupation 7")
    browser.click("button", "Continue")
    browser.see(STEPS, "Check and send")
    assert "a random code" in browser.text(".leaving")
    told = re.search(r"at least (\d+) and at most (\d+) answered “Occupation 7”", browser.text("figure"))
    plan = only_plan(curator, "many")
    before, levels = 100 * plan.prior.probabilities[6], plan.certificate
    assert told and before * math.exp(-levels.lip_lower) - 1 < int(told[1]) <= before
    assert before <= int(told[2]) < before * math.exp(levels.lip_upper) + 1
    browser.open(curator.answer_page("cohorts"))
    browser.see("select[name=cohort]").send_keys("south")
    choose(browser, "no")
    assert "south sent as it is, not scrambled" in browser.text(".leaving")
    assert "Of 100 people in your group, about 80 would answer as you did." in browser.text("figure")
    assert send(browser)["form"] == curator.campaigns["cohorts"].cohorts["south"].id


def test_shut_and_unknown_questions_say_so(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("later"))
    assert "not open yet" in browser.text("main", "Is it time yet?")
    browser.forgiven = ["404"]
    for unknown in ("0" * 64, "nonsense", "%E0%A4%A"):
        browser.open(f"{curator.url}/answer/{unknown}")
        browser.see(STEPS, "There is no such survey")


def test_a_question_that_was_closed_early_promises_no_later_end(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("early"))
    browser.see("#about", "Answers are accepted until")
    curator.close("early")
    browser.open(curator.answer_page("early"))
    browser.see("main", "This survey is closed")
    assert "accepted until" not in browser.text("body")


def test_text_from_right_to_left_keeps_its_order(browser: Any, curator: Any) -> None:
    """A full stop at the end of Arabic text stands at its left."""
    browser.open(curator.answer_page("arabic"))
    start(browser)
    browser.see("label.choice", "نعم")
    places = """
      const text = document.querySelector(arguments[0]).firstChild;
      const at = (i) => {
        const range = document.createRange();
        range.setStart(text, i);
        range.setEnd(text, i + 1);
        return range.getBoundingClientRect().left;
      };
      return [at(0), at(text.length - 1)];
    """
    for element in ("h1 bdi", "label.choice bdi"):
        first, last = browser.run(places, element)
        assert last < first, element


def test_a_page_that_may_not_use_cryptography_says_why(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work").replace("127.0.0.1", "0.0.0.0"))
    assert browser.run("return isSecureContext") is False
    browser.see(STEPS, "This page needs a secure connection")


def test_a_changed_campaign_is_not_answered(browser: Any, curator: Any) -> None:
    """The curator's answer is changed on its way, as a network or a server gone bad could do it."""
    script = """
      const fetched = window.fetch;
      window.fetch = async (...request) => {
        const response = await fetched(...request);
        if (!String(request[0]).match(/campaigns.[0-9a-f]{64}$/)) return response;
        const text = (await response.text()).replace("What kind of work", "What kind of illness");
        return new Response(text, { headers: response.headers });
      };
    """
    with running_first(browser, script):
        browser.open(curator.answer_page("work"))
        browser.see(STEPS, "This survey cannot be trusted")
    assert not [r for r in browser.requests() if r["method"] == "POST"]


BREAKING = """
  const fetched = window.fetch;
  window.fetch = async (...request) => {
    const response = await fetched(...request);
    if (!String(request[0]).endsWith("PLACE")) return response;
    const start = (answer) => { answer.enqueue(new TextEncoder().encode("{")); answer.error(new TypeError("gone")); };
    return new Response(new ReadableStream({ start }), { headers: response.headers });
  };
"""


def test_a_download_that_breaks_off_is_not_called_tampering(impatient: Any, curator: Any) -> None:
    browser = impatient
    with running_first(browser, BREAKING.replace("PLACE", curator.campaigns["work"].id)):
        browser.open(curator.answer_page("work"))
        browser.see(STEPS, "No connection")
    with running_first(browser, BREAKING.replace("PLACE", "/status")):
        browser.open(curator.answer_page("work"))
        browser.see(STEPS, "What kind of work do you do?")


def test_a_screen_reader_finds_names_and_headings(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    browser.see("button", "Start")
    nodes = browser.named_nodes()
    assert {("heading", "What kind of work do you do?"), ("combobox", "Language")} <= nodes
    assert {("rowheader", "The people who ask"), ("columnheader", "Your answers")} <= nodes
    start(browser)
    nodes = browser.named_nodes()
    assert {("radio", "Self-employed"), ("radiogroup", "What kind of work do you do?")} <= nodes
    choose(browser, "Private")
    nodes = browser.named_nodes()
    assert {("heading", "Check and send"), ("button", "Send")} <= nodes
    assert ("button", "Change the answer to: What kind of work do you do?") in nodes
    assert ("rowheader", "code 0") in nodes
    assert len(browser.driver.find_elements("css selector", "h1")) == 1


def test_an_invitation_is_checked_before_the_question_and_used_once(browser: Any, curator: Any) -> None:
    first, second = curator.invite("invited", 2)
    browser.open(curator.answer_page("invited"))
    browser.see(STEPS, "You need an invitation")
    browser.open("about:blank")
    browser.open(f"{curator.answer_page('invited')}#code={'0' * 32}")
    browser.see("p.warning", "This invitation cannot be used")
    browser.see("input[name=code]").send_keys(f"{first[:16]} {first[16:]}")  # as it is printed on paper
    browser.click("button", "Continue")
    browser.see(STEPS, "Do you own a bicycle?")
    choose(browser, "Government")
    browser.requests()
    report = send(browser)
    sent = [r for r in browser.requests() if r["method"] == "POST"]
    assert [json.loads(r["postData"]) for r in sent] == [{**report, "code": first}]
    assert not [r for r in sent if first in r["url"]]
    assert not [text for text in stored(browser) if first in json.dumps(text)]
    assert curator.counters("invited")["reports"]["everyone"] == 1
    browser.forget()
    browser.open("about:blank")
    browser.open(f"{curator.answer_page('invited')}#code={first}")
    browser.see("p.warning", "This invitation cannot be used")
    browser.open(f"{curator.answer_page('invited')}#code={second}")  # the same page with another fragment
    browser.see(STEPS, "Do you own a bicycle?")


def test_the_code_of_an_invitation_leaves_the_address_and_a_reload_keeps_it(
    browser: Any, curator: Any
) -> None:
    (code,) = curator.invite("invited", 1)
    place = curator.answer_page("invited")
    browser.open("about:blank")
    browser.open(f"{place}#code={code}")
    for _ in range(2):
        browser.see(STEPS, "Do you own a bicycle?")
        assert browser.driver.current_url == place
        history = browser.driver.execute_cdp_cmd("Page.getNavigationHistory", {})
        assert not [entry for entry in history["entries"] if code in entry["url"]]
        browser.driver.refresh()
    choose(browser, "Private")
    send(browser)
    assert browser.run("return sessionStorage.length") == 0


def test_an_answer_is_withdrawn_with_the_id_on_the_receipt(browser: Any, curator: Any) -> None:
    before = curator.counters("few")["reports"]["everyone"]
    browser.open(curator.answer_page("few"))
    choose(browser, "no")
    report = send(browser)
    assert curator.counters("few")["reports"]["everyone"] == before + 1
    unfold(browser, "Your receipt")
    assert browser.text("#receipt") == report["report_id"]
    assert "This browser and the server have it." in browser.text("main")
    browser.requests()
    browser.see("button", "Withdraw my report").send_keys(ENTER)
    browser.see("dialog h2", "Withdraw your report?")
    assert ("dialog", "Withdraw your report?") in browser.named_nodes()
    assert browser.run("return document.activeElement.textContent") == "Keep it"
    assert browser.faults() == []
    browser.picture("withdraw-asked")
    browser.press(ESCAPE)
    assert browser.gone("dialog") and posted(browser) == []
    assert browser.run("return document.activeElement.textContent") == "Withdraw my report"
    browser.click("button", "Withdraw my report")
    browser.click("dialog button", "Withdraw it")
    browser.see(STEPS, "Your report is withdrawn")
    assert browser.run("return document.activeElement.id") == "heading"
    assert posted(browser) == [{"report_ids": [report["report_id"]]}]
    assert curator.counters("few")["reports"]["everyone"] == before
    browser.open(curator.answer_page("few"))
    browser.see(STEPS, "Your report is withdrawn")
    assert posted(browser) == []


def test_a_withdrawal_that_did_not_arrive_is_not_said_to_have(impatient: Any, curator: Any) -> None:
    browser = impatient
    browser.forgiven = ["ERR_INTERNET_DISCONNECTED"]
    browser.open(curator.answer_page("few"))
    choose(browser, "no")
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    count = curator.counters("few")["reports"]["everyone"]
    unfold(browser, "Your receipt")
    browser.offline(True)
    browser.click("button", "Withdraw my report")
    browser.click("dialog button", "Withdraw it")
    browser.see("[role=alert]", "your report is still there")
    assert browser.see("button", "Withdraw my report").is_enabled()
    browser.offline(False)
    browser.open(curator.answer_page("few"))
    browser.see(STEPS, "You have already answered")
    browser.see("[role=alert]", "your report is still there")
    assert curator.counters("few")["reports"]["everyone"] == count
    browser.click("button", "Withdraw my report")
    browser.click("dialog button", "Withdraw it")
    browser.see(STEPS, "Your report is withdrawn")
    assert curator.counters("few")["reports"]["everyone"] == count - 1
    browser.open(curator.answer_page("few"))
    browser.see(STEPS, "Your report is withdrawn")


def test_a_question_with_all_its_answers_says_so(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("crowded"))
    choose(browser, "Government")
    curator.answered("crowded", [0])
    browser.click("button", "Send")
    browser.see("p.warning", "This survey already has as many reports as it accepts.")
    browser.forget()
    browser.open(f"{curator.url}/")
    browser.open(curator.answer_page("crowded"))
    browser.see("#stage p", "This survey already has as many reports as it accepts.")
    assert not browser.see_now("form"), "nobody answers in vain"


# -- several questions -------------------------------------------------------------------------------------------------


def answer_all(browser: Any, works: str = "Yes") -> list[str]:
    """Answer every question that is asked, from the first page on; the texts of the questions."""
    start(browser)
    asked = [browser.text(STEPS)]
    while (text := asked[-1]) != "Check and send":
        if browser.driver.find_elements("css selector", "input[type=text]"):
            browser.see("input[name=answer]").send_keys("7.5")
        else:
            browser.click("label.choice", works if text == "Do you work at present?" else "")
        browser.click("button", "Continue")
        asked.append(browser.see_other(STEPS, text))
    return asked[:-1]


def test_one_question_at_a_time_with_back_and_review(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("survey"))
    start(browser)
    browser.see("#progress", "Question 1 of 4")
    assert len(browser.driver.find_elements("css selector", "fieldset")) == 1
    browser.click("button", "Continue")
    browser.see("#answer-problem", "Please choose an answer")
    browser.click("label.choice", "Yes")
    assert browser.gone("#answer-problem:not(:empty)")
    browser.click("button", "Continue")
    browser.see(STEPS, "Is your overtime paid?")
    browser.see(".hint", "Think of the last month.")
    browser.click("button", "Back")
    browser.see(STEPS, "Do you work at present?")
    assert browser.run("return document.querySelector('input:checked').value") == "0"
    browser.click("label.choice", "Prefer not to say")
    browser.click("button", "Continue")
    browser.see(STEPS, "Which of these do you have?")  # the follow-up is not asked
    browser.see("#progress", "Question 3 of 4")
    browser.click("button", "Continue")  # nothing is ticked
    browser.see("#progress", "Question 4 of 4")
    if browser.driver.find_elements("css selector", "input[type=text]"):
        type_number(browser, "7.5")
    else:
        browser.click("label.choice", "No")
        browser.click("button", "Continue")
    browser.see(STEPS, "Check and send")
    text = browser.text(".answers")
    in_order(
        text, "Prefer not to say", "Is your overtime paid?", "not asked", "Which of these", "none of them"
    )
    assert "also sent for questions that you were not asked" in browser.text("main")
    browser.click("button[aria-label*='at present']")
    browser.see(STEPS, "Do you work at present?")
    browser.click("label.choice", "Yes")
    browser.click("button", "Continue")
    browser.see(STEPS, "Is your overtime paid?")  # it has no answer yet
    browser.click("label.choice", "No")
    browser.click("button", "Continue")
    browser.see(STEPS, "Check and send")
    assert "not asked" not in browser.text(".answers")


def test_the_draw_is_remembered_before_the_first_question_and_answers_are_not(
    browser: Any, curator: Any
) -> None:
    browser.open(curator.answer_page("survey"))
    browser.see("button", "Start")
    start(browser)
    entries = browser.run(ENTRIES)
    ((form, draw),) = json.loads(entries[0]).items()
    assert len(entries) == 1 and form in curator.campaigns["survey"].forms and draw[:3] == [0, 0, 0]
    for _ in range(3):
        browser.open(curator.answer_page("survey"))
        asked = answer_all(browser)
        assert browser.run(ENTRIES) == entries
    drawn = ["How many hours do you sleep?", "Do you smoke?"][draw[3]]
    assert asked[-1] == drawn and len(asked) == 4
    assert browser.text(".leaving").count("drawn for you at random") == 1
    assert browser.run("return [localStorage.length, sessionStorage.length, history.state]") == [0, 0, None]
    assert browser.run("return location.hash + location.search") == ""
    fields = browser.run("return [...document.querySelectorAll('input')].map(i => i.autocomplete)")
    assert set(fields) <= {"off"}


def test_choosing_another_cohort_draws_nothing_new(browser: Any, curator: Any) -> None:
    names = [f"q{i}" for i in range(8)]
    questions = [SingleChoice(name, f"About {name}?", options={"yes": "Yes", "no": "No"}) for name in names]

    def form(share: float) -> Form:
        plan = design(Prior({"yes": share, "no": 1 - share}), 1.0, Distribution())
        return Form((Slot.by_weights([Part((name,), plan) for name in names], [1] * len(names)),))

    campaign = Campaign("Regions", questions, {"north": form(0.2), "south": form(0.3)})
    curator.create(campaign)
    browser.open(f"{curator.url}/answer/{campaign.id}")
    asked = []
    for cohort in ("north", "south", "north"):
        browser.see("select[name=cohort]").send_keys(cohort)
        browser.click("button", "Start")
        asked.append(browser.see(STEPS, "About q").text)
        browser.click("button", "Back")
    assert len(set(asked)) == 1 and len(browser.run(ENTRIES)) == 1


def test_every_path_through_the_questions_makes_the_same_requests(browser: Any, curator: Any) -> None:
    """With the same draw: as many requests, in the same order, to the same places, of the same size."""
    traffic: dict[str, set[str]] = {}
    for works in ("Yes", "No", "Prefer not to say", "Yes", "No"):
        browser.open("about:blank")
        browser.requests()
        browser.open(curator.answer_page("survey"))
        browser.see("button", "Start")
        loaded = urls_loaded(browser)
        answer_all(browser, works)
        (draw,) = browser.run(ENTRIES)
        assert browser.requests() == [], "nothing between loading and sending"
        browser.click("button", "Send")
        browser.see(STEPS, "Thank you")
        sent = [(r["method"], r["url"], len(r["postData"]), r["headers"]) for r in browser.requests()]
        traffic.setdefault(draw, set()).add(json.dumps([loaded, sent], sort_keys=True))
        browser.forget()
    assert all(len(seen) == 1 for seen in traffic.values()), traffic
    sizes = {len(json.dumps(seen)) for all_seen in traffic.values() for seen in all_seen}
    assert len(sizes) == 1  # of the other draw as well


def test_a_drawn_follow_up_makes_the_same_requests_whether_it_is_asked_or_not(
    browser: Any, curator: Any
) -> None:
    """Its gate is asked on the device alone: nothing that is sent depends on it but the certified report."""
    traffic: set[str] = set()
    for works, asked in (("Yes", 2), ("No", 1), ("Yes", 2), ("No", 1)):
        browser.open("about:blank")
        browser.requests()
        browser.open(curator.answer_page("follow-up"))
        browser.click("button", "Start")
        browser.see(STEPS, "Do you work?")
        browser.see("main", "No report is sent about this question itself.")
        loaded = urls_loaded(browser)
        browser.click("label.choice", works)
        browser.click("button", "Continue")
        if asked == 2:
            browser.see(STEPS, "Is it paid?")
            browser.click("label.choice", "Yes")
            browser.click("button", "Continue")
        browser.see(STEPS, "Check and send")
        browser.see(".answers div:first-child small", "reveals something about it")
        browser.picture(f"gate-review-{works}")
        assert len(browser.driver.find_elements("css selector", ".answers button")) == asked
        assert len(browser.run(ENTRIES)) == 1 and browser.requests() == []
        browser.click("button", "Send")
        browser.see(STEPS, "Thank you")
        sent = [(r["method"], r["url"], r["headers"], sizes_of(r["postData"])) for r in browser.requests()]
        assert len(sent) == 1
        traffic.add(json.dumps([loaded, sent], sort_keys=True))
        browser.forget()
    assert len(traffic) == 1, traffic


def sizes_of(body: str) -> dict[str, int]:
    """The fields of what was sent, in their order, and how long each is."""
    return {name: len(text) for name, text in json.loads(body).items()}


def test_a_question_in_another_direction_keeps_its_own(browser: Any, curator: Any) -> None:
    """A survey in a language that the page does not speak: the page is in English."""
    questions = [
        SingleChoice(name, f"אתה {name}?", options={"yes": "כן", "no": "לא"}) for name in ("sing", "dance")
    ]
    plan = design(Prior({"yes": 0.3, "no": 0.7}), 1.0, Distribution())
    form = Form(tuple(Slot((Part((question.name,), plan),)) for question in questions))
    campaign = Campaign("מוזיקה", questions, {"everyone": form}, languages=["he"])
    curator.create(campaign)
    browser.open(f"{curator.url}/answer/{campaign.id}")
    start(browser)
    assert browser.run("return document.documentElement.dir") == "ltr"
    for question in questions:
        browser.see(STEPS, f"{question.name}?")
        browser.click("label.choice", "כן")
        browser.click("main form button[type=submit]")
    assert not ends_on_the_right(browser, browser.see("summary", "dance?"))


def test_what_this_browser_told_before_counts_against_the_limit(browser: Any, curator: Any) -> None:
    for name in ("survey", "again"):  # LDP 4 each
        browser.open(curator.answer_page(name))
        answer_all(browser)
        browser.click("button", "Send")
        browser.see(STEPS, "Thank you")
    browser.requests()
    browser.open(curator.answer_page("costly"))
    browser.see(STEPS, "This browser has reached its limit")
    assert browser.faults() == [] and not any("postData" in request for request in browser.requests())


def test_a_survey_that_asks_for_too_much_says_so_at_once(browser: Any, curator: Any) -> None:
    questions = [SingleChoice("smoke", "Do you smoke?", options={"yes": "yes", "no": "no"})]
    forms = {}
    for name, share in (("north", 0.3), ("south", 0.4)):
        plan = design(Prior({"yes": share, "no": 1 - share}), 20.0, Distribution())
        forms[name] = Form((Slot((Part(("smoke",), plan),)),))
    campaign = Campaign("Habits", questions, forms)
    curator.create(campaign)
    browser.open(f"{curator.url}/answer/{campaign.id}")
    browser.see(STEPS, "This survey asks for too much")


def test_a_preview_draws_remembers_and_sends_nothing(browser: Any, curator: Any) -> None:
    before = curator.counters("survey")["reports"]["everyone"]
    browser.open(f"{curator.answer_page('survey')}#preview")
    browser.see("#preview", "Preview: nothing is drawn, remembered or sent.")
    browser.requests()
    asked = answer_all(browser)
    assert asked[-2:] == ["How many hours do you sleep?", "Do you smoke?"]  # all questions are shown
    assert "one of" in browser.text(".leaving")
    browser.see("main", "The real page draws at random which of them it asks")
    browser.click("button", "Send")
    browser.see(STEPS, "The preview ends here")
    assert browser.requests() == []
    assert browser.run("return indexedDB.databases().then(all => all.length)") == 0
    assert curator.counters("survey")["reports"]["everyone"] == before


def test_a_campaign_that_is_not_stored_yet_has_a_preview(browser: Any, curator: Any, stage: Any) -> None:
    """The dashboard leaves the document in this tab; the curator does not know the campaign."""
    campaign = stage.survey(title="Not yet")
    browser.run("sessionStorage.setItem('priorveil-preview', arguments[0])", campaign.to_json())
    browser.open(f"{curator.url}/answer/{campaign.id}#preview")
    browser.see(STEPS, "Not yet")
    assert not [r for r in browser.requests() if campaign.id in r["url"] and "/v1/" in r["url"]]
    start(browser)
    browser.see("#progress", "Question 1 of 5")


# -- languages ---------------------------------------------------------------------------------------------------------

SPOKEN = {"en": "Start", "de": "Beginnen", "fr": "Commencer", "es": "Empezar", "ar": "ابدأ"}


@pytest.mark.parametrize("language", SPOKEN)
def test_the_page_is_read_in_the_language_of_the_person(browser: Any, curator: Any, language: str) -> None:
    """Every step in every language: its own texts, direction, and nothing that shuts anybody out."""
    browser.open(curator.answer_page("survey"))
    browser.see("button", "Start")
    choose_language(browser, language)
    browser.see("button", SPOKEN[language])
    assert browser.run("return document.documentElement.dir") == ("rtl" if language == "ar" else "ltr")
    title = {"de": "Arbeitszeit und Gesundheit", "ar": "ساعات العمل والصحة"}
    assert browser.text(STEPS) == title.get(language, "Working hours and health")
    assert browser.see("h1 bdi").get_attribute("lang") == language
    walk_through(browser, language)


def walk_through(browser: Any, language: str) -> None:
    """All steps up to what will be sent, each on a light desk and on a dark phone, and back to the first."""

    def check(step: str) -> None:
        for scheme, width, height in (("light", 1280, 900), ("dark", 390, 844)):
            browser.scheme(scheme)
            browser.size(width, height, mobile=width < 500)
            if scheme == "light":
                assert browser.faults() == [], step
            elif language == "en":  # colours are the same in every language
                assert browser.faults(COLOURS) == [], step
            assert browser.run("return document.documentElement.scrollWidth") <= width
            browser.picture(f"survey-{language}-{scheme}-{width}-{step}")

    check("1-start")
    browser.click("main form button[type=submit]")
    for step in range(2, 7):
        browser.see("#progress:not([hidden])")
        if browser.driver.find_elements("css selector", "input[type=text]"):
            type_over(browser, browser.see("input[name=answer]"), "7.5")
        elif not browser.driver.find_elements("css selector", "input:checked"):
            browser.click("label.choice")
        check(f"{step}-question")
        before = browser.text(STEPS)
        browser.click("main form button[type=submit]")
        browser.see_other(STEPS, before)
        if browser.driver.find_elements("css selector", ".answers"):
            break
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    check("9-review")
    while not browser.driver.find_elements("css selector", ".consequences"):
        before = browser.text(STEPS)
        browser.click("button.plain:not([aria-label])")
        browser.see_other(STEPS, before)


def test_the_language_is_that_of_the_browser_if_the_survey_offers_it(browser: Any, curator: Any) -> None:
    offered = "return [...document.querySelectorAll('#language option')].map((option) => option.value)"
    script = "Object.defineProperty(navigator, 'languages', { get: () => ['pt', 'de-AT'] });"
    with running_first(browser, script):
        browser.open(curator.answer_page("survey"))
        browser.see("button", SPOKEN["de"])
        assert browser.run("return document.documentElement.lang") == "de"
        assert browser.run(offered) == list(curator.campaigns["survey"].languages)
        browser.open(curator.answer_page("few"))
        browser.see("button", "Start")
        assert browser.run(offered) == ["en"] and not browser.see_now("#language")


@pytest.mark.parametrize("awaited", ["the campaign", "its status"])
def test_a_language_that_is_chosen_while_the_survey_loads_stays(
    browser: Any, curator: Any, awaited: str
) -> None:
    ending = curator.campaigns["survey"].id if awaited == "the campaign" else "/status"
    with running_first(browser, HOLD_REQUEST % ending):
        browser.open("about:blank")
        browser.open(curator.answer_page("survey"))
        wait_until(lambda: browser.run("return 'release' in window"), f"the page asks for {awaited}")
        choose_language(browser, "de")
        browser.run("window.release()")
        browser.see("main form")
        assert browser.text("main form button") == SPOKEN["de"]
        assert browser.text(STEPS) == "Arbeitszeit und Gesundheit"
        assert browser.run("return document.querySelector('#language').value") == "de"


def test_a_language_stays_when_the_code_of_an_invitation_is_typed_in(browser: Any, curator: Any) -> None:
    (code,) = curator.invite("invited", 1)
    browser.open(curator.answer_page("invited"))
    browser.see(STEPS, "You need an invitation")
    choose_language(browser, "de")
    browser.see("input[name=code]").send_keys(code)
    browser.click("main form button")
    browser.see(".consequences")
    assert browser.text("main form button") == SPOKEN["de"]


def test_what_is_needed_is_said_without_javascript(browser: Any, curator: Any) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(curator.answer_page("work"))
        text = browser.see("noscript").text
        empty = browser.driver.find_elements("css selector", "#heading, #language")
        assert len(empty) == 2 and not any(element.is_displayed() for element in empty)
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "needs JavaScript" in text and "braucht JavaScript" in text and "nothing is sent" in text


def test_the_browser_is_asked_to_keep_what_is_stored(browser: Any, curator: Any) -> None:
    script = "navigator.storage.persist = () => { window.persisted = true; return Promise.reject(new Error('no')); };"
    with running_first(browser, script):
        browser.open(curator.answer_page("work"))
        browser.see("button", "Start")
        assert browser.run("return window.persisted") is None
        start(browser)
        assert browser.run("return window.persisted") is True
