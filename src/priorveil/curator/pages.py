"""The pages for people, served from `static/`: no external resources, strict content-security policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from priorveil.curator.problems import HEADERS, problem

STATIC = Path(__file__).parent / "static"
CLIENT = (
    Path(__file__).parents[3] / "clients" / "js" / "priorveil.js"
)  # in a checkout; a wheel has it in STATIC
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def routes() -> list[BaseRoute]:
    """`/` and `/dashboard` for the curator, `/answer/{id}` for respondents, `/static/` for what they load."""
    if not STATIC.is_dir():
        return []
    pages = {"/": "index.html", "/dashboard": "dashboard.html", "/answer/{id}": "answer.html"}
    shown = [
        Route(path, _page(name), methods=["GET"]) for path, name in pages.items() if (STATIC / name).is_file()
    ]
    return [*shown, Route("/static/{name}", _asset, methods=["GET"])]


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return _sent(STATIC / name)

    return page


async def _asset(request: Request) -> Response:
    """One file, by its plain name."""
    files = {path.name: path for path in (CLIENT, *STATIC.iterdir()) if path.is_file()}
    path = files.get(request.path_params["name"])
    return problem(404, "there is no such file") if path is None else _sent(path)


def _sent(path: Path) -> Response:
    return FileResponse(
        path, headers={**HEADERS, "content-security-policy": POLICY, "cache-control": "no-cache"}
    )
