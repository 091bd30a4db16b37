"""Pages in headless Chromium: what they ask for, what they complain about, how wide they are."""

from __future__ import annotations

import json
import shutil

NO_BROWSER = "needs chromium and chromedriver (Debian: chromium, chromium-driver)"

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

HOSTILE = [
    "<script>window.__pwned = 1</script>",
    "</script><img src=x onerror=window.__pwned=1>",
    '"><svg onload=window.__pwned=1>',
    "' onmouseover='window.__pwned=1",
    "</style><iframe src='javascript:parent.__pwned=1'>",
    "{{ 7 * 7 }}{% raw %}${alert(1)}`",
    "[bold]$x^2$[/bold] </bdi></td></table>",
    "=cmd|' /C calc'!A0",
    "\u202eright to left\u202e",
    "<!-- \U0001f984 --> &lt;b&gt; \u2028",
    "W" * 10_000,
]
"""Names as groups, features, values and labels may have them."""


def find_browser() -> tuple[str, str] | None:
    """Where the browser and its driver are; selenium would look for them on the network."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def start(folder):
    """A browser with a new profile in an empty folder."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    browser, driver = find_browser()
    options = ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return Chrome(options=options, service=Service(driver))


def visit(driver, path, width=1000, scheme="light", medium="screen"):
    """Open a file at a width; logs begin anew."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": medium, "features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    driver.get("about:blank")
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    driver.get(path.as_uri())


def complaints(driver):
    """What the console says since the page was opened."""
    return [entry["message"] for entry in driver.get_log("browser")]


def requests(driver):
    """Addresses that were asked for since the page was opened."""
    events = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
