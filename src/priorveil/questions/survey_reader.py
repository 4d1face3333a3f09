"""Survey files: TOML, XLSForm or JSON, by their names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from priorveil.errors import InvalidFile
from priorveil.questions.json_file import read_json
from priorveil.questions.survey import Survey
from priorveil.questions.survey_document import SurveyDocument
from priorveil.questions.survey_rules import survey_of
from priorveil.questions.toml_file import read_toml
from priorveil.questions.xlsform import read_xlsform

READERS = {".toml": read_toml, ".xlsx": read_xlsform, ".json": read_json}
_TEMPLATE = Path(__file__).with_name("template.toml")


def read_survey(path: str | Path) -> Survey:
    """The survey in a file; an error names the line or cell of a mistake."""
    path = Path(path)
    _require_known_kind(path)
    return survey_of(replace(_document(path, path.read_bytes()), folder=path.parent))


def received_survey(name: str, content: bytes) -> Survey:
    """The survey in the content of an uploaded file with this name; it must not refer to files on this machine."""
    _require_known_kind(Path(name))
    return survey_of(_document(Path(name), content))


def _require_known_kind(path: Path) -> None:
    if path.suffix.lower() not in READERS:
        *others, last = READERS
        advice = f"a survey is a {', '.join(others)} or {last} file: save it as one of these"
        raise InvalidFile(path, advice)


def _document(path: Path, content: bytes) -> SurveyDocument:
    return READERS[path.suffix.lower()](path, content)


def template(name: str) -> str:
    """An example survey in TOML with comments; `name` is that of its file."""
    return _TEMPLATE.read_text(encoding="utf-8").format(name=name)
