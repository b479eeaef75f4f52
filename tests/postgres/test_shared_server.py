"""The test tools: workers that start at once share one server, and the last one removes it."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from known import present

WORKERS = 5
PROGRAM = "import postgres_server as server; print(server.new_database(), flush=True); input()"


@pytest.mark.skipif(
    not {"SESSIONTREE_TEST_DSN", "SESSIONTREE_TEST_CITUS_DSN"}.isdisjoint(os.environ), reason="the server is given"
)
def test_processes_that_start_at_once_share_one_server() -> None:
    environment = {**os.environ, "PYTEST_XDIST_TESTRUNUID": secrets.token_hex(6), "PYTHONWARNINGS": "ignore"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=Path(__file__).parents[1], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for _ in range(WORKERS)
    ]  # fmt: skip
    folders = {present(worker.stdout).readline().strip().partition("host=")[2] for worker in workers}
    for worker in workers:
        worker.communicate("\n", timeout=60)
    assert [worker.returncode for worker in workers] == [0] * WORKERS
    assert len(folders) == 1
    assert not Path(folders.pop()).exists()
