"""Reading in a real browser: selection, keys, folding, branches, windows of a long thread, search."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sessiontree as st
from browser.conftest import Opener, until
from sample_store import LOGS, SHOP
from sessiontree.web.addresses import thread_url

if TYPE_CHECKING:
    from playwright.sync_api import Route


def test_keys_move_through_entries_prompts_failures_and_branches(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    reader.keys("g")
    path = [entry.id for entry in reader.journal.path(SHOP)]
    assert reader.selected() == path[0]
    reader.keys("j")
    assert reader.selected() == path[1]
    reader.keys("k", "J")
    until(page, "document.querySelector('.e.sel')?.innerText.includes('logout')")
    reader.keys("K")
    until(page, f"document.querySelector('.e.sel')?.dataset.id === '{path[0]}'")
    reader.keys("x")
    until(page, "document.querySelector('.e.sel .call.fail') !== null")
    assert f"at={reader.selected()}" in page.url
    reader.keys("h")
    page.wait_for_selector(".crumbs >> text=not the head")
    reader.keys("G")
    until(page, "!document.querySelector('.crumbs').innerText.includes('not the head')")
    assert reader.journal.thread(SHOP).leaf == path[-1]


def test_the_tree_the_transcript_and_the_address_agree(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    row = page.locator("#tree .tn.said").last
    row.click()
    name = row.get_attribute("data-id")
    assert reader.selected() == name
    assert page.locator("#tree .tn[aria-selected=true]").get_attribute("data-id") == name
    page.reload()
    assert reader.selected() == name


def test_the_tree_folds_and_filters(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    page.wait_for_selector("#tree .tn")
    everything = page.locator("#tree .tn").count()
    page.click("text=Prompts >> nth=0")
    until(page, f"document.querySelectorAll('#tree .tn').length < {everything}")
    reader.keys("v", "v", "v")
    until(page, f"document.querySelectorAll('#tree .tn').length === {everything}")
    first = page.locator("#tree .tn[aria-expanded=true]").first
    first.focus()
    reader.keys("ArrowLeft")
    page.wait_for_selector("#tree .tn[aria-expanded=false]")
    reader.keys("ArrowRight")
    until(page, f"document.querySelectorAll('#tree .tn').length === {everything}")


def test_a_sibling_is_one_click_away_and_back_goes_back(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    page.locator(".crumbs .sib a[href]").first.click()
    page.wait_for_selector(".crumbs >> text=not the head")
    page.go_back()
    until(page, "!document.querySelector('.crumbs').innerText.includes('not the head')")


def test_a_long_thread_is_scrolled_from_end_to_start(reading: Opener) -> None:
    reader = reading()
    contents = [st.user(f"question {at}") if at % 10 == 0 else st.assistant(f"answer {at}") for at in range(4000)]
    reader.journal.create_thread("long", title="Long")
    made = reader.journal.append_many("long", contents)
    page = reader.open("/t/long")
    page.wait_for_selector(f'#pages .e[data-id="{made[-1].id}"]')
    page.wait_for_selector("#tree .tn")
    page.evaluate("document.querySelector('#content').scrollTop = document.querySelector('#content').scrollHeight / 2")
    until(page, "Math.abs(+document.querySelector('#pages .e').dataset.at - 2000) < 600")
    reader.keys("g")
    page.wait_for_selector(f'#pages .e.sel[data-id="{made[0].id}"]')
    assert page.locator("#pages .e").count() < 1000
    for _ in range(12):
        page.evaluate("document.querySelector('#content').scrollBy(0, 12000)")
        page.wait_for_timeout(60)
    assert page.locator("#pages > .pg").count() <= 8


def test_output_that_was_cut_is_shown_as_a_whole(reading: Opener) -> None:
    reader = reading()
    reader.journal.append("t", st.user("run"), create=True)
    reader.journal.append("t", st.assistant("", calls=[st.call("c", "bash", '{"command": "seq 300"}')]))
    reader.journal.append("t", st.tool_result("c", "\n".join(f"line {at}" for at in range(300)), name="bash"))
    page = reader.open("/t/t")
    page.click(".call summary")
    page.click("text=show all")
    page.wait_for_selector("text=line 150")


def test_the_palette_finds_threads_messages_and_actions(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    reader.keys("Control+k")
    page.keyboard.type("log parser")
    page.wait_for_selector(".pal >> text=Make the log parser twice as fast")
    reader.keys("ArrowDown", "ArrowUp", "Enter")
    page.wait_for_url(re.compile(re.escape(thread_url(LOGS))))
    reader.keys("Control+k")
    page.keyboard.type(">dark")
    reader.keys("Enter")
    page.wait_for_selector("html[data-theme=dark]")
    reader.keys("?")
    page.wait_for_selector("dialog.help >> text=rewind here")
    reader.keys("Escape")
    assert page.locator("dialog").count() == 0


def test_enter_in_the_palette_waits_for_the_answer_to_what_was_typed(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    held: list[Route] = []
    page.route("**/search.json?q=log+parser*", lambda route: held.append(route))  # noqa: PLW0108  Playwright reads the signature
    reader.keys("Control+k")
    with page.expect_request("**/search.json?q=log+parser*"):
        page.keyboard.type("log parser")
    reader.keys("Enter")
    for route in held:
        route.continue_()
    page.wait_for_url(re.compile(re.escape(thread_url(LOGS))))


def test_search_answers_while_one_types(reading: Opener) -> None:
    reader = reading()
    page = reader.open("/search")
    page.keyboard.type("logou")
    page.wait_for_selector("#hits mark")
    page.locator(".hitrow").first.click()
    page.wait_for_selector("#pages .e.sel")


def test_the_list_filters_while_one_types_and_by_facets(reading: Opener) -> None:
    reader = reading()
    page = reader.open("/")
    reader.keys("/")
    page.keyboard.type("parser")
    until(page, "document.querySelectorAll('#threads .th').length === 1")
    page.fill("#filter", "")
    until(page, "document.querySelectorAll('#threads .th').length > 3")
    page.click("[data-facet=folder]")
    page.locator(".menu .opt").first.click()
    page.wait_for_url(re.compile("folder="))


def test_a_phone_shows_one_pane_at_a_time(reading: Opener) -> None:
    reader = reading("phone")
    page = reader.open(f"/t/{SHOP}")
    assert page.locator(".tr").is_visible()
    page.click(".tabs >> text=Tree")
    assert page.locator(".treepane").is_visible()
    assert not page.locator(".tr").is_visible()
    page.locator("#tree .tn.said").first.click()
    assert page.locator(".tr").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_can_be_read_without_scripts(reading: Opener) -> None:
    reader = reading(java_script_enabled=False)
    page = reader.open(f"/t/{SHOP}")
    assert page.locator("#pages .e").count() > 5
    page.locator("#tree .tn.said").first.click()
    assert "at=" in page.url
