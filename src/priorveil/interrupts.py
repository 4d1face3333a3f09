"""Let ctrl-C end the program `priorveil` in one line, also where Python ignores exceptions.

Python prints a traceback and goes on if ctrl-C comes in a callback, a finalizer, or at the end of the interpreter. It
has callbacks of its own, several for every module that is loaded.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = (
    False  # typing's own takes long to load: until the program has this module, ctrl-C is as usual
)
if TYPE_CHECKING:
    from typing import NoReturn

STATUS = 130  # of a command that ctrl-C has ended
_SHOW_CURSOR = b"\x1b[?25h"


class Interrupted(BaseException):
    """Ctrl-C under a name that designs do not catch: they take KeyboardInterrupt as the wish for a quick answer."""


def end_where_ignored() -> None:
    """From now on let ctrl-C end the process also where Python would ignore it."""
    others = sys.unraisablehook

    def hook(ignored: sys.UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt | Interrupted):
            _end_process()
        others(ignored)

    sys.unraisablehook = hook


def _end_process() -> NoReturn:
    """End at once. No file is left half-written: a draft has another name until it is complete."""
    if "rich" in sys.modules and os.isatty(2):  # a progress bar hides the cursor
        os.write(2, _SHOW_CURSOR)
    os.write(2, b"stopped\n")
    os._exit(STATUS)
