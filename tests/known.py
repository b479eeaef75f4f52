"""What a test knows and a type does not say: that something is there, or of which kind it is."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    assert value is not None
    return value


def of_kind(kind: type[T], value: object) -> T:
    assert isinstance(value, kind), value
    return value
