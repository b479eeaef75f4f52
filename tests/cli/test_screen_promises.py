"""What holds for everything that is shown: ids and commands can be typed, sums agree."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

import postgres_server
import sessiontree as st
from sample_store import LOGS
from screens import Screen, plain, put_back, spans
from sessiontree.cli.screen.lines import ID
from sessiontree.render.cells import cell_width
from shown import BACKUP, READING, SHOWN, show_and_keep, steps


@pytest.mark.parametrize(
    ("screen", "width"), [("store.db", 40), ("store.db", 100), ("store.jsonl", 60)], indirect=["screen"]
)
@pytest.mark.parametrize("name", SHOWN)
def test_every_id_can_be_typed(screen: Screen, name: str, width: int) -> None:
    screen.resize(width)
    shown = show_and_keep(screen, name)
    with st.open(screen.store if screen.store.exists() else "memory:") as journal:
        assert _ids_in(shown) - _known_ids(journal, shown) <= GONE.get(name, set())


def test_ids_and_commands_that_are_shown_can_be_typed_on_a_server(screen: Screen) -> None:
    screen.resize(60)
    database = postgres_server.new_database()
    screen.run("copy", database)
    screen.server = database
    for name in READING:
        shown = screen.run(*READING[name], code=None)
        with st.open(database) as journal:
            assert _ids_in(shown) == _known_ids(journal, shown), name
        for command in sorted(_commands(shown)):
            words = _words(command)
            if words[:1] in CHANGES_NOTHING:
                assert not FAILED.search(plain(screen.run(*words, code=None))), command


FAILED = re.compile("^✗ (?!Nothing was)", re.MULTILINE)
CHANGES_NOTHING = [[verb] for verb in ("ls", "show", "tree", "log", "search", "diff", "stats", "context", "doctor")]


def _ids_in(shown: str) -> set[str]:
    """The ids in what was shown: they are yellow; off the active path they are dim, at the start of the line."""
    found: set[str] = set()
    for line in shown.splitlines():
        dim = re.match(r"\x1b\[2m([0-9a-f]{4,})  ", line)
        found |= {text.strip() for text, style in spans(line) if style == ID} | ({dim[1]} if dim else set())
    return found - {""}


def _known_ids(journal: st.Journal, shown: str) -> set[str]:
    """Those of them that mean one thread, or one entry of a thread."""
    threads = [thread.id for thread in journal.list_threads(limit=None, is_archived=None)]
    return {word for word in _ids_in(shown) if _is_id(journal, threads, word)}


GONE = {"tidy": {"b2a8"}, "backup": {BACKUP}}
"""Threads that were deleted after they were shown; and the ids of backups, which are no ids of the store."""


def _is_id(journal: st.Journal, threads: list[str], word: str) -> bool:
    thread, _, entry = word.partition(":")
    known = journal.thread_ids(thread, limit=2)
    if entry:
        return len(known) == 1 and len(journal.entry_ids(known[0], entry, limit=2)) == 1
    return len(known) == 1 or any(len(journal.entry_ids(thread, word, limit=2)) == 1 for thread in threads)


@pytest.mark.parametrize("screen", ["store.db", "store.jsonl"], indirect=True)
@pytest.mark.parametrize("name", [name for name in SHOWN if not name.startswith("help")])
def test_every_command_that_is_shown_works(screen: Screen, name: str) -> None:
    """What is shown as a command, in normal brightness, is typed at once; ``…`` stands for any words."""
    commands: set[str] = set()
    for shown in steps(screen, name):
        commands |= _commands(shown)
        for command in sorted(_commands(shown)):
            words = _words(command)
            with put_back(screen.store.parent):
                done = "" if words in NOT_TYPED else plain(screen.run(*words, typed="n\n", code=None))
            assert not FAILED.search(done), f"{command}: {done}"
    assert commands or name not in WITH_COMMANDS


WITH_COMMANDS = {
    "home",
    "ls-page",
    "tree-large",
    "show",
    "search",
    "diff",
    "stats",
    "doctor",
    "moves",
    "import",
    "secrets",
}

NOT_TYPED = (
    ["new", "--store", "stor.db"],
    ["demo"],
    ["ls", "--", "--limits"],
)
"""A new store, the demo, which has a test of its own, and an id that is none."""


def _words(command: str) -> list[str]:
    """The arguments of a command, as a shell gives them to it."""
    return shlex.split(command.replace("…", "words").replace(" ~/", f" {Path.home()}/"))[1:]


def _commands(shown: str) -> set[str]:
    pieces = [text.strip() for line in shown.splitlines() for text, style in spans(line) if style in {"", "0"}]
    return {piece for piece in pieces if piece.startswith("sessiontree ")}


def test_sums_agree(screen: Screen) -> None:
    """The list, the counts of the store, those of each thread, and the head above each thread."""
    stats = json.loads(screen.run("stats", "--json"))["stats"]
    with st.open(screen.store) as journal:
        threads = list(journal.list_threads(limit=None, is_archived=None))
    one_by_one = {thread.id: json.loads(screen.run("stats", thread.id, "--json"))["stats"] for thread in threads}
    for name in (
        "entries",
        "prompts",
        "messages",
        "input_tokens",
        "cached_tokens",
        "output_tokens",
        "estimated_tokens",
    ):
        assert sum(one[name] for one in one_by_one.values()) == stats[name], name
    assert stats["threads"] == len(threads)
    cost = sum(stats["cost"].values()) + sum(stats["estimated_cost"].values())
    assert sum(stats["model_costs"].values()) == pytest.approx(cost)
    assert sum(stats["folder_costs"].values()) == pytest.approx(cost)
    assert sum(stats["days"].values()) == stats["entries"]
    assert sum(step["calls"] for step in stats["steps"].values()) == sum(stats["tools"].values())
    rows = [line.split("\t") for line in screen.piped("ls").splitlines()]
    assert {row[0]: int(row[2]) for row in rows} == {name: one["entries"] for name, one in one_by_one.items()}
    assert sum(float(row[4]) for row in rows if row[4]) == pytest.approx(cost)
    assert f"{len(rows)} of {len(threads)}" in plain(screen.run("ls"))
    assert f"{len(threads)} threads" in plain(screen.run())
    assert f"{len(threads)} threads can be listed" in plain(screen.run("doctor"))
    screen.resize(132)
    listed = plain(screen.run("ls")).splitlines()
    for row in rows:
        shown = plain(screen.run("tree", row[0])).splitlines()[1].split(" · ")
        line = next(line for line in listed if row[0][-4:] in line)
        assert f"{int(row[2]):,} entries" in shown, shown
        assert all(part in line.split() for part in shown if "$" in part), (line, shown)


@pytest.mark.parametrize("name", [name for name in READING if not name.startswith(("show-hostile", "help", "tail"))])
def test_every_command_prints_json_when_asked(screen: Screen, name: str) -> None:
    assert json.loads(screen.run(*READING[name], "--json"))["schema_version"] == 1


def test_a_reading_verb_makes_no_store_and_says_which_one_was_meant(screen: Screen) -> None:
    missing = screen.store.with_name("stroe.db")
    screen.resize(400)  # a temporary folder may have a long name
    for verb in ("ls", "stats", "doctor", "search x", "tree @", "show @", "undo @", "rm x"):
        shown = plain(screen.run(*verb.split(), "--store", str(missing), code=1))
        assert "There is no store at" in shown
        assert "store.db" in shown
    assert not missing.exists()


def test_the_default_store_is_empty_before_it_exists(screen: Screen, tmp_path: Path) -> None:
    screen.set("XDG_DATA_HOME", str(tmp_path / "data"))
    screen.store = Path()
    shown = plain(screen.run("ls", "--store", "memory:"))
    assert "No threads here yet" in shown
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("url", ["postgresql://ann:hunter2@db/talks", "postgresql://db/talks?password=hunter2&x=1"])
def test_a_password_is_never_shown(screen: Screen, url: str) -> None:
    for arguments in (("config", "show"), ("config", "show", "--json")):
        shown = screen.run(*arguments, "--store", url)
        assert "hunter2" not in shown
        assert "***" in shown
    assert "hunter2" not in screen.run("ls", "--store", url.replace("postgresql", "postgrasql"), code=2)


def test_markdown_on_a_terminal_is_harmless(screen: Screen) -> None:
    for kind in ("md", "json", "jsonl"):
        assert "\x1b" not in screen.run("export", "odd-keys", "--to", kind)


@pytest.mark.parametrize("width", [40, 200])
def test_the_demo_has_six_steps_fits_the_screen_and_says_what_to_do_next(screen: Screen, width: int) -> None:
    screen.resize(width)
    shown = plain(screen.run("demo")).splitlines()
    assert [line for line in shown if cell_width(line) > width] == []
    assert [line[0] for line in shown if re.match(r"\d  ", line)] == list("123456")
    words = "\n".join(shown)
    for part in (
        "SIGKILL",
        "all 6 acknowledged entries",
        "! cut off: edit src/login.py",
        "◀ head",
        "undo:",
        "is sound",
    ):
        assert part in words
    assert [line.split()[0] for line in shown[-3:]] == ["sessiontree", "sessiontree", "docs/tutorial/first-journal.md"]


def test_a_large_thread_shows_every_message_of_the_user(screen: Screen) -> None:
    screen.resize(200)
    shown = plain(screen.run("tree", LOGS))
    with st.open(screen.store) as journal:
        prompts = [entry for entry in journal.entries(LOGS) if entry.type == "user_message"]
    assert len([line for line in shown.splitlines() if "❯ " in line]) == len(prompts)


def test_an_answer_that_was_cut_off_is_not_drawn_as_a_whole_one(screen: Screen) -> None:
    with st.open(screen.store) as journal:
        journal.append("cut", st.user("How long is it?"), create=True)
        journal.append("cut", replace(st.assistant("About three"), is_partial=True))
    assert "! partial answer: About three" in plain(screen.run("tree", "cut"))
    assert "● About three" not in plain(screen.run("tree", "cut"))
