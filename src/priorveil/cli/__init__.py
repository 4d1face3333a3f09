"""The command line: a thin shell around the library.

Exit status: 0 success, 1 the answer is no (a level does not hold), 2 a wrong argument or file, 130 stopped by ctrl-C.
Errors are one line. Ctrl-C works from the first moment: nothing that takes time is loaded before it does.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own, which takes time to load
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

_STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status; an error is one line, never a traceback.

    Without `arguments` this is the program itself: it handles ctrl-C from here to the end of the interpreter.
    """
    try:
        status = _run_process() if arguments is None else _run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        status = _STOPPED
    sys.exit(status)


def _run(arguments: Sequence[str]) -> int:
    from priorveil.cli.program import run

    return run(arguments)


def _run_process() -> int:
    """Run the arguments of the process; ctrl-C ends it at once before and after, and cleanly meanwhile."""
    import signal

    _handle_interrupt(signal.default_int_handler, _stop_at_once)
    import priorveil.cli.program

    sys.unraisablehook = _repeat_interrupt
    _handle_interrupt(_stop_at_once, signal.default_int_handler)  # from here on there may be work to undo
    try:
        return priorveil.cli.program.run()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return _STOPPED
    finally:
        _handle_interrupt(signal.default_int_handler, _stop_at_once)


def _handle_interrupt(before: Callable[..., object], now: Callable[..., object]) -> None:
    """Replace our handler of ctrl-C by another; a handler that somebody else has set is kept."""
    import signal

    if signal.getsignal(signal.SIGINT) is before:
        signal.signal(signal.SIGINT, now)


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
