"""Recall: the threads that help with a question in plain words.

A search finds entries with all of its words; a question has words that no single entry contains. So each word is
searched for by itself, and the lists are merged by reciprocal rank: an entry that is near the top of several lists
comes first.

>>> words_in("How did we fix the flaky login test in CI?")
['fix', 'flaky', 'login', 'test', 'ci']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sessiontree.mcp.library import Library
from sessiontree.mcp.names import RequestError
from sessiontree.mcp.text import entry_text
from sessiontree.model import Entry, Record, Thread
from sessiontree.search import Hit, SearchQuery
from sessiontree.search.query import parse_query
from sessiontree.search.snippets import snippet_of
from sessiontree.search.words import tokens_of

__all__ = ["Memory", "find_memories", "merge", "words_in"]


_DEPTH = 50
"""How many hits of each word are looked at."""

_MOST_WORDS = 8
_NEARBY = 10
"""How much less a hit at rank 2 counts than one at rank 1: 60 is usual for long lists, ours are short."""

_PASSAGES = 3
_PASSAGE = 400

_COMMON_WORDS = """
    a about after again all also am an and any are as at be because been before but by can could did do does doing done
    for from get got had has have he her his how i if in into is it its just last let like make me my new no not now of
    on once one only or other our out over please see she should so some than that the their them then there these they
    this those to too under up us use used using was way we were what when where which while who why will with would
    you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


class Memory(Record, frozen=True, kw_only=True):
    """A thread that may help: the hits in it, best first, and what the user had asked before the best one."""

    thread: Thread
    hits: tuple[Hit, ...]
    prompt: Entry | None = None


def words_in(question: str) -> list[str]:
    """Return the words of a question that are worth searching for, at most eight."""
    words = [word for word in dict.fromkeys(tokens_of(question)) if word not in _COMMON]
    return [word for word in words if len(word) > 1 or not word.isascii()][:_MOST_WORDS]


def merge(lists: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Return the hits of several lists, those near the top of several ones first."""
    scores: dict[tuple[str, str], float] = {}
    hits: dict[tuple[str, str], Hit] = {}
    for found in lists:
        for rank, hit in enumerate(found):
            name = (hit.entry.thread_id, hit.entry.id)
            hits.setdefault(name, hit)
            scores[name] = scores.get(name, 0.0) + 1 / (_NEARBY + rank)
    return [hits[name] for name in sorted(scores, key=lambda name: -scores[name])]


def find_memories(library: Library, question: str, folder: str, limit: int) -> list[Memory]:
    """Return the threads that help most with a question; with a folder, only those of that folder."""
    words = words_in(question)
    if not words:
        raise RequestError(f"There is no word to search for in {question[:80]!r}. Name files, errors, tools or topics.")
    search = library.journal.search
    queries = [f'"{word}"' for word in words]
    together = [" ".join(queries)] if len(queries) > 1 else []
    grouped: dict[str, list[Hit]] = {}
    for hit in merge(search(query, limit=_DEPTH).hits for query in (*together, *queries)):
        grouped.setdefault(hit.thread_id, []).append(hit)
    query = parse_query(" ".join(queries), now=library.now)
    memories: list[Memory] = []
    for thread_id, found in grouped.items():
        thread = library.journal.thread(thread_id)
        if folder in {"", thread.workspace}:
            hits = tuple(_marked(hit, query) for hit in found[:_PASSAGES])
            memories.append(Memory(thread=thread, hits=hits, prompt=_prompt(library, found[0])))
        if len(memories) == limit:
            break
    return memories


def _marked(hit: Hit, query: SearchQuery) -> Hit:
    """A hit with more text around it, and every word of the question marked."""
    return replace(hit, snippet=snippet_of(entry_text(hit.entry, "", is_whole=False), query, _PASSAGE))


def _prompt(library: Library, hit: Hit) -> Entry | None:
    """What the user had asked before a hit; None if the hit itself is that."""
    asked = library.journal.path(hit.thread_id, hit.entry.id, limit=1, types=["user_message"])
    return asked[0] if asked and asked[0].id != hit.entry.id else None
