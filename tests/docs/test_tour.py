"""The tour is run verbatim, on a real terminal of 80 columns."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from doc_pages import ROOT, shell_environment

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


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder with a name that fits into a line of the terminal."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_every_command_of_the_tour_prints_what_the_page_says(home: Path) -> None:
    environment = shell_environment(home) | {"SESSIONTREE_STORE": str(home / "tour.db")}
    shell = pexpect.spawn(
        "bash", ["--norc", "--noprofile"], env=environment, cwd=str(home), dimensions=(24, 80), encoding="utf-8",
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
