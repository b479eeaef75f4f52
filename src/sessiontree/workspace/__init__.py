"""Workspaces: the files of a folder, taken and brought back. Knows nothing of threads or stores.

scan      what is in the folder, cheaply        (cache, ignore, own_folder)
reading   the bytes of what changed
plan      what a restore would do               (pure)
actions   the same as single changes to a disk  (pure)
staging   a restore prepared beside the files
restore   doing and undoing it                  (disk, safe_paths, carrying_out)
diff      what differs between two trees        (pure)
"""

from sessiontree.workspace.diff import FileDiff, TreeDiff
from sessiontree.workspace.ignore import DEFAULT_IGNORES, Conflicts, Settings
from sessiontree.workspace.plan import Conflict, RestorePlan, Step

__all__ = ["DEFAULT_IGNORES", "Conflict", "Conflicts", "FileDiff", "RestorePlan", "Settings", "Step", "TreeDiff"]
