"""Structs of documents: what their first use needs."""

from __future__ import annotations

import subprocess
import sys

# The first use of `Outer` waits for the type of `Inner`, while a second thread uses `Outer`.
FIRST_USE = """
import threading, time
from priorveil.plans.structure import Document, require_structure

def number():
    preparing.set()
    time.sleep(0.3)
    return int

class Inner(Document, frozen=True):
    value: "number()"

class Outer(Document, frozen=True):
    inner: Inner

def check():
    require_structure({"inner": {"value": 1}}, Outer)

preparing, first = threading.Event(), threading.Thread(target=check)
first.start()
preparing.wait()
check()
first.join()
"""


def test_two_threads_may_be_the_first_to_use_a_struct() -> None:
    """As two campaigns that are loaded when a curator starts: msgspec alone would crash the process."""
    assert subprocess.run([sys.executable, "-c", FIRST_USE], check=False).returncode == 0
