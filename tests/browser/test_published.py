"""Results are published from the dashboard, and everybody reads them on a sheet of their own, in Chromium."""

from __future__ import annotations

import base64
import csv
import os
import re
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from browser.stage import WORK, translated
from browser.steps import (
    ANALYST,
    HOLD_REQUEST,
    answer_survey,
    choose,
    choose_language,
    ends_on_the_right,
    open_dashboard,
    running_first,
)
from patience import PATIENCE, wait_until
from priorveil import Distribution, Linear, Prior, design
from priorveil.catalogue import every_language, say
from priorveil.formatting import factor_at_most
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.questions.campaign import Campaign, ask
from priorveil.questions.choices import MultipleChoice, SingleChoice
from submissions import plan_of, submissions


def printed_pages(browser: Any, name: str) -> int:
    """How many pages the printer takes, on A4."""
    paper = {"paperWidth": 8.27, "paperHeight": 11.69}
    pdf = base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    folder = os.environ.get("PRIORVEIL_SCREENSHOTS")
    if folder:
        (Path(folder) / f"{name}.pdf").write_bytes(pdf)
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def picture_both(browser: Any, name: str) -> None:
    """Keep pictures for a desk and for a phone, where nothing is cut off."""
    browser.size(1280, 900)
    browser.picture(f"{name}-desk")
    browser.size(390, 844, scale=2, mobile=True)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    browser.picture(f"{name}-phone")
    browser.size(1280, 900)


def test_results_are_published_once_and_only_when_that_is_confirmed(browser: Any, curator: Any) -> None:
    browser.forgiven = ["404"]
    curator.answered("publishing", [0, 0, 1, 2, 3] * 20)
    open_dashboard(browser, curator, "publishing")
    browser.see("#draft", "Not for publication")
    picture_both(browser, "dashboard-draft")
    assert browser.gone("#publish"), "it is open"
    curator.close("publishing")
    browser.see(".facts .badge", "closed")
    browser.see("#draft", "Not for publication")
    browser.click("#publish")
    browser.see("dialog h2", "Publish these results for good?")
    browser.see("dialog p", "The campaign has 100 reports, and all results would be shown.")
    browser.picture("dashboard-publish")
    assert browser.run("return document.activeElement.textContent") == "Not now"
    browser.click("dialog button", "Not now")
    assert browser.gone("dialog")
    browser.open(curator.published_page("publishing"))
    browser.see("main h1", "There are no published results here")
    browser.open(f"{curator.url}/dashboard#{curator.campaigns['publishing'].id}")
    browser.click("#publish")
    browser.click("dialog button", "Publish them")
    browser.see("#published")
    assert browser.gone("#draft, #publish, #reopen")
    browser.see(".facts .badge", "published")
    sheet = browser.see(".facts a", "Published results").get_attribute("href")
    assert sheet == curator.published_page("publishing")
    assert browser.faults() == []
    picture_both(browser, "dashboard-published")
    browser.click("#published")
    browser.see("main h1", "Which bus do you take?")


def test_results_that_would_be_withheld_are_counted_before_publication(browser: Any, curator: Any) -> None:
    campaign = ask("Do you knit?", Prior({"yes": 0.3, "no": 0.7}), smallest_count=20)
    curator.create(campaign)
    curator.campaigns["unanswered"] = campaign
    curator.close("unanswered")
    open_dashboard(browser, curator, "unanswered")
    browser.click("#publish")
    browser.see("dialog p", "The campaign has 0 reports. Results that would be withheld: 1 of 1.")
    browser.click("dialog button", "Publish them")
    browser.see("#published")
    browser.open(curator.published_page("unanswered"))
    browser.see("main h1", "Do you knit?")
    assert "Prior" not in browser.text("main")
    browser.open(f"{curator.url}/dashboard")
    entry = browser.see(".campaigns li", "Do you knit?")
    assert entry.find_element("css selector", ".badge").text == "published"
    link = entry.find_element("css selector", "a[href^='/published/']")
    assert link.get_attribute("href") == curator.published_page("unanswered")
    assert browser.faults() == []
    picture_both(browser, "campaigns-published")


