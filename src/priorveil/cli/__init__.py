"""The command line: a thin shell around the library.

Exit status: 0 all is well, 1 the answer is no (a level does not hold), 2 a wrong argument or file, 130 stopped
by ctrl-C. Errors are one line. Ctrl-C is heeded from the first moment: nothing that takes time is loaded before.
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

    Without `arguments` this is the program itself: it answers ctrl-C from here to the interpreter's end.
    """
    try:
        status = _program() if arguments is None else _run(arguments)
    except KeyboardInterrupt:
        status = _stopped()
    sys.exit(status)


def _run(arguments: Sequence[str] | None) -> int:
    from priorveil.cli.program import run

    return run(arguments)


def _program() -> int:
    """Run what the arguments of the process say, with an answer to ctrl-C for each of its times."""
    import signal

    _answer(signal.default_int_handler, _stop_at_once)
    import priorveil.cli.program

    sys.unraisablehook = _unheard
    _answer(_stop_at_once, signal.default_int_handler)  # from here on there may be things to put away
    try:
        return priorveil.cli.program.run()
    except KeyboardInterrupt:
        return _stopped()
    finally:
        _answer(signal.default_int_handler, _stop_at_once)


def _answer(before: Callable[..., object], now: Callable[..., object]) -> None:
    """Answer ctrl-C in another way; one that somebody else has chosen, or that it be ignored, is kept."""
    import signal

    if signal.getsignal(signal.SIGINT) is before:
        signal.signal(signal.SIGINT, now)


def _stop_at_once(number: int, frame: FrameType | None) -> None:
    """For while libraries load, or the interpreter ends: there is nothing to put away."""
    os.write(2, b"\nstopped\n")  # on a line of its own, after the terminal's ^C
    os._exit(_STOPPED)


def _stopped() -> int:
    sys.stderr.write("stopped\n")
    return _STOPPED


def _unheard(lost: sys.UnraisableHookArgs) -> None:
    """A ctrl-C that came where Python cannot raise anything comes again a moment later."""
    import signal
    import threading

    if isinstance(lost.exc_value, KeyboardInterrupt) and sys.platform != "win32":
        place = threading.main_thread().ident
        threading.Timer(0.01, signal.pthread_kill, (place, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)
