"""Search in the browser."""

from __future__ import annotations

import pytest

import sessiontree as st
from web.conftest import Viewer


@pytest.fixture
def talks(viewer: Viewer) -> Viewer:
    viewer.journal.append("a", st.user("the parser is slow"), create=True, fields={"title": "Speed"})
    viewer.journal.append("a", st.assistant("I will profile the parser <b>now</b>", model="m1"))
    viewer.journal.append("b", st.user("nothing here"), create=True)
    return viewer


def test_hits_are_marked_and_lead_to_their_entries(talks: Viewer) -> None:
    page = talks.html("/search?q=parser")
    assert page.count("<mark>parser</mark>") == 2
    assert "&lt;b&gt;now" in page
    entry = talks.journal.path("a")[0].id
    assert f'href="/t/a?at={entry}#e-' in page


def test_a_call_that_was_found_is_shown_as_the_transcript_shows_it(talks: Viewer) -> None:
    call = st.call("c1", "bash", '{"command": "pytest -x tests/needle.py"}')
    talks.journal.append("b", st.assistant(calls=[call]))
    assert "<b>bash</b> <code>pytest -x tests/<mark>needle</mark>.py</code>" in talks.html("/search?q=needle")


def test_a_preview_goes_from_the_prompt_to_what_came_of_the_entry(talks: Viewer) -> None:
    journal = talks.journal
    asked = journal.append("c", st.user("an earlier prompt"), create=True, fields={"title": "Files"})
    prompt = journal.append("c", st.user("count the files"))
    call = journal.append("c", st.assistant(calls=[st.call("c1", "bash", '{"command": "ls"}')]))
    result = journal.append("c", st.tool_result("c1", "seven files"))
    journal.append("c", st.user("on another branch"), parent=asked.id)
    page = talks.html(f"/t/c/preview/{call.id}")
    assert "count the files" in page
    assert "seven files" in page
    assert "an earlier prompt" not in page
    assert "another branch" not in page
    shown = talks.client.get(f"/t/c/preview/{result.id}.json").json()["entries"]
    assert [one["id"] for one in shown] == [prompt.id, call.id, result.id]
    assert talks.client.get("/t/c/preview/nothing").status_code == 404


def test_a_result_that_was_found_is_opened_at_its_call(talks: Viewer) -> None:
    journal = talks.journal
    call = journal.append("a", st.assistant(calls=[st.call("c1", "bash", '{"command": "ls"}')]))
    result = journal.append("a", st.tool_result("c1", "seven files"))
    assert talks.client.get(f"/t/a.json?at={result.id}").json()["selected"] == call.id
    assert f'data-selected="{call.id}"' in talks.html(f"/t/a?at={result.id}")


def test_a_word_that_is_still_being_typed_is_found(talks: Viewer) -> None:
    assert len(talks.client.get("/search.json?q=pars").json()["hits"]) == 2
    assert "hits" not in talks.client.get('/search.json?q="pars"').json()


def test_facets_put_filters_into_the_query(talks: Viewer) -> None:
    page = talks.html("/search?q=parser")
    assert 'href="/search?q=parser+role%3Auser"' in page
    assert 'href="/search?q=parser+model%3Am1"' in page
    assert len(talks.client.get("/search.json?q=parser role:user").json()["hits"]) == 1
    assert 'class="opt on" href="/search?q=parser"' in talks.html("/search?q=parser role:user")


def test_the_filters_follow_the_words_while_one_types(talks: Viewer) -> None:
    assert 'href="/search?q=profile+role%3Aassistant"' in talks.html("/search/hits?q=profile")


def test_hits_stand_below_the_title_of_their_thread(talks: Viewer) -> None:
    talks.journal.append("b", st.assistant("another parser"))
    page = talks.html("/search?q=parser")
    assert page.count(">Speed</a>") == 1
    assert "3 results in 2 threads" in page


@pytest.mark.parametrize("query", ["role:nobody", "-x", "after:never", '"', "*", "(", ":", "x" * 1000, "\x00"])
def test_a_query_that_cannot_be_asked_is_explained(talks: Viewer, query: str) -> None:
    answer = talks.client.get("/search", params={"q": query})
    assert answer.status_code == 200
    assert 'class="nothing"' in answer.text


def test_values_to_filter_by_are_counted(talks: Viewer) -> None:
    talks.journal.update_thread("a", tags=("x",), workspace="/home/ann/shop")
    assert talks.client.get("/facets/tag.json").json()["values"] == {"x": 1}
    assert ">shop<" in talks.html("/facets/folder")
    assert list(talks.client.get("/facets/day.json").json()["values"].values()) == [2]
    assert "No thread has a tool" in talks.html("/facets/tool")
    assert talks.client.get("/facets/other").status_code == 422
