"""The sync and the async verbs about files are one surface."""

from __future__ import annotations

import inspect

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
