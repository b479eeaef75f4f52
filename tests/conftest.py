"""What all tests share: readable failures inside the shipped contract, Hypothesis settings, and the golden data."""

import pytest

import property_settings  # noqa: F401  loads the Hypothesis profile before the first test is defined

pytest.register_assert_rewrite("sessiontree.testing")
pytest_plugins = ["golden_data"]
