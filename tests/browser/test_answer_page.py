"""The respondent's page in Chromium: only the perturbed report leaves, by mouse, by keyboard, on a phone."""

from __future__ import annotations

import json
from typing import Any

from browser.steps import DOWN, ENTER, SPACE, TAB, choose

STEPS = "main h1"
PHONE = 360  # pixels across


def shown(browser: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(browser.see("#leaving").get_attribute("textContent"))
    return found


def stored(browser: Any) -> list[dict[str, Any]]:
    return [json.loads(text) for text in browser.run("return Object.values(localStorage)")]


def test_only_the_perturbed_report_leaves_and_it_is_counted(browser: Any, curator: Any) -> None:
    before = curator.counters("work")["reports"]["everyone"]
    browser.open(curator.answer_page("work"))
    browser.see(STEPS, "What kind of work do you do?")
    browser.picture("answer-question-light")
    choose(browser, "Government")
    report = shown(browser)
    browser.picture("answer-review-light")
    assert not [r for r in browser.requests() if r["method"] != "GET"]
    browser.click("button", "Send this report")
    browser.see(STEPS, "Thank you")
    browser.picture("answer-thanks-light")
    sent = browser.requests()
    assert all(r["url"].startswith(curator.url) for r in sent)
    assert [json.loads(r["postData"]) for r in sent if r["method"] == "POST"] == [report]
    assert set(report) == {"id", "plan", "report"}
    assert type(report["report"]) is int and len(report["id"]) == 32
    assert curator.counters("work")["reports"]["everyone"] == before + 1


def test_everything_the_page_loads_comes_from_the_curator(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    browser.see("label.choice", "Private")
    loaded = browser.requests()
    assert len(loaded) >= 6
    assert {r["method"] for r in loaded} == {"GET"}
    assert all(r["url"].startswith(curator.url) for r in loaded)


def test_what_is_shown_says_how_deniable_it_is(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("work"))
    choose(browser, "None")
    text = browser.text("main")
    assert "Whatever you answered, this report could have come from any answer" in text
    plan = curator.campaigns["work"].cohorts["everyone"]
    odds = float(browser.text(".promise strong").removeprefix("a factor of "))
    assert 0 <= odds - 2.718281828459045**plan.certificate.ldp < 0.011
    rows = browser.driver.find_elements("css selector", ".likely tbody tr")
    column = plan.channel.matrix[:, shown(browser)["report"]]
    told = [float(row.text.split()[-2]) for row in rows]
    assert told == [round(100 * share) for share in column / column.max()]


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
    browser.click("button", "Send this report")
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
    browser.see(STEPS, "Before anything leaves")
    assert browser.run("return document.activeElement.id") == "question"
    for _ in range(8):
        browser.press(TAB)
        if browser.run("return document.activeElement.textContent") == "Send this report":
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
    browser.click("button", "Send this report")
    browser.see(STEPS, "Thank you")
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE
    browser.picture("answer-thanks-phone-dark")


def test_a_report_that_cannot_be_delivered_is_kept(browser: Any, curator: Any) -> None:
    browser.forgiven = ["ERR_INTERNET_DISCONNECTED"]
    browser.open(curator.answer_page("offline"))
    choose(browser, "yes")
    report = shown(browser)
    browser.offline(True)
    browser.click("button", "Send this report")
    browser.see(STEPS, "Not sent yet", seconds=30)
    browser.picture("answer-undelivered-light")
    assert stored(browser) == [{**report, "delivered": False}]
    browser.offline(False)
    browser.open(curator.answer_page("offline"))
    browser.click("button", "Try again")
    browser.see(STEPS, "Thank you")
    assert stored(browser) == [{**report, "delivered": True}]
    assert curator.counters("offline")["reports"]["everyone"] == 1


def test_many_answers_and_cohorts_are_picked_from_a_list(browser: Any, curator: Any) -> None:
    browser.open(curator.answer_page("many"))
    browser.see("select[name=answer]").send_keys("Occupation 7")
    browser.click("button", "Continue")
    assert "answers can make this report" in browser.text("main", "Before anything leaves")
    browser.open(curator.answer_page("cohorts"))
    browser.see("select[name=cohort]").send_keys("south")
    choose(browser, "no")
    assert shown(browser)["plan"] == curator.campaigns["cohorts"].cohorts["south"].id
    assert "tells your group, south: that is not perturbed" in browser.text("#group")


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


def test_a_changed_campaign_is_not_answered(browser: Any, curator: Any) -> None:
    """The curator's answer is changed on its way, as a network or a server gone bad could do it."""
    script = """
      const fetched = window.fetch;
      window.fetch = async (...request) => {
        const response = await fetched(...request);
        if (!String(request[0]).match(/campaigns.[0-9a-f]{64}$/)) return response;
        return new Response((await response.text()).replace("What kind of work", "What kind of illness"));
      };
    """
    added = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    browser.open(curator.answer_page("work"))
    browser.see(STEPS, "This question cannot be trusted")
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    assert not [r for r in browser.requests() if r["method"] == "POST"]


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
    assert {("heading", "Before anything leaves"), ("button", "Send this report")} <= nodes
    assert ("rowheader", "Private") in nodes
    assert len(browser.driver.find_elements("css selector", "h1")) == 1
