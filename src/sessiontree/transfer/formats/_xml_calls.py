"""Tool calls that stand as XML in what the model said, and results that stand as text in the next message.

Cline and Roo Code wrote them so before models had calls of their own.

>>> XmlCalls().answer("I look.\\n<read_file>\\n<path>a.py</path>\\n</read_file>")[1].arguments
'{"path":"a.py"}'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from sessiontree.model import FilePart, ImagePart, OpaquePart, Part, TextPart, ToolCallPart, ToolResultPart

__all__ = ["XmlCalls"]


_TOOLS = (
    "access_mcp_resource", "apply_diff", "apply_patch", "ask_followup_question", "attempt_completion", "browser_action",
    "codebase_search", "condense", "edit_file", "execute_command", "fetch_instructions", "generate_image",
    "insert_content", "list_code_definition_names", "list_files", "load_mcp_documentation", "new_rule", "new_task",
    "plan_mode_respond", "read_file", "replace_in_file", "report_bug", "run_slash_command", "search_and_replace",
    "search_files", "summarize_task", "switch_mode", "update_todo_list", "use_mcp_tool", "web_fetch", "web_search",
    "write_to_file",
)  # fmt: skip
_OPEN = re.compile(rf"^[ \t]*<({'|'.join(_TOOLS)})>", re.MULTILINE)
_PARAMETER = re.compile(r"\s*<(\w+)>")
_FREE_TEXT = frozenset({"content", "diff", "result"})
"""Parameters that may hold anything, also their own closing tag: the last one counts."""

_RESULT = re.compile(r"\[(\w+)(?: [^\n]*)?\] Result:")
ResultPart = TextPart | ImagePart | FilePart | OpaquePart
_NO_RESULT = ("<environment_details>", "<feedback>")


class XmlCalls:
    """Reads the messages of one task in their order; a call keeps its id until its result comes."""

    def __init__(self) -> None:
        self._number = 0
        self._open: list[ToolCallPart] = []

    def answer(self, words: str) -> list[Part]:
        """The parts of a text of the model."""
        parts: list[Part] = []
        at = 0
        for start, end, name in _calls_in(words):
            parts += _said(words[at:start])
            self._number += 1
            arguments = msgspec.json.encode(_parameters(words[start:end], name)).decode()
            call = ToolCallPart(id=f"call-{self._number}", name=name, arguments=arguments)
            self._open.append(call)
            parts.append(call)
            at = end
        return [*parts, *_said(words[at:])] if parts else [TextPart(text=words)]

    def results(self, parts: Sequence[Part]) -> list[Part]:
        """The parts of the message after it: what follows the head of a result belongs to that result."""
        waiting, self._open = self._open, []
        found: list[Part] = []
        inside: list[ResultPart] | None = None
        calls: list[tuple[ToolCallPart, list[ResultPart]]] = []
        for part in parts:
            words = part.text if isinstance(part, TextPart) else ""
            head = _RESULT.match(words)
            call = next((one for one in waiting if head and one.name == head[1]), None)
            if call is not None:
                waiting.remove(call)
                inside = []
                calls.append((call, inside))
            elif words.lstrip().startswith(_NO_RESULT):
                inside = None
            if inside is not None and isinstance(part, ResultPart):
                inside.append(part)
            else:
                found.append(part)
        results = [ToolResultPart(call_id=call.id, name=call.name, parts=tuple(own)) for call, own in calls]
        return [*results, *found]


def _said(words: str) -> list[Part]:
    return [TextPart(text=words.strip("\n"))] if words.strip() else []


def _calls_in(words: str) -> Iterator[tuple[int, int, str]]:
    """Where calls begin and end. A tag that is not closed is text; it is looked for once, so that many cost no more."""
    at = 0
    unclosed: set[str] = set()
    for opened in _OPEN.finditer(words):
        name = opened[1]
        if opened.start() < at or name in unclosed:
            continue
        closing = f"</{name}>"
        end = words.find(closing, opened.end())
        if end < 0:
            unclosed.add(name)
            continue
        at = end + len(closing)
        yield opened.start(), at, name


def _parameters(block: str, name: str) -> dict[str, str]:
    """The parameters of a call; what is none is kept as ``input``."""
    body = block.strip().removeprefix(f"<{name}>").removesuffix(f"</{name}>")
    found: dict[str, str] = {}
    at = 0
    while opened := _PARAMETER.match(body, at):
        closing = f"</{opened[1]}>"
        end = body.rfind(closing) if opened[1] in _FREE_TEXT else body.find(closing, opened.end())
        if end < opened.end():
            break
        value = body[opened.end() : end]
        found[opened[1]] = value.strip("\n") if "\n" in value else value.strip()
        at = end + len(closing)
    rest = body[at:].strip()
    return {**found, "input": rest} if rest else found
