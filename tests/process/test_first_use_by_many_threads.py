"""A process whose threads all use the journal, or load its parts, for the first time at the same moment."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sessiontree

CROWD = """
import sys, threading
import sessiontree as st
sys.setswitchinterval(1e-6)
start = threading.Barrier(8)
failed = []
def begin(number):
    start.wait()
    try:
        use(number)
    except BaseException as error:
        failed.append(error)
crew = [threading.Thread(target=begin, args=[number]) for number in range(8)]
{use}
for thread in crew:
    thread.start()
for thread in crew:
    thread.join()
assert not failed, failed
"""

FIRST_VERBS = """
journal = st.open("memory:")
def use(number):
    name = str(number)
    journal.create_thread(name)
    journal.append(name, st.user("hello"))
    page = journal.list_threads(limit=1)
    journal.list_threads(limit=1, cursor=page.cursor)
    journal.search("hello")
    assert journal.context(name).messages
"""

FIRST_LOADING = """
from importlib import import_module
names = ["transfer.formats.floret", "transfer.formats.pi", "transfer.formats.ggcode", "transfer.formats.picoclaw",
         "transfer.formats.native", "stores.jsonl", "workspace", "search"]
def use(number):
    import_module("sessiontree." + names[number])
"""

FIRST_NAMES = """
def use(number):
    middle = number * len(st.__all__) // 8
    for name in st.__all__[middle:] + st.__all__[:middle]:
        getattr(st, name)
"""


@pytest.mark.parametrize("use", [FIRST_VERBS, FIRST_LOADING, FIRST_NAMES], ids=["verbs", "loading", "names"])
def test_no_thread_fails_over_what_another_one_is_still_creating(use: str) -> None:
    """Decoders are made and modules are loaded on first use, and neither is safe in two threads at once."""
    for _ in range(10):
        done = subprocess.run(
            [sys.executable, "-c", CROWD.format(use=use)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_types_are_learnt_in_one_place_only() -> None:
    """Whoever makes a decoder past ``sessiontree.model._base`` brings the crash back."""
    root = Path(sessiontree.__file__).parent
    learners = {
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        if path.relative_to(root).as_posix() != "model/_base.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _learns(node)
    }
    assert learners == set()


def _learns(call: ast.Call) -> bool:
    match ast.unparse(call.func).split("."):
        case [*_, "Decoder"] | ["msgspec", "convert"]:
            return True
        case [*_, "decode"]:
            return any(keyword.arg == "type" for keyword in call.keywords)
    return False