def test_an_analyst_is_offered_no_publication(browser: Any, curator: Any) -> None:
    curator.close("spending")
    open_dashboard(browser, curator, "spending", ANALYST)
    browser.see("#draft")
    assert browser.gone("#publish")
    curator.close("spending", "reopen")


@pytest.fixture(scope="module")
def survey_sheet(curator: Any) -> str:
    """The address of the published sheet of a survey with several questions."""
    answer_survey(curator, "sheet")
    curator.publish("sheet")
    address: str = curator.published_page("sheet")
    return address


def test_the_sheet_has_method_promise_and_limits_on_one_printed_page(
    browser: Any, curator: Any, survey_sheet: str
) -> None:
    browser.run("sessionStorage.clear()")  # readers have no token
    browser.requests()
    browser.open(survey_sheet)
    browser.see("main h1", "Working hours, published")
    for title in ("How these results were obtained", "What people were promised", "What to keep in mind"):
        browser.see("main h2", title)
    for question in ("Do you work at present?", "Which of these do you have?"):
        browser.see(".results h2", question)
    browser.see(".remarks", "fewer than 50 reports")
    browser.see(".remarks", "The column “Prior”")
    browser.see(".introduction", "The works council")
    lay = browser.text("main")
    assert "LDP" not in lay.replace("privacy levels (LIP and LDP)", "")
    picture_both(browser, "sheet")
    assert printed_pages(browser, "sheet") == 1
    browser.click("summary")
    browser.see("details table", "LDP")
    campaign = curator.campaigns["sheet"].id
    asked = {request["url"].removeprefix(curator.url) for request in browser.requests()}
    assert {path for path in asked if path.startswith("/v1")} == {f"/v1/campaigns/{campaign}/publication"}


