"""The program `priorveil`, also `python -m priorveil`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # not from typing, which takes long to load: before `main` runs, ctrl-C is a traceback
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status. An error, or ctrl-C, ends it in one line, also while libraries load.

    Without `arguments` this is the program of the whole process, which ctrl-C ends at any moment.
    """
    is_program = arguments is None
    try:
        if is_program:
            from priorveil.interrupts import end_where_ignored

            end_where_ignored()
        import priorveil.cli

        status = priorveil.cli.run(arguments)
    except KeyboardInterrupt:
        import signal

        if is_program:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends the process at once
        sys.stderr.write("stopped\n")
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
