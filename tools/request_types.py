"""Write the SDKs' request types as plain data, which tells what of an answer a request can hold.

A request holds the fields and values that its type has: ``context/dialects/_fitting.py`` leaves anything else out.
``tests/unit/test_request_types.py`` compares what is written with the installed SDKs.

    python tools/request_types.py            write src/sessiontree/context/dialects/_request_types.py
    python tools/request_types.py --check    exit with 1 if it is stale
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from anthropic.types import ContentBlockParam
from anthropic.types import Message as AnthropicMessage
from anthropic.types.beta import BetaContentBlock, BetaContentBlockParam
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from anthropic.types.tool_result_block_param import Content as ToolResultContent
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionContentPartParam,
    ChatCompletionContentPartTextParam,
    ChatCompletionMessageParam,
    ParsedChatCompletionMessage,
)
from openai.types.chat.chat_completion_assistant_message_param import ContentArrayOfContentPart
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response, ResponseInputContentParam, ResponseInputItemParam, ResponseOutputItem
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import BaseModel

with warnings.catch_warnings():
    # The SDK has an escape sequence in a docstring that newer Pythons warn about.
    warnings.simplefilter("ignore")
    from google.genai.types import Part

TARGET = Path(__file__).parent.parent / "src/sessiontree/context/dialects/_request_types.py"
HEAD = '''"""The request types of the SDKs as data. Written by ``tools/request_types.py``; do not edit.

A shape is the name of a scalar, or a tuple: ``list`` and ``map`` with the shape of their values, ``enum`` with its values,
``one`` with the shapes of a union, ``record`` with a name in ``RECORDS``. A record has ``fields``, those that are
``required``, and ``names``: how the SDK spells fields in Python. One with ``drop`` is open: it may have fields that no
type has, but not these, which only answers have.
"""

# fmt: off
# ruff: noqa: Q000

from __future__ import annotations

from typing import Any

'''

Shape = str | tuple[Any, ...]
Record = dict[str, Any]
_SCALARS: dict[Any, str] = {
    str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes", type(None): "null", Any: "any", object: "any"
}  # fmt: skip


class _Writer:
    """Collects the records that shapes refer to."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self._names: dict[Any, str] = {}
        self._is_open = False

    def open_shape(self, hint: Any) -> Shape:
        """Return the shape of a type whose records may have fields of other vendors."""
        self._is_open = True
        try:
            return self.shape(hint)
        finally:
            self._is_open = False

    def shape(self, hint: Any) -> Shape:
        """Return the shape of a type; what JSON cannot hold is no member of a union."""
        kinds = [kind for kind in _flat(hint) if _is_json(kind)]
        shapes = list(dict.fromkeys(self._one(kind) for kind in kinds))
        return shapes[0] if len(shapes) == 1 else ("one", *shapes)

    def _one(self, kind: Any) -> Shape:
        origin = get_origin(kind)
        if origin is Literal:
            return ("enum", *get_args(kind))
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return ("map", self.shape(get_args(kind)[1]))
        if _is_list(kind):
            return ("list", self.shape(get_args(kind)[0]))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return "str"
        return _SCALARS[kind] if kind in _SCALARS else ("record", self._record(kind))

    def _record(self, kind: Any) -> str:
        if kind not in self._names:
            name = kind.__name__
            while name in self.records:
                name += "_"
            self._names[kind] = name
            record = self.records[name] = {}
            record |= self._model(kind) if issubclass(kind, BaseModel) else self._typed_dict(kind)
        return self._names[kind]

    def _typed_dict(self, kind: Any) -> Record:
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        required = [name for name, hint in hints.items() if _is_required(hint)]
        fields = {name: self.shape(hint) for name, hint in typing_extensions.get_type_hints(kind).items()}
        names = {f"{name}_": name for name in fields if f"{name}_" in _PYTHON_NAMES}
        return _without_empty(fields=fields, required=required, names=names) | ({"drop": []} if self._is_open else {})

    def _model(self, kind: type[BaseModel]) -> Record:
        """A model of Gemini is the type of requests and of answers; its fields have the names of the REST API.

        Every field may be null in the SDK; the description of one that a request must have begins with "Required".
        """
        items = kind.model_fields.items()
        wires = {name: field.alias or _camel_case(name) for name, field in items}
        fields = {wires[name]: self.shape(field.annotation) for name, field in items}
        plain = {
            wire: ("one", *(item for item in shape[1:] if item != "null")) if shape[0] == "one" else shape
            for wire, shape in fields.items()
        }
        single = {wire: shape[1] if shape[0] == "one" and len(shape) == 2 else shape for wire, shape in plain.items()}
        required = [wires[name] for name, field in items if (field.description or "").startswith("Required")]
        names = {name: wire for name, wire in wires.items() if name != wire}
        return _without_empty(fields=single, required=required, names=names)


def _without_empty(**parts: Any) -> Record:
    return {name: value for name, value in parts.items() if value}


