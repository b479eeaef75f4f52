"""In and out again: the same bytes where nothing was damaged, every readable record where something was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from golden_sets import STORE_FORMATS, sets
from sessiontree.context.markdown import history
from sessiontree.model import TextPart
from sessiontree.transfer.formats import detect, export_sessions, import_sessions
from sessiontree.transfer.formats._records import ImportReport

EXACT = ("floret", "picoclaw", "ggcode")


def sources(fixtures: Path, name: str) -> list[Path]:
    """Every store of a format; without any there is nothing to test."""
    found = [store for one in sets(fixtures, name) for store in one.stores()]
    if not found:
        pytest.skip(f"{fixtures} has no store in the format {name}")
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def through(journal: st.Journal, source: Path, target: Path) -> tuple[ImportReport, dict[str, bytes]]:
    report = import_sessions(journal, source)
    export_sessions(journal, target, format=report.format, threads=report.threads)
    return report, contents(target)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("url", ["memory:", "sqlite"])
def test_golden_sound_files_come_out_byte_for_byte(
    name: str,
    url: str,
    seed_fixtures: Path,
    tmp_path: Path,
) -> None:
    compared = 0
    for number, source in enumerate(sources(seed_fixtures, name)):
        address = url if url == "memory:" else tmp_path / f"{number}.db"
        with st.open(address) as journal:
            report, written = through(journal, source, tmp_path / str(number))
        damaged = {Path(note.place) for note in report.notes}
        for place, body in contents(source).items():
            path = source / place
            is_sound = not any(path == one or one in path.parents or _is_beside(path, one) for one in damaged)
            if is_sound and place in written:
                assert written[place] == body, place
                compared += 1
    assert compared


def _is_beside(path: Path, damaged: Path) -> bool:
    """The other file of a session of which one file is broken."""
    is_in_its_folder = path.parent == damaged.parent and (path.parent / "thread.json").exists()
    return is_in_its_folder or (path.parent == damaged.parent and path.name.split(".")[0] == damaged.name.split(".")[0])


@pytest.mark.parametrize("name", EXACT)
def test_golden_a_store_without_damage_comes_out_whole(name: str, seed_fixtures: Path, tmp_path: Path) -> None:
    """What is damaged is taken out of a copy first; then every file must be there, with the same bytes."""
    for number, source in enumerate(sources(seed_fixtures, name)):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(source, copy)
        _take_damage_out(copy)
        if not any(copy.iterdir()):
            continue
        with st.open("memory:") as journal:
            report, written = through(journal, copy, tmp_path / f"out{number}")
            assert not report.notes
            assert written == contents(copy)


def _take_damage_out(store: Path) -> None:
    with st.open("memory:") as journal:
        notes = import_sessions(journal, store).notes
    for note in notes:
        place = Path(note.place)
        if place.is_dir():
            shutil.rmtree(place)
        elif place.parent != store:
            shutil.rmtree(place.parent, ignore_errors=True)
        elif place.name == "index.json":
            rows = [row for row in json.loads(place.read_bytes()) if (store / f"{row['id']}.jsonl").exists()]
            _write_index(place, rows)
        else:
            for path in [path for path in store.iterdir() if _is_beside(path, place)]:
                path.unlink()
    for path in store.iterdir():
        if path.suffix == ".migrated":
            path.unlink()
    index = store / "index.json"
    if index.exists():
        rows = [row for row in json.loads(index.read_bytes()) if (store / f"{row['id']}.jsonl").exists()]
        _write_index(index, rows)


def _write_index(path: Path, rows: list[dict[str, Any]]) -> None:
    text = json.dumps(rows, indent=2, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in STORE_FORMATS if name != "native"])
def test_golden_what_is_exported_imports_as_the_same(name: str, seed_fixtures: Path, tmp_path: Path) -> None:
    """Every set, into every format and back: the last words are there."""
    found = [store for other in STORE_FORMATS for one in sets(seed_fixtures, other) for store in one.stores()]
    assert found
    for number, source in enumerate(found):
        with st.open("memory:") as journal, st.open("memory:") as other:
            report = import_sessions(journal, source)
            target = tmp_path / str(number)
            exported = export_sessions(journal, target, format=name)
            place = target if detect(target) == name else next(path for path in target.iterdir())
            import_sessions(other, place, format=name)
            assert len(exported.threads) == len(report.threads)
            lost = {note.thread_id for note in exported.losses}
            for thread_id in set(report.threads) - lost:
                if other_id := _same_thread(other, thread_id):
                    said = _words(journal, thread_id)
                    again = "\n".join(message.text for message in history(other.path(other_id)))
                    assert not said or said[-1].strip() in again, thread_id


def _same_thread(journal: st.Journal, thread_id: str) -> str | None:
    try:
        return journal.thread(thread_id).id
    except st.ThreadNotFoundError:
        return None


def _words(journal: st.Journal, thread_id: str) -> list[str]:
    found = [message for message in history(journal.path(thread_id)) if message.role == "user"]
    plain = [message for message in found if all(isinstance(part, TextPart) for part in message.parts)]
    return [message.text for message in plain if message.text]


@pytest.mark.parametrize("name", [name for name in STORE_FORMATS if name not in ("native", "pi")])
def test_golden_importing_twice_adds_nothing_and_touches_nothing(
    name: str,
    seed_fixtures: Path,
    tmp_path: Path,
) -> None:
    for number, source in enumerate(sources(seed_fixtures, name)):
        before = contents(source.parent)
        with st.open(tmp_path / f"{name}{number}.db") as journal:
            first = import_sessions(journal, source)
            threads = [journal.thread(thread_id) for thread_id in first.threads]
            again = import_sessions(journal, source)
            assert (again.created, again.entries_added, again.conflicts) == (0, 0, ())
            assert again.entries_known == first.entries_added
            assert [journal.thread(thread_id) for thread_id in first.threads] == threads
            assert not journal.check()
        assert contents(source.parent) == before


@pytest.mark.parametrize("name", [name for name in STORE_FORMATS if name not in ("native", "pi")])
def test_golden_our_own_files_carry_everything(name: str, seed_fixtures: Path, tmp_path: Path) -> None:
    for number, source in enumerate(sources(seed_fixtures, name)):
        with st.open("memory:") as journal, st.open("memory:") as other:
            report = import_sessions(journal, source)
            export_sessions(journal, tmp_path / str(number), format="native")
            import_sessions(other, tmp_path / str(number), format="native")
            for thread_id in report.threads:
                assert other.entries(thread_id) == journal.entries(thread_id)
                assert other.thread(thread_id).leaf == journal.thread(thread_id).leaf


@pytest.mark.parametrize("name", STORE_FORMATS)
def test_golden_threads_count_what_the_model_sees(name: str, seed_fixtures: Path) -> None:
    for source in sources(seed_fixtures, name):
        with st.open("memory:") as journal:
            for thread in import_sessions(journal, source).threads:
                journal.append_many(thread, [st.user("and now?"), st.assistant("more")])
                # By hand, so that it is counted as those of the source are: from what is on the path.
                journal.append(thread, st.Compaction(summary="What happened so far."))
                journal.replace_context(thread, "What happened so far.", 1)
                assert journal.thread(thread).tokens == journal.context(thread).estimate, thread
