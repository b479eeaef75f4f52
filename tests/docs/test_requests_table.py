"""Every rule in docs/reference/requests.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/reference/requests.md").read_text()
HOME = "tests/unit/test_dialect_requests.py"
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "| rule |" not in line]
TESTS = sorted(set(re.findall(r"`(test_\w+)`(?: in `([\w/.]+)`)?", "\n".join(ROWS))))


def test_every_rule_has_a_test() -> None:
    assert ROWS
    assert [row for row in ROWS if "`test_" not in row] == []


@pytest.mark.parametrize(("name", "path"), TESTS, ids=[name for name, _ in TESTS])
def test_the_test_of_a_rule_exists(name: str, path: str) -> None:
    assert f"def {name}(" in (ROOT / (path or HOME)).read_text()
