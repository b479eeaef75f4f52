"""Importing an adapter whose framework is not installed."""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path

import pytest

import sessiontree.adapters
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.errors import MissingExtraError

FRAMEWORKS = {
    "agent_framework": "agent_framework",
    "claude_agent_sdk": "claude_agent_sdk",
    "google_adk": "google.adk",
    "langchain": "langchain_core",
    "langgraph": "langchain_core",
    "llama_index": "llama_index",
    "mcp": "mcp",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "strands": "strands",
}
"""The package that each adapter imports first."""


def test_every_adapter_is_tried_here() -> None:
    folder = Path(sessiontree.adapters.__path__[0])
    assert {path.stem for path in folder.iterdir() if path.stem[0] not in "_."} == FRAMEWORKS.keys()


@pytest.mark.parametrize("adapter", FRAMEWORKS)
def test_an_adapter_without_its_framework_names_the_extra_to_install(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework = FRAMEWORKS[adapter]
    for name in list(sys.modules):
        if name.startswith((f"{framework}.", f"sessiontree.adapters.{adapter}")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, framework, None)  # as if it were not installed
    extra = adapter.replace("_", "-")
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module(f"sessiontree.adapters.{adapter}")
    assert isinstance(caught.value, ImportError)
    assert f"pip install 'sessiontree[{extra}]'" in str(caught.value)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    for needed in project["project"]["optional-dependencies"][extra]:
        assert f"{needed} (" in str(caught.value)


def test_an_adapter_of_an_old_framework_names_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.metadata.requires", lambda _: ["soup>=2; extra == 'soup'", "bread>=1; extra == 'all'"]
    )
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.4")
    with pytest.raises(MissingExtraError) as caught, imports_of_extra("soup"):
        raise ImportError("cannot import name 'Ladle' from 'soup'")
    assert caught.value.packages == ("soup>=2 (1.4 is installed)",)
    assert "the adapter for soup needs soup>=2 (1.4 is installed); install it with" in str(caught.value)
