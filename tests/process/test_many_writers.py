"""Eight processes write one thread of one store at the same time."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import STORES, receive, send, url_of, worker

import sessiontree as st

PROCESSES = 8


@pytest.mark.parametrize("store", STORES)
def test_eight_writers_lose_and_double_nothing(store: str, tmp_path: Path) -> None:
    _write_together(store, tmp_path, seconds=1.0)


@pytest.mark.deep
@pytest.mark.parametrize("store", STORES)
def test_eight_writers_get_their_turn_over_ten_seconds(store: str, tmp_path: Path) -> None:
    counts = _write_together(store, tmp_path, seconds=10.0)
    assert max(counts) <= 3 * min(counts)


def _write_together(store: str, folder: Path, seconds: float) -> list[int]:
    url = url_of(store, folder)
    with st.open(url) as journal:
        journal.create_thread("t")
    with ExitStack() as stack:
        writers = [stack.enter_context(worker("append_for_a_while", url, n, seconds)) for n in range(PROCESSES)]
        for process in writers:
            assert receive(process) == "ready"
        for process in writers:
            send(process)
        counts = [int(receive(process)) for process in writers]
        assert [process.wait() for process in writers] == [0] * PROCESSES
    print(f"{store}: {counts}, fastest to slowest {max(counts) / min(counts):.2f}, {sum(counts) / seconds:.0f}/s")
    expected = {f"{writer}-{number}" for writer, count in enumerate(counts) for number in range(count)}
    with st.open(url) as journal:
        path = [entry.id for entry in journal.path("t")]
        assert len(path) == len(expected)
        assert set(path) == expected
        assert journal.check() == []
    return counts
