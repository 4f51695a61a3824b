"""The picture that the README opens with: the top of a report, as a browser shows it.

    python -m benchmarks.picture [RUN]

Trains for two minutes on the Python sources of this repository, so that no foreign text is in it, and writes
docs/report.png; with a RUN nothing is trained. On a quiet machine: its minutes are the budget. Needs Chromium and its
driver, as the browser tests do.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

from headcount.show.report import report

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "report.png"
MINUTES = 2
WIDTH, SCALE = 860, 2
"""Of the page, around its column; two points for each of it stay sharp on any screen."""
SECTIONS, BELOW = 3, 28
"""The figure, the curves, what it writes; and some ground below them."""


def sources() -> list[str]:
    """What is trained on: the files that git knows of, wherever they are read from."""
    listed = subprocess.run(
        ["git", "ls-files", "src/*.py", "tests/*.py", "benchmarks/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [str(ROOT / name) for name in listed.stdout.split()]


def trained(folder: Path) -> Path:
    """A run of two minutes; its name stands in the picture, so it is a short one."""
    run = Path("runs") / "headcount"
    command = [sys.executable, "-m", "headcount", "train", *sources(), "--run", str(run), "--minutes", str(MINUTES)]
    subprocess.run(command, cwd=folder, check=True)
    return run


def photograph(page: Path, picture: Path) -> None:
    """The first sections of a page, light, at a fixed width."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or ""
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        light = [{"name": "prefers-color-scheme", "value": "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
        metrics = {"width": WIDTH, "height": 1_400, "deviceScaleFactor": SCALE, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get(page.as_uri())
        last = f"document.querySelectorAll('section')[{SECTIONS - 1}]"
        bottom = driver.execute_script(f"return {last}.getBoundingClientRect().bottom + window.scrollY")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": round(bottom) + BELOW, "scale": 1}
        taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    finally:
        driver.quit()
    picture.write_bytes(base64.b64decode(taken["data"]))


def main() -> None:
    """Train, or take the run that is named; report, photograph."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if len(sys.argv) > 1:
            # From where its name is short: the page is headed with it.
            run = Path(*Path(sys.argv[1]).resolve().parts[-2:])
            os.chdir(Path(sys.argv[1]).resolve().parents[1])
        else:
            run = trained(folder)
            os.chdir(folder)
        page = folder / "report.html"
        page.write_text(report([run]), encoding="utf-8")
        photograph(page, PICTURE)
    print(PICTURE)


if __name__ == "__main__":
    main()
