"""What every command shows, from 40 to 200 columns. ``UPDATE_SCREENS=1 pytest tests/cli/test_screens.py`` writes it anew.

``make pictures`` writes the pictures in docs/pictures as well; both are compared with what the commands show today.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sample_store import LOGS, NOW, make_sample
from screens import THEMES, Screen, picture, plain, spans
from sessiontree.cli.app import COMMANDS
from sessiontree.cli.context import CliContext
from sessiontree.cli.screen.lines import ID
from sessiontree.cli.screen.picker import PickerState, matching, picker_lines
from sessiontree.cli.screen.tree import path_lines
from sessiontree.cli.views import build_view
from sessiontree.render.cells import cell_width

WIDTHS = (40, 60, 80, 100, 132, 200)
FOLDER = Path(__file__).parent / "screens"
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
IS_UPDATE = bool(os.environ.get("UPDATE_SCREENS"))

READING: dict[str, tuple[str, ...]] = {
    "home": (),
    "ls": ("ls",),
    "ls-page": ("ls", "-n", "3", "-p", "2"),
    "tree": ("tree", "3a19"),
    "tree-large": ("tree", "8b1f"),
    "tree-failed": ("tree", "3a19", "--failed"),
    "log": ("log", "3a19", "-n", "8"),
    "log-graph": ("log", "--graph", "3a19"),
    "show": ("show", "3a19"),
    "show-turn": ("show", "3a19:d7b0"),
    "show-markdown": ("show", "c4e7"),
    "show-hostile": ("show", "odd-keys"),
    "search": ("search", "load_users"),
    "diff": ("diff", "3a19:cache-idea", "3a19:good"),
    "stats": ("stats",),
    "stats-thread": ("stats", "3a19"),
    "doctor": ("doctor",),
}
ERRORS: dict[str, tuple[str, ...]] = {
    "verb": ("lst",),
    "thread": ("show", "3b19"),
    "entry": ("show", "3a19:4c95"),
    "ambiguous": ("show", "3a19:000"),
    "option": ("ls", "--limits"),
    "argument": ("diff", "3a19"),
    "dialect": ("context", "3a19", "--dialect", "antropic"),
}
MOVES: tuple[tuple[str, ...], ...] = (
    ("rewind", "3a19:good"),
    ("undo", "3a19"),
    ("redo", "3a19"),
    ("fork", "3a19:1bfb", "--id", "other-way", "--title", "Logout, another way"),
    ("label", "3a19:1bfb", "logout"),
    ("archive", "90bd"),
    ("rm", "90bd"),
)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("sample") / "store.db"
    make_sample(path)
    return path


@pytest.fixture
def screen(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Screen:
    for file in sample.parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    return Screen(monkeypatch, tmp_path / "store.db")


def show_reading(screen: Screen, name: str) -> str:
    return screen.run(*READING[name])


def show_errors(screen: Screen, _name: str) -> str:
    return "\n".join(_typed(arguments) + screen.run(*arguments, code=None) for arguments in ERRORS.values())


def show_moves(screen: Screen, _name: str) -> str:
    """The verbs that move the head, on a copy of the store: what they do must not be seen by the next width."""
    copies = {file: file.read_bytes() for file in screen.store.parent.iterdir()}
    shown = _moved(screen)
    for file in screen.store.parent.iterdir():
        file.unlink()
    for file, content in copies.items():
        file.write_bytes(content)
    return re.sub(r"(\[y/N\] ?(?:\x1b\[0m)? )", r"\1n\n", shown)  # a terminal shows what is typed


def _moved(screen: Screen) -> str:
    return "\n".join(_typed(arguments) + screen.run(*arguments, typed="n\n", code=None) for arguments in MOVES)


def show_picker(screen: Screen, _name: str) -> str:
    screen.run("ls")
    cli = CliContext()
    try:
        threads = cli.journal.list_threads(is_empty=False).threads
        width = cli.out.width
        found = tuple(matching("log", threads, NOW))
        preview_width = width - min(62, width * 48 // 100) - 3 if width >= 90 else width - 1
        view = build_view(cli, found[0], cli.journal.path(found[0].id), width=preview_width)
        state = PickerState(verb="show", query="log", threads=found, total=len(threads))
        lines = picker_lines(state, list(path_lines(view, preview_width))[-12:], cli.threads, NOW, width, 18)
        return "".join(line.painted(has_colour=True) + "\n" for line in lines)
    finally:
        cli.close()


def _typed(arguments: tuple[str, ...]) -> str:
    return f"\x1b[2m$\x1b[0m \x1b[1msessiontree {' '.join(arguments)}\x1b[0m\n"


SHOWN: dict[str, Callable[[Screen, str], str]] = {
    **dict.fromkeys(READING, show_reading),
    "errors": show_errors,
    "moves": show_moves,
    "picker": show_picker,
}


@pytest.mark.parametrize("name", SHOWN)
def test_every_command_shows_the_same_as_before_and_fits_the_screen(screen: Screen, name: str) -> None:
    for width in WIDTHS:
        screen.resize(width)
        shown = SHOWN[name](screen, name)
        for line in plain(shown).splitlines():
            is_typed = line.startswith("$ ")
            assert is_typed or cell_width(line) <= width, f"{width}: {line}"
            assert line.isprintable(), f"{width}: {line!r}"
        stored = FOLDER / f"{name}-{width}.txt"
        if IS_UPDATE:
            FOLDER.mkdir(exist_ok=True)
            stored.write_text(_stable(plain(shown)), encoding="utf-8")
        assert _stable(plain(shown)) == stored.read_text(encoding="utf-8")


def _stable(shown: str) -> str:
    """Without what differs from run to run: sizes of files, and the place of the store."""
    text = re.sub(r"[\d.]+ kB", "<size>", re.sub(r"(?m)^sqlite  .*$", "sqlite  <place>", shown))
    return re.sub(r"(?m) +$", "", re.sub(r"(?m)^(Last threads) +", r"\1 ", text))


@pytest.mark.parametrize("name", READING)
def test_the_words_are_the_same_without_colour(screen: Screen, name: str) -> None:
    coloured = screen.run(*READING[name])
    screen.set("NO_COLOR", "1")
    bare = screen.run(*READING[name])
    assert "\x1b" not in bare
    assert bare == plain(coloured)


@pytest.mark.parametrize(
    "name", ["home", "tree", "tree-large", "log-graph", "show", "diff", "stats-thread", "doctor", "search"]
)
def test_a_dumb_terminal_gets_ascii_of_the_same_width(screen: Screen, name: str) -> None:
    usual = plain(screen.run(*READING[name])).splitlines()
    screen.set("TERM", "dumb")
    simple = screen.run(*READING[name]).splitlines()
    assert "".join(simple).isascii()
    assert [len(line) for line in simple] == [cell_width(line) for line in usual]


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize(
    "name", ["home", "ls", "tree", "tree-large", "log-graph", "show", "search", "diff", "moves", "errors"]
)
def test_every_id_and_every_command_can_be_typed(screen: Screen, name: str, width: int) -> None:
    screen.resize(width)
    shown = _moved(screen) if name == "moves" else SHOWN[name](screen, name)
    with st.open(screen.store) as journal:
        threads = [thread.id for thread in journal.list_threads(limit=None, is_archived=None)]
        for text, style in (span for line in shown.splitlines() for span in spans(line)):
            word = text.strip()
            if style == ID and word:
                assert _is_id(journal, threads, word), word
    for command in re.findall(r"sessiontree ([a-z]+(?: [^\s\"·]+)*)", plain(shown).replace("…", '"')):
        _assert_can_be_typed(screen, [word for word in command.split() if word != "opens"], shown)


def _is_id(journal: st.Journal, threads: list[str], word: str) -> bool:
    known = journal.thread_ids(word, limit=2)
    return len(known) == 1 or any(len(journal.entry_ids(thread, word, limit=2)) == 1 for thread in threads)


def _assert_can_be_typed(screen: Screen, words: list[str], shown: str) -> None:
    """The verb is known, and so is every address behind it; what the user mistyped and forks made meanwhile are not."""
    assert words[0] in COMMANDS or words[0] in {"lst", "--help"}, words
    for word in words[1:]:
        if re.fullmatch(r"[0-9a-f]{4}(:[\w-]+)?", word) and f"$ sessiontree {' '.join(words)}" not in plain(shown):
            assert screen.run("show", word)


def test_sums_agree(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    stats = json.loads(screen.run("stats", "--json"))["stats"]
    with st.open(screen.store) as journal:
        threads = list(journal.list_threads(limit=None, is_archived=None))
        entries = sum(
            len([e for e in journal.entries(t.id) if e.type not in {"label", "turn_marker"}]) for t in threads
        )
    one_by_one = [json.loads(screen.run("stats", thread.id, "--json"))["stats"] for thread in threads]
    for name in ("entries", "prompts", "messages", "input_tokens", "cached_tokens"):
        assert sum(one[name] for one in one_by_one) == stats[name], name
    assert (stats["entries"], stats["threads"]) == (entries, len(threads))
    cost = sum(stats["cost"].values()) + sum(stats["estimated_cost"].values())
    assert sum(stats["model_costs"].values()) == pytest.approx(cost)
    assert sum(stats["folder_costs"].values()) == pytest.approx(cost)
    assert sum(step["calls"] for step in stats["steps"].values()) == sum(stats["tools"].values())


@pytest.mark.parametrize("name", [name for name in READING if name != "show-hostile"])
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


EVIL = (
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b]52;c;cGFzcw==\x07 \x9b2J \x1bP1$r\x1b\\ \u202egnp.exe\u2066 \x07\r\n\t"
    "\u200b\ufeff \U000e0041 " + "長い" * 30
)


def fill_with_evil(store: Path) -> None:
    """A store with hostile text in every field that takes any text."""
    with st.open(store) as journal:
        fields: dict[str, Any] = dict.fromkeys(("title", "workspace", "vendor", "model", "status"), EVIL)
        journal.create_thread("evil", **fields, origin={"format": EVIL.replace("/", "")}, tags=(EVIL,))
        first = journal.append("evil", st.user(EVIL))
        for name in ("bash", "edit", "read", "grep", "web_search", "task", "todo", EVIL):
            keys = ("command", "path", "old_string", "new_string", "pattern", "query", "description", "content")
            given = json.dumps(
                {**dict.fromkeys(keys, EVIL), EVIL: EVIL, "todos": [{"content": EVIL, "status": "in_progress"}]}
            )
            journal.append(
                "evil", st.assistant(EVIL, calls=[st.call(name + "c", name, given)], reasoning=EVIL, model=EVIL)
            )
            journal.append("evil", st.tool_result(name + "c", EVIL + "\n" + EVIL, name=name, is_error=name != "edit"))
        journal.append("evil", st.Compaction(id="k", summary=EVIL, tokens_before=9))
        journal.append("evil", st.Custom(name=EVIL, data=EVIL))
        journal.append("evil", st.RunFailure(error=EVIL))
        journal.label("evil", first.id, EVIL.replace("\r\n\t", ""))
        journal.rewind("evil", first.id)
        journal.append(
            "evil", st.assistant(EVIL, model=EVIL, usage=st.Usage(input_tokens=1, cost=1.0, currency="X\x1b"))
        )
        journal.fork("evil", new_id="evil-fork", title=EVIL)


@pytest.mark.parametrize("width", [40, 100, 160])
def test_hostile_content_in_every_field_is_harmless(screen: Screen, tmp_path: Path, width: int) -> None:
    screen.store = tmp_path / "evil.db"
    fill_with_evil(screen.store)
    screen.resize(width)
    for command in (
        "", "ls", "tree evil", "tree evil --full", "tree evil -a", "log evil", "log evil --graph", "show evil", "show evil --full",
        "search red", "diff evil evil-fork", "diff evil evil@{-1} --full", "stats", "stats evil", "doctor", "context evil",
        "show evil:nope", "rewind evil~1", "undo evil", "label evil", "fork evil --id more", "export evil --to md", "rm evil",
    ):  # fmt: skip
        shown = plain(screen.run(*command.split(), typed="n\n", code=None))
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown), command
        assert "owned" not in shown or command.startswith("search"), command
        if not command.startswith(("context", "export", "label")):
            lines = re.sub(r"(\[y/N\] )", r"\1\n", shown).splitlines()
            assert [line for line in lines if cell_width(line) > width] == [], command


def test_a_large_thread_shows_every_message_of_the_user(screen: Screen) -> None:
    screen.resize(200)
    shown = plain(screen.run("tree", LOGS))
    with st.open(screen.store) as journal:
        prompts = [entry for entry in journal.entries(LOGS) if entry.type == "user_message"]
    assert len([line for line in shown.splitlines() if "❯ " in line]) == len(prompts)


def pictured() -> Iterator[tuple[str, int]]:
    yield from ((name, 100) for name in SHOWN if name not in {"ls-page", "tree-failed", "show-hostile", "stats-thread"})
    yield from (("tree", 40), ("show", 40), ("diff", 132))


@pytest.mark.parametrize(("name", "width"), list(pictured()))
def test_the_pictures_of_the_docs_are_what_the_commands_show(screen: Screen, name: str, width: int) -> None:
    screen.resize(width)
    shown = SHOWN[name](screen, name)
    for theme in THEMES:
        file = PICTURES / f"{name}-{width}-{theme}.svg"
        made = picture(re.sub(r"[\d.]+ kB", "2.6 GB", re.sub(r"/\S*/store.db", "~/store.db", shown)), theme, width)
        if IS_UPDATE:
            PICTURES.mkdir(exist_ok=True)
            file.write_text(made, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == made, "run `make pictures`, and look at them"
