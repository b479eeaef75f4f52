"""No answer of an original lies about unread: each is replayed by a test that has to open it."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path

import pytest

from golden_sets import STORE_FORMATS, GoldenSet, folders, replays, sets

TESTS = Path(__file__).parent.parent


def found_sets(fixtures: Path) -> list[GoldenSet]:
    return [one for name in STORE_FORMATS for one in sets(fixtures, name)]


def test_golden_every_set_is_in_a_format_that_we_read(seed_fixtures: Path) -> None:
    known = {one.folder for one in found_sets(seed_fixtures)}
    with_answers = {folder for folder in folders(seed_fixtures) if GoldenSet(folder, "").answers()}
    assert with_answers
    assert with_answers <= known


def test_golden_every_answer_is_replayed_by_some_test(seed_fixtures: Path) -> None:
    """A test that names a file has to open it; a file that no test names fails here."""
    named = set(replays(TESTS))
    for folder in folders(seed_fixtures):
        formats = {one.format for one in found_sets(seed_fixtures) if one.folder == folder}
        patterns = [pattern for name, pattern in named if name in formats]
        left = [name for name in GoldenSet(folder, "").answers() if not any(fnmatch(name, one) for one in patterns)]
        assert not left, folder


@pytest.mark.skipif("SEED_FIXTURES" in os.environ, reason="another set may lack what ours has")
def test_golden_our_own_set_has_data_for_every_test(seed_fixtures: Path) -> None:
    for name, pattern in replays(TESTS):
        assert any(one.matching(pattern) for one in sets(seed_fixtures, name)), (name, pattern)
