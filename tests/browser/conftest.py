"""A real curator and a real Chromium. Where either cannot be had, the tests are skipped and say why.

Set `PRIORVEIL_SCREENSHOTS` to a folder to keep pictures of every page.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def stage() -> Any:
    return pytest.importorskip("browser.stage", reason="browser tests need the curator and selenium")


@pytest.fixture(scope="session")
def curator(stage: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with stage.serving(tmp_path_factory.mktemp("curator") / "store.db") as running:
        yield running


@pytest.fixture(scope="session")
def programs() -> tuple[str, str]:
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    chromedriver = shutil.which("chromedriver")
    if binary is None or chromedriver is None:
        pytest.skip("Chromium and ChromeDriver are not installed: run scripts/system-packages")
    return binary, chromedriver


@pytest.fixture(scope="session")
def chromium(
    stage: Any, programs: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    browser = stage.opened(*programs, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.driver.quit()


@pytest.fixture
def forgetful(stage: Any, programs: tuple[str, str], tmp_path: Path) -> Iterator[Any]:
    """A Chromium whose owner lets no page store anything."""
    blocked = {"profile.default_content_setting_values.cookies": 2}
    browser = stage.opened(*programs, tmp_path, blocked)
    yield browser
    browser.driver.quit()


@pytest.fixture
def browser(chromium: Any, curator: Any) -> Iterator[Any]:
    """Chromium as a stranger: nothing stored, light, the size of a desk. No page may complain."""
    chromium.size(1100, 800)
    chromium.scheme("light")
    chromium.forgiven = []
    chromium.open(f"{curator.url}/static/icon.svg")  # the smallest page of this origin
    chromium.run("localStorage.clear(); sessionStorage.clear();")
    chromium.forget()
    chromium.requests()
    chromium.complaints()
    yield chromium
    assert chromium.complaints() == []
