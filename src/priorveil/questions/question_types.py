"""The types of rows in XLSForms: which are converted, which are left out and why, and which are mistyped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from priorveil.errors import short_repr

WHOLE_NUMBERS = ("integer", "int")
NUMBER_TYPES = (*WHOLE_NUMBERS, "decimal", "range")
_SELECT = re.compile(
    r"(?:add )?(select[ _]one|select1|select[ _]multiple|select all that apply)(?: from| prompt using)?"
    r"\s+(\S+)(\s+or[ _](?:specify[ _])?other)?",
    re.I,
)
_SELECT_ALONE = re.compile(r"(select one|select1|select multiple|select all that apply)( .*)?")
CARRIED_OVER = ("select_one LIST", "select_multiple LIST", "integer", "decimal", "range")
# Types that XLSForm knows and that are left out, as `type_words` writes them.
_DEVICE_TYPES = (
    *(
        "start",
        "end",
        "today",
        "deviceid",
        "device id",
        "subscriberid",
        "subscriber id",
        "simserial",
        "sim id",
    ),
    *("phonenumber", "phone number", "username", "email", "audit", "imei", "start time", "end time"),
    *("start geopoint", "background geopoint", "background audio"),
)
_PLAIN_TYPES = (
    *("text", "string", "date", "time", "datetime", "date time", "calculate", "calculation", "hidden"),
    *("acknowledge", "trigger", "geopoint", "gps", "location", "geotrace", "geoshape", "image", "photo"),
    *("audio", "video", "file", "barcode", "csv external", "xml external", "percentage"),
)
_OTHER_TYPES = re.compile(
    rf"{'|'.join(_PLAIN_TYPES)}|(rank|osm)( .+)?|select (one|multiple) (from file|external) .+"
)
_SUGGESTED = (
    *("select one", "select multiple", "begin group", "end group", "begin repeat", "end repeat"),
    *(name for name in (*NUMBER_TYPES, *_DEVICE_TYPES, *_PLAIN_TYPES, "note", "rank") if " " not in name),
)
_BRACKET = re.compile(r"(begin|end) (group|repeat|lgroup|looped group|loop|kobomatrix|score|rank)( .*)?")
_REPEATS = ("lgroup", "looped group")  # older names


@dataclass(frozen=True)
class Select:
    """A question with options: one choice or several, the list of its options, and whether people may add their own."""

    kind: Literal["choice", "choices"]
    list_name: str
    or_other: bool


@dataclass(frozen=True)
class Bracket:
    """The first or the last row of a group, a repeat, or another set of rows."""

    begins: bool
    sort: str


def type_words(written: str) -> str:
    """A type in lower case, with spaces instead of `_` and `-`."""
    return " ".join(re.split("[ _-]+", written.lower()))


def read_select(written: str) -> Select | None:
    """The type of a question with options; None if it is another type.

    >>> read_select("select_multiple fruits or_other")
    Select(kind='choices', list_name='fruits', or_other=True)
    """
    match = _SELECT.fullmatch(written)
    if match is None:
        return None
    one = type_words(match[1]) in ("select one", "select1")
    return Select("choice" if one else "choices", match[2], match[3] is not None)


def read_bracket(written: str) -> Bracket | None:
    """The type of a row that begins or ends a set of rows; None if it is another type.

    >>> read_bracket("end_repeat")
    Bracket(begins=False, sort='repeat')
    """
    match = _BRACKET.fullmatch(type_words(written))
    return Bracket(match[1] == "begin", "repeat" if match[2] in _REPEATS else match[2]) if match else None


def why_left_out(written: str) -> str:
    """Why a row of this type is left out; empty if XLSForm does not know the type.

    >>> why_left_out("note")
    'put it into a hint'
    """
    words = type_words(written)
    if words.removeprefix("uri:") in _DEVICE_TYPES:
        return "nothing about the device or the time is ever sent"
    if words == "note":
        return "put it into a hint"
    return "only choices and numbers can be protected" if _OTHER_TYPES.fullmatch(words) else ""


def mistyped_advice(written: str) -> str:
    """What to write instead of a type that XLSForm does not know.

    >>> mistyped_advice("select_on ages")
    "'select_on ages' is not a type of XLSForm: did you mean select_one?"
    """
    words = type_words(written)
    if _SELECT_ALONE.fullmatch(words):
        advice = "write one name of a list of choices after it, such as select_one LIST"
        return f"{short_repr(written)}: {advice}"
    without_list = words.rpartition(" ")[0]
    similar = get_close_matches(words, _SUGGESTED, 1) or get_close_matches(without_list, _SUGGESTED, 1)
    suggestion = similar[0].replace(" ", "_") if similar else ""
    advice = f"did you mean {suggestion}?" if similar else f"choose among {', '.join(CARRIED_OVER)}"
    return f"{short_repr(written)} is not a type of XLSForm: {advice}"
