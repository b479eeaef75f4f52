"""Tools for testing stores and programs that use them: the contract, the state machine, clocks, failing files.

Requires pytest, and hypothesis for the state machine (``sessiontree.testing.machine``).
"""

from __future__ import annotations

from sessiontree.testing.clock import ManualClock, seeded_random
from sessiontree.testing.contract import StoreContract
from sessiontree.testing.faults import FaultyFiles
from sessiontree.testing.surface import SyncOverAsync

__all__ = ["FaultyFiles", "ManualClock", "StoreContract", "SyncOverAsync", "seeded_random"]
