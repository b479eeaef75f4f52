"""Lists with ids and titles that nobody would choose, in every locale; sums that agree."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st
from cli_shell import Shell
from cli_shell import screen as whole_screen
from sample_store import NOW
from screens import Screen, plain
from sessiontree.cli import context
from sessiontree.cli import summaries as cli_summaries
from sessiontree.render.cells import cell_width

FAMILY = "👨‍👩‍👧‍👦"


@pytest.fixture
def odd(screen: Screen, tmp_path: Path) -> Screen:
    screen.store = tmp_path / "odd.db"
    with st.open(screen.store, durability="process_crash", clock=lambda: int(NOW.timestamp()) * 10**9) as journal:
        for name, title in (
            ("agent:main@telegram:5551234:x", "Holiday in the mountains"),
            ("019a8c5e-41f0-7a53-9c1e-5b0f7d2e3a19", FAMILY * 30),
            ("plain", "a\u200db" * 40 + "\u3000wide\u00a0space"),
            ("z" * 30 + "~1", "Many\nlines\nin one title"),
        ):
            journal.create_thread(name, title=title)
            journal.append(name, st.user("hello"))
    return screen


@pytest.mark.parametrize("width", [40, 60, 65, 70, 80, 100])
def test_lists_keep_titles_and_times_next_to_any_id(odd: Screen, width: int) -> None:
    odd.resize(width)
    for command in ("", "ls", "tree plain", "show plain", "search hello"):
        shown = plain(odd.run(*command.split()))
        assert [line for line in shown.splitlines() if cell_width(line) > width] == [], command
        if command in {"", "ls"}:
            for title in ("Holiday in", FAMILY, "Many lines"):
                line = next(line for line in shown.splitlines() if title in line)
                assert line.endswith("now"), line


def test_a_title_of_many_lines_is_one_heading_in_markdown(odd: Screen) -> None:
    for arguments in (("show", "zzzz"), ("export", "zzzz", "--to", "md")):
        assert odd.piped(*arguments).startswith("# Many lines in one title\n")


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_CTYPE": "C"}])
def test_the_c_locale_gets_glyphs_of_ascii(tmp_path: Path, locale: dict[str, str]) -> None:
    shell = Shell(tmp_path)
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONUTF8"):
        shell.environment.pop(name, None)
    shell("new", "A talk", "--id", "talk")
    shell("append", "talk", "hello")
    shell.environment |= locale
    for arguments in (("show", "talk"), ("tree", "talk"), ("rewind", "nope")):
        assert whole_screen(shell.terminal(*arguments)).isascii()
    shell.environment |= dict.fromkeys(locale, "C.UTF-8")
    assert not whole_screen(shell.terminal("show", "talk")).isascii()


def test_diff_marks_what_is_active_on_either_side(screen: Screen) -> None:
    with st.open(screen.store, durability="process_crash") as journal:
        journal.create_thread("two")
        start = journal.append("two", st.user("Which one?"))
        journal.append("two", st.assistant("The left one."), id="left")
        journal.rewind("two", start.id)
        journal.append("two", st.assistant("The right one."), id="right")
    for sides in (("two:left", "two:right"), ("two:right", "two:left")):
        shown = plain(screen.run("diff", *sides))
        assert "● The right one." in shown
        assert "○ The left one." in shown


def test_home_and_stats_count_the_same_and_say_what_a_list_leaves_out(odd: Screen) -> None:
    odd.run("archive", "plain")
    odd.run("new", "nothing in it", "--id", "empty")
    assert "5 threads, 2 archived or empty" in plain(odd.run())
    stats = plain(odd.run("stats"))
    assert "5 threads" in stats
    assert "2 archived or empty" in stats
    assert "3 of 3" in plain(odd.run("ls"))
    assert "stats --since" not in plain(odd.run("stats", "--since", "7d")).replace("stats --since 7d", "", 1)


def test_home_and_stats_count_the_same_in_a_store_too_large_to_shorten_its_ids(
    odd: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "_MOST_SHORTENED", 2)
    monkeypatch.setattr(cli_summaries, "_MOST_COUNTED", 3)
    odd.run("archive", "plain")
    for command in ("", "stats"):
        assert "4 threads" in plain(odd.run(*command.split()))
    assert "3 shown, 4 in the store" in plain(odd.run("ls"))


def test_an_unknown_option_is_not_answered_with_another_one(odd: Screen) -> None:
    shown = plain(odd.run("show", "plain", "--since", "foo", code=2))
    assert "did you mean" not in shown
    assert "did you mean  --full" in plain(odd.run("show", "plain", "--ful", code=2))


def test_a_writing_verb_without_a_store_does_not_speak_of_reading(odd: Screen) -> None:
    for verb in ("append x hello", "rewind x", "fork x", "show x"):
        shown = plain(odd.run(*verb.split(), "--store", "my other.db", code=1))
        assert "There is no store at my other.db.\n" in shown
        assert "sessiontree new --store 'my other.db'" in shown


def test_a_path_below_the_home_folder_is_found(screen: Screen, tmp_path: Path) -> None:
    screen.set("HOME", str(tmp_path))
    for address in ("~/store.db", "sqlite:///~/store.db"):
        assert "3a19" in plain(screen.run("ls", "--store", address))
