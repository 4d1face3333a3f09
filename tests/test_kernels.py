"""No verdict and no printed figure depends on the processor: examples and some designs, with other linear algebra.

OpenBLAS chooses its kernel by the processor, and kernels differ in the last digit. `make test-kernels` runs all tests
of numbers with several of them.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import ThreadpoolController

ROOT = Path(__file__).resolve().parent.parent
AGAIN = (
    "tests/test_docs.py::test_examples_run",
    "tests/test_pairwise_ldp.py::test_plans_keep_the_budget_of_every_pair_and_can_be_saved",
    "tests/plans/test_levels.py::test_a_certified_plan_holds_by_its_own_notion",
    "tests/reading/test_prior_check.py",
)


def kernels() -> set[str]:
    """The kernels that this process uses."""
    return {str(library.get("architecture")) for library in ThreadpoolController().info()}


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="the kernels named here are for x86"
)
def test_examples_and_designs_are_the_same_with_another_kernel() -> None:
    other = "Nehalem" if os.environ.get("OPENBLAS_CORETYPE") == "Prescott" else "Prescott"
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**own, "OPENBLAS_CORETYPE": other}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)

    used = run(
        "-c",
        "import sys; sys.path.insert(0, 'tests'); import scipy.linalg, test_kernels as t; print(t.kernels())",
    )
    if used.stdout.strip() == str(kernels()):
        pytest.skip("numpy has linear algebra with one kernel only")
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *AGAIN)
    assert done.returncode == 0, done.stdout[-5_000:] + used.stderr
