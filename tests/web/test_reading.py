"""A thread in the browser: its tree, its transcript, windows of both, and hostile content in every field."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import get_args

import pytest

import sessiontree as st
from hostile_content import HOSTILE, hostile_thread
from sample_store import LOGS, SHOP
from sessiontree.model.entry import KnownPayload
from web.conftest import Viewer


def names(page: str) -> list[str]:
    return re.findall(r'<article[^>]* data-id="([^"]*)"', page)


def rows(viewer: Viewer, thread: str, **asked: str | int) -> list[dict[str, object]]:
    answer = viewer.client.get(f"/t/{thread}/tree.json", params=asked)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = answer.json()["tree"].get("rows", [])
    return found


def long_talk(viewer: Viewer, length: int) -> list[str]:
    viewer.journal.create_thread("long")
    contents = [st.user(f"question {at}") if at % 4 == 0 else st.assistant(f"answer {at}") for at in range(length)]
    return [entry.id for entry in viewer.journal.append_many("long", contents)]


def test_a_thread_shows_its_prompts_answers_and_calls(sampled: Viewer) -> None:
    page = sampled.html(f"/t/{SHOP}")
    assert "Now do the same for logout" in page
    assert 'class="call fail"' in page
    assert "48 passed" in page
    assert 'class="dl add"' in page


def test_a_result_stands_with_its_call_and_nowhere_else(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("run it"), create=True)
    call = viewer.journal.append("t", st.assistant("", calls=[st.call("c", "bash", '{"command": "ls"}')]))
    result = viewer.journal.append("t", st.tool_result("c", "one\x1b[31mtwo\x1b[0m", name="bash"))
    page = viewer.html("/t/t")
    assert call.id in names(page)
    assert result.id not in names(page)
    assert 'one<span class="t-red">two</span>' in page


def test_a_very_long_message_is_shown_to_its_end_when_it_is_asked_for(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("begin"), create=True)
    long = viewer.journal.append("t", st.assistant("word " * 10_000 + "the end"))
    page = viewer.html("/t/t")
    assert len(page) < 60_000
    assert "Show 30k more characters" in page
    assert "the end" in viewer.html(f"/t/t/e/{long.id}")


def test_windows_cover_the_whole_path_without_gaps(viewer: Viewer) -> None:
    made = long_talk(viewer, 500)
    seen: list[str] = []
    while len(seen) < 500:
        seen += names(viewer.html(f"/t/long/entries?start={len(seen)}&count=100"))
    assert seen == made


def test_a_long_thread_opens_at_its_end_and_a_deep_link_at_its_entry(viewer: Viewer) -> None:
    made = long_talk(viewer, 3200)
    first = viewer.html("/t/long")
    assert names(first)[-1] == made[-1]
    assert "Reading the tree" in first
    assert len(first) < 200_000
    deep = viewer.html(f"/t/long?at={made[1600]}")
    assert made[1600] in names(deep)
    assert 'aria-selected="true"' in deep
    assert "Reading the tree" not in viewer.html("/t/long")


def test_the_next_prompt_and_failure_are_found_in_the_whole_branch(viewer: Viewer) -> None:
    made = long_talk(viewer, 1500)
    call = viewer.journal.append("long", st.assistant("", calls=[st.call("c", "bash", "{}")]))
    viewer.journal.append("long", st.tool_result("c", "no", is_error=True))

    def found(query: str) -> str:
        return str(viewer.json(f"/t/long/next.json?{query}").get("id", ""))

    prompts = [entry.id for entry in viewer.journal.path("long") if isinstance(entry.payload, st.UserMessage)]
    assert found("start=0") == prompts[1]
    assert found("start=1500&back=true") == prompts[-1]
    assert found("start=0&kind=failure") == call.id
    assert found("start=1500&kind=failure") == ""
    assert found("start=0&back=true") == ""
    assert found(f"start=0&kind=failure&at={made[3]}") == call.id
    assert viewer.json("/t/long/prompts.json")["total"] == len(prompts)


def test_a_deep_link_shows_another_branch_and_moves_nothing(sampled: Viewer) -> None:
    other = sampled.journal.labels(SHOP)["cache-idea"]
    head = sampled.journal.thread(SHOP).leaf
    page = sampled.html(f"/t/{SHOP}?at={other}")
    assert other in names(page)
    assert head not in names(page)
    assert "not the head" in page
    assert sampled.journal.thread(SHOP).leaf == head


def test_the_tree_shows_branches_siblings_labels_and_the_head(sampled: Viewer) -> None:
    found = rows(sampled, SHOP)
    assert [row["siblings"]["total"] for row in found if "siblings" in row] == [3, 3, 2, 2, 3]  # type: ignore[index]
    assert {label for row in found for label in row.get("labels", [])} == {"cache-idea", "good"}  # type: ignore[attr-defined]
    assert [row["words"] for row in found if row.get("is_head")] == ["Done: one line under “Unreleased”."]
    assert all(row["is_failed"] for row in found if str(row["words"]).endswith("failed"))


def test_a_long_tree_is_folded_to_its_prompts_and_opens(viewer: Viewer) -> None:
    made = long_talk(viewer, 400)
    folded = rows(viewer, "long", start=0)
    assert [row["id"] for row in folded[:3]] == [made[0], made[4], made[8]]
    opened = rows(viewer, "long", start=0, toggled=made[0])
    assert [row["id"] for row in opened[:3]] == made[:3]


@pytest.mark.parametrize(
    ("filter", "kinds"),
    [("prompts", {"prompt", "failure", "compaction"}), ("talk", {"prompt", "answer", "compaction"})],
)
def test_filters_leave_rows_out(sampled: Viewer, filter: str, kinds: set[str]) -> None:
    assert {row["kind"] for row in rows(sampled, SHOP, filter=filter) if not row.get("starts")} <= kinds


def test_a_fork_is_a_link_in_the_tree_of_its_source(viewer: Viewer) -> None:
    first = viewer.journal.append("t", st.user("hello"), create=True)
    viewer.journal.fork("t", at=first.id, new_id="other", title="Another way")
    assert [row["words"] for row in rows(viewer, "t") if row.get("link") == "other"] == ["Another way"]
    assert 'href="/t/other"' in viewer.html("/t/t")


def test_new_entries_are_in_the_next_window(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("one"), create=True)
    assert len(names(viewer.html("/t/t"))) == 1
    viewer.journal.append("t", st.user("two"))
    assert len(names(viewer.html("/t/t/entries"))) == 2


def test_an_entry_as_a_whole_is_not_cut(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("run"), create=True)
    call = viewer.journal.append("t", st.assistant("", calls=[st.call("c", "bash", '{"command": "seq"}')]))
    viewer.journal.append("t", st.tool_result("c", "\n".join(f"line {at}" for at in range(400)), name="bash"))
    assert "line 200" not in viewer.html("/t/t")
    assert "folded, show all" in viewer.html("/t/t")
    assert "line 200" in viewer.html(f"/t/t/e/{call.id}")


@pytest.mark.parametrize("name", ["a/b", "..", "x.json", "ä b", "~1", "t?x#y", "<script>", "'\"&"])
def test_any_id_has_an_address(viewer: Viewer, name: str) -> None:
    from sessiontree.web.addresses import entry_url, thread_url  # noqa: PLC0415

    entry = viewer.journal.append(name, st.user("hello"), create=True, id=f"e{name}")
    assert names(viewer.html(thread_url(name)))
    assert "hello" in viewer.html(entry_url(name, entry.id).partition("#")[0])
    assert viewer.client.get(f"{thread_url(name)}.json").json()["thread"]["id"] == name
    assert f'href="{thread_url(name)}"' in viewer.html("/")


@pytest.mark.parametrize("path", ["/t/none", "/t/none.json", "/t/none/tree", "/t/none/entries.json", "/t/none/e/x"])
def test_what_is_not_there_is_not_found(viewer: Viewer, path: str) -> None:
    answer = viewer.client.get(path)
    assert answer.status_code == 404
    assert "none" in answer.text


ALLOWED_URLS = re.compile(r"(/|#|data:,$|data:image/(png|jpeg|gif|webp);base64,)")


class Auditor(HTMLParser):
    """Collects what a page could do: scripts, handlers, styles and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name.startswith("on") or name in {"style", "srcdoc"}:
                self.found.append(f"{tag} {name}")
            is_link = tag == "a" and (value or "").startswith(("http://", "https://"))
            if name in {"href", "src", "action"} and not is_link and not ALLOWED_URLS.match(value or ""):
                self.found.append(f"{tag} {name}={value}")
        is_ours = tag == "script" and (dict(attrs).get("src") or "").startswith("/static/")
        if tag in {"script", "iframe", "object", "embed", "base", "style"} and not is_ours:
            self.found.append(tag)


