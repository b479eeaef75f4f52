"""What a newcomer gets wrong is answered in words that help, and nothing is made by accident."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import sessiontree as st
from sample_store import SHOP
from screens import Screen, plain
from sessiontree.cli.context import CliContext
from sessiontree.cli.screen.lines import Line
from sessiontree.cli.screen.picker import PickerRow, PickerState, picker_lines
from sessiontree.cli.summaries import titles
from sessiontree.journal.address import data_file


def shown(screen: Screen, *arguments: str, typed: str = "", code: int = 0) -> str:
    return " ".join(plain(screen.run(*arguments, typed=typed, code=code)).split())


@pytest.mark.parametrize("arguments", [("show", "019a"), ("search", "日本語"), ("stats", "7d03")])
def test_a_thread_has_one_title_wherever_it_is_named(screen: Screen, arguments: tuple[str, ...]) -> None:
    answer = plain(screen.run(*arguments, code=None))
    assert "日本語のテスト" in next(line for line in answer.splitlines() if "7d03" in line)


def test_an_import_that_finds_nothing_makes_no_store(
    screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    screen.store = tmp_path / "empty" / "other.db"
    screen.store.parent.mkdir()
    assert "no sessions" in shown(screen, "import")
    assert "no sessions" in shown(screen, "import", "--watch")
    assert not screen.store.exists()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (
            ("continue", "3a19", "--in", "claud"),
            "--in takes claude-code, codex, gemini, opencode, pi or goose, not “claud”. did you mean claude-code",
        ),
        (("ls", "-n", "0"), "--limit takes a whole number from 1, not “0”."),
        (("web", "--port", "abc"), "--port takes a whole number from 0 to 65,535, not “abc”."),
        (("tail", "3a19", "--for", "-1"), "--for takes a number from 0, not “-1.0”."),
        (("lease", "3a19", "--ttl", "long"), "--ttl takes a number, not “long”."),
        (("config", "shwo"), "ACTION takes show, not “shwo”. did you mean show"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_named_with_what_it_takes(
    screen: Screen, arguments: tuple[str, ...], answer: str
) -> None:
    assert shown(screen, *arguments, code=2).startswith(f"✗ {answer}")


def test_ids_that_fit_a_part_are_in_a_column(screen: Screen) -> None:
    with st.open(screen.store) as journal:
        journal.append("longer-3a19", st.user("hello"), create=True)
    _, *rows = plain(screen.run("tree", "3a19", code=2)).splitlines()
    assert [row[:17] for row in rows] == ["    e3a19        ", "    longer-3a19  "]


def test_a_page_after_the_last_is_no_failed_filter(screen: Screen) -> None:
    answer = "✗ There is no page 2. the first one: sessiontree ls -n 9"
    assert shown(screen, "ls", "-n", "9", "-p", "2", code=1) == answer


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("redo", "3a19"), "There is nothing to redo in 3a19: its last change was not an undo."),
        (("undo", "odd-keys"), "There is nothing to undo in odd-keys: no move of its head is left."),
        (("uncompact", "90bd"), "There is no compaction to take back in 90bd."),
    ],
)
def test_nothing_to_take_back_is_said_with_the_id_that_was_typed(
    screen: Screen, arguments: tuple[str, ...], answer: str
) -> None:
    found = shown(screen, *arguments, code=1)
    assert found.startswith(f"✗ {answer}")
    assert SHOP not in found


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("rewind", "3a19", "good"), "sessiontree rewind 3a19:good"),
        (("new", "Plan", "the", "release"), "sessiontree new 'Plan the release'"),
        (("append", "3a19", "hello", "world"), "sessiontree append 3a19 'hello world'"),
    ],
)
def test_a_word_too_many_is_answered_with_what_was_meant(
    screen: Screen, arguments: tuple[str, ...], wanted: str
) -> None:
    found = shown(screen, *arguments, code=2)
    assert "too many" in found
    assert f"did you mean {wanted}" in found


def test_values_that_cannot_be_read_are_named_with_their_option(screen: Screen) -> None:
    assert "cannot read --since banana as a time" in shown(screen, "ls", "--since", "banana", code=2)
    assert "--limit takes a whole number from 1, not “x”" in shown(screen, "ls", "--limit", "x", code=2)


def test_a_question_without_an_answer_leaves_its_line(screen: Screen) -> None:
    assert "[y/N] \nNothing was deleted." in plain(screen.run("rm", "3a19", typed="", code=2))


def test_a_person_is_told_that_a_message_is_awaited(screen: Screen) -> None:
    assert "Ctrl-D on a line of its own ends it" in shown(screen, "append", "3a19", typed="hello\n")


def test_the_head_is_called_by_the_entry_that_is_shown(screen: Screen) -> None:
    screen.run("rewind", "3a19:b438")
    screen.run("label", "3a19:b438", "start")
    with st.open(screen.store) as journal:
        leaf = journal.thread(SHOP).leaf
    assert leaf is not None
    assert shown(screen, "rewind", f"3a19:{leaf}").startswith("✓ head moved to b438 [start] b438")


def test_a_hint_names_the_store_that_was_given(screen: Screen) -> None:
    assert "go on: sessiontree append --store mine.db " in shown(screen, "--store", "mine.db", "new", "hello")


def test_advice_after_an_error_names_the_store_that_was_given(screen: Screen) -> None:
    with st.open(screen.store.parent / "mine.db") as journal:
        journal.append("talk", st.user("hello"), create=True)
    answer = shown(screen, "--store", "mine.db", "show", "nowhere", code=1)
    assert "sessiontree ls --store mine.db" in answer
    assert shown(screen, "--store", "mine.db", "shw", code=2).endswith("did you mean show Show a conversation")


def test_markdown_of_a_compacted_thread_has_the_whole_conversation(screen: Screen) -> None:
    with st.open(screen.store) as journal:
        for number in range(8):
            journal.append_many("long", [st.user(f"question {number}"), st.assistant("yes")], create=True)
        policy = st.CompactionPolicy(keep_recent_tokens=1)
        journal.compact("long", lambda _request: "what was said", policy=policy, force=True)
        context = journal.export("long")
    whole = plain(screen.run("export", "long", "--to", "md"))
    assert "question 1" not in context
    assert [f"question {number}" in whole for number in range(8)] == [True] * 8
    assert "## Summary of the conversation so far\n\nwhat was said" in whole


def test_the_picker_calls_an_untitled_thread_by_its_first_words(screen: Screen) -> None:
    with st.open(screen.store) as journal:
        thread = journal.append_many("untitled", [st.user("where is the spanner?")], create=True)[0].thread_id
        journal.update_thread(thread, title="")
    screen.run("ls")
    with closing(CliContext()) as cli:
        named = {one.id: words for one, words in titles(cli, cli.journal.list_threads().threads)}
    assert named["untitled"] == "where is the spanner?"


@pytest.mark.parametrize("width", [40, 100])
def test_a_picker_says_that_nothing_fits_and_always_how_to_leave(width: int) -> None:
    state = PickerState(verb="show", query="zzz", rows=(), total=9, keys=(("tab", "tree"), ("^f", "fork")))
    drawn = [line.plain for line in picker_lines(state, [], width, 20)]
    assert "nothing fits" in drawn[2]
    assert drawn[-1].rstrip().endswith("esc leave")
    assert max(map(len, drawn)) <= width


@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("before", ["many words ", "日本語の題"])
def test_a_picker_shows_a_hit_at_the_end_of_a_long_title(width: int, before: str) -> None:
    row = PickerRow(id="t1", short="a6b1", words=before * 20 + "Needle", right=Line("now"), found_by="")
    state = PickerState(verb="show", query="needle", rows=(row,), total=1)
    drawn = picker_lines(state, [], width, 20)
    assert "Needle" in drawn[2].plain
    assert max(line.width for line in drawn) <= width


@pytest.mark.parametrize("height", [8, 10, 14, 15, 24])
@pytest.mark.parametrize("width", [40, 100])
def test_a_picker_on_a_low_screen_still_says_how_to_leave(width: int, height: int) -> None:
    rows = tuple(
        PickerRow(id=str(one), short=f"a6b{one}", words="words", right=Line("now"), found_by="") for one in range(30)
    )
    state = PickerState(verb="show", query="", rows=rows, total=30)
    preview = [Line(f"line {number}") for number in range(30)]
    drawn = [line.plain for line in picker_lines(state, preview, width, height)]
    assert len(drawn) == height
    assert drawn[-1].rstrip().endswith("esc leave")


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_interrupted_import_says_that_what_came_in_is_kept(
    screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sessiontree.transfer.formats.import_sessions", interrupted)
    answer = shown(screen, "import", str(tmp_path), "--from", "pi", *options, code=130)
    kept = "" if options else "What came in so far is kept; the same command brings in the rest. "
    assert answer == f"{kept}✗ Interrupted."


ASKED_BY_NOBODY = """
import os, sys
from sessiontree.cli.context import CliContext, MissingError, is_missing
cli = CliContext()
cli.store_flag = "missing.db"
try:
    cli.readable_url  # what is loaded on first use must be there before nobody asks
except MissingError:
    pass
if os.getuid() == 0:
    os.setuid(65534)
print(is_missing(sys.argv[1] + "/closed/store.db"))
cli.store_flag = sys.argv[1] + "/unlisted/store.db"
try:
    cli.readable_url
except MissingError as error:
    print("missing")
"""


def test_a_store_is_called_missing_only_if_it_can_be_seen_that_it_is(tmp_path: Path) -> None:
    """In a child that is nobody, as nothing is closed to root."""
    for name, mode in (("closed", 0o000), ("unlisted", 0o111)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "other.db").touch()
        (tmp_path / name).chmod(mode)
    child = [sys.executable, "-c", ASKED_BY_NOBODY, "."]
    tmp_path.chmod(0o755)
    done = subprocess.run(child, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "False\nmissing\n", done.stderr


def test_the_doctor_says_that_the_default_store_is_not_there_yet(screen: Screen, tmp_path: Path) -> None:
    screen.set("XDG_DATA_HOME", str(tmp_path / "data"))
    screen.store = Path(data_file())
    screen.store.parent.mkdir(parents=True)
    answer = shown(screen, "doctor")
    assert "There is no store yet at" in answer
    assert "opens" not in answer
    assert not screen.store.exists()
