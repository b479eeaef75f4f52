"""A process that saves each text before it shows it loses nothing of what it showed, whenever it is killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from processes import STORES, started, url_of

import sessiontree as st

WORKER = Path(__file__).with_name("answer_worker.py")
ROUNDS = 3


@pytest.mark.parametrize("store", STORES)
def test_every_letter_that_was_shown_is_there_after_a_kill(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    shown = []
    for characters in range(1, ROUNDS + 1):
        with started(WORKER, url) as process:
            assert process.stdout is not None
            before = process.stdout.read(40 * characters)
            process.kill()
            shown.append(before + process.stdout.read())
            assert process.wait() == -signal.SIGKILL
        with st.open(url) as journal:
            assert len(journal.resume("t", owner="w").interrupted) == 1
    with st.open(url) as journal:
        kept = [entry.payload for entry in journal.path("t") if isinstance(entry.payload, st.AssistantMessage)]
        assert [answer.is_partial for answer in kept] == [True] * ROUNDS
        for answer, text in zip(kept, shown, strict=True):
            assert answer.message.text.startswith(text)
            assert len(answer.message.text) - len(text) < 20  # one word may be saved and not yet shown
        assert journal.context("t").messages == ()
        assert journal.check() == []
