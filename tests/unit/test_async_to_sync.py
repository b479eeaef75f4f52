"""The script that writes the blocking modules: what it replaces, what it refuses, and that its output is current."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import async_to_sync  # noqa: E402


def test_the_generated_modules_are_current() -> None:
    script = ROOT / "tools/async_to_sync.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_syntax_and_names_are_replaced() -> None:
    source = '''
    import asyncio

    class AsyncJournal(AsyncVerbs):
        """Use ``async with AsyncJournal(store) as journal: await journal.close()``."""

        async def __aexit__(self, *_: object) -> None:
            await self.store.aclose()

        async def run(self) -> dict[str, int]:
            await asyncio.sleep(1)
            return drive_async(self.store.await_change)

        async def all(self, f: Callable[[], T | Awaitable[T]]) -> list[T]:
            async with self as own:
                return [entry async for entry in own.watch()]
    '''
    assert async_to_sync.convert(dedent(source)) == dedent('''
    import time

    class Journal(Verbs):
        """Use ``with Journal(store) as journal: journal.close()``."""

        def __exit__(self, *_: object) -> None:
            self.store.close()

        def run(self) -> dict[str, int]:
            time.sleep(1)
            return drive(self.store.wait)

        def all(self, f: Callable[[], T | Awaitable[T]]) -> list[T]:
            with self as own:
                return [entry for entry in own.watch()]
    ''')


def test_of_what_differs_the_else_block_is_kept_as_it_is() -> None:
    source = """
    def wait(seconds):
        if True:  # ASYNC
            if True:
                return asyncio.sleep(seconds)

        else:
            if seconds > 0:
                return time.sleep(seconds)  # unlike AsyncJournal
        if True:  # ASYNC
            only_here()
        return None
    """
    assert async_to_sync.convert(dedent(source)) == dedent("""
    def wait(seconds):
        if seconds > 0:
            return time.sleep(seconds)  # unlike AsyncJournal
        return None
    """)


def test_what_has_no_blocking_form_is_refused_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_to_sync, "ROOT", tmp_path)
    source = tmp_path / "work_async.py"
    source.write_text("import asyncio\n\nasync def rest():\n    await asyncio.gather()\n")
    with pytest.raises(async_to_sync.ConversionError, match=r"work_async\.py: 'asyncio' has no blocking form.*# ASYNC"):
        async_to_sync.generate(source)


def test_a_class_that_would_exist_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_to_sync, "ROOT", tmp_path)
    source = tmp_path / "work_async.py"
    source.write_text("class AsyncWork:\n    pass\n\n\nclass Options:\n    pass\n")
    with pytest.raises(async_to_sync.ConversionError, match="class Options would exist twice"):
        async_to_sync.generate(source)


def run_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(async_to_sync, "ROOT", tmp_path)
    monkeypatch.setattr(async_to_sync, "PACKAGE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["async_to_sync.py", *arguments])
    return async_to_sync.main()


def test_a_stale_file_and_one_without_a_source_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "work_async.py", tmp_path / "work.py"
    source.write_text("async def rest():\n    return 1\n")
    assert run_main(tmp_path, monkeypatch) == 0
    assert target.read_text().endswith("do not edit.\ndef rest():\n    return 1\n")
    assert run_main(tmp_path, monkeypatch, "--check") == 0
    source.write_text("async def rest():\n    return 2\n")
    assert run_main(tmp_path, monkeypatch, "--check") == 1
    assert "work.py: differs" in capsys.readouterr().err
    assert "return 1" in target.read_text()
    source.unlink()
    assert run_main(tmp_path, monkeypatch) == 1
    assert "work.py: its source is gone" in capsys.readouterr().err


def test_a_module_with_a_hand_written_twin_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work_async.py").write_text("async def rest():\n    return 1\n")
    (tmp_path / "work.py").write_text("def rest():\n    return 2\n")
    assert run_main(tmp_path, monkeypatch) == 0
    assert (tmp_path / "work.py").read_text() == "def rest():\n    return 2\n"
