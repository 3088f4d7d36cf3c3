"""The page in a real browser: what it shows is what the run says, by keyboard and on a phone too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from needed import needed

from states.sql import SqlMapState
from testbed.service import ServiceMissing
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FeederBatchSpout

from .runs import FIELDS, counting, until

pytestmark = pytest.mark.whole("test_a_run_that_commits_replays_and_waits_says_what_its_events_say")
ENTER = "\ue007"


def launch() -> Any:
    try:
        from selenium import webdriver
    except ModuleNotFoundError:
        raise ServiceMissing("selenium is not installed; see scripts/tools.sh") from None
    driver = shutil.which("chromedriver")
    if driver is None:
        raise ServiceMissing("there is no chromedriver on the PATH; see scripts/tools.sh")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with needed("a browser"):
        opened = launch()
    yield opened
    opened.quit()


def read(browser: Any, element: str) -> str:
    return str(browser.execute_script("return document.getElementById(arguments[0]).innerText", element))


def nodes(browser: Any) -> list[Any]:
    """The operations in the picture."""
    return list(until(lambda: browser.find_elements("css selector", "#picture g.node[tabindex]")))


def rows(browser: Any, element: str) -> list[list[str]]:
    every = "[...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
    script = f"return {every}.map(row => [...row.cells].map(each => each.innerText))"
    return [list(row) for row in browser.execute_script(script, element)]


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def cluster(request: pytest.FixtureRequest) -> Any:
    return LocalCluster() if request.param == "local" else request.getfixturevalue("spark_cluster")()


def test_the_page_shows_what_happens_and_acts_when_it_is_told(browser: Any, cluster: Any) -> None:
    feeder, inline = FeederBatchSpout(FIELDS), {"topology.inline.max.tuples": 100, "topology.inline.max.millis": 60_000}
    with cluster:
        running = cluster.submitTopology("words", {"topology.http": 0, **inline}, counting(feeder).build())
        browser.get(running.http)
        feeder.feed([("a",), ("b",)], timeout=120)
        feeder.feed([("bad <script>document.title = 'run'</script><img src=x onerror=alert(1)>",)])
        until(lambda: [row[3] for row in rows(browser, "batches")] == ["committed", "committed"])
        assert read(browser, "link") == "live" and read(browser, "name") == "words"
        (spout,), (state,) = rows(browser, "spouts"), rows(browser, "states")
        assert (spout[0], spout[3], spout[5]) == ("words", "3", "not told")
        assert (state[0], state[2], state[4], state[6]) == ("counts", "at least once", "3", "2")
        newest = rows(browser, "batches")[0]
        assert (newest[0], newest[3], newest[4]) == ("2", "committed", "driver") and newest[8].startswith("2 attempts")
        (event,) = [row for row in rows(browser, "events") if row[1] == "replay"]
        assert "<script>document.title = 'run'</script>" in event[5]  # as text
        assert browser.title.startswith("words: ")
        assert not browser.execute_script("return document.querySelector('img, td script')")
        each = next(node for node in nodes(browser) if "Checked" in node.get_attribute("aria-label"))
        each.send_keys(ENTER)  # the picture, by keyboard
        shown = read(browser, "operation")
        assert "each Checked" in shown and "last failures" in shown and "replay of txid 2, attempt 0" in shown
        browser.find_element("css selector", "#operations button").click()  # and without a picture
        until(lambda: "FeederBatchSpout" in read(browser, "operation"))
        assert "0: 3" in read(browser, "operation") and "the largest has 1 times the mean" in read(browser, "operation")
        rates = browser.find_elements("css selector", "#picture text.rate")
        assert rates and all(rate.get_attribute("textContent").endswith("/s") for rate in rates)
        browser.find_element("id", "txid").send_keys("77" + ENTER)
        until(lambda: read(browser, "note") == "there is no batch 77 here")
        browser.find_element("id", "pause").send_keys(ENTER)
        assert browser.switch_to.active_element.get_attribute("id") == "no"
        browser.find_element("id", "yes").send_keys(ENTER)
        until(running.inactive.is_set)
        until(lambda: read(browser, "sentence").startswith("paused after txid 2") and read(browser, "pause") == "Go on")
        browser.find_element("id", "pause").click()
        browser.find_element("id", "no").click()
        assert running.inactive.is_set()
        browser.set_window_size(390, 800)
        wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= shown
        browser.find_element("id", "stop").click()
        browser.find_element("id", "yes").click()
        assert running.awaitTermination(30)
        until(lambda: read(browser, "link") == "the run has ended")
        assert read(browser, "sentence") == "ended after txid 2"
    severe = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [text for text in severe if "api/topology.svg" not in text] == []


def test_the_page_shows_a_start_that_waits_and_a_run_that_fails(browser: Any, cluster: Any) -> None:
    topology, feeder = TridentTopology(), FeederBatchSpout(FIELDS)
    away = SqlMapState.opaque("postgresql+psycopg://nobody:s3cret@127.0.0.1:9/none", "counts", "word string")
    topology.newStream("words", FeederBatchSpout(FIELDS)).groupBy("word").persistentAggregate(away, Count(), "n")
    with cluster:
        waits = cluster.submitTopology("waits", {"topology.http": 0}, topology.build())
        browser.get(waits.http)
        until(lambda: read(browser, "sentence").startswith("waiting for state counts, up to "), 60)
        assert "s3cret" not in browser.page_source
        waits.stop()
        fails = cluster.submitTopology("fails", {"topology.http": 0}, counting(feeder).build())
        browser.get(fails.http)
        feeder.feed([("a",)], timeout=120)
        feeder.feed([("worse",)], wait=False)
        with pytest.raises(TopologyError, match="no such word: worse"):
            fails.awaitTermination(60)
        until(lambda: read(browser, "link") == "the run has ended")
        assert read(browser, "sentence").startswith("failed after txid 1: ValueError: no such word: worse")
        (failed,) = [row for row in rows(browser, "events") if row[1] == "failed"]
        assert failed[3] == "2" and "runs.py" in failed[5] and rows(browser, "batches")[0][3] == "failed"
