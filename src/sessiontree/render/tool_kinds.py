"""What kind of tool a call is for: the names of all agents mapped to a few kinds.

>>> kind_of("developer__shell", {}), kind_of("MultiEdit", {}), kind_of("str_replace_editor", {"command": "view"})
('bash', 'edit', 'read')
>>> kind_of("mcp__tracker__close_ticket", {})
'other'
"""

from __future__ import annotations

import re
from typing import Any, Literal

__all__ = ["ToolKind", "kind_of", "short_name"]


ToolKind = Literal["read", "edit", "write", "bash", "grep", "find", "web", "agent", "plan", "ask", "other"]

_NAMES: dict[ToolKind, str] = {
    "read": "read readfile view viewfile cat openfile readmanyfiles notebookread fileread getfile viewimage readlines",
    "edit": """
        edit multiedit editfile fileedit notebookedit patch applypatch applydiff applyedit replace replaceinfile
        searchandreplace searchreplace insertcontent insert strreplace editnotebook multieditfile appendfile
    """,
    "write": "write writefile writetofile createfile create savefile newfile filewrite",
    "bash": """
        bash shell sh exec execcommand execute executebash executecommand localshell localshellcall runshellcommand runterminalcmd
        runcommand runinterminal run cmd cmdrun command terminal powershell bashoutput writestdin python
        executeipythoncell ipython killshell stopbash readbash writebash shelltool
    """,
    "grep": """
        grep grepsearch rg ripgrep searchfilecontent searchfiles searchtext search codebasesearch searchcode
        findinfiles searchindirectory
    """,
    "find": """
        glob ls list listfiles listdirectory listdir find filesearch findfiles tree listcodedefinitionnames
        findbyname globtool
    """,
    "web": """
        websearch webfetch googlewebsearch fetch webfetcher browse browser browseraction websearchcall usebrowser
        browseurl fetchurl searchweb urlfetch readurl openurl
    """,
    "agent": """
        task agent subagent spawnagent delegate delegatetask newtask subtask dispatchagent runagent waitagent
        runsubagent calltask delegatetoagent
    """,
    "plan": "todowrite todoread updateplan todo todos writetodos updatetodolist managetodolist tasktracker plan",
    "ask": "askfollowupquestion askuserquestion askuser question requestuserinput",
}
_KINDS: dict[str, ToolKind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}

_EDITORS = frozenset(
    {"strreplaceeditor", "strreplacebasededittool", "texteditor", "fileeditor", "editor", "oheditor", "stredit"}
)
_EDITOR_COMMANDS: dict[str, ToolKind] = {"view": "read", "create": "write", "write": "write"}
_LAST_NAME = re.compile(r"(?:.*__|.*[.:/])?(.+)")


def kind_of(name: str, arguments: Any) -> ToolKind:
    """Return the kind of a tool. One that does several things, such as an editor, is told by its arguments."""
    key = _key(name)
    given = arguments if isinstance(arguments, dict) else {}
    if key in _EDITORS:
        return _EDITOR_COMMANDS.get(str(given.get("command", "")), "edit")
    if key in {"shell", "localshell"} and _is_patch(given.get("command")):
        return "edit"
    if key == "search" and "url" in given:
        return "web"
    return _KINDS.get(key, "other")


def short_name(name: str) -> str:
    """Return the name of a tool without the server or extension that it comes from.

    >>> short_name("mcp__tracker__close_ticket"), short_name("functions.update_goal")
    ('close_ticket', 'update_goal')
    """
    found = _LAST_NAME.fullmatch(name)
    return found[1] if found else name


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", short_name(name).casefold())


def _is_patch(command: Any) -> bool:
    return isinstance(command, list) and len(command) > 1 and command[0] in {"apply_patch", "applypatch"}
