"""Code in the documentation runs: every page's Python blocks, top to bottom, in one namespace and one empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_pages import BLOCK, FRAMEWORKS, ROOT, run

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent != FRAMEWORKS and BLOCK.search(page.read_text(encoding="utf-8"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_code_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs/index.md"], ids=lambda page: page.name)
def test_the_first_program_that_people_try_runs_a_second_time(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)
    run(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_python_stands_in_a_block_that_nothing_runs(page: Path) -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    others = [block for language, block in blocks if language not in ("console", "py", "python")]
    assert [block for block in others if re.search(r"^(from|import) sessiontree", block, re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_the_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#: ]+)(?:#[^) ]*)?(?: \"\w+\")?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_anchors_of_the_page_are_headings(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#: ]*\.md)?#([^) ]+)\)", page.read_text(encoding="utf-8"))
    files = [(page.parent / name if name else page, anchor) for name, anchor in targets]
    missing = [anchor for file, anchor in files if "/api/" not in str(file) and anchor not in anchors(file)]
    assert missing == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
