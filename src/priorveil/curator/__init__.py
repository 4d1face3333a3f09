"""The curator: a service that collects reports and estimates while they come in. It never sees a true value.

The app is a value: `create_app(open_store(url))`.
"""

try:
    from priorveil.curator.app import create_app
    from priorveil.curator.store import Store, open_store
except ModuleNotFoundError as missing:  # pragma: no cover
    from priorveil.errors import MissingExtra

    raise MissingExtra((missing.name or "starlette").partition(".")[0], "serve") from missing

__all__ = ["Store", "create_app", "open_store"]
