"""The app on uvicorn: quiet about people, strict with slow or endless headers, patient at shutdown."""

from __future__ import annotations

import sys
from typing import Any

from starlette.types import ASGIApp

try:
    import uvicorn

    from priorveil.curator.express import Express
except ModuleNotFoundError as missing:  # pragma: no cover
    from priorveil.errors import MissingExtra

    raise MissingExtra((missing.name or "uvicorn").partition(".")[0], "serve") from missing

_SHUTDOWN_SECONDS = 30
_SWITCH_SECONDS = 0.0005  # the writer's thread waits no longer than this for the interpreter


def configuration(app: ASGIApp, host: str, port: int, **more: Any) -> uvicorn.Config:
    """How uvicorn runs the app: no access log, no addresses, no server name."""
    settings: dict[str, Any] = {
        "http": Express,
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "log_level": "warning",
        "proxy_headers": False,
        "server_header": False,
        "date_header": True,
        "limit_concurrency": 4096,
        "backlog": 2048,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": _SHUTDOWN_SECONDS,
    }
    return uvicorn.Config(app, host=host, port=port, **{**settings, **more})


def run(app: ASGIApp, host: str, port: int, **more: Any) -> None:
    """Serve until a signal asks to stop; then finish what was accepted."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    uvicorn.Server(configuration(app, host, port, **more)).run()
