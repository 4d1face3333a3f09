"""Whether the compiled loops are there, for tests that compare them with the plain ones."""

from __future__ import annotations

import pytest

from priorveil.mechanisms import kernels

needs_numba = pytest.mark.skipif(
    kernels.compile_loop(kernels.scan_table.loop) is None, reason="the compiled loops need numba"
)
