"""The style of all figures: small print, thin grid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from priorveil.errors import needs_extra


@contextmanager
def house_style() -> Iterator[None]:
    """Use the style of the figures inside this block."""
    with needs_extra("plot"):
        import matplotlib
    with matplotlib.rc_context(fname=Path(__file__).with_name("house.mplstyle")):
        yield
