"""The bodies of responses with results: the result document, and beside it what only the service knows."""

from __future__ import annotations

from typing import Annotated

from priorveil.curator.messages import ResultOrigin
from priorveil.plans.structure import Document, about, schema_keywords
from priorveil.questions.campaign import PublicState
from priorveil.questions.question import Question
from priorveil.questions.structure import Admission, CampaignTexts, Texts
from priorveil.reading.estimate import EstimateMethod
from priorveil.results.document import Result


class QuestionTexts(Document, frozen=True):
    """A question as people read it, in all languages."""

    name: str
    kind: Annotated[str, schema_keywords(enum=list(Question.by_kind))]
    attributes: Annotated[list[str], about('one, or one for each option of "tick all that apply"')]
    text: Texts
    unit: Texts
    options: Annotated[dict[str, Texts], about("the texts of the options by their codes")]


class SurveyTexts(CampaignTexts, frozen=True):
    """What was asked, by whom and why, and who may answer: what puts the codes of a result into words."""

    languages: Annotated[list[str], about("the languages of the campaign's texts, the default first")]
    contact: str
    questions: list[QuestionTexts]
    admission: Admission
    most_reports: int | None
    opens: str | None
    closes: str | None


class CampaignResults(Document, frozen=True):
    """The results of a campaign from the reports so far, for an analyst from the stored ones."""

    survey: SurveyTexts
    state: PublicState
    methods: Annotated[list[EstimateMethod], about("those that can read the reports")]
    leans_on_prior: Annotated[bool, about("whether the estimate of some query uses the prior by default")]
    published: Annotated[
        bool,
        about(
            "false: not for publication, because two tables that differ by one report reveal that report; true once "
            "the results are published"
        ),
    ]
    stored: Annotated[
        ResultOrigin | None,
        about(
            "the stored results: for an analyst these; for an admin, who gets those of now, what analysts see"
        ),
    ]
    result: Result


class Publication(Document, frozen=True):
    """The results of a closed campaign, made once. They never change.

    The figures are by method unbiased where it exists, for computing. The public is shown those by method mle in place
    of them: these are possible.
    """

    published: Annotated[str, about("when they were published")]
    survey: SurveyTexts
    result: Result
