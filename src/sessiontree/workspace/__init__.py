"""The files of a folder: scan them, plan and apply a restore, compare them. Knows nothing of threads or stores.

ignore          settings and .gitignore rules
safe_paths      paths that stay inside the folder
cache           stat cache of the last snapshot
scan            the folder compared with the stat cache, and the files that changed
open_workspace  a folder that is open and locked for one operation
plan            what a restore would do, as single actions (pure)
staging         a restore that is prepared beside the files
apply           the actions done, or undone
disk            single changes to the disk, and the state directory
diff            differences between two trees (pure)
location        the real path of a folder, for a thread's ``workspace``
"""

from sessiontree.workspace.diff import FileDiff, TreeDiff
from sessiontree.workspace.ignore import DEFAULT_IGNORES, Conflicts, Settings
from sessiontree.workspace.location import workspace_path
from sessiontree.workspace.plan import Conflict, RestorePlan, Step

__all__ = [
    "DEFAULT_IGNORES",
    "Conflict",
    "Conflicts",
    "FileDiff",
    "RestorePlan",
    "Settings",
    "Step",
    "TreeDiff",
    "workspace_path",
]
