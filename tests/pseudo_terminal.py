"""Running a command on a pseudo-terminal, as people see it; not on Windows, which has none."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

from patience import PATIENCE


class Terminal:
    """`priorveil arguments...` on a pseudo-terminal, in a process of its own.

    `settings` are environment variables.
    """

    def __init__(self, *arguments: str, **settings: str) -> None:
        self.master, slave = pty.openpty()
        code = "from priorveil.__main__ import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **settings},
        )
        os.close(slave)
        self.output = ""

    def until(self, text: str) -> None:
        """Read until this text appears; `""` reads to the end."""
        end = time.monotonic() + PATIENCE
        while not text or text not in self.output:
            assert select.select([self.master], [], [], max(0, end - time.monotonic()))[0], self.output
            try:
                read = os.read(self.master, 65536)
            except OSError:  # how Linux tells that the other end has gone
                read = b""
            if not read:
                assert not text, self.output
                return
            self.output += read.decode(errors="replace")
