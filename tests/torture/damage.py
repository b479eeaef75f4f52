"""The rungs with damaged files: bytes flipped, removed, doubled, blocks and lines too, in stores, exports and archives.

Whatever happened to a file, only our own errors come out, in bounded time and memory, and a repair loses nothing that was
readable.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import sessiontree as st
from torture import tracer
from torture.rounds import Outcome, Problem, Round, new_folder, url_of
from torture.writers import fork

_BLOCK = 512
_SECONDS = 60
_BYTES = 2 << 30
_TEXT = re.compile(rb"text-[a-z]+-[0-9]+-end")
_SAMPLES = Path(__file__).parents[1] / "data"

Files = dict[str, bytes]


def fill(journal: st.Journal, folder: Path) -> None:
    """Threads, forks, artifacts, files, deleted texts, leases and a search index, with a unique text in each entry."""
    root = folder / "root"
    root.mkdir()
    (root / "file").write_text("a file of the workspace")
    for thread in ("one", "two"):
        journal.create_thread(thread, tags=("x",), title=f"thread {thread}")
        for number in range(25):
            journal.append(thread, st.user(f"text-{thread}-{number}-end"), id=f"{thread}{number}")
    reference = journal.put_artifact(b"an artifact " * 400, mime="text/plain")
    journal.append("one", st.user([st.FilePart(artifact=reference)]), id="file")
    journal.workspace.snapshot("one", "one3", root)
    journal.fork("one", at="one5", new_id="fork")
    journal.append("fork", st.assistant("text-fork-0-end"), id="fork0")
    journal.rewind("one", "one10")
    journal.append("one", st.user("text-branch-0-end"), id="branch0")
    journal.create_thread("gone")
    journal.append("gone", st.user("deleted"))
    journal.search("text")
    journal.delete_thread("gone")
    journal.acquire_lease("fork", owner="somebody")
    shutil.rmtree(root)


@cache
def files_of(store: str, *, is_closed: bool) -> Files:
    """The files of a store that was closed, or as a process that was killed leaves them: with a log."""
    with new_folder() as name:
        folder = Path(name)

        def work() -> None:
            journal = st.open(url_of(store, folder))
            fill(journal, folder)
            if is_closed:
                journal.close()

        assert os.waitpid(fork(work), 0)[1] == 0
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@cache
def exported() -> Files:
    """Exports of a store and transcripts of other tools, single and in an archive."""
    with new_folder() as name, st.open("memory:") as journal:
        folder = Path(name)
        fill(journal, folder)
        st.export_sessions(journal, folder / "native", format="native")
        found = {f"native/{path.name}": path.read_bytes() for path in (folder / "native").rglob("*") if path.is_file()}
        samples = [path for path in sorted(_SAMPLES.rglob("*")) if path.suffix in {".json", ".jsonl", ".md", ".db"}]
        found |= {str(path.relative_to(_SAMPLES)): path.read_bytes() for path in samples}
        archive = folder / "archive.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for path in {path.name: path for path in samples if path.suffix == ".json"}.values():
                file.write(path, path.name)
        return found | {"archive/export.zip": archive.read_bytes()}


def damage(what: Round) -> Outcome:
    """Damage one or two files of a store, then read, check, repair and write."""
    source = random.Random(what.number)
    with new_folder() as name:
        folder = Path(name)
        is_closed = source.random() < 0.5
        files = dict(files_of(what.store, is_closed=is_closed))
        for path in source.sample([path for path in files if files[path]], source.choice((1, 1, 2))):
            files[path] = damaged(files[path], source)
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        # SQLite writes its log over pages of the file, wherever the damage has moved them.
        kept = _texts(folder) if is_closed or what.store == "jsonl" else set()
        return _in_child(lambda report: _visit(url_of(what.store, folder), kept, folder, report))


def damage_import(what: Round) -> Outcome:
    """Import a damaged file into a store that has a thread already."""
    source = random.Random(what.number)
    with new_folder() as name:
        folder = Path(name)
        place, content = source.choice(sorted(exported().items()))
        path = folder / "import" / place
        path.parent.mkdir(parents=True)
        path.write_bytes(damaged(content, source))
        return _in_child(lambda report: _import(url_of(what.store, folder), path, report))


def damaged(content: bytes, source: random.Random) -> bytes:
    """The content with one to four kinds of damage."""
    changed = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4))):
        source.choice((_flip, _remove, _repeat, _zero, _swap, _cut, _lines))(changed, source)
    return bytes(changed)


def _flip(content: bytearray, source: random.Random) -> None:
    for _ in range(source.choice((1, 3, 20))):
        if content:
            content[source.randrange(len(content))] ^= 1 << source.randrange(8)


def _span(content: bytearray, source: random.Random) -> slice:
    start = source.randrange(len(content) + 1)
    length = source.choice((1, 7, 60, _BLOCK, 4096, 8192))
    if length >= _BLOCK:
        start -= start % length
    return slice(start, start + length)


def _remove(content: bytearray, source: random.Random) -> None:
    del content[_span(content, source)]


def _repeat(content: bytearray, source: random.Random) -> None:
    span = _span(content, source)
    content[span.stop : span.stop] = content[span]


def _zero(content: bytearray, source: random.Random) -> None:
    span = _span(content, source)
    content[span] = bytes(len(content[span]))


def _swap(content: bytearray, source: random.Random) -> None:
    size = source.choice((_BLOCK, 4096, 8192))
    first, second = (source.randrange(len(content) // size + 1) * size for _ in range(2))
    one, two = content[first : first + size], content[second : second + size]
    if first + size <= len(content) and second + size <= len(content):
        content[first : first + size], content[second : second + size] = two, one


def _cut(content: bytearray, source: random.Random) -> None:
    del content[source.randrange(len(content) + 1) :]


def _lines(content: bytearray, source: random.Random) -> None:
    lines = bytes(content).splitlines(keepends=True)
    if len(lines) < 2:
        return
    number = source.randrange(len(lines))
    match source.choice(("remove", "repeat", "move")):
        case "remove":
            del lines[number]
        case "repeat":
            lines.insert(number, lines[number])
        case _:
            lines.insert(source.randrange(len(lines)), lines.pop(number))
    content[:] = b"".join(lines)


def _in_child(work: Callable[[int], None]) -> Outcome:
    """Do the work in a process with limited memory and time; each line of its report is a problem."""
    reading, writing = os.pipe()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        work(writing)
        os.write(writing, b"end\n")

    child = fork(limited)
    os.close(writing)
    has_ended = tracer.wait_for(child, _SECONDS)
    with os.fdopen(reading) as file:
        lines = file.read().splitlines()
    problems = [Problem("lost" if line.startswith("lost") else "other", line) for line in lines if line != "end"]
    if not has_ended:
        problems.append(Problem("hung", f"did not end in {_SECONDS} s"))
    elif "end" not in lines:
        problems.append(Problem("other", "the process ended early"))
    return Outcome(0, tuple(problems))


class _Visitor:
    """Calls verbs, and reports every error that is not ours."""

    def __init__(self, report: int) -> None:
        self._report = report

    def do(self, name: str, work: Callable[[], object]) -> object:
        """What the call returned; None if it raised."""
        try:
            return work()
        except st.SessionTreeError:
            return None
        except BaseException as error:  # noqa: BLE001  what leaves the library is what the ladder looks for
            self.say(f"raw in {name}: {type(error).__name__}: {str(error)[:300]}")
            return None

    def say(self, line: str) -> None:
        os.write(self._report, (line.replace("\n", " ") + "\n").encode())


def _visit(url: str, kept: set[bytes], folder: Path, report: int) -> None:
    visitor = _Visitor(report)
    journal = visitor.do("open", lambda: st.open(url))
    if not isinstance(journal, st.Journal):
        return
    before = _readable(visitor, journal)
    visitor.do("check", journal.check)
    visitor.do("repair", journal.repair)
    after = _readable(visitor, journal)
    lost = [entry for entry in before if entry not in after]
    if lost:
        visitor.say(f"lost by a repair: {lost[:5]} of {len(before)}")
    visitor.do("check after repair", journal.check)
    visitor.do("create", lambda: journal.create_thread("new"))
    visitor.do("append", lambda: journal.append("new", st.user("new")))
    visitor.do("append", lambda: journal.append("one", st.user("new")))
    visitor.do("close", journal.close)
    gone = kept - _texts(folder)
    if gone:
        visitor.say(f"lost from the disk: {sorted(gone)[:5]}")


def _texts(folder: Path) -> set[bytes]:
    found: set[bytes] = set()
    for path in folder.rglob("*"):
        if path.is_file() and "search" not in path.name and not path.name.endswith("-wal"):
            found |= set(_TEXT.findall(path.read_bytes()))
    return found


def _readable(visitor: _Visitor, journal: st.Journal) -> dict[str, str]:
    """Every entry that can be read, through any thread."""
    found: dict[str, str] = {}
    threads = visitor.do("list", lambda: list(journal.iter_threads(limit=100)))
    names = {thread.id for thread in threads} if isinstance(threads, list) else set()
    for name in sorted(names | {"one", "two", "fork"}):
        for verb in ("path", "entries", "context", "reflog", "children"):
            answer = visitor.do(verb, partial(_read, journal, verb, name))
            if verb in ("path", "entries") and isinstance(answer, list):
                found |= {entry.id: entry.message.text for entry in answer if entry.message}
    visitor.do("search", lambda: journal.search("text"))
    visitor.do("stats", journal.stats)
    return found


def _read(journal: st.Journal, verb: str, thread: str) -> object:
    return journal.children(thread, None) if verb == "children" else getattr(journal, verb)(thread)


def _import(url: str, path: Path, report: int) -> None:
    visitor = _Visitor(report)
    with st.open(url) as journal:
        journal.create_thread("mine")
        journal.append("mine", st.user("here before"), id="before")
        for source in (path, path.parent):
            visitor.do("import", partial(st.import_sessions, journal, source))
        visitor.do("search", lambda: journal.search("text"))
        for thread in journal.iter_threads(limit=100):
            visitor.do("context", partial(journal.context, thread.id))
        # An artifact that the file has lost is missing in the store too, and check says so.
        findings = visitor.do("check", lambda: [found for found in journal.check() if found.kind != "blob"])
        if findings:
            visitor.say(f"the store is damaged: {str(findings)[:300]}")
        if [entry.id for entry in journal.path("mine")] != ["before"]:
            visitor.say("lost: what was in the store before the import")
