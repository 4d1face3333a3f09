"""A curator to ask and a browser to ask with: what the tests of the pages drive."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from selenium import webdriver
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException
from selenium.webdriver.support.ui import Select

import priorveil as pv
from browser.steps import ANALYST, TOKEN
from local_server import PATIENT
from patience import PATIENCE, wait_until
from priorveil.curator.app import create_app
from priorveil.curator.server import find_address
from priorveil.curator.server import serving as answering
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.tokens import Token
from priorveil.plans.document import content_id
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.priors.label_texts import label_parts
from priorveil.questions.campaign import Campaign, ask, ask_with, read_time
from priorveil.questions.choices import MultipleChoice, SingleChoice
from priorveil.questions.number import NumberQuestion
from reserved_ports import free_port
from submissions import plan_of, submissions

WORK = {"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07}
EARLIER_DAYS = {"2026-03-01": 1000, "2026-03-02": 250, "2026-03-05": 1}  # of the campaign "spending"
# Chromium as root, with nothing that calls home, and without tabs and bars that it would draw with every page.
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--force-color-profile=srgb", "--lang=en", "--start-fullscreen",
    "--process-per-site", "--renderer-process-limit=1",
    "--disable-features=BackForwardCache,SpareRendererForSitePerProcess",
]  # fmt: skip


# `once(look)` is what a function finds on the page, as soon as it finds something. It waits inside the page, which
# takes far less of the processor than asking through the driver; after ten seconds the driver asks again.
WAITING = """
  const plain = (text) => text.replace(/\\s+/g, " ");
  const shows = (element, text) => element.checkVisibility() && plain(element.innerText).includes(plain(text));
  const seen = (css, text) =>
    [...document.querySelectorAll(css)].find((element) => text === "" || shows(element, text));
  const once = (look) => look() ?? new Promise((done) => {
    const end = Date.now() + 10_000;
    const again = () => {
      const found = look();
      if (found === undefined && Date.now() < end) setTimeout(again, 50);
      else done(found);
    };
    setTimeout(again, 50);
  });
  const [css, text] = arguments;
"""
SEE = "return once(() => seen(css, text));"  # the first element that matches and shows a text
GONE = "return once(() => document.querySelector(css) === null || undefined);"
# The words of the first element that matches, once one that matches shows a text.
READ = "return once(() => seen(css, text) && document.querySelector(css).innerText);"
READ_OTHER = """
  const words = () => document.querySelector(css)?.innerText;
  return once(() => [undefined, text].includes(words()) ? undefined : words());
"""
# Where the mouse can press the element, and what is in its way there.
PLACE = """
  const place = (element) => {
    element.scrollIntoViewIfNeeded();
    const [box] = element.getClientRects();
    if (!box) return undefined; // it has no place yet
    const within = (low, high, size) => (Math.max(low, 0) + Math.min(high, size)) / 2;
    const [x, y] = [within(box.left, box.right, innerWidth), within(box.top, box.bottom, innerHeight)];
    const top = document.elementFromPoint(x, y);
    return { x, y, cover: element.contains(top) ? null : (top?.outerHTML ?? "nothing") };
  };
  return once(() => { const element = seen(css, text); return element && place(element); });