def audited(page: str) -> list[str]:
    auditor = Auditor()
    auditor.feed(page)
    return auditor.found


HOSTILE_PAGES = (
    *(
        "/",
        "/threads",
        "/t/t",
        "/t/t/entries",
        "/t/t/tree",
        "/t/t/prompts",
        "/t/t/files",
        "/t/t/context",
        "/compare?a=t",
        "/look-back",
    ),
    *("/facets/folder", "/facets/tool", "/facets/tag", "/facets/model", "/search?q=red+OR+alert+OR+user"),
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_content_in_every_field_of_every_type_is_only_text(viewer: Viewer, hostile: str) -> None:
    made = hostile_thread(viewer.journal, "t", hostile)
    shown = {type(entry.payload) for entry in viewer.journal.entries("t")}
    assert {kind for kind in get_args(KnownPayload) if kind not in shown} == {st.Queued}
    whole = [f"/t/t/{kind}/{entry.id}" for entry in made for kind in ("e", "preview")]
    for path in (*HOSTILE_PAGES, *whole):
        page = viewer.html(path)
        assert audited(page) == [], path
        assert not re.search("[\x00-\x08\x1b\u202e\u2066\u200b]", page), path


def test_a_huge_entry_is_cut_until_it_is_asked_for(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("run"), create=True)
    viewer.journal.append("t", st.assistant("", calls=[st.call("c", "bash", "{}")]))
    viewer.journal.append("t", st.tool_result("c", "<b>x\n" * 1_000_000, name="bash"))
    viewer.journal.append("t", st.assistant("word " * 400_000))
    assert len(viewer.html("/t/t")) < 4_000_000


def test_the_audit_finds_what_it_looks_for() -> None:
    page = '<img onerror=x><a href="javascript:x"><script src="//evil"></script><b style="x"></b><style></style>'
    assert len(audited(page)) == 5


def test_a_huge_thread_of_logs_is_read_in_windows(sampled: Viewer) -> None:
    page = sampled.html(f"/t/{LOGS}")
    assert len(names(page)) <= 120


def test_entries_that_nobody_reads_have_no_siblings(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("begin"), create=True)
    start = viewer.journal.append("t", st.assistant("one"))
    viewer.journal.append("t", st.user("left"))
    viewer.journal.rewind("t", start.id)
    viewer.journal.append("t", st.ModelChange(model="other"))
    viewer.journal.append("t", st.user("kept"))
    assert "kept" in viewer.html("/t/t")


def test_the_files_of_a_branch_are_those_that_its_calls_changed(viewer: Viewer) -> None:
    edit = '{"path": "src/a.py", "oldText": "one\\n", "newText": "two\\nthree\\n"}'
    asked = viewer.journal.append("a", st.user("edit it"), create=True)
    viewer.journal.append("a", st.assistant(calls=[st.call("c1", "edit", edit)]))
    tip = viewer.journal.append("a", st.tool_result("c1", "done"))
    viewer.journal.append("a", st.user("leave it"), parent=asked.id)
    assert viewer.client.get("/t/a/files.json").json() == {}
    found = viewer.client.get(f"/t/a/files.json?at={tip.id}").json()["files"]
    assert found == [{"path": "src/a.py", "added": 2, "removed": 1}]
    assert "Files in this branch" in viewer.html(f"/t/a/files?at={tip.id}")
