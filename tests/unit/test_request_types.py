"""The table of request types is what the installed SDKs say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parent.parent.parent / "tools" / "request_types.py"


def test_the_table_of_request_types_agrees_with_the_installed_sdks() -> None:
    checked = subprocess.run([sys.executable, TOOL, "--check"], check=False)
    assert checked.returncode == 0, "run: python tools/request_types.py"
