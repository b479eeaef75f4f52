"""What an import says: what was found on the machine, what is in now, and what needs a look, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TYPE_CHECKING

from sessiontree.cli.screen.hints import fitting
from sessiontree.cli.screen.lines import ATTENTION, BOLD, DIM, GOOD, ID, PLAIN, Line, paragraph
from sessiontree.cli.typed import typed_path
from sessiontree.render.cells import cell_width, cut_middle, pad
from sessiontree.render.figures import count, plural, size
from sessiontree.render.threads import home_path
from sessiontree.render.times import moment_at, short_day, when

if TYPE_CHECKING:
    from sessiontree.transfer.discovery import FoundSessions
    from sessiontree.transfer.formats import ImportNote, ImportReport

__all__ = ["found_lines", "report_lines"]


_MOST_LISTED = 20
_LEAST_FOLDER = 8
_HEADED = 70


def found_lines(
    found: Sequence[FoundSessions], titles: Mapping[str, str], home: str, now: datetime, width: int
) -> Iterator[Line]:
    """Draw the places with sessions: the tool, where, how many, how large, how new; below it what will be deleted."""

    def row(mark: tuple[str, str], cells: Sequence[str], style: str = PLAIN) -> Line:
        tool, folder, files, total, newest = cells
        line = Line(mark, (pad(tool, widest), style))
        line.add(f"  {pad(cut_middle(folder, room), room)}" if room > _LEAST_FOLDER else "", DIM)
        figures = f" {pad(files, 7, is_right=True)} {pad(total, 9, is_right=True)}  {newest}"
        return line.add(figures, style).cut(width)

    where = {one.folder: home_path(one.folder, home) for one in found}
    widest = max(cell_width(titles[one.format]) for one in found)
    room = min(max(cell_width(text) for text in where.values()), max(0, width - widest - 36))
    if width >= _HEADED:
        yield row(("  ", PLAIN), ("tool", "where", "files", "size", "newest"), DIM)
    for one in found:
        newest = when(moment_at(one.newest_ns, now), now)
        figures = (count(one.files), size(one.size), newest)
        yield row(("✓ ", GOOD), (titles[one.format], where[one.folder], *figures))
        if one.lost_soon:
            day = short_day(moment_at(one.next_loss_ns, now).date())
            words = f"{one.lost_soon} of them are deleted there within a week, the first on {day}"
            yield Line(("  ! ", ATTENTION), words).cut(width)


def report_lines(
    reports: Sequence[ImportReport],
    titles: Mapping[str, str],
    name: Callable[[str], tuple[str, str]],
    *,
    home: str,
    command: Callable[[str], str],
    is_dry_run: bool,
    width: int,
) -> Iterator[Line]:
    """Draw what came in, a line for each tool, then conflicts and damage one by one.

    ``name`` returns the short id and the title of a thread, ``command`` a command as it is typed for the store.
    """
    for report in reports:
        is_fine = not (report.damage or report.conflicts)
        mark = Line(("✓ ", GOOD) if is_fine else ("! ", ATTENTION))
        words = f"{titles[report.format]}: {_facts(report, is_dry_run=is_dry_run)}"
        for number, line in enumerate(paragraph(words, width, lead="  ")):
            yield line if number else mark.extend(Line(line.plain.strip()))
    yield from _conflicts(reports, name, command, home, width)
    rest = "; the rest was brought in" if any(report.threads for report in reports) else ""
    yield from _listed("damaged place", [note for one in reports for note in one.damage], rest, home, width)
    remarks = [note for one in reports for note in (*one.of_kind("loss"), *one.of_kind("hint"))]
    yield from _listed("remark", remarks, "", home, width)


def _facts(report: ImportReport, *, is_dry_run: bool) -> str:
    would = "would be " if is_dry_run else ""
    conflicts = {note.thread_id for note in report.conflicts}
    entries = plural(report.entries_added, "entry", "entries")
    facts = [
        _sessions(report, conflicts),
        *([f"{entries} {would}added, {count(report.entries_known)} known"] if report.threads else []),
        *([f"{count(len(report.repairs))} mended"] if report.repairs else []),
        *([f"{count(report.not_understood)} not understood but kept"] if report.not_understood else []),
        *([f"{count(len(report.damage))} damaged"] if report.damage else []),
    ]
    return "; ".join(facts)


def _sessions(report: ImportReport, conflicts: AbstractSet[str]) -> str:
    """How many sessions were read, and how many of each kind: these add up.

    What did not change is not read, so it is counted by source; a file may have several sessions.
    """
    fine = len(set(report.threads) - conflicts)
    new = min(report.created, fine)
    kinds = [
        *([f"{count(new)} new"] if new else []),
        *([f"{count(fine - new)} read again"] if fine > new else []),
        *([plural(len(conflicts), "conflict")] if conflicts else []),
    ]
    unchanged = f"{plural(report.unchanged, 'source')} unchanged"
    if not kinds:
        return unchanged if report.unchanged else plural(0, "session")
    read = f"{plural(fine + len(conflicts), 'session')} ({', '.join(kinds)})"
    return f"{read}, {unchanged}" if report.unchanged else read


def _conflicts(
    reports: Sequence[ImportReport],
    name: Callable[[str], tuple[str, str]],
    command: Callable[[str], str],
    home: str,
    width: int,
) -> Iterator[Line]:
    """The sessions that differ from what the store has: how many records of each, and what keeps both."""
    found: dict[str, list[ImportNote]] = {}
    for note in (note for report in reports for note in report.conflicts):
        found.setdefault(note.thread_id, []).append(note)
    if not found:
        return
    words = "1 session differs" if len(found) == 1 else f"{count(len(found))} sessions differ"
    yield Line(("! ", ATTENTION), (f"{words} from what is here; what is here was kept", BOLD)).cut(width)
    for thread_id, notes in list(found.items())[:_MOST_LISTED]:
        short, title = name(thread_id)
        number = f"  {count(len(notes))} differences, the first:" if len(notes) > 1 else ""
        yield Line("    ", (short, ID), f"  {title}", (number, DIM)).cut(width)
        yield from paragraph(notes[0].problem, width, DIM, lead="      ")
    yield from _rest(len(found))
    for report in reports:
        if report.conflicts:
            again = f"sessiontree import --from {report.format} --prefix other- {typed_path(report.source, home)}"
            yield from fitting(Line(("    keep both: ", DIM), command(again)), width)


def _listed(noun: str, notes: Sequence[ImportNote], rest: str, home: str, width: int) -> Iterator[Line]:
    if notes:
        yield Line(("! ", ATTENTION), (plural(len(notes), noun) + rest, BOLD)).cut(width)
    for note in notes[:_MOST_LISTED]:
        place = home_path(note.place, home) + (f", byte {count(note.offset)}" if note.offset else "")
        yield Line("    ", cut_middle(place, max(8, width - 4)))
        yield from paragraph(note.problem, width, DIM, lead="      ")
    yield from _rest(len(notes))


def _rest(number: int) -> Iterator[Line]:
    if number > _MOST_LISTED:
        yield Line((f"    and {count(number - _MOST_LISTED)} more; --json lists all", DIM))
