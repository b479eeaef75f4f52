"""Search: one meaning on every store."""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from known import present
from property_settings import examples
from sessiontree.compaction.files import files_in
from sessiontree.model.tool_arguments import PATH_KEYS
from sessiontree.search.query import parse_query
from sessiontree.search.snippets import snippet_of
from sessiontree.search.words import fold, tokens_of
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.sqlite import SqliteBackend
from stores import backend_of, sqlite_backend

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STORES = ("memory", "sqlite", "jsonl")


@pytest.fixture(params=STORES)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with st.open(address(request.param, tmp_path)) as opened:
        yield opened


def address(kind: str, folder: Path) -> str:
    return {"memory": "memory:", "sqlite": str(folder / "j.db"), "jsonl": f"jsonl:///{folder / 'j'}"}[kind]


def texts(page: st.SearchPage) -> list[str]:
    return [present(hit.entry.message).text for hit in page]


def say(journal: st.Journal, *lines: str, thread: str | None = None) -> str:
    thread_id = thread or journal.create_thread(title="talk").id
    for line in lines:
        journal.append(thread_id, st.user(line))
    return thread_id


def test_every_word_must_be_found_in_any_order_and_case(journal: st.Journal) -> None:
    say(journal, "The disk is FULL again", "the disk is fine", "full stop")
    assert texts(journal.search("full Disk")) == ["The disk is FULL again"]


def test_a_phrase_is_found_as_it_stands(journal: st.Journal) -> None:
    say(journal, "out of disk space", "space out of disk", "disk space is out")
    assert texts(journal.search('"disk space"', order="newest")) == ["disk space is out", "out of disk space"]


def test_a_prefix_is_found_and_a_part_without_a_star_is_not(journal: st.Journal) -> None:
    say(journal, "retrying now", "retro games", "try")
    assert set(texts(journal.search("retr*"))) == {"retrying now", "retro games"}
    assert texts(journal.search("retr")) == []


def test_words_with_a_minus_are_left_out(journal: st.Journal) -> None:
    say(journal, "red apple", "green apple")
    assert texts(journal.search("apple -red")) == ["green apple"]
    assert texts(journal.search("role:user -red")) == ["green apple"]


@pytest.mark.parametrize("query", ["parse_config_file", "parseConfigFile", "config", "ParseConfig*", "parseconfigfile"])
def test_identifiers_are_found_by_their_parts_and_in_every_spelling(journal: st.Journal, query: str) -> None:
    say(journal, "see parse_config_file()", "nothing here", "or parseConfigFile, it says")
    assert len(journal.search(query)) == 2


def test_a_word_written_apart_is_found_by_its_name_written_together(journal: st.Journal) -> None:
    say(journal, "on GitHub", "on github")
    assert len(journal.search("GitHub")) == 2
    assert len(journal.search("github")) == 2


def test_chinese_japanese_and_thai_are_found_inside_longer_runs(journal: st.Journal) -> None:
    say(journal, "我在東京タワーの下にいます", "京東は会社です", "ผมชอบกินข้าวผัดมาก")
    assert texts(journal.search("東京")) == ["我在東京タワーの下にいます"]
    assert texts(journal.search("ข้าวผัด")) == ["ผมชอบกินข้าวผัดมาก"]


def test_accents_and_width_do_not_count(journal: st.Journal) -> None:
    say(journal, "le café français", "\uff26\uff35\uff2c\uff2c \uff57ide")
    assert len(journal.search("cafe")) == len(journal.search("full")) == 1


def test_filters_narrow_by_role_tool_model_and_file(journal: st.Journal) -> None:
    thread = say(journal, "read the config")
    ask = st.assistant("config?", calls=[st.call("c", "read_file", '{"path": "src/Config.py"}')], model="gpt-5-mini")
    journal.append(thread, ask)
    journal.append(thread, st.tool_result("c", "config = 1", name="read_file"))
    assert [hit.entry.type for hit in journal.search("config role:tool")] == ["tool_result"]
    assert len(journal.search("config tool:read_file")) == 2
    assert len(journal.search("tool:read* role:assistant")) == 1
    assert [hit.entry.type for hit in journal.search("model:gpt-5")] == ["tool_call"]
    assert [hit.entry.type for hit in journal.search("file:src/config.py")] == ["tool_call"]
    assert len(journal.search("file:other.py")) == 0


