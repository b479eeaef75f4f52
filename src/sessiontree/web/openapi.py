"""The OpenAPI file: made of the declarations of pages and actions, so that it cannot differ from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from sessiontree.model import Entry
from sessiontree.web.declare import Action, Page, path_names
from sessiontree.web.problems import Problem

__all__ = ["openapi"]


_TEMPLATE = "#/components/schemas/{name}"
_SIMPLE = {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null", dict: "object"}
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


def openapi(pages: Sequence[Page[Any, Any]], actions: Sequence[Action[Any, Any]], version: str) -> dict[str, Any]:
    """Return the description of everything that can be asked."""
    kinds: list[Any] = [*(page.asks for page in pages), *(action.asks for action in actions), Problem]
    refs, components = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
    names = dict(zip(kinds, refs, strict=True))
    for answer in (*(page.answer for page in pages), *(action.answer for action in actions)):
        names[answer] = _shape(answer, components)
    paths: dict[str, Any] = {}
    for page in pages:
        fields = _fields(components, names[page.asks])
        path = "/index" if page.path == "/" else page.path
        operation = _operation(page.about, f"get {page.path}", names[page.answer])
        operation["parameters"] = list(_parameters(page.path, fields))
        paths[f"{path}.json"] = {"get": operation}
    for action in actions:
        fields = _fields(components, names[action.asks])
        operation = _operation(action.about, f"post {action.path}", names[action.answer])
        operation["parameters"] = [one for one in _parameters(action.path, fields) if one["in"] == "path"]
        operation["requestBody"] = _body(action, fields)
        paths[action.path] = {"post": operation}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sessiontree web",
            "version": version,
            "description": "Ids in paths are escaped: ~0 stands for ~, ~1 for /, ~2 for a dot, and ~ alone for nothing.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _shape(kind: Any, components: dict[str, Any]) -> dict[str, Any]:
    """The shape of an answer. Entries are objects with an id and a type: what is in them is open to newer versions."""
    if isinstance(kind, type) and issubclass(kind, Entry):
        return {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind.__name__ not in components:
            shape: dict[str, Any] = {"type": "object", "title": kind.__name__}
            components[kind.__name__] = shape
            fields = msgspec.structs.fields(kind)
            shape["properties"] = {field.encode_name: _shape(field.type, components) for field in fields}
            shape["required"] = [field.encode_name for field in fields if field.required]
        return {"$ref": _TEMPLATE.format(name=kind.__name__)}
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return {"anyOf": [_shape(one, components) for one in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return {"type": "array", "items": _shape(inner[0], components)}
    if origin is Annotated:
        return _shape(inner[0], components)
    if origin is dict:
        return {"type": "object", "additionalProperties": _shape(inner[1], components)}
    name = _SIMPLE.get(kind)
    return {"type": name} if name else {}


def _fields(components: dict[str, Any], ref: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = components[ref["$ref"].rsplit("/", 1)[-1]]
    return found


def _parameters(path: str, fields: dict[str, Any]) -> Iterable[dict[str, Any]]:
    inside = path_names(path)
    for name, schema in fields.get("properties", {}).items():
        if name in inside:
            yield {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {**schema, "minLength": 1} if schema.get("type") == "string" else schema,
            }
        else:
            yield {"name": name, "in": "query", "required": name in fields.get("required", ()), "schema": schema}


def _body(action: Action[Any, Any], fields: dict[str, Any]) -> dict[str, Any]:
    inside = set(path_names(action.path))
    schema = {
        "type": "object",
        "properties": {name: one for name, one in fields.get("properties", {}).items() if name not in inside},
        "required": [name for name in fields.get("required", ()) if name not in inside],
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _operation(about: str, name: str, ref: dict[str, Any]) -> dict[str, Any]:
    errors = {
        "401": "No token.",
        "403": "Not from a page of ours.",
        "404": "Not there.",
        "409": "In conflict with what is there now.",
        "413": "Too large.",
        "422": "Cannot be asked.",
        "423": "Somebody runs a turn.",
        "503": "The store does not answer.",
    }
    answers: dict[str, Any] = {"200": {"description": about, "content": {"application/json": {"schema": ref}}}}
    for status, words in errors.items():
        is_plain = status in {"401", "403"}
        content = {"text/plain": {"schema": {"type": "string"}}} if is_plain else _PROBLEM
        answers[status] = {"description": words, "content": content}
    return {"operationId": name, "summary": about, "responses": answers}
