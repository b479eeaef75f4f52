"""The sync and the async verbs about files are one surface."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from sessiontree.journal.workspace import Workspace
from sessiontree.journal.workspace_async import AsyncWorkspace

VERBS = [name for name in vars(Workspace) if not name.startswith("_") and inspect.isfunction(getattr(Workspace, name))]


@pytest.mark.parametrize("name", VERBS)
def test_both_workspaces_have_the_verb_with_the_same_signature_and_words(name: str) -> None:
    one, other = getattr(Workspace, name), getattr(AsyncWorkspace, name)
    assert inspect.signature(one) == inspect.signature(other)
    assert one.__doc__ == other.__doc__


def test_the_verbs_are_the_ones_that_the_documentation_names() -> None:
    assert {"snapshot", "checkpoints", "plan", "restore", "diff", "recover"} <= set(VERBS)


def test_undo_of_moves_without_files_loads_nothing_about_files() -> None:
    code = """
import sys
import sessiontree as st

with st.open("memory:") as journal:
    journal.create_thread("t")
    first = journal.append("t", st.user("one")).id
    journal.append("t", st.user("two"))
    journal.rewind("t", first)
    before = set(sys.modules)
    journal.undo("t")
    journal.redo("t")
    journal.undo("t", dry_run=True)
    print(*(set(sys.modules) - before))
    print(*(name for name in sys.modules if name.startswith("sessiontree.workspace.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, workspace = done.stdout.splitlines()
    assert loaded == ""
    assert "open_workspace" not in workspace