def drawn_survey(**details: Any) -> Campaign:
    """A question, its follow-up, and one that nobody knows anything about: one of them is drawn for each person."""
    yes_no = {"yes": "Yes", "no": "No"}
    questions = [
        SingleChoice("works", "Do you work?", options=yes_no),
        SingleChoice("paid", "Is it paid?", options=yes_no, asked_if={"works": ("yes",)}),
        SingleChoice("smokes", "Do you smoke?", options=yes_no),
    ]
    priors = {
        "works": Prior({"yes": 0.6, "no": 0.4}),
        "paid": Prior({"yes": 0.4, "no": 0.2, "not asked": 0.4}),
        "smokes": Prior.uniform(["yes", "no"]),
    }
    parts = [Part((name,), design(prior, 1.0, Distribution())) for name, prior in priors.items()]
    drawn = Slot(tuple(parts), (SHARE_DENOMINATOR // 4, SHARE_DENOMINATOR // 2, SHARE_DENOMINATOR // 4))
    return Campaign("Work and smoke", questions, {"everyone": Form((drawn,))}, **details)


@pytest.fixture(scope="module")
def drawn_sheet(curator: Any) -> str:
    """The address of a published sheet where one question was drawn for each person."""
    curator.campaigns["drawn"] = campaign = drawn_survey(smallest_count=50)
    curator.create(campaign)
    working, idle = {"works": "yes", "paid": "no", "smokes": "no"}, {"works": "no", "smokes": "yes"}
    curator.surveyed("drawn", [working, working, idle] * 400)
    curator.publish("drawn")
    address: str = curator.published_page("drawn")
    return address


def test_the_sheet_says_what_was_drawn_what_was_promised_and_what_the_server_received(
    browser: Any, curator: Any, drawn_sheet: str, survey_sheet: str
) -> None:
    promise = curator.campaigns["drawn"].promise["everyone"]
    assert promise.lip < promise.ldp
    browser.open(drawn_sheet)
    browser.see("main h1", "Work and smoke")
    remarks = browser.text(".remarks")
    assert f"that person seems by at most a factor of {factor_at_most(promise.lip)}" in remarks
    assert f"compared with the other, by at most a factor of {factor_at_most(promise.ldp)}" in remarks
    assert "Each person sent a report about one of the questions, drawn at random." in remarks
    counts = re.findall(r"Reports about this: ([\d,]+)\.", browser.text(".results"))
    assert len(counts) == 3 and sum(int(count.replace(",", "")) for count in counts) == 1200
    notes = browser.run(
        "return [...document.querySelectorAll('details p.quiet')].map((note) => note.textContent)"
    )
    assert sum("Method mle assumes" in note for note in notes) == 1
    assert browser.faults() == []
    picture_both(browser, "sheet-drawn")
    open_dashboard(browser, curator, "drawn")
    browser.see("#admission", say("admittedOpen"))
    browser.open(survey_sheet)
    browser.see(".remarks", "Each person sent reports about some of the questions.")


AMONG_ASKED = {
    "en": "Among those who were asked: Is it paid?",
    "ar": "بين من طُرح عليهم السؤال: \u2068Is it paid?\u2069",
}
BELOW = "return document.querySelector(arguments[0]).nextElementSibling.innerText"


def test_the_answers_of_those_who_were_asked_are_shown_as_shares_of_them(
    browser: Any, curator: Any, drawn_sheet: str
) -> None:
    """On the sheet, also from right to left, and on the dashboard."""
    browser.open(drawn_sheet)
    for language, title in AMONG_ASKED.items():
        choose_language(browser, language)
        browser.see("main caption", title)
    choose_language(browser, "en")
    assert row_heads(browser, "#group0-1-0 tbody th") == ["Yes", "No"]
    assert row_heads(browser, "#group0-1-0 thead th")[0] == "Answer"
    assert "at least" in browser.text("#group0-1-0 tbody tr:last-child"), (
        "two of three people were asked, and all of them said no"
    )
    assert browser.run(BELOW, "#histogram-1-0").startswith("Every share is known to"), (
        "not below the other table"
    )
    assert browser.faults() == []
    open_dashboard(browser, curator, "drawn")
    browser.see("main caption", AMONG_ASKED["en"])
    assert "is known to" in browser.run(BELOW, "#histogram-2")
    assert row_heads(browser, "#group0-2 tbody th") == ["Yes", "No"]
    assert browser.faults() == []
    picture_both(browser, "dashboard-asked")


def test_options_among_those_who_were_asked_are_one_table(browser: Any, curator: Any) -> None:
    questions = [
        SingleChoice("works", "Do you work?", options={"yes": "Yes", "no": "No"}),
        MultipleChoice("why", "Why?", {"pay": "Pay", "boss": "My boss"}, asked_if={"works": ("yes",)}),
    ]
    plan = design(Prior({"yes": 0.3, "no": 0.3, "not asked": 0.4}), 2.0, Distribution())
    form = Form(tuple(Slot((Part((name,), plan),)) for name in ("why/pay", "why/boss")))
    curator.campaigns["why"] = campaign = Campaign("Why", questions, {"everyone": form}, smallest_count=50)
    curator.create(campaign)
    curator.surveyed("why", [{"works": "yes", "why": ["pay"]}, {"works": "no"}] * 300)
    curator.publish("why")
    browser.open(curator.published_page("why"))
    browser.see("main caption", "Among those who were asked: Why?")
    assert row_heads(browser, ".results caption") == ["Among those who were asked: Why?"]
    assert row_heads(browser, "#group0-0-0 tbody th") == ["Pay", "My boss"]
    choose_language(browser, "ar")
    assert ends_on_the_right(browser, browser.see(".results caption", "Why?")), (
        "the survey is in English only"
    )
    open_dashboard(browser, curator, "why")
    browser.see("main caption", "Among those who were asked: Why?")
    assert row_heads(browser, "#group0 tbody th") == ["Pay", "My boss"]


def test_an_option_that_few_were_asked_about_is_named(browser: Any, curator: Any) -> None:
    question = MultipleChoice("ills", "Which of these?", {"back": "Back pain", "sleep": "Bad sleep"})
    plan = design(Prior({"yes": 0.3, "no": 0.7}), 2.0, Distribution())
    drawn = Slot.by_weights([Part((f"ills/{code}",), plan) for code in question.options], [49, 1])
    campaign = Campaign("Ills", [question], {"everyone": Form((drawn,))}, smallest_count=50)
    curator.campaigns["rarely-drawn"] = campaign
    curator.create(campaign)
    curator.surveyed("rarely-drawn", [{"ills": []}] * 200)
    curator.publish("rarely-drawn")
    browser.open(curator.published_page("rarely-drawn"))
    browser.see(".results p", "Bad sleep: Not shown: there are fewer than 50 reports")
    assert row_heads(browser, "#histogram-0-0 tbody th") == ["Back pain"]


SHEET = {
    "en": ("Habits by age", "How these results were obtained", "Under 30", "Yes", "0 to 2",
           "Average: How much overtime? (hours)"),
    "de": ("Gewohnheiten nach Alter", "Wie das ermittelt", "Unter 30", "Ja", "0 bis 2",
           "Durchschnitt: Wie viele Überstunden? (Stunden)"),
    "fr": ("Habits by age", "Comment ces résultats", "Under 30", "Yes", "de 0 à 2",
           "Moyenne : How much overtime? (hours)"),
    "es": ("Habits by age", "Cómo se ha averiguado", "Under 30", "Yes", "de 0 a 2",
           "Promedio: How much overtime? (hours)"),
    "ar": ("العادات حسب العمر", "كيف عُرفت هذه النتائج", "أقل من 30", "نعم", "", "المتوسط: كم ساعة عمل إضافي؟ (ساعة)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def table_sheet(curator: Any) -> str:
    """The address of a published sheet with tables, in which one group is small."""
    people = {"young": 600, "middle": 500, "old": 400, "oldest": 40}
    answers = [
        {"age": age, "smokes": "yes" if n % 3 == 0 else "no", "overtime": n % 40, "rooms": n % 5}
        for age, count in people.items()
        for n in range(count)
    ]
    curator.surveyed("sheet-table", answers)
    curator.publish("sheet-table")
    address: str = curator.published_page("sheet-table")
    return address


@pytest.mark.parametrize("language", SHEET)
def test_the_sheet_is_read_in_the_language_of_the_reader(
    browser: Any, table_sheet: str, language: str
) -> None:
    title, how, age, yes, rooms, average = SHEET[language]
    browser.requests()
    browser.open(table_sheet)
    choose_language(browser, language)
    browser.see("main h1", title)
    browser.see(".remarks h2", how)
    assert browser.run("return document.documentElement.dir") == ("rtl" if language == "ar" else "ltr")
    assert title in browser.run("return document.title")
    assert browser.run("return document.querySelector('main h1 bdi').lang") == language
    for text in (age, yes, rooms, average):
        browser.see(".results th", text)
    comma = r"\d,\d\s%"
    marks = {"en": r"\d\.\d%", "de": comma, "fr": comma, "es": comma, "ar": r"\d\W\d"}
    assert re.search(marks[language], browser.text(".histogram tbody"))
    picture_both(browser, f"sheet-table-{language}")
    assert printed_pages(browser, f"sheet-table-{language}") <= 2
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.faults() == []
    asked = [request["url"] for request in browser.requests() if "/v1/" in request["url"]]
    assert len(asked) == 1, "no request tells the language"


def test_a_language_that_is_chosen_while_the_results_load_stays(browser: Any, table_sheet: str) -> None:
    with running_first(browser, HOLD_REQUEST % "/publication"):
        browser.open(table_sheet)
        wait_until(lambda: browser.run("return 'release' in window"), "the page asks for the results")
        choose_language(browser, "fr")
        browser.run("window.release()")
        browser.see(".remarks h2", SHEET["fr"][1])
        assert browser.run("return document.querySelector('#language').value") == "fr"


def row_heads(browser: Any, css: str) -> list[str]:
    heads: list[str] = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map(h => h.textContent)", css
    )
    return heads


def test_the_sheet_shows_one_bar_for_each_option(browser: Any, survey_sheet: str) -> None:
    """The options of "tick all that apply" are one block; "no" bars would add nothing."""
    browser.open(survey_sheet)
    browser.see(".results h3", "Which of these do you have?")
    heads = browser.run(
        "const block = [...document.querySelectorAll('.results section:has(h3)')];"
        "return block.map(s => [...s.querySelectorAll('thead th:first-child, tbody th')].map(h => h.textContent))"
    )
    assert heads == [["Ticked", "Back pain", "Trouble sleeping"]]
    choose_language(browser, "de")
    browser.see(".results h3", "Was davon haben Sie?")
    browser.see(".results thead th", "Angekreuzt")
    browser.see(".results thead th", "Alles, was eine Person angekreuzt hat")


def test_options_by_group_are_grouped_and_named(browser: Any, curator: Any) -> None:
    """On the sheet and on the dashboard; each option has a bar in each group, and none for "no"."""
    names = ("age", "ills/back", "ills/sleep")
    prior = Prior.joint({cell: 1 / 8 for cell in product(("young", "old"), *[("yes", "no")] * 2)}, names)
    query = Linear.margins(prior, [("age", "ills/back"), ("age", "ills/sleep")], unbiased=True)
    questions = [
        SingleChoice("age", "How old are you?", options={"young": "Under 40", "old": "40 and over"}),
        MultipleChoice("ills", "Which of these?", {"back": "Back pain", "sleep": "Bad sleep"}),
    ]
    form = Form.of(names, design(prior, 3.0, query))
    curator.campaigns["by-group"] = campaign = Campaign(
        "Ills by age", questions, {"everyone": form}, smallest_count=10
    )
    curator.create(campaign)
    curator.surveyed("by-group", [{"age": "young", "ills": ["back"]}, {"age": "old", "ills": []}] * 200)
    curator.publish("by-group")
    options = ["Back pain", "Bad sleep"]
    browser.open(curator.published_page("by-group"))
    browser.see(".results h2", "How old are you? \u00d7 Which of these?")
    assert row_heads(browser, ".results h2") == ["How old are you? \u00d7 Which of these?"]
    groups = sorted(["Under 40", "40 and over", *options, *options])
    assert sorted(row_heads(browser, "#histogram-0-0 tbody th")) == groups
    assert row_heads(browser, "#histogram-2-0 tbody th") == options
    assert browser.faults() == []
    open_dashboard(browser, curator, "by-group")
    browser.see("main h2", "How old are you? \u00d7 Which of these?")
    assert sorted(row_heads(browser, "#histogram tbody th")) == groups
    assert row_heads(browser, "#histogram-3 tbody th") == options
    browser.picture("dashboard-by-group")


def test_every_group_of_a_table_is_shown_in_the_words_of_the_campaign(
    browser: Any, curator: Any, table_sheet: str
) -> None:
    caption = "Shares within each group: Do you smoke?, by How old are you?"
    browser.open(table_sheet)
    browser.see("main caption", caption)
    shown = row_heads(browser, "#histogram-0-0 th[scope=rowgroup]")
    assert shown == ["Under 30", "30 to 59", "60 to 79", "80 and over"], "the last one has 40 people"
    open_dashboard(browser, curator, "sheet-table")
    browser.see("main caption", caption)
    browser.see("main th", "Average: How much overtime? (hours)")
    browser.see("main th[scope=rowgroup]", "Under 30")
    page = browser.text("main")
    assert "age=" not in page and "mean" not in page and "[0, 2)" not in page
    averages = browser.see("main table:has(.point)")
    assert "Everyone" in averages.text, "the average over all stands below those of the groups"
    assert browser.faults() == []
    picture_both(browser, "dashboard-table")


FEW = {  # a survey in English, on a page in English and in Arabic
    "en": ("cannot be told from these reports", "at most", "(method mle)"),
    "ar": ("لا يمكن معرفته من هذه التقارير", "على الأكثر", "(الطريقة mle)"),
}


def test_a_sheet_about_few_people_has_no_impossible_figure(browser: Any, curator: Any) -> None:
    """The dashboard and the CSV file have the unbiased figures."""
    smokes = SingleChoice("smokes", "Do you smoke?", options={"no": "No", "some": "Weekly", "yes": "Daily"})
    paid = SingleChoice("paid", "Do you pay?", options={"y": "Yes", "n": "No"}, asked_if={"smokes": ("yes",)})
    priors = {
        "smokes": Prior({"no": 0.9, "some": 0.05, "yes": 0.05}),
        "paid": Prior({"y": 0.02, "n": 0.03, "not asked": 0.95}),
    }
    slots = [Slot((Part((name,), design(prior, 1.0, Distribution())),)) for name, prior in priors.items()]
    curator.campaigns["few-people"] = campaign = Campaign(
        "Smoke", [smokes, paid], {"everyone": Form(tuple(slots))}, smallest_count=10
    )
    curator.create(campaign)
    curator.surveyed("few-people", [{"smokes": "no"}] * 60, seed=2)
    open_dashboard(browser, curator, "few-people")
    browser.see("#histogram tbody", "No")
    assert "-" in browser.text("#histogram tbody"), "the dashboard has the unbiased figures"
    curator.publish("few-people")
    browser.open(curator.published_page("few-people"))
    for language, (untold, most, method) in FEW.items():
        choose_language(browser, language)
        browser.see(".results td", untold)
        browser.see(".results td", most)
        browser.see(".remarks", method)
        assert not re.search(r"[-\u2212\u200e]\d", browser.text(".results")), "a share is below zero"
        assert browser.faults() == []
    choose_language(browser, "en")
    browser.see(".results td", "at most")
    picture_both(browser, "sheet-few-people")
    shares = [float(x) for x in re.findall(r"([\d.]+)\s?%", browser.text(".results"))]
    assert shares and max(shares) <= 100
    link = browser.see(".actions a", "For further computing (CSV)").get_attribute("href")
    lines = list(csv.DictReader(httpx.get(link, timeout=PATIENCE).text.splitlines()))
    assert {line["method"] for line in lines} == {"unbiased"}
    assert min(float(line["low"]) for line in lines if line["low"]) < 0


@pytest.mark.parametrize(("epsilon", "is_weak"), [(1.0, False), (5.0, True)])
def test_a_sheet_says_that_little_was_promised(
    browser: Any, curator: Any, epsilon: float, is_weak: bool
) -> None:
    name = f"promised-{epsilon}"
    curator.campaigns[name] = campaign = ask(f"At {epsilon}?", Prior({"yes": 0.24, "no": 0.76}), epsilon)
    curator.create(campaign)
    curator.publish(name)
    browser.open(curator.published_page(name))
    browser.see("main", "at most")
    assert ("This is little protection" in browser.text("main")) is is_weak


def test_a_sheet_has_every_cohort_and_hides_the_total_with_a_small_one(browser: Any, curator: Any) -> None:
    for cohort, people in (("north", 200), ("south", 20)):
        answers = [{"answer": answer} for answer in ["yes", "no"] * (people // 2)]
        curator.surveyed("sheet-cohorts", answers, cohort=cohort)
    curator.publish("sheet-cohorts")
    browser.open(curator.published_page("sheet-cohorts"))
    browser.see("main h1", "Are you well?")
    heads = browser.run("return [...document.querySelectorAll('.results h3')].map(h => h.textContent)")
    assert heads == ["north", "south"]
    browser.see(".results", "Not shown: there are fewer than 50 reports")
    assert len(browser.run("return [...document.querySelectorAll('.histogram')]")) == 1
    assert browser.faults() == []
    picture_both(browser, "sheet-cohorts")
    assert printed_pages(browser, "sheet-cohorts") == 1


def test_a_published_survey_leads_from_its_closed_page_to_a_sheet_that_can_be_checked(
    browser: Any, curator: Any
) -> None:
    contact = "office-of-statistics@example-town.org"
    campaign = ask("Do you paint?", Prior({"yes": 0.3, "no": 0.7}), smallest_count=20, contact=contact)
    curator.create(campaign)
    curator.campaigns["painting"] = campaign
    curator.close("painting")
    browser.open(curator.answer_page("painting"))
    browser.see("main", "This survey is closed.")
    assert not browser.driver.find_elements("css selector", "a[href^='/published/']")
    curator.close("painting", "publication")
    browser.open(curator.answer_page("painting"))
    browser.see("main a", "The published results")
    assert browser.faults() == []
    browser.click("main a", "The published results")
    browser.see("main h1", "Do you paint?")
    browser.size(390, 844, scale=2, mobile=True)
    place = browser.see(".introduction bdi", contact)
    assert place.size["height"] < 30, "it stands on one line"
    picture_both(browser, "sheet-contact")
    assert not browser.see_now(".printed")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    printed = browser.text(".printed")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert curator.published_page("painting") in printed and "which ends in the campaign" in printed
    assert printed_pages(browser, "sheet-contact") == 1


def test_after_publication_the_page_says_that_a_report_stays(browser: Any, curator: Any) -> None:
    browser.forgiven = ["409"]
    browser.open(curator.answer_page("withdrawing"))
    choose(browser, "yes")
    browser.click("button", "Send")
    browser.see("main h1", "Thank you")
    curator.publish("withdrawing")
    browser.click("summary", "Your receipt")
    browser.click("button", "Withdraw my report")
    browser.click("dialog button", "Withdraw it")
    browser.see("[role=alert]", "The results are published")
    browser.open(curator.answer_page("withdrawing"))
    browser.see("main h1", "You have already answered")


def test_a_survey_with_invitations_says_what_its_totals_tell(browser: Any, curator: Any) -> None:
    campaign = translated(ask("Do you own a boat?", Prior(WORK), smallest_count=21, admission="invitation"))
    curator.create(campaign)
    curator.campaigns["boats"] = campaign
    answers = np.random.default_rng(4).choice(list(WORK), 400, p=list(WORK.values())).tolist()
    sent = submissions(campaign, {"answer": answers}, rng=np.random.default_rng(5))
    codes = curator.invite("boats", len(sent))
    curator.send(campaign, [{**body, "code": code} for body, code in zip(sent, codes, strict=True)])
    curator.publish("boats")
    browser.run("sessionStorage.clear()")
    browser.open(curator.published_page("boats"))
    totals = httpx.get(f"{curator.url}/v1/campaigns/{campaign.id}/publication", timeout=PATIENCE).json()
    level = totals["result"]["cohorts"][0]["totals"]["epsilon"]
    assert level == plan_of(campaign).totals_level(360)
    browser.see("main h2", say("totalsTitle"))
    browser.see(".remarks", f"at most {factor_at_most(level)} times as large, plus 1 in 1,000,000")
    browser.see(".remarks", "Do you own a boat?")
    browser.see(".remarks", "at most 10% of the people")
    browser.click("summary")
    browser.see("details", "hidden among 360 reports")
    assert browser.faults() == []
    for language in ("en", "de", "fr", "es", "ar"):
        choose_language(browser, language)
        browser.see("main h2", every_language()[language]["totalsTitle"])
        assert "{" not in browser.text(".remarks")
        picture_both(browser, f"published-totals-{language}")
    choose_language(browser, "en")


def test_a_survey_that_anybody_could_answer_says_nothing_about_its_totals(
    browser: Any, survey_sheet: str
) -> None:
    browser.open(survey_sheet)
    browser.see("main h2", "What people were promised")
    assert say("totalsTitle") not in browser.text("main")
