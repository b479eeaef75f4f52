"""What the campaign itself promises: base64 in a text is found, and a seed gives the same history again."""

from __future__ import annotations

from typing import Any

import pytest

from validation.campaign import leaks
from validation.histories import contexts
from validation.material import PAYLOAD


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        ({"messages": [{"role": "user", "content": f"[image {PAYLOAD}]"}]}, ["base64 in content"]),
        ({"contents": [{"parts": [{"text": PAYLOAD}]}]}, ["base64 in text"]),
        ({"contents": [{"parts": [{"inlineData": {"data": PAYLOAD}}]}]}, []),
        ({"input": [{"content": [{"image_url": f"data:image/png;base64,{PAYLOAD}"}]}]}, []),
    ],
)
def test_base64_in_a_text_is_found(request_body: dict[str, Any], expected: list[str]) -> None:
    assert list(leaks(request_body)) == expected


def test_a_seed_gives_the_same_history_again() -> None:
    first, again = (
        [(list(history.steps), len(context.messages)) for history, context in contexts(3)] for _ in range(2)
    )
    assert first
    assert first == again
