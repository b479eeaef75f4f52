"""Files that grow, are cut, are copied or repeat themselves: any number of imports gives what one import gives."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from transcript_samples import Sample, samples

import sessiontree as st
from sessiontree.transfer.formats import import_sessions

SESSION = "0b5e7c1a-1111-4222-8333-444455556666"
CLAUDE = [one for one in samples() if one.format == "claude-code" and one.path.suffix == ".jsonl"]


def line(name: str, parent: str | None, role: str, *blocks: Any, id: str = "") -> bytes:
    message = {"role": role, "content": list(blocks), **({"id": id, "usage": {"output_tokens": 5}} if id else {})}
    wire = {"type": role, "uuid": name, "parentUuid": parent, "sessionId": SESSION, "message": message}
    return json.dumps(wire).encode() + b"\n"


def said(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


SPLIT = [
    line("q", None, "user", said("question")),
    line("a1", "q", "assistant", said("I look"), id="m"),
    line("a2", "a1", "assistant", {"type": "tool_use", "id": "c1", "name": "Read", "input": {}}, id="m"),
    line("a3", "a2", "assistant", {"type": "tool_use", "id": "c2", "name": "Read", "input": {}}, id="m"),
    line("r1", "a2", "user", {"type": "tool_result", "tool_use_id": "c1", "content": "one"}),
    line("r2", "a3", "user", {"type": "tool_result", "tool_use_id": "c2", "content": "two"}),
    line("b1", "r2", "assistant", said("It grow"), id="n"),
    line("b2", "b1", "assistant", said("It grows"), id="n"),
]


def tree(journal: st.Journal) -> dict[str, Any]:
    """Threads with their heads, and their entries with parents and contents."""
    return {
        thread.id: (
            thread.leaf,
            [(entry.id, entry.parent, entry.payload) for entry in journal.entries(thread.id)],
        )
        for thread in journal.iter_threads(is_archived=None, order="created")
    }


def whole(path: Path) -> dict[str, Any]:
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        return tree(journal)


def in_steps(path: Path, cuts: list[int]) -> dict[str, Any]:
    data = path.read_bytes()
    with st.open("memory:") as journal:
        for number, end in enumerate([*cuts, len(data)]):
            path.write_bytes(data[:end])
            os.utime(path, ns=(number, number))
            import_sessions(journal, path, format="claude-code")
        return tree(journal)


def copied(data: bytes, folder: Path) -> Path:
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(data)
    return path


def test_a_split_response_that_is_imported_while_it_is_written_leaves_no_copies(tmp_path: Path) -> None:
    path = copied(b"".join(SPLIT), tmp_path)
    wanted = whole(path)
    assert in_steps(path, [sum(map(len, SPLIT[:end])) for end in range(1, len(SPLIT))]) == wanted
    parents = [parent for _, parent, _ in wanted[SESSION][1]]
    assert len(set(parents)) == len(parents)


def test_the_lines_of_a_response_say_everything_once(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, copied(b"".join(SPLIT), tmp_path))
        texts = [one.text for one in journal.context(SESSION).messages if one.text]
        assert texts == ["question", "I look", "It grow", "s"]
        used = [getattr(entry.payload, "usage", None) for entry in journal.entries(SESSION)]
        assert [one.output_tokens for one in used if one] == [5, 5]


@pytest.mark.parametrize("sample", CLAUDE, ids=lambda sample: sample.name)
def test_a_file_that_grows_in_pieces_of_any_size_is_as_one_that_is_read_once(sample: Sample, tmp_path: Path) -> None:
    data, chance = sample.path.read_bytes(), random.Random(4)
    path = tmp_path / sample.path.name
    path.write_bytes(data)
    wanted = whole(path)
    assert in_steps(path, sorted(chance.sample(range(len(data) // 4, len(data)), 12))) == wanted


def test_half_a_line_is_reported_and_read_when_it_is_whole(tmp_path: Path) -> None:
    data = b"".join(SPLIT[:2])
    path = copied(data[:-20], tmp_path)
    with st.open("memory:") as journal:
        for _ in range(2):
            (note,) = import_sessions(journal, path).damage
            assert "not whole" in note.problem
        path.write_bytes(data)
        assert import_sessions(journal, path).damage == ()
        assert [entry.id for entry in journal.entries(SESSION)] == ["q", "a1"]


def test_lines_that_occur_twice_are_left_out(tmp_path: Path) -> None:
    first = copied(b"".join(SPLIT), tmp_path)
    wanted = whole(first)
    first.write_bytes(b"".join([*SPLIT[:3], SPLIT[0], *SPLIT[3:], SPLIT[1], SPLIT[-1]]))
    assert whole(first) == wanted


def test_a_source_that_was_cut_does_not_move_the_head_back(tmp_path: Path) -> None:
    path = copied(b"".join(SPLIT), tmp_path)
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        path.write_bytes(b"".join(SPLIT[:3]))
        import_sessions(journal, path)
        assert journal.thread(SESSION).leaf == "b2"
        more = line("z", "a2", "user", said("another way"))
        path.write_bytes(b"".join([*SPLIT[:3], more]))
        import_sessions(journal, path)
        assert journal.thread(SESSION).leaf == "z"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_session_in_two_files_settles_whatever_the_order(order: tuple[int, int], tmp_path: Path) -> None:
    contents = (b"".join(SPLIT), b"".join([*SPLIT[:4], line("z", "a3", "user", said("elsewhere")), b"{broken\n"]))
    folders = [tmp_path / str(number) for number in order]
    for number, folder in zip(order, folders, strict=True):
        folder.mkdir()
        copied(contents[number], folder)
    with st.open("memory:") as journal:
        for folder in folders:
            import_sessions(journal, folder)
        before = list(journal.iter_threads())
        for folder in (*folders, *reversed(folders), tmp_path, *folders):
            report = import_sessions(journal, folder)
            assert (report.entries_added, report.conflicts) == (0, ())
            assert list(journal.iter_threads()) == before
        assert len(import_sessions(journal, tmp_path).damage) == 1


def test_a_file_whose_name_is_not_utf_8_is_imported(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"t\xe4lk.jsonl")
    path.write_bytes(b"".join(SPLIT).replace(SESSION.encode(), b""))
    with st.open(tmp_path / "j.db") as journal:
        for _ in range(2):
            report = import_sessions(journal, tmp_path)
            assert (len(report.threads) or report.unchanged, report.damage) == (1, ())
