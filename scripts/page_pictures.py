"""Takes docs/pictures/page.png and operation.png: the page of a word count in Debian's chromium. First: sh
scripts/browser.sh. Then: .venv/bin/python scripts/page_pictures.py"""

from __future__ import annotations

import io
import linecache
import os
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By

from trident_py import LocalCluster, TridentTopology

DOCS = Path(__file__).parent.parent / "docs"
SHOWN = "/home/you/counting.py"
COLOURS = 64


def counting() -> TridentTopology:
    """Return the word count of docs/operations/night.md, over an input in this folder."""
    lines = [f"the cow {number % 50} jumped over the moon" for number in range(30_000)]
    lines[300] = "odd one out"
    Path("input").mkdir()
    Path("input/day.txt").write_text("\n".join(lines) + "\n")
    page = (DOCS / "operations" / "night.md").read_text()
    text = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)[0]
    linecache.cache[SHOWN] = len(text), None, text.splitlines(keepends=True), SHOWN
    names: dict[str, Any] = {"__name__": "counting"}
    exec(compile(text, SHOWN, "exec"), names)
    topology: TridentTopology = names["build"]()
    return topology


def take(browser: Any, name: str, first: str, last: str) -> None:
    """Keep what is between two elements of the page, with few colours."""
    top, bottom = (browser.find_element(By.CSS_SELECTOR, each).rect for each in (first, last))
    shown = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    part = shown.crop((0, int(top["y"]) - 12, shown.width, int(bottom["y"] + bottom["height"]) + 12))
    part.quantize(COLOURS).save(DOCS / "pictures" / f"{name}.png", optimize=True)


def main() -> None:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1000,3000", "--hide-scrollbars"):
        options.add_argument(argument)
    socket.gethostname = lambda: "mill"
    with tempfile.TemporaryDirectory() as folder, LocalCluster(f"{folder}/checkpoints") as cluster:
        os.chdir(folder)
        browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            running = cluster.submitTopology("counting", {"topology.http": 0}, counting().build())
            browser.get(running.http)
            time.sleep(20)  # enough batches, one of which fails
            take(browser, "page", "header", "#batches tbody tr:nth-child(4)")
            node = next(each for each in browser.find_elements(By.CSS_SELECTOR, "#picture g.node[tabindex]")
                        if "split" in str(each.get_attribute("aria-label")))  # fmt: skip
            browser.execute_script("arguments[0].dispatchEvent(new Event('click'))", node)
            time.sleep(1)
            take(browser, "operation", "#picture", "#operation")
        finally:
            browser.quit()
        running.stop()


main()
