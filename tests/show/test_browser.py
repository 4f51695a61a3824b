"""The pages in a real browser: the slider, the heat map, the ruler and the tabs do what they say.

Needs Chromium and its driver (Debian: `apt-get install chromium chromium-driver`); without them these tests are
skipped. `.ci/run` installs them.
"""

import shutil
from pathlib import Path

import pytest

from headcount.cli import run
from headcount.show import heat
from tests.show.test_pages import data_of

PAGES = ["report", "several", "attention", "heads", "neurons", "scored", "difference", "compare", "context", "nothing"]
webdriver = pytest.importorskip("selenium.webdriver")
By = pytest.importorskip("selenium.webdriver.common.by").By
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromium and chromedriver here")


@pytest.fixture(scope="module")
def folder(trained):
    one, two, many, text = (str(trained / name) for name in ("one", "two", "many", "my.txt"))
    for what in ("attention", "neurons"):
        assert run(["inspect", what, one, text, "--limit", "400"]) == 0
    assert run(["inspect", "attention", many, text, "--limit", "400", "-o", f"{one}/heads.html"]) == 0
    (trained / "short.txt").write_bytes((trained / "my.txt").read_bytes()[:3_000] + "é – 日本".encode())
    short = str(trained / "short.txt")
    assert run(["score", one, short, "--html", "-o", f"{one}/scored.html"]) == 0
    assert run(["score", one, short, "--html", "--against", two, "-o", f"{one}/difference.html"]) == 0
    assert run(["compare", one, two, "-o", f"{one}/compare.html"]) == 0
    assert run(["report", one, two, "-o", f"{one}/several.html"]) == 0
    curve = ["--curve", "context", "--most", "128", "--positions", "32"]
    assert run(["evaluate", one, two, *curve, "-o", f"{one}/context.html"]) == 0
    (trained / "x.txt").write_bytes(b"x")
    assert run(["inspect", "neurons", one, str(trained / "x.txt"), "-o", f"{one}/nothing.html"]) == 0
    return trained / "one"


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=900,1200"):
        options.add_argument(argument)
    options.binary_location = BROWSER
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def phone(browser):
    """A narrow screen."""
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture
def paper(browser):
    """A4 between its margins, for somebody whose screen is dark."""
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    metrics = {"width": 705, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def opened(browser, page):
    browser.set_window_size(900, 1200)
    browser.get(page.as_uri())
    return browser


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def every(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def click(browser, element):
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def test_the_slider_shows_what_was_written_at_each_step(browser, folder):
    opened(browser, folder / "report.html")
    slider, step, text = (one(browser, f".samples {s}") for s in ("input", ".step", ".text"))
    shown = {step.text.split(" ·")[0]: text.text}
    for _ in range(2):
        slider.send_keys(Keys.ARROW_LEFT)
        shown[step.text.split(" ·")[0]] = text.text
    assert list(shown) == ["step 6", "step 4", "step 2"] and len(set(shown.values())) == 3
    assert slider.get_attribute("aria-valuetext").startswith("step 2")
    click(browser, slider)  # the middle of it
    assert step.text.startswith("step 4")


def test_the_heat_map_shows_what_was_expected(browser, folder):
    opened(browser, folder / "report.html")
    byte = every(browser, ".heated b[data-at]")[40]
    click(browser, byte)
    box = one(browser, ".candidates")
    assert f"byte {byte.get_attribute('data-at')}:" in box.text and "bits" in box.text
    assert len(every(browser, ".candidates li")) == 10
    assert "on" in byte.get_attribute("class").split()
    before, there = every(browser, ".heated b[data-at]")[41:43]
    webdriver.ActionChains(browser).move_to_element(there).perform()
    assert f"byte {there.get_attribute('data-at')}:" in box.text
    one(browser, ".heated .heat").send_keys(Keys.ARROW_LEFT)
    assert f"byte {before.get_attribute('data-at')}:" in box.text


def test_what_was_expected_can_be_seen_wherever_one_points(browser, folder):
    opened(browser, folder / "scored.html")
    for place in (0, 1_500, -1):
        click(browser, every(browser, ".heated b[data-at]")[place])
        seen = "const r = arguments[0].getBoundingClientRect(); return r.top >= 0 && r.bottom <= window.innerHeight"
        assert browser.execute_script(seen, one(browser, ".candidates"))
    # Every byte of the last character is there, not only its first.
    assert len(every(browser, ".candidates li")) == 30 and "\\xe6" in one(browser, ".candidates").text


def test_tabs_change_what_runs_along_the_bottom(browser, folder):
    opened(browser, folder / "report.html")
    panels = every(browser, "[data-panel='axis']")
    assert [panel.is_displayed() for panel in panels] == [True, False, False]
    click(browser, every(browser, "[data-tabs='axis'] button")[2])
    assert [panel.is_displayed() for panel in panels] == [False, False, True]


def test_the_ruler_shows_where_the_head_looked(browser, folder):
    opened(browser, folder / "attention.html")
    assert not every(browser, ".ruler rect")
    click(browser, every(browser, ".looking b[data-at]")[300])
    assert len(every(browser, ".ruler rect")) == 24
    chosen, data = one(browser, ".looking b.on"), data_of((folder / "attention.html").read_text())
    at, text = int(chosen.get_attribute("data-at")), bytes(data["bytes"])
    places = data["heads"][0]["places"][at]
    assert f"To predict byte {at}" in one(browser, ".places").text
    # A row was written after the byte before its place, so a distance of 0 is the byte before the chosen one.
    read = [at - 1 - distance for distance in places[::2]]
    shown = [item.text.split(" ")[0] for item in every(browser, ".places li")]
    assert shown == [heat.name_of(text[byte : byte + 1]) for byte in read[:8]]
    begins = [int(b.get_attribute("data-at")) for b in every(browser, ".looking b[data-at]")]
    lit = {int(b.get_attribute("data-at")) for b in every(browser, ".looking b[style*='rgba']")}
    assert lit == {max(begin for begin in begins if begin <= byte) for byte in read}


def test_a_run_of_spaces_stays_in_its_box_on_a_phone(phone, folder):
    for name in ("scored", "neurons"):
        opened(phone, folder / f"{name}.html")
        outside = """const box = document.querySelector(".heat").getBoundingClientRect();
            return [...document.querySelectorAll(".heat b")]
                .filter((b) => b.getBoundingClientRect().right > box.right).length"""
        phone.execute_script("""const at = document.querySelector(".heat"), copy = at.firstChild;
            for (let i = 0; i < 90; i += 1) { const b = copy.cloneNode(); b.textContent = " "; at.prepend(b); }""")
        assert phone.execute_script(outside) == 0


def test_another_head_shows_where_it_looked_at_the_same_byte(browser, folder):
    opened(browser, folder / "heads.html")

    def seen():
        bars = [[bar.get_attribute(name) for name in ("x", "height")] for bar in every(browser, ".ruler rect")]
        lit = [b.get_attribute("data-at") for b in every(browser, ".looking b[style*='rgba']")]
        return bars, lit, one(browser, ".places").text

    click(browser, every(browser, ".looking b[data-at]")[200])
    before = seen()
    chosen = "block 1, head 2"
    first, second, third = every(browser, "select[data-heads]")
    assert "block 0, head 0 read" in before[2] and not every(browser, "[data-of-head='5']")[0].is_displayed()
    second.send_keys(chosen)  # any of the three changes all
    after = seen()
    assert all(new != old for new, old in zip(after, before, strict=True)) and f"{chosen} read" in after[2]
    assert after[2].split(",")[0] == before[2].split(",")[0]  # the byte stays
    for choice in (first, second, third):
        assert choice.find_element(By.CSS_SELECTOR, "option:checked").text == chosen
    panels = every(browser, "[data-of-head]")
    assert [p.get_attribute("data-of-head") for p in panels if p.is_displayed()] == ["5", "5"]
    before = after
    every(browser, "select[data-heads] option")[0].click()
    assert seen()[2] != before[2] and "block 0, head 0 read" in seen()[2]


def test_what_a_head_read_is_seen_beside_the_text_on_a_phone(phone, folder):
    browser = opened(phone, folder / "heads.html")
    click(browser, every(browser, ".looking b[data-at]")[100])
    uncovered = """return [...arguments].every((part) => {
        const box = part.getBoundingClientRect(), [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        return part.contains(document.elementFromPoint(x, y));
    })"""
    assert browser.execute_script(uncovered, *(one(browser, f".looking {s}") for s in (".ruler", ".places", "b.on")))


def test_another_unit_tints_the_text_otherwise(browser, folder):
    opened(browser, folder / "neurons.html")

    def tints():
        return [b.get_attribute("style") for b in every(browser, ".heat b[data-at]")[:100]]

    before = tints()
    options = every(browser, "select[data-units] option")
    assert len(options) > 3
    options[-1].click()
    assert tints() != before


@pytest.mark.parametrize("page", PAGES)
def test_on_paper_nothing_is_cut_or_dark_and_nothing_asks_to_be_moved(paper, folder, page):
    opened(paper, folder / f"{page}.html")
    cut = """return [...document.querySelectorAll("pre, .text, .scroll")]
        .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent.slice(0, 80))"""
    assert paper.execute_script(cut) == []
    assert "slider" not in one(paper, "body").text
    ground = [p.value_of_css_property("background-color") for p in (*every(paper, "pre, .text"), one(paper, "body"))]
    assert set(ground) <= {"rgba(243, 242, 237, 1)", "rgba(255, 255, 255, 1)"}


@pytest.mark.parametrize("page", ["report", "compare", "context"])
def test_what_a_plot_says_can_be_read_on_a_phone(phone, folder, page):
    opened(phone, folder / f"{page}.html")
    texts = """return [...document.querySelectorAll("svg.plot text")].filter((t) => t.getBoundingClientRect().width)
        .map((t) => [t.textContent, parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a || 99,
                     ...["left", "right", "top", "bottom"].map((side) => t.getBoundingClientRect()[side])])"""
    found = phone.execute_script(texts)
    assert len(found) > 5 and min(size for _, size, *_ in found) > 11
    # A line is higher than its letters, by a fifth above and below.
    boxes = [(said, a, b, c + (d - c) / 5, d - (d - c) / 5) for said, _, a, b, c, d in found]
    for number, (said, left, right, top, bottom) in enumerate(boxes):
        for other, *box in boxes[:number]:
            assert right <= box[0] or box[1] <= left or bottom <= box[2] or box[3] <= top, (said, other)


INSIDE = """return [...document.querySelectorAll("svg.plot polygon.layer")].map((layer) => {
    const label = layer.nextElementSibling, box = label.getBBox(), at = layer.ownerSVGElement.createSVGPoint();
    const inside = [[0, 0], [1, 0], [0, 1], [1, 1]].every(([right, down]) => {
        at.x = box.x + right * box.width;
        at.y = box.y + down * box.height;
        return layer.isPointInFill(at);
    });
    return [label.textContent, inside];
})"""


@pytest.mark.parametrize("width", [390, 1_280])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("sha_rnn", {"blocks = 2": "blocks = 2\nngrams = [2, 3, 4, 5]\nngram_rows = 4096"}),
        ("transformer_xl", {"heads = 2": "heads = 16"}),
        ("char_transformer", {}),
    ],
)
def test_every_label_of_the_drawing_lies_inside_its_box(browser, tmp_path, kind, settings, width):
    recipe = Path(f"recipes/tiny/{kind}.toml").read_text()
    for old, new in settings.items():
        assert old in recipe
        recipe = recipe.replace(old, new)
    (tmp_path / "recipe.toml").write_text(recipe)
    assert run(["report", str(tmp_path)]) == 0
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get((tmp_path / "report.html").as_uri())
        found = browser.execute_script(INSIDE)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(found) > 3 and [label for label, inside in found if not inside] == []


