"""Annotations can be read by programs, also those that name what is loaded late."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from types import FunctionType
from typing import Any, get_type_hints

import sessiontree as st
from sessiontree.context.dialects import Dialect
from sessiontree.journal.turn import Turn
from sessiontree.journal.turn_async import AsyncTurn
from sessiontree.journal.workspace import Workspace
from sessiontree.journal.workspace_async import AsyncWorkspace

PACKAGES = ("sessiontree", "sessiontree.sessions", "sessiontree.journal.memory", "sessiontree.workspace")
OTHERS = (
    ("sessiontree.journal.turn", "Turn"),
    ("sessiontree.journal.turn_async", "AsyncTurn"),
    ("sessiontree.journal.workspace", "Workspace"),
    ("sessiontree.journal.workspace_async", "AsyncWorkspace"),
)
"""Classes whose objects the public ones hand out."""

LOADED_ON_FIRST_USE: dict[str, Any] = {
    "Workspace": Workspace,
    "AsyncWorkspace": AsyncWorkspace,
    "ThreadHandle": st.ThreadHandle,
    "AsyncThreadHandle": st.AsyncThreadHandle,
    "AnswerStream": st.AnswerStream,
    "AsyncAnswerStream": st.AsyncAnswerStream,
    "BackupReport": st.BackupReport,
    "Dialect": Dialect,
    "Turn": Turn,
    "AsyncTurn": AsyncTurn,
}
"""A program that resolves the annotations of methods that load modules on first use imports these itself."""


def functions_of(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(kind):
        if name.startswith("_") and name not in {"__init__", "__call__", "__enter__", "__aenter__"}:
            continue
        match inspect.getattr_static(kind, name, None):
            case staticmethod(__func__=function) | classmethod(__func__=function):
                yield name, function
            case property(fget=function) | cached_property(func=function) if function is not None:
                yield name, function
            case FunctionType() as function:
                yield name, function


def public_callables() -> Iterator[tuple[str, Any]]:
    named = [(package, name) for package in PACKAGES for name in importlib.import_module(package).__all__]
    for module, name in (*named, *OTHERS):
        value = getattr(importlib.import_module(module), name)
        if inspect.isclass(value):
            yield f"{module}.{name}", value
            yield from ((f"{module}.{name}.{method}", function) for method, function in functions_of(value))
        elif inspect.isfunction(value):
            yield f"{module}.{name}", value


CALLABLES = dict(public_callables())


def test_the_list_holds_what_was_known_to_fail() -> None:
    assert {"sessiontree.open_async", "sessiontree.Journal.rewind", "sessiontree.AsyncJournal.workspace"} <= set(
        CALLABLES
    )


def test_the_annotations_of_everything_public_can_be_resolved() -> None:
    unresolved = {}
    for name, value in CALLABLES.items():
        try:
            get_type_hints(value, localns=LOADED_ON_FIRST_USE)
        except NameError as error:
            unresolved[name] = str(error)
    assert unresolved == {}


def test_late_types_resolve_to_the_types_themselves() -> None:
    assert get_type_hints(st.open_async)["return"] is st.AsyncJournal
    assert get_type_hints(st.open)["return"] is st.Journal


def test_annotations_load_nothing_before_they_are_asked_for() -> None:
    late = {
        "asyncio",
        "psycopg",
        "click",
        "pathspec",
        "hashlib",
        "difflib",
        "sqlite3",
        "sessiontree.search.words",
        "sessiontree.journal.workspace",
        "sessiontree.workspace.open_workspace",
    }
    code = f"import sys, sessiontree as st; st.open; print(*{late!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
