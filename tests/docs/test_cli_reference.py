"""The reference of the command line is what --help says. ``UPDATE_DOCS=1 pytest tests/docs`` regenerates it."""

import os
import re
from pathlib import Path

import pytest

from cli_shell import Shell
from sessiontree.cli.app import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

INTRODUCTION = """# The command line

The output of `sessiontree --help` and `sessiontree COMMAND --help`; a test compares them. The
[tour](../tutorial/tour.md) shows the commands at work.

"""


def reference(shell: Shell) -> str:
    sections = [("sessiontree", shell("--help"))]
    sections += [(f"sessiontree {name}", shell(name, "--help")) for name in COMMANDS]
    return INTRODUCTION + "\n".join(f"## {name}\n\n```text\n{text}\n```\n" for name, text in sections)


def test_the_reference_is_what_help_says(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    page = reference(shell)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_name_it(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = re.search(rf"^## sessiontree {name}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert "Examples:" in section[1]
    assert re.search(rf"sessiontree {name}\b", section[1].split("Examples:")[1])
