"""What people do on the pages, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOKEN = "a-token-for-tests"
ANALYST = "a-token-of-an-analyst"
COLOURS = ("color-contrast", "link-in-text-block")  # the rules of axe that look at colours
# Keys, as WebDriver names them.
BACKSPACE, TAB, SPACE, ENTER, ESCAPE, DOWN = "\ue003", "\ue004", " ", "\ue007", "\ue00c", "\ue015"


def start(browser: Any) -> None:
    """Leave the first page, which says who asks and why."""
    browser.click("button", "Start")
    browser.see("#progress:not([hidden])")


def choose(browser: Any, label: str) -> None:
    """Choose the answer to the only question and go on to what will be sent."""
    browser.see("main form")
    if browser.text("main form button") == "Start":
        start(browser)
    browser.click("label.choice", label)
    browser.click("button", "Continue")
    browser.see("main h1", "Check and send")


def sign_in(browser: Any, curator: Any, name: str | None = None, token: str = TOKEN) -> None:
    """Sign in to the dashboard, for the list of campaigns or for one of them."""
    place = "" if name is None else f"#{curator.campaigns[name].id}"
    browser.open(f"{curator.url}/dashboard{place}")
    browser.see("input[type=password]").send_keys(token)
    browser.click("button", "Sign in")


def open_dashboard(browser: Any, curator: Any, name: str = "", token: str = TOKEN) -> None:
    """Open the dashboard in a tab that is signed in, for the list of campaigns, one of them, or another view."""
    view = curator.campaigns[name].id if name in curator.campaigns else name
    browser.run("sessionStorage.setItem('priorveil-token', arguments[0])", token)
    browser.open("about:blank")  # where only the part after "#" differs, the old view is there for a moment
    browser.open(f"{curator.url}/dashboard#{view}")


def type_over(browser: Any, field: Any, text: str) -> None:
    """Write a text in place of what a field holds, by an editing command: faster than a key for every letter."""
    browser.run(
        "const [field, text] = arguments; field.focus(); field.select();"
        "document.execCommand(text === '' ? 'delete' : 'insertText', false, text)",
        field,
        text,
    )


def give_file(browser: Any, file: Path) -> None:
    """Choose a file on the page of a new survey."""
    browser.click("summary", "I have a file already")
    browser.see("#file").send_keys(str(file))


def answer_survey(curator: Any, name: str) -> None:
    """Reports of people to a survey with several questions."""
    working = {"works": "yes", "paid": "no", "ills": ["back"], "hours": 7, "smokes": "no"}
    idle = {"works": "no", "ills": [], "hours": 8, "smokes": "yes"}
    curator.surveyed(name, [working, idle] * 300)


def choose_language(browser: Any, language: str) -> None:
    """Choose the language of a page from its list."""
    browser.see(f"#language option[value='{language}']")
    browser.run(
        "const list = document.querySelector('#language'); list.value = arguments[0];"
        "list.dispatchEvent(new Event('change'))",
        language,
    )
    browser.see(f"html[lang='{language}']")


@contextmanager
def running_first(browser: Any, script: str) -> Iterator[None]:
    """While this lasts, pages run a script before their own."""
    added = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        yield
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


# One request, whose address ends like this, waits until the test calls `release`.
HOLD_REQUEST = """
  const request = window.fetch;
  window.fetch = async (...given) => {
    if (String(given[0]).endsWith("%s")) await new Promise((done) => { window.release = done; });
    return request(...given);
  };
"""

_ENDS_ON_THE_RIGHT = """
  const range = document.createRange();
  const walker = document.createTreeWalker(arguments[0], NodeFilter.SHOW_TEXT);
  let text = null;
  while (walker.nextNode()) if (walker.currentNode.data.includes("?")) text = walker.currentNode;
  const left = (at) => (range.setStart(text, at), range.setEnd(text, at + 1), range.getBoundingClientRect().left);
  const mark = text.data.lastIndexOf("?");
  return left(mark) > left(mark - 1);
"""


def ends_on_the_right(browser: Any, element: Any) -> bool:
    """Whether the last question mark in an element stands to the right of the letter before it."""
    return bool(browser.run(_ENDS_ON_THE_RIGHT, element))
