"""A process is killed in the middle of its appends: what was acknowledged is stored, once and complete."""

from pathlib import Path

import pytest
from processes import STORES, receive, url_of, worker

import sessiontree as st
from known import present

ROUNDS = 20


@pytest.mark.parametrize("store", STORES)
def test_every_acknowledged_batch_survives_sigkill_and_no_batch_is_torn(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    acknowledged = set()
    with st.open(url) as journal:
        journal.create_thread("t")
    for round_number in range(ROUNDS):
        acknowledged |= _killed_in_mid_write(url, round_number)
        with st.open(url) as journal:
            assert journal.check() == []
            stored = [entry.id for entry in journal.entries("t")]
        assert len(stored) == len(set(stored))
        batches = {name.rpartition("-")[0] for name in stored}
        assert len(stored) == 3 * len(batches)
        assert acknowledged <= batches
        assert len(batches - acknowledged) <= round_number + 1
    print(f"{store}: {len(acknowledged)} batches acknowledged over {ROUNDS} kills, none lost")


def _killed_in_mid_write(url: str, round_number: int) -> set[str]:
    with worker("append_for_ever", url, f"r{round_number}") as process:
        assert receive(process) == "ready"
        acknowledged = {receive(process) for _ in range(3 + round_number)}
        process.kill()
        return acknowledged | set(present(process.stdout).read().split())
