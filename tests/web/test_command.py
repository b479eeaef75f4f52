"""``sessiontree web`` as people start it: a process that prints an address and answers there until Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import sessiontree as st
from web.running import COMMAND, serving


def test_the_address_that_is_printed_opens_the_store_until_ctrl_c(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.append("t", st.user("hello"), create=True)
    with serving("--store", "j.db", folder=tmp_path) as address, httpx.Client(follow_redirects=True) as client:
        page = client.get(address)
    assert page.status_code == 200
    assert "token" not in str(page.url)
    assert ">hello<" in page.text


def test_a_viewer_is_stopped_without_noise_while_pages_are_open(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.append("t", st.user("hello"), create=True)
    with httpx.Client(follow_redirects=True, timeout=30) as client:
        with serving("--store", "j.db", folder=tmp_path) as address:
            base = address.partition("/?token=")[0]
            client.get(address)
            request = client.build_request("GET", f"{base}/t/t/live", params={"after": ""})
            stream = client.send(request, stream=True)
            lines = stream.iter_lines()
            assert "event: entries" in (next(lines) for _ in range(8))
        list(lines)  # the stream ends
    assert "Traceback" not in capfd.readouterr().err


def test_other_addresses_than_loopback_are_read_only(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db"):
        pass
    arguments = ("--store", "j.db", "--host", "0.0.0.0")
    with serving(*arguments, folder=tmp_path) as address, httpx.Client(follow_redirects=True) as client:
        page = client.get(address.replace("0.0.0.0", "127.0.0.1"))
    assert "read only" in page.text


@pytest.mark.parametrize("arguments", [["--store", "missing.db"], ["--port", "99999", "--store", "memory:"]])
def test_what_cannot_be_served_is_said(tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode in {1, 2, 5}
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("✗")


def test_the_demo_can_be_kept_and_names_the_command_that_shows_it(tmp_path: Path) -> None:
    demo = [sys.executable, "-m", "sessiontree", "demo", "--keep", "shown"]
    done = subprocess.run(demo, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True)
    assert "sessiontree web --store shown/journal.db" in done.stdout
    with serving("--store", "shown/journal.db", folder=tmp_path) as address:
        page = httpx.get(address, follow_redirects=True).text
    assert "Fix the login test" in page
    again = subprocess.run(demo, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert "has a store already" in again.stderr
