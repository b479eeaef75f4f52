"""The command doctor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sessiontree.cli.context import CliContext, is_missing
from sessiontree.cli.declare import command, dry_run_option
from sessiontree.cli.exit_codes import DAMAGED
from sessiontree.cli.screen.hints import fitting
from sessiontree.cli.screen.lines import ATTENTION, BOLD, DIM, FAILURE, GOOD, Line, paragraph
from sessiontree.cli.summaries import summaries
from sessiontree.journal.address import parse_url
from sessiontree.render.cells import cut_middle
from sessiontree.render.figures import count, plural, size
from sessiontree.render.threads import home_path

if TYPE_CHECKING:
    from sessiontree import Finding

__all__ = ["doctor"]


_LOOKED_AT = 50


@command(
    "doctor",
    examples=["sessiontree doctor", "sessiontree doctor --repair --dry-run", "sessiontree doctor --json"],
)
@click.option("--repair", is_flag=True, help="Repair what can be repaired; what is cut out of a file is kept.")
@dry_run_option
def doctor(cli: CliContext, *, repair: bool, dry_run: bool) -> None:
    """Check the whole store: checksums, chains, counters, reflogs. Exits with code 3 if there is damage.

    It also lists what was mended when sessions of other tools were imported: missing parents, cut files, ids used twice.

    --repair moves torn lines of JSONL files aside, rebuilds the indexes, ids and heads of SQLite files, and discards the
    search index, which the next search rebuilds. Other damage stays: `copy` saves what is readable into a new store.
    """
    if not cli.out.is_json and is_missing(cli.location.url) and cli.location.is_default:
        cli.out.info(f"There is no store yet at {cli.location.shown}; the first import or thread makes it.")
        cli.out.hint(("bring in your own sessions:", "sessiontree import"), ("start a thread:", "sessiontree new"))
        return
    findings = _check(cli)
    if repair and not dry_run:
        _repair(cli)
        findings = _check(cli) if findings else []
    if cli.out.is_json:
        cli.out.json(
            store=cli.location.shown, findings=findings, mended=_mended(cli), looks_like_copy=bool(_copy_warning(cli))
        )
    else:
        _print(cli, findings, is_repaired=repair and not dry_run)
    if findings:
        raise click.exceptions.Exit(DAMAGED)


def _check(cli: CliContext) -> list[Finding]:
    with cli.progress("checking the store") as progress:
        return cli.journal.check(progress=progress)


def _mended(cli: CliContext) -> dict[str, list[str]]:
    """What was mended in each thread when it was imported."""
    threads = cli.journal.iter_threads(is_archived=None, limit=1000)
    return {thread.id: thread.origin["mended"] for thread in threads if thread.origin.get("mended")}


def _repair(cli: CliContext) -> None:
    with cli.progress("repairing the store"):
        repaired = cli.journal.repair()
    for finding in repaired:
        cli.out.info(f"repaired: {finding.place} at byte {finding.offset}: {finding.problem}")


def _print(cli: CliContext, findings: list[Finding], *, is_repaired: bool) -> None:
    """Damage to stdout, one row each; on a terminal with what is fine and what mends the rest."""
    if not cli.out.is_terminal:
        for finding in findings:
            cli.out.row(_row(finding))
        for name, problems in _mended(cli).items():
            for problem in problems:
                cli.out.row(("mended", "", name, problem, "kept as it was read"))
        if not findings:
            cli.out.info("No problems found.")
        if warning := _copy_warning(cli):
            cli.out.warn(warning)
        return
    cli.out.draw(_lines(cli, findings, is_repaired=is_repaired))


def _row(finding: Finding) -> tuple[str, ...]:
    where = f"{finding.place}:{finding.offset}" if finding.offset else finding.place
    about = " ".join(filter(None, (finding.thread_id, finding.entry_id)))
    can = "repairable" if finding.is_repairable else "not repairable"
    return finding.kind, where, about, finding.problem, can


def _lines(cli: CliContext, findings: list[Finding], *, is_repaired: bool) -> Iterator[Line]:
    width = cli.out.width
    kind, place = _place(cli)
    yield Line((kind, BOLD), (f"  {cut_middle(place, max(8, width - len(kind) - 2))}", DIM))
    yield Line()
    total = cli.journal.stats()
    fine = [f"opens, and {plural(total.threads, 'thread')} can be listed"]
    if not findings:
        fine.append(f"{count(total.entries)} records: every checksum fits, every parent is there, every head is real")
    fine.append(f"{size(total.bytes)} stored")
    mended = _mended(cli)
    if mended:
        problems = plural(sum(len(found) for found in mended.values()), "problem")
        fine.append(
            f"{problems} in {plural(len(mended), 'imported session')} were mended on the way in; --json lists them"
        )
    open_turns = _open_turns(cli)
    for sentence in fine:
        yield from _item("✓", GOOD, sentence, width)
    copied = _copy_warning(cli)
    if copied:
        yield from _item("!", ATTENTION, copied, width)
        yield from _arrow(cli, "if nothing is missing", "sessiontree doctor --repair")
    if open_turns:
        what = "turn was" if len(open_turns) == 1 else "turns were"
        yield from _item("!", ATTENTION, f"{len(open_turns)} {what} cut off, and nothing was said since", width)
        yield from _arrow(cli, "", f"sessiontree show {cli.typed(open_turns[0])}")
    for finding in findings:
        where = f" at byte {count(finding.offset)}" if finding.offset else ""
        address = ":".join(filter(None, (finding.thread_id, finding.entry_id)))
        about = f", in {address}" if address else ""
        yield from _item("✗", FAILURE, f"{finding.kind}: {finding.problem} ({finding.place}{where}{about})", width)
        yield from _arrow(cli, *_remedy(finding, is_repaired=is_repaired))
    yield Line()
    summary = Line((f"{len(fine)} fine, {bool(open_turns) + bool(copied)} to look at, ", DIM))
    summary.add(f"{len(findings)} damaged", FAILURE if findings else DIM)
    yield summary.add(f" · exit code {DAMAGED if findings else 0}" if width >= 60 else "", DIM)


def _copy_warning(cli: CliContext) -> str:
    from sessiontree.journal.backups import looks_like_copy  # noqa: PLC0415  slow to load

    address = parse_url(cli.location.url)
    if address.kind != "sqlite" or not looks_like_copy(address.target):
        return ""
    name = os.path.basename(address.target)  # noqa: PTH119  pathlib is slow to load
    return (
        f"{name} came here without {name}-wal and its lock file: if it was copied while it was in use, the last entries are"
        " missing; sessiontree backup makes copies that are complete"
    )


def _item(mark: str, style: str, sentence: str, width: int) -> Iterator[Line]:
    for number, line in enumerate(paragraph(sentence, width - 2)):
        yield Line((f"{mark} ", style) if number == 0 else "  ").extend(line)


def _remedy(finding: Finding, *, is_repaired: bool) -> tuple[str, str]:
    """What mends a finding: a few words and a command."""
    if finding.is_repairable and not is_repaired:
        return "", "sessiontree doctor --repair"
    return "saves what is readable into a new store", "sessiontree copy saved.db"


def _arrow(cli: CliContext, words: str, command: str) -> Iterator[Line]:
    """A command that mends something, and a few words about it if there is room."""
    typed = Line(cli.out.command(command))
    whole = Line().extend(typed).add(f"   {words}" if words else "", DIM)
    for number, line in enumerate([whole] if whole.width + 4 <= cli.out.width else fitting(typed, cli.out.width - 4)):
        yield Line(("  → " if number == 0 else "    ", DIM)).extend(line)


def _place(cli: CliContext) -> tuple[str, str]:
    address = parse_url(cli.location.url)
    if address.kind == "postgres":
        return "postgresql", cli.location.shown
    return address.kind, home_path(address.target, os.path.expanduser("~"))  # noqa: PTH111  pathlib is slow to load


def _open_turns(cli: CliContext) -> list[str]:
    """The last threads that ended in a turn that was cut off."""
    recent = cli.journal.list_threads(limit=_LOOKED_AT)
    return [row.thread.id for row in summaries(cli, recent) if row.is_cut_off]
