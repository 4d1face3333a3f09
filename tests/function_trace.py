"""The functions of the package that run while something is done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import priorveil as pv

SOURCE = Path(pv.__file__).parent
STEPS = ("tables", "reading", "results", "words", "cli")
# What a campaign has and a plan used alone has not.
WORDS_OF_QUESTIONS = {"results/form_estimates.py:_texts", "results/form_estimates.py:CohortForms.title"}


def functions_since(first: str, action: Callable[[], Any]) -> set[str]:
    """The functions of these packages that run from the first call of one of them on."""
    action()  # so that nothing is computed once and kept
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            name = f"{path.relative_to(SOURCE).as_posix()}:{frame.f_code.co_qualname}"
            if seen or name == first:
                seen.append(name)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    assert seen, first
    return {name for name in seen if name.startswith(STEPS) and "<locals>" not in name}
