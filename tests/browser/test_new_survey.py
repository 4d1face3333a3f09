"""A survey on the dashboard in Chromium: the form, the check, the preview, the campaign; and surveys from files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.steps import ANALYST, COLOURS, SPACE, TAB, open_dashboard, start, type_over
from patience import wait_until
from priorveil.priors import Prior
from priorveil.questions.campaign import Campaign, ask
from priorveil.questions.survey_reader import read_survey
from sample_survey_files import SURVEY, TOML, changed, write_form

HEADING = "main h1"


@pytest.fixture
def page(browser: Any, curator: Any) -> Iterator[Any]:
    """The page of a new survey."""
    open_dashboard(browser, curator, "new")
    browser.see(HEADING, "New survey")
    browser.see("#add-question")
    yield browser
    browser.run("window.onbeforeunload = null")


def field(page: Any, label: str, within: str = "main") -> Any:
    """The input, list or button with this name, the last one where there are several."""
    script = """
      const [words, within] = arguments;
      const isText = (node) => !node.matches?.('input, select');
      const text = (label) => [...label.childNodes].filter(isText).map((node) => node.textContent).join('').trim();
      const labels = [...document.querySelectorAll(`${within} :is(label.field, label.check)`)];
      return labels.findLast((label) => text(label) === words)?.querySelector('input, select');
    """
    found = page.run(script, label, within)
    assert found is not None, f"there is no field {label!r}"
    return found


def write(page: Any, label: str, text: str, within: str = "main") -> None:
    type_over(page, field(page, label, within), text)


def choose(page: Any, label: str, option: str, within: str = "main") -> None:
    script = """
      const [list, text] = arguments;
      const option = [...list.options].find((option) => option.text.includes(text));
      if (option === undefined) return false;
      list.focus();
      list.value = option.value;
      for (const kind of ['input', 'change']) list.dispatchEvent(new Event(kind, { bubbles: true }));
      return true;
    """
    assert page.run(script, field(page, label, within), option), f"there is no option {option!r}"


def card(number: int) -> str:
    return f"section.card:nth-of-type({number})"


def write_survey(page: Any) -> None:
    """Three questions, the second of which is a follow-up."""
    write(page, "Title", "Overtime in our office")
    write(page, "Who asks", "The works council")
    write(page, "Why", "To agree on rules")
    write(page, "Question", "Did you work overtime?", card(1))
    page.click(f"{card(1)} label.check", "I type the shares")
    write(page, "Yes (%)", "40", card(1))
    write(page, "No (%)", "60", card(1))
    page.click("#add-question")
    write(page, "Question", "Was it paid?", card(2))
    choose(page, "Kind of answer", "One choice", card(2))
    write(page, "Option 1", "All of it", card(2))
    write(page, "Option 2", "None of it", card(2))
    page.click(f"{card(2)} button", "Add “prefer not to say”")
    choose(page, "Asked", "Did you work overtime?", card(2))
    page.click(f"{card(2)} label.check", "Yes")
    page.click("#add-question")
    write(page, "Question", "How many hours did you sleep?", card(3))
    choose(page, "Kind of answer", "A number", card(3))
    write(page, "From", "0", card(3))
    write(page, "To", "12", card(3))
    write(page, "Unit", "hours", card(3))
    page.click("summary", "When, and who may answer")
    write(page, "Show no result from fewer reports than", "1")


def test_a_survey_is_written_checked_looked_at_created_and_answered(page: Any, curator: Any) -> None:
    write_survey(page)
    page.picture("new-survey-form")
    page.click("#check")
    page.see("#checked h2", "What this survey does")
    told = page.text("#checked")
    assert "Nobody knows how common the answers to q2, q3 are" in told and "protected by LDP" in told
    assert "How precise the results will be with 300 people" in told and "(chosen)" in told
    heads = [row.text for row in page.driver.find_elements("css selector", "#precision tbody th")]
    assert heads == ["Did you work overtime?\nq1", "Was it paid?\nq2", "How many hours did you sleep?\nq3"]
    assert page.faults() == []
    page.picture("new-survey-checked")

    home = page.driver.current_window_handle
    page.requests()
    page.click("#preview")
    wait_until(lambda: len(page.driver.window_handles) == 2, "the preview is open")
    page.driver.switch_to.window(next(h for h in page.driver.window_handles if h != home))
    try:
        page.see("#preview", "Preview: nothing is drawn")
        page.see(HEADING, "Overtime in our office")
        page.click("button", "Start")
        page.see(HEADING, "Did you work overtime?")
        page.click("label.choice", "Yes")
        page.click("button", "Continue")
        page.see(HEADING, "Was it paid?")
        page.picture("new-survey-preview")
        assert (
            page.run("return fetch(location.pathname.replace('answer', 'v1/campaigns')).then(r => r.status)")
            == 404
        )
    finally:
        page.driver.close()
        page.driver.switch_to.window(home)
    page.complaints()  # the campaign that is not there

    page.click("#create")
    page.see(HEADING, "Overtime in our office")
    page.see("#withheld", "fewer than 1 report")
    campaign = page.driver.current_url.rpartition("#")[2]
    page.open(f"{curator.url}/answer/{campaign}")
    start(page)
    while page.text(HEADING) != "Check and send":
        heading = page.text(HEADING)
        if page.driver.find_elements("css selector", "label.choice"):
            page.click("label.choice")
        else:
            page.see("main form input").send_keys("7")
        page.click("button", "Continue")
        page.see_other(HEADING, heading)
    page.click("button", "Send")
    page.see(HEADING, "Thank you")
    page.open(f"{curator.url}/dashboard#records")
    page.see(".records", "created")


def test_a_mistake_is_shown_at_its_field_and_nothing_is_lost(page: Any) -> None:
    page.forgiven = ["422"]
    write_survey(page)
    write(page, "No (%)", "50", card(1))
    page.click("#check")
    page.see("#refused", "Question 1: prior: they add up to 0.9, not to 1: correct them")
    page.see(f"{card(1)} fieldset .problem", "They add up to 0.9, not to 1")
    assert (
        page.run(
            "return document.activeElement.closest('section.card h3, section.card').querySelector('h3').textContent"
        )
        == "Question 1"
    )
    assert page.faults() == []
    page.picture("new-survey-mistake")
    write(page, "No (%)", "60", card(1))
    write(page, "Option 1", "", card(2))
    page.click("#check")
    page.see(f"{card(2)} .problem")
    focused = page.run(
        "const f = document.activeElement;"
        "return [f.value, f.getAttribute('aria-invalid'), f.getAttribute('aria-describedby')]"
    )
    assert focused[:2] == ["", "true"] and focused[2].endswith("-problem")
    assert field(page, "Title").get_attribute("value") == "Overtime in our office"
    page.press("All")
    assert page.gone(f"{card(2)} .problem"), "it goes away with the mistake"


def test_a_check_can_be_cancelled_and_a_change_makes_it_stale(page: Any) -> None:
    write_survey(page)
    page.run("""
      const real = window.fetch;  // the answer is held back until the test has cancelled
      const held = ({ signal }) => new Promise((_, failed) => {
        signal.addEventListener('abort', () => { window.fetch = real; failed(signal.reason); });
      });
      window.fetch = (url, options) => String(url).includes('/surveys') ? held(options) : real(url, options);
    """)
    page.click("#check")
    page.see("#designing", "Designing the survey")
    page.picture("new-survey-designing")
    assert page.faults() == []
    page.click("#cancel")
    wait_until(lambda: not page.see_now("#designing"), "the check is over")
    page.click("#check")
    page.see("#checked h2")
    write(page, "Title", "Another title")
    page.see("#stale", "Check it again")
    assert not page.see("#create").is_enabled() and not page.see("#preview").is_enabled()


def test_questions_move_and_go(page: Any) -> None:
    write_survey(page)
    page.click(f"{card(3)} button", "Up")
    assert field(page, "Question", card(2)).get_attribute("value") == "How many hours did you sleep?"
    assert page.run("return document.activeElement.textContent") == "Question 2", "the focus moves with it"
    page.click(f"{card(1)} button", "Remove")
    assert len(page.driver.find_elements("css selector", "section.card")) == 2
    assert "Asked" not in page.text(card(1))
    page.open(page.driver.current_url.replace("#new", "#"))
    page.click("a.button", "New survey")
    page.see("#add-question")
    assert field(page, "Title").get_attribute("value") == "Overtime in our office", "it is still there"


def test_a_survey_is_kept_in_a_file_and_read_again(page: Any, tmp_path: Path) -> None:
    write_survey(page)
    page.click("summary", "Description, contact and languages")
    choose(page, "Add a language", "German")
    for label in ("Title", "Who asks", "Why"):
        write(page, f"{label} (German)", "Überstunden")
    for number in (1, 2, 3):
        write(page, "Question (German)", "Wie?", card(number))
    write(page, "Option 1 (German)", "Alles", card(2))
    write(page, "Option 2 (German)", "Nichts", card(2))
    assert field(page, "Option 3 (German)", card(2)).get_attribute("value") == ""
    write(page, "Option 3 (German)", "Keine Angabe", card(2))
    write(page, "Unit (German)", "Stunden", card(3))
    page.click(f"{card(3)} label.check", "I type the shares")
    for place, (low, high, share) in enumerate((("0", "6", "20"), ("6", "12", "80"))):
        row = f"{card(3)} .row:nth-of-type({place + 1})"
        for label, text in ((f"Range {place + 1} from", low), ("to", high), ("Share (%)", share)):
            write(page, label, text, f"{card(3)} .shares {row.partition(' ')[2]}")
    page.click("#save")
    file = page.downloaded("survey.json")
    kept = file.rename(tmp_path / "survey.json")
    survey = read_survey(kept)
    assert survey.details.languages == ("en", "de")
    assert survey.questions[1].asked_if == {"q1": ("yes",)}
    assert survey.parts[-1].prior.assumed is False
    page.open(page.driver.current_url.replace("#new", "?again#new"))
    page.see("#add-question")
    assert field(page, "Title").get_attribute("value") == ""
    page.click("summary", "I have a file already")
    page.see("#file").send_keys(str(kept))
    page.see(card(3))
    page.click("#save")
    file = page.downloaded("survey.json")
    assert json.loads(file.read_bytes()) == json.loads(kept.read_bytes())
    file.unlink()


def test_a_survey_that_changes_while_it_is_designed_has_to_be_checked_again(page: Any) -> None:
    """What would be created is what was checked, which is not in the form any more."""
    write(page, "Title", "Before")
    write(page, "Question", "Do you smoke?", card(1))
    page.run(
        "document.querySelector('#check').click();"
        "const title = document.querySelector('#title-en'); title.value = 'After';"
        "title.dispatchEvent(new Event('input'));"
    )
    page.see("#checked h2", "What this survey does")
    page.see("#stale", "Check it again")
    assert not page.driver.find_element("id", "create").is_enabled()
    page.click("#check")
    wait_until(lambda: page.driver.find_elements("css selector", "#create:enabled"), "it is checked again")
    assert not page.see_now("#stale")


def test_questions_designed_together_are_kept_by_a_file(page: Any, tmp_path: Path) -> None:
    page.forgiven = ["422"]
    table = tmp_path / "cells.csv"
    table.write_text("q1,q2,share\nyes,Young,0.1\nyes,Old,0.2\nno,Young,0.3\nno,Old,0.4\n", encoding="utf-8")
    write(page, "Title", "T")
    write(page, "Question", "Do you smoke?", card(1))
    page.click("#add-question")
    write(page, "Question", "How old are you?", card(2))
    choose(page, "Kind of answer", "One choice", card(2))
    write(page, "Option 1", "Young", card(2))
    write(page, "Option 2", "Old", card(2))
    page.click("summary", "Questions designed together")
    page.click("#add-group")
    page.click("#together label.check", "1. Do you smoke?")
    page.click("#together label.check", "2. How old are you?")
    choose(page, "What do you want to know?", "The answers to question 1, by question 2", "#together")
    page.click("#together label.check", "I have a table")
    field(page, "Table", "#together").send_keys(str(table))
    page.see("#together", "cells.csv: 4 rows of shares")
    page.click("#save")
    file = page.downloaded("survey.json")
    kept = file.rename(tmp_path / "survey.json")
    (group,) = json.loads(kept.read_bytes())["together"]
    assert group["query"] == "shares of q1 by q2" and group["prior"] == {"sheet": "cells.csv"}
    (spec,) = read_survey(kept).parts
    assert dict(zip(spec.prior.labels, spec.prior.probabilities.tolist(), strict=True))["old", "no"] == 0.4
    page.click(f"{card(1)} summary", "More about question 1")
    write(page, "Short name", "smokes", card(1))
    page.click("#check")
    page.see("#together .problem")  # the table has no such column any more
    write(page, "Short name", "q1", card(1))
    page.click("#check")
    page.see("#checked h2", "What this survey does")


def test_a_fold_out_stays_open_when_the_form_is_drawn_again(page: Any) -> None:
    """Also at once: the event of its opening comes later."""
    page.click("#add-question")
    page.see("#together summary")
    page.run(
        "document.querySelector('#together summary').click(); document.querySelector('#add-group').click()"
    )
    page.see("#together h3")
    page.click("#together summary", "Questions designed together")
    page.click("#add-question")
    assert page.run("return document.querySelector('#together').open") is False


def test_tables_are_counted_in_the_browser(page: Any, tmp_path: Path) -> None:
    page.forgiven = ["422"]
    table = tmp_path / "people.csv"
    # The last cell is empty, and nothing ends its line.
    table.write_text("q1;name\n" + "yes;Anna\n" * 9 + "No;Bert\n" * 29 + "No;", encoding="utf-8")
    write(page, "Title", "T")
    write(page, "Question", "Q?", card(1))
    page.click(f"{card(1)} label.check", "I have a table")
    page.click("#check")
    page.see(f"{card(1)} .problem", "Choose a table")
    field(page, "Table", card(1)).send_keys(str(table))
    page.see(card(1), "people.csv: 39 rows, one for each person")
    page.picture("new-survey-table")
    page.requests()
    page.click("#check")
    page.see(f"{card(1)} .problem", "fewer than")
    (sent,) = [r["postData"] for r in page.requests() if "/v1/surveys" in r["url"]]
    assert "Anna" not in sent and json.loads(sent)["tables"] == {
        "people.csv": [{"q1": "no", "count": "30"}, {"q1": "yes", "count": "9"}]
    }
    page.click(f"{card(1)} label.check", "This table is already public")
    page.click("#check")
    page.see("#checked h2", "What this survey does")
    assert "Who asks" in page.text("main") and "give asked_by and purpose" in page.text("#checked")


@pytest.mark.parametrize("kind", ["toml", "xlsx"])
def test_a_survey_file_is_checked_and_created(page: Any, tmp_path: Path, kind: str) -> None:
    page.forgiven = ["422"]
    good, bad = tmp_path / f"good.{kind}", tmp_path / f"bad.{kind}"
    if kind == "toml":
        good.write_text(TOML, encoding="utf-8")
        bad.write_text(TOML.replace("no = 0.8", "no = 0.7"), encoding="utf-8")
    else:
        write_form(good, survey=[*SURVEY, ["text", "remarks", "Anything else?", "Noch etwas?"]])
        write_form(bad, survey=changed(SURVEY, "A2", "select_one age"))
    page.click("summary", "I have a file already")
    page.see("#file").send_keys(str(bad))
    page.see("#refused", {"toml": "line 12", "xlsx": "sheet survey, cell A2"}[kind])
    page.picture(f"new-survey-bad-{kind}")
    page.see("#file").send_keys(str(good))
    page.see("#checked h2", "What this survey does")
    assert page.see("#file").get_attribute("value").endswith(good.name), "it does not say that none is chosen"
    summary = page.text("#summary").split()
    title, questions, epsilon = {"toml": ("Health", "3", "1"), "xlsx": ("Work", "7", "2")}[kind]
    assert summary[summary.index("File") + 1] == good.name and summary[summary.index("Title") + 1] == title
    assert summary[summary.index("Questions") + 1] == questions
    assert summary[summary.index("Epsilon") + 1] == epsilon
    if kind == "xlsx":
        page.see("#left-out", "sheet survey, cell A9: remarks of type text")
    page.click("#create")
    page.see(HEADING, {"toml": "Health", "xlsx": "Work"}[kind])


def test_a_chosen_file_is_checked_again_until_one_goes_back_to_the_form(page: Any, tmp_path: Path) -> None:
    """A second press of Check must not check the form, which may hold another survey."""
    page.forgiven = ["422"]
    write(page, "Title", "In the form")
    (file := tmp_path / "good.toml").write_text(TOML, encoding="utf-8")
    page.click("summary", "I have a file already")
    page.see("#file").send_keys(str(file))
    page.see("#summary", "good.toml")
    page.see("#chosen", "Chosen file: good.toml")
    assert not page.see_now("#add-question") and not page.see_now("#save")
    assert page.faults() == []
    page.size(390, 844, scale=2, mobile=True)
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.picture("new-survey-file-phone")
    page.size(1280, 900)
    page.picture("new-survey-file-desk")
    write(page, "How many people will answer?", "2000")
    page.click("#check")
    page.see("#checked h3", "with 2,000 people")
    assert "good.toml" in page.text("#summary") and "Health" in page.text("#summary")
    page.click("#back")
    assert page.gone("#summary") and not page.see_now("#chosen") and page.see_now("#add-question")
    assert field(page, "Title").get_attribute("value") == "In the form", "nothing is lost"
    assert page.run("return document.activeElement.tagName") == "INPUT"
    page.click("#check")
    page.see("#refused", "Question 1")


def test_a_campaign_is_made_from_its_file(page: Any, tmp_path: Path) -> None:
    campaign = ask("Do you sing?", Prior({"yes": 0.2, "no": 0.8}), smallest_count=5)
    file = tmp_path / "campaign.json"
    file.write_text(campaign.to_json(), encoding="utf-8")
    page.click("summary", "I have a file already")
    page.see("#file").send_keys(str(file))
    page.see("#checked h2", "A finished campaign")
    page.see("#summary", "campaign.json")
    page.see("#summary", "Do you sing?")
    page.see("#summary", "LIP 1, LDP")
    page.click("#create")
    page.see(HEADING, "Do you sing?")
    assert page.driver.current_url.endswith(f"#{campaign.id}")
    page.see("#withheld", "fewer than 5 reports")


@pytest.mark.parametrize("content", ["{}", "not JSON", '{"format": "priorveil-campaign", "id": "a"}'])
def test_another_file_is_refused_with_the_reason(page: Any, tmp_path: Path, content: str) -> None:
    page.forgiven = ["422"]
    file = tmp_path / "other.json"
    file.write_text(content, encoding="utf-8")
    page.click("summary", "I have a file already")
    page.see("#file").send_keys(str(file))
    if "format" in content:
        page.click("#create")
    page.see("#refused", "not")


def test_only_admins_make_surveys(browser: Any, curator: Any) -> None:
    open_dashboard(browser, curator, token=ANALYST)
    browser.see(".campaigns")
    assert "New survey" not in browser.text("main")
    browser.open(f"{curator.url}/dashboard?other#new")
    browser.see("main", "role admin")


def test_leaving_with_changes_warns(page: Any) -> None:
    leaves = "const e = new Event('beforeunload', {cancelable: true}); return !window.dispatchEvent(e)"
    assert not page.run(leaves)
    write(page, "Title", "T")
    assert page.run(leaves)


def test_the_form_works_with_the_keyboard(page: Any) -> None:
    page.run("document.querySelector('#title-en').focus()")
    page.press("A title", TAB, "A council", TAB, "A reason")
    assert field(page, "Why").get_attribute("value") == "A reason"
    page.run("document.querySelector('#add-question').focus()")
    page.press(SPACE)
    assert page.run("return document.activeElement.id").endswith("-text-en")
    page.press("How?")
    assert field(page, "Question", card(2)).get_attribute("value") == "How?"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_form_fits_and_axe_finds_nothing(page: Any, width: int) -> None:
    def check(name: str) -> None:
        assert page.faults() == []
        assert page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        page.picture(f"new-survey-{name}-{width}-light")
        page.scheme("dark")
        assert page.faults(COLOURS) == []
        page.picture(f"new-survey-{name}-{width}-dark")
        page.scheme("light")

    page.size(width, 900 if width > 400 else 844, mobile=width < 400)
    page.picture(f"new-survey-empty-{width}")
    write_survey(page)
    page.click("summary", "Questions designed together")
    page.click("#add-group")
    page.click("#together label.check", "1. Did you work overtime?")
    page.click("#together label.check", "2. Was it paid?")
    choose(page, "Asked", "always", card(2))
    choose(page, "What do you want to know?", "The answers to question 2, by question 1", "#together")
    for summary in page.driver.find_elements("css selector", "details:not([open]) > summary"):
        summary.click()
    check("open")
    page.click("#check")
    page.see("#checked h2", "What this survey does")
    check("result")


def test_a_campaign_of_the_form_is_that_of_the_command_line(page: Any, tmp_path: Path) -> None:
    write_survey(page)
    page.click("#check")
    page.see("#checked h2")
    page.click("#keep")
    file = page.downloaded("campaign.json")
    campaign = Campaign.from_json(file.rename(tmp_path / "campaign.json").read_bytes())
    assert [q.name for q in campaign.questions] == ["q1", "q2", "q3"]
    assert campaign.questions[1].options["no_answer"] == {"en": "I prefer not to say"}
