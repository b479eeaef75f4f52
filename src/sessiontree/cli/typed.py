"""Commands that are shown: as they must be typed, in lines that fit the terminal. A command is never cut."""

from __future__ import annotations

import re
from shlex import quote

from sessiontree.render.cells import cell_width, printable

__all__ = ["broken", "typed", "typed_path", "with_store"]


_WORDS = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+""")
_GOES_ON = " \\"
_INDENT = "  "


def typed(word: str) -> str:
    """Return a word as it is typed into a shell: printable, in quotes if needed, after -- if it starts with a dash.

    >>> typed("3a19:b21c"), typed("my talk"), typed("-x")
    ('3a19:b21c', "'my talk'", '-- -x')
    """
    return f"{'-- ' * word.startswith('-')}{quote(printable(word))}"


def typed_path(path: str, home: str) -> str:
    """Return a path as it is typed into a shell: from the home folder if a shell would find it there.

    >>> typed_path("/home/ann/talks", "/home/ann"), typed_path("/home/ann/my talks", "/home/ann")
    ('~/talks', "'/home/ann/my talks'")
    """
    below = path.removeprefix(f"{home}/")
    return f"~/{below}" if below != path and typed(below) == below else typed(path)


def with_store(command: str, store: str) -> str:
    """Return a command as it must be typed for a store that ``--store`` named; help is the same for every store.

    >>> with_store("sessiontree show 3a19", "my talks.db")
    "sessiontree show --store 'my talks.db' 3a19"
    >>> with_store("sessiontree", "x.db"), with_store("sessiontree --help", "x.db")
    ('sessiontree --store x.db', 'sessiontree --help')
    """
    words = command.split(" ", 2)
    if not store or "--help" in words or " --store" in command:
        return command
    return " ".join([*words[:2], "--store", typed(store), *words[2:]])


def broken(command: str, cells: int) -> list[str]:
    """Return a command in lines that fit, the way a shell reads them; no line at all if one of its words does not fit.

    >>> broken("sessiontree fork 3a19~2 --title 'another way'", 28)
    ['sessiontree fork 3a19~2 \\\\', "  --title 'another way'"]
    >>> broken("sessiontree show --store /a/long/path/to/a/store.db", 26)
    []
    """
    if cell_width(command) <= cells:
        return [command]
    lines = [""]
    for word in _WORDS.findall(command):
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if lines[-1].strip() and cell_width(longer + _GOES_ON) > cells:
            lines.append(_INDENT + word)
        else:
            lines[-1] = longer
    lines = [line + _GOES_ON * (number < len(lines) - 1) for number, line in enumerate(lines)]
    return lines if all(cell_width(line) <= cells for line in lines) else []
