"""Code of the documentation that needs a server or a model runs too: it stands in blocks of `py`."""

from __future__ import annotations

import re
import secrets
from typing import Any

import psycopg
import pytest
from anthropic.resources.messages.messages import DEPRECATED_MODELS

import postgres_server
import sessiontree as st
from doc_pages import ROOT, blocks_that_need_a_server
from long_conversations import SMALL, talk
from model_server import Reply, chat_answer, model_server


def test_the_code_about_postgresql_runs() -> None:
    as_record, tenants = blocks_that_need_a_server(ROOT / "docs/howto/use-postgresql.md")
    url, role = postgres_server.new_database(), f"acme_{secrets.token_hex(4)}"
    names: dict[str, Any] = {"st": st, "url": url, "owner_url": url}
    exec(as_record, names)
    with names["journal"] as journal:
        journal.create_thread("t")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    exec(tenants.replace('"acme",', f'"{role}",'), names)
    bound = url.replace("postgres@", f"{role}@")
    with st.open(postgres_server.with_options(bound, namespace="acme")) as journal:
        assert journal.thread("t").id == "t"


def test_the_sql_that_makes_partitions_runs() -> None:
    page = (ROOT / "docs/explanation/capacity.md").read_text(encoding="utf-8")
    (sql,) = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    url = postgres_server.new_database()
    with st.open(url) as journal:
        journal.create_thread("before", contents=[st.user("hello")])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.replace("'01a2", "'0fa2"))  # a month that has not begun, whenever this runs
    with st.open(url) as journal:
        journal.create_thread("after", contents=[st.user("hello")])
        assert [len(journal.path(thread)) for thread in ("before", "after")] == [1, 1]
        assert journal.check() == []


@pytest.mark.xdist_group("model sdk")
def test_the_code_about_summaries_by_models_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks_that_need_a_server(ROOT / "docs/howto/long-conversations.md")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with model_server() as server, st.open("memory:") as journal:
        server.replies = [Reply(body=chat_answer("The notes."))]
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        thread = journal.create_thread()
        talk(journal, thread.id)
        exec(code, {"journal": journal, "thread": thread, "policy": SMALL})
        assert "The notes." in journal.context(thread.id).messages[0].text


def test_no_page_and_no_example_names_a_model_that_its_sdk_calls_deprecated() -> None:
    files = [ROOT / "README.md", *ROOT.glob("docs/[!a]*/**/*.md"), *ROOT.glob("examples/**/*.py")]
    assert len(files) > 50
    named = {name for file in files for name in re.findall(r'"(claude-[\w.-]+)"', file.read_text(encoding="utf-8"))}
    assert len(named) > 1
    assert named & set(DEPRECATED_MODELS) == set()
