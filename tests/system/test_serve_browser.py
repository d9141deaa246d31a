"""The status page in a real browser, over a server for a thousand partitions that are not there."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

from failover.replication.switch import Target
from failover.serve.board import Board
from failover.serve.history import History
from failover.serve.server import application
from failover.serve.status_page import StatusPage
from tests.system.serving import in_a_thread
from tests.system.test_browser import LOW_CONTRAST, browser, pytestmark
from tests.unit.serve.scenes import LOCAL, NOW, board, checkpoints, flow, partition

__all__ = ["browser", "pytestmark"]

EVIL = '<img src=x onerror="document.title=1">'


class Clock:
    """Gives a time that the test moves on."""

    now = NOW - 3600

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Board]]:
    """Answers from a thread of its own; gives the URL and the board."""
    parts = [partition("orders", number, lag=float(number % 50)) for number in range(1000)]
    parts[7] = partition(EVIL, 7, lag=9000.0, reason=f"the target refuses it: {EVIL}", open=False)
    exact = {f"group-{number}": int(NOW * 1000) - 1000 for number in range(200)} | {EVIL: 0}
    made = board(tmp_path_factory.mktemp("board"), flow(*parts, checkpoints=checkpoints(exact, ready=200)))
    clock = Clock()
    history = History(made, clock)
    for _ in range(360):
        history.look()
        clock.now += 10
    page = StatusPage(history)
    app = application(LOCAL, metrics=lambda: "", health=lambda: made.health, routes=page.routes())
    app.on_shutdown.append(page.end)
    with in_a_thread(app) as url:
        yield url, made


def opened(browser: Chrome, url: str, scheme: str = "light", width: int = 1280) -> Chrome:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
    browser.get(f"{url}/ui")
    WebDriverWait(browser, 10).until(lambda page: texts(page, "h2"))
    return browser


def texts(browser: Chrome, selector: str) -> list[str]:
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
    )
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_it_shows_what_is_wrong_first_and_can_be_read(
    served: tuple[str, Board], browser: Chrome, scheme: str, width: int, tmp_path: Path
) -> None:
    page = opened(browser, served[0], scheme, width)
    assert "healthy" in texts(page, "h1")[0]
    running = ["Source RUNNING", "Checkpoint RUNNING", "Heartbeat RUNNING"]
    assert texts(page, ".state")[1:] == ["1 partition stands still", *running]
    assert [text for text in texts(page, ".numbers > div") if "stand still" in text] == ["1stand still"]
    assert [text for text in texts(page, ".numbers > div") if "groups ready" in text] == ["200of 201 groups ready"]
    # names from outside are shown as they are, and are no markup
    assert texts(page, "caption + tr td:first-child, thead + tr td:first-child") == [f"{EVIL}-7", f"{EVIL}-7", EVIL]
    assert page.title == "failover: replication"
    assert texts(page, "img") == []
    curves: list[str] = page.execute_script(
        "return [...document.querySelectorAll('path')].map((each) => each.getAttribute('d'))"
    )
    assert [curve.count("L") > 300 for curve in curves] == [True, True, True]
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert page.execute_script(LOW_CONTRAST) == []
    picture = tmp_path / "status.png"
    assert page.save_screenshot(str(picture))
    assert picture.stat().st_size > 20_000
    assert page.get_log("browser") == []


def test_it_says_what_somebody_stopped_and_how_it_goes_on(served: tuple[str, Board], browser: Chrome) -> None:
    url, made = served
    name = "A->B.MirrorSourceConnector"
    switch = made.connectors[name].switch
    page = opened(browser, url, "dark", 400)
    switch.turn(Target.STOPPED)
    switch.obeyed(Target.STOPPED)
    try:
        WebDriverWait(page, 10).until(lambda page: "Source STOPPED" in texts(page, ".state"))
        assert "1 connector paused or stopped" in texts(page, ".state")
        [said] = texts(page, "p.warn")
        assert said == (
            "MirrorSourceConnector is stopped: nothing is copied until somebody resumes it:"
            f" curl -X PUT '{url}/connectors/{urllib.parse.quote(name, safe='')}/resume'"
        )
        assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        assert page.execute_script(LOW_CONTRAST) == []
    finally:
        switch.turn(Target.RUNNING)
        switch.obeyed(Target.RUNNING)
    WebDriverWait(page, 10).until(lambda page: not texts(page, "p.warn"))
    assert page.get_log("browser") == []


def test_it_follows_what_happens(served: tuple[str, Board], browser: Chrome) -> None:
    url, made = served
    page = opened(browser, url)
    entry: Any = made.flows["A->B"]
    before = entry.open
    entry.failed(ValueError(f"the target is gone {EVIL}"), again=True)
    try:
        WebDriverWait(page, 10).until(lambda page: "unhealthy" in texts(page, "h1")[0])
        assert texts(page, "p.bad") == [f"the target is gone {EVIL}"]
        assert "Source RESTARTING" in texts(page, ".state")
    finally:
        entry.opened(before)
    WebDriverWait(page, 10).until(lambda page: "Source RUNNING" in texts(page, ".state"))
    assert page.get_log("browser") == []
