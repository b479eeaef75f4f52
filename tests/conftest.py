"""What all tests share: readable failures inside the shipped contract."""

import pytest

pytest.register_assert_rewrite("sessiontree.testing")
