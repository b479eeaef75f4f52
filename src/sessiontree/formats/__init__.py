"""Coming from other systems, and going back: import and export of sessions in the formats of other programs.

>>> import tempfile, pathlib
>>> import sessiontree as st
>>> with tempfile.TemporaryDirectory() as name, st.open("memory:") as journal:
...     thread = journal.create_thread("demo", title="Demo")
...     _ = journal.append("demo", st.user("hello"))
...     report = export_sessions(journal, pathlib.Path(name, "floret"), format="floret")
...     with st.open("memory:") as other:
...         imported = import_sessions(other, pathlib.Path(name, "floret"))
...         (detect(pathlib.Path(name, "floret")), imported.entries_added, other.path("demo")[0].message.text)
('floret', 1, 'hello')
"""

from sessiontree.formats.registry import FORMATS, Format, detect, export_sessions, import_sessions
from sessiontree.formats.report import ExportReport, ImportReport, Note

__all__ = [
    "FORMATS",
    "ExportReport",
    "Format",
    "ImportReport",
    "Note",
    "detect",
    "export_sessions",
    "import_sessions",
]
