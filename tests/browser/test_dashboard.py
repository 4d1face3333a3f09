"""The curator's dashboard in Chromium: what it shows, what it keeps, how it reads."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import httpx
import pytest

from browser.stage import EARLIER_DAYS, survey
from browser.steps import ANALYST, ENTER, TAB, TOKEN, open_dashboard, sign_in
from patience import PATIENCE, wait_until
from priorveil.notes import Note
from priorveil.reading.estimate_notes import LEANING

HEADING = "main h1"


@pytest.fixture(scope="module", autouse=True)
def _answers(curator: Any) -> None:
    curator.answered("work", [0] * 2400 + [1] * 560 + [2] * 640 + [3] * 400)
    curator.answered("leaning", [0] * 150 + [1, 2, 3, 4] * 50)
    curator.answered("spending", [0] * 2000 + [1] * 1200 + [2] * 800)
    curator.answered("saving", [0] * 3200 + [1] * 400 + [2] * 400)


def reports(browser: Any) -> int:
    return int(browser.text("#reports").replace(",", "") or -1)


def test_a_wrong_token_is_refused(browser: Any, curator: Any) -> None:
    browser.forgiven = ["401"]
    browser.open(f"{curator.url}/dashboard")
    browser.see(HEADING, "Sign in")
    assert not browser.driver.find_element("id", "leave").is_displayed()
    browser.picture("dashboard-sign-in-light")
    sign_in(browser, curator, token="guessed")
    browser.see("[role=alert]", "This token is not known here.")
    assert browser.run("return sessionStorage.length") == 0


def test_a_browser_that_stores_nothing_cannot_sign_in_and_says_so(forgetful: Any, curator: Any) -> None:
    forgetful.open(f"{curator.url}/dashboard")
    forgetful.see(HEADING, "You cannot sign in with this browser")
    assert "store data of this site" in forgetful.text("main")
    assert forgetful.faults() == []
    assert forgetful.complaints() == []


def test_a_token_that_no_header_can_carry_is_refused(browser: Any, curator: Any) -> None:
    sign_in(browser, curator, token="to\u2010ken")
    browser.see("[role=alert]", "This token is not known here.")


def test_the_list_comes_by_itself_when_the_curator_is_back(browser: Any, curator: Any) -> None:
    browser.forgiven = ["ERR_INTERNET_DISCONNECTED"]
    open_dashboard(browser, curator, "work")
    browser.see("#reports")
    browser.offline(True)
    try:
        browser.click("a", "All campaigns")
        browser.see("#trouble", "cannot be reached; trying again")
        assert browser.text(HEADING) == "Campaigns" and browser.gone("#reports")
    finally:
        browser.offline(False)
    browser.see(".campaigns a", "What kind of work do you do?")
    assert browser.gone("#trouble")


def test_a_campaign_that_is_not_there(browser: Any, curator: Any) -> None:
    browser.forgiven = ["404"]
    open_dashboard(browser, curator)
    browser.see(HEADING, "Campaigns")
    browser.run("location.hash = '#' + '0'.repeat(64)")
    browser.see("#trouble", "no campaign has this id")
    assert browser.text(HEADING) == "Nothing to show yet"


def test_the_token_stays_in_the_tab(browser: Any, curator: Any) -> None:
    sign_in(browser, curator)
    browser.see(HEADING, "Campaigns")
    assert browser.driver.find_element("id", "leave").is_displayed()
    assert browser.run("return Object.values(sessionStorage)") == [TOKEN]
    assert browser.run("return localStorage.length") == 0
    assert browser.run("return document.cookie") == ""
    assert TOKEN not in browser.driver.current_url
    browser.click("button", "Sign out")
    browser.see(HEADING, "Sign in")
    assert browser.run("return sessionStorage.length") == 0


def test_estimates_stand_beside_the_prior(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator)
    browser.click(".campaigns a", "What kind of work do you do?")
    rows = _rows(browser)
    assert [row[0] for row in rows] == ["Private", "Self-employed", "Government", "None"]
    shares = [float(row[1].split("%")[0]) for row in rows]
    assert abs(shares[0] - 60) < 8 and abs(sum(shares) - 100) < 1
    assert [row[3] for row in rows] == ["69.0%", "11.0%", "13.0%", "7.0%"]
    for row, share in zip(rows, shares, strict=True):
        low, high = (float(end.strip("%")) for end in row[2].split(" to "))
        assert low < share < high
    assert len(browser.driver.find_elements("css selector", "#histogram tbody svg")) == 4
    page = browser.text("main")
    assert "at most\n2.72" in page and "Prior check" not in page
    for fold in browser.driver.find_elements("css selector", "#live summary"):
        fold.click()
    page = browser.text("main")
    assert "Prior check" in page and "LIP, up" in page and "lean on the prior" not in page


def _rows(browser: Any) -> list[list[str]]:
    browser.see("#histogram tbody tr")
    found: list[list[str]] = browser.run(
        "return [...document.querySelectorAll('#histogram tbody tr')].map(row => "
        "[...row.children].filter(c => !c.classList.contains('picture')).map(c => c.innerText))"
    )
    return found


def test_the_keyboard_is_enough(browser: Any, curator: Any) -> None:
    browser.open(f"{curator.url}/dashboard")
    browser.see("input[type=password]")
    browser.press(TOKEN, ENTER)
    browser.see(".campaigns li", "What kind of work")
    steps = browser.run("""
      const follows = (e) => document.activeElement.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING;
      const links = [...document.querySelectorAll("a, button")].filter((e) => e.checkVisibility() && follows(e));
      return 1 + links.findIndex((link) => link.textContent.includes("What kind of work"));
    """)  # other tests add campaigns
    browser.press(*[TAB] * steps)
    assert "What kind of work" in browser.run("return document.activeElement.textContent")
    browser.press(ENTER)
    browser.see("#histogram")
    reached = set()
    for _ in range(10):
        browser.press(TAB)
        reached.add(browser.run("return document.activeElement.id"))
    assert {"method", "download"} <= reached


def test_counts_are_live(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "work")
    before = reports(browser)
    curator.answered("work", [0] * 25, seed=2)
    wait_until(lambda: reports(browser) == before + 25, "the new reports are shown")
    assert browser.run("return document.querySelector('[role=status]').textContent").endswith("reports")


def test_every_question_of_a_survey_has_results(browser: Any, curator: Any) -> None:
    """Also the margins of what was asked together; a question that few were asked about is withheld alone."""
    working = {"works": "yes", "paid": "no", "ills": ["back"], "hours": 7, "smokes": "no"}
    idle = {"works": "no", "ills": [], "hours": 8, "smokes": "yes"}
    before = curator.counters("again")["reports"]["everyone"]  # other tests answer it, too
    curator.surveyed("again", [working, idle] * 80)
    open_dashboard(browser, curator, "again")
    browser.see("#reports", str(before + 160))
    heads = [head.text for head in browser.driver.find_elements("css selector", "h2")]
    asked = ["Do you work at present?", "Is your overtime paid?", "How many hours do you sleep? (hours)"]
    assert set(asked) <= set(heads)
    promises = [head.text for head in browser.driver.find_elements("css selector", "h3")]
    assert "How many hours do you sleep? (hours)" in promises, "±0.5 of what?"
    for number in (5, 6):  # each person was asked about one of them
        assert "fewer than 100 reports about this" in browser.text(f"#withheld-{number}")
    assert browser.gone("#withheld") and "Yes" in browser.text("#histogram-2")
    ills = browser.run(
        "return [...document.querySelectorAll('#histogram-4 tbody th')].map(h => h.textContent)"
    )
    assert ills == ["Back pain", "Trouble sleeping"], "one bar for each option"
    browser.picture("dashboard-survey-light")


def test_options_that_are_all_withheld_say_so_once(browser: Any, curator: Any) -> None:
    curator.campaigns["unanswered"] = survey(title="Working hours, unanswered")
    curator.create(curator.campaigns["unanswered"])
    open_dashboard(browser, curator, "unanswered")
    said = browser.text("#withheld-4")
    assert said.count("fewer than 100 reports") == 1, "there is one question, with two options"


def estimates(curator: Any, name: str) -> dict[str, Any]:
    """The first finding, with the figures beside what it is about."""
    place = f"{curator.url}/v1/campaigns/{curator.campaigns[name].id}/estimates"
    found: dict[str, Any] = httpx.get(
        place, headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE
    ).json()["result"]["findings"][0]
    return {**found, **(found["figures"] or {})}


def text(note: dict[str, Any]) -> str:
    """A note in the words of Python; the pages write percent signs without a space."""
    values = {
        name: tuple(map(as_note, value)) if isinstance(value, list) else as_note(value)
        for name, value in note["values"].items()
    }
    return str(Note(note["code"], values)).replace(" %)", "%)")


def as_note(value: Any) -> Any:
    """A note in a note; other values are as they are."""
    if not isinstance(value, dict):
        return value
    return Note(value["code"], {name: as_note(each) for name, each in value["values"].items()})


def test_a_plan_that_leans_on_the_prior_says_so(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "spending")
    browser.see("#histogram")
    assert estimates(curator, "spending")["warning"] is None
    assert browser.text("#live").startswith(str(LEANING))
    assert "if the prior is right" in browser.text("#reached")


@pytest.mark.parametrize("name", ["leaning", "saving"])
def test_a_prior_that_the_reports_contradict_stands_first(browser: Any, curator: Any, name: str) -> None:
    """In words, before any number; and the page does not call such an answer precise."""
    warning = text(estimates(curator, name)["warning"])
    open_dashboard(browser, curator, name)
    browser.see("#histogram")
    assert warning and browser.text("#live").startswith(warning)
    assert not browser.driver.find_elements("css selector", "#reached")
    browser.picture(f"dashboard-{name}-light")
    if curator.campaigns[name].form_for(None).parts[0].plan.identifiable:
        browser.pick("#method", "from the reports alone")
        browser.see("#reached", "is known to")
        assert not browser.driver.find_elements("css selector", "#live .warning")


def test_the_method_its_assumption_and_the_check_are_always_named(browser: Any, curator: Any) -> None:
    for name in ("work", "leaning"):
        notes = list(map(text, estimates(curator, name)["notes"]))
        browser.run("sessionStorage.clear()")
        sign_in(browser, curator, name)
        browser.click("#notes summary")
        page = browser.text("main", "Estimates")
        assert len(notes) >= 2 and all(note in page for note in notes), name
        assert "fits" not in page and "such as the prior leads" not in page


def test_a_sum_shows_the_average_and_the_total(browser: Any, curator: Any) -> None:
    numbers = estimates(curator, "spending")
    open_dashboard(browser, curator, "spending")
    average, total = _rows(browser)
    assert average[0] == "Average per person" and total[0] == "Total of 4,000 people"
    for row, people in ((average, 1), (total, 4000)):
        low, high = (float(end.replace(",", "")) for end in row[2].split(" to "))
        value, prior = (float(row[i].replace(",", "")) for i in (1, 3))
        scale = people / 4000
        (sums,) = numbers["tables"][0]["rows"]
        for shown, wanted in ((value, "value"), (low, "low"), (high, "high")):
            assert abs(shown - sums[wanted] * scale) <= 0.05 * (high - low)
        assert low < 26 * people < high and low < value < high  # what was answered, with a fixed seed
        assert abs(prior - 26 * people) <= 0.05 * (high - low)
    browser.picture("dashboard-sum-light")


@pytest.mark.parametrize("name", ["range", "survey"])
def test_an_assumed_prior_and_several_reports_have_ldp_alone(browser: Any, curator: Any, name: str) -> None:
    open_dashboard(browser, curator, name)
    facts = browser.text(".facts")
    assert "The odds of one answer" in facts and "The probability of an answer" not in facts


def test_precision_is_said_with_its_unit(browser: Any, curator: Any) -> None:
    known = {
        "work": r"every share is known to ±([0-9.]+) points or better \(95%\)\.",
        "spending": r"the average per person among these people is known to ±([0-9.]+) \(95%\), if the prior",
    }
    for name, now in known.items():
        numbers = estimates(curator, name)
        browser.run("sessionStorage.clear()")
        sign_in(browser, curator, name)
        promise = text(numbers["promised"])
        browser.see("main p", promise[0].upper() + promise[1:])
        found = re.search(now, browser.text("#reached"))
        rows = numbers["tables"][0]["rows"]
        width = max(row["high"] - row["value"] for row in rows) / numbers["reports"]
        points = 100 * width if name == "work" else width
        assert found and points <= float(found[1]) <= 1.1 * points  # rounded up


def test_reports_are_shown_by_day(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "spending")
    browser.click("#days summary")
    rows = browser.run(
        "return [...document.querySelectorAll('#days tbody tr')].map((row) =>"
        " [row.querySelector('time').dateTime, row.querySelector('td').textContent])"
    )
    counts = curator.counters("spending")["by_day"]
    assert EARLIER_DAYS.items() < counts.items()
    assert {day: int(text.replace(",", "")) for day, text in rows} == counts
    assert [day for day, _ in rows] == sorted(counts)
    bars = browser.run(
        "return [...document.querySelectorAll('.days rect')].map((b) => [b.x, b.height].map((l) => l.baseVal.value))"
    )
    tallest = max(height for _, height in bars)
    expected = [tallest * counts[day] / max(counts.values()) for day in sorted(counts)]
    assert [height for _, height in bars] == pytest.approx(expected, rel=0.01)
    places = [place for place, _ in bars]
    assert places[2] - places[1] == pytest.approx(3 * (places[1] - places[0]), rel=0.01), (
        "empty days have room"
    )
    browser.see(".days figcaption", f"at most {max(counts.values()):,} on one day")
    browser.picture("dashboard-days")
    assert browser.faults() == []
    browser.open(f"{curator.url}/dashboard#{curator.campaigns['work'].id}")  # all its reports came on one day
    browser.see("#reports")
    assert "at most" not in browser.text(".days figcaption")


def test_refusals_are_counted(browser: Any, curator: Any) -> None:
    campaign = curator.campaigns["work"]
    browser.open(f"{curator.url}/")
    wrong = {"report_id": "ab" * 16, "form": "00" * 32, "report": "00" * 8}
    browser.run(
        "const headers = {'content-type': 'application/json'};"
        "return fetch(arguments[0], {method: 'POST', headers, body: arguments[1]}).then(r => r.status)",
        f"{curator.url}/v1/campaigns/{campaign.id}/reports",
        json.dumps(wrong),
    )
    open_dashboard(browser, curator, "work")
    browser.see("tr", "unknown form 1")


def test_reports_can_be_downloaded(browser: Any, curator: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the export is a Parquet file")
    open_dashboard(browser, curator, "leaning")
    browser.click("#download")
    path = browser.downloaded(f"{curator.campaigns['leaning'].id[:12]}.parquet")
    assert parquet.read_table(path).num_rows == 350


@pytest.mark.parametrize("token", [TOKEN, ANALYST])
def test_results_can_be_downloaded(browser: Any, curator: Any, token: str) -> None:
    if token == ANALYST:
        curator.close("work", "release")
    open_dashboard(browser, curator, "work", token)
    browser.click("#notes summary")
    browser.pick("#method", "most likely shares, none below zero")
    browser.see("main p.quiet", "Method mle")
    start = browser.downloads / f"{curator.campaigns['work'].id[:12]}-not-for-publication"
    for kind in ("csv", "json"):
        path = start.with_suffix(f".{kind}")
        path.unlink(missing_ok=True)
        browser.click(f"#results-{kind}")
        browser.downloaded(path.name)
    estimates = json.loads(start.with_suffix(".json").read_text(encoding="utf-8"))
    assert not estimates["published"]
    shown = estimates["result"]["findings"][0]["figures"]
    assert shown["method"] == "mle"
    with start.with_suffix(".csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["estimate"]) for line in lines] == [row["value"] for row in shown["tables"][0]["rows"]]


def test_cohorts_are_shown_together_and_apart(browser: Any, curator: Any) -> None:
    for cohort, seed in (("north", 3), ("south", 4)):
        _answer_cohort(curator, cohort, seed)
    open_dashboard(browser, curator, "cohorts")
    assert len(_rows(browser)) == 2
    both = _rows(browser)
    browser.pick("#cohort", "north")
    wait_until(lambda: _rows(browser) != both, "the rows of the cohort are shown")
    assert _rows(browser)[0][3] == "8.0%"
    browser.picture("dashboard-cohorts-light")


def _answer_cohort(curator: Any, cohort: str, seed: int) -> None:
    curator.answered("cohorts", [0] * 30 + [1] * 170, seed, cohort)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_desk_and_a_phone(browser: Any, curator: Any, scheme: str) -> None:
    browser.scheme(scheme)
    open_dashboard(browser, curator)
    browser.see(".campaigns a")
    browser.picture(f"dashboard-campaigns-{scheme}")
    browser.click(".campaigns a", "What kind of work do you do?")
    browser.see("#histogram")
    browser.picture(f"dashboard-{scheme}")
    browser.size(360, 740, scale=2, mobile=True)
    browser.see("#histogram")
    browser.picture(f"dashboard-phone-{scheme}")
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    named = browser.named_nodes()
    assert {("rowheader", "Self-employed"), ("columnheader", "Prior"), ("combobox", "Method")} <= named


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser: Any, curator: Any, scheme: str) -> None:
    """Contrast of at least 4.5 for text and 3 for lines (WCAG AA)."""
    browser.scheme(scheme)
    browser.open(f"{curator.url}/")
    pairs = {("ink", "ground"): 4.5, ("ink", "raised"): 4.5, ("ink", "tint"): 4.5, ("soft", "ground"): 4.5,
             ("soft", "raised"): 4.5, ("accent", "ground"): 4.5, ("on-accent", "accent"): 4.5,
             ("warn", "warn-ground"): 4.5, ("prior", "ground"): 3.0}  # fmt: skip
    names = sorted({name for pair in pairs for name in pair})
    found = browser.run(
        "const style = getComputedStyle(document.documentElement);"
        "return Object.fromEntries(arguments[0].map(n => [n, style.getPropertyValue('--' + n).trim()]))",
        names,
    )
    poor = {
        p: contrast(found[p[0]], found[p[1]])
        for p, c in pairs.items()
        if contrast(found[p[0]], found[p[1]]) < c
    }
    assert poor == {}


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_dashboard_says_who_may_answer_and_what_that_means(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, "few")
    browser.see("#admission", "Anyone who knows the address can answer, even many times")
    texts = {
        "crowded": "At most 1 report can be stored, and strangers can fill that up.",
        "invited": "Each answer needs an invitation",
    }
    for name, text in texts.items():
        browser.open(f"{curator.url}/dashboard#{curator.campaigns[name].id}")
        browser.see("#admission", text)
