"""Settings and fixtures for all tests; Hypothesis draws the same examples on every machine."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before numpy is loaded: threads of linear algebra wait for each other where cores are shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from priorveil import Histogram, Prior, design
from priorveil.questions.campaign import Campaign, ask, ask_with

if TYPE_CHECKING:
    from postgres_server import PostgresServer

PRIOR = Prior({"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07})

settings.register_profile(
    "priorveil",
    derandomize=True,
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("priorveil")

# The files that take longest, in this order: a worker that begins with them last keeps all others waiting.
SLOWEST = (
    "test_estimates_hold",
    "test_spark",
    "test_design",
    "test_answer_page",
    "test_new_survey",
    "test_score_test_holds",
    "test_site",
    "test_schema_fuzz",
    "test_contrasts",
    "test_variances",
    "test_orders_reader",
    "test_published",
    "test_dashboard",
    "test_figures",
    "test_javascript",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest files first."""
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


# Whoever runs the tests in the background has ctrl-C ignored, and so would the programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    from postgres_server import PostgresServer  # asyncpg is needed by tests of PostgreSQL only

    # Without fsync and in memory it is faster; a restart of the server still loses nothing.
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 8 << 30
    server = PostgresServer(memory if roomy else None, fsync="off")
    yield server
    server.remove()


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    """One cohort, table plan, estimates from the first report on."""
    return ask("What kind of work do you do?", PRIOR, smallest_count=1)


@pytest.fixture(scope="session")
def cohorts() -> Campaign:
    """Every kind of mechanism at once."""
    plans = {
        method: design(PRIOR, 1.0, Histogram(), method=method)
        for method in ("columns", "arc", "unary", "hashing")
    }
    return ask_with("What kind of work do you do?", plans, smallest_count=1)


@pytest.fixture(scope="session")
def survey() -> Campaign:
    """Several questions, of which each person answers some."""
    from sample_surveys import health

    return health(smallest_count=1)


_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "reports.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url(f"test{next(_numbers)}")
