"""The program `priorveil`, also `python -m priorveil`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status. An error, or ctrl-C, ends it in one line, also while libraries load."""
    try:
        import priorveil.cli

        sys.exit(priorveil.cli.run(arguments))
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
