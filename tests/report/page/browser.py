"""A real Chromium without a window, for tests of pages; why there is none, where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_AXE = Path(__file__).parents[3] / "build" / "node_modules" / "axe-core" / "axe.min.js"


def why_not() -> str:
    """What is missing; empty if a browser can be started."""
    if not any(map(shutil.which, _BROWSERS)) or shutil.which("chromedriver") is None:
        return "no Chromium with its driver; `make test-browser` installs them"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "no selenium; `make test-browser` installs it"
    return ""


def axe() -> str:
    """The script of axe-core; a test without it is skipped."""
    if not _AXE.exists():
        pytest.skip("no axe-core; `make test-browser` fetches it from npm")
    return _AXE.read_text(encoding="utf-8")


@contextmanager
def chromium(downloads: Path) -> Iterator[Any]:
    """A browser that saves into a folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = next(path for name in _BROWSERS if (path := shutil.which(name)))
    for word in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(word)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    several = {"profile.default_content_setting_values.automatic_downloads": 1}  # a script clicks faster than people
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads), **several})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(600)
    driver.command_executor.client_config.timeout = 600
    try:
        yield driver
    finally:
        driver.quit()


def wait_for(driver: Any, script: str, seconds: float = 300) -> Any:
    """What a script returns as soon as it is true, else None; the browser waits between two looks, not the test.

    The page forbids to evaluate text, so that the looks come from outside.
    """
    from selenium.common.exceptions import JavascriptException

    for _ in range(round(seconds / 0.05)):
        try:
            if found := driver.execute_script(script):
                return found
            driver.execute_async_script("setTimeout(arguments[0], 50)")
        except JavascriptException:
            continue  # the page was left for another one
    return None
