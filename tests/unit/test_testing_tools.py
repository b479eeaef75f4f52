"""The shipped tools themselves: a tool that never fails would prove nothing."""

import errno
import inspect
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import Phase, settings

import sessiontree as st
from property_settings import IS_DEEP, examples
from sessiontree.stores._io import Files
from sessiontree.testing import FaultyFiles, StoreContract, SyncOverAsync
from sessiontree.testing.faults import FileCall
from sessiontree.testing.machine import JournalMachine, machine_settings, machine_test

MADE_OF_OTHERS = {"put", "make_folders", "write_again"}


def test_every_kind_of_file_work_can_be_made_to_fail(tmp_path: Path) -> None:
    kinds = {name for name, _ in inspect.getmembers(Files, inspect.isfunction) if not name.startswith("_")}
    assert kinds - MADE_OF_OTHERS <= set(vars(FaultyFiles))
    assert kinds - MADE_OF_OTHERS == set(get_args(FileCall))
    for kind in get_args(FileCall):
        files = FaultyFiles(kind, error=errno.ENOSPC)
        count = len(inspect.signature(getattr(files, kind)).parameters)
        with pytest.raises(OSError, match=f"made to fail: {kind} number 1") as caught:
            getattr(files, kind)(*[tmp_path / "x", b"", b""][:count])
        assert caught.value.errno == errno.ENOSPC


def test_the_nth_call_fails_alone_or_with_all_that_follow(tmp_path: Path) -> None:
    for is_lasting, outcomes in ((False, "ok fails ok"), (True, "ok fails fails")):
        files = FaultyFiles("append", at=2, keep=1, is_lasting=is_lasting)
        path = tmp_path / str(is_lasting)
        file = files.open_append(path)
        assert " ".join(_outcome(files, file) for _ in range(3)) == outcomes
        assert path.read_bytes() == {False: b"abcaabc", True: b"abcaa"}[is_lasting]
        assert files.calls["append"] == 3


def test_a_store_that_forgets_is_caught_by_the_machine() -> None:
    class Forgetful(JournalMachine):
        def open_journal(self, folder: Path, **options: Any) -> st.Journal:
            return st.open("memory:", **options)

    case = machine_test(Forgetful)
    case.settings = settings(case.settings, phases=[Phase.generate])
    with pytest.raises((AssertionError, ExceptionGroup)):
        case("runTest").runTest()


def test_property_tests_repeat_themselves_unless_the_deep_profile_is_chosen() -> None:
    assert examples(7, deep=7).derandomize is settings().derandomize is not IS_DEEP
    assert machine_settings().derandomize is not IS_DEEP


def test_every_verb_of_the_adapter_goes_through_the_async_journal() -> None:
    verbs = [name for name, _ in inspect.getmembers(st.AsyncJournal, inspect.isfunction) if not name.startswith("_")]
    assert [verb for verb in verbs if verb not in vars(SyncOverAsync)] == []


def test_a_contract_without_a_store_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="opens its store here"):
        StoreContract().open_journal(tmp_path)


def _outcome(files: FaultyFiles, file: int) -> str:
    try:
        files.append(file, b"abc")
    except OSError:
        return "fails"
    return "ok"
