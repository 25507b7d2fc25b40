"""Pages in a headless Chromium: their log, network requests, appearance and cost.

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

# A page has been drawn once this resolves; the first painting can be blank.
_DRAWN = """
const done = arguments[arguments.length - 1];
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
"""

# Chromium's own traffic, which no page requests.
_QUIET = (
    "--headless=new",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    # A container lacks the name spaces that the sandbox needs, and has little /dev/shm.
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
        """Open a file; return the processor time in seconds until it was loaded, run and painted.

        Other processes may use the processor, and their time is no fault of the page.
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
        # Chromium may give a page its own process, whose clock starts with it.
        return spent - before if spent >= before else spent

    def run(self, script: str, *arguments: Any) -> Any:
        """Return the result of JavaScript code."""
        return self.driver.execute_script(script, *arguments)

    def settle(self) -> None:
        """Wait until pending changes of the page have been painted."""
        self.driver.execute_async_script(_DRAWN)

    def errors(self) -> list[str]:
        """Return the messages that the page has logged since it was opened, including warnings."""
        self._drain()
        return list(self._errors)

    def requests(self) -> list[str]:
        """Return the addresses requested since the page was opened, except for its own.

        Requests that the page's policy blocked are among the errors instead.
        """
        self._drain()
        return list(self._requests.values())

    def assert_clean(self) -> None:
        """Assert that the page has logged nothing and requested nothing."""
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
        """Set the size of the page in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def _spent(self) -> float:
        """Return the processor time of the page's process in seconds."""
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        (seconds,) = (each["value"] for each in metrics if each["name"] == "ProcessTime")
        return seconds

    def _drain(self) -> None:
        """Fetch the log: the driver returns each entry once."""
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
    """Start Chromium, or skip the test and state what is missing."""
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