def test_the_contents_lead_to_the_parts_of_every_run(browser, folder):
    opened(browser, folder / "several.html")
    links = every(browser, "nav a")
    assert len(links) == 2 + 2 * 6 and len(every(browser, "nav li")) == 3
    click(browser, links[-6])  # what the second run writes
    top = "return document.querySelector(location.hash).getBoundingClientRect().top"
    assert abs(browser.execute_script(top)) < 3
    heading = one(browser, f"section[id='{browser.execute_script('return location.hash.slice(1)')}'] h2")
    assert heading.text == f"What it writes · {folder.parent / 'two'}"
    opened(browser, folder / "report.html")
    assert not every(browser, "nav")


def test_an_even_spread_stands_on_every_bar_of_the_distances(browser, folder):
    opened(browser, folder / "attention.html")
    bars = every(browser, ".bars .bar")
    assert len(bars) > 3
    for bar in bars:
        said = float(bar.text.rpartition("even spread ")[2].rstrip("%"))
        line, track = (bar.find_element(By.CSS_SELECTOR, s).rect for s in (".at", ".track"))
        share = float(bar.text.rpartition("%, even")[0].split()[-1])
        fill = bar.find_element(By.CSS_SELECTOR, ".fill").rect["width"] / track["width"]
        at = (line["x"] + 1 - track["x"]) / track["width"]
        if share > 5:
            assert at / fill == pytest.approx(said / share, rel=0.1)


def test_a_comparison_on_a_phone_is_a_list_for_every_run(phone, folder):
    opened(phone, folder / "compare.html")
    assert phone.execute_script(
        'return [...document.querySelectorAll(".scroll")].every((e) => e.scrollWidth <= e.clientWidth)'
    )
    cells = every(phone, ".cards td")
    heights = [cell.size["height"] for cell in cells]
    assert len(cells) == 18 and not any(th.is_displayed() for th in every(phone, ".cards th"))
    assert max(heights[1:8]) < 30  # a line each
    name = "return getComputedStyle(arguments[0], '::before').content"
    assert phone.execute_script(name, cells[1]) == '"bits per byte"'


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_wider_than_a_phone_or_complains(phone, folder, page):
    browser = opened(phone, folder / f"{page}.html")
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    cut = """return [...document.querySelectorAll("svg.plot text")].filter((t) => {
        const text = t.getBoundingClientRect(), box = t.closest("svg").getBoundingClientRect();
        return text.width && (text.left < box.left - 1 || text.right > box.right + 1);
    }).map((t) => t.textContent)"""
    assert browser.execute_script(cut) == []  # what a plot says is not cut off at its edge
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
