"""The HTML of a conversation: self-contained, and safe to open whatever is in it."""

import base64
import hashlib
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from known import present
from sample_store import SHOP, make_sample
from sessiontree.render.html import PageContent, markdown, preformatted, render_html
from sessiontree.render.html.blocks import code

SAFE_TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "article", "h1", "h2", "h3", "h4", "h5", "h6",
    "p", "div", "pre", "code", "details", "summary", "span", "time", "em", "strong", "ul", "ol", "li", "a", "br", "hr",
    "blockquote", "img", "nav",
}  # fmt: skip
SAFE_ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "dir", "class", "id", "href", "title", "start", "src", "alt",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*payloads: st.Payload, title: str = "talk", labels: Sequence[str] = ()) -> str:
    with st.open("memory:") as journal:
        thread = journal.create_thread("t", title=title)
        for payload in payloads:
            journal.append("t", payload)
        entries = tuple(journal.entries("t"))
        names = dict.fromkeys(labels, entries[0].id)
        return render_html(PageContent(thread=journal.thread(thread.id), entries=entries, labels=names))


def assert_harmless(page: str) -> None:
    for tag, attributes in Page(page).tags:
        assert tag in SAFE_TAGS
        assert set(attributes) <= SAFE_ATTRIBUTES, attributes
        assert not (attributes.get("href") or "").lower().strip().startswith(("javascript", "data", "vbscript"))
        assert (attributes.get("src") or "data:image/").startswith("data:image/")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", page)


EVIL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) [data](data:text/html;base64,xx) <javascript:alert(1)>",
    "![tracker](http://evil.example/x.png)",
    '"><svg onload=alert(1)>',
    "</style></pre></details></body><script>1</script>",
    "\u202eevil\u2066 \x1b[31m \x00",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    "[a]: javascript:alert(1)\n[a]",
    "&lt;script&gt; &#60;script&#62;",
]


@pytest.mark.parametrize("evil", EVIL)
def test_hostile_content_stays_text_wherever_it_stands(evil: str) -> None:
    page = page_of(
        st.user(evil),
        st.assistant(evil, calls=[st.call("c", evil, evil)], reasoning=evil),
        st.tool_result("c", evil, name=evil, is_error=True),
        st.Compaction(summary=evil),
        st.RunFailure(error=evil),
        st.Memory(text=evil),
        st.Custom(name=evil),
        title=evil,
        labels=[evil],
    )
    assert_harmless(page)


@given(some.text(max_size=200))
def test_any_text_gives_a_harmless_page(text: str) -> None:
    assert_harmless(page_of(st.user(text), title=text))


def test_the_policy_allows_the_one_style_sheet_and_nothing_else() -> None:
    page = page_of(st.user("hello"))
    policy = present(next(tag["content"] for name, tag in Page(page).tags if tag.get("http-equiv")))
    style = present(re.search(r"<style>(.*?)</style>", page, re.DOTALL))[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    assert "url(" not in style
    assert "@import" not in style


def test_markdown_is_rendered_and_tools_are_folded() -> None:
    page = page_of(
        st.user("*hi* `code`"),
        st.assistant(calls=[st.call("c", "bash", '{"cmd": "ls"}')]),
        st.tool_result("c", "@@ -1 +1 @@\n-old\n+new", name="bash"),
    )
    assert "<em>hi</em>" in page
    assert '<details class="call"><summary><span class="kind">bash</span><span class="object">ls</span>' in page
    assert '<span class="add">+new</span>' in page


def test_other_branches_are_folded_in_where_they_left() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        first = journal.append("t", st.user("first"))
        journal.append("t", st.user("left alone"))
        journal.rewind("t", first.id)
        journal.append("t", st.user("taken"))
        page = render_html(PageContent(thread=journal.thread("t"), entries=tuple(journal.entries("t"))))
    main = page[page.index("<main>") :]
    assert main.index("first") < main.index("left alone · 1 entry") < main.index("taken")


def test_the_page_has_contents_a_map_of_branches_and_what_each_turn_took(tmp_path: Path) -> None:
    make_sample(tmp_path / "j.db")
    with st.open(tmp_path / "j.db") as journal:
        entries = tuple(journal.entries(SHOP))
        page = render_html(PageContent(thread=journal.thread(SHOP), entries=entries, labels=journal.labels(SHOP)))
    assert_harmless(page)
    tags = Page(page).tags
    known = {attributes["id"] for _, attributes in tags if "id" in attributes}
    links = [str(attributes["href"]) for name, attributes in tags if name == "a" and "href" in attributes]
    assert links
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= known
    nav = page[page.index("<nav>") : page.index("</nav>")]
    assert nav.count("<li>") == 3 + 3
    assert "3 other branches" in nav
    assert '<span class="label">cache-idea</span>' in nav
    assert '<span class="del">-    user = users[name]</span>' in page
    assert '<details class="call failed">' in page
    assert "E  KeyError: &#x27;ann&#x27;" in page
    assert "claude-sonnet-4-5 · 6 steps · " in page
    assert page.count("<details") == page.count("</details>")


def test_code_has_the_colours_of_its_language() -> None:
    assert '<span class="k">for</span>' in markdown("```python\nfor x in y: pass\n```")
    assert markdown("```klingon\n<b>\n```") == '<pre><code class="language-klingon">&lt;b&gt;\n</code></pre>\n'


def test_code_in_one_endless_line_is_not_coloured_as_languages_may_take_its_square() -> None:
    assert code("x = 1\n" * 1000, "python").count("<span") == 1000
    assert "<span" not in code("x = 1; " * 1000, "python")


def test_a_megabyte_in_one_line_and_a_thousand_entries_are_written() -> None:
    page = page_of(st.user("x" * 1_000_000), *[st.user(f"message {number}") for number in range(1000)])
    assert "message 999" in page
    assert_harmless(page)


def test_images_are_inline_or_named_never_fetched() -> None:
    inside = st.ImagePart(data="iVBORw0KGgo=", mime="image/png")
    outside = st.ImagePart(url="http://evil.example/x.png")
    svg = st.ImagePart(data="PHN2Zz4=", mime="image/svg+xml")
    page = page_of(st.user([inside, outside, svg]))
    sources = [tag["src"] for name, tag in Page(page).tags if name == "img"]
    assert sources == ["data:image/png;base64,iVBORw0KGgo="]


def test_tables_are_tables_and_what_they_hold_is_escaped() -> None:
    page = markdown("| a | b |\n|---|:-:|\n| <b onclick=x> | [j](javascript:x) |\n\n~~gone~~")
    assert "<table>" in page
    assert "<b " not in page
    assert "href" not in page
    assert "style" not in page
    assert "<s>gone</s>" in page


def test_the_headings_of_a_diff_are_neither_added_nor_removed() -> None:
    page = preformatted("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new")
    assert '<span class="del">-old</span><span class="add">+new</span>' in page
    assert page.count('class="at"') == 4
