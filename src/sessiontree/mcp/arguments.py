"""What the tools take. The descriptions are all that a model knows about an argument before it calls a tool."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from sessiontree.search import SearchOrder

__all__ = [
    "Arguments",
    "ForkArguments",
    "LabelArguments",
    "ListArguments",
    "ReadArguments",
    "RecallArguments",
    "SearchArguments",
]


def _about(text: str, **limits: Any) -> msgspec.Meta:
    return msgspec.Meta(description=text, **limits)


ThreadName = Annotated[str, _about("The thread: its id as shown by list or search, or an unambiguous part of it.")]
EntryName = Annotated[str, _about("An entry of the thread: its id as shown in brackets, or its label.")]
Folder = Annotated[str, _about("Only conversations of this folder; an absolute path.")]
Limit = Annotated[int, _about("How many to return.", ge=1, le=100)]
Cursor = Annotated[str, _about("Continue after a page, with the cursor at its end.")]
Time = Annotated[str, _about("A date such as 2026-01-31, today, yesterday, or an age such as 2h or 7d.")]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a tool."""


class ListArguments(Arguments, frozen=True, kw_only=True):
    """Filters of a list of threads."""

    title: Annotated[str, _about("Only threads with this in their title.")] = ""
    folder: Folder = ""
    tag: Annotated[str, _about("Only threads with this tag.")] = ""
    since: Time = ""
    until: Time = ""
    archived: Annotated[bool, _about("List archived threads instead.")] = False
    limit: Limit = 20
    cursor: Cursor = ""


class SearchArguments(Arguments, frozen=True, kw_only=True):
    """A search for entries."""

    query: Annotated[
        str,
        _about(
            'Words that must all occur, "phrases", prefix*, -excluded, and filters: role:user (or assistant, tool, '
            "system), tool:bash, model:opus, file:main.py, label:good, thread:ID, after:7d, before:2026-01-31."
        ),
    ]
    order: Annotated[SearchOrder, _about("Best matches or newest entries first.")] = "best"
    limit: Limit = 20
    cursor: Cursor = ""


class ReadArguments(Arguments, frozen=True, kw_only=True):
    """A part of a conversation."""

    thread: ThreadName
    entry: Annotated[str, _about("Show this entry with what led to it and what followed: an id or a label.")] = ""
    before: Annotated[str, _about("Show what stands before this entry, to page backwards.")] = ""
    limit: Annotated[
        int, _about("How many entries. With entry and limit 1, that entry is shown whole.", ge=1, le=100)
    ] = 20
    offset: Annotated[int, _about("With limit 1: skip this many characters of a long entry.", ge=0)] = 0


class RecallArguments(Arguments, frozen=True, kw_only=True):
    """A question about earlier work."""

    question: Annotated[
        str, _about("What you want to know, in plain words. Names of files, errors and tools help most.")
    ]
    folder: Folder = ""
    limit: Annotated[int, _about("How many threads.", ge=1, le=20)] = 5


class ForkArguments(Arguments, frozen=True, kw_only=True):
    """Where to fork."""

    thread: ThreadName
    entry: Annotated[str, _about("The last entry to share: an id or a label. If omitted, the end of the thread.")] = ""
    title: Annotated[str, _about("The title of the new thread; by default that of the old one.")] = ""


class LabelArguments(Arguments, frozen=True, kw_only=True):
    """A name for an entry."""

    thread: ThreadName
    entry: EntryName
    label: Annotated[str, _about("The name; an empty one removes the label.", max_length=200)]
