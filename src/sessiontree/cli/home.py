"""``sessiontree`` alone: the last threads, and what to do next."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from sessiontree.cli.context import CliContext
from sessiontree.cli.last_import import last_import_ns
from sessiontree.cli.screen.lines import BOLD, DIM, NAME, Line, beside, paragraph
from sessiontree.cli.screen.threads import NARROW, branch_mark, id_column, id_lines
from sessiontree.cli.summaries import count_all, left_out, summaries
from sessiontree.cli.typed import broken
from sessiontree.render.cells import cell_width, fit, pad
from sessiontree.render.figures import count, plural, size
from sessiontree.render.threads import ThreadSummary, folder_of
from sessiontree.render.times import when

__all__ = ["show_home"]


_SHOWN = 5
_LISTED = 20
_MOST_COUNTED = 500
_WIDEST = 100


def show_home(cli: CliContext) -> None:
    """Print the last threads and five commands; in a pipe, the list."""
    if cli.out.is_json or not cli.out.is_terminal:
        _print_list(cli)
        return
    threads = cli.journal.list_threads(limit=_SHOWN, is_empty=False).threads
    width = min(cli.out.width, _WIDEST)
    rows = summaries(cli, threads)
    cli.out.draw(_filled(cli, rows, width) if rows else _empty(cli, width))


def _print_list(cli: CliContext) -> None:
    from sessiontree.cli.commands.ls import print_rows  # noqa: PLC0415  only needed in a pipe

    page = cli.journal.list_threads(limit=_LISTED, is_empty=False)
    if cli.out.is_json:
        cli.out.json(threads=page.threads, cursor=page.cursor)
    else:
        print_rows(cli, page.threads)


def _filled(cli: CliContext, rows: Sequence[ThreadSummary], width: int) -> Iterator[Line]:
    about = plural(count_all(cli), "thread")
    about += f"{left_out(cli)} · {size(cli.journal.stats().bytes)}" if width >= NARROW else ""
    yield beside(Line(("Last threads", BOLD)), Line((about, DIM)), width)
    yield Line()
    yield from _rows(cli, rows, width)
    yield Line()
    name = cli.typed(rows[0].thread.id)
    branches = rows[0].branches or 1
    commands = [
        (f"show {name}", "read the newest one"),
        (f"tree {name}", f"see its {branches} branches" if branches > 1 else "see it at a glance"),
        ("search …", "find what anybody said"),
        ("import", _import_words(cli)),
        ("stats", "what it took: steps, tokens, cost"),
    ]
    yield from _commands(cli, commands, width)
    yield Line(("  all verbs: ", DIM), "sessiontree --help")


def _import_words(cli: CliContext) -> str:
    """What an import would bring in: what changed on this machine since the last one."""
    from sessiontree.transfer.discovery import changed_sessions  # noqa: PLC0415  slow to load
    from sessiontree.transfer.formats import TITLES  # noqa: PLC0415

    last = last_import_ns(cli)
    found = changed_sessions(os.environ, Path.home(), Path.cwd(), since_ns=last or 0, most=_MOST_COUNTED)
    total = sum(found.values())
    if not total:
        return "bring in the sessions of another tool" if last is None else "nothing new on this machine"
    number = f"{count(total)}{'+' if total >= _MOST_COUNTED else ''} {'' if last is None else 'new or changed '}file"
    tools = ", ".join(
        f"{TITLES[name]} {count(files)}" for name, files in sorted(found.items(), key=lambda row: -row[1])
    )
    return f"{number}{'s' * (total != 1)}: {tools}"


def _rows(cli: CliContext, rows: Sequence[ThreadSummary], width: int) -> Iterator[Line]:
    is_narrow = width < NARROW
    ids = cli.threads
    names = [ids.end_of(row.thread.id) if is_narrow else ids[row.thread.id] for row in rows]
    id_width = id_column(names, width)
    times = [when(row.thread.updated_at, cli.now, is_short=is_narrow) for row in rows]
    folders = [fit(folder_of(row.thread), 14) or "–" for row in rows]
    for row, name, time, folder in zip(rows, names, times, folders, strict=True):
        right = Line() if is_narrow else Line((pad(folder, max(map(cell_width, folders))) + "  ", DIM))
        right.add(pad(time, 0 if is_narrow else max(map(cell_width, times)), is_right=True), DIM)
        mark = branch_mark(row)
        *above, line = id_lines(row, name, id_width, width)
        yield from above
        room = width - line.width - right.width - 2 - (cell_width(mark) + 1 if mark else 0)
        line.add(fit(row.title, max(8, room))).add(f" {mark}" if mark else "", NAME)
        yield beside(line, right, width)


def _empty(cli: CliContext, width: int) -> Iterator[Line]:
    yield Line(("No threads here yet.", BOLD))
    yield Line()
    found = _on_this_machine(cli)
    if found:
        yield from paragraph(f"On this machine: {found}", width)
        yield Line()
    yield from _commands(
        cli,
        [
            ("import", "bring in what other tools stored; the originals stay untouched"),
            ("demo", "see what this is good for, in 2 seconds"),
            ('new "…"', "start a thread of your own"),
        ],
        width,
    )


def _on_this_machine(cli: CliContext) -> str:
    """The sessions of other tools on this machine, in words."""
    from sessiontree.transfer.discovery import discover  # noqa: PLC0415  slow to load, and seldom needed
    from sessiontree.transfer.formats import TITLES  # noqa: PLC0415

    files: dict[str, int] = {}
    for one in discover(os.environ, Path.home(), Path.cwd(), now_ns=cli.now_ns):
        files[one.format] = files.get(one.format, 0) + one.files
    ranked = sorted(files.items(), key=lambda row: -row[1])
    return ", ".join(f"{count(number)} of {TITLES[name]}" for name, number in ranked)


def _commands(cli: CliContext, rows: Sequence[tuple[str, str]], width: int) -> Iterator[Line]:
    """Commands with a few words each; a narrow screen leaves out the name of the program."""
    whole = [cli.out.command(f"sessiontree {name}") for name, _ in rows]
    names = [name.removeprefix("sessiontree ") for name in whole] if width < NARROW else whole
    widest = max(map(cell_width, names))
    for name, (_, words) in zip(names, rows, strict=True):
        line = Line("  ", pad(name, widest), (f"  {words}", DIM))
        if cell_width(name) + 2 <= width:
            yield line.cut(width)
        else:
            yield from (Line("  ", part) for part in broken(name, width - 2))
