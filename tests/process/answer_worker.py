"""A process that shows an answer without end: ``answer_worker.py URL``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import sessiontree as st


def words() -> Iterator[dict[str, Any]]:
    for number in count():
        yield {"model": "m", "choices": [{"index": 0, "delta": {"content": f"{number} "}}]}


with st.open(sys.argv[1]) as journal:
    chat = journal.open_thread("t", create=True)
    with chat.turn(owner="w") as turn:
        for text in turn.stream("openai-chat", words(), durable_every_seconds=0):
            sys.stdout.write(text)
            sys.stdout.flush()
