"""The page in a real Chromium: it draws, hears clicks, filters, shows hovers, saves files, and says nothing bad."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedreuse.report.page.html import render
from fedreuse.report.page.page import page_of
from fedreuse.report.table_forms import to_csv
from tests.report.page.browser import axe, chromium, wait_for, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]
COLOURS = "return getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def opened(planned: Path, folder: Path) -> Iterator[Any]:
    """The page in a browser, opened as a file; one browser for all tests."""
    file = folder / "report.html"
    file.write_text(render(page_of([planned])), encoding="utf-8")
    with chromium(folder) as driver:
        driver.get(file.as_uri())
        assert wait_for(driver, "return document.body.dataset.drawn"), driver.get_log("browser")
        yield driver


@pytest.fixture
def page(opened: Any) -> Iterator[Any]:
    """The page as it is when it is opened; no test leaves a word in the console."""
    _do(opened, "sessionStorage.clear(); location.reload()", is_new=True)
    yield opened
    assert opened.get_log("browser") == []


def _do(page: Any, script: str, is_new: bool = False) -> None:
    """Run a script that changes something, and wait until the figures are drawn anew."""
    before = 0 if is_new else int(page.execute_script("return document.body.dataset.drawn"))
    if is_new:
        page.execute_script("document.body.dataset.old = 'yes';" + script)
        assert wait_for(page, "return document.body && !document.body.dataset.old && document.body.dataset.drawn")
    else:
        page.execute_script(script)
        assert wait_for(page, f"return Number(document.body.dataset.drawn) > {before}")


def _choose(page: Any, selector: str, value: str) -> None:
    _do(
        page,
        f"const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};"
        " one.dispatchEvent(new Event('input', {bubbles: true}))",
    )


def _open_all(page: Any) -> None:
    """Open every section, and wait for its figures."""
    page.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    assert wait_for(page, "return document.querySelectorAll('.plot:not(.js-plotly-plot)').length === 0")


def _plot(page: Any, key: str, script: str) -> Any:
    return page.execute_script(f"const plot = document.querySelector('[data-figure={key}]'); return {script}")


def test_every_figure_is_drawn(page: Any) -> None:
    _open_all(page)
    keys = page.execute_script("return [...document.querySelectorAll('.plot')].map(one => one.dataset.figure)")
    assert {"frontier", "trajectories", "totals", "by_round", "gate_scores", "gate_clients", "forest", "cost"} <= set(
        keys
    )
    for key in keys:
        assert _plot(page, key, "plot.querySelectorAll('svg.main-svg').length > 0 && plot.data.length > 0"), key


def test_a_click_on_a_variant_highlights_it_everywhere(page: Any) -> None:
    from selenium.webdriver.common.by import By

    _open_all(page)
    button = page.find_element(By.CSS_SELECTOR, '#variants button[data-variant="1"]')
    before = int(page.execute_script("return document.body.dataset.drawn"))
    button.click()
    assert wait_for(page, f"return Number(document.body.dataset.drawn) > {before}")
    assert button.get_attribute("aria-pressed") == "true"
    assert _plot(page, "trajectories", "plot.data.filter(one => one.meta === 0).every(one => one.opacity < 0.5)")
    assert _plot(page, "frontier", "plot.data.filter(one => one.meta === 1).every(one => one.opacity === 1)")
    chosen = page.execute_script("return [...document.querySelectorAll('tr.chosen')].map(one => one.dataset.variant)")
    assert set(chosen) == {"1"}
    _do(page, "document.querySelector('[data-figure=frontier]').emit('plotly_click', {points: [{data: {meta: 1}}]})")
    assert button.get_attribute("aria-pressed") == "false", "a second click takes it back"


def test_the_filter_hides_what_does_not_match(page: Any) -> None:
    _choose(page, "#filter", "REUSE")
    assert _plot(page, "trajectories", "plot.data.filter(one => one.meta !== undefined).map(one => one.meta)") == [1]
    hidden = page.execute_script("return [...document.querySelectorAll('tr[data-variant]')].map(one => one.hidden)")
    assert True in hidden
    assert False in hidden
    assert page.execute_script("return document.querySelectorAll('tr[data-variant=\"0\"]:not([hidden])').length") == 0


def test_boundary_direction_and_axis_are_chosen(page: Any, planned: Path) -> None:
    points = page_of([planned]).sections[1].figures[0].data["points"]
    for boundary, direction, key in (
        ("messages", "up", "messages/up"),
        ("update_fields", "down", "update_fields/both"),  # it counts no downlink
    ):
        _choose(page, "#boundary", boundary)
        _choose(page, "#direction", direction)
        drawn = _plot(page, "frontier", "plot.data.filter(one => one.marker?.size === 12).map(one => one.x[0])")
        assert drawn == [one[1] for one in points[f"test/{key}"]["means"]]
    _choose(page, '[data-choice="over"]', "seconds")
    assert _plot(page, "trajectories", "plot.layout.xaxis.title.text") == "seconds"


def test_a_hover_shows_the_configuration(page: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    page.execute_script("document.querySelector('#figure-frontier').scrollIntoView({block: 'center'})")
    where = _plot(
        page, "frontier",
        "(() => { const last = plot.data.length - 1, one = plot.data[last], box = plot.getBoundingClientRect(), "
        "l = plot._fullLayout; return [l.xaxis._offset + l.xaxis.d2p(one.x[0]) - box.width / 2, "
        "l.yaxis._offset + l.yaxis.d2p(one.y[0]) - box.height / 2]; })()",
    )  # fmt: skip
    plot = page.execute_script("return document.querySelector('[data-figure=frontier]')")
    ActionChains(page).move_to_element_with_offset(plot, *map(round, where)).perform()
    shown = wait_for(page, "return document.querySelector('[data-figure=frontier] .hovertext')?.textContent", 20)
    assert shown is not None
    assert "reuse" in shown
    assert "dg_fedreuse" in shown


def test_tables_and_figures_are_saved(page: Any, folder: Path, planned: Path) -> None:
    _open_all(page)
    for selector, name in (
        ('[data-table="answer-1"][data-form="csv"]', "answer-1.csv"),
        ('[data-table="answer-1"][data-form="latex"]', "answer-1.tex"),
        ('#figure-frontier [data-save="svg"]', "frontier.svg"),
        ('#figure-gate_clients [data-save="png"]', "gate_clients.png"),
    ):
        (folder / name).unlink(missing_ok=True)
        page.execute_script(f"document.querySelector({json.dumps(selector)}).click()")
        assert _arrives(page, folder / name), name
    assert (folder / "answer-1.csv").read_text() == to_csv(page_of([planned]).tables[0])
    assert r"\toprule" in (folder / "answer-1.tex").read_text()
    assert (folder / "frontier.svg").read_text().startswith("<svg")
    assert (folder / "gate_clients.png").read_bytes().startswith(b"\x89PNG")


def _arrives(page: Any, file: Path) -> bool:
    """Whether the browser writes a file within some seconds; it is the browser that waits between two looks."""
    for _ in range(300):
        if file.exists() and file.stat().st_size:
            return True
        page.execute_async_script("setTimeout(arguments[0], 50)")
    return False


def test_choices_survive_a_reload(page: Any) -> None:
    _choose(page, "#direction", "down")
    _choose(page, "#filter", "reuse")
    _do(page, "location.reload()", is_new=True)
    assert page.execute_script("return document.querySelector('#direction').value") == "down"
    assert _plot(page, "trajectories", "plot.data.filter(one => one.meta !== undefined).map(one => one.meta)") == [1]


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (800, "dark"), (1400, "light")])
def test_nothing_is_wider_than_the_screen_and_axe_has_no_complaint(page: Any, width: int, theme: str) -> None:
    script = axe()
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    _choose(page, "#theme", theme)
    assert page.execute_script(COLOURS) == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}[theme]
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    _open_all(page)
    page.execute_script(script)
    found = page.execute_async_script("axe.run().then(found => arguments[0](found.violations))")
    told = [(one["id"], one["impact"], [node["target"] for node in one["nodes"]][:3]) for one in found]
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert told == []


def test_the_first_screen_is_the_answer_with_cards_and_the_frontier(page: Any) -> None:
    metrics = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    _do(page, "location.reload()", is_new=True)
    ends = page.execute_script(
        "return ['.headline', '.cards', '[data-figure=frontier]'].map("
        "one => document.querySelector(one).getBoundingClientRect().bottom)"
    )
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert max(ends) <= 900


def test_another_reference_changes_sentence_cards_table_and_differences(page: Any) -> None:
    _open_all(page)
    visible = (
        "return [...document.querySelectorAll('.headline')].filter(one => one.offsetParent).map(one => one.textContent)"
    )
    (before,) = page.execute_script(visible)
    _choose(page, "#reference", "1")
    (after,) = page.execute_script(visible)
    assert before.startswith("reuse sends")
    assert after.startswith("dense <b> sends")
    cards = (
        "return [...document.querySelectorAll('.card')].filter(one => one.offsetParent).map(one => one.dataset.variant)"
    )
    assert page.execute_script(cards) == ["0"]
    labels = _plot(page, "forest", "plot.layout.yaxis.ticktext")
    assert labels == ["dense &lt;b> - reuse"]


def test_axes_of_proportions_fit_the_points(page: Any) -> None:
    low, high = _plot(page, "trajectories", "plot.layout.yaxis.range")
    means = _plot(page, "trajectories", "plot.data.filter(one => one.meta !== undefined).flatMap(one => one.y)")
    assert 0 <= low <= min(means)
    assert max(means) <= high <= 101
    assert high - low < 1.5 * (max(means) - min(means)) + 1


def test_a_link_opens_its_section_and_print_opens_all(page: Any) -> None:
    page.execute_script("document.querySelector('nav a[href=\"#cost\"]').click()")
    assert wait_for(page, "return document.querySelector('[data-figure=cost].js-plotly-plot') !== null")
    assert page.execute_script("return document.querySelector('#bytes details').open") is False
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert wait_for(page, "return document.querySelectorAll('.plot:not(.js-plotly-plot)').length === 0")
    page.execute_script("dispatchEvent(new Event('afterprint')); history.replaceState(null, '', location.pathname)")


def test_everything_is_reached_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert page.execute_script("return document.activeElement.className") == "skip"
    page.find_element(By.CSS_SELECTOR, "#more > summary").send_keys(Keys.ENTER)
    button = page.find_element(By.CSS_SELECTOR, '#variants button[data-variant="0"]')
    before = int(page.execute_script("return document.body.dataset.drawn"))
    button.send_keys(Keys.ENTER)
    assert wait_for(page, f"return Number(document.body.dataset.drawn) > {before}")
    assert button.get_attribute("aria-pressed") == "true"
    unreachable = page.execute_script(
        "const all = [...document.querySelectorAll('button, select, input, a, summary')];"
        "return all.filter(one => one.tabIndex < 0).length"
    )
    assert unreachable == 0