"""
AXE = """
  const [rules, done] = arguments;
  const options = { resultTypes: ["violations"], ...(rules.length > 0 ? { runOnly: rules } : {}) };
  const faults = ({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} (${node.failureSummary})`);
  axe.run(document, options).then(({ violations }) => done(violations.flatMap(faults)));
"""


@dataclass
class Curator:
    """A running curator: its address and the campaigns it has."""

    url: str
    campaigns: dict[str, Campaign]

    def answered(self, name: str, values: list[int], seed: int = 1, cohort: str | None = None) -> None:
        """Reports of simulated people."""
        campaign = self.campaigns[name]
        cohort, rng = cohort or next(iter(campaign.cohorts)), np.random.default_rng(seed)
        plan = plan_of(campaign, cohort)
        labels = [label_parts(plan.labels[value]) for value in values]
        columns = dict(
            zip(campaign.form_for(cohort).attributes, map(list, zip(*labels, strict=True)), strict=True)
        )
        self.send(campaign, submissions(campaign, columns, cohort, rng))

    def send(self, campaign: Campaign, sent: list[dict[str, Any]]) -> None:
        """Submissions, with their codes where invitations are needed."""
        url, header = f"{self.url}/v1/campaigns/{campaign.id}/reports", {"authorization": f"Bearer {TOKEN}"}
        response = httpx.post(url, json={"reports": sent}, headers=header, timeout=PATIENCE)
        assert response.json() == {"accepted": len(sent), "refused": []}

    def surveyed(
        self, name: str, answers: list[dict[str, Any]], seed: int = 1, cohort: str | None = None
    ) -> None:
        """Reports of people with these answers, by the names of the questions."""
        campaign, rng = self.campaigns[name], np.random.default_rng(seed)
        rows = [campaign.attribute_values(each) for each in answers]
        columns = {a: [row[a] for row in rows] for a in rows[0]}
        self.send(campaign, submissions(campaign, columns, cohort, rng))

    def counters(self, name: str) -> dict[str, Any]:
        place = f"{self.url}/v1/campaigns/{self.campaigns[name].id}/counters"
        found: dict[str, Any] = httpx.get(
            place, headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE
        ).json()
        return found

    def create(self, campaign: Campaign) -> None:
        """One more campaign."""
        header = {"authorization": f"Bearer {TOKEN}"}
        place = f"{self.url}/v1/campaigns"
        made = httpx.post(place, content=campaign.to_json(), headers=header, timeout=PATIENCE)
        assert made.status_code == 201

    def close(self, name: str, verb: str = "close") -> None:
        place = f"{self.url}/v1/campaigns/{self.campaigns[name].id}/{verb}"
        done = httpx.post(place, headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE)
        assert done.status_code in (200, 201)

    def publish(self, name: str) -> None:
        self.close(name)
        self.close(name, "publication")

    def published_page(self, name: str) -> str:
        return f"{self.url}/published/{self.campaigns[name].id}"

    def invite(self, name: str, count: int) -> list[str]:
        """The codes of new invitations."""
        place = f"{self.url}/v1/campaigns/{self.campaigns[name].id}/invitations"
        header = {"authorization": f"Bearer {TOKEN}"}
        made = httpx.post(place, headers=header, json={"count": count}, timeout=PATIENCE)
        return list(made.json()["codes"])

    def answer_page(self, name: str) -> str:
        return f"{self.url}/answer/{self.campaigns[name].id}"


def asked() -> dict[str, Campaign]:
    """A campaign for every kind of page."""
    work = pv.Prior(WORK)
    many = pv.Prior.zipf(40, labels=[f"Occupation {i + 1}" for i in range(40)])
    plan = pv.design(many, 2.0, pv.Histogram(), method="unary")
    rare = pv.Prior({"none of them": 0.9, "asthma": 0.025, "gout": 0.025, "migraine": 0.025, "other": 0.025})
    ill = pv.Prior({"yes": 0.08, "no": 0.92})
    going = pv.Prior({"never": 0.2, "weekly": 0.5, "daily": 0.3})
    hidden = pv.design(going, 1.0, pv.Histogram(), secret=pv.Secret([[0.4, 0.5, 0.1], [0.0, 0.5, 0.5]]))
    spent = pv.Prior({"nothing": 0.5, "about 20": 0.3, "about 100": 0.2})
    kept = {
        "closes": read_time("closes", "2998-01-01T00:00:00Z"),
        "keep_until": read_time("keep_until", "2999-01-01T00:00:00Z"),
    }
    texts = {
        "asked_by": "The town of Example, office of statistics",
        "purpose": "To plan buses for people who work",
    }
    campaigns = {
        "work": ask(
            "What kind of work do you do?", work, smallest_count=20, contact="survey@example.org", **texts
        ),
        "keyboard": ask("Which way do you travel?", work, smallest_count=3),
        "phone": ask(
            "How do you pay? Please think of the last time you bought something in a shop, for yourself or for "
            "somebody else, and choose the answer that comes nearest.",
            work,
            **texts,
        ),
        "spending": ask("How much did you spend?", spent, 1.0, pv.Sum([0, 20, 100]), smallest_count=20),
        "saving": ask("How much did you save?", spent, 1.0, pv.Sum([0, 20, 100]), smallest_count=20),
        "secret": ask_with("How often do you go out?", hidden),
        "bounded": ask("Do you sing?", pv.PriorSet.interval([0.2, 0.5], [0.5, 0.8], labels=["yes", "no"])),
        "offline": ask("Do you have a garden?", pv.Prior({"yes": 0.4, "no": 0.6})),
        "leaning": ask("Which of these do you have?", rare, 1.0, pv.Histogram(), smallest_count=20),
        "many": ask_with("What is your occupation?", plan),
        "cohorts": ask("Are you ill?", {"north": ill, "south": pv.Prior({"yes": 0.2, "no": 0.8})}, 1.5),
        "ending": ask("Which paper do you read?", work, smallest_count=20),
        "watched": ask("Which fruit do you like?", rare, 1.0, pv.Histogram(), smallest_count=20),
        "released": ask("Which tree do you like?", rare, 1.0, smallest_count=20),
        "range": ask("How many hours of overtime?", pv.Prior.grid([0, 20, 40, 80], outside="ends")),
        "hours": ask(
            "How many hours do you work?",
            pv.Prior.grid([0, 20, 40, 80], [0.2, 0.3, 0.4, 0.1], outside="ends"),
        ),
        "reopened": ask("Do you swim?", pv.Prior({"yes": 0.3, "no": 0.7})),
        "few": ask(
            "Do you cycle?",
            pv.Prior({"yes": 0.3, "no": 0.7}),
            closes=read_time("closes", "2999-01-01T00:00:00Z"),
        ),
        "early": ask("Do you vote?", work, closes=read_time("closes", "2999-01-01T00:00:00Z")),
        "arabic": ask("هل تستخدم الدراجة؟", pv.Prior({"نعم، كل يوم.": 0.3, "لا!": 0.7})),
        "invited": ask("Do you own a bicycle?", work, admission="invitation", most_reports=500, **kept),
        "crowded": ask("Are you the first?", work, most_reports=1),
        "long": ask(
            "Which of these describes best what you did on most evenings of the last month, at home or elsewhere?",
            pv.Prior.zipf(18, labels=[f"I {verb}, and I did so for most of the evening" for verb in VERBS]),
        ),
        "follow-up": drawn_follow_up(),
        "survey": survey(),
        "again": survey(title="Working hours, once more"),
        "costly": ask("Do you tell everything?", pv.Prior({"yes": 0.5, "no": 0.5}), 6.0),
        "sheet": survey(title="Working hours, published", smallest_count=50),
        "sheet-checked": survey(title="Working hours, checked", smallest_count=50),
        "sheet-cohorts": ask(
            "Are you well?",
            {"north": ill, "south": pv.Prior({"yes": 0.2, "no": 0.8})},
            1.5,
            smallest_count=50,
        ),
        "sheet-table": table_survey(),
        "publishing": ask("Which bus do you take?", work, smallest_count=20, **texts),
        "withdrawing": ask("Do you read?", pv.Prior({"yes": 0.3, "no": 0.7})),
        "later": ask("Is it time yet?", work, opens=read_time("opens", "2999-01-01T00:00:00Z")),
    }
    several = ("work", "hours", "long", "invited")
    return campaigns | {name: translated(campaigns[name]) for name in several}


VERBS = (
    "read", "wrote", "cooked", "ate out", "slept", "ran", "swam", "danced", "sang", "talked", "worked", "studied",
    "watched films", "played cards", "played chess", "cleaned", "went shopping", "did nothing",
)  # fmt: skip
LANGUAGES = ("en", "de", "ar", "fr", "es")


def in_languages(english: str, german: str, arabic: str) -> dict[str, str]:
    """A text in the five languages of the pages; the French and the Spanish one are English."""
    return dict(zip(LANGUAGES, (english, german, arabic, english, english), strict=True))


def translated(campaign: Campaign) -> Campaign:
    """A campaign in English with its texts in all languages, as they are."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(each) for each in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"en"}:
            return dict.fromkeys(LANGUAGES, value["en"])
        return {name: changed(each) for name, each in value.items()}

    document = {**changed(campaign.document()), "languages": LANGUAGES}
    return Campaign.from_json(json.dumps({**document, "id": content_id(document)}))


def survey(**details: Any) -> Campaign:
    """Questions in five languages: a gate and a follow-up, several choices, and one of two that is drawn."""
    questions = [
        SingleChoice(
            "works",
            in_languages("Do you work at present?", "Arbeiten Sie zurzeit?", "هل تعمل حاليًا؟"),
            {
                "yes": in_languages("Yes", "Ja", "نعم"),
                "no": in_languages("No", "Nein", "لا"),
                "refused": in_languages("Prefer not to say", "Keine Angabe", "أفضّل ألا أقول"),
            },
        ),
        SingleChoice(
            "paid",
            in_languages(
                "Is your overtime paid?", "Werden Ihre Überstunden bezahlt?", "هل يُدفع لك أجر العمل الإضافي؟"
            ),
            {"yes": in_languages("Yes", "Ja", "نعم"), "no": in_languages("No", "Nein", "لا")},
            hint=in_languages(
                "Think of the last month.", "Denken Sie an den letzten Monat.", "فكّر في الشهر الماضي."
            ),
            asked_if={"works": ("yes",)},
        ),
        MultipleChoice(
            "ills",
            in_languages("Which of these do you have?", "Was davon haben Sie?", "أيٌّ من هذه لديك؟"),
            {
                "back": in_languages("Back pain", "Rückenschmerzen", "آلام الظهر"),
                "sleep": in_languages("Trouble sleeping", "Schlafstörungen", "صعوبة في النوم"),
            },
        ),
        NumberQuestion(
            "hours",
            in_languages("How many hours do you sleep?", "Wie viele Stunden schlafen Sie?", "كم ساعة تنام؟"),
            unit=in_languages("hours", "Stunden", "ساعة"),
        ),
        SingleChoice(
            "smokes",
            in_languages("Do you smoke?", "Rauchen Sie?", "هل تدخّن؟"),
            {"yes": in_languages("Yes", "Ja", "نعم"), "no": in_languages("No", "Nein", "لا")},
        ),
    ]
    learn = pv.Distribution()
    works = pv.design(pv.Prior({"yes": 0.6, "no": 0.3, "refused": 0.1}), 0.5, learn)
    paid = pv.design(pv.Prior({"yes": 0.4, "no": 0.2, "not asked": 0.4}), 0.5, learn)
    both = {("yes", "yes"): 0.1, ("yes", "no"): 0.3, ("no", "yes"): 0.2, ("no", "no"): 0.4}
    ills = pv.design(pv.Prior.joint(both, ("ills/back", "ills/sleep")), 0.5, learn)
    grid = pv.Prior.grid([0, 6, 8, 14], [0.1, 0.4, 0.4, 0.1], outside="ends")
    hours = pv.design(grid, 0.5, pv.Sum([0, 6, 8, 14], unbiased=True))
    smokes = pv.design(pv.Prior({"yes": 0.25, "no": 0.75}), 0.5, learn)
    drawn = Slot(
        (Part(("hours",), hours), Part(("smokes",), smokes)), (SHARE_DENOMINATOR // 2, SHARE_DENOMINATOR // 2)
    )
    single = [
        Slot((Part(names, plan),))
        for names, plan in ((("works",), works), (("paid",), paid), (ills.reference.names, ills))
    ]
    about = {
        "title": in_languages("Working hours and health", "Arbeitszeit und Gesundheit", "ساعات العمل والصحة"),
        "asked_by": in_languages("The works council", "Der Betriebsrat", "مجلس العمال"),
        "purpose": in_languages(
            "To negotiate about overtime", "Um über Überstunden zu verhandeln", "للتفاوض بشأن العمل الإضافي"
        ),
        "description": in_languages(
            "Five short questions about your work and how you feel.",
            "Fünf kurze Fragen zu Ihrer Arbeit und wie es Ihnen geht.",
            "خمسة أسئلة قصيرة عن عملك وحالك.",
        ),
        "languages": LANGUAGES,
        "contact": "council@example.org",
    }
    if "title" in details:
        details["title"] = dict.fromkeys(LANGUAGES, details["title"])
    return Campaign(questions=questions, cohorts={"everyone": Form((*single, drawn))}, **{**about, **details})


def drawn_follow_up() -> Campaign:
    """Two questions of which one is drawn, nearly always the follow-up; its gate is not reported."""
    yes_no = {"yes": "Yes", "no": "No"}
    questions = [
        SingleChoice("works", "Do you work?", options=yes_no),
        SingleChoice("paid", "Is it paid?", options=yes_no, asked_if={"works": ("yes",)}),
        SingleChoice("smokes", "Do you smoke?", options=yes_no),
    ]
    paid = pv.design(pv.Prior({"yes": 0.4, "no": 0.2, "not asked": 0.4}), 1.0, pv.Distribution())
    smokes = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 1.0, pv.Distribution())
    drawn = Slot((Part(("paid",), paid), Part(("smokes",), smokes)), (SHARE_DENOMINATOR - 1, 1))
    return Campaign("Work and pay", questions, {"everyone": Form((drawn,))})


def table_survey() -> Campaign:
    """A table of age and smoking, average overtime by age, ranges of a number, and a follow-up, in five languages."""
    ages = {
        "young": in_languages("Under 30", "Unter 30", "أقل من 30"),
        "middle": in_languages("30 to 59", "30 bis 59", "من 30 إلى 59"),
        "old": in_languages("60 to 79", "60 bis 79", "من 60 إلى 79"),
        "oldest": in_languages("80 and over", "80 und älter", "80 فأكثر"),
    }
    yes_no = {"yes": in_languages("Yes", "Ja", "نعم"), "no": in_languages("No", "Nein", "لا")}
    questions = [
        SingleChoice("age", in_languages("How old are you?", "Wie alt sind Sie?", "كم عمرك؟"), options=ages),
        SingleChoice("smokes", in_languages("Do you smoke?", "Rauchen Sie?", "هل تدخّن؟"), options=yes_no),
        NumberQuestion(
            "overtime",
            in_languages("How much overtime?", "Wie viele Überstunden?", "كم ساعة عمل إضافي؟"),
            unit=in_languages("hours", "Stunden", "ساعة"),
        ),
        NumberQuestion(
            "rooms",
            in_languages("How many rooms?", "Wie viele Zimmer?", "كم غرفة؟"),
            edges=(0, 2, 5),
        ),
    ]
    shares = dict(zip(ages, (0.4, 0.3, 0.25, 0.05), strict=True))
    smoking = pv.Prior.joint(
        {(age, code): p * q for age, p in shares.items() for code, q in (("yes", 0.3), ("no", 0.7))},
        ("age", "smokes"),
    )
    working = pv.Prior.joint(
        {(age, hours): p / 2 for age, p in shares.items() for hours in (0, 40)},
        ("age", "overtime"),
        grids=("overtime",),
        outside="ends",
    )
    plans = {
        ("age", "smokes"): pv.design(smoking, 2.0, pv.Distribution()),
        ("age", "overtime"): pv.design(working, 2.0, pv.Linear.averages(working, "overtime", by="age")),
        ("rooms",): pv.design(pv.Prior({"[0, 2)": 0.4, "[2, 5]": 0.6}), 2.0, pv.Distribution()),
    }
    return Campaign(
        in_languages("Habits by age", "Gewohnheiten nach Alter", "العادات حسب العمر"),
        questions,
        {"everyone": Form(tuple(Slot((Part(names, plan),)) for names, plan in plans.items()))},
        languages=LANGUAGES,
        asked_by=in_languages("The town", "Die Stadt", "المدينة"),
        smallest_count=200,
    )


@contextmanager
def serving(path: Path) -> Iterator[Curator]:
    """A curator on a free port, with its store at this path, all campaigns and the token."""
    campaigns = asked()

    async def prepared() -> None:
        store = SqliteStore(path)
        await store.open()
        await store.add_token(Token.of(TOKEN, "stage", "admin"))
        await store.add_token(Token.of(ANALYST, "reader", "analyst"))
        for campaign in campaigns.values():
            await store.add_campaign(campaign)
        await store.add_daily_counts({(campaigns["spending"].id, day): n for day, n in EARLIER_DAYS.items()})
        await store.close()

    asyncio.run(prepared())
    started, stop = threading.Event(), asyncio.Event()
    address = find_address("127.0.0.1", free_port())
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        app = create_app(SqliteStore(path), PATIENT)
        async with app.lifespan(), answering(app, address, PATIENT.connections):
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert started.wait(PATIENCE), "the curator did not start"
    yield Curator(f"http://127.0.0.1:{address[1]}", campaigns)
    loop.call_soon_threadsafe(stop.set)
    thread.join(timeout=PATIENCE)


def axe() -> str:
    """The checks of accessibility, a tool of the tests that no page ever serves."""
    package = pytest.importorskip("axe_core_python", reason="accessibility is checked by axe-core-python")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@dataclass
class Browser:
    """Chromium with what a person does: look, click, press keys; and what leaves it."""

    driver: Any
    downloads: Path
    forgiven: list[str] = field(default_factory=list)  # complaints of the console that a test expects

    def open(self, url: str) -> None:
        self.driver.get(url)

    def once(self, script: str, css: str, text: str = "") -> Any:
        """What a script finds, as soon as it finds something."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(JavascriptException, StaleElementReferenceException):
                found = self.run(WAITING + script, css, text)
                if found is not None:
                    return found
            time.sleep(0.03)  # the page was left, or drawn again, while we looked
        page = self.driver.find_element("css selector", "body").text
        raise AssertionError(f"waited in vain for {css!r} with {text!r}; the page:\n{page}")

    def see(self, css: str, text: str = "") -> Any:
        """The first element that matches and shows the text, once it is there."""
        return self.once(SEE, css, text)

    def see_other(self, css: str, text: str) -> str:
        """What the first element that matches shows, once that is something else."""
        return str(self.once(READ_OTHER, css, text))

    def gone(self, css: str) -> bool:
        """Whether nothing matches any more, before long."""
        return bool(self.once(GONE, css))

    def see_now(self, css: str) -> bool:
        """Whether something that matches is shown at this moment."""
        return any(element.is_displayed() for element in self.driver.find_elements("css selector", css))

    def click(self, css: str, text: str = "") -> None:
        """Press and release the mouse on the first element that matches and shows the text, once it is there."""
        place = self.once(PLACE, css, text)
        assert place["cover"] is None, f"{css!r} with {text!r} is covered by {place['cover']}"
        for event in ("mousePressed", "mouseReleased"):
            mouse = {"type": event, "x": place["x"], "y": place["y"], "button": "left", "clickCount": 1}
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", mouse)

    def pick(self, css: str, option: str) -> None:
        """Choose in a list at once: keys would be lost where the page is drawn again after the first of them."""
        Select(self.see(css)).select_by_visible_text(option)

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def text(self, css: str, text: str = "") -> str:
        """What the first element that matches shows, once it is there; read at one go, as pages are drawn anew."""
        return str(self.once(READ, css, text))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def forget(self) -> None:
        """Clear what pages of this origin remember of answers."""
        self.run("""
          return new Promise((done, failed) => {
            const deleting = indexedDB.deleteDatabase("priorveil");
            deleting.onsuccess = () => done();
            deleting.onerror = () => failed(deleting.error);
          });
        """)

    def requests(self) -> list[dict[str, Any]]:
        """What the page asked of the network since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def size(self, width: int, height: int, scale: float = 1.0, mobile: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": name}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def offline(self, off: bool) -> None:
        conditions = {"offline": off, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page, if asked to."""
        folder = os.environ.get("PRIORVEIL_SCREENSHOTS")
        if folder:
            shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def downloaded(self, name: str) -> Path:
        """A file that the page saved. Chromium first makes an empty one that holds its place."""
        file = self.downloads / name
        wait_until(lambda: file.exists() and file.stat().st_size, f"{name} is saved")
        return file

    def named_nodes(self) -> set[tuple[str, str]]:
        """Role and name of everything in the accessibility tree: what a screen reader is given."""
        tree = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})
        shown = [node for node in tree["nodes"] if not node["ignored"]]
        return {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in shown}

    def faults(self, rules: Sequence[str] = ()) -> list[str]:
        """What axe finds wrong with the page for people who do not see it, or see or move it with difficulty.

        It checks all its rules, or only some.
        """
        if not self.run("return window.axe !== undefined"):
            self.run(axe())
        found = self.driver.execute_async_script(AXE, list(rules))
        return list(found)

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, violations of the content-security policy among them."""
        told = [entry["message"] for entry in self.driver.get_log("browser")]
        # Chromium looks for /favicon.ico once, at some time after the first page that names no icon.
        return [
            message
            for message in told
            if not any(part in message for part in ("/favicon.ico", *self.forgiven))
        ]


def opened(binary: str, chromedriver: str, profile: Path, settings: dict[str, Any] | None = None) -> Browser:
    """A fresh Chromium that keeps a log of its network and its console."""
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in [*FLAGS, f"--user-data-dir={profile / 'profile'}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(profile), **(settings or {})})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    driver.set_script_timeout(PATIENCE)  # selenium gives a script 30 seconds, too little on a busy machine
    return Browser(driver, profile)
