"""Time-ordered ids."""

import threading
import uuid

from sessiontree.model.ids import IdSource
from sessiontree.testing import ManualClock, seeded_random


def test_ids_are_uuids_of_version_7_with_the_time_in_front() -> None:
    clock = ManualClock()
    made = uuid.UUID(IdSource(clock).new())
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == clock() // 1_000_000


def test_ids_sort_by_creation_also_when_the_clock_stands_still_or_steps_back() -> None:
    clock = ManualClock()
    source = IdSource(clock)
    made: list[str] = []
    for step in (0, 0, 0.001, 0, -5, 0, 5, 10):
        clock.advance(step)
        made += [source.new() for _ in range(50)]
    assert made == sorted(set(made))


def test_the_same_sources_give_the_same_ids() -> None:
    first, second = (IdSource(ManualClock(), seeded_random(3)) for _ in range(2))
    assert [first.new() for _ in range(5)] == [second.new() for _ in range(5)]
    assert first.new() != IdSource(ManualClock(), seeded_random(4)).new()


def test_there_is_room_above_the_highest_random_start() -> None:
    source = IdSource(ManualClock(), random=lambda size: b"\xff" * size)
    made = [source.new() for _ in range(1000)]
    assert made == sorted(set(made))
    assert {uuid.UUID(name).version for name in made} == {7}


def test_threads_never_get_the_same_id() -> None:
    source = IdSource(ManualClock())
    made: list[str] = []
    workers = [threading.Thread(target=lambda: made.extend(source.new() for _ in range(500))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(made)) == 4000


def test_a_clock_before_1970_gives_ids_all_the_same() -> None:
    source = IdSource(lambda: -5_000_000_000)
    first, second = source.new(), source.new()
    assert uuid.UUID(first) < uuid.UUID(second)
    assert uuid.UUID(first).int >> 80 == 0
    assert IdSource(lambda: -5_000_000_000).new() not in {first, second}
