"""Survey files: TOML or XLSForm, by their names."""

from __future__ import annotations

from pathlib import Path

from priorveil.errors import InvalidFile
from priorveil.surveys.contents import survey_of
from priorveil.surveys.survey import Survey
from priorveil.surveys.toml_file import read_toml
from priorveil.surveys.xlsform import read_xlsform

READERS = {".toml": read_toml, ".xlsx": read_xlsform}
_TEMPLATE = Path(__file__).with_name("template.toml")


def read_survey(path: str | Path) -> Survey:
    """The survey in a TOML file or an XLSForm; what is wrong is an error with its line or cell."""
    reader = READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise InvalidFile(path, f"a survey is a {' or '.join(READERS)} file: save it as one of these")
    return survey_of(reader(Path(path)))


def template(name: str) -> str:
    """A survey in TOML with remarks, to be changed; `name` is that of its file."""
    return _TEMPLATE.read_text(encoding="utf-8").format(name=name)
