"""The Python blocks of a page of the documentation, as one program."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FRAMEWORKS = ROOT / "docs/howto/frameworks"
"""Pages about frameworks that `make test` does not install: tests_adapters runs their code."""
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

NEEDS_SERVER = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_that_need_a_server(page: Path) -> list[str]:
    """The programs of a page that need a model or a database: tests run them one by one, with a server."""
    return NEEDS_SERVER.findall(page.read_text(encoding="utf-8"))


def blocks(page: Path) -> str:
    """The page as a program; other lines become blank, so that line numbers in errors are the page's."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        for number, line in enumerate(block[1].splitlines()):
            lines[start + number] = line
    return "\n".join(lines)


def run(page: Path) -> dict[str, Any]:
    """Run the blocks of a page, top to bottom, in one namespace, and return it."""
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(blocks(page), str(page), "exec"), names)
    return names


def shell_environment(home: Path) -> dict[str, str]:
    """The environment of a shell in an empty home folder, with the command `sessiontree` and no colours."""
    programs = home / "bin"
    programs.mkdir()
    (programs / "sessiontree").write_text(f'#!/bin/sh\nexec {sys.executable} -m sessiontree "$@"\n')
    (programs / "sessiontree").chmod(0o755)
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "TERM": "xterm",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "BROWSER": "true",
        "PYTHONUTF8": "1",
    }