def test_filters_narrow_by_time(journal: st.Journal) -> None:
    thread = journal.create_thread().id
    for day in (1, 2, 3):
        at = int(datetime(2026, 1, day, 12, tzinfo=UTC).timestamp()) * 10**9
        journal.append(thread, st.user(f"day {day}"), created_ns=at)
    assert texts(journal.search("day after:2026-01-02T00:00+00:00 before:2026-01-03T00:00+00:00")) == ["day 2"]


def test_thread_means_all_its_branches_and_branch_means_the_active_path(journal: st.Journal) -> None:
    thread = say(journal, "apple one")
    first = journal.path(thread)[-1].id
    journal.append(thread, st.user("apple left"))
    journal.rewind(thread, first)
    journal.append(thread, st.user("apple right"))
    fork = journal.fork(thread, at=first).id
    journal.append(fork, st.user("apple fork"))
    say(journal, "apple elsewhere")

    def found(query: str) -> list[str]:
        return sorted(texts(journal.search(query)))

    assert found(f"apple thread:{thread}") == ["apple left", "apple one", "apple right"]
    assert found(f"apple branch:{thread}") == ["apple one", "apple right"]
    assert found(f"apple thread:{fork[-10:]}") == ["apple fork", "apple one"]
    assert found(f"thread:{fork} branch:{thread}") == ["apple one"]


def test_label_finds_the_entry_that_carries_it_now(journal: st.Journal) -> None:
    thread = say(journal, "alpha", "beta")
    alpha, beta = (entry.id for entry in journal.path(thread))
    journal.label(thread, alpha, "good")
    journal.label(thread, beta, "bad")
    assert texts(journal.search("label:good")) == ["alpha"]
    journal.label(thread, alpha, "")
    assert len(journal.search("label:good")) == 0


def test_better_matches_come_first_and_newest_orders_by_commit(journal: st.Journal) -> None:
    say(journal, "apple apple apple", "apple " + "and much other talk " * 20, *["filler"] * 5, "an apple here")
    assert texts(journal.search("apple"))[0] == "apple apple apple"
    assert texts(journal.search("apple", order="newest"))[0] == "an apple here"


def test_pages_go_on_without_repeating_although_more_is_written(journal: st.Journal) -> None:
    thread = say(journal, *(f"apple {number}" for number in range(25)))
    seen, cursor = [], None
    for _ in range(3):
        page = journal.search("apple", order="newest", limit=10, cursor=cursor)
        seen += texts(page)
        cursor = page.cursor
        journal.append(thread, st.user("apple late"))
    assert seen == [f"apple {number}" for number in range(24, -1, -1)]
    assert cursor is None


def test_a_hit_names_a_thread_that_shows_the_entry_after_its_own_was_deleted(journal: st.Journal) -> None:
    thread = say(journal, "apple kept")
    fork = journal.fork(thread).id
    journal.append(thread, st.user("apple gone"))
    journal.search("apple")
    journal.delete_thread(thread)
    page = journal.search("apple")
    assert [(hit.thread_id, present(hit.entry.message).text) for hit in page] == [(fork, "apple kept")]


@pytest.mark.parametrize("query", ["", "   ", "-only", "role:nobody", "after:soon", "role:", "-role:user x", "cursor"])
def test_a_query_that_means_nothing_is_refused_with_a_hint(journal: st.Journal, query: str) -> None:
    with pytest.raises(st.InvalidInputError):
        journal.search(query, cursor="zz" if query == "cursor" else None)


def test_punctuation_and_quotes_never_break_a_query(journal: st.Journal) -> None:
    say(journal, 'a "quoted" (word) AND NOT OR NEAR * ^ : { }')
    for query in ('"quoted', "(word)", "AND", "NOT", "near*", "x:y a", '""" quoted', "word^2"):
        journal.search(query)
    assert len(journal.search("NOT near")) == 1


