"""The respondent's page in Chromium: only the perturbed report leaves, by mouse, by keyboard, on a phone."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser.steps import DOWN, ENTER, SPACE, TAB, choose

STEPS = "main h1"
PHONE = 360  # pixels across


def shown(browser: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(browser.see("#leaving").get_attribute("textContent"))
    return found


def stored(browser: Any) -> list[dict[str, Any]]:
    """What the browser remembers; the page has made the database."""
    texts = browser.run("""
      return new Promise((done, failed) => {
        const opening = indexedDB.open("priorveil");
        opening.onerror = () => failed(opening.error);
        opening.onsuccess = () => {
          const reading = opening.result.transaction("reports").objectStore("reports").getAll();
          reading.onsuccess = () => done(reading.result);
          opening.result.close();
        };
      });
    """)
    return [json.loads(text) for text in texts]


def posted(browser: Any) -> list[dict[str, Any]]:
    """The reports that left since the last look."""
    return [json.loads(r["postData"]) for r in browser.requests() if r["method"] == "POST"]


def test_only_the_perturbed_report_leaves_and_it_is_counted(browser: Any, curator: Any) -> None:
    before = curator.counters("work")["reports"]["everyone"]
    browser.open(curator.answer_page("work"))
    browser.see("#question", "What kind of work do you do?")
    browser.picture("answer-question-light")
    choose(browser, "Government")
    report = shown(browser)
    browser.picture("answer-review-light")
    assert not [r for r in browser.requests() if r["method"] != "GET"]
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    browser.picture("answer-thanks-light")
    sent = browser.requests()
    assert all(r["url"].startswith(curator.url) for r in sent)
    assert [json.loads(r["postData"]) for r in sent if r["method"] == "POST"] == [report]
    assert set(report) == {"report_id", "plan", "report"}
    assert type(report["report"]) is int and len(report["report_id"]) == 32
    assert curator.counters("work")["reports"]["everyone"] == before + 1


def test_a_combination_of_attributes_is_one_answer(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("attributes"))
    browser.click("label", "young, no")
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    assert "young, no" in browser.text("main") and "old, no" in browser.text("main")
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    assert curator.counters("attributes")["reports"]["everyone"] == 1


def test_a_number_is_typed_in_and_only_its_report_leaves(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("hours"))
    browser.see("main", "A number from 0 to 80")
    browser.see("input[inputmode=decimal]").send_keys("37.25")
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    page = browser.text("main")
    assert "37.25" in page and "near 40" in page
    report = shown(browser)
    browser.click("button", "Change my answer")
    assert browser.see("input[inputmode=decimal]").get_attribute("value") == "37.25"
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    assert shown(browser) == report, "the same answer draws no new words"
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    assert posted(browser) == [report] and "37.25" not in json.dumps(stored(browser))


@pytest.mark.parametrize(
    ("typed", "value"),
    [("12,5", "12.5"), ("12.5", "12.5"), (" 7 ", "7"), ("0,125", "0.125"), ("1,2340", "1.234")],
)
def test_a_number_is_read_as_people_write_it(browser: Any, curator: Any, typed: str, value: str) -> None:
    browser.open(curator.answer_page("hours"))
    browser.see("input[inputmode=decimal]").send_keys(typed)
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    assert f"You chose\n{value}\n" in browser.text("main")
    browser.click("button", "Change my answer")
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    assert f"You chose\n{value}\n" in browser.text("main")


@pytest.mark.parametrize(("language", "mark"), [("de-DE", ","), ("en-US", ".")])
def test_a_number_is_read_alike_in_every_language(
    browser: Any, curator: Any, language: str, mark: str
) -> None:
    """With a decimal comma or a decimal point in the browser: 12,5 is never 125, and 1,234 is not guessed."""
    browser.open(curator.answer_page("hours"))
    browser.driver.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": language})
    try:
        assert browser.run("return (1.5).toLocaleString()") == f"1{mark}5"
        field = browser.see("input[inputmode=decimal]")
        field.send_keys("1,234")
        assert "ambiguous" in field.get_attribute("validationMessage")
        field.clear()
        field.send_keys("12,5")
        browser.click("button", "Continue")
        browser.see(STEPS, "Your answer is scrambled")
        assert "You chose\n12.5\n" in browser.text("main")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setLocaleOverride", {})


@pytest.mark.parametrize(
    ("typed", "problem"),
    [(typed, "ambiguous") for typed in ("1,234", "1.234", "1.234,5", "1 234")] + [("ten", "not a number")],
)
def test_a_number_that_cannot_be_read_for_sure_is_not_sent(
    browser: Any, curator: Any, typed: str, problem: str
) -> None:
    browser.open(curator.answer_page("hours"))
    field = browser.see("input[inputmode=decimal]")
    field.send_keys(typed)
    browser.click("button", "Continue")
    told = field.get_attribute("validationMessage")
    assert problem in told and "1234.5 or 1234,5" in told, "both decimal marks, whatever the language"
    assert browser.text(STEPS) == "A question for you"
    field.clear()
    field.send_keys("37")
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")


def test_a_number_beside_another_attribute_has_a_field_of_its_own(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("overtime"))
    browser.see("main", "A number from 0 to 40")
    browser.click("select[name=answer-0] option", "old")
    browser.see("input[inputmode=decimal]").send_keys("37.25")
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    page = browser.text("main")
    assert "old, 37.25" in page and "old, near 40" in page
    browser.click("button", "Change my answer")
    assert browser.see("input[inputmode=decimal]").get_attribute("value") == "37.25"
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    report = shown(browser)
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    assert posted(browser) == [report] and "37.25" not in json.dumps(stored(browser))


def test_everything_the_page_loads_comes_from_the_curator(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    browser.see("label.choice", "Private")
    loaded = browser.requests()
    assert len(loaded) >= 6
    assert {r["method"] for r in loaded} == {"GET"}
    assert all(r["url"].startswith(curator.url) for r in loaded)


def test_who_asks_why_and_that_it_is_scrambled_comes_before_the_question(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    browser.see("#question", "What kind of work do you do?")
    in_order(
        browser.text("main"),
        "The town of Example, office of statistics",
        "To plan buses for people who work",
        "scrambled on this device before it is sent",
        "What kind of work do you do?",
        "Private",
    )


def test_a_campaign_that_does_not_say_who_asks_and_why_gets_sensible_texts(
    browser: Any, curator: Any
) -> None:
    browser.open(curator.answer_page("few"))
    browser.see("#question", "Do you cycle?")
    host = curator.url.removeprefix("http://")
    in_order(
        browser.text("main"),
        f"The people who run {host}",
        "To learn how common each answer is",
        "Do you cycle?",
    )


def test_the_group_is_said_not_to_be_scrambled_before_the_question(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("cohorts"))
    browser.see("#question", "Are you ill?")
    in_order(browser.text("main"), "Your group", "Not scrambled: it is sent as it is", "Are you ill?", "yes")
    hint = browser.see("select[name=cohort]").get_attribute("aria-describedby")
    assert "Not scrambled" in browser.text(f"#{hint}")


def in_order(text: str, *parts: str) -> None:
    places = [text.find(part) for part in parts]
    assert min(places) >= 0 and places == sorted(places), (
        f"{dict(zip(parts, places, strict=True))} in:\n{text}"
    )


def test_what_is_sent_is_explained_by_a_hundred_people(browser: Any, curator: Any) -> None:
    plan = curator.campaigns["work"].cohorts["everyone"]
    browser.open(curator.answer_page("work"))
    browser.see("#question")
    before = browser.text("body")
    choose(browser, "None")
    text = browser.text("main")
    assert not re.search("perturb|odds|factor|What it could mean", before + text)  # the fold-outs are closed
    joint = plan.prior.probabilities * plan.channel.matrix[:, shown(browser)["report"]]
    shares = 100 * joint / joint.sum()
    found = re.search(r"Of 100 people who send this, (?:about )?(\d+) answered .None., as you did\.", text)
    assert found and abs(int(found[1]) - shares[3]) < 1
    others = {
        label: int(n) for n, label in re.findall(r"(\d+) “([^”]+)”", text.split("The others answered")[1])
    }
    assert sum(others.values()) + int(found[1]) == 100
    for label, share in zip(plan.labels[:3], shares[:3], strict=True):
        assert abs(others[label] - share) < 1
    assert "Of 100 people in general, about 7 would answer as you did." in text
    figures = [browser.see(f".people .{name}").get_attribute("d").count("M") for name in ("same", "other")]
    assert figures == [int(found[1]), 100 - int(found[1])]


def test_the_curious_find_levels_in_a_fold_out(browser: Any, curator: Any) -> None:
    plan = curator.campaigns["work"].cohorts["everyone"]
    browser.open(curator.answer_page("work"))
    choose(browser, "None")
    browser.click("summary", "For the curious")
    found = re.search("by a factor of ([0-9.]+) at most, whatever is known", browser.text("main"))
    assert found and 0 <= float(found[1]) - 2.718281828459045**plan.certificate.ldp < 0.011
    joint = plan.prior.probabilities * plan.channel.matrix[:, shown(browser)["report"]]
    rows = [row.text.split() for row in browser.driver.find_elements("css selector", ".comparison tbody tr")]
    told = [[float(row[-4]), float(row[-2])] for row in rows]
    assert told == [
        [round(100 * p, 1), round(100 * q, 1)]
        for p, q in zip(plan.prior.probabilities, joint / joint.sum(), strict=True)
    ]


def test_what_is_not_protected_is_said_before_and_after(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("secret"))
    browser.see("#question", "How often do you go out?")
    in_order(browser.text("main"), "not the answer itself", "How often do you go out?")
    choose(browser, "never")
    text = browser.text("main")
    assert "what is sent can give the answer away" in text and "never proves" not in text


def test_a_set_of_priors_gives_no_figures_of_people(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("bounded"))
    choose(browser, "yes")
    assert "Of 100 people" not in browser.text("main")
    assert "whatever is known about you" in browser.text("figure")


def test_an_assumed_prior_gives_no_figures_of_people_and_names_ldp_first(browser: Any, curator: Any) -> None:
    plan = curator.campaigns["range"].cohorts["everyone"]
    browser.open(curator.answer_page("range"))
    browser.see("input[name=answer]").send_keys("70", ENTER)
    browser.see(STEPS, "Your answer is scrambled")
    assert "100 people" not in browser.text("main")
    found = re.search("at most ([0-9.]+) times likelier", browser.text("figure"))
    assert found and 0 <= float(found[1]) - 2.718281828459045**plan.certificate.ldp < 0.011
    browser.click("summary", "For the curious")
    text = browser.text("main")
    assert not browser.driver.find_elements("css selector", ".comparison")
    in_order(text, "Take any two answers", "nobody knows it. Only if that is right", "belief in any answer")
    in_order(text, "Local differential privacy 2", "local information privacy 1, only if the assumed prior")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["phone", "many", "cohorts", "leaning", "secret"])
def test_send_is_visible_on_a_phone_without_scrolling(
    browser: Any, curator: Any, name: str, scheme: str
) -> None:
    browser.scheme(scheme)
    browser.size(390, 844, scale=2, mobile=True)
    browser.open(curator.answer_page(name))
    browser.see("#question")
    for chosen in browser.driver.find_elements("css selector", "select"):
        chosen.send_keys("south" if chosen.get_attribute("name") == "cohort" else "Occupation 7")
    for choice in browser.driver.find_elements("css selector", "label.choice")[:1]:
        choice.click()
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    send = browser.run(
        "const send = [...document.querySelectorAll('button')].find(b => b.textContent === 'Send');"
        "const box = send.getBoundingClientRect();"
        "const seen = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2) === send;"
        "return {seen, bottom: box.bottom, height: innerHeight, scrolled: scrollY}"
    )
    assert send["seen"] and send["bottom"] <= send["height"] == 844 and send["scrolled"] == 0
    browser.picture(f"answer-send-{name}-{scheme}")


def test_trying_answers_out_does_not_draw_again(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    choose(browser, "None")
    first = shown(browser)
    browser.click("button", "Change my answer")
    assert browser.see("input:checked").get_attribute("value") == "3"
    choose(browser, "Private")
    browser.click("button", "Change my answer")
    choose(browser, "None")
    assert shown(browser) == first
    assert stored(browser) == []


def test_a_second_visit_replays(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    choose(browser, "Private")
    report = shown(browser)
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    assert stored(browser) == [{**report, "delivered": True}]
    count = curator.counters("work")["reports"]["everyone"]
    browser.open(curator.answer_page("work"))
    browser.see(STEPS, "You have answered this question")
    assert curator.counters("work")["reports"]["everyone"] == count


def test_the_keyboard_is_enough(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("keyboard"))
    browser.see("label.choice", "Private")
    browser.press(TAB, SPACE, DOWN, DOWN)
    assert browser.see("input:checked").get_attribute("value") == "2"
    browser.press(TAB)
    browser.picture("answer-keyboard-focus")
    browser.press(ENTER)
    browser.see(STEPS, "Your answer is scrambled")
    assert browser.run("return document.activeElement.tagName") == "H1"
    for _ in range(8):
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
        "return pressed.map(e => e.getBoundingClientRect().height)"
    )
    assert heights and min(heights) >= 44


def test_a_phone_is_enough(browser: Any, curator: Any) -> None:
    browser.size(PHONE, 740, scale=2, mobile=True)
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.open(curator.answer_page("phone"))
        browser.see("label.choice", "Private")
        fits(browser)
        browser.picture(f"answer-question-phone-{scheme}")
        choose(browser, "Private")
        fits(browser)
        browser.picture(f"answer-review-phone-{scheme}")
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE
    browser.picture("answer-thanks-phone-dark")


def test_a_report_that_cannot_be_delivered_is_kept(browser: Any, curator: Any) -> None:
    browser.forgiven = ["ERR_INTERNET_DISCONNECTED"]
    browser.open(curator.answer_page("offline"))
    choose(browser, "yes")
    report = shown(browser)
    browser.offline(True)
    browser.click("button", "Send")
    browser.see(STEPS, "Not sent yet")
    browser.picture("answer-undelivered-light")
    assert stored(browser) == [{**report, "delivered": False}]
    browser.offline(False)
    browser.open(curator.answer_page("offline"))
    browser.click("button", "Try again")
    browser.see(STEPS, "Thank you")
    assert stored(browser) == [{**report, "delivered": True}]
    assert curator.counters("offline")["reports"]["everyone"] == 1


def test_a_question_that_was_closed_is_asked_again(browser: Any, curator: Any) -> None:
    """The clock of the curator may have been wrong, or the campaign reopens."""
    browser.open(curator.answer_page("reopened"))
    choose(browser, "yes")
    report = shown(browser)
    curator.close("reopened")
    browser.click("button", "Send")
    browser.see(STEPS, "Not sent yet")
    browser.see("[role=alert]", "this question is closed")
    assert stored(browser) == [{**report, "delivered": False}]
    browser.open(curator.answer_page("reopened"))
    browser.see("main", "It is kept in this browser")
    curator.close("reopened", "reopen")
    browser.open(curator.answer_page("reopened"))
    browser.click("button", "Try again")
    browser.see(STEPS, "Thank you")
    assert stored(browser) == [{**report, "delivered": True}]


def test_a_report_that_was_cleared_away_is_not_said_to_have_arrived(browser: Any, curator: Any) -> None:
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
    browser.see("#question", "Do you cycle?")
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
    first, reports = browser.driver.current_window_handle, [shown(browser)]
    browser.driver.switch_to.new_window("tab")
    second = browser.driver.current_window_handle
    try:
        browser.open(curator.answer_page("few"))
        choose(browser, "yes")
        reports.append(shown(browser))
        browser.run(HOLDING)
        for tab in (first, second):
            browser.driver.switch_to.window(tab)
            browser.click("button", "Send")
            browser.see("button", "Sending…")
        browser.run("window.holding = false")
        told, kept = [], []
        for tab in (second, first):
            browser.driver.switch_to.window(tab)
            kept.append(json.loads(browser.see("main pre[aria-label*=sent]").get_attribute("textContent")))
            told.append(browser.text(STEPS))
    finally:
        browser.driver.switch_to.window(second)
        browser.driver.close()
        browser.driver.switch_to.window(first)
    assert sorted(told) == ["Thank you", "You have answered this question"]
    assert kept[0] == kept[1] and kept[0] in reports
    sent = posted(browser)
    assert sent and all(report == kept[0] for report in sent)
    assert stored(browser) == [{**kept[0], "delivered": True}]
    assert curator.counters("few")["reports"]["everyone"] == count + 1


def test_a_report_that_came_first_stands(browser: Any, curator: Any) -> None:
    """Another tab remembers its report after this one has looked, and before it remembers its own."""
    key = f"priorveil:{curator.campaigns['few'].id}"
    browser.open(curator.answer_page("few"))
    choose(browser, "yes")
    report = shown(browser)
    earlier = {**report, "report_id": "0123456789abcdef" * 2}
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
        json.dumps({**earlier, "delivered": False}),
    )
    browser.click("button", "Send")
    browser.see(STEPS, "You have answered this question")
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
        report = shown(browser)
        browser.click("button", "Send")
        browser.see(STEPS, "Thank you")
        lock = (tmp_path / "profile" / "SingletonLock").readlink()  # names the machine and the process
        os.kill(int(lock.name.rpartition("-")[2]), signal.SIGKILL)
    finally:
        browser.driver.quit()
    again = stage.opened(*programs, tmp_path)
    try:
        again.open(curator.answer_page("few"))
        again.see(STEPS, "You have answered this question")
        assert stored(again) == [{**report, "delivered": True}]
    finally:
        again.driver.quit()


def test_many_answers_and_cohorts_are_picked_from_a_list(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("many"))
    browser.see("select[name=answer]").send_keys("Occupation 7")
    browser.click("button", "Continue")
    browser.see(STEPS, "Your answer is scrambled")
    assert re.search(r"\d+ “Occupation \d+”, .* something else\.", browser.text("figure"))
    browser.open(curator.answer_page("cohorts"))
    browser.see("select[name=cohort]").send_keys("south")
    choose(browser, "no")
    assert shown(browser)["plan"] == curator.campaigns["cohorts"].cohorts["south"].id
    assert "south sent as it is, not scrambled" in browser.text(".leaving")
    assert "Of 100 people in your group, about 80 would answer as you did." in browser.text("figure")


def test_shut_and_unknown_questions_say_so(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("later"))
    assert "not open yet" in browser.text("main", "Is it time yet?")
    browser.forgiven = ["404"]
    for unknown in ("0" * 64, "nonsense", "%E0%A4%A"):
        browser.open(f"{curator.url}/answer/{unknown}")
        browser.see(STEPS, "There is no such question")


def test_a_question_that_was_closed_early_promises_no_later_end(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("early"))
    browser.see("#about", "Answers are taken until")
    curator.close("early")
    browser.open(curator.answer_page("early"))
    browser.see("main", "This question is closed")
    assert "taken until" not in browser.text("body")


def test_text_from_right_to_left_keeps_its_order(browser: Any, curator: Any) -> None:
    """A full stop at the end of Arabic text stands at its left."""
    browser.open(curator.answer_page("arabic"))
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
    for element in ("#question", "label.choice bdi"):
        first, last = browser.run(places, element)
        assert last < first, element


def test_a_page_that_may_not_use_cryptography_says_why(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work").replace("127.0.0.1", "0.0.0.0"))
    assert browser.run("return isSecureContext") is False
    browser.see(STEPS, "This page needs a secure connection")


@contextmanager
def running_first(browser: Any, script: str) -> Iterator[None]:
    """While this lasts, pages run a script before their own."""
    added = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        yield
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


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
        browser.see(STEPS, "This question cannot be trusted")
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


def test_a_download_that_breaks_off_is_not_called_tampering(browser: Any, curator: Any) -> None:
    with running_first(browser, BREAKING.replace("PLACE", curator.campaigns["work"].id)):
        browser.open(curator.answer_page("work"))
        browser.see(STEPS, "No connection")
    with running_first(browser, BREAKING.replace("PLACE", "/status")):
        browser.open(curator.answer_page("work"))
        browser.see("#question", "What kind of work do you do?")


def test_a_failure_of_the_page_is_not_called_tampering(browser: Any, curator: Any) -> None:
    with running_first(browser, "crypto.subtle.digest = () => { throw new TypeError('not foreseen'); };"):
        browser.open(curator.answer_page("work"))
        browser.see(STEPS, "This page has failed")
    assert browser.faults() == []


def test_a_screen_reader_finds_names_and_headings(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    browser.see("label.choice", "Private")
    nodes = browser.named_nodes()
    assert ("radio", "Self-employed") in nodes
    assert ("group", "What kind of work do you do?") in nodes or (
        "radiogroup",
        "What kind of work do you do?",
    ) in nodes
    choose(browser, "Private")
    nodes = browser.named_nodes()
    assert {("heading", "Your answer is scrambled"), ("button", "Send")} <= nodes
    assert any(role == "image" and "of them filled" in name for role, name in nodes)
    browser.click("summary", "For the curious")
    assert ("rowheader", "Private") in browser.named_nodes()
    assert len(browser.driver.find_elements("css selector", "h1")) == 1


def test_an_invitation_is_checked_before_the_question_and_used_once(browser: Any, curator: Any) -> None:
    first, second = curator.invite("invited", 2)
    browser.open(curator.answer_page("invited"))
    browser.see(STEPS, "You need an invitation")
    about = browser.text("#about")
    assert "Only people with an invitation" in about and "500 answers" in about and "are deleted" in about
    browser.open("about:blank")
    browser.open(f"{curator.answer_page('invited')}#code={'0' * 32}")
    browser.see("p.warning", "This invitation cannot be used")
    browser.see("input[name=code]").send_keys(f"{first[:16]} {first[16:]}")  # as it is printed on paper
    browser.click("button", "Continue")
    browser.see("#question", "Do you own a bicycle?")
    choose(browser, "Government")
    report = shown(browser)
    browser.requests()
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
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
    browser.see("#question", "Do you own a bicycle?")


def test_an_answer_is_withdrawn_with_the_id_on_the_receipt(browser: Any, curator: Any) -> None:
    before = curator.counters("few")["reports"]["everyone"]
    browser.open(curator.answer_page("few"))
    choose(browser, "no")
    report = shown(browser)
    browser.click("button", "Send")
    browser.see(STEPS, "Thank you")
    assert curator.counters("few")["reports"]["everyone"] == before + 1
    browser.click("summary", "Your receipt")
    assert browser.text("#receipt") == report["report_id"]
    browser.requests()
    browser.click("button", "Withdraw my answer")
    browser.see(STEPS, "Your answer is withdrawn")
    assert posted(browser) == [{"report_ids": [report["report_id"]]}]
    assert curator.counters("few")["reports"]["everyone"] == before
    browser.open(curator.answer_page("few"))
    browser.see(STEPS, "Your answer is withdrawn")
    assert posted(browser) == []


def test_a_question_with_all_its_answers_says_so(browser: Any, curator: Any) -> None:
    curator.answered("crowded", [0])
    browser.open(curator.answer_page("crowded"))
    choose(browser, "Government")
    browser.click("button", "Send")
    browser.see("p.warning", "This question has all the answers that it takes.")
