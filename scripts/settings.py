"""Write deploy/priorveil.toml, the commented example of all settings, from their definitions."""

from __future__ import annotations

import sys
from pathlib import Path

from priorveil.curator.settings import example

FILE = Path(__file__).resolve().parent.parent / "deploy" / "priorveil.toml"


def main() -> int:
    FILE.write_text(example(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
