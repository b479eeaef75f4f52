"""The viewer over every store: reading, searching, writing and following."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sessiontree as st
from opened import url_of
from sample_store import NOW
from sessiontree.web.app import make_app
from sessiontree.web.site import Site
from web.conftest import ACCESS, HOST


@pytest.mark.parametrize("kind", ["jsonl", "postgres"])
def test_the_viewer_works_over_every_store(tmp_path: Path, kind: str) -> None:
    url = url_of(kind, tmp_path)
    app = make_app(Site(url, store=kind, now=lambda: NOW), ACCESS)
    with st.open(url) as journal, TestClient(app, base_url=f"http://{HOST}") as client:
        client.headers["authorization"] = f"Bearer {ACCESS.token}"
        journal.create_thread("t", title="A talk")
        said = [st.user("one"), st.assistant("two"), st.user("three"), st.assistant("four")]
        made = [entry.id for entry in journal.append_many("t", said)]
        assert "A talk" in client.get("/").text
        page = client.get("/t/t").text
        assert page.index(">one<") < page.index(">four<")
        assert [hit["entry"]["id"] for hit in client.get("/search.json?q=thre").json()["hits"]] == [made[2]]
        done = client.post("/t/t/rewind", json={"entry": made[1]}).json()
        assert journal.thread("t").leaf == made[1]
        client.post(done["undo"]["path"]).raise_for_status()
        assert journal.thread("t").leaf == made[3]
        client.post("/t/t/fork", json={"entry": made[1]}).raise_for_status()
        assert len(journal.list_threads(forked_from_thread="t")) == 1
        assert client.get("/compare.json?a=t").status_code == 200
        assert "four" in client.get("/t/t/export?format=markdown").text
        assert client.get("/look-back.json").status_code == 200


@pytest.mark.parametrize("kind", ["jsonl", "postgres"])
def test_a_page_follows_a_thread_of_every_store(tmp_path: Path, kind: str) -> None:
    url = url_of(kind, tmp_path)

    async def heard() -> str:
        async with Site(url, store=kind) as site, asyncio.timeout(30):
            leaf = (await site.journal.append("t", st.user("hello"), create=True)).id
            async with aclosing(site.followers.events("t", leaf)) as events:  # type: ignore[type-var]
                async for event in events:
                    if event is not None and event.kind == "state":
                        await asyncio.to_thread(_append, url)
                    if event is not None and event.kind == "entries":
                        return str(event.data["html"])
        raise AssertionError("the stream ended")

    assert "news" in asyncio.run(heard())


def _append(url: str) -> None:
    with st.open(url) as journal:
        journal.append("t", st.assistant("news"))
