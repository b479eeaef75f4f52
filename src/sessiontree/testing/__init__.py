"""Tools for testing stores and programs that use them: the contract, a model to compare with, clocks and faults.

Needs pytest, and hypothesis for the state machine (``sessiontree.testing.machine``).
"""

from __future__ import annotations

from sessiontree.testing.clock import ManualClock, seeded_random
from sessiontree.testing.contract import StoreContract
from sessiontree.testing.faults import FaultyFiles
from sessiontree.testing.surface import SyncOverAsync

__all__ = ["FaultyFiles", "ManualClock", "StoreContract", "SyncOverAsync", "seeded_random"]
