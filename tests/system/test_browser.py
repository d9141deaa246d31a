"""The reports in a real browser: they read, sort, search and print, say nothing on the console and load nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from failover.model.execution import Outcome
from failover.report.html import execution_html, plan_html
from tests.unit.report import plans
from tests.unit.report.executions import against_mm2, executed, verified
from tests.unit.report.test_html_page import NASTY, nasty_execution, nasty_plan

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs Chromium and its driver (Debian: apt-get install chromium chromium-driver)",
)
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LOW_CONTRAST = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => {
  const part = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = channels(getComputedStyle(at).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
  return channels(getComputedStyle(document.documentElement).getPropertyValue("--none") || "255 255 255");
};
const found = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.getClientRects().length || ["SCRIPT", "STYLE", "OPTION"].includes(element.tagName)) continue;
  const style = getComputedStyle(element);
  const [a, b] = [light(channels(element.closest("svg") ? style.fill : style.color)), light(behind(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const said = `${element.tagName}.${element.className}: ${ratio.toFixed(2)} ${element.textContent.slice(0, 30)}`;
  if (ratio < 4.5) found.push(said);
}
return found;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    options = ChromeOptions()
    assert CHROMIUM is not None
    options.binary_location = CHROMIUM
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # With the driver's path given, selenium looks for nothing and asks nobody.
    driver = Chrome(options=options, service=ChromeService(executable_path=DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def opened(browser: Chrome, tmp_path: Path) -> Iterator[Callable[[str], Chrome]]:
    """Opens a page from a file; afterwards nothing may have been said on the console, and nothing loaded."""

    def run(document: str, width: int = 1200, *, scheme: str = "light", media: str = "screen") -> Chrome:
        path = tmp_path / "report.html"
        path.write_text(document, encoding="utf-8")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        browser.get(path.as_uri())
        return browser

    yield run
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []


def rows(browser: Chrome, table: str) -> list[list[str]]:
    """The rows a table shows, as texts."""
    script = """
        return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
          .map((row) => [...row.cells].map((cell) => cell.textContent))"""
    found: list[list[str]] = browser.execute_script(script, table)
    return found


def head(browser: Chrome, table: str, name: str) -> WebElement:
    return browser.find_element(By.XPATH, f"//section[@id='{table}']//thead//th[.='{name}']")


def column(browser: Chrome, table: str, name: str) -> list[str]:
    """What a table shows in one column."""
    names = browser.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} thead th`)].map((cell) => cell.textContent)", table
    )
    return [row[names.index(name)] for row in rows(browser, table)]


def press(browser: Chrome, table: str, label: str) -> None:
    browser.find_element(By.XPATH, f"//section[@id='{table}']//button[starts-with(., '{label}')]").click()


def type_in(browser: Chrome, table: str, words: str) -> None:
    box = browser.find_element(By.CSS_SELECTOR, f"#{table} input[type=search]")
    box.clear()
    box.send_keys(words)


def shown(browser: Chrome, table: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, f"#{table} .shown").text.split("\n")[0]


def test_a_plan_reads_from_the_verdict_down(opened):
    browser = opened(plan_html(against_mm2()))
    body = browser.find_element(By.TAG_NAME, "body").text
    order = [
        "46 of 49 groups can continue",
        "What is lost?",
        "What to do next",
        "Findings",
        "At a glance",
        "Groups",
        "Topics",
    ]
    places = [body.index(one) for one in order]
    assert places == sorted(places)
    assert [row[0] for row in rows(browser, "groups")][:3] == ["fraud", "ledger", "search"]
    assert len(rows(browser, "groups")) == 49
    assert len(rows(browser, "partitions")) == 50


def test_bars_are_as_long_as_their_numbers_say(opened):
    browser = opened(plan_html(against_mm2()))
    script = """
        return [...document.querySelectorAll(".chart .bars")[0].rows].slice(0, 2)
          .map((row) => [row.querySelector("rect").getBoundingClientRect().width, row.lastElementChild.textContent])"""
    (theirs, many), (ours, few) = browser.execute_script(script)
    assert ours / theirs == pytest.approx(int(few.replace(",", "")) / int(many.replace(",", "")), rel=0.02)
    assert theirs > 150


def test_every_table_sorts(opened):
    browser = opened(plan_html(against_mm2()))
    before = column(browser, "groups", "GROUP")
    head(browser, "groups", "SKIP").find_element(By.TAG_NAME, "button").click()
    assert column(browser, "groups", "SKIP")[:2] == ["5,000", "0"]
    assert head(browser, "groups", "SKIP").get_attribute("aria-sort") == "descending"
    head(browser, "groups", "SKIP").find_element(By.TAG_NAME, "button").click()
    assert column(browser, "groups", "SKIP")[-3:] == ["5,000", "-", "unknown"]
    head(browser, "groups", "SKIP").find_element(By.TAG_NAME, "button").click()
    assert column(browser, "groups", "GROUP") == before
    assert head(browser, "groups", "SKIP").get_attribute("aria-sort") is None
    head(browser, "groups", "GROUP").find_element(By.TAG_NAME, "button").click()
    assert column(browser, "groups", "GROUP") == sorted(before)
    for table in ("topics", "lost", "partitions", "left-out"):
        for button in browser.find_elements(By.CSS_SELECTOR, f"#{table} thead button"):
            button.click()
        assert browser.find_element(By.CSS_SELECTOR, f"#{table} [aria-sort]")


def test_numbers_sort_as_numbers_and_names_in_their_natural_order(opened):
    browser = opened(plan_html(against_mm2()))
    press(browser, "partitions", "Show all")
    type_in(browser, "partitions", "group-0001 primary.orders")
    head(browser, "partitions", "PARTITION").find_element(By.TAG_NAME, "button").click()
    assert column(browser, "partitions", "PARTITION") == [f"primary.orders-{n}" for n in range(12)]
    type_in(browser, "partitions", "")
    head(browser, "partitions", "LOG END").find_element(By.TAG_NAME, "button").click()
    assert column(browser, "partitions", "LOG END")[0] == "9000"


def test_every_table_is_searched(opened):
    browser = opened(plan_html(against_mm2()))
    type_in(browser, "groups", "AHEAD")
    assert column(browser, "groups", "GROUP") == ["fraud"]
    assert shown(browser, "groups") == "1 of 1 shown matching, of 49 in all"
    type_in(browser, "groups", "no such thing")
    assert rows(browser, "groups") == []
    type_in(browser, "groups", "")
    assert len(rows(browser, "groups")) == 49
    type_in(browser, "left-out", "share")
    assert column(browser, "left-out", "GROUP") == ["q"]


def test_a_verdict_and_a_group_narrow_the_tables(opened):
    browser = opened(plan_html(against_mm2()))
    browser.find_element(
        By.XPATH, "//select[@aria-label='Only this verdict']/option[starts-with(., 'partial')]"
    ).click()
    assert column(browser, "groups", "GROUP") == ["fraud", "search"]
    press(browser, "groups", "fraud")
    assert column(browser, "partitions", "GROUP") == ["fraud"] * 12
    assert shown(browser, "partitions") == "12 of 12 shown matching, of 588 in all"
    press(browser, "partitions", "group: fraud")
    assert len(rows(browser, "partitions")) == 50


def test_a_thousand_groups(opened):
    browser = opened(plan_html(against_mm2(1000, 12)))
    assert len(rows(browser, "groups")) == 50
    assert shown(browser, "groups") == "50 of 1,000 shown"
    press(browser, "groups", "Show 200 more")
    assert len(rows(browser, "groups")) == 250
    press(browser, "groups", "Show all")
    assert len(rows(browser, "groups")) == 1000
    type_in(browser, "partitions", "group-0777")
    assert column(browser, "partitions", "GROUP") == ["group-0777"] * 12
    type_in(browser, "partitions", "ahead")
    assert column(browser, "partitions", "PARTITION") == ["primary.orders-7"]
    type_in(browser, "partitions", "")
    head(browser, "partitions", "SKIP").find_element(By.TAG_NAME, "button").click()
    assert column(browser, "partitions", "SKIP")[0] == "5,000"
    assert shown(browser, "partitions") == "50 of 12,000 shown"


def test_an_execution_with_its_forecast_and_fact(opened):
    plan = against_mm2()
    browser = opened(execution_html(verified(executed(plan)), plan))
    assert "48 of 49 groups stand on standby" in browser.find_element(By.CSS_SELECTOR, ".verdict").text
    assert browser.find_element(By.CSS_SELECTOR, ".curve polyline").get_attribute("points")
    assert column(browser, "verified", "GROUP")[0] == "search"
    press(browser, "groups", "ledger")
    assert set(column(browser, "partitions", "STATUS")) == {"refused"}


@pytest.mark.parametrize(
    "document",
    [lambda: plan_html(nasty_plan()), lambda: execution_html(nasty_execution(), nasty_plan())],
    ids=["plan", "execution"],
)
def test_hostile_names_are_text(opened, document):
    browser = opened(document())
    assert browser.find_elements(By.TAG_NAME, "img") == []
    start = NASTY.split("\x1b", maxsplit=1)[0]
    assert rows(browser, "groups")[0][0].startswith(start)
    for table in ("groups", "partitions"):
        type_in(browser, table, "onerror=alert &amp;`${1}2")
        assert len(rows(browser, table)) == 1
        type_in(browser, table, "onerror=alert")
        assert len(rows(browser, table)) == 2
    press(browser, "groups", "</script>")
    assert rows(browser, "partitions")[0][0].startswith(start)


def test_a_script_from_elsewhere_does_not_run(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(plan_html(plans.all_ready()).replace("</body>", "<script>window.ran = 1</script></body>"))
    browser.get(path.as_uri())
    assert browser.execute_script("return window.ran") is None
    (refused,) = browser.get_log("browser")
    assert "Content Security Policy" in refused["message"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("story", ["plan", "execution"])
def test_everything_can_be_read_in_light_and_dark(opened, scheme, story):
    plan = against_mm2()
    execution = verified(executed(plan, Outcome.PARTIAL, warnings=("lock-unavailable: no answer",)))
    browser = opened(plan_html(plan) if story == "plan" else execution_html(execution, plan), scheme=scheme)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.execute_script(LOW_CONTRAST) == []


@pytest.mark.parametrize(
    "document", [lambda: plan_html(against_mm2()), lambda: plan_html(nasty_plan())], ids=["plan", "hostile"]
)
def test_a_phone_scrolls_tables_not_the_page(opened, document):
    browser = opened(document(), 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_on_paper_everything_is_there_and_nothing_to_press(opened):
    browser = opened(plan_html(against_mm2()), media="print")
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert len(rows(browser, "partitions")) == 588
    assert not any(
        one.is_displayed() for one in browser.find_elements(By.CSS_SELECTOR, "input, select, nav, .shown button")
    )
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert len(rows(browser, "partitions")) == 50


def test_it_becomes_a_pdf(opened):
    browser = opened(execution_html(executed(against_mm2()), against_mm2()))
    answer: dict[str, Any] = browser.execute_cdp_cmd(
        "Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True}
    )
    assert len(answer["data"]) > 100_000