def shapes(writer: _Writer) -> dict[str, Shape]:
    """Return the shapes of what a request has in its places, as the installed SDKs define them."""
    known = {tag for kind in _flat(ContentBlockParam) for tag in _tags(kind)}
    answered = {tag for kind in _flat(BetaContentBlock) for tag in _tags(kind)} - known
    beta = [kind for kind in _flat(BetaContentBlockParam) if answered.intersection(_tags(kind))]
    found = {
        "CHAT": writer.open_shape(ChatCompletionMessageParam),
        "CHAT_CONTENT": writer.open_shape(ChatCompletionContentPartParam),
        "CHAT_ANSWER": writer.open_shape(ContentArrayOfContentPart),
        "CHAT_RESULT": writer.open_shape(ChatCompletionContentPartTextParam),
        "RESPONSES": writer.shape(ResponseInputItemParam),
        "RESPONSES_CONTENT": writer.shape(ResponseInputContentParam),
        "ANTHROPIC": writer.shape(Union[(ContentBlockParam, *beta)]),
        "ANTHROPIC_RESULT": writer.shape(ToolResultContent),
        "GEMINI": writer.shape(Part),
    }
    _drop(writer, ParsedChatCompletionMessage, "ChatCompletionAssistantMessageParam")
    # The API takes texts of the model without them, and an answer that was cut or written by hand has none.
    writer.records["ResponseOutputMessageParam"]["required"] = ["content", "role", "type"]
    return found


def _drop(writer: _Writer, response: type[BaseModel], name: str) -> None:
    """Note the fields of a response that its request type lacks."""
    record = writer.records[name]
    record["drop"] = sorted({*record["drop"], *response.model_fields} - record["fields"].keys())
    for field, info in response.model_fields.items():
        inner = _records_in(record["fields"].get(field, "any"))
        for kind in _models_in(info.annotation):
            for target in inner:
                tags = {tag for tag in _tags(kind) if tag}
                wanted = set(_enum(writer.records[target]["fields"].get("type", ())))
                if not tags or not wanted or tags & wanted:
                    _drop(writer, kind, target)


def _records_in(shape: Shape) -> list[str]:
    match shape:
        case ("record", name):
            return [name]
        case ("list" | "one", *inner):
            return [name for item in inner for name in _records_in(item)]
        case _:
            return []


def _models_in(hint: Any) -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    for kind in _flat(hint):
        if _is_list(kind):
            found += _models_in(get_args(kind)[0])
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            found.append(kind)
    return found


def _enum(shape: Shape) -> tuple[Any, ...]:
    return shape[1:] if isinstance(shape, tuple) and shape and shape[0] == "enum" else ()


def _python_names(hints: list[Any], seen: set[Any]) -> set[str]:
    """Return the names of fields that the SDK's answers spell with an underscore, since Python has the word."""
    found: set[str] = set()
    for hint in hints:
        for model in _models_in(hint):
            if model not in seen:
                seen.add(model)
                found |= {name for name, field in model.model_fields.items() if field.alias == name.rstrip("_") != name}
                found |= _python_names([field.annotation for field in model.model_fields.values()], seen)
    return found


def awaited_calls() -> list[str]:
    """Return the types of the items of Responses that a request has to answer with an output item."""
    tags = {tag for kind in _flat(ResponseInputItemParam) for tag in _tags(kind)}
    return sorted(tag for tag in tags if f"{tag}_output" in tags)


def echoed() -> list[str]:
    """Return the fields of a response that repeat its request."""
    pairs: list[tuple[type[BaseModel], Any]] = [
        (ChatCompletion, CompletionCreateParamsNonStreaming),
        (Response, ResponseCreateParamsNonStreaming),
        (AnthropicMessage, MessageCreateParamsNonStreaming),
    ]
    fields = typing_extensions.get_type_hints
    return sorted({name for answer, request in pairs for name in answer.model_fields.keys() & fields(request).keys()})


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _tags(kind: Any) -> list[str]:
    """Return the values of ``type``; a type without one has the tag ''."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get("type")
        tag = field.annotation if field else None
    else:
        tag = typing_extensions.get_type_hints(kind).get("type") if typing_extensions.is_typeddict(kind) else None
    return [str(value) for literal in _flat(tag) for value in get_args(literal) if get_origin(literal) is Literal]


def _is_required(hint: Any) -> bool:
    origin: Any = get_origin(hint)
    return origin is typing_extensions.Required


def _is_list(kind: Any) -> bool:
    origin = get_origin(kind)
    if not isinstance(origin, type) or not get_args(kind) or issubclass(origin, Mapping):
        return False
    return issubclass(origin, Iterable) or origin.__name__ == "SequenceNotStr"


def _is_json(kind: Any) -> bool:
    """Whether JSON holds values of a type: no open files, and no objects of the SDKs but Gemini's own."""
    if kind in _SCALARS or get_origin(kind) is Literal or typing_extensions.is_typeddict(kind) or _is_list(kind):
        return True
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return True
    is_gemini = isinstance(kind, type) and kind.__module__.startswith("google.")
    return is_gemini and issubclass(kind, BaseModel | Enum)


def _flat(hint: Any) -> list[Any]:
    origin = get_origin(hint)
    if origin in (Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        return _flat(get_args(hint)[0])
    if origin is Union or origin is types.UnionType:
        return [kind for part in get_args(hint) for kind in _flat(part)]
    if isinstance(hint, typing_extensions.TypeAliasType):
        return _flat(hint.__value__)
    return [hint]


_PYTHON_NAMES = _python_names([ResponseOutputItem, ParsedChatCompletionMessage, AnthropicMessage], set())


def text() -> str:
    """Return the module."""
    writer = _Writer()
    body = "".join(f"{name}: Any = {shape!r}\n" for name, shape in shapes(writer).items())
    rows = "".join(f"    {name!r}: {record!r},\n" for name, record in writer.records.items())
    body += f"\nRECORDS: dict[str, dict[str, Any]] = {{\n{rows}}}\n"
    body += f"\nAWAITED_CALLS = frozenset({awaited_calls()!r})\n"
    return HEAD + body + f"ECHOED = frozenset({echoed()!r})\n"


def main() -> int:
    written = text()
    if "--check" in sys.argv:
        return int(TARGET.read_text() != written)
    TARGET.write_text(written)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
