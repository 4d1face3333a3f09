"""What the documents of campaigns and questions hold: structs that check them, as those of `plans.structure`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from priorveil.plans.structure import ContentId, Document, Name, Real, Some, about, schema_keywords
from priorveil.questions.texts import LANGUAGE, LONGEST_NAME, LONGEST_TEXT

Admission = Literal["open", "invitation"]
LARGEST_COUNT = 2**53 - 1  # JavaScript would round larger whole numbers

Texts = Annotated[
    dict[str, Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]],
    about("A text in every language of the campaign; an empty one is an empty object."),
]
ShortName = Annotated[Name, Meta(max_length=LONGEST_NAME)]
Language = Annotated[str, Meta(pattern=f"^{LANGUAGE}$")]
Time = Annotated[str, Meta(pattern="^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]


class OptionDocument(Document, frozen=True):
    """An option of a question: its code, and its text."""

    code: ShortName
    text: Texts


class QuestionDocument(Document, frozen=True):
    """A question. The order of its options is part of it."""

    name: ShortName
    kind: Name
    text: Texts
    hint: Texts
    unit: Texts
    options: list[OptionDocument]
    asked_if: Annotated[
        dict[str, Annotated[list[str], Some]],
        about("Earlier questions, with the codes after which this one is asked."),
    ]
    edges: list[Real]


class CampaignTexts(Document, frozen=True):
    """What people read about a campaign, in all its languages."""

    title: Texts
    description: Texts
    asked_by: Texts
    purpose: Texts


class CampaignDocument(CampaignTexts, frozen=True):
    """Questions, and a form for each cohort. Public; `id` is the SHA-256 of everything else, as that of a plan."""

    id: ContentId
    format: Literal["priorveil-campaign"]
    version: Literal[2]
    languages: Annotated[list[Language], Some]
    questions: Annotated[list[QuestionDocument], Some]
    cohorts: Annotated[
        dict[
            Annotated[str, Some, Meta(max_length=LONGEST_TEXT)],
            Annotated[dict[str, Any], schema_keywords(**{"$ref": "#/$defs/FormDocument"})],
        ],
        Some,
    ]
    opens: Time | None
    closes: Time | None
    keep_until: Time | None
    smallest_count: Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
    admission: Admission
    most_reports: Annotated[int, Meta(ge=1, le=LARGEST_COUNT)] | None
    expected_people: Annotated[int, Meta(ge=1, le=LARGEST_COUNT)] | None
    contact: Annotated[str, Meta(max_length=LONGEST_TEXT)]
    limit: Real | None
