"""The public surface: what is promised is there, is documented, and its examples run."""

import ast
import doctest
import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import sessiontree as st
from known import present


def _modules() -> list[str]:
    found = [module.name for module in pkgutil.walk_packages(st.__path__, "sessiontree.")]
    return ["sessiontree", *(name for name in found if not name.endswith("__main__") and not _needs_framework(name))]


def _needs_framework(name: str) -> bool:
    place, _, module = name.removeprefix("sessiontree.").partition(".")
    return place == "adapters" and module not in {"", "_adapter", "_extra", "_records", "_source"}


def test_all_names_what_is_there_and_nothing_twice() -> None:
    assert len(set(st.__all__)) == len(st.__all__)
    for name in st.__all__:
        assert getattr(st, name) is not None


def test_the_imports_for_type_checkers_are_the_table() -> None:
    tree = ast.parse(pathlib.Path(st.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    nodes = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(nodes) == len(block.body)
    imported = {alias.asname: (node.module, alias.name) for node in nodes for alias in node.names}
    assert imported == {name: (module, name) for name, module in st._MODULE_OF.items()}


def test_a_public_name_belongs_to_one_module() -> None:
    assert sum(len(names.split()) for names in st._NAMES.values()) == len(st.__all__)


def test_dir_lists_the_public_names_only() -> None:
    assert dir(st) == st.__all__


def test_the_names_that_the_design_promises_are_public() -> None:
    promised = (
        "SessionManager AsyncSessionManager SessionKey SimpleStore CheckpointedSessions import_sessions "
        "export_sessions copy_store ratio_policy content_hash ArtifactRef DIALECTS"
    )
    assert set(promised.split()) - set(st.__all__) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'journals'"):
        st.journals  # type: ignore[attr-defined]  # noqa: B018


def test_the_verbs_of_the_design_are_there() -> None:
    verbs = (
        "create_thread thread update_thread delete_thread list_threads append append_many entry entries path children "
        "move_leaf rewind reset undo redo reflog fork label acquire_lease renew_lease release_lease active_lease "
        "clear_expired_lease turn resume retry context watch stats check repair close"
    )
    assert [verb for verb in verbs.split() if not hasattr(st.Journal, verb)] == []


@pytest.mark.parametrize(
    "name", [name for name in st.__all__ if inspect.isroutine(getattr(st, name)) or inspect.isclass(getattr(st, name))]
)
def test_every_public_callable_says_what_it_is(name: str) -> None:
    value = getattr(st, name)
    if inspect.isclass(value) and issubclass(value, Exception):
        assert issubclass(value, st.SessionTreeError)
        assert name in present(importlib.import_module("sessiontree.errors").__doc__)
    elif not _is_self_explaining(value):
        assert inspect.getdoc(value)


@pytest.mark.parametrize("kind", [st.Journal, st.AsyncJournal])
def test_every_verb_has_a_docstring(kind: type[st.Journal] | type[st.AsyncJournal]) -> None:
    verbs = [value for name, value in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
    assert [verb.__name__ for verb in verbs if not verb.__doc__] == []


@pytest.mark.parametrize("name", _modules())
def test_the_examples_in_the_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is"
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("name", _modules())
def test_every_name_in_a_modules_all_exists(name: str) -> None:
    module = importlib.import_module(name)
    assert [public for public in getattr(module, "__all__", ()) if not hasattr(module, public)] == []


def test_the_package_loads_without_what_it_does_not_need() -> None:
    code = "import sys, sessiontree; print(*{'asyncio', 'sqlite3', 'pytest', 'hypothesis'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def _is_self_explaining(value: object) -> bool:
    """A record whose fields say it all."""
    return hasattr(value, "__struct_fields__")
