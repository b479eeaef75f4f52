"""Ten thousand live sessions in one process."""

from pathlib import Path

import pytest

from unit.test_session_manager import check_memory_of


@pytest.mark.deep
def test_ten_thousand_live_sessions_stay_in_the_store_not_in_memory(tmp_path: Path) -> None:
    grown = check_memory_of(10_000, tmp_path)
    print(f"resident memory grew by {grown / 1e6:.1f} MB for 200 MB of conversations")
