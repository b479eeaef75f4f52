"""Commands in the documentation run: every line of every block of `sh`, in a home folder that has what the page assumes."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

import postgres_server
import sessiontree as st
from doc_pages import FRAMEWORKS, ROOT, shell_environment

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TRANSCRIPTS = ROOT / "tests/data/transcripts"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(\$ |[A-Z_]+=\S+ |.* )?(sessiontree|pip|make|python|createdb|claude) [a-z]", re.MULTILINE)

NOT_RUN = {
    "pip install ": "packages come from an index; the extras that are named exist, and make test-package installs each",
    "make ": "suites of their own; the targets exist",
    "createdb ": "a program of PostgreSQL; the test makes the database",
    "export OPENAI_API_KEY=": "stands for a key",
    "claude mcp add ": "a program of its own; it runs `sessiontree mcp`",
    "sessiontree postgres distribute ": "needs a cluster; tests/postgres/test_distribution.py has one where there is one",
}
NOT_SHELL = {
    "docs/howto/back-up.md": "a table of cron and units of systemd: the same commands, at other places",
    "docs/tutorial/agent.md": "what a person types and a model answers; tests/process/test_agent_loops.py runs the program",
    "docs/reference/cli.md": "what --help says, compared by test_cli_reference.py",
}
SERVERS = ("sessiontree web", "SESSIONTREE_MCP_TOKEN=")


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language in languages]


def commands(page: Path) -> list[str]:
    """The lines of a page that are run."""
    lines = "".join(blocks(page, "sh")).splitlines()
    return [line for line in lines if line and not line.startswith((*NOT_RUN, *SERVERS))]


def a_journal(home: Path) -> dict[str, str]:
    with st.open(home / "journal.db") as journal:
        journal.create_thread("a", contents=[st.user("hello")])
    return {}


def a_journal_and_a_server(home: Path) -> dict[str, str]:
    server = postgres_server.new_database()
    with st.open(postgres_server.with_options(server, namespace="acme")) as journal:
        journal.create_thread("a", contents=[st.user("hello")])
    return {
        **a_journal(home),
        "/mnt/backups/": "backups/",
        "backups/journal journal.db": "backups/journal restored.db",
        "'postgresql://db/agents?namespace=acme'": f"'{postgres_server.with_options(server, namespace='acme')}'",
        "'postgresql://db/agents?namespace=acme_restored'": f"'{postgres_server.with_options(server, namespace='b')}'",
    }


def an_empty_server(home: Path) -> dict[str, str]:
    a_journal(home)
    return {"postgresql://localhost/agents": postgres_server.new_database()}


def an_agent(home: Path) -> dict[str, str]:
    with st.open(home / "agent.db") as journal:
        journal.create_thread("demo", contents=[st.user("hello"), st.assistant("hi"), st.user("and?")])
    return {}


def sessions_of_tools(home: Path) -> dict[str, str]:
    (home / ".claude/projects/-shop").mkdir(parents=True)
    shutil.copy(TRANSCRIPTS / "claude-code/av_valid_session.jsonl", home / ".claude/projects/-shop")
    shutil.copytree(TRANSCRIPTS / "codex/synthetic/sessions", home / "old-laptop")
    (home / "Downloads").mkdir()
    with zipfile.ZipFile(home / "Downloads/chatgpt-export.zip", "w") as archive:
        archive.write(TRANSCRIPTS / "chatgpt/synthetic/conversations.json", "conversations.json")
    with st.open(home / "journal.db") as journal:
        journal.create_thread("3a19", workspace=str(home), contents=[st.user("hello"), st.assistant("hi")])
        journal.append("3a19", st.user("again"), parent=journal.path("3a19")[0].id)
    return {"/backup/": ""}


ASSUMED: dict[str, Callable[[Path], dict[str, str]]] = {
    "README.md": an_agent,
    "docs/howto/back-up.md": a_journal_and_a_server,
    "docs/howto/bring-conversations-home.md": sessions_of_tools,
    "docs/howto/delete-old-threads.md": a_journal,
    "docs/howto/use-postgresql.md": an_empty_server,
    "docs/tutorial/agent.md": an_agent,
}
"""What a page assumes to be there, and what stands for its addresses and folders."""


def start(home: Path, script: str) -> pexpect.spawn[str]:
    environment = shell_environment(home) | {"SESSIONTREE_STORE": "journal.db"}
    return pexpect.spawn(
        "bash", ["-e", "-c", script], cwd=str(home), env=environment, dimensions=(50, 200), encoding="utf-8", timeout=120
    )  # fmt: skip


@pytest.mark.parametrize("name", [str(page.relative_to(ROOT)) for page in PAGES if commands(page)])
def test_every_command_of_the_page_succeeds(name: str, tmp_path: Path) -> None:
    script = "\n".join(commands(ROOT / name))
    for words, stand_in in ASSUMED[name](tmp_path).items():
        assert words in script
        script = script.replace(words, stand_in)
    shell = start(tmp_path, script)
    printed = ""
    while shell.expect([r"\[[yY]/[nN]\]", pexpect.EOF]) == 0:
        printed += shell.before
        shell.sendline("y")
    shell.close()
    assert shell.exitstatus == 0, printed + str(shell.before)


@pytest.mark.parametrize(
    "line",
    [line for page in PAGES for line in "".join(blocks(page, "sh")).splitlines() if line.startswith(SERVERS)],
    ids=lambda line: line.partition("  ")[0],
)
def test_every_server_says_where_it_is_and_ends_with_ctrl_c(line: str, tmp_path: Path) -> None:
    a_journal(tmp_path)
    an_agent(tmp_path)
    shell = start(tmp_path, line.replace("8731", str(postgres_server.free_port())))
    shell.expect(r"http://127\.0\.0\.1:\d+")
    shell.sendintr()
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0, shell.before


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_stands_in_a_block_that_nothing_runs(page: Path) -> None:
    run = {"sh", "python", "py", *(["console"] if page.name == "tour.md" else [])}
    others = [text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language not in run]
    if str(page.relative_to(ROOT)) not in NOT_SHELL:
        assert [text for text in others if COMMAND.search(text)] == []


def test_extras_that_are_installed_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        extra
        for page in PAGES
        for group in re.findall(r"sessiontree\[([\w,-]+)\]", page.read_text(encoding="utf-8"))
        for extra in group.split(",")
    }
    assert len(named) > 12
    assert named - set(extras) == set()


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lines = [line for page in PAGES for line in "".join(blocks(page, "sh")).splitlines() if line.startswith("make ")]
    assert len(lines) > 5
    missing = [line for line in lines if not re.search(rf"^{line.split()[1]}:", makefile, re.MULTILINE)]
    assert missing == []


def test_a_page_of_a_framework_installs_the_extra_of_its_name() -> None:
    pages = sorted(FRAMEWORKS.glob("*.md"))
    assert [page.name for page in pages if f"sessiontree[{page.stem}]" not in page.read_text(encoding="utf-8")] == []


def test_configurations_of_clients_can_be_read() -> None:
    page = ROOT / "docs/howto/let-agents-recall.md"
    read = [json.loads(text) for text in blocks(page, "json")] + [tomllib.loads(text) for text in blocks(page, "toml")]
    assert len(read) > 4
    assert all("sessiontree" in servers for (servers,) in map(dict.values, read))
