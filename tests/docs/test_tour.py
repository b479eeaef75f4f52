"""The tour is run verbatim, on a real terminal of 80 columns."""

import os
import re
import sys
from pathlib import Path

import pexpect

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Each command of a page with the lines that it is to print."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern(lines: list[str]) -> re.Pattern[str]:
    """``...`` in a line stands for anything on that line."""
    return re.compile("\n".join(re.escape(line).replace(r"\.\.\.", ".*") for line in lines))


def test_every_command_of_the_tour_prints_what_the_page_says(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sessiontree").write_text(f'#!/bin/sh\nexec {sys.executable} -m sessiontree "$@"\n')
    (folder / "sessiontree").chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SESSIONTREE_STORE": str(tmp_path / "tour.db"),
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "PYTHONUTF8": "1",
    }
    shell = pexpect.spawn(
        "bash", ["--norc", "--noprofile"], env=environment, cwd=str(tmp_path), dimensions=(24, 80), encoding="utf-8",
        timeout=60, echo=False,
    )  # fmt: skip
    shell.sendline("PS1='ready''> '; bind 'set enable-bracketed-paste off'")
    shell.expect("ready> ")
    page = steps((ROOT / "docs/tutorial/tour.md").read_text(encoding="utf-8"))
    assert len(page) > 20
    for command, expected in page:
        shell.sendline(command)
        shell.expect("ready> ")
        printed = shell.before.replace("\r\n", "\n").rstrip("\n")
        assert pattern(expected).fullmatch(printed), f"$ {command}\n{printed}"
    shell.close(force=True)
