"""Whatever is printed can be typed: exact ids win over the signs of addresses, commands are whole and for this store."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import sessiontree as st
from screens import Screen, plain, spans
from sessiontree.errors import SessionTreeError
from sessiontree.mcp.names import find_entry
from sessiontree.render.cells import cell_width

IDS = (
    "edge_010",
    "edge_010~2",
    "edge_010~0",
    "a^",
    "b@{1}",
    "@",
    "c:d",
    "-dash",
    "two words",
    "it's",
    "\x1b[31mred\x1b[0m",
)


@pytest.fixture
def odd(screen: Screen, tmp_path: Path) -> Screen:
    """A store whose threads and entries are called by every odd name."""
    screen.store = tmp_path / "odd.db"
    with st.open(screen.store, durability="process_crash") as journal:
        for name in IDS:
            journal.create_thread(name, title=f"talk {IDS.index(name)}")
            for number, entry in enumerate(IDS):
                journal.append(name, st.user(f"words {number}"), id=entry)
    return screen


@pytest.mark.parametrize("name", [name for name in IDS if name.isprintable()])
def test_an_exact_id_wins_over_what_its_signs_mean(odd: Screen, name: str) -> None:
    row = odd.piped("log", "-n", "1", "--", f"edge_010:{name}").split("\t")
    assert row[0] == name
    assert odd.piped("log", "-n", "1", "--", f"{name}:edge_010").split("\t")[0] == "edge_010"


def test_an_exact_id_wins_over_a_label_for_people_and_for_agents(odd: Screen) -> None:
    with st.open(odd.store) as journal:
        journal.label("c:d", "a^", "edge_010")
        journal.label("c:d", "edge_010", "edge_010~1")
        assert find_entry(journal, "c:d", "edge_010") == "edge_010"
        assert find_entry(journal, "c:d", "edge_010~1") == "edge_010"
    assert odd.piped("log", "-n", "1", "c:d:edge_010").split("\t")[0] == "edge_010"
    assert odd.piped("log", "-n", "1", "c:d:edge_010~1").split("\t")[0] == "edge_010"


def test_a_label_is_put_on_the_entry_that_was_named(odd: Screen) -> None:
    odd.run("label", "a^:edge_010", "first")
    with st.open(odd.store) as journal:
        assert journal.labels("a^") == {"first": "edge_010"}


def test_a_name_with_an_escape_is_typed_as_it_is_printed(odd: Screen) -> None:
    with st.open(odd.store) as journal:
        journal.label("c:d", "a^", "\x1b[1mgood\x1b[0m idea")
        assert find_entry(journal, "c:d", "good idea") == "a^"
        with pytest.raises(SessionTreeError):
            find_entry(journal, "c:d", "no such idea")
    assert odd.piped("log", "-n", "1", "c:d:good idea").split("\t")[0] == "a^"
    assert "words 10" in odd.piped("log", "-n", "1", "red:red")


@pytest.mark.parametrize("other", ["c", "a:b longer", "a:b:c", "a@", "a@:b", "a@{0}", "a@{0}:b"])
def test_an_entry_and_a_thread_that_is_called_like_its_address_can_both_be_typed(
    screen: Screen, tmp_path: Path, other: str
) -> None:
    screen.store = tmp_path / "twins.db"
    twins = (("a:b", "x"), ("a", "b"), ("a", "b:c"), (other, "y"), ("a@", "b"), ("a@", "z"))
    with st.open(screen.store, durability="process_crash") as journal:
        for number, (thread, entry) in enumerate(twins):
            if thread not in journal.thread_ids("", limit=9):
                journal.create_thread(thread)
            journal.append(thread, st.user(f"word{number}"), id=entry)
    for number, (_, entry) in enumerate(twins):
        best = next(command for command in _commands(screen.run("search", f"word{number}")) if " show " in command)
        address = shlex.split(best)[2:]
        assert f"word{number}" in plain(screen.run("show", *address)), best
        assert screen.piped("log", "-n", "1", *address).split("\t")[0] == entry, best
    assert screen.piped("log", "-n", "1", "a:b").split("\t")[0] == "x"
    screen.run("append", "a", "more", "--expect-leaf", "b:c")


STORE = "my talks/store.db"
COMMANDS = (
    "", "ls -n 3", "ls -n 3 --title talk", "tree @", "search words -n 2", "search words", "stats", "stats --since 7d", "label @",
    "label edge_010:a^ 'very good'", "rewind edge_010~4", "undo edge_010", "rewind edge_010:a^", "diff edge_010 edge_010:a^",
    "fork edge_010 --id new", "archive c:d", "compact @ --keep-recent 1", "show @", "log @ -n 2", "log edge_010~1 -a -n 2", "doctor",
    "rm edge_010", "show nope", "show edge_010:nope", "show edge_010:edge", "ls -p 99", "rewind", "import",
)  # fmt: skip


@pytest.mark.parametrize("width", [40, 60, 100])
def test_every_command_is_whole_and_names_the_store_that_was_given(odd: Screen, tmp_path: Path, width: int) -> None:
    folder = tmp_path / "my talks"
    folder.mkdir()
    odd.store.rename(tmp_path / STORE)
    odd.resize(width)
    for command in COMMANDS:
        before = (tmp_path / STORE).read_bytes()
        given = shlex.split(command)
        shown = odd.run(*given[:1], "--store", STORE, *given[1:], typed="n\n", code=None)
        assert [line for line in plain(shown).splitlines() if cell_width(line) > width] == [], command
        after = (tmp_path / STORE).read_bytes()
        for typed in _commands(shown):
            assert not re.search(r"\w…", typed), (command, typed)
            words = shlex.split(typed.replace("…", "words"))
            assert "--store" in words or "--help" in words, (command, typed)
            (tmp_path / STORE).write_bytes(after)
            done = plain(odd.run(*words[1:], typed="n\n", code=None))
            assert not re.search("(?m)^✗ (?!Nothing was|Which)", done), (command, typed, done)
        (tmp_path / STORE).write_bytes(before)


def _commands(shown: str) -> list[str]:
    """The commands in what was shown, in normal brightness; after a backslash a line goes on in the next one."""
    pieces = [text.strip() for line in shown.splitlines() for text, style in spans(line) if style in {"", "0"}]
    found = re.findall(r"^sessiontree [a-z-].*", "\n".join(pieces).replace(" \\\n", " "), re.MULTILINE)
    return [command for command in found if "demo" not in command]
