"""What a campaign asks, promises and sends: the part of `priorveil inspect` for campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from priorveil.cli import inputs, screen
from priorveil.errors import plural
from priorveil.formatting import level_at_most

if TYPE_CHECKING:
    from collections.abc import Iterator

    from priorveil.plans.form import Part
    from priorveil.questions.campaign import Campaign
    from priorveil.questions.question import Question

_DIGITS = 12  # of the id of a form or a plan, in a table


def inspect_campaign(path: Path, as_json: bool) -> None:
    """Prove a campaign again, and print what it asks, what a submission tells, and what each report is."""
    campaign = inputs.read_campaign(path)
    if as_json:
        screen.print_json(_record(campaign))
    else:
        _print(campaign)


def _sentences(campaign: Campaign) -> list[str]:
    """The most that a whole submission of any cohort tells, in the words of `campaign check`."""
    from priorveil.words.surveys import promise_sentences

    lip, ldp = (max(getattr(each, name) for each in campaign.promise.values()) for name in ("lip", "ldp"))
    reports = max(len(form.slots) for form in campaign.cohorts.values())
    return [*promise_sentences(lip, ldp, reports), *map(str, campaign.warnings)]


def _reports(campaign: Campaign) -> Iterator[tuple[str, Part, float]]:
    """Each report that people may send: its cohort, what it is about, and the share of people who send it."""
    from priorveil.plans.form import SHARE_DENOMINATOR

    for cohort, form in campaign.cohorts.items():
        for slot in form.slots:
            for part, share in zip(slot.parts, slot.shares, strict=True):
                yield cohort, part, share / SHARE_DENOMINATOR


def _record(campaign: Campaign) -> dict[str, Any]:
    """Return everything for a program; the texts are those of the file."""
    whole = campaign.document()
    texts = {name: whole[name] for name in whole if name not in ("format", "version", "cohorts")}
    cohorts = {
        name: {
            "id": form.id,
            "lip": campaign.promise[name].lip,
            "ldp": campaign.promise[name].ldp,
            "bytes": 8 * form.width,
        }
        for name, form in campaign.cohorts.items()
    }
    reports = [
        {
            "cohort": cohort,
            "attributes": list(part.attributes),
            "drawn": share,
            "asked": _query_title(part),
            "plan": part.plan.id,
        }
        for cohort, part, share in _reports(campaign)
    ]
    return {
        "id": campaign.id,
        **texts,
        "cohorts": cohorts,
        "promise": _sentences(campaign),
        "reports": reports,
    }


def _print(campaign: Campaign) -> None:
    from priorveil.catalogue import say

    console = screen.open_console()
    console.print("This campaign was proven again.", style="bold")
    screen.print_table(console, ("", ""), _facts(campaign))
    console.print(f"\n{say('promiseHeading')}", style="bold")
    screen.print_sentences(console, _sentences(campaign))
    console.print("\nWhat is asked", style="bold")
    rows = [
        (
            question.name,
            campaign.text(question.text),
            question.describe_answers(campaign.domains, campaign.text),
            _condition(question),
        )
        for question in campaign.questions
    ]
    screen.print_table(console, ("question", "text", "answers", "asked if"), rows)
    console.print("\nWhat is sent", style="bold")
    heads = ("cohort", "LIP", "LDP", "bytes", "id of its form")
    cohorts = [
        (name, level_at_most(levels.lip), level_at_most(levels.ldp), str(8 * form.width), form.id[:_DIGITS])
        for (name, form), levels in zip(campaign.cohorts.items(), campaign.promise.values(), strict=True)
    ]
    screen.print_table(console, heads, cohorts, "lrrr")
    console.print()
    reports = [
        (
            cohort,
            " x ".join(part.attributes),
            f"{100 * share:.0f} %",
            _query_title(part),
            part.plan.id[:_DIGITS],
        )
        for cohort, part, share in _reports(campaign)
    ]
    screen.print_table(
        console, ("cohort", "report about", "drawn", "asked", "id of its plan"), reports, "llr"
    )
    console.print("drawn: the share of people for whom the report is drawn. --json has all ids in full.")


def _facts(campaign: Campaign) -> list[tuple[str, str]]:
    """Name and text of what is said about the campaign as a whole; what was not given is left out."""
    from priorveil.questions.campaign import TEXTS, stamp

    invitation = "one answer for each invitation" if campaign.admission == "invitation" else "everybody"
    facts = {
        **{name.replace("_", " "): campaign.text(getattr(campaign, name)) for name in TEXTS},
        "contact": campaign.contact,
        "languages": ", ".join(campaign.languages),
        "opens": stamp(campaign.opens),
        "closes": stamp(campaign.closes),
        "deleted": stamp(campaign.keep_until),
        "open to": invitation,
        "most reports": campaign.most_reports and f"{campaign.most_reports:,}",
        "expected people": campaign.expected_people and f"{campaign.expected_people:,}",
        "shown from": plural(campaign.smallest_count, "report"),
        "id": campaign.id,
    }
    return [(name, text) for name, text in facts.items() if text]


def _condition(question: Question) -> str:
    return " and ".join(f"{name} = {' or '.join(codes)}" for name, codes in question.asked_if.items())


def _query_title(part: Part) -> str:
    return f"{part.plan.query.title(part.plan.reference)} of {part.plan.domain.size_text()}"
