"""The program `priorveil`, also `python -m priorveil`.

Ctrl-C works from the first moment: nothing that takes time is loaded before it does.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own, which takes time to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_STOPPED = 130


def main() -> None:
    """Run the command line and exit with its status.

    Ctrl-C ends the process at once while it loads or exits. In between it raises an exception: there may be work to
    undo. Where it is ignored, as in the background, that stays so.
    """
    import signal

    ignored = signal.getsignal(signal.SIGINT) is not signal.default_int_handler

    def on_interrupt(handler: Callable[[int, FrameType | None], object]) -> None:
        if not ignored:
            signal.signal(signal.SIGINT, handler)

    on_interrupt(_stop_at_once)
    import priorveil.cli

    sys.unraisablehook = _repeat_interrupt
    try:
        on_interrupt(signal.default_int_handler)
        priorveil.cli.main()
    except KeyboardInterrupt:  # before or after the command, which handles its own
        sys.stderr.write("stopped\n")
        sys.exit(_STOPPED)
    finally:
        on_interrupt(_stop_at_once)


def _stop_at_once(number: int, frame: FrameType | None) -> None:
    """End the process while libraries load or the interpreter ends, when there is nothing to undo."""
    os.write(2, b"\nstopped\n")  # on a line of its own, after the terminal's ^C
    os._exit(_STOPPED)


def _repeat_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Send ctrl-C again a moment later if it came where Python cannot raise an exception."""
    import signal
    import threading

    if isinstance(lost.exc_value, KeyboardInterrupt) and sys.platform != "win32":
        thread = threading.main_thread().ident
        threading.Timer(0.1, signal.pthread_kill, (thread, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()
