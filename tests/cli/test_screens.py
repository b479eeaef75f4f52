"""What every command shows, from 40 to 200 columns. ``UPDATE_SCREENS=1 pytest tests/cli/test_screens.py`` writes it anew.

``make pictures`` writes the pictures in docs/pictures as well; both are compared with what the commands show today.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from screens import THEMES, Screen, picture, plain
from sessiontree.cli.app import COMMANDS
from sessiontree.render.cells import cell_width
from shown import MACHINE, READING, SHOWN, WRITING

WIDTHS = (40, 60, 80, 100, 132, 200)
FOLDER = Path(__file__).parent / "screens"
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
IS_UPDATE = bool(os.environ.get("UPDATE_SCREENS"))

NOT_SHOWN = {"demo", "completion", "mcp", "postgres", "web"}
"""The demo and the viewer are run as a whole elsewhere; the completion script is for a shell, not for a person; the other needs a
cluster."""


def test_every_command_is_shown() -> None:
    typed = [*READING.values(), *(words for many in (WRITING, MACHINE) for each in many.values() for words in each)]
    assert set(COMMANDS) - {words[0] for words in typed if words} == NOT_SHOWN


@pytest.mark.parametrize("name", SHOWN)
def test_every_command_shows_the_same_as_before_and_fits_the_screen(screen: Screen, name: str) -> None:
    for width in WIDTHS:
        shown = shown_at(screen, name, width)
        for line in plain(shown).splitlines():
            # What is typed, or meant to be typed as it is, is not broken: the terminal wraps it.
            is_typed = line.startswith(("$ ", "claude --resume"))
            assert is_typed or cell_width(line) <= width, f"{width}: {line}"
            assert line.isprintable(), f"{width}: {line!r}"
        stored = FOLDER / f"{name}-{width}.txt"
        if IS_UPDATE:
            FOLDER.mkdir(exist_ok=True)
            stored.write_text(_stable(plain(shown)), encoding="utf-8")
        assert _stable(plain(shown)) == stored.read_text(encoding="utf-8")


SEEN: dict[tuple[str, int], str] = {}
"""What was shown in this process: the pictures need not run the commands again."""


def shown_at(screen: Screen, name: str, width: int) -> str:
    if (name, width) not in SEEN:
        screen.resize(width)
        SEEN[name, width] = SHOWN[name](screen, name)
    return SEEN[name, width]


def _stable(shown: str) -> str:
    """Without what differs from run to run: sizes of files."""
    text = re.sub(r"[\d.]+ kB", "<size>", shown)
    return re.sub(r"(?m) +$", "", re.sub(r"(?m)^(Last threads) +", r"\1 ", text))


@pytest.mark.parametrize("name", [name for name in SHOWN if not name.startswith("picker")])
def test_the_words_are_the_same_without_colour(screen: Screen, name: str) -> None:
    coloured = shown_at(screen, name, 100)
    screen.resize(100)
    screen.set("NO_COLOR", "1")
    bare = SHOWN[name](screen, name)
    assert not [line for line in bare.splitlines() if "\x1b" in line and "$" not in line]
    assert _stable(plain(bare)) == _stable(plain(coloured))


@pytest.mark.parametrize(
    "name", ["home", "tree", "tree-large", "log-graph", "show", "diff", "stats-thread", "doctor", "search"]
)
def test_a_dumb_terminal_gets_ascii_of_the_same_width(screen: Screen, name: str) -> None:
    usual = plain(screen.run(*READING[name])).splitlines()
    screen.set("TERM", "dumb")
    simple = screen.run(*READING[name]).splitlines()
    assert "".join(simple).isascii()
    assert [len(line) for line in simple] == [cell_width(line) for line in usual]


def _any_size(found: re.Match[str]) -> str:
    """A size that is the same in every run, and as wide as the column if it stands in one."""
    return "260 kB".rjust(len(found[0])) if found[0].startswith(" ") else "260 kB"


def pictured() -> Iterator[tuple[str, int]]:
    yield from ((name, 100) for name in SHOWN)
    yield from (("tree", 40), ("show", 40), ("ls", 40), ("diff", 132), ("picker", 132))


@pytest.mark.parametrize(("name", "width"), list(pictured()))
def test_the_pictures_of_the_docs_are_what_the_commands_show(screen: Screen, name: str, width: int) -> None:
    shown = re.sub(r"  +[\d.]+ kB|[\d.]+ kB", _any_size, shown_at(screen, name, width))
    for theme in THEMES:
        file = PICTURES / f"{name}-{width}-{theme}.svg"
        made = picture(shown, theme, width)
        if IS_UPDATE:
            PICTURES.mkdir(exist_ok=True)
            file.write_text(made, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == made, "run `make pictures`, and look at them"


def test_the_page_of_screens_shows_every_picture() -> None:
    page = (PICTURES.parent / "reference" / "screens.md").read_text(encoding="utf-8")
    assert {f"{name}-{width}" for name, width in pictured()} == set(re.findall(r"pictures/(\S+)-light\.svg", page))
