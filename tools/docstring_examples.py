"""An extension of griffe: show the doctests of a docstring as code on the documentation site."""

from __future__ import annotations

import re

import griffe

# An example begins at a prompt and ends before the next blank line.
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


def with_fences(text: str) -> str:
    """Put the examples of a docstring into fenced blocks.

    >>> print(with_fences("Add.\\n\\n>>> 1 + 1\\n2\\n\\nThat is all."))
    Add.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    That is all.
    """
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


class DocstringExamples(griffe.Extension):
    """Applies ``with_fences`` to every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_fences(obj.docstring.value)