def test_hits_are_shown_with_the_words_marked(journal: st.Journal) -> None:
    say(journal, "long ago " * 100 + "the Needle_in the\n\n haystack " + "and after " * 100)
    (hit,) = journal.search("needle haystack")
    assert [hit.snippet.text[a:b] for a, b in hit.snippet.marks] == ["Needle", "haystack"]
    assert hit.snippet.text.startswith("…")
    assert hit.snippet.text.endswith("…")
    assert "\n" not in hit.snippet.text
    assert len(hit.snippet.text) < 200


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_search_sees_what_another_process_committed_before_it(kind: str, tmp_path: Path) -> None:
    place = address(kind, tmp_path)
    with st.open(place) as journal:
        thread = say(journal, "apple mine")
        assert len(journal.search("apple")) == 1
        code = f"import sessiontree as st\nwith st.open({place!r}) as j: j.append({thread!r}, st.user('apple theirs'))"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert len(journal.search("apple")) == 2


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_deleted_words_are_gone_from_every_file(kind: str, tmp_path: Path) -> None:
    with st.open(address(kind, tmp_path)) as journal:
        secret = say(journal, "xylophonesecret", "mySecretTokenName")
        say(journal, "xylophone public")
        assert len(journal.search("xylophonesecret")) == 1
        journal.delete_thread(secret)
        everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        for word in (b"phonesecret", b"ySecretT", b"mysecrettokenname", b"secret"):
            assert word not in everything
        assert len(journal.search("xylophonesecret")) == 0
        assert len(journal.search("xylophone")) == 1


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_delete_that_did_not_reach_the_index_is_noticed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash between the commit and the clean-up of the index."""
    with st.open(address(kind, tmp_path)) as journal:
        gone = say(journal, "apple gone")
        say(journal, "apple stays")
        journal.search("apple")
        backend = backend_of(journal)
        assert isinstance(backend, SqliteBackend | JsonlBackend)
        monkeypatch.setattr(backend._searcher(), "forget", lambda *_: None)
        journal.delete_thread(gone)
    with st.open(address(kind, tmp_path)) as journal:
        assert texts(journal.search("apple")) == ["apple stays"]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
@pytest.mark.parametrize("damage", [b"", b"garbage " * 1000])
def test_a_broken_or_missing_index_is_rebuilt(kind: str, damage: bytes, tmp_path: Path) -> None:
    with st.open(address(kind, tmp_path)) as journal:
        say(journal, "apple")
        journal.search("apple")
    for path in index_files(tmp_path):
        path.unlink() if not damage else path.write_bytes(damage)
    with st.open(address(kind, tmp_path)) as journal:
        assert len(journal.search("apple")) == 1


def index_files(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*search*") if path.is_file()]
    assert found
    return found


def test_many_threads_search_while_others_write_and_each_sees_its_own_words(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        missing: list[str] = []

        def work(name: str) -> None:
            thread = journal.create_thread().id
            for number in range(15):
                word = f"{name}w{number}"
                journal.append(thread, st.user(f"{word} said"))
                if texts(journal.search(word)) != [f"{word} said"]:
                    missing.append(word)

        workers = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert missing == []


def test_deletes_across_shards_keep_the_rest_findable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessiontree.search._fts_query.SHARD", 8)
    monkeypatch.setattr("sessiontree.search._fts_query.SHARD", 8)
    with st.open(tmp_path / "j.db") as journal:
        threads = [say(journal, *(f"apple t{number} n{line}" for line in range(5))) for number in range(8)]
        assert len(journal.search("apple", limit=100)) == 40
        for number in (1, 4, 7):
            journal.delete_thread(threads[number])
        found = texts(journal.search("apple", limit=100))
        assert sorted(found) == sorted(f"apple t{n} n{line}" for n in (0, 2, 3, 5, 6) for line in range(5))


def test_a_store_that_cannot_be_written_beside_is_searched_all_the_same(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        say(journal, "apple")
        sqlite_backend(journal)._searcher()._index._path = Path("/proc/1/nowhere/index")
        assert len(journal.search("apple")) == 1


words = some.sampled_from(["apple", "Pear", "readFile", "read_file", "東京", "x", "42", "HTTPServer", "café"])
lines = some.lists(words, min_size=1, max_size=6).map(" ".join)
queries = some.lists(
    some.one_of(words, words.map(lambda w: f"{w[:3]}*"), words.map(lambda w: f"-{w}"), lines.map('"{}"'.format)),
    min_size=1,
    max_size=3,
).map(" ".join)


@examples(60, deep=600)
@given(some.lists(lines, min_size=1, max_size=8), some.lists(queries, min_size=1, max_size=5))
def test_the_index_finds_what_a_plain_scan_finds(contents: list[str], asked: list[str]) -> None:
    with TemporaryDirectory() as folder, st.open("memory:") as plain, st.open(f"{folder}/j.db") as indexed:
        for journal in (plain, indexed):
            journal.create_thread("t")
            journal.append_many("t", [st.user(line) for line in contents])
        for text in asked:
            try:
                expected = plain.search(text, order="newest", limit=100)
            except st.InvalidInputError:
                continue
            assert texts(indexed.search(text, order="newest", limit=100)) == texts(expected), text
            assert sorted(texts(indexed.search(text, limit=100))) == sorted(texts(expected)), text


@examples(300, deep=3_000)
@given(some.text(max_size=60), some.text(min_size=1, max_size=8))
def test_any_text_is_folded_parsed_and_shown_without_a_fault(text: str, wanted: str) -> None:
    assert tokens_of(fold(text)) == tokens_of(text) or not text.isascii()
    try:
        query = parse_query(wanted, now=NOW)
    except st.InvalidInputError:
        return
    snippet = snippet_of(text, query)
    assert all(0 <= a < b <= len(snippet.text) for a, b in snippet.marks)


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_ranking_after_deletes_and_appends_is_that_of_a_fresh_index(tmp_path: Path, kind: str) -> None:
    with st.open(address(kind, tmp_path)) as journal:
        kept = say(journal, "needle in a haystack")
        for number in range(3):
            gone = say(journal, f"needle {number} that goes")
            journal.search("needle")
            journal.delete_thread(gone)
            say(journal, f"needle {number} that stays, with more words", thread=kept)
        grown = [(hit.entry.id, hit.score) for hit in journal.search("needle")]
    for file in tmp_path.rglob("*search*"):
        file.unlink()
    with st.open(address(kind, tmp_path)) as journal:
        assert [(hit.entry.id, hit.score) for hit in journal.search("needle")] == grown


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_search_finds_what_stays_while_another_process_deletes(tmp_path: Path, kind: str) -> None:
    with st.open(address(kind, tmp_path)) as journal:
        say(journal, "needle that stays")
        doomed = [say(journal, "needle that goes") for _ in range(40)]
        journal.search("needle")
        script = "import sys, sessiontree as st\nwith st.open(sys.argv[1]) as j:\n [j.delete_thread(t) for t in sys.argv[2:]]"
        deleter = subprocess.Popen([sys.executable, "-c", script, address(kind, tmp_path), *doomed])
        is_done = False
        while not is_done:
            is_done = deleter.poll() is not None
            found = texts(journal.search("needle", order="newest", limit=100))
            assert "needle that stays" in found
        assert deleter.returncode == 0
        assert found == ["needle that stays"]


@pytest.mark.parametrize("times", ["before:9999-12-31", "after:0001-01-01", "before:9999-12-31T23:59:59+00:00"])
def test_times_far_away_are_times(journal: st.Journal, times: str) -> None:
    say(journal, "hello")
    assert texts(journal.search(f"hello {times}")) == ["hello"]


def test_a_search_of_very_many_words_is_refused_and_one_word_said_often_is_one(journal: st.Journal) -> None:
    say(journal, "hello world")
    assert texts(journal.search("hello " * 100_000)) == ["hello world"]
    with pytest.raises(st.InvalidInputError, match="at most"):
        journal.search(" ".join(f"word{number}" for number in range(1000)))
    with pytest.raises(st.InvalidInputError, match="at most"):
        journal.search('"' + "hello " * 100_000 + '"')


@pytest.mark.parametrize(
    "cursor", ["[1,-1]", "[-1,1]", "[1,99999999999999999999]", "[99999999999999999999,0]", "[1.5,2]"]
)
def test_an_unknown_cursor_is_refused(journal: st.Journal, cursor: str) -> None:
    say(journal, "hello")
    with pytest.raises(st.InvalidInputError, match="invalid cursor"):
        journal.search("hello", cursor=cursor.encode().hex())


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
@pytest.mark.parametrize("is_zeroed", [True, False])
def test_a_page_of_the_index_that_is_broken_costs_no_hit(tmp_path: Path, kind: str, is_zeroed: bool) -> None:
    with st.open(address(kind, tmp_path)) as journal:
        thread = say(journal)
        journal.append_many(thread, [st.user(f"needle number{number} " + "word " * 20) for number in range(150)])
        journal.label(thread, journal.path(thread)[3].id, "good")
        journal.search("needle")
    (index,) = (
        path for path in tmp_path.rglob("*search*") if path.is_file() and not path.name.endswith(("wal", "shm"))
    )
    content = index.read_bytes()
    for page in range(len(content) // 4096):
        broken = bytearray(content)
        broken[page * 4096 : (page + 1) * 4096] = bytes(4096) if is_zeroed else b"\xf9\x11" * 2048
        index.write_bytes(broken)
        with st.open(address(kind, tmp_path)) as journal:
            assert len(journal.search("needle", limit=1000).hits) == 150
            assert len(journal.search("number7", limit=1000).hits) == 1
            assert len(journal.search("label:good").hits) == 1


def test_a_repair_rebuilds_the_index(tmp_path: Path) -> None:
    with st.open(address("sqlite", tmp_path)) as journal:
        say(journal, "needle")
        journal.search("needle")
        index = tmp_path / "j.db-search"
        with sqlite3.connect(index) as connection:
            connection.execute("DELETE FROM doc")
        connection.close()
        assert len(journal.search("needle").hits) == 0
        journal.repair()
        assert len(journal.search("needle").hits) == 1


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("profile " * 3000 + "the file is here", "file", "file"),
        ("word " * 5000 + "Café here", "cafe", "Café"),
        ("abc " * 2000 + "readFile(x)", "file", "File"),
        ("out of order " * 1000 + "out of space", '"out of space"', "out of space"),
        ("x" * 100_000 + " retrying", "retr*", "retrying"),
    ],
)
def test_a_snippet_of_a_long_text_holds_the_match_and_marks_it(text: str, words: str, marked: str) -> None:
    snippet = snippet_of(text, parse_query(words, now=NOW))
    assert [snippet.text[start:end] for start, end in snippet.marks][-1:] == [marked]


@pytest.mark.parametrize("value", ["lib/only_here.py", ["lib/only_here.py"]], ids=["one", "list"])
@pytest.mark.parametrize("key", PATH_KEYS)
def test_search_and_compaction_know_the_same_arguments_that_name_files(
    journal: st.Journal, key: str, value: str | list[str]
) -> None:
    arguments = json.dumps({key: value})
    said = journal.append(journal.create_thread().id, st.assistant(calls=[st.call("c", "read_file", arguments)]))
    assert [hit.entry.id for hit in journal.search("file:only_here.py")] == [said.id]
    assert files_in([said.message]).read == ("lib/only_here.py",)


def test_a_search_in_a_fresh_process_read_the_file_once_for_each_hit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sessiontree.stores.jsonl.tree import Tree  # noqa: PLC0415

    with st.open(address("jsonl", tmp_path)) as first:
        first.create_thread("t")
        first.append_many("t", [st.user(f"needle {number}") for number in range(40)])
        assert len(first.search("needle", limit=20).hits) == 20
    reads: list[str] = []
    read = Tree.read

    def counted(name: str, path: Path) -> Tree:
        reads.append(name)
        return read(name, path)

    monkeypatch.setattr(Tree, "read", counted)
    with st.open(address("jsonl", tmp_path)) as fresh:
        assert len(fresh.search("needle", limit=20).hits) == 20
    assert len(reads) == 1
