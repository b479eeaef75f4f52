"""Every action by mouse and by keyboard, with the way back; and what is live."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st
from browser.conftest import Opener, Reader, until
from sample_store import SHOP


@pytest.fixture
def talk(reading: Opener) -> tuple[Reader, list[str]]:
    reader = reading()
    reader.journal.create_thread("t", title="A talk")
    contents = [st.user("one"), st.assistant("two"), st.user("three"), st.assistant("four")]
    made = [entry.id for entry in reader.journal.append_many("t", contents)]
    reader.open("/t/t")
    return reader, made


def wait_for_leaf(reader: Reader, leaf: str) -> None:
    until(reader.page, f"document.querySelector('.app').dataset.head === '{leaf}'")
    assert reader.journal.thread("t").leaf == leaf


def select(reader: Reader, name: str) -> None:
    reader.page.click(f'.e[data-id="{name}"] .md')


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_rewind_and_undo(talk: tuple[Reader, list[str]], way: str) -> None:
    reader, made = talk
    select(reader, made[1])
    if way == "mouse":
        reader.page.click("[data-do=rewind]")
    else:
        reader.keys("r")
    assert "2 entries kept on a branch" in reader.toast()
    wait_for_leaf(reader, made[1])
    if way == "mouse":
        reader.page.click(".toast button")
    else:
        reader.keys("u")
    wait_for_leaf(reader, made[3])
    reader.keys("U") if way == "key" else reader.page.click(".toast button")
    wait_for_leaf(reader, made[1])


def test_the_focus_stays_with_the_entry_that_something_was_done_to(talk: tuple[Reader, list[str]]) -> None:
    reader, made = talk
    select(reader, made[1])
    reader.keys("m")
    reader.page.keyboard.type("good")
    reader.keys("Enter")
    reader.page.wait_for_selector(f'.e[data-id="{made[1]}"] .label >> text=good')
    until(reader.page, f"document.activeElement.dataset.id === '{made[1]}'")


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_fork(talk: tuple[Reader, list[str]], way: str) -> None:
    reader, made = talk
    select(reader, made[1])
    reader.page.click("[data-do=fork]") if way == "mouse" else reader.keys("f")
    until(reader.page, "document.querySelector('#title').innerText.includes('(fork)')")
    assert len(reader.journal.list_threads(forked_from_thread="t")) == 1


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_label(talk: tuple[Reader, list[str]], way: str) -> None:
    reader, made = talk
    select(reader, made[1])
    reader.page.click("[data-do=label]") if way == "mouse" else reader.keys("m")
    reader.page.fill("dialog input", "good")
    reader.keys("Enter")
    reader.page.wait_for_selector("#tree .chip.label >> text=good")
    assert reader.journal.labels("t") == {"good": made[1]}


def choose(reader: Reader, words: str) -> None:
    """Run an action with the mouse: through the button for all actions."""
    reader.page.click("[data-do=palette-actions]")
    reader.page.click(f".pal li >> text={words}")


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_rename_tag_star_and_archive(talk: tuple[Reader, list[str]], way: str) -> None:
    reader, _ = talk
    page = reader.page
    choose(reader, "Rename the thread") if way == "mouse" else reader.keys("R")
    page.fill("dialog input", "Better")
    page.click("dialog .btn.main")
    until(page, "document.querySelector('#title').innerText === 'Better'")
    choose(reader, "Tags of the thread") if way == "mouse" else reader.keys("T")
    page.wait_for_selector("dialog input")
    page.fill("dialog input", "x, y")
    reader.keys("Enter")
    page.wait_for_selector(".thead .chip >> text=y")
    choose(reader, "Star the thread") if way == "mouse" else reader.keys("s")
    page.wait_for_selector(".thead .i-star")
    choose(reader, "Archive the thread") if way == "mouse" else reader.keys("a")
    page.wait_for_selector(".thead >> text=archived")
    found = reader.journal.thread("t")
    assert (found.title, set(found.tags), found.is_archived) == ("Better", {"x", "y", "starred"}, True)


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_compact_shows_what_stays_first(reading: Opener, way: str) -> None:
    reader = reading()
    reader.journal.create_thread("t", title="Long")
    said = [st.user("word " * 900) if at % 2 else st.assistant("answer " * 900) for at in range(120)]
    reader.journal.append_many("t", said)
    before = reader.journal.context("t").tokens
    page = reader.open("/t/t")
    choose(reader, "Compact, with a preview") if way == "mouse" else reader.keys("c")
    page.wait_for_selector("dialog .plan >> text=messages")
    assert reader.journal.context("t").tokens == before
    page.click("dialog .go") if way == "mouse" else reader.keys("Control+Enter")
    assert "Compacted" in reader.toast()
    assert reader.journal.context("t").tokens < before
    choose(reader, "Take the compaction back") if way == "mouse" else reader.keys("o")
    page.wait_for_selector(".toast >> text=whole conversation")
    assert reader.journal.context("t").tokens == before


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_restore_shows_its_plan_first(talk: tuple[Reader, list[str]], tmp_path: Path, way: str) -> None:
    reader, made = talk
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.py").write_text("old\n")
    reader.journal.workspace.snapshot("t", made[3], folder)
    (folder / "a.py").write_text("new\n")
    page = reader.open("/t/t")
    page.click("text=Restore…") if way == "mouse" else reader.keys("G", "w")
    page.wait_for_selector("dialog .plan >> text=a.py")
    until(page, "document.activeElement.innerText.startsWith('Cancel')")
    assert (folder / "a.py").read_text() == "new\n"
    page.click("dialog .go") if way == "mouse" else reader.keys("Control+Enter")
    assert "restored" in reader.toast()
    assert (folder / "a.py").read_text() == "old\n"


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_files_can_be_left_out_of_a_restore(talk: tuple[Reader, list[str]], tmp_path: Path, way: str) -> None:
    reader, made = talk
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    names = ("src/a.py", "src/b.py", "c.py")
    for name in names:
        (folder / name).write_text("old\n")
    reader.journal.workspace.snapshot("t", made[3], folder)
    for name in names:
        (folder / name).unlink()
    (folder / "src").rmdir()
    page = reader.open("/t/t")
    page.click("text=Restore…") if way == "mouse" else reader.keys("G", "w")
    page.wait_for_selector("dialog .plan >> text=src/b.py")
    if way == "mouse":
        page.click("dialog .plan .row >> text=src/b.py")
    else:
        page.focus("dialog .plan input[aria-label*='src/b.py']")
        reader.keys("Space")
    page.wait_for_selector("dialog .go >> text=Restore 3 files")
    page.click("dialog .go") if way == "mouse" else reader.keys("Control+Enter")
    assert "restored" in reader.toast()
    assert [(folder / name).exists() for name in names] == [True, False, True]


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_erase_asks_for_the_title(talk: tuple[Reader, list[str]], way: str) -> None:
    reader, made = talk
    select(reader, made[1])
    choose(reader, "Erase this entry for good") if way == "mouse" else reader.keys("E")
    reader.page.fill("dialog input", "A talk")
    reader.page.click("dialog .danger")
    assert "Erased for good" in reader.toast()
    assert all(entry.message is None or entry.message.text != "two" for entry in reader.journal.path("t"))


@pytest.mark.parametrize("way", ["mouse", "key"])
def test_export_saves_a_file(talk: tuple[Reader, list[str]], way: str) -> None:
    reader, _ = talk
    reader.page.click("[data-do=export]") if way == "mouse" else reader.keys("e")
    with reader.page.expect_download() as download:
        reader.page.click(".pal li >> text=markdown")
    assert "four" in Path(download.value.path()).read_text()


def test_copying_needs_one_key(talk: tuple[Reader, list[str]]) -> None:
    reader, made = talk
    select(reader, made[1])
    reader.keys("y")
    reader.page.wait_for_selector(".toast")
    assert made[1] in reader.page.evaluate("navigator.clipboard.readText()")


def test_the_outline_grows_with_the_prompts_that_others_write(talk: tuple[Reader, list[str]]) -> None:
    reader, _ = talk
    made = reader.journal.append("t", st.user("five, from elsewhere"))
    reader.page.wait_for_selector(f'#prompts a[data-id="{made.id}"]', state="attached")
    assert reader.page.inner_text("#pt") == "3"


def test_two_browsers_see_what_a_process_writes_and_what_the_other_does(reading: Opener) -> None:
    first, second = reading(), reading(scheme="dark")
    first.journal.append("t", st.user("hello"), create=True, fields={"title": "Live"})
    for reader in (first, second):
        reader.open("/t/t")
    with first.journal.turn("t", owner="worker-2") as turn:
        turn.append(st.assistant("", calls=[st.call("c", "bash", '{"command": "make test"}')]))
        for reader in (first, second):
            reader.page.wait_for_selector(".call >> text=make test")
            reader.page.wait_for_selector(".lease >> text=worker-2")
        turn.append(st.tool_result("c", "14 passed", name="bash"))
        turn.append(st.assistant("All green."))
        for reader in (first, second):
            reader.page.wait_for_selector(".call >> text=14 passed")
            reader.page.wait_for_selector(".e >> text=All green.")
    for reader in (first, second):
        reader.page.wait_for_selector(".lease", state="detached")
    prompt = first.journal.path("t")[0].id
    first.page.click(f'.e[data-id="{prompt}"] .md')
    first.keys("r")
    second.page.wait_for_selector("#pages .e >> text=All green.", state="detached")


def test_new_entries_wait_behind_a_pill_and_a_line_marks_what_is_new(reading: Opener) -> None:
    reader = reading()
    reader.journal.create_thread("t", title="Talk")
    reader.journal.append_many("t", [st.user(f"question {at}\n\nmore\n\nmore") for at in range(60)])
    page = reader.open("/t/t")
    page.evaluate("document.querySelector('#content').scrollTop = 40")
    top = page.evaluate("document.querySelector('#content').scrollTop")
    reader.journal.append("t", st.assistant("news"))
    page.wait_for_selector("#pill:not([hidden]) >> text=1 new entry")
    assert page.evaluate("document.querySelector('#content').scrollTop") == top
    page.click("#pill")
    page.wait_for_selector("#pill", state="hidden")
    reader.open("/")
    reader.journal.append("t", st.assistant("later"))
    reader.open("/t/t")
    page.wait_for_selector(".newline >> text=New since you left")


def test_another_branch_is_not_what_is_new_since_the_reader_left(reading: Opener) -> None:
    reader = reading()
    other = reader.journal.labels(SHOP)["cache-idea"]
    reader.open(f"/t/{SHOP}")
    reader.open(f"/t/{SHOP}?at={other}")
    page = reader.open(f"/t/{SHOP}")
    assert page.locator(".newline").count() == 0
    reader.open(f"/t/{SHOP}?at={other}")
    page.click(".crumbs >> text=go to the head")
    until(page, "!document.querySelector('.app').dataset.at")
    assert page.locator(".newline").count() == 0


def test_what_was_typed_to_find_a_thread_stays_while_threads_are_read(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    page.fill("#filter", "log")
    until(page, "document.querySelectorAll('#threads .th').length === 2")
    page.click("#threads .th >> text=Make the log parser")
    until(page, f"document.querySelector('.app').dataset.thread !== '{SHOP}'")
    assert page.input_value("#filter") == "log"
    assert page.locator("#threads .th").count() == 2
    assert page.locator("#threads .th[aria-current] >> text=Make the log parser").count() == 1


def test_a_page_that_follows_a_thread_keeps_only_the_end_of_it(reading: Opener) -> None:
    reader = reading()
    reader.journal.append("t", st.user("begin"), create=True)
    page = reader.open("/t/t")
    for number in range(15):
        made = reader.journal.append_many("t", [st.assistant(f"answer {number} {at}") for at in range(100)])
        page.wait_for_selector(f'#pages .e[data-id="{made[-1].id}"]')
    assert page.locator("#pages .e").count() < 1000
    until(page, "document.querySelector('.app').dataset.total === '1501'")
    places = page.evaluate("[...document.querySelectorAll('#pages .e')].map((one) => +one.dataset.at)")
    assert places == list(range(places[0], 1501))


def test_a_thread_that_is_deleted_while_it_is_open_says_so(talk: tuple[Reader, list[str]]) -> None:
    reader, _ = talk
    reader.journal.delete_thread("t")
    reader.page.wait_for_selector("#lease >> text=deleted")
    assert "deleted" in reader.toast()


def test_a_head_under_a_running_turn_is_not_moved(talk: tuple[Reader, list[str]]) -> None:
    reader, made = talk
    reader.journal.acquire_lease("t", owner="worker-2")
    select(reader, made[0])
    reader.keys("r")
    assert "worker-2" in reader.toast()
    assert reader.journal.thread("t").leaf == made[3]


def test_the_sample_is_still_whole(reading: Opener) -> None:
    reader = reading()
    reader.open(f"/t/{SHOP}")
    assert reader.journal.check() == []
