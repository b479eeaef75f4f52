"""The core needs no extra: docs/explanation/size.md says so."""

from __future__ import annotations

import subprocess
import sys
import tomllib

from doc_pages import ROOT

# What the extras and the tools for tests bring, as modules.
EXTRAS = (
    "agent_framework", "agents", "anthropic", "claude_agent_sdk", "google", "hypothesis", "langchain_core", "langgraph",
    "llama_index", "mcp", "openai", "opentelemetry", "psycopg", "psycopg_pool", "pydantic_ai", "pytest", "splintr",
    "starlette", "strands", "uvicorn",
)  # fmt: skip
# What may need one.
ROOMS = ("adapters", "mcp", "observe.otel", "stores.postgres", "testing", "web")

IMPORT_EVERYTHING = f"""
import importlib, pkgutil, sys, sessiontree
sys.modules.update(dict.fromkeys({EXTRAS!r}))
for module in pkgutil.walk_packages(sessiontree.__path__, "sessiontree.", onerror=lambda name: None):
    try:
        importlib.import_module(module.name)
    except Exception:
        print(module.name)
"""


def test_every_module_of_the_core_is_imported_without_an_extra() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=True)
    failed = done.stdout.split()
    assert len(failed) > 10, "the extras were there"
    rooms = tuple(f"sessiontree.{room}" for room in ROOMS)
    assert [name for name in failed if not name.startswith(rooms)] == []


def test_the_package_itself_imports_nothing_of_its_modules() -> None:
    code = "import sys, sessiontree; print(*(name for name in sys.modules if name.startswith('sessiontree.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_page_names_every_extra() -> None:
    page = (ROOT / "docs/explanation/size.md").read_text(encoding="utf-8")
    together = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        "all"
    ]
    names = together[0].removeprefix("sessiontree[").removesuffix("]").split(",")
    assert len(names) > 5
    assert [name for name in (*names, "all") if f"`{name}`" not in page] == []
