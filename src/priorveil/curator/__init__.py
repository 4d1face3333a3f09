"""The curator: collects reports and estimates while they come in. No code path takes a true value."""

from __future__ import annotations

from priorveil.curator.app import create_app
from priorveil.curator.store import Store, open_store

__all__ = ["Store", "create_app", "open_store"]
