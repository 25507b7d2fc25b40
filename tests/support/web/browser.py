"""Pages in a headless Chromium: what they log, ask of a network, show, and what they cost.

The fixture `browser` of `conftest` hands out one `Browser` for the session, or skips.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Where a page is drawn once this resolves: what was painted first can be a blank.
_DRAWN = """
const done = arguments[arguments.length - 1];
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
"""

# Chromium's own traffic, which no page asks for.
_QUIET = (
    "--headless=new",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    # A container has neither the name spaces that the sandbox needs nor much /dev/shm.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)


class Browser:
    """A browser with one page open.

    Attributes
    ----------
    driver
        Selenium's driver: for finding elements, clicking and typing.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        driver.execute_cdp_cmd("Performance.enable", {})
        self._errors: list[str] = []
        self._requests: dict[str, str] = {}

    def open(self, path: Path) -> float:
        """Open a file; return the processor's seconds until it was loaded, run and painted.

        Others may be using the processor, and what they take is no fault of the page.
        """
        self._errors.clear()
        self._requests.clear()
        self.driver.get("about:blank")
        self._drain()
        self._errors.clear()
        self._requests.clear()
        before = self._spent()
        self.driver.get(path.resolve().as_uri())
        self.driver.execute_async_script(_DRAWN)
        spent = self._spent()
        # Chromium may give a page a process of its own, whose clock begins with it.
        return spent - before if spent >= before else spent

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a piece of JavaScript returns."""
        return self.driver.execute_script(script, *arguments)

    def settle(self) -> None:
        """Wait until what was asked of the page has been painted."""
        self.driver.execute_async_script(_DRAWN)

    def errors(self) -> list[str]:
        """Return what the page has logged since it was opened, warnings included."""
        self._drain()
        return list(self._errors)

    def requests(self) -> list[str]:
        """Return the addresses that went out since the page was opened, but for its own.

        What the page's policy blocked did not go out; it is among the errors.
        """
        self._drain()
        return list(self._requests.values())

    def assert_clean(self) -> None:
        """Assert that the page has logged nothing and asked for nothing."""
        assert self.errors() == []
        assert self.requests() == []

    @contextmanager
    def scheme(self, name: str) -> Iterator[None]:
        """Make the page believe that the user prefers ``light`` or ``dark``."""
        self._prefer(name)
        try:
            yield
        finally:
            self._prefer("")

    def _prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width: int, height: int) -> None:
        """Give the page that many CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def _spent(self) -> float:
        """Return the processor's seconds that the page's process has taken."""
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        (seconds,) = (each["value"] for each in metrics if each["name"] == "ProcessTime")
        return seconds

    def _drain(self) -> None:
        """Take what was logged: the driver hands out each entry once."""
        self._errors += [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            event = message["params"]
            if message["method"] == "Network.requestWillBeSent":
                url = event["request"]["url"]
                is_page = event.get("type") == "Document" and url.startswith("file:")
                if not is_page and not url.startswith(("data:", "about:")):
                    self._requests[event["requestId"]] = url
            elif event.get("blockedReason") == "csp":
                self._requests.pop(event["requestId"], None)


def start_browser() -> Browser:
    """Start Chromium, or skip the test that asks for it and say what is missing."""
    selenium = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed: pip install selenium"
    )
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        missing = "Chromium" if binary is None else "chromedriver"
        pytest.skip(f"{missing} is not installed: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = binary
    for argument in _QUIET:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Browser(
        selenium.Chrome(options=options, service=selenium.ChromeService(executable_path=driver))
    )
    browser.resize(1280, 800)
    return browser
