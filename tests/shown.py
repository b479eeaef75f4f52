"""Everything that the commands show on a terminal, by name: what is typed, on which store, on which machine."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sample_store import NOW, SHOP
from screens import Screen, put_back
from sessiontree.cli.context import CliContext
from sessiontree.cli.picker import NO_RESULTS, thread_preview
from sessiontree.cli.screen.picker import (
    PickerState,
    entry_rows,
    matching,
    picker_lines,
    preview_width,
    thread_rows,
)
from sessiontree.cli.summaries import titles
from sessiontree.cli.views import view_of
from sessiontree.journal.address import data_file

DATA = Path(__file__).parent / "data" / "transcripts"
BACKUP = "20261116T120400.000000Z-3b6ac2d1f00e4c11"
KEY = "AKIA" + "Q3EGRJ7XV2LWKZ4D"

READING: dict[str, tuple[str, ...]] = {
    "home": (),
    "ls": ("ls",),
    "ls-page": ("ls", "-n", "3", "-p", "2"),
    "tree": ("tree", "3a19"),
    "tree-large": ("tree", "8b1f"),
    "tree-failed": ("tree", "3a19", "--failed"),
    "log": ("log", "3a19", "-n", "8"),
    "log-graph": ("log", "--graph", "3a19"),
    "log-moves": ("log", "3a19", "--moves"),
    "show": ("show", "3a19"),
    "show-turn": ("show", "3a19:d7b0"),
    "show-markdown": ("show", "c4e7"),
    "show-hostile": ("show", "odd-keys"),
    "search": ("search", "load_users"),
    "diff": ("diff", "3a19:cache-idea", "3a19:good"),
    "context": ("context", "90bd"),
    "tail": ("tail", "3a19", "-n", "9", "--for", "0.001"),
    "labels": ("label", "3a19"),
    "lease": ("lease", "3a19"),
    "stats": ("stats",),
    "stats-thread": ("stats", "3a19"),
    "doctor": ("doctor",),
    "config": ("config", "show"),
    "help": ("--help",),
    "help-verb": ("rewind", "--help"),
}
"""One command each, that changes nothing."""

WRITING: dict[str, tuple[tuple[str, ...], ...]] = {
    "moves": (
        ("rewind", "3a19:good"),
        ("undo", "3a19"),
        ("redo", "3a19"),
        ("fork", "3a19:1bfb", "--id", "other-way", "--title", "Logout, another way"),
        ("label", "3a19:1bfb", "logout"),
        ("archive", "90bd"),
        ("rm", "90bd"),
    ),
    "new": (
        ("new", "Plan the release", "--id", "plan"),
        ("append", "plan", "Begin with the changelog."),
        ("append", "plan", "Then the tag.", "--dry-run"),
        ("lease", "plan", "--acquire", "worker-1"),
        ("lease", "plan", "--release"),
    ),
    "compact": (
        ("compact", "8b1f", "--keep-recent", "400"),
        ("uncompact", "8b1f"),
        ("compact", "3a19", "--dry-run"),
    ),
    "tidy": (
        ("archive", "b2a8"),
        ("prune", "--older-than", "30d"),
        ("rm", "e617", "--dry-run"),
        ("copy", "copy.db"),
    ),
    "backup": (
        ("backup", "copies"),
        ("backup", "copies", "--list"),
        ("restore", "copies", "again.db"),
    ),
    "secrets": (
        ("append", "1f6a", f"The key is {KEY}, do not lose it."),
        ("secrets", "scan"),
        ("secrets", "scan", "1f6a", "--erase"),
    ),
    "carry": (
        ("export", "3a19", "-o", "talk.html"),
        ("export", "1f6a", "--to", "md", "-o", "talk.md"),
        ("continue", "c4e7", "--in", "claude-code"),
    ),
    "errors": (
        ("lst",),
        ("show", "3b19"),
        ("show", "3a19:4c95"),
        ("show", "3a19:000"),
        ("ls", "--limits"),
        ("ls", "--store", "stor.db"),
        ("context", "3a19", "--dialect", "antropic"),
        ("import", "notes.md"),
    ),
}
"""Several commands one after the other, on a copy of the store."""

MACHINE: dict[str, tuple[tuple[str, ...], ...]] = {
    "home-empty": ((), ("ls",)),
    "import": (
        ("new", "Another one", "--id", "goose-20260801_1"),
        ("import",),
        (),
    ),
}
"""The same on an empty store and a machine with the sessions of other tools."""


def show_reading(screen: Screen, name: str) -> str:
    return screen.run(*READING[name], code=None)


def show_writing(screen: Screen, name: str) -> str:
    """What is typed and shown; everything is as before afterwards, so that the next width sees the same."""
    store = screen.store
    with put_back(store.parent):
        shown = show_and_keep(screen, name)
    screen.store = store
    screen.set("HOME", "/home/ann")
    return shown


def show_and_keep(screen: Screen, name: str) -> str:
    """What is shown; the screen stays at the store with everything that was done."""
    return "\n".join(steps(screen, name))


def steps(screen: Screen, name: str) -> Iterator[str]:
    """What is shown, one command after the other."""
    if name not in WRITING and name not in MACHINE:
        yield SHOWN[name](screen, name)
        return
    screen.restart()
    home = screen.store.parent / "home"
    screen.set("HOME", str(home))
    (screen.store.parent / "notes.md").write_text("milk, bread")
    if name in MACHINE:
        put_sessions(home)
        screen.store = Path(data_file())
        screen.store.parent.mkdir(parents=True)
    for words in {**WRITING, **MACHINE}[name]:
        yield typed(words) + _run(screen, words)


def put_sessions(home: Path) -> None:
    """Put the sessions of three tools where they keep them; one of them is touched after the import."""
    for sample, place in (
        ("claude-code/synthetic", ".claude/projects"),
        ("codex/synthetic/sessions", ".codex/sessions"),
        ("goose/synthetic", ".local/share/goose/sessions"),
    ):
        shutil.copytree(DATA / sample, home / place)
    for file in home.rglob("*"):
        seconds = 30 if ".codex" in str(file) else -5 * 3600
        os.utime(file, (NOW.timestamp() + seconds,) * 2)


def _run(screen: Screen, words: tuple[str, ...]) -> str:
    answer = "n" if words[:1] == ("rm",) else "y"
    shown = screen.run(*words, typed=f"{answer}\n", code=None)
    shown = re.sub(r"(\d{8}T\d{6}\.\d{6}Z-)[0-9a-f]{14}(\s*)[0-9a-f]{2}", r"\g<1>3b6ac2d1f00e4c\g<2>11", shown)
    return re.sub(r"(\[(?:y/N|Y/n)\](?:\x1b\[0m)? )", rf"\1{answer}\n", shown)  # a terminal shows what is typed


def typed(words: tuple[str, ...]) -> str:
    """What the user typed, as a terminal shows it."""
    quoted = [f'"{word}"' if " " in word else word for word in words]
    return f"\x1b[2m$\x1b[0m \x1b[1m{' '.join(['sessiontree', *quoted])}\x1b[0m\n"


def show_picker(screen: Screen, name: str) -> str:
    screen.run("ls")
    cli = CliContext()
    try:
        width = cli.out.width
        results = NO_RESULTS
        if name == "picker":
            threads = titles(cli, cli.journal.list_threads(is_empty=False).threads)
            rows, query, verb = thread_rows(threads, cli.threads, NOW, is_narrow=width < 60), "log", "show"
        else:
            view = view_of(cli, cli.journal.thread(SHOP))
            rows, query, verb, results = entry_rows(view), "login", "rewind 3a19", view.results
        found = matching(query, rows)
        keys = (("tab", "tree"), ("^f", "fork"), ("^r", "rewind"), ("^y", "copy id"))
        state = PickerState(
            verb=verb, query=query, rows=tuple(found), total=len(rows), keys=keys if name == "picker" else keys[-1:]
        )
        thread = cli.journal.thread(found[0].id if name == "picker" else SHOP)
        preview = thread_preview(cli, thread, None if name == "picker" else found[0].id, preview_width(width), results)
        lines = picker_lines(state, preview, width, 20)
        return "".join(line.painted(has_colour=True) + "\n" for line in lines)
    finally:
        cli.close()


SHOWN: dict[str, Callable[[Screen, str], str]] = {
    **dict.fromkeys(READING, show_reading),
    **dict.fromkeys(WRITING, show_writing),
    **dict.fromkeys(MACHINE, show_writing),
    "picker": show_picker,
    "picker-entry": show_picker,
}
