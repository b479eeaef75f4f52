"""Write the table of what the SDKs' response types have and their request types have not.

The pairs of types are walked together: a field that a response has and a request lacks is left out, a field that may be
null in a response only is left out when it is null, and a field that the SDK spells differently in Python gets the name
that it has in a request. ``tests/unit/test_request_fields.py`` compares the written table with the installed SDKs.

    python tools/request_fields.py            write src/sessiontree/context/dialects/_request_fields.py
    python tools/request_fields.py --check    exit with 1 if it is stale
"""

from __future__ import annotations

import subprocess
import sys
import types
import typing
import warnings
from collections.abc import Iterable as AbstractIterable
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from anthropic.types import ContentBlock, ContentBlockParam
from anthropic.types import Message as AnthropicMessage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from anthropic.types.parsed_message import ParsedTextBlock
from openai.types.chat import ChatCompletion, ChatCompletionAssistantMessageParam, ParsedChatCompletionMessage
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response, ResponseInputItemParam, ResponseOutputItem
from openai.types.responses.parsed_response import ParsedResponseFunctionToolCall, ParsedResponseOutputMessage
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import BaseModel

with warnings.catch_warnings():
    # The SDK has an escape sequence in a docstring that newer Pythons warn about.
    warnings.simplefilter("ignore")
    from google.genai.types import Part

TARGET = Path(__file__).parent.parent / "src/sessiontree/context/dialects/_request_fields.py"
HEAD = '''"""What response types have and request types have not. Written by ``tools/request_fields.py``; do not edit.

``drop``: fields that a request has no place for; ``null``: fields that are left out when they are null; ``fill``: fields
that a request must have and that may be null; ``rename``: the name of a field in a request; ``inside``: the same for
nested objects, by field and by their ``type``.
"""

from __future__ import annotations

from typing import Any

'''

Table = dict[str, Any]


def tables() -> dict[str, Table]:
    """Return the table of every dialect, as the installed SDKs define it."""
    return {
        "CHAT": _chat(),
        "RESPONSES": _responses(),
        "ANTHROPIC": _anthropic(),
        "GEMINI": _gemini(),
    }


def _chat() -> Table:

    return _difference(ParsedChatCompletionMessage, ChatCompletionAssistantMessageParam, ())


def _responses() -> Table:

    items = [ParsedResponseOutputMessage, ParsedResponseFunctionToolCall]
    return _by_type([*items, *_members(ResponseOutputItem)], _members(ResponseInputItemParam), ())


def awaited_calls() -> list[str]:
    """Return the types of the items of Responses that a request has to answer with an output item."""

    tags = {tag for kind in _members(ResponseInputItemParam) for tag in _tags(kind)}
    return sorted(tag for tag in tags if f"{tag}_output" in tags)


def _anthropic() -> Table:

    return _by_type([ParsedTextBlock, *_members(ContentBlock)], _members(ContentBlockParam), ())


def _gemini() -> Table:
    return _camel(Part, ())


def echoed() -> list[str]:
    """Return the fields of a response that repeat its request."""

    pairs: list[tuple[type[BaseModel], Any]] = [
        (ChatCompletion, CompletionCreateParamsNonStreaming),
        (Response, ResponseCreateParamsNonStreaming),
        (AnthropicMessage, MessageCreateParamsNonStreaming),
    ]
    return sorted({name for answer, request in pairs for name in answer.model_fields.keys() & _hints(request).keys()})


def _difference(response: type[BaseModel], request: Any, seen: tuple[Any, ...]) -> Table:
    if response in seen:
        return {}
    wanted = _hints(request)
    table: Table = {"drop": [], "null": [], "fill": [], "rename": {}, "inside": {}}
    required = _required(request)
    for name, field in response.model_fields.items():
        wire = field.alias or name
        if wire in required and wire in wanted and _takes_none(wanted[wire]) and _takes_none(field.annotation):
            table["fill"].append(wire)
        if wire not in wanted:
            table["drop"] += sorted({name, wire})
            continue
        if wire != name:
            table["rename"][name] = wire
        if _takes_none(field.annotation) and not _takes_none(wanted[wire]):
            table["null"].append(wire)
        inside = _by_type(_members(field.annotation), _members(wanted[wire]), (*seen, response))
        if inside:
            table["inside"][wire] = inside
    return {key: value for key, value in table.items() if value}


