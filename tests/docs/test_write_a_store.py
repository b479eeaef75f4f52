"""The tests that the page about stores shows are run by pytest as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from doc_pages import BLOCK, ROOT


def test_pytest_runs_the_contract_of_the_page(tmp_path: Path) -> None:
    store, contract, *_ = BLOCK.findall((ROOT / "docs/howto/write-a-store.md").read_text(encoding="utf-8"))
    (tmp_path / "test_my_store.py").write_text(store + contract)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "fork", "test_my_store.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
