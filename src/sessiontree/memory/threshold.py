"""When to draw memories out: on the way up over the soft threshold, once between two compactions.

>>> from sessiontree.compaction import CompactionPolicy
>>> policy = CompactionPolicy(window_tokens=1_000, reserve_tokens=0, soft_ratio=0.6)
>>> crosses_soft_threshold(500, 650, policy), crosses_soft_threshold(650, 700, policy)
(True, False)
>>> crosses_soft_threshold(900, 650, policy)
False
"""

from __future__ import annotations

from sessiontree.compaction import CompactionPolicy

__all__ = ["crosses_soft_threshold"]


def crosses_soft_threshold(before: int, now: int, policy: CompactionPolicy) -> bool:
    """Only upwards: falling back below the hard threshold, as after a compaction, is no crossing.

    A jump over both thresholds at once counts: memories go first, then the compaction.
    """
    return before < policy.soft_threshold <= now
