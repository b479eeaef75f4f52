"""What all tests share: readable failures inside the shipped contract, and the golden data."""

import pytest

pytest.register_assert_rewrite("sessiontree.testing")
pytest_plugins = ["golden_data"]
