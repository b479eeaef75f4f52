"""How many examples a property is tried on: ``SESSIONTREE_EXAMPLES``, else by ``SESSIONTREE_PROFILE``."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

DEFAULT = "5000" if os.environ.get("SESSIONTREE_PROFILE") == "deep" else "200"
EXAMPLES = int(os.environ.get("SESSIONTREE_EXAMPLES", DEFAULT))

profile = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
