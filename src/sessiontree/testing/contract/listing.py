"""Lists: every filter, both orders, ties, and pages without lost or repeated threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model import SessionKey, ThreadQuery
from sessiontree.model.builders import system
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill

__all__ = ["ListContract"]


_KEY = SessionKey(agent="a", channel="c", peer="p", thread="t")
_FILTERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"workspace": "/w"}, {"workspace": "/w"}),
    ({"vendor": "v"}, {"vendor": "v"}),
    ({"model": "m"}, {"model": "m"}),
    ({"state": "open"}, {"state": "open"}),
    ({"status": "unread"}, {"status": "unread"}),
    ({"parent_thread": "above"}, {"parent_thread": "above"}),
    ({"key": _KEY}, {"agent": "a"}),
    ({"key": _KEY}, {"channel": "c"}),
    ({"key": _KEY}, {"peer": "p"}),
    ({"key": _KEY}, {"key_thread": "t"}),
    ({"key": _KEY}, {"agent": "a", "channel": "c", "peer": "p", "key_thread": "t"}),
    ({"tags": ("x", "y")}, {"tags": ("x",)}),
    ({"tags": ("x", "y")}, {"tags": ("y", "x")}),
    ({"title": "Große PLÄNE 100%_"}, {"title_contains": "grosse pl"}),
    ({"title": "Große PLÄNE 100%_"}, {"title_contains": "0%_"}),
    ({"is_archived": True}, {"is_archived": True}),
]


class ListContract(Contract):
    @pytest.mark.parametrize(("fields", "filters"), _FILTERS)
    def test_a_filter_finds_what_has_the_field_and_nothing_else(
        self, journal: Journal, fields: dict[str, Any], filters: dict[str, Any]
    ) -> None:
        journal.create_thread("other", title="nothing", tags=("z", "x-ray"), key=SessionKey(agent="b"))
        journal.create_thread("wanted", **fields)
        assert _found(journal, **filters) == ["wanted"]

    def test_filters_follow_an_update(self, journal: Journal) -> None:
        journal.create_thread("t", tags=("old",), model="m")
        journal.update_thread("t", tags=("new",), model="n", title="fresh")
        assert _found(journal, tags=("old",)) == _found(journal, model="m") == []
        assert _found(journal, tags=("new",), model="n", title_contains="FRESH") == ["t"]

    def test_forks_and_families_are_found(self, journal: Journal) -> None:
        for name in ("t", "u"):
            journal.create_thread(name)
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        journal.fork("f", new_id="g")
        assert _found(journal, forked_from_thread="t") == ["f"]
        assert _found(journal, tree="t") == ["f", "g", "t"]

    def test_archived_threads_are_listed_when_asked_for(self, journal: Journal) -> None:
        journal.create_thread("a", is_archived=True)
        journal.create_thread("b")
        assert _found(journal) == ["b"]
        assert _found(journal, is_archived=True) == ["a"]
        assert _found(journal, is_archived=None) == ["a", "b"]

    def test_empty_threads_are_those_without_a_message_on_their_path(self, store: Opened) -> None:
        journal = store.journal
        for name in ("bare", "prompted", "used", "reset"):
            journal.create_thread(name)
        journal.append("prompted", system("Be brief."))
        for name in ("used", "reset"):
            fill(journal, name, "a")
        journal.fork("used", new_id="forked")
        journal.reset("reset")
        journal = store.reopen()
        assert _found(journal) == ["bare", "forked", "prompted", "reset", "used"]
        assert _found(journal, is_empty=True) == ["bare", "prompted", "reset"]
        assert _found(journal, is_empty=False) == ["forked", "used"]
        assert [journal.thread(name).is_empty for name in ("bare", "used")] == [True, False]
        journal.undo("reset")
        fill(journal, "prompted", "b")
        assert _found(journal, is_empty=True) == ["bare"]

    def test_a_workspace_is_found_by_any_path_to_it(self, journal: Journal, tmp_path: Path) -> None:
        folder = tmp_path.resolve() / "project"
        folder.mkdir()
        (tmp_path / "link").symlink_to(folder)
        journal.create_thread("t", workspace=f"{tmp_path}/link/")
        journal.create_thread("other", workspace=str(tmp_path))
        assert journal.thread("t").workspace == str(folder)
        for path in (f"{folder}", f"{folder}/", f"{tmp_path}/link", f"{folder}/../project//", f"{folder}/."):
            assert _found(journal, workspace=path) == ["t"]
        assert journal.update_thread("other", workspace=f"{folder}/src/").workspace == f"{folder}/src"
        assert journal.fork("t", new_id="f", workspace=f"{tmp_path}/link").workspace == str(folder)

    def test_a_workspace_that_is_no_path_is_kept_as_it_is(self, journal: Journal) -> None:
        for name in ("web", "ssh://host/folder/", "C:\\Users\\me\\", "a/b/", "~/x", " . "):
            journal.create_thread(name, workspace=name)
            assert journal.thread(name).workspace == name
            assert _found(journal, workspace=name) == [name]

    def test_ranges_include_their_start_and_leave_out_their_end(self, journal: Journal) -> None:
        for second in range(5):
            journal.create_thread(f"t{second}", created_ns=second)
        assert _found(journal, created_after_ns=1, created_before_ns=3, order="created") == ["t2", "t1"]
        assert _found(journal, updated_after_ns=3) == ["t4", "t3"]
        assert _found(journal, updated_before_ns=1) == ["t0"]
        assert _found(journal, created_after_ns=1, updated_before_ns=2) == ["t1"]

    def test_the_last_touched_thread_comes_first(self, journal: Journal, clock: ManualClock) -> None:
        for name in ("a", "b", "c"):
            journal.create_thread(name)
            clock.advance(1)
        fill(journal, "a", "x")
        assert _found(journal) == ["a", "c", "b"]
        assert _found(journal, order="created") == ["c", "b", "a"]
        clock.advance(1)
        journal.reset("a")
        journal.update_thread("b", title="a new title does not reorder")
        assert _found(journal) == ["a", "c", "b"]

    def test_ties_are_broken_by_id_in_the_order_of_code_points(self, journal: Journal) -> None:
        names = ["b", "a", "Z", "é", "\U0001f600", "￰", "a b", "10", "9"]
        for name in names:
            journal.create_thread(name)
        assert _found(journal) == sorted(names)
        assert _found(journal, order="created") == sorted(names)

    @pytest.mark.parametrize("order", ["created", "updated"])
    @pytest.mark.parametrize("limit", [1, 3, 7, 50])
    def test_pages_show_every_thread_once(self, store: Opened, clock: ManualClock, order: str, limit: int) -> None:
        for number in range(23):
            store.journal.create_thread(f"t{number:02}", tags=("even",) if number % 2 == 0 else ())
            clock.advance(number % 3)
        journal = store.reopen()
        whole = _found(journal, order=order)
        assert _paged(journal, order=order, limit=limit) == whole
        assert len(whole) == 23
        assert _paged(journal, order=order, limit=limit, tags=("even",)) == _found(journal, order=order, tags=("even",))

    def test_a_cursor_keeps_its_place_while_threads_come_and_go(self, journal: Journal) -> None:
        for number in range(6):
            journal.create_thread(f"t{number}", created_ns=number)
        page = journal.list_threads(order="created", limit=2)
        assert [thread.id for thread in page] == ["t5", "t4"]
        journal.delete_thread("t4")
        journal.create_thread("new", created_ns=100)
        rest = journal.list_threads(order="created", limit=10, cursor=page.cursor)
        assert [thread.id for thread in rest] == ["t3", "t2", "t1", "t0"]
        assert rest.cursor is None

    def test_the_last_page_has_no_cursor(self, journal: Journal) -> None:
        assert journal.list_threads().cursor is None
        journal.create_thread("a")
        journal.create_thread("b")
        assert journal.list_threads(limit=2).cursor is None
        assert journal.list_threads(limit=1).cursor is not None

    def test_a_query_and_keywords_mean_the_same(self, journal: Journal) -> None:
        journal.create_thread("a", model="m")
        journal.create_thread("b")
        assert journal.list_threads(ThreadQuery(model="m")) == journal.list_threads(model="m")
        assert len(journal.list_threads(ThreadQuery(model="m"), limit=1)) == 1

    def test_an_invalid_cursor_is_refused(self, journal: Journal) -> None:
        for name in ("a", "b"):
            journal.create_thread(name)
        cursor = journal.list_threads(limit=1, order="created").cursor
        with pytest.raises(InvalidInputError, match="created"):
            journal.list_threads(limit=1, order="updated", cursor=cursor)
        for wrong in ("", "nonsense", "00", "5b5d"):
            with pytest.raises(InvalidInputError, match="cursor"):
                journal.list_threads(cursor=wrong)

    def test_without_a_limit_all_threads_are_on_one_page(self, journal: Journal) -> None:
        for number in range(60):
            journal.create_thread(f"t{number:02}", is_archived=number % 2 == 0)
        assert len(journal.list_threads(is_archived=None)) == 50
        page = journal.list_threads(is_archived=None, limit=None)
        assert (len(page), page.cursor) == (60, None)
        rest = journal.list_threads(
            is_archived=None, limit=None, cursor=journal.list_threads(is_archived=None, limit=7).cursor
        )
        assert len(rest) == 53

    def test_an_unknown_filter_is_refused(self, journal: Journal) -> None:
        for limit in (0, -1):
            with pytest.raises(InvalidInputError, match="limit"):
                journal.list_threads(limit=limit)
        with pytest.raises(InvalidInputError, match="colour"):
            journal.list_threads(colour="red")  # type: ignore[call-arg]
        with pytest.raises(InvalidInputError, match="order"):
            journal.list_threads(order="size")  # type: ignore[arg-type]


def _found(journal: Journal, **filters: Any) -> list[str]:
    return [thread.id for thread in journal.list_threads(limit=1000, **filters)]


def _paged(journal: Journal, **filters: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    for _ in range(100):
        page = journal.list_threads(**filters, cursor=cursor)
        found += [thread.id for thread in page]
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the pages never end")
