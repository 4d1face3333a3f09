"""The curator: a service that collects reports and estimates while they arrive. It never sees a true value.

The app is a value: `create_app(open_store(url))`.
"""

from priorveil.errors import needs_extra

with needs_extra("serve"):
    from priorveil.curator.app import create_app
    from priorveil.curator.store import Store, open_store

__all__ = ["Store", "create_app", "open_store"]
