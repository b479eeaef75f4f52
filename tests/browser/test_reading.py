"""Reading in a real browser: selection, keys, folding, branches, windows of a long thread, search."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sessiontree as st
from browser.conftest import Opener, Reader, at_rest, hold, until
from sample_store import LOGS, SHOP
from sessiontree.web.addresses import thread_url
from web.running import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_keys_move_through_entries_prompts_failures_and_branches(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    reader.keys("g")
    path = [entry.id for entry in reader.journal.path(SHOP)]
    reader.wait_for_selected(path[0])
    reader.keys("j")
    reader.wait_for_selected(path[1])
    reader.keys("k", "J")
    until(page, "document.querySelector('.e.sel')?.innerText.includes('logout')")
    reader.keys("K")
    reader.wait_for_selected(path[0])
    reader.keys("x")
    until(page, "document.querySelector('.e.sel .call.fail') !== null")
    until(page, "location.href.includes(`at=${document.querySelector('.e.sel').dataset.id}`)")
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
    name = row.get_attribute("data-id") or ""
    reader.wait_for_selected(name)
    until(page, f"document.querySelector('#tree .tn[aria-selected=true]').dataset.id === '{name}'")
    page.reload()
    reader.wait_for_selected(name)


def test_the_tree_folds_and_filters(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    page.wait_for_selector("#tree .tn")
    everything = page.locator("#tree .tn").count()
    page.click("text=Prompts >> nth=0")
    until(page, f"document.querySelectorAll('#tree .tn').length < {everything}")
    reader.keys("v", "v", "v")
    until(page, f"document.querySelectorAll('#tree .tn').length === {everything}")
    page.locator("#tree .tn[aria-expanded=true]").first.focus()
    reader.keys("ArrowLeft")
    until(page, f"document.querySelectorAll('#tree .tn').length < {everything}")
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
    until(page, "+document.querySelector('#pages .pg:last-child').dataset.end <= 120")
    for place in range(200, 1300, 100):
        page.evaluate("document.querySelector('#pages').lastElementChild.lastElementChild.scrollIntoView()")
        until(page, f"+document.querySelector('#pages .pg:last-child').dataset.end >= {place}")
        assert page.locator("#pages > .pg").count() <= 8


def test_quick_keys_do_one_thing_after_the_other(reading: Opener) -> None:
    reader = reading()
    reader.journal.create_thread("long", title="Long")
    made = reader.journal.append_many("long", [st.user(f"question {at}") for at in range(900)])
    page = reader.open("/t/long")
    release = hold(page, "**/entries?*")
    reader.keys("g", "j", "j")
    release()
    reader.wait_for_selected(made[2].id)
    assert page.evaluate("[...document.querySelectorAll('#pages .e')].map((one) => +one.dataset.at)") == sorted(
        range(page.locator("#pages .e").count())
    )


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
    page.wait_for_selector("dialog", state="detached")


def test_enter_in_the_palette_waits_for_the_answer_to_what_was_typed(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    release = hold(page, "**/search.json?q=log+parser*")
    reader.keys("Control+k")
    with page.expect_request("**/search.json?q=log+parser*"):
        page.keyboard.type("log parser")
    reader.keys("Enter")
    release()
    page.wait_for_url(re.compile(re.escape(thread_url(LOGS))))


def test_an_empty_store_shows_its_first_conversation_when_it_is_written(browser: Browser, tmp_path: Path) -> None:
    with (
        st.open(tmp_path / "new.db") as journal,
        serving("--store", "new.db", folder=tmp_path) as address,
    ):
        reader = Reader(browser.new_page(), address, journal)
        reader.page.wait_for_selector("text=waiting for the first entry")
        journal.append("t", st.user("good morning"), create=True)
        reader.page.wait_for_selector(".th >> text=good morning")
        reader.page.wait_for_selector("text=Pick one")
        reader.page.context.close()


def test_search_answers_while_one_types(reading: Opener) -> None:
    reader = reading()
    page = reader.open("/search")
    until(page, "document.activeElement.id === 'q'")
    page.keyboard.type("logou")
    reader.wait_for_address("q=logou")
    at_rest(page)
    page.wait_for_selector("#hits mark")
    page.locator(".hitrow").first.click()
    page.wait_for_selector("#pages .e.sel")


def test_a_hit_is_previewed_with_its_words_marked_before_it_is_opened(reading: Opener) -> None:
    reader = reading()
    page = reader.open("/search?q=KeyError+role:tool")
    page.wait_for_selector("#preview .e")
    at_rest(page)
    assert page.evaluate("CSS.highlights.get('found').size") > 0
    assert page.locator("#preview details[open] >> text=KeyError").first.is_visible()
    page.click("#preview .btn")
    page.wait_for_selector("#pages .e.sel")


@pytest.mark.parametrize(
    ("said", "marks"), [("\u0130\u0130\u0130\u0130 aardvark and more", 1), ("aardvark " * 5_000, 2_000)]
)
def test_words_are_marked_in_any_text_and_not_without_end(reading: Opener, said: str, marks: int) -> None:
    """Small letters of some languages are longer than their capitals."""
    reader = reading()
    reader.journal.append("t", st.user(said), create=True, fields={"title": "Animals"})
    page = reader.open("/search?q=aardvark")
    page.wait_for_selector("#preview .e")
    until(page, f"CSS.highlights.get('found')?.size === {marks}")
    assert page.evaluate("[...new Set([...CSS.highlights.get('found')].map(String))]") == ["aardvark"]


def test_the_files_of_one_thread_are_not_shown_with_another(reading: Opener) -> None:
    reader = reading()
    for name in ("first", "second"):
        edit = f'{{"path": "/x/{name}.py", "oldText": "x", "newText": "y"}}'
        asked = [st.user(name), st.assistant(calls=[st.call("c1", "edit", edit)]), st.tool_result("c1", "ok")]
        reader.journal.create_thread(name, title=name, contents=asked)
    release = hold(reader.page, "**/t/first/files*")
    page = reader.open("/t/first")
    page.click("#threads a[href*='second']")
    page.wait_for_selector("#files >> text=second.py")
    with page.expect_response("**/t/first/files*"):
        release()
    assert page.inner_text("#files a .mono") == "second.py"


def test_the_arrows_go_from_hit_to_hit_and_back_to_the_words(reading: Opener) -> None:
    reader = reading()
    page = reader.open("/search?q=login")
    page.wait_for_selector("#preview .e")
    at_rest(page)
    first = page.inner_text("#preview")
    reader.keys("ArrowDown", "ArrowDown")
    until(page, "document.querySelectorAll('.hitrow')[1].ariaCurrent === 'true'")
    at_rest(page)
    assert page.inner_text("#preview") != first
    reader.keys("ArrowUp", "ArrowUp")
    until(page, "document.activeElement.id === 'q'")
    reader.keys("ArrowDown", "Enter")
    page.wait_for_selector("#pages .e.sel")


def test_the_files_that_a_branch_changed_stand_in_its_outline(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    page.wait_for_selector("#files a")
    assert page.locator("#files a").first.inner_text().split() == ["login.py", "+4", "−2"]
    page.locator("#files a").first.click()
    page.wait_for_selector("#hits .hitrow")


def test_the_list_filters_while_one_types_and_by_facets(reading: Opener) -> None:
    reader = reading()
    page = reader.open("/")
    reader.keys("/")
    until(page, "document.activeElement.id === 'filter'")
    page.keyboard.type("parser")
    until(page, "document.querySelectorAll('#threads .th').length === 1")
    at_rest(page)
    page.fill("#filter", "")
    until(page, "document.querySelectorAll('#threads .th').length > 3")
    page.click("[data-facet=folder]")
    page.locator(".menu .opt").first.click()
    page.wait_for_url(re.compile("folder="))


def test_a_pane_is_dragged_or_moved_with_keys_and_keeps_its_width(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    width = "Math.round(document.querySelector('.threads').getBoundingClientRect().width)"
    grip = page.locator("[data-grip=threads]")
    box = grip.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, 400)
    page.mouse.down()
    page.mouse.move(400, 400, steps=3)
    page.mouse.up()
    until(page, f"{width} === 400")
    reader.keys("ArrowLeft", "ArrowLeft")
    until(page, f"{width} === 368")
    page.reload()
    until(page, f"{width} === 368")
    assert grip.get_attribute("aria-valuenow") == "368"
    reader.keys("b")
    until(page, f"{width} === 0")


def test_a_phone_shows_one_pane_at_a_time(reading: Opener) -> None:
    reader = reading("phone")
    page = reader.open(f"/t/{SHOP}")
    assert page.locator(".tr").is_visible()
    page.click(".tabs >> text=Tree")
    page.wait_for_selector(".treepane", state="visible")
    page.wait_for_selector(".tr", state="hidden")
    page.locator("#tree .tn.said").first.click()
    page.wait_for_selector(".tr", state="visible")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_can_be_read_without_scripts(reading: Opener) -> None:
    reader = reading(java_script_enabled=False)
    page = reader.open(f"/t/{SHOP}")
    assert page.locator("#pages .e").count() > 5
    page.locator("#tree .tn.said").first.click()
    page.wait_for_url(re.compile("at="))


@pytest.mark.parametrize("width", [1120, 900, 720])
def test_no_width_makes_a_thread_scroll_sideways(reading: Opener, width: int) -> None:
    reader = reading(viewport={"width": width, "height": 800})
    page = reader.open(f"/t/{SHOP}")
    page.wait_for_selector("#pages .e")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture
def uneven(reading: Opener) -> Reader:
    """A reader of a long thread whose entries become higher towards its end, with a failure far from either end."""
    reader = reading()
    reader.journal.create_thread("long", title="Long")
    made: list[Any] = []
    for at in range(9_000):
        lines = "\n\n".join(f"line {line}" for line in range(at // 900))
        made.append(st.user(f"question {at}") if at % 10 == 0 else st.assistant(f"answer {at}\n\n{lines}"))
    made[4_005] = st.assistant("", calls=[st.call("c", "bash", '{"command": "make"}')])
    made[4_006] = st.tool_result("c", "no", name="bash", is_error=True)
    reader.journal.append_many("long", made)
    reader.open("/t/long")
    reader.page.wait_for_selector("#tree .tn")
    return reader


IN_SIGHT = """(() => {
    const box = document.querySelector('#content').getBoundingClientRect()
    const seen = [...document.querySelectorAll('#pages .e')].filter((one) => {
        const {top, bottom} = one.getBoundingClientRect()
        return bottom > box.top && top < box.bottom
    })
    return seen.length ? [+seen[0].dataset.at, +seen.at(-1).dataset.at] : null
})()"""


def test_what_was_asked_for_in_the_middle_of_a_long_thread_is_in_sight_while_others_write(uneven: Reader) -> None:
    page = uneven.page
    box = page.locator("#minimap svg").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 10, box["y"] + box["height"] * 0.5)
    until(page, "document.querySelector('#pages .e.sel')?.dataset.at > 3000")
    place = page.evaluate("+document.querySelector('#pages .e.sel').dataset.at")
    for number in range(3):
        uneven.journal.append("long", st.assistant(f"more {number}"))
        until(page, f"document.querySelector('.app').dataset.total === '{9001 + number}'")
        first, last = page.evaluate(IN_SIGHT)
        assert first <= place <= last
    page.evaluate("document.querySelector('#content').scrollTop *= 0.5")
    until(page, f"({IN_SIGHT})?.[0] < {place - 500} && !document.querySelector('#pages[aria-busy]')")


ROWS_IN_SIGHT = """(() => {
    const {top, bottom} = document.querySelector('#tree').getBoundingClientRect()
    return [...document.querySelectorAll('#tree .tn')].filter((one) => {
        const box = one.getBoundingClientRect()
        return box.bottom > top && box.top < bottom
    }).map((one) => +one.ariaPosInSet)
})()"""


def test_the_tree_of_a_long_thread_has_rows_in_sight_at_once_and_while_others_write(uneven: Reader) -> None:
    page = uneven.page
    until(page, f"{ROWS_IN_SIGHT}.at(-1) > 890")
    until(page, "+document.querySelector('#minimap .vp').getAttribute('y') > 100")
    page.evaluate("document.querySelector('#tree').scrollTop *= 0.5")
    until(page, f"{ROWS_IN_SIGHT}.some((place) => place > 430 && place < 470)")
    uneven.journal.append("long", st.assistant("more"))
    until(
        page,
        "document.querySelector('#tree .tree').dataset.total > 0 && document.querySelector('.app').dataset.total === '9001'",
    )
    at_rest(page)
    until(page, f"{ROWS_IN_SIGHT}.some((place) => place > 430 && place < 470)")


def test_the_next_failure_and_prompt_are_found_far_from_what_is_shown(uneven: Reader) -> None:
    page = uneven.page
    until(page, "document.querySelector('#pt').textContent === '900'")
    uneven.keys("G", "X")
    until(page, "document.querySelector('#pages .e.sel')?.dataset.at === '4005'")
    uneven.keys("g", "J")
    until(page, "document.querySelector('#pages .e.sel')?.dataset.at === '10'")
    uneven.keys("G", "K", "K")
    until(page, "document.querySelector('#pages .e.sel')?.dataset.at === '8980'")
    until(page, "document.querySelector('#pn').textContent === '899'")
    uneven.keys("x")
    uneven.keys("X")
    until(page, "document.querySelector('#pages .e.sel')?.dataset.at === '4005'")
