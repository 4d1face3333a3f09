"""The program `priorveil`, also `python -m priorveil`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its status; ctrl-C ends it in one line, also while libraries load."""
    try:
        import priorveil.cli

        priorveil.cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