def _by_type(responses: list[Any], requests: list[Any], seen: tuple[Any, ...]) -> Table:
    """Return the differences of the types of two unions that have the same ``type``."""
    wanted = {tag: kind for kind in requests for tag in _tags(kind) if _is_typed_dict(kind)}
    found: Table = {}
    for kind in responses:
        for tag in _tags(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else ():
            difference = _difference(kind, wanted[tag], seen) if tag in wanted else {}
            if difference:
                found.setdefault(tag, difference)
    return found


def _camel(model: type[BaseModel], seen: tuple[Any, ...]) -> Table:
    """A request of Gemini has the fields of a response, under the names of its REST API and without nulls."""
    if model in seen:
        return {}
    table: Table = {"null": [], "rename": {}, "inside": {}}
    for name, field in model.model_fields.items():
        wire = field.alias or _camel_case(name)
        table["null"].append(wire)
        if wire != name:
            table["rename"][name] = wire
        models = [kind for kind in _members(field.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
        inside = _camel(models[0], (*seen, model)) if models else {}
        if inside:
            table["inside"][wire] = {"": inside}
    return {key: value for key, value in table.items() if value}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _hints(typed_dict: Any) -> dict[str, Any]:
    return typing_extensions.get_type_hints(typed_dict, include_extras=False)


def _required(typed_dict: Any) -> set[str]:
    hints = typing_extensions.get_type_hints(typed_dict, include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is typing_extensions.Required}


def _is_typed_dict(kind: Any) -> bool:
    return typing_extensions.is_typeddict(kind)


def _tags(kind: Any) -> list[str]:
    """Return the values of ``type``; a type without one has the tag ''."""
    if not isinstance(kind, type):
        return [""]
    is_model = issubclass(kind, BaseModel)
    tag = _annotation(kind, "type") if is_model else typing_extensions.get_type_hints(kind).get("type")
    return [str(value) for value in get_args(tag)] if get_origin(tag) is Literal else [""]


def _annotation(model: type[BaseModel], name: str) -> Any:
    field = model.model_fields.get(name)
    return field.annotation if field else None


def _takes_none(hint: Any) -> bool:
    return hint is type(None) or type(None) in _flat(hint) or hint in (Any, object)


def _members(hint: Any) -> list[Any]:
    """Return the types of a union, and those of the items of a list."""
    found: list[Any] = []
    for kind in _flat(hint):
        if get_origin(kind) in (list, AbstractIterable, typing.Iterable):
            found += _members(get_args(kind)[0])
        else:
            found.append(get_origin(kind) if isinstance(get_origin(kind), type) and get_args(kind) else kind)
    return found


def _flat(hint: Any) -> list[Any]:
    origin = get_origin(hint)
    if origin is Annotated:
        return _flat(get_args(hint)[0])
    if origin is Union or origin is types.UnionType:
        return [kind for part in get_args(hint) for kind in _flat(part)]
    return [hint]


def text() -> str:
    """Return the module."""
    body = "\n".join(f"{name}: dict[str, Any] = {table!r}\n" for name, table in tables().items())
    body += f"\nAWAITED_CALLS = frozenset({awaited_calls()!r})\n"
    body += f"\nECHOED = frozenset({echoed()!r})\n"
    formatter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(formatter, input=HEAD + body, capture_output=True, text=True, check=True).stdout  # noqa: S603


def main() -> int:
    written = text()
    if "--check" in sys.argv:
        return int(TARGET.read_text() != written)
    TARGET.write_text(written)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
