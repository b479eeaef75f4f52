"""The page that looks back: its figures are those of the store, and a visit reads what is new."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

import sessiontree as st
from cli_shell import Shell
from sample_store import NOW
from sessiontree.web.counting import Counts
from web.conftest import Viewer


def ns(days: float = 0.0, seconds: float = 0.0) -> int:
    return int((NOW - timedelta(days=days) + timedelta(seconds=seconds)).timestamp() * 1e9)


def figures(viewer: Viewer, query: str = "") -> dict[str, Any]:
    found = viewer.json(f"/look-back.json{query}")
    return {**found["figures"], **{name: found.get(name) for name in ("threads", "is_complete", "context")}}  # type: ignore[dict-item]


def add_turn(journal: st.Journal, thread: str, days: float, *, cost: float = 0.0, seconds: float = 20.0) -> None:
    made = st.call(f"call {journal.thread(thread).entries}", "Bash", json.dumps({"command": "make"}))
    usage = st.Usage(
        input_tokens=100, output_tokens=10, cache_read_tokens=900, cost=cost, currency="USD" if cost else ""
    )
    journal.append_many(
        thread,
        [
            st.NewEntry(content=st.user("build it"), created_ns=ns(days)),
            st.NewEntry(content=st.assistant("", calls=[made], model="m1", usage=usage), created_ns=ns(days, 1)),
            st.NewEntry(content=st.tool_result(made.id, "boom", is_error=True), created_ns=ns(days, 5)),
            st.NewEntry(content=st.assistant("done", model="m1"), created_ns=ns(days, seconds)),
        ],
    )


def test_the_figures_are_those_of_stats(sampled: Viewer) -> None:
    shown = figures(sampled, "?span=all")
    stats = Shell(sampled.path.parent, sampled.path.name).json("stats")["stats"]
    assert shown["is_complete"]
    assert shown["turns"] == stats["prompts"]
    assert shown["entries"] == stats["entries"]
    assert shown["tokens"] == sum(stats[f"{kind}_tokens"] for kind in ("input", "output", "cached", "cache_write"))
    assert shown["cost"] == pytest.approx(sum(stats["cost"].values()) + sum(stats["estimated_cost"].values()))
    assert {one["name"]: one["calls"] for one in shown["tools"]} == {
        name: one["calls"] for name, one in stats["steps"].items()
    }
    assert shown["failures"] == sum(one["failures"] for one in stats["steps"].values())
    assert {one["day"]: one["entries"] for one in shown["days"]} == stats["days"]


def test_a_span_a_folder_and_a_program_leave_the_rest_out(viewer: Viewer) -> None:
    for number, folder in enumerate(("/srv/a", "/srv/b")):
        viewer.journal.create_thread(f"t{number}", workspace=folder, origin={"format": f"tool-{number}"})
        add_turn(viewer.journal, f"t{number}", days=2, cost=1.5)
        add_turn(viewer.journal, f"t{number}", days=50, cost=4.0, seconds=100.0)
    assert (figures(viewer, "?span=30d")["turns"], figures(viewer)["turns"]) == (2, 4)
    assert figures(viewer, "?span=30d&folder=a")["cost"] == pytest.approx(1.5)
    assert figures(viewer, "?agent=tool-1")["cost"] == pytest.approx(5.5)
    one = figures(viewer, "?folder=b")
    assert [share["name"] for share in one["folders"]] == ["b"]
    assert one["median_seconds"] == pytest.approx(20, rel=0.05)
    assert one["p95_seconds"] == pytest.approx(100, rel=0.05)
    assert [(tool["name"], tool["calls"], tool["failures"]) for tool in one["tools"]] == [("bash", 2, 2)]


def test_usage_without_a_price_is_not_free(viewer: Viewer) -> None:
    viewer.journal.create_thread("t")
    add_turn(viewer.journal, "t", days=1)
    shown = figures(viewer)
    assert (shown.get("cost"), shown["models"][0].get("cost")) == (None, None)
    assert shown["unpriced_tokens"] == 1010
    page = viewer.html("/look-back")
    assert "no price" in page
    assert "1,010 tokens unpriced" in page


def test_a_visit_counts_what_is_new_and_forgets_what_was_deleted(viewer: Viewer) -> None:
    viewer.journal.create_thread("t")
    add_turn(viewer.journal, "t", days=1)
    assert figures(viewer)["turns"] == 1
    add_turn(viewer.journal, "t", days=0.5)
    fork = viewer.journal.fork("t")
    add_turn(viewer.journal, fork.id, days=0.2)
    assert figures(viewer)["turns"] == 3  # what the fork shares counts once
    viewer.journal.create_thread("old", updated_ns=ns(20))
    add_turn(viewer.journal, "old", days=20)
    viewer.journal.update_thread("old", updated_ns=ns(20))
    assert figures(viewer)["turns"] == 4
    viewer.journal.delete_thread("old")
    assert figures(viewer)["turns"] == 3
    viewer.journal.delete_thread("t")
    assert figures(viewer)["turns"] == 3  # the fork still shows what it shares


def test_one_visit_reads_a_bounded_number_of_entries(viewer: Viewer) -> None:
    for number in range(4):
        viewer.journal.create_thread(f"t{number}")
        for _ in range(number + 1):  # the last one alone is more than a visit reads
            add_turn(viewer.journal, f"t{number}", days=1)
    viewer.site.counts = Counts(viewer.site.journal, viewer.site.now, room=10)
    seen = [figures(viewer)["turns"]]
    while not figures(viewer).get("is_complete"):
        seen.append(figures(viewer)["turns"])
    assert seen == sorted(seen)
    assert seen[0] == 3
    shown = figures(viewer)
    assert (shown["turns"], shown["calls"], shown["failures"], shown["entries"]) == (10, 10, 10, 40)


def test_until_everything_is_counted_the_page_says_so(viewer: Viewer) -> None:
    viewer.journal.create_thread("t")
    add_turn(viewer.journal, "t", days=1)
    viewer.site.counts = Counts(viewer.site.journal, viewer.site.now, room=2)
    assert "Counting: 1 thread so far" in viewer.html("/look-back")


def test_the_context_of_a_thread_has_its_compactions_and_failed_turns(viewer: Viewer) -> None:
    viewer.journal.create_thread("t", title="A long one")
    add_turn(viewer.journal, "t", days=1)
    viewer.journal.append("t", st.Compaction(summary="all of it", tokens_before=1010, tokens_after=200))
    add_turn(viewer.journal, "t", days=0.5)
    viewer.journal.append("t", st.user("again"))
    viewer.journal.append("t", st.TurnMarker(status="failed", reason="overloaded"))
    points = figures(viewer, "?thread=t")["context"]
    assert [(one.get("kind", "turn"), one["tokens"]) for one in points] == [
        ("turn", 1010), ("compaction", 200), ("turn", 1010), ("failed", 1010),
    ]  # fmt: skip
    page = viewer.html("/look-back?thread=t")
    assert "1 compaction, 1 failed turn" in page
    assert 'class="zig"' in page
    assert viewer.client.get("/look-back?thread=none").status_code == 404


HOSTILE = '"><script>alert(1)</script>\u202e\x1b[31m&amp;'


def test_hostile_names_stay_text_in_every_card(viewer: Viewer) -> None:
    viewer.journal.create_thread("t", title=HOSTILE, workspace=f"/srv/{HOSTILE}", origin={"format": HOSTILE})
    usage = st.Usage(input_tokens=5, cost=1.0, currency='<b>"')
    made = st.call("c", HOSTILE, "{}")
    viewer.journal.append_many("t", [st.user("hi"), st.assistant("", calls=[made], model=HOSTILE, usage=usage)])
    viewer.journal.append("t", st.tool_result("c", HOSTILE))
    for query in ("", "?by=tokens", "?by=turns", "?span=1y", "?folder=%22%3E%3Cscript%3E"):
        page = viewer.html(f"/look-back{query}")
        assert "<script>" not in page
        assert "<b>" not in page
        assert "\u202e" not in page.split("<body")[1].replace("%E2%80%AE", "")
        assert "\x1b" not in page


def test_an_empty_store_has_a_page_too(viewer: Viewer) -> None:
    page = viewer.html("/look-back")
    assert "No provider reported usage in these days." in page
    assert "No tool was called in these days." in page


@pytest.mark.parametrize("query", ["span=2y", "by=fun", "span="])
def test_a_wrong_parameter_is_refused(viewer: Viewer, query: str) -> None:
    assert viewer.client.get(f"/look-back?{query}").status_code == 422
