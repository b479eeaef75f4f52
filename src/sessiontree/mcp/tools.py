"""The table of tools, as they are described to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sessiontree.mcp import answers
from sessiontree.mcp.arguments import (
    Arguments,
    ForkArguments,
    LabelArguments,
    ListArguments,
    ReadArguments,
    RecallArguments,
    SearchArguments,
)
from sessiontree.mcp.library import Library
from sessiontree.mcp.names import RequestError
from sessiontree.model import Record, convert

__all__ = ["READING", "WRITING", "Tool", "call"]


class Tool(Record, frozen=True, kw_only=True):
    """A tool, and what a model is told about it."""

    name: str
    title: str
    about: str
    arguments: type[Arguments]
    run: Callable[[Library, Any], str]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        _, found = msgspec.json.schema_components([self.arguments], ref_template="#/$defs/{name}")
        schema = found[self.arguments.__name__]
        return {key: value for key, value in schema.items() if key not in {"title", "description"}}


def call(tool: Tool, library: Library, given: dict[str, Any]) -> str:
    """Run a tool with arguments as they came; raises RequestError if they do not fit, and what the journal raises."""
    try:
        arguments = convert(given, tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        names = ", ".join(tool.arguments.__struct_fields__)
        raise RequestError(f"{error}. The arguments of {tool.name} are: {names}.") from error
    return tool.run(library, arguments)


READING: Sequence[Tool] = (
    Tool(
        name="list",
        title="List conversations",
        about="List the user's recorded conversations (threads) with AI agents, last changed first: id, title, folder, "
        "program, size, time. Use it to see what there is, or what was done lately or in a folder.",
        arguments=ListArguments,
        run=answers.list_threads,
    ),
    Tool(
        name="search",
        title="Search conversations",
        about="Find entries (messages, tool calls, tool results) by exact words in all recorded conversations. Every "
        "word must occur. For a question in plain words use recall.",
        arguments=SearchArguments,
        run=answers.search,
    ),
    Tool(
        name="read",
        title="Read a conversation",
        about="Read a part of a conversation: its end, what stands before an entry, or an entry in its context. Long "
        "entries are cut; read one with limit 1 to get it whole.",
        arguments=ReadArguments,
        run=answers.read,
    ),
    Tool(
        name="recall",
        title="Recall earlier work",
        about="Find earlier conversations that help with a question or task, described in plain words: decisions, "
        "fixes, commands that worked, what was tried. Use it before starting work that may have been done before.",
        arguments=RecallArguments,
        run=answers.recall,
    ),
)

WRITING: Sequence[Tool] = (
    Tool(
        name="fork",
        title="Fork a conversation",
        about="Create a new thread that shares a conversation up to an entry. The old thread does not change.",
        arguments=ForkArguments,
        run=answers.fork,
    ),
    Tool(
        name="label",
        title="Label an entry",
        about="Give an entry of a conversation a name by which it can be found again, or remove its name.",
        arguments=LabelArguments,
        run=answers.label,
    ),
)
