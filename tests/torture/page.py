"""The parts of docs/explanation/durability.md that are written by the runs themselves."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "durability.md"
_END = "<!-- end -->"


def write_part(writer: str, text: str) -> None:
    """Replace what an earlier run wrote."""
    start = f"<!-- written by {writer} -->"
    page = PAGE.read_text()
    before, found, rest = page.partition(start)
    assert found, f"{start} is not in {PAGE}"
    PAGE.write_text(f"{before}{start}\n{text}\n{_END}{rest.partition(_END)[2]}")
