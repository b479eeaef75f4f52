"""Every way in which programs dump an SDK's answer before they store it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from validation.material import Draw

__all__ = ["DUMPS", "dumped"]


def _to_dict(answer: Any) -> Any:
    return answer.to_dict() if hasattr(answer, "to_dict") else answer.model_dump(exclude_unset=True, by_alias=True)


def _to_json(answer: Any) -> Any:
    return json.loads(answer.to_json() if hasattr(answer, "to_json") else answer.model_dump_json(exclude_none=True))


def _json_dict(answer: Any) -> Any:
    return answer.to_json_dict() if hasattr(answer, "to_json_dict") else answer.model_dump(mode="json")


DUMPS: dict[str, Callable[[Any], Any]] = {
    "object": lambda answer: answer,
    "model_dump": lambda answer: answer.model_dump(),
    "model_dump json": lambda answer: answer.model_dump(mode="json"),
    "model_dump by_alias": lambda answer: answer.model_dump(by_alias=True),
    "model_dump json by_alias": lambda answer: answer.model_dump(mode="json", by_alias=True),
    "model_dump exclude_none": lambda answer: answer.model_dump(exclude_none=True),
    "model_dump exclude_unset": lambda answer: answer.model_dump(exclude_unset=True),
    "model_dump exclude_defaults": lambda answer: answer.model_dump(exclude_defaults=True),
    "model_dump_json": lambda answer: json.loads(answer.model_dump_json()),
    "model_dump_json by_alias": lambda answer: json.loads(answer.model_dump_json(by_alias=True, exclude_none=True)),
    "to_dict": _to_dict,
    "to_json": _to_json,
    "to_json_dict": _json_dict,
    "dict": dict,
}


def dumped(answer: BaseModel, draw: Draw) -> Any:
    """Return an answer as it is, or dumped in one of the ways."""
    return DUMPS[draw.pick(sorted(DUMPS))](answer)
