"""What is said about a value that an option or an argument does not take: what it takes, and what may have been meant."""

from __future__ import annotations

import re
from typing import Any

import click

from sessiontree.cli.suggestions import similar

__all__ = ["meant_by", "sentence_about"]


_REFUSED = re.compile(r"'?(.*?)'? is not ", re.DOTALL)


def sentence_about(error: click.BadParameter) -> str:
    """Return what is wrong in one sentence that names the value in quotes; "" if the words of click must do."""
    refused = _refused(error)
    taken = _taken(error.param.type) if error.param is not None else ""
    return f"{_name(error.param)} takes {taken}, not “{refused}”." if error.param and refused and taken else ""


def meant_by(error: click.BadParameter) -> list[str]:
    """Return the words that may have been meant."""
    kind = error.param.type if error.param is not None else None
    return similar(_refused(error), map(str, kind.choices)) if isinstance(kind, click.Choice) else []


def _refused(error: click.BadParameter) -> str:
    """The value, which click tells in its message only."""
    found = _REFUSED.match(error.message)
    return found[1] if found else ""


def _name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.human_readable_name


def _taken(kind: click.ParamType[Any]) -> str:
    match kind:
        case click.Choice(choices=[*others, last]):
            return f"{', '.join(map(str, others))} or {last}" if others else str(last)
        case click.IntRange(min=least, max=most):
            return f"a whole number{_bounds(least, most)}"
        case click.FloatRange(min=least, max=most):
            return f"a number{_bounds(least, most)}"
        case click.types.FloatParamType():
            return "a number"
        case _:
            return ""


def _bounds(least: float | None, most: float | None) -> str:
    return (f" from {least:,}" if least is not None else "") + (f" to {most:,}" if most is not None else "")
