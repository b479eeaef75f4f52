"""The list of threads."""

from __future__ import annotations

import re
from datetime import timedelta

import sessiontree as st
from sample_store import NOW, SHOP
from web.conftest import Viewer


def titles(page: str) -> list[str]:
    return re.findall(r'class="ti cut"[^>]*>([^<]*)<', page)


def test_an_empty_store_says_how_to_begin(viewer: Viewer) -> None:
    page = viewer.html("/")
    assert "This store is empty" in page
    assert "sessiontree import" in page


def test_the_list_shows_threads_with_the_words_of_people(sampled: Viewer) -> None:
    page = sampled.html("/")
    assert "The login test fails since this morning" in titles(page)
    assert SHOP not in titles(page)
    assert all(titles(page))


def test_a_thread_without_a_title_is_called_by_its_first_words(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("why is the import slow?"), create=True)
    viewer.journal.update_thread("t", title="")
    assert titles(viewer.html("/")) == ["why is the import slow?"]


def test_forks_stand_below_the_thread_that_they_left(viewer: Viewer) -> None:
    for name in ("a", "b"):
        viewer.journal.append(name, st.user(f"talk {name}"), create=True, fields={"title": name})
    viewer.journal.fork("a", new_id="fork", title="fork of a")
    viewer.journal.append("fork", st.user("elsewhere"))
    viewer.journal.append("b", st.user("later"))
    page = viewer.html("/")
    assert titles(page) == ["b", "a", "fork of a"]
    assert page.count('class="th kid"') == 1


def test_pages_follow_each_other_without_gaps(viewer: Viewer) -> None:
    for number in range(130):
        viewer.journal.append(f"t{number}", st.user(f"talk {number}"), create=True)
    found = viewer.json("/index.json")["threads"]
    seen: list[str] = []
    while True:
        assert isinstance(found, dict)
        seen += [row["id"] for row in found["rows"]]
        if "cursor" not in found:
            break
        found = viewer.client.get("/threads.json", params={"cursor": found["cursor"]}).json()
    assert seen == [f"t{number}" for number in reversed(range(130))]
    assert "More threads" in viewer.html("/")


def test_filters_leave_out_other_threads(viewer: Viewer) -> None:
    viewer.journal.append("a", st.user("x"), create=True, fields={"title": "red", "tags": ("x",), "model": "m1"})
    viewer.journal.append(
        "b", st.user("x"), create=True, fields={"title": "blue", "workspace": "/w", "vendor": "codex"}
    )
    viewer.journal.append("c", st.user("x"), create=True, fields={"title": "old", "is_archived": True})
    for query, expected in {
        "find=RE": ["red"],
        "tag=x": ["red"],
        "model=m1": ["red"],
        "folder=/w": ["blue"],
        "is_archived=true": ["old"],
        "tool=codex": ["blue"],
        "tool=other": [],
        "find=none": [],
    }.items():
        assert titles(viewer.html(f"/?{query}")) == expected
        assert titles(viewer.html(f"/threads?{query}")) == expected
    assert "No thread matches" in viewer.html("/?find=none")


def test_a_day_shows_the_threads_that_changed_on_it(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("x"), create=True, fields={"title": "today"})
    day = viewer.journal.thread("t").updated_at.astimezone(NOW.tzinfo).date()
    assert titles(viewer.html(f"/?day={day}")) == ["today"]
    for other in (day - timedelta(days=1), day + timedelta(days=1)):
        assert titles(viewer.html(f"/?day={other}")) == []
    assert viewer.client.get("/threads?day=yesterday").status_code == 422
    for odd in ("0001-01-01", "9999-12-31"):
        assert titles(viewer.html(f"/?day={odd}")) == []


def test_a_filter_stays_while_one_types_and_on_the_next_page(viewer: Viewer) -> None:
    for number in range(70):
        viewer.journal.append(f"t{number}", st.user("x"), create=True, fields={"model": "m1"})
    page = viewer.html("/?model=m1")
    assert '<input type="hidden" name="model" value="m1">' in page
    assert re.search(r'href="/threads\?model=m1&amp;cursor=', page)


def test_a_thread_that_failed_and_one_that_runs_say_so(viewer: Viewer) -> None:
    viewer.journal.append("failed", st.user("x"), create=True)
    viewer.journal.append("failed", st.RunFailure(error="no answer"))
    viewer.journal.append("running", st.user("x"), create=True)
    viewer.site.now = lambda: st.Thread(id="", tree="", created_ns=0, updated_ns=viewer.journal.clock()).updated_at
    viewer.journal.acquire_lease("running", owner="worker-2")
    rows = {row["id"]: row for row in viewer.client.get("/threads.json").json()["rows"]}
    assert rows["failed"]["is_failed"]
    assert rows["running"]["holder"] == "worker-2"
    assert "worker-2 writing" in viewer.html("/")
    assert "turn failed" in viewer.html("/")


def test_what_cannot_be_asked_is_answered_with_a_reason(viewer: Viewer) -> None:
    answer = viewer.client.get("/threads.json?is_archived=perhaps")
    assert (answer.status_code, answer.json()["type"]) == (422, "InvalidInputError")
    assert "is_archived" in answer.json()["title"]
    assert viewer.client.get("/threads?cursor=nonsense").status_code == 422
