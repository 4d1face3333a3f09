"""Campaigns as documents: one text, one id, nothing believed that is not proven."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from conftest import PRIOR
from forged_documents import identified
from priorveil import Distribution, Histogram, Prior, design
from priorveil.errors import InvalidInput, PlanError, UnknownVersion
from priorveil.plans import Plan
from priorveil.questions.campaign import Campaign, ask, ask_with, read_time, stamp
from refusals import raises


def changed(campaign: Campaign, **fields: object) -> str:
    """The text of a campaign with other fields, and the id of its content."""
    document = {k: v for k, v in (campaign.document() | fields).items() if v is not ...}
    return json.dumps(document if "id" in fields else identified(document))


def plan_of(campaign: Campaign) -> Plan:
    """The plan of a campaign with one cohort and one question."""
    (part,) = campaign.form_for(None).parts
    return part.plan


def test_a_campaign_reads_back(cohorts: Campaign) -> None:
    again = Campaign.from_json(cohorts.to_json())
    assert again.id == cohorts.id and again.to_json() == cohorts.to_json()
    assert again == cohorts and hash(again) == hash(cohorts) and again != cohorts.id
    assert list(again.cohorts) == ["columns", "arc", "unary", "hashing"]
    assert "1 question, 4 cohorts" in repr(again)


def test_the_default_plan_can_correct_a_wrong_prior() -> None:
    assert not ask("Work?", PRIOR).leans_on_prior
    two = ask("Work?", {"north": PRIOR, "south": Prior([0.25] * 4, labels=PRIOR.labels)})
    assert list(two.cohorts) == ["north", "south"] and not two.leans_on_prior
    assert ask("Work?", PRIOR, query=Histogram()).id != ask("Work?", PRIOR).id


def test_a_campaign_leans_on_the_prior_as_its_queries_do() -> None:
    leaning, free = (design(PRIOR, 1.0, query, method="unary") for query in (Histogram(), Distribution()))
    assert leaning.identifiable and ask_with("Work?", {"a": leaning}).leans_on_prior
    assert not ask_with("Work?", {"a": free}).leans_on_prior
    assert ask_with("Work?", {"a": leaning, "b": free}).leans_on_prior


def test_any_change_makes_another_campaign(campaign: Campaign) -> None:
    ids = {campaign.id}
    for fields in (
        {"title": {"en": "Other?"}},
        {"contact": "x"},
        {"asked_by": {"en": "x"}},
        {"purpose": {"en": "x"}},
        {"smallest_count": 7},
        {"closes": "2099-01-01T00:00:00Z"},
        {"closes": "2099-01-01T00:00:00Z", "keep_until": "2099-02-01T00:00:00Z"},
        {"admission": "invitation"},
        {"most_reports": 7},
        {"expected_people": 400},
    ):
        ids.add(Campaign.from_json(changed(campaign, **fields)).id)
    assert len(ids) == 11


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"format": "other"}, "file"),
        ({"title": {"en": ""}}, "title"),
        ({"title": {"en": "x" * 5000}}, "title"),
        ({"title": {"en": "\ud800"}}, "file"),
        ({"title": "Work"}, "title"),
        ({"title": {"de": "Arbeit"}}, "campaign"),
        ({"languages": []}, "languages"),
        ({"languages": ["en", "de"]}, "campaign"),
        ({"questions": []}, "questions"),
        ({"questions": ...}, "questions"),
        ({"limit": 5}, "limit"),
        ({"limit": "0.0"}, "campaign"),
        ({"cohorts": {}}, "cohorts"),
        ({"cohorts": []}, "cohorts"),
        ({"smallest_count": -1}, "smallest_count"),
        ({"smallest_count": True}, "smallest_count"),
        ({"opens": "yesterday"}, "opens"),
        ({"opens": "2026-01-01T00:00:00"}, "opens"),
        ({"opens": "2026-01-01T00:00:00+01:00"}, "opens"),
        ({"opens": "2027-01-01T00:00:00Z", "closes": "2026-01-01T00:00:00Z"}, "campaign"),
        ({"keep_until": "2027-01-01T00:00:00Z"}, "campaign"),
        ({"closes": "2027-01-01T00:00:00Z", "keep_until": "2027-01-01T00:00:00Z"}, "campaign"),
        ({"closes": "2027-01-01T00:00:00Z", "keep_until": 2028}, "keep_until"),
        ({"admission": "friends"}, "admission"),
        ({"admission": None}, "admission"),
        ({"admission": []}, "admission"),
        ({"most_reports": 0}, "most_reports"),
        ({"most_reports": 1.0}, "most_reports"),
        ({"most_reports": True}, "most_reports"),
        ({"most_reports": 2**53}, "most_reports"),
        ({"most_reports": ...}, "most_reports"),
        ({"expected_people": 0}, "expected_people"),
        ({"expected_people": 400.0}, "expected_people"),
        ({"id": "0" * 64}, "id"),
        ({"extra": 1}, "extra"),
        ({"extra": None}, "extra"),
        ({"contact": ...}, "contact"),
        ({"asked_by": ...}, "asked_by"),
        ({"purpose": 5}, "purpose"),
        ({"asked_by": "x" * 5000}, "asked_by"),
    ],
)
def test_a_wrong_field_is_named(campaign: Campaign, fields: dict[str, object], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        Campaign.from_json(changed(campaign, **fields))
    assert caught.value.field == field


@pytest.mark.parametrize("argument", ["admission", "most_reports"])
def test_half_a_surrogate_pair_is_refused(argument: str) -> None:
    with raises(InvalidInput, argument=argument):
        ask("Work?", PRIOR, **{argument: "\ud800"})


def test_newer_versions_and_nonsense_are_refused(campaign: Campaign) -> None:
    with pytest.raises(UnknownVersion):
        Campaign.from_json(changed(campaign, version=3))
    for text in ("", "[]", "{", "\x00", "[" * 100_000, b"\xff"):
        with pytest.raises(PlanError):
            Campaign.from_json(text)


def test_states_follow_the_clock() -> None:
    opens, closes = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    campaign = ask("Work?", PRIOR, opens=opens, closes=closes)
    asked = [datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC), opens, datetime(2026, 1, 31, tzinfo=UTC), closes]
    assert [campaign.state(now) for now in asked] == ["not yet open", "open", "open", "closed"]
    assert read_time("now", None) is None


def test_times_read_back() -> None:
    opens = datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)
    assert stamp(opens) == "2026-01-31T12:00:05Z"
    campaign = ask("Work?", PRIOR, opens=opens)
    assert Campaign.from_json(campaign.to_json()).opens == opens


@pytest.mark.parametrize("field", ["title", "questions", "contact", "version", "opens", "cohorts"])
def test_what_is_nested_too_deeply_is_refused(campaign: Campaign, field: str) -> None:
    """Also where it can just be read, but neither shown nor written again."""
    texts = {name: changed(campaign, **{name: "HERE"}) for name in campaign.document() if name != "cohorts"}
    texts["cohorts"] = changed(campaign, cohorts={"a": "HERE"})
    for depth in range(100, 1100, 7):
        with pytest.raises(PlanError):
            Campaign.from_json(texts[field].replace('"HERE"', "[" * depth + "]" * depth))
