"""What is drawn of a thread that grew is what would be drawn of it now, whatever was drawn in between."""

from __future__ import annotations

import sys
from random import Random

from hypothesis import given
from hypothesis import strategies as some

from property_settings import examples
from sessiontree.model import Entry, Payload
from sessiontree.model.builders import assistant, call, tool_result, user
from sessiontree.web.outline import Outline
from sessiontree.web.panes.tree import minimap_of
from sessiontree.web.reading import prompts_of
from sessiontree.web.rows import Drawing, Filter, Slot, draw

FILTERS: tuple[Filter, ...] = ("all", "prompts", "talk", "labels")


def grow(outline: Outline, entries: list[Entry], parent: str | None, payload: Payload) -> str:
    """Commit an entry below a parent; its id."""
    entry = Entry(id=f"e{len(entries)}", thread_id="t", parent=parent, created_ns=len(entries), payload=payload)
    entries.append(entry)
    outline.add([entry])
    return entry.id


def payload_of(random: Random, at: int) -> Payload:
    """A prompt, an answer, a call, or the result of an earlier call, which may have failed."""
    match random.randrange(6):
        case 0 | 1:
            return user(f"question {at}")
        case 2 | 3:
            return assistant(f"answer {at}")
        case 4:
            return assistant(calls=[call(f"c{at}", "bash")])
        case _:
            return tool_result(f"c{random.randrange(at + 1)}", "no", is_error=random.random() < 0.5)


def drawn(outline: Outline, drawing: Drawing, labels: frozenset[str]) -> tuple[list[Slot], list[str]]:
    return draw(outline, drawing, labels=labels, forks={}), minimap_of(outline, drawing.leaf)


@given(seed=some.integers(0, 1 << 32), before=some.sampled_from([0, 5, 290, 320]), moves=some.sampled_from([0, 20, 3]))
@examples(150, deep=3_000)
def test_a_drawing_that_was_continued_is_the_one_made_anew(seed: int, before: int, moves: int) -> None:
    random = Random(seed)
    outline, entries = Outline("t"), list[Entry]()
    leaf: str | None = None
    for at in range(before):
        leaf = grow(outline, entries, leaf, payload_of(random, at))
    labels = frozenset(f"e{random.randrange(400)}" for _ in range(3))
    toggled = frozenset(f"e{random.randrange(400)}" for _ in range(random.randrange(3)))
    for at in range(before, before + 40):
        if entries and moves and random.randrange(moves) == 0:
            leaf = random.choice(entries).id
        leaf = grow(outline, entries, leaf, payload_of(random, at))
        if random.random() < 0.6:
            drawing = Drawing(random.choice([leaf, leaf, random.choice(entries).id]), random.choice(FILTERS), toggled)
            fresh = Outline("t")
            fresh.add(entries)
            assert drawn(outline, drawing, labels) == drawn(fresh, drawing, labels)


@given(seed=some.integers(0, 1 << 32))
def test_the_path_to_any_entry_is_found_from_any_place(seed: int) -> None:
    random = Random(seed)
    outline, entries = Outline("t"), list[Entry]()
    for at in range(random.randrange(1, 120)):
        parent = random.choice(entries[-3:]).id if entries else None
        grow(outline, entries, parent, payload_of(random, at))
    for leaf in entries:
        path = [node.id for node in outline.upward(leaf.id)][::-1]
        start, end = random.randrange(len(path)), random.randrange(len(path) + 2)
        assert [node.id for node in outline.window(leaf.id, start, end)] == path[start:end]
        assert {entry.id for entry in entries if outline.is_on(entry.id, leaf.id)} == set(path)
        assert [outline.nodes[name].place for name in path] == list(range(len(path)))


def calls_for_one_more(entries_before: int) -> int:
    """How many functions are called to draw an entry that was added to a long thread."""
    outline, entries = Outline("t"), list[Entry]()
    leaf: str | None = None
    for at in range(entries_before):
        leaf = grow(outline, entries, leaf, user(f"question {at}") if at % 20 == 0 else assistant(f"answer {at}"))
    drawn(outline, Drawing(leaf), frozenset())
    leaf = grow(outline, entries, leaf, assistant("one more"))
    calls = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        drawn(outline, Drawing(leaf), frozenset())
        prompts_of(outline, leaf)
    finally:
        sys.setprofile(None)
    return calls


def test_an_entry_at_the_end_costs_the_same_however_long_its_thread_is() -> None:
    assert calls_for_one_more(32_010) < 1.5 * calls_for_one_more(16_010)
