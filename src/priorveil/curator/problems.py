"""Answers of the service: JSON, and problems of a whole request as RFC 9457 documents."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from priorveil.curator.store import Damaged, StoreFull, Unavailable
from priorveil.curator.uploads import BadBody
from priorveil.curator.writer import Busy, Stopped
from priorveil.errors import PriorveilError

_log = logging.getLogger(__name__)

PROBLEM = "application/problem+json"
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_WAIT = "1"  # seconds after which a sender should try again


class Refused(PriorveilError):
    """A request that is answered with a problem."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})


def json_answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; numbers that JSON cannot hold are null."""
    return Response(msgspec.json.encode(content), status, {**HEADERS, **(headers or {})}, "application/json")


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A problem document."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Response(msgspec.json.encode(content), status, {**HEADERS, **(headers or {})}, PROBLEM)


def as_problem(error: BaseException) -> Response:
    """The answer to a request that failed in a way we know."""
    if isinstance(error, Refused):
        return problem(error.status, str(error), error.headers)
    if isinstance(error, BadBody):
        return problem(error.status, str(error))
    if isinstance(error, Busy):
        return problem(429, str(error), {"retry-after": _WAIT})
    if isinstance(error, StoreFull):
        return problem(507, str(error), {"retry-after": "60"})
    if isinstance(error, Unavailable | Stopped):
        return problem(503, "reports cannot be stored for now", {"retry-after": _WAIT})
    if isinstance(error, Damaged):
        return problem(500, str(error))
    _log.error("%s: %s", type(error).__name__, error)
    return problem(500, "something went wrong here; it was noted")
