"""Import and export sessions in the formats of other programs.

>>> import tempfile, pathlib
>>> import sessiontree as st
>>> with tempfile.TemporaryDirectory() as name, st.open("memory:") as journal:
...     thread = journal.create_thread("demo", title="Demo")
...     _ = journal.append("demo", st.user("hello"))
...     report = export_sessions(journal, pathlib.Path(name, "floret"), format="floret")
...     with st.open("memory:") as other:
...         imported = import_sessions(other, pathlib.Path(name, "floret"))
...         (detect(pathlib.Path(name, "floret")), imported.entries_added, other.path("demo")[0].message.text)
('floret', 1, 'hello')

Each format is a module or package of its own with the functions of ``Format``; it is loaded when it is needed. Those in
``WRITABLE`` have a ``write`` too.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model import Progress, Thread
from sessiontree.render.figures import plural
from sessiontree.transfer.formats._artifacts import with_artifacts
from sessiontree.transfer.formats._files import (
    ExportTarget,
    closed_places,
    exported_threads,
    is_plain,
)
from sessiontree.transfer.formats._head import is_wholly_broken
from sessiontree.transfer.formats._load import load
from sessiontree.transfer.formats._records import (
    ExportReport,
    ImportedSession,
    ImportNote,
    ImportReport,
    Tally,
    is_unreadable,
    printable,
)
from sessiontree.transfer.formats._resume import KnownFiles
from sessiontree.transfer.subagents import subagents_left_out

__all__ = [
    "FORMATS",
    "TITLES",
    "WRITABLE",
    "ExportReport",
    "Format",
    "ImportNote",
    "ImportReport",
    "KnownFiles",
    "detect",
    "export_sessions",
    "formats_in",
    "import_changed",
    "import_everything",
    "import_sessions",
    "session_files",
]

_MOST_BYTES_HELD = 8 * 1024 * 1024


class Format(Protocol):
    """What the module of a format offers. Readers never write to the source; they note what is broken and go on."""

    @staticmethod
    def detect(source: Path) -> bool:
        """Whether the source looks like this format."""
        ...

    @staticmethod
    def size(source: Path) -> int:
        """How many bytes a reader will read."""
        ...

    @staticmethod
    def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
        """The sessions of a source, one after the other."""
        ...


class Writer(Protocol):
    """What the module of a format that holds whole stores offers besides."""

    @staticmethod
    def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
        """Write threads in this format."""
        ...


FORMATS = (
    "native", "floret", "ggcode", "zimaos", "openrouter", "pi", "claude-code", "codex", "gemini", "opencode", "goose",
    "crush", "cline", "aider", "openhands", "copilot", "lmstudio", "openwebui", "chatgpt", "claude-ai", "llm", "dataset",
    "picoclaw", "chat-log",
)  # fmt: skip
"""Names of the formats, in the order in which ``detect`` tries them: the least ambiguous first."""

WRITABLE = (
    "native", "floret", "ggcode", "zimaos", "openrouter", "pi", "picoclaw", "claude-code", "codex", "gemini", "opencode",
    "goose", "openai-jsonl", "sharegpt", "dpo",
)  # fmt: skip
"""Names of the formats that ``export_sessions`` writes."""

TOOL_EXPORTS = frozenset({"claude-code", "codex", "gemini", "opencode", "goose"})
"""Tools whose sessions are written one by one: as they were imported, or as the model sees them."""

ROW_EXPORTS = frozenset({"openai-jsonl", "sharegpt", "dpo"})
"""Rows for training."""

_BRANCH_EXPORTS = TOOL_EXPORTS | {"pi", "openai-jsonl", "sharegpt"}


_MODULES = {"llm": "llm_logs"}


def named(name: str) -> Format:
    """The module of a format."""
    if name not in FORMATS:
        raise InvalidInputError(f"unknown format {name!r}; use one of {', '.join(sorted(FORMATS))}")
    module = _MODULES.get(name, name.replace("-", "_"))
    return cast(Format, importlib.import_module(f"sessiontree.transfer.formats.{module}"))


TITLES = {
    "native": "sessiontree",
    "floret": "floret",
    "ggcode": "ggcode",
    "zimaos": "ZimaOS-Blue",
    "openrouter": "openrouter-agent-sdk",
    "pi": "pi",
    "claude-code": "Claude Code",
    "codex": "Codex CLI",
    "gemini": "Gemini CLI",
    "opencode": "OpenCode",
    "goose": "goose",
    "crush": "crush",
    "cline": "Cline, Roo Code or Kilo Code",
    "aider": "aider",
    "openhands": "OpenHands",
    "copilot": "GitHub Copilot CLI",
    "lmstudio": "LM Studio",
    "openwebui": "Open WebUI",
    "chatgpt": "ChatGPT export",
    "claude-ai": "claude.ai export",
    "llm": "llm",
    "dataset": "data set (OpenAI, Anthropic, ShareGPT, Alpaca, DPO)",
    "picoclaw": "picoclaw",
    "chat-log": "chat log (gptme, Vibe)",
}
"""What people call each format."""


_ONE_BY_ONE = ("native", "zimaos", "openrouter", "pi")
"""Formats whose files are read one by one in a folder that has those of other formats, too."""


def session_files(source: Path, format_name: str) -> list[Path]:
    """The files of a format in a file or folder."""
    reader = named(format_name)
    files = getattr(reader, "session_files", None)
    if files is not None:
        return cast("list[Path]", files(source))
    if source.is_file():
        return [source] if reader.detect(source) else []
    below = source.rglob("*.jsonl") if format_name == "pi" else source.iterdir() if source.is_dir() else ()
    return [path for path in sorted(below) if is_plain(path) and reader.detect(path)]


def detect(source: str | os.PathLike[str]) -> str | None:
    """The name of the format of a file or folder, or ``None``; of several formats in a folder the first."""
    path = Path(source)
    return next((name for name in FORMATS if named(name).detect(path)), None)


def formats_in(source: str | os.PathLike[str]) -> Iterator[str]:
    """The names of the formats that a file, or one of the files in a folder, has."""
    path = Path(source)
    is_folder = path.is_dir()
    for name in FORMATS:
        is_found = named(name).detect(path)
        if is_found or (is_folder and name in _ONE_BY_ONE and session_files(path, name)):
            yield name


def import_sessions(
    journal: Journal,
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    prefix: str = "",
    progress: Progress | None = None,
) -> ImportReport:
    """Import every session of a file or folder into a journal.

    Repeating an import changes nothing; when the source has grown, only new records are added. The source is never
    written to. Ids and times are those of the source; ``prefix`` is put in front of the thread ids. What cannot be
    read is named in the report, and the rest is imported. ``format`` is detected if it is not given; if it is, a
    source that does not exist is a store that was not used yet, and has no sessions.
    ``progress(done, total)`` is called with byte counts.
    """
    path = Path(source)
    if not path.exists():
        if format is None:
            raise InvalidInputError(f"{path} does not exist; name the file or folder that has the sessions")
        named(format)
        return Tally().report(format, str(path))
    if format is not None:
        return _import(journal, path, format, _Options(prefix, progress))
    names = list(formats_in(path)) if path.is_dir() else [name for name in [detect(path)] if name]
    if not names:
        raise InvalidInputError(f"the format of {path} is not known; name one of {', '.join(sorted(FORMATS))}")
    claimed: set[Path] = set()
    options = _Options(prefix, progress, claimed)
    one = _import if named(names[0]).detect(path) and len(names) == 1 else _import_files
    report = one(journal, path, names[0], options)
    return _with_unread_places(_with_hints_of_others(report, path, names[1:], options), path, claimed)


def import_everything(
    journal: Journal,
    source: str | os.PathLike[str],
    *,
    prefix: str = "",
    progress: Progress | None = None,
) -> list[ImportReport]:
    """Import a folder that may have the sessions of several tools; a report for each format that was found.

    Each file is read in the first format that recognises it.
    """
    path = Path(source)
    claimed: set[Path] = set()
    options = _Options(prefix, progress, claimed)
    if path.is_file():
        return [_import(journal, path, name, options) for name in islice(formats_in(path), 1)]
    names = list(formats_in(path))
    if len(names) == 1 and named(names[0]).detect(path):
        return [_with_unread_places(_import(journal, path, names[0], options), path, claimed)]
    found = [_import_files(journal, path, name, options) for name in names]
    told = [report for report in found if report.threads or report.notes or report.unchanged]
    return [_with_unread_places(told[0], path, claimed), *told[1:]] if told else []


def _with_hints_of_others(report: ImportReport, path: Path, names: list[str], options: _Options) -> ImportReport:
    """The report, with a hint for each other format that has files in the folder which were not read."""
    claimed = options.claimed or set()
    left = {name: len(set(session_files(path, name)) - claimed) for name in names}
    hints = tuple(
        ImportNote(
            kind="hint",
            place=str(path),
            problem=f"{plural(number, 'file')} of the format {name} {'was' if number == 1 else 'were'} not read; import it as well",
        )
        for name, number in left.items()
        if number
    )
    return replace(report, notes=(*report.notes, *hints))


def _with_unread_places(report: ImportReport, path: Path, claimed: set[Path]) -> ImportReport:
    """The report, with the files and folders that may not be read, and the logs in which nothing can be read."""
    if not path.is_dir():
        return report
    unread = [(one, f"cannot be read: {why}") for one, why in closed_places(path)]
    told = {*claimed, *(one for one, _ in unread), *(Path(note.place) for note in report.notes)}
    logs = (one for ending in ("*.jsonl", "*.jsonl.zst") for one in sorted(path.rglob(ending)))
    unread += [
        (one, "nothing in it can be read; it was left out")
        for one in logs
        if one not in told and is_plain(one) and is_wholly_broken(one)
    ]
    notes = [ImportNote(kind="damage", place=printable(str(one)), problem=problem) for one, problem in unread]
    return replace(report, notes=(*report.notes, *notes)) if notes else report


class _Options(NamedTuple):
    """What all imports of one call share."""

    prefix: str = ""
    progress: Progress | None = None
    claimed: set[Path] | None = None
    known: KnownFiles | None = None


def import_changed(
    journal: Journal, source: Path, name: str, known: KnownFiles, claimed: set[Path] | None = None
) -> ImportReport:
    """Import what has changed in a file or folder since the import that ``known`` knows about.

    ``claimed`` are files that were read in another format; those that are read now are added to it.
    """
    one = _import if source.is_file() or named(name).detect(source) else _import_files
    report = one(journal, source, name, _Options(known=known, claimed=claimed))
    known.refresh(report.threads)
    return report


def _import_files(journal: Journal, path: Path, name: str, options: _Options) -> ImportReport:
    if name not in _ONE_BY_ONE:
        return _import(journal, path, name, options)
    tally = _tally(journal, path, name, options)
    for file in session_files(path, name):
        if tally.claim(file):
            _read(journal, file, name, options, tally)
    return tally.report(name, str(path))


def _tally(journal: Journal, path: Path, name: str, options: _Options) -> Tally:
    known = options.known or KnownFiles(journal, name, options.prefix)
    return Tally(named(name).size(path), options.progress, known, options.claimed)


def _import(journal: Journal, path: Path, name: str, options: _Options) -> ImportReport:
    reader = named(name)
    tally = _tally(journal, path, name, options)
    _read(journal, path, name, options, tally)
    if not tally.threads and not tally.unchanged and not tally.has_damage and not reader.detect(path):
        problem = f"has no sessions in the format {name}; name the file or folder that has them"
        tally.note("damage", str(path), problem)
    return tally.report(name, str(path))


def _read(journal: Journal, path: Path, name: str, options: _Options, tally: Tally) -> None:
    for found in named(name).sessions(path, tally):
        session = _with_something_readable(found, tally, name)
        if session is not None and hasattr(named(name), "session_files"):
            session = session._replace(items=map(with_artifacts, session.items))
        if session is not None:
            load(journal, session, tally, format_name=name, prefix=options.prefix)
    tally.note_missing_artifacts(journal)


def _with_something_readable(session: ImportedSession, tally: Tally, format_name: str) -> ImportedSession | None:
    """The session, or ``None`` if nothing shows that it is one: no header and no readable record."""
    if session.has_head:
        return session
    items, held, start = iter(session.items), [], tally.bytes_read
    for item in items:
        held.append(item)
        if not is_unreadable(item.payload) or tally.bytes_read - start > _MOST_BYTES_HELD:
            return session._replace(items=chain(held, items))
    if held:
        tally.note("damage", session.place, f"nothing in it can be read as {format_name}; it was left out")
    return None


def export_sessions(
    journal: Journal,
    target: str | os.PathLike[str],
    *,
    format: str,
    threads: Iterable[str] | None = None,
    leaf: str | None = None,
    change: Callable[[str], str] | None = None,
) -> ExportReport:
    """Write threads (all, or those named) into an empty folder in another program's format.

    Sessions that were imported and not changed since are written byte for byte as they were, in the formats
    ``floret``, ``picoclaw`` and ``ggcode``; sessions of Claude Code, Codex, Gemini, OpenCode and goose that were not
    changed come back with all their records. Other threads are written for those tools as the model sees them. The
    subagents of a session of Claude Code are written with it. What the format cannot hold is named in the report. ``leaf`` exports one branch of one thread to a tool or as a row: the path
    to that entry. ``change`` is applied to the text of each file, such as ``sessiontree.transfer.secrets.redact``.
    """
    if format not in WRITABLE:
        raise InvalidInputError(f"unknown format {format!r}; export to one of {', '.join(sorted(WRITABLE))}")
    names = None if threads is None else list(threads)
    if leaf is not None:
        _check_one_branch(format, names)
    folder = ExportTarget(Path(target), change)
    chosen = exported_threads(journal, names)
    is_row = format in ROW_EXPORTS
    if format in TOOL_EXPORTS or (leaf is not None and not is_row):
        from sessiontree.transfer.native.export import write_sessions  # noqa: PLC0415  it imports this package

        write_sessions(journal, chosen, folder, format, leaf)
    elif is_row:
        from sessiontree.transfer.native.export import write_rows  # noqa: PLC0415  it imports this package

        write_rows(journal, chosen, folder, format, leaf)
    else:
        cast("Writer", named(format)).write(journal, chosen, folder)
    _note_subagents(journal, folder)
    return folder.report(format)


def _note_subagents(journal: Journal, folder: ExportTarget) -> None:
    exported = frozenset(folder.threads)
    for thread_id in folder.threads:
        for loss in subagents_left_out(journal, thread_id, exported):
            folder.note("loss", f"{loss} left out", thread_id=thread_id)


def _check_one_branch(format_name: str, threads: list[str] | None) -> None:
    if threads is None or len(threads) != 1:
        raise InvalidInputError("leaf= exports a branch of one thread; name that thread, and no other, in threads=")
    if format_name not in _BRANCH_EXPORTS:
        raise InvalidInputError(f"{format_name} is written from whole threads; fork the branch, and export the fork")
