"""Looking back and comparing in a real browser, by mouse and by keyboard, wide and on a phone."""

from __future__ import annotations

import pytest

from browser.conftest import Opener, Reader, at_rest, until
from sample_store import SHOP

LOOK_BACK = "/look-back?span=1y"
COMPARE = f"/compare?a={SHOP}"


def counted(reader: Reader, path: str = LOOK_BACK) -> None:
    reader.open(path)
    at_rest(reader.page)


def test_a_chart_tells_its_values_to_a_pointer_and_to_the_arrow_keys(reading: Opener) -> None:
    reader = reading()
    counted(reader)
    busy = reader.page.locator("svg.chart rect[data-href]").last
    busy.hover()
    told = reader.page.locator(".tip")
    assert told.inner_text() == busy.get_attribute("data-t")
    reader.page.locator("svg.chart").first.focus()
    reader.keys("End")
    until(reader.page, "document.querySelector('.tip').innerText.endsWith('turns')")
    last = told.inner_text()
    assert reader.page.locator("#say").inner_text() == last
    reader.keys("ArrowLeft")
    assert told.inner_text() != last
    reader.keys("Tab")
    told.wait_for(state="hidden")


def test_a_day_of_the_calendar_leads_to_its_prompts(reading: Opener) -> None:
    reader = reading()
    counted(reader)
    reader.page.locator("svg.chart rect[data-href]").last.click()
    reader.page.wait_for_url("**/search?q=role%3Auser**")
    counted(reader)
    reader.page.locator("svg.chart").first.focus()
    empty = reader.page.evaluate(
        "[...document.querySelector('svg.chart').querySelectorAll('rect')].reverse().findIndex((one) => one.dataset.href)"
    )
    reader.keys("End", *["ArrowLeft"] * empty, "Enter")
    reader.page.wait_for_url("**/search?q=role%3Auser**")


def test_numbers_spans_and_measures_are_reached_with_the_keyboard(reading: Opener) -> None:
    reader = reading()
    counted(reader, "/look-back")
    page = reader.page
    page.locator(".num > summary").first.focus()
    reader.keys("Enter")
    page.locator(".num table").first.wait_for(state="visible")
    page.get_by_role("link", name="Tokens", exact=True).focus()
    reader.keys("Enter")
    page.wait_for_url("**by=tokens**")
    page.get_by_role("link", name="30 days").click()
    page.wait_for_url("**span=30d**")
    assert "by=tokens" in page.url


def test_d_compares_the_branches_of_a_thread(reading: Opener) -> None:
    reader = reading()
    reader.open(f"/t/{SHOP}")
    reader.keys("d")
    reader.page.wait_for_url("**/compare?**")
    sides = reader.page.locator(".side")
    assert sides.count() == 2
    first, second = (sides.nth(at).inner_text() for at in range(2))
    reader.page.get_by_role("link", name="Swap").click()
    reader.page.wait_for_url("**b_at=**")
    assert sides.nth(0).inner_text().splitlines()[1] == second.splitlines()[1]
    assert sides.nth(1).inner_text().splitlines()[1] == first.splitlines()[1]


@pytest.mark.parametrize("path", [LOOK_BACK, COMPARE])
def test_a_phone_shows_it_without_scrolling_the_page_sideways(reading: Opener, path: str) -> None:
    reader = reading("phone")
    counted(reader, path)
    assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert all(chart.is_visible() for chart in reader.page.locator("svg.chart").all())
    assert reader.page.evaluate(
        "[...document.querySelectorAll('.wide-chart')].every((one) => one.scrollLeft + one.clientWidth >= one.scrollWidth - 2)"
    )


def test_nothing_lies_over_the_top_bar(reading: Opener) -> None:
    reader = reading()
    for path in (LOOK_BACK, COMPARE, f"/t/{SHOP}", "/search?q=login"):
        counted(reader, path)
        assert reader.page.evaluate(
            "[5, 400, 800, 1200, 1590].every((x) => document.elementFromPoint(x, 8).closest('.top'))"
        ), path
