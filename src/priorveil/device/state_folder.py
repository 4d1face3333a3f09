"""Where the answers of a person are stored. It needs no HTTP library."""

from __future__ import annotations

import os
from pathlib import Path


def default_folder() -> Path:
    """The folder of this user's answers: `PRIORVEIL_STATE`, or a folder for the state of programs."""
    if folder := os.environ.get("PRIORVEIL_STATE"):
        return Path(folder)
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.local/state"
    return Path(base) / "priorveil" / "answers"
