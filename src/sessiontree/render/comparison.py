"""Two branches compared: what each has after they parted, paired by kind and place.

>>> one = [Block(kind="prompt", entry_id="1", text="Fix it"), Block(kind="answer", entry_id="2", text="Done.")]
>>> other = [Block(kind="prompt", entry_id="8", text="Freeze it"), Block(kind="answer", entry_id="9", text="Done.")]
>>> [pair.sign for pair in pairs_of(one, other)]
['differs', 'same']
>>> marked_words("a small cat", "a big cat")[0]
[('a ', False), ('small', True), (' cat', False)]
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal

from sessiontree.model import Checkpoint, Entry, Record
from sessiontree.render.entries import role_of, words_of
from sessiontree.render.steps import Step, steps_of
from sessiontree.render.turns import is_bookkeeping, is_prompt

__all__ = ["Block", "Pair", "blocks_of", "marked_words", "pairs_of"]


_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)
_MOST_WORDS = 4_000
_LEAST_ALIKE = 0.25
"""Texts with less in common are shown without marks: everything would be marked."""


class Block(Record, frozen=True, kw_only=True):
    """A prompt, an answer, a tool call with its outcome, or another event. ``text`` of a call is what it is about."""

    kind: Literal["prompt", "answer", "step", "event"]
    entry_id: str
    time_ns: int = 0
    name: str = ""
    text: str = ""
    outcome: str = ""
    is_failed: bool = False
    added: int = 0
    removed: int = 0

    @property
    def content(self) -> tuple[str, ...]:
        """What makes two blocks the same."""
        name = self.name if self.kind == "step" else ""
        return (self.kind, name, " ".join(self.text.split()), str(self.is_failed))


class Pair(Record, frozen=True, kw_only=True):
    """Blocks beside each other: the same, different, or only on one side."""

    sign: Literal["same", "differs", "one"]
    left: tuple[Block, ...] = ()
    right: tuple[Block, ...] = ()


def blocks_of(entries: Sequence[Entry], folder: str = "") -> list[Block]:
    """Return what a reader sees of the entries of a path; checkpoints are compared as files."""
    steps: dict[str, list[Step]] = {}
    answered: set[str] = set()
    for step in steps_of(entries, folder):
        steps.setdefault(step.entry.id, []).append(step)
        answered.add(step.call.id)
    return [block for entry in entries for block in _blocks(entry, steps.get(entry.id, []), answered, folder)]


def _blocks(entry: Entry, steps: Sequence[Step], answered: set[str], folder: str) -> Iterator[Block]:
    if is_bookkeeping(entry) or isinstance(entry.payload, Checkpoint):
        return
    message = entry.message
    if message is not None and message.tool_results and all(one.call_id in answered for one in message.tool_results):
        return
    text = message.text.strip() if message is not None else ""
    model = getattr(entry.payload, "model", "")
    if is_prompt(entry):
        yield Block(kind="prompt", entry_id=entry.id, time_ns=entry.created_ns, text=text or words_of(entry, folder))
        return
    if message is None or (not text and not steps):
        words = words_of(entry, folder, 400)
        yield Block(kind="event", entry_id=entry.id, time_ns=entry.created_ns, name=role_of(entry), text=words)
        return
    if text:
        yield Block(kind="answer", entry_id=entry.id, time_ns=entry.created_ns, name=model, text=text)
    for step in steps:
        gist = step.gist
        yield Block(
            kind="step",
            entry_id=entry.id,
            time_ns=entry.created_ns,
            name=gist.name,
            text=gist.object,
            outcome=gist.outcome if gist.is_answered else "no result",
            is_failed=gist.is_failed,
            added=gist.added,
            removed=gist.removed,
        )


def pairs_of(left: Sequence[Block], right: Sequence[Block]) -> list[Pair]:
    """Pair the blocks of two branches: the same ones first, then those of one kind between them, in order."""
    pairs: list[Pair] = []
    for a, b, tag in _aligned([one.content for one in left], [one.content for one in right]):
        if tag == "equal":
            pairs += [
                Pair(sign="same", left=(one,), right=(other,)) for one, other in zip(left[a], right[b], strict=True)
            ]
            continue
        here, there = left[a], right[b]
        for x, y, kind in _aligned([one.kind for one in here], [one.kind for one in there]):
            if kind == "equal":
                both = zip(here[x], there[y], strict=True)
                pairs += [Pair(sign="differs", left=(one,), right=(other,)) for one, other in both]
            else:
                pairs += _one_sided(here[x], there[y])
    return pairs


def _aligned(left: Sequence[Hashable], right: Sequence[Hashable]) -> Iterator[tuple[slice, slice, str]]:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for tag, start, end, other, other_end in matcher.get_opcodes():
        yield slice(start, end), slice(other, other_end), tag


def _one_sided(left: Sequence[Block], right: Sequence[Block]) -> Iterator[Pair]:
    """Tool calls one after the other are one cell, everything else has a cell of its own."""
    for run in _runs(left):
        yield Pair(sign="one", left=run)
    for run in _runs(right):
        yield Pair(sign="one", right=run)


def _runs(blocks: Sequence[Block]) -> Iterator[tuple[Block, ...]]:
    run: list[Block] = []
    for block in blocks:
        if run and not (block.kind == run[-1].kind == "step"):
            yield tuple(run)
            run = []
        run.append(block)
    if run:
        yield tuple(run)


Marked = list[tuple[str, bool]]
"""Pieces of a text, and whether the other text does not have them."""


def marked_words(old: str, new: str) -> tuple[Marked, Marked]:
    """Return two texts in pieces, those that only one of them has marked; without marks if little is the same."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if len(before) + len(after) > _MOST_WORDS:
        return [(old, False)], [(new, False)]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return [(old, False)], [(new, False)]
    codes = matcher.get_opcodes()
    left = [("".join(before[start:end]), tag != "equal") for tag, start, end, _, _ in codes]
    right = [("".join(after[start:end]), tag != "equal") for tag, _, _, start, end in codes]
    return _joined(left), _joined(right)


def _joined(pieces: Marked) -> Marked:
    """Marks with only a space between them are one mark."""
    found: Marked = []
    for at, (text, is_marked) in enumerate(pieces):
        is_between = not text.strip() and 0 < at < len(pieces) - 1 and pieces[at - 1][1] and pieces[at + 1][1]
        mark = is_marked or is_between
        if found and found[-1][1] == mark:
            found[-1] = (found[-1][0] + text, mark)
        elif text:
            found.append((text, mark))
    return found
