"""Hypothesis settings for every test: repeatable in ``make test``, random and longer in ``make test-deep``.

``SESSIONTREE_PROFILE=deep`` chooses the deep profile, ``SESSIONTREE_EXAMPLES`` sets the number of examples. Importing
this module loads the profile; ``conftest.py`` does that before any test module is imported, so a plain ``@given`` gets
it too. A test that needs another number of examples says so with ``@examples(usual, deep=...)`` and sets nothing else.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

IS_DEEP = os.environ.get("SESSIONTREE_PROFILE") == "deep"


def _number(usual: int, deep: int) -> int:
    return int(os.environ.get("SESSIONTREE_EXAMPLES", deep if IS_DEEP else usual))


settings.register_profile(
    "sessiontree",
    max_examples=_number(100, deep=2_000),
    derandomize=not IS_DEEP,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("sessiontree")


def examples(usual: int, *, deep: int) -> settings:
    """Settings that try a property on ``usual`` examples, in the deep profile on ``deep``."""
    return settings(max_examples=_number(usual, deep))
