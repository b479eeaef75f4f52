"""Full text on the server: what was committed is found, ranked, and gone after a delete."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol, TypeGuard, TypeVar

import pytest
from psycopg_pool import ConnectionPool

import sessiontree as st
from known import of_kind, present
from postgres_server import process_database, with_options
from sessiontree.search import SearchOrder, SearchQuery, Term
from sessiontree.stores.postgres import PostgresStore, search_index
from sessiontree.stores.postgres.driver import PlainConnection, run
from sessiontree.stores.postgres.search_index import catch_up
from sessiontree.stores.postgres.search_matches import Scope, find_matches
from sessiontree.stores.postgres.steps import Steps

T = TypeVar("T")


class Search(Protocol):
    def __call__(self, *terms: Term, order: SearchOrder = "best") -> list[str]:
        """The ids of the entries that are found."""
        ...


def pool_of(journal: st.Journal) -> ConnectionPool[PlainConnection]:
    return of_kind(PostgresStore, journal.store)._pool


def word(*tokens: str, **options: bool) -> Term:
    return Term(alternatives=(tokens,), **options)


@pytest.fixture
def namespace(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def journal(namespace: str) -> Iterator[st.Journal]:
    with st.open(with_options(process_database(), namespace=namespace)) as journal:
        journal.create_thread("t")
        yield journal


@pytest.fixture
def search(journal: st.Journal, namespace: str) -> Search:
    def search(*terms: Term, order: SearchOrder = "best") -> list[str]:
        pool = pool_of(journal)
        run(catch_up(namespace), pool)
        query = SearchQuery(terms=terms)
        found = run(find_matches(namespace, query, Scope(), order=order, enough=100), pool)
        return [match.row[0].decode() for match in found]

    return search


def fill(journal: st.Journal, **texts: str) -> None:
    for name, text in texts.items():
        journal.append("t", st.user(text), id=name)


def test_words_phrases_prefixes_and_exclusions(journal: st.Journal, search: Search) -> None:
    fill(journal, a="the disk is full", b="full of disk errors", c="retrying the upload", d="disk")
    assert set(search(word("disk"))) == {"a", "b", "d"}
    assert search(word("disk", "is")) == ["a"]
    assert search(word("retr", is_prefix=True)) == ["c"]
    assert set(search(word("disk"), word("full", is_excluded=True))) == {"d"}
    assert search(word("disk"), word("upload")) == []


def test_an_alternative_is_enough(journal: st.Journal, search: Search) -> None:
    fill(journal, a="read file", b="readfile", c="file read")
    assert set(search(Term(alternatives=(("read", "file"), ("readfile",))))) == {"a", "b"}


def test_more_and_nearer_is_better(journal: st.Journal, search: Search) -> None:
    fill(journal, far="disk and a lot of other words before it is at last full", near="disk full disk full")
    assert search(word("disk"), word("full"))[0] == "near"
    assert search(word("disk"), word("full"), order="newest") == ["near", "far"]


@pytest.mark.parametrize("token", ["o'clock", "back\\slash", "a&b", "x:*", "(", "!", "東", "é", "'", "<->"])
def test_no_word_is_an_operator(journal: st.Journal, search: Search, token: str) -> None:
    fill(journal, plain="nothing here", odd=f"before {token} after")
    assert search(word(token)) == (["odd"] if token == "東" else [])
    assert [hit.entry.id for hit in journal.search(f"before {token} after").hits] == ["odd"]


def test_a_text_of_megabytes_is_found_to_its_end(journal: st.Journal, search: Search) -> None:
    words = [f"word{number}" for number in range(200_000)]
    fill(journal, big=" ".join(words), huge="x" * 3_000_000)
    assert search(word("word199999")) == ["big"]
    assert search(word("word123456", "word123457")) == ["big"]
    assert search(word("x" * 3_000_000)) == ["huge"]


def test_what_comes_later_is_found_and_what_is_deleted_is_not(journal: st.Journal, search: Search) -> None:
    fill(journal, a="needle")
    assert search(word("needle")) == ["a"]
    journal.fork("t", new_id="f")
    journal.append("f", st.user("another needle"), id="b")
    assert set(search(word("needle"))) == {"a", "b"}
    journal.delete_thread("f")
    assert search(word("needle")) == ["a"]


def test_another_namespace_is_not_searched(journal: st.Journal, search: Search) -> None:
    with st.open(with_options(process_database(), namespace="elsewhere")) as other:
        other.append(other.create_thread().id, st.user("haystack"))
    assert search(word("haystack")) == []


QUERIES = (
    "disk", '"disk is"', "retr*", "disk -full", "readfile", "readFile", "read_file", "role:assistant disk",
    "role:user", "tool:ba*", "tool:bash disk", "model:gpt", "file:main.py", "label:good", "thread:t", "branch:t",
    "branch:f disk", "caf\u00e9", "\u6771\u4eac", "before:2000-01-01", "after:2000-01-01 disk", "nowhere",
)  # fmt: skip


def fill_both(*journals: st.Journal) -> None:
    call = st.call("c", "bash", '{"path": "src/main.py", "command": "df disk"}')
    for journal in journals:
        if "t" not in [thread.id for thread in journal.list_threads()]:
            journal.create_thread("t")
        fill(
            journal, a="the disk is full", b="retrying readFile", c="read_file or readfile", d="Caf\u00e9 \u6771\u4eac"
        )
        journal.append("t", st.assistant("no disk", model="GPT-9"), id="e")
        journal.append("t", st.assistant("see", calls=[call]), id="f")
        journal.rewind("t", "b")
        journal.append("t", st.user("another disk"), id="g")
        journal.append("t", st.Label(target="a", label="good"), id="l")
        journal.fork("t", at="b", new_id="f")
        journal.append("f", st.user("a fork of the disk"), id="h")


def test_the_journal_finds_what_the_memory_store_finds(journal: st.Journal) -> None:
    with st.open("memory:") as model:
        fill_both(model, journal)
        for query in QUERIES:
            expected = [hit.entry.id for hit in model.search(query, order="newest")]
            assert sorted(hit.entry.id for hit in journal.search(query, order="newest")) == sorted(expected), query
        pages, cursor = [], None
        while True:
            page = journal.search("disk", limit=2, cursor=cursor)
            pages += [hit.entry.id for hit in page]
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(pages) == sorted(hit.entry.id for hit in model.search("disk"))


def test_a_part_of_an_id_is_enough(journal: st.Journal) -> None:
    journal.create_thread("abc-1")
    journal.create_thread("abc-2")
    with st.open("memory:") as model:
        for name in ("t", "abc-1", "abc-2"):
            model.create_thread(name)
        for part in ("abc", "1", "t", "abc-1", "x", "c-2"):
            assert journal.thread_ids(part) == model.thread_ids(part)


def test_an_excluded_word_counts_in_every_piece_of_a_long_text(journal: st.Journal) -> None:
    journal.append("t", st.user("omega " + "filler " * 20_000 + "beta"))
    journal.append("t", st.user("omega alone"))
    assert [present(hit.entry.message).text for hit in journal.search("omega -beta")] == ["omega alone"]


@pytest.mark.parametrize("order", ["best", "newest"])
def test_pages_stand_still_while_entries_arrive(journal: st.Journal, order: SearchOrder) -> None:
    expected = [journal.append("t", st.user(f"page item {number}")).id for number in range(20)]
    seen, cursor = [], None
    while True:
        page = journal.search("page", order=order, limit=3, cursor=cursor)
        seen += [hit.entry.id for hit in page]
        cursor = page.cursor
        if cursor is None:
            break
        journal.append("t", st.user("page newcomer"))
    assert sorted(seen) == sorted(expected)


@pytest.mark.parametrize("words", ["file:\0", "model:a\0", "tool:\0", "label:\0", "x\0y"])
def test_a_zero_character_finds_nothing_and_breaks_nothing(journal: st.Journal, words: str) -> None:
    journal.append("t", st.user("hello"))
    assert journal.search(words).hits == ()


def test_long_words_fit_however_many_there_are(journal: st.Journal) -> None:
    words = [f"{number:05d}{'x' * 250}" for number in range(9_000)]
    fill(
        journal, long=" ".join(words), short="hello", wide=" ".join("é" * 400 + str(number) for number in range(3_000))
    )
    assert [hit.entry.id for hit in journal.search("hello").hits] == ["short"]
    for word_ in (words[0], words[4_321], words[-1]):
        assert [hit.entry.id for hit in journal.search(word_).hits] == ["long"]


def test_many_long_identifiers_fit_too(journal: st.Journal) -> None:
    fill(journal, names=" ".join(f"read_{'y' * 300}_{number}" for number in range(5_000)), short="hello")
    assert [hit.entry.id for hit in journal.search("hello").hits] == ["short"]


def test_words_that_stand_far_apart_are_found_together(journal: st.Journal) -> None:
    filler = " ".join(f"w{number % 500}" for number in range(30_000))
    fill(journal, far=f"alpha {filler} omega here", near="alpha omega", one="alpha")
    assert {hit.entry.id for hit in journal.search("alpha omega").hits} == {"far", "near"}
    assert {hit.entry.id for hit in journal.search('alpha "omega here"').hits} == {"far"}
    assert {hit.entry.id for hit in journal.search("alpha -omega").hits} == {"one"}


def test_large_bodies_are_indexed_a_few_at_a_time(journal: st.Journal, namespace: str) -> None:
    replies = []

    def overheard(steps: Steps[T]) -> Steps[T]:
        request = next(steps)
        while True:
            replies.append((yield request))
            try:
                request = steps.send(replies[-1])
            except StopIteration as finished:
                answer: T = finished.value
                return answer

    journal.append_many("t", [st.user("x" * 3_000_000) for _ in range(6)])
    assert run(overheard(catch_up(namespace)), pool_of(journal)) == (6, 0)
    assert max(sum(map(len, filter(is_bytes, sum(reply, ())))) for reply in replies) < 13_000_000


def is_bytes(value: object) -> TypeGuard[bytes]:
    return isinstance(value, bytes)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("re*d*e", {"a"}), ("*file", {"a", "b"}), ("read_?ile", {"a"}), ("[rw]*", {"a", "b"}), ("[!r]*", {"b", "c", "d", "e"}),
     ("[", set()), ("(", set()), ("a.c", {"c"}), ("a[.]c", {"c"}), ("a[]x]c", {"d"}), ("*\\*", {"e"})],
)  # fmt: skip
def test_patterns_for_tools_mean_what_they_mean_everywhere(
    journal: st.Journal, pattern: str, expected: set[str]
) -> None:
    names = {"a": "read_file", "b": "write_file", "c": "a.c", "d": "a]c", "e": "x\\y"}
    with st.open("memory:") as memory:
        memory.create_thread("t")
        for name, tool in names.items():
            for store in (journal, memory):
                store.append("t", st.assistant(calls=[st.call(name, tool)]), id=name)
        for store in (journal, memory):
            assert {hit.entry.id for hit in store.search(f"tool:{pattern}").hits} == expected


def test_a_query_that_is_too_much_is_refused_as_such(journal: st.Journal) -> None:
    fill(journal, a="hello")
    with pytest.raises(st.InvalidInputError):
        journal.search(" ".join(f"w{number}" * 10 for number in range(60_000)))


def blocks_in(journal: st.Journal, namespace: str) -> int:
    with pool_of(journal).connection() as connection:
        sql = "SELECT count(*) FROM sessiontree.search_block WHERE namespace = %s"
        return int(present(connection.execute(sql, [namespace]).fetchone())[0])


def interrupted(steps: Steps[T], interrupt: Callable[[], object]) -> Steps[T]:
    """The steps, with an interruption whenever the bodies of entries were read."""
    request = next(steps)
    while True:
        rows = yield request
        if rows and len(rows[0]) > 1 and is_bytes(rows[0][-1]):
            interrupt()
        try:
            request = steps.send(rows)
        except StopIteration as finished:
            answer: T = finished.value
            return answer


def test_what_is_deleted_while_it_is_indexed_leaves_nothing_behind(journal: st.Journal, namespace: str) -> None:
    fill(journal, a="needle", b="hay")
    run(interrupted(catch_up(namespace), lambda: journal.delete_thread("t")), pool_of(journal))
    assert blocks_in(journal, namespace) == 0


def test_what_is_erased_while_it_is_indexed_leaves_nothing_behind(journal: st.Journal, namespace: str) -> None:
    fill(journal, a="needle", b="hay")
    run(interrupted(catch_up(namespace), lambda: journal.erase("t", ["a"])), pool_of(journal))
    assert blocks_in(journal, namespace) == 0
    assert journal.search("needle").hits == ()
    assert [hit.entry.id for hit in journal.search("hay").hits] == ["b"]


def test_what_stands_in_a_block_with_something_erased_is_still_found(journal: st.Journal, namespace: str) -> None:
    fill(journal, a="needle", b="hay", c="hay and needle")
    assert len(journal.search("needle").hits) == 2
    journal.erase("t", ["a"])
    assert run(search_steps(namespace, "hay"), pool_of(journal)) == ["c", "b"]
    assert [hit.entry.id for hit in journal.search("needle").hits] == ["c"]


def search_steps(namespace: str, token: str) -> Steps[list[str]]:
    """Search without indexing."""
    query = SearchQuery(terms=(word(token),))
    found = yield from find_matches(namespace, query, Scope(), order="newest", enough=100)
    return [match.row[0].decode() for match in found]


def note(seen: list[tuple[int, int]], done: int, total: int) -> None:
    seen.append((done, total))


def test_a_search_indexes_a_part_and_says_how_much_is_left(
    journal: st.Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_STEP_ENTRIES", 4)
    monkeypatch.setattr(search_index, "_BLOCK_ENTRIES", 2)
    journal.create_thread("u")
    for number in range(5):
        journal.append("t", st.user(f"old needle {number}"))
        journal.append("u", st.user(f"needle {number}"))
    steps = []
    for _ in range(10):
        seen: list[tuple[int, int]] = []
        page = journal.search("needle", progress=partial(note, seen))
        steps.append((len(page.hits), page.unsearched))
        assert seen[0][1] - seen[0][0] == page.unsearched
    assert steps[0] == (4, 6)
    assert steps[-1] == (10, 0)


def test_a_thread_that_grows_keeps_few_blocks(journal: st.Journal, namespace: str) -> None:
    for number in range(70):
        journal.append("t", st.user(f"word{number}"))
        assert len(journal.search(f"word{number}").hits) == 1
    assert blocks_in(journal, namespace) == 2
    assert [present(hit.entry.message).text for hit in journal.search("word0")] == ["word0"]


def test_what_a_deleted_thread_left_to_its_fork_is_found_there(journal: st.Journal) -> None:
    fill(journal, a="needle", b="hay")
    journal.fork("t", at="a", new_id="f")
    journal.delete_thread("t")
    assert [(hit.thread_id, hit.entry.id) for hit in journal.search("needle").hits] == [("f", "a")]
