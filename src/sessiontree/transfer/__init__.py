"""Move conversations between stores, to and from other programs, and to HTML."""

from sessiontree.render.html import PageContent, render_html
from sessiontree.transfer.copy import CopyReport, copy_store
from sessiontree.transfer.formats import ExportReport, ImportNote, ImportReport, export_sessions, import_sessions
from sessiontree.transfer.restore import RestoreReport, restore_backup

__all__ = [
    "CopyReport",
    "ExportReport",
    "ImportNote",
    "ImportReport",
    "PageContent",
    "RestoreReport",
    "copy_store",
    "export_sessions",
    "import_sessions",
    "render_html",
    "restore_backup",
]
