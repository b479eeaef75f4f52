"""The table of tools in docs/reference/formats.md is measured on the samples. ``UPDATE_DOCS=1 pytest`` rewrites it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import sessiontree as st
from sessiontree.model import Entry, ImagePart
from sessiontree.transfer.formats import FORMATS, TITLES, import_sessions

sys.path.insert(0, str(Path(__file__).parents[1] / "formats"))

from transcript_samples import samples

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
START, END = "<!-- measured on the samples -->\n", "<!-- end of what was measured -->\n"
HEAD = (
    "| tool | samples | messages | calls with results | branches | compactions | images | child threads | not understood |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


def measured() -> Iterator[str]:
    """A row for each tool."""
    for name, title in TITLES.items():
        found = [sample for sample in samples() if sample.format == name]
        if not found:
            continue
        totals = [0] * 7
        for sample in found:
            totals = [left + right for left, right in zip(totals, counts(sample.path), strict=True)]
        yield f"| {title} (`{name}`) | {len(found)} | {' | '.join(map(str, totals))} |\n"


def counts(path: Path) -> list[int]:
    """Messages, answered calls, branches, compactions, images, child threads and unknown records of a source."""
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
        threads = [journal.thread(name) for name in report.threads]
        entries = [entry for thread in threads for entry in journal.entries(thread.id)]
    said = [entry.message for entry in entries if entry.message is not None]
    calls = {call.id for message in said for call in message.tool_calls}
    answered = {result.call_id for message in said for result in message.tool_results} & calls
    images = sum(isinstance(part, ImagePart) for message in said for part in message.parts)
    compactions = sum(entry.type == "compaction" for entry in entries)
    children = sum(bool(thread.parent_thread) for thread in threads)
    return [len(said), len(answered), branches(entries), compactions, images, children, report.not_understood]


def branches(entries: list[Entry]) -> int:
    """How many entries are not the first child of their parent."""
    parents = [(entry.thread_id, entry.parent) for entry in entries]
    return len(parents) - len(set(parents))


def test_the_table_is_what_the_samples_give() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    after = rest.split(END)[1]
    wanted = f"{before}{START}\n{HEAD}{''.join(measured())}\n{END}{after}"
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted
    assert all(row.endswith("| 0 |\n") for row in measured())


def test_every_format_has_a_title_for_the_report_of_an_import() -> None:
    assert set(TITLES) == set(FORMATS)
